"""Friction of joints that slide, where it depends on the forces that their bearings carry, and those on it.

    f = w |R(f)|,    R(f) = R₀ + B f                                                                           (1)

R are the forces in the joints, |R| their sizes, w the coefficients of load with the signs of sliding. Newton's method
finds f from f = 0. Where it does not, the solution is followed from s = 0 to s = 1 with s w in the place of w: friction
that grows from nothing. It may end before s = 1, where f grows without bound or two solutions meet and vanish: what is
carried then causes more friction than it takes to carry it. Such joints lock themselves (Painlevé's paradox), and a
model of rigid bodies has no motion from there that continues the one with less friction.
"""

from __future__ import annotations

import numpy as np

Array = np.ndarray
MOST_ITERATIONS = 50
SHORTEST = 1e-6  # of s
FAR = 0.5  # of f and the scale: a step of s that changes f by more may have left the solution


def solved(R0: Array, by: Array, weights: Array, scale: float) -> tuple[Array | None, float]:
    """(f of (1), 1), or (None, the s at which it ends); R0 (joints, 3), by (joints, 3, n), weights (n, joints).
    """
    f = np.zeros(len(weights))
    found = _newton(f, R0, by, weights, scale)
    if found is not None:
        return found[0], 1.0
    s, step = 0.0, 0.1
    while s < 1.0:
        if step < SHORTEST:
            return None, s
        found = _newton(f, R0, by, min(s + step, 1.0) * weights, scale)
        if found is None or not found[1] or np.abs(found[0] - f).max() > FAR * (scale + np.abs(f).max()):
            step /= 2
            continue
        f, s, step = found[0], min(s + step, 1.0), 1.5 * step
    return f, 1.0


def _newton(f: Array, R0: Array, by: Array, weights: Array, scale: float) -> tuple[Array, bool] | None:
    """(f, whether it is that which grows from nothing: the determinant of 1 − ∂f/∂f is positive), or None."""
    unit = np.eye(len(f))
    for _ in range(MOST_ITERATIONS):
        R = R0 + by @ f
        norms = np.sqrt(np.einsum("jk,jk->j", R, R) + 1e-30)
        A = unit - weights @ (np.einsum("jk,jks->js", R, by) / norms[:, None])
        sign = np.linalg.slogdet(A)[0]
        if not abs(sign) > 0.0:  # singular, or not finite
            return None
        change = np.linalg.solve(A, weights @ norms - f)
        f = f + change
        if np.abs(change).max() <= 1e-12 * (scale + np.abs(f).max()):
            return f, bool(sign > 0)
    return None


__all__ = ["solved"]
