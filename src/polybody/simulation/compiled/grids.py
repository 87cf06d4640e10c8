"""Times of fixed steps."""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def grid(t: float, end: float, dt: float, most: int, taken: int = 0) -> Array:
    """Times of equal steps, at most so many after those taken since t; the last of all is `end`."""
    count = max(1, int(np.ceil((end - t) / dt * (1 - 1e-12))) - taken)
    times = t + dt * np.arange(taken, taken + min(count, most) + 1)
    if count <= most:
        times[-1] = end
    return times


def grid_through(t: float, stops: Array, end: float, dt: float, most: int, taken: int = 0) -> Array:
    """The same with equal steps from stop to stop."""
    bounds = np.concatenate([[t], stops, [end]] if stops[-1] < end else [[t], stops])
    counts = np.maximum(1, np.ceil(np.diff(bounds) / dt * (1 - 1e-12)).astype(int))
    counts[0] = max(counts[0], taken + 1)
    piece = np.repeat(np.arange(len(counts)), counts)
    within = np.arange(len(piece)) - np.repeat(np.cumsum(counts) - counts, counts) + 1
    times = np.where(within == counts[piece], bounds[1:][piece], bounds[piece] + dt * within)
    return np.concatenate([[t + dt * taken], times[taken : taken + most]])


__all__ = ["grid", "grid_through"]
