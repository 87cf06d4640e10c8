"""Dynamics with multipliers, rank-revealing.

    [ M  Jᵀ ] [  a  ]   [  f ]          f = tau + passive + Σ Jᵀw − C v − g
    [ J  0  ] [ −λ  ] = [ −γ ]          λ are loads on the mechanism: M a = f + Jᵀ λ

With the complete orthogonal decomposition J = U S Vᵀ (singular values below the rank tolerance are zeros), Y the kept
columns of V and Z the others,

    a = Y y + Z z,      y = −S⁺Uᵀ γ,      (ZᵀMZ) z = Zᵀ(f − M Y y)
    λ = U S⁺ Yᵀ (M a − f)                   of all loads that do, the least

so that redundant constraints never make a singular matrix, and a massless part of the tree is no trouble as long as the
loops hold it. Z changes its width with the rank: over a batch its place is taken by the projector P = 1 − YYᵀ, and z by
the solution of (P M P + μ YYᵀ) x = P (…), whose part along Y is zero.
"""

from __future__ import annotations

import numpy as np

from polybody.constraints.ranks import RANK_TOLERANCE, inverse_values, ranked_svd
from polybody.late import dataclass

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Solved:
    """Accelerations (..., n), multipliers (..., m), rank (...) and the singular values (..., min(m, n)) of J.

    `inertia` (...) is the least inertia of a motion that J allows, over the largest: zero where one moves no mass.
    """

    a: Array
    multipliers: Array
    rank: Array
    singular_values: Array  # of J, largest first
    inertia: Array


def solve_multipliers(
    M: Array, J: Array, gamma: Array, force: Array, tolerance: float = RANK_TOLERANCE, most: int | None = None
) -> Solved:
    """a and λ over leading dimensions; `most` bounds the rank."""
    lead = np.broadcast_shapes(M.shape[:-2], J.shape[:-2], gamma.shape[:-1], force.shape[:-1])
    M, J = (np.broadcast_to(x, (*lead, *x.shape[-2:])) for x in (M, J))
    gamma, force = (np.broadcast_to(x, (*lead, x.shape[-1])) for x in (gamma, force))
    U, s, Vt, kept = ranked_svd(J, tolerance, most)
    k = s.shape[-1]
    Y = np.swapaxes(Vt[..., :k, :] * kept[..., :, None], -1, -2)
    back = inverse_values(s, kept)
    y = -back * _apply(np.swapaxes(U[..., :, :k], -1, -2), gamma)
    particular = _apply(Y, y)
    held = Y @ np.swapaxes(Y, -1, -2)
    P = np.eye(M.shape[-1]) - held
    scale = np.maximum(np.trace(M, axis1=-2, axis2=-1) / max(M.shape[-1], 1), 1e-300)
    system = P @ M @ P + scale[..., None, None] * held
    right = _apply(P, force - _apply(M, particular))
    a = particular + _apply(P, _solve(system, right))
    multipliers = _apply(U[..., :, :k], back * _apply(np.swapaxes(Y, -1, -2), _apply(M, a) - force))
    return Solved(a, multipliers, kept.sum(axis=-1), s, _least_inertia(system))


def _least_inertia(system: Array) -> Array:
    if not system.shape[-1]:
        return np.ones(system.shape[:-2])
    finite = np.asarray(np.isfinite(system).all(axis=(-1, -2)))
    values = np.linalg.eigvalsh(np.where(finite[..., None, None], system, np.eye(system.shape[-1])))
    return np.where(finite, np.maximum(values[..., 0], 0) / np.maximum(values[..., -1], 1e-300), 1.0)


def _apply(A: Array, x: Array) -> Array:
    return (A @ x[..., None])[..., 0]


def _solve(A: Array, b: Array) -> Array:
    """A⁻¹ b; NaN where A is singular (motion without inertia)."""
    try:
        return np.linalg.solve(A, b[..., None])[..., 0]
    except np.linalg.LinAlgError:
        result = np.full(b.shape, np.nan)
        regular = np.linalg.slogdet(A)[0] != 0  # by the same factors; others stay NaN: `inertia` reports them
        result[regular] = np.linalg.solve(A[regular], b[regular][..., None])[..., 0]
        return result


__all__ = ["Solved", "solve_multipliers"]
