"""Forces and impulses within bounds, for stops and dry friction:

    λ = argmin ½ λᵀSλ + gᵀλ,    low ≤ λ ≤ high,    S = N Nᵀ, g = N c                                             (1)

which minimises |Nᵀλ + c|. Where rows of N depend on each other, which joints of loops often do, forces are not unique,
their effect is: those wanted are the least, which S + ε in the place of S gives, as it is positive definite. Among
the forces that are between their bounds there,

    λ ← argmin ½ λᵀSλ + gᵀλ + ½ ε |λ − λ_last|²                                                                (2)

takes away what ε changes along directions that count: an error shrinks by ε/σ with every one. Compiled loops solve (1)
by the same rules (`kernels.stepping_bounds`).
"""

from __future__ import annotations

import numpy as np

from polybody.interrupts import imported

Array = np.ndarray
WELL = 1e9  # S_ii over what elimination leaves of it, up to which S is divided by
SOFT = 1e-6  # ε of the largest S_ii
MOST_POINTS = 20
ENOUGH = 1e-14  # of the terms of a slope: what is left of it


def bounded(N: Array, g: Array, low: Array | None = None, high: Array | None = None) -> Array:
    """λ of (1), by default 0 ≤ λ."""
    low = np.zeros(len(N)) if low is None else low
    high = np.full(len(N), np.inf) if high is None else high
    # Levels of zero leave nothing between the bounds, which solvers refuse.
    free = high > low
    if not free.all():
        result = np.zeros(len(N))
        if free.any():
            result[free] = bounded(N[free], g[free], low[free], high[free])
        return result
    S = N @ N.T
    found = within(S, g, low, high)[0] if _is_well(S) else None
    if found is None:
        found = nearest(S, g, low, high)
    if found is None:  # nearly dependent rows: by their own factors, not by their products
        imported("scipy.optimize")
        from scipy.optimize import lsq_linear

        c = np.linalg.lstsq(N, g, rcond=None)[0]
        found = lsq_linear(N.T, -c, (low, high), method="bvls", tol=1e-14).x
    return found


def _is_well(S: Array) -> bool:
    """Whether S may be divided by."""
    try:
        left = np.linalg.cholesky(S).diagonal() ** 2
    except np.linalg.LinAlgError:  # not positive definite
        return False
    return bool(np.all(left * WELL > S.diagonal()))


def nearest(S: Array, g: Array, low: Array, high: Array) -> Array | None:
    """The least λ of (1) by (2); None where the points go on."""
    soft = SOFT * S.diagonal().max(initial=0.0)
    if not soft > 0.0:
        return None
    softened = S + soft * np.eye(len(S))
    x, at = within(softened, g, low, high)
    for _ in range(MOST_POINTS if x is not None else 0):
        found = _of_set(softened, g - soft * x, at, low, high)
        beyond = np.where(found < low, -1, np.where(found > high, 1, 0))
        found = np.minimum(np.maximum(found, low), high)
        change, x, at = np.abs(found - x).max(initial=0.0), found, np.where(beyond != 0, beyond, at)
        scale = (np.abs(g) + np.abs(softened) @ np.abs(x)).max(initial=0.0)
        if not beyond.any() and soft * change <= ENOUGH * scale:
            return x
    return None


def _of_set(S: Array, g: Array, at: Array, low: Array, high: Array) -> Array:
    """The minimum with some of λ at their bounds."""
    free, x = at == 0, np.where(at < 0, low, np.where(at > 0, high, 0.0))
    x[free] = np.linalg.solve(S[np.ix_(free, free)], -(g[free] + S[np.ix_(free, ~free)] @ x[~free]))
    return x


def within(S: Array, g: Array, low: Array, high: Array) -> tuple[Array | None, Array]:
    """(λ of (1), which of them are at a bound: −1, 1, or 0), S positive definite, by active sets from the minimum
    without bounds; None where rounding lets sets come again."""
    n, x = len(S), None
    at = np.zeros(n, dtype=int)
    for _ in range(4 * n + 8):
        x_new = _of_set(S, g, at, low, high)
        beyond = np.where(x_new < low, -1, np.where(x_new > high, 1, 0))
        if not beyond.any():
            x, slope = x_new, g + S @ x_new
            wrong = -at * slope < -1e-13 * (np.abs(g) + np.abs(S) @ np.abs(x_new))
            if not wrong.any():
                return x_new, at
            at[int(np.argmax(np.where(wrong, np.abs(slope), 0.0)))] = 0
        elif x is None:
            at = np.where(beyond != 0, beyond, at)
        else:  # from the last point within bounds as far as they let it
            move, ends = x_new - x, np.where(x_new < low, low, high)
            ways = np.where(beyond != 0, (ends - x) / np.where(beyond != 0, move, 1.0), np.inf)
            k = int(np.argmin(ways))
            x, at[k] = x + ways[k] * move, beyond[k]
    return None, at


__all__ = ["bounded", "nearest", "within"]
