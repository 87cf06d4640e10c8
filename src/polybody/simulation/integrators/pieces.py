"""Polynomials between the output times of a solver that does not tell its inner steps.

Between two output times, in a piece of the motion, a state is the polynomial through the solver's own output at
Chebyshev's points θ_k = (1 − cos(πk/n))/2. Output costs a solver one evaluation of the polynomial that it has anyway:
it takes the same inner steps whatever it is asked for. Of the polynomial's Chebyshev coefficients

    c_j = (2/n) Σ''_k x(θ_k) cos(πjk/n),    c_n half of it         (Σ'': first and last term halved)

the last two have died away where it follows the motion. Of smooth motions they are a tenth of the tolerances, where one
polynomial does not follow 1e4 times them and more. Such pieces are divided, and the solver is called again from the
same state, which changes nothing but its output times. The work is looked at as the states are: a pulse that is over
between two points leaves a trace there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from polybody.simulation.integrators.base import Interpolant, Options

Array = np.ndarray
PARTS = 10  # degree of the polynomials,
LOOKS = 8  # and points of each at which event functions are looked at
ROUGH = 100.0  # tolerances: what a polynomial may leave out
DIVISION = 16  # of a piece whose polynomial leaves out more,
ROUNDS = 3  # at most so often one after the other: 12 µs of 0.05 s,
MOST_PIECES = 2048  # and into so many in a call


def subdivided(t: float, grid: Array) -> Array:
    """(pieces, PARTS): Chebyshev's points of each piece that ends at a time of the grid, its end last."""
    starts = np.concatenate([[t], grid[:-1]])
    fine = starts[:, None] + (grid - starts)[:, None] * chebyshev()[0][1:]
    fine[:, -1] = grid
    return fine


@cache
def chebyshev() -> tuple[Array, Array]:
    """(points on [0, 1], ends included; barycentric weights)."""
    k = np.arange(PARTS + 1)
    weights = (-1.0) ** k
    weights[[0, -1]] /= 2
    return (1 - np.cos(np.pi * k / PARTS)) / 2, weights


def through(t0: float, t1: float, states: Array) -> Interpolant:
    """The polynomial through states at Chebyshev's points, by the second barycentric formula."""
    points, weights = chebyshev()

    def value(t: float) -> Array:
        away = (t - t0) / (t1 - t0) - points
        nearest = int(np.argmin(np.abs(away)))
        if abs(away[nearest]) < 1e-15:
            return states[nearest].copy()
        shares = weights / away
        return shares @ states / shares.sum()

    return value


def resolved(
    solve: Callable[[Array], Array | None], t: float, y: Array, grid: Array, within: Array, options: Options
) -> tuple[Array, Array, Array]:
    """(ends of pieces, states at their points, what their polynomials leave out, in tolerances), where rough pieces of
    the motion from (t, y) on are divided; its end may come sooner.

    `within` (n, PARTS, size) are the states at the points of the grid's pieces, `solve(grid)` those of another grid,
    None where it gives up.
    """
    off = left_out(y, within, options)
    for _ in range(ROUNDS):
        finer = _divided(t, grid, off > ROUGH)
        found = solve(finer) if len(finer) > len(grid) else None
        if found is None:
            break
        grid, within, off = finer, found, left_out(y, found, options)
    return grid, within, off


def left_out(y: Array, within: Array, options: Options) -> Array:
    """(pieces,): the last two Chebyshev coefficients of their polynomials, in tolerances."""
    starts = np.concatenate([y[None], within[:-1, -1]])
    nodes = np.concatenate([starts[:, None], within], axis=1)
    last = np.abs(np.einsum("jk,nks->njs", _last_coefficients(), nodes)).max(axis=1)
    return (last / (options.atol + options.rtol * np.abs(nodes).max(axis=(0, 1)))).max(axis=1)


@cache
def _last_coefficients() -> Array:
    """(2, PARTS + 1): the last two Chebyshev coefficients of the polynomial through values at the points."""
    k = np.arange(PARTS + 1)
    half = np.where((k == 0) | (k == PARTS), 0.5, 1.0)
    return np.array([2.0 * half * np.cos(np.pi * k * (PARTS - 1) / PARTS), half * (-1.0) ** k]) / PARTS


def _divided(t: float, grid: Array, rough: Array) -> Array:
    """The grid with its rough pieces divided, as many of the first as there may be."""
    counts = np.where(rough, DIVISION, 1)
    count = max(1, int(np.searchsorted(np.cumsum(counts), MOST_PIECES, "right")))
    starts = np.concatenate([[t], grid[:-1]])
    return np.concatenate([
        end - (end - start) * np.arange(parts - 1, -1, -1) / parts
        for start, end, parts in zip(starts[:count], grid[:count], counts[:count], strict=True)
    ])  # fmt: skip


__all__ = ["LOOKS", "PARTS", "ROUGH", "chebyshev", "left_out", "resolved", "subdivided", "through"]
