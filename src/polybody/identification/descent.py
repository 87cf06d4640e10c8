"""A minimum of a smooth function by quasi-Newton steps of limited memory (Nocedal 1980).

    x_{k+1} = x_k − α_k H_k g_k

H_k is a multiple of the unit matrix, (sᵀy/yᵀy) 1, corrected by the last pairs s = Δx, y = Δg; it is never formed. α_k
meets Wolfe's conditions,

    f(x + α d) ≤ f(x) + c₁ α gᵀd,      gᵀ(x + α d) d ≥ c₂ gᵀd

so that sᵀy > 0 and steps go down; it is found by doubling until it is bracketed, and by dividing the bracket: after a
leap far too long by much, because loops that cannot be closed there may be closed in another way on the way back.
SciPy has the like, whose import takes longer than a first answer may.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

Array = np.ndarray
PAIRS = 10
DECREASE, CURVATURE = 1e-4, 0.9
TRIALS = 20
LEAST = 1e-3  # part of a step that was too long
#: where it ends: the largest slope, and the decrease of a step in parts of the value
SLOPE, PART = 1e-5, 2e-9


def descend(value: Callable[[Array], float], slope: Callable[[Array], Array], x: Array, steps: int) -> Array:
    """The lowest point that so many steps from x reach."""
    pairs: deque[tuple[Array, Array]] = deque(maxlen=PAIRS)
    f, g = value(x), slope(x)
    for _ in range(steps):
        if np.abs(g).max(initial=0.0) <= SLOPE:
            break
        d = -_product(pairs, g)
        first = 1.0 if pairs else min(1.0, 1.0 / float(np.linalg.norm(g)))
        found = _wolfe(value, slope, x, f, g, d, first)
        if found is None:
            if not pairs:
                break
            pairs.clear()  # once more, along the slope itself
            continue
        x_new, f_new, g_new = found
        s, y = x_new - x, g_new - g
        if s @ y > 1e-12 * (y @ y):
            pairs.append((s, y))
        small = f - f_new <= PART * max(abs(f), abs(f_new), 1.0)
        x, f, g = x_new, f_new, g_new
        if small:
            break
    return x


def _product(pairs: deque[tuple[Array, Array]], g: Array) -> Array:
    """H g, by the two loops over the pairs."""
    q, taken = g.copy(), []
    for s, y in reversed(pairs):
        part = (s @ q) / (s @ y)
        taken.append(part)
        q -= part * y
    if pairs:
        s, y = pairs[-1]
        q *= (s @ y) / (y @ y)
    for (s, y), part in zip(pairs, reversed(taken), strict=True):
        q += (part - (y @ q) / (s @ y)) * s
    return q


def _wolfe(
    value: Callable[[Array], float], slope: Callable[[Array], Array], x: Array, f: float, g: Array, d: Array,
    first: float,
) -> tuple[Array, float, Array] | None:  # fmt: skip
    """(x, f, g) a step of both conditions ahead, or of the first alone; None where nothing is lower."""
    along = float(g @ d)
    if not along < 0:
        return None
    low, high, size = 0.0, np.inf, first
    lower: tuple[Array, float, Array] | None = None
    for _ in range(TRIALS):
        ahead = x + size * d
        f_new = value(ahead)
        if not f_new <= f + DECREASE * size * along:  # nor where it is no number
            high = size
        else:
            g_new = slope(ahead)
            lower = ahead, f_new, g_new
            if g_new @ d >= CURVATURE * along:
                return lower
            low = size
        if high == np.inf:
            size *= 2
        elif low:
            size = np.sqrt(low * high)  # they may be of different sizes
        else:  # where the parabola through f, its slope and the last value is lowest
            rise = f_new - f - size * along
            size *= min(max(-size * along / (2 * rise), LEAST), 0.5) if rise > 0 else 0.5
    return lower


__all__ = ["descend"]
