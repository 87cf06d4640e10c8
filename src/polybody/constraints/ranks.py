"""Ranks of constraint Jacobians, decided once for all of the folder.

A state on the constraints is only so to some 1e-10, and a redundant direction then shows a singular value of that size:
what is below `RANK_TOLERANCE` of the largest counts as zero. Between that and `NEAR` a configuration is called nearly
singular.
"""

from __future__ import annotations

import math

import numpy as np

Array = np.ndarray

RANK_TOLERANCE = 1e-8
NEAR = 1e-4
#: the same for J_d, the columns of dependent velocities. Whether the others are independent is asked of the motions
#: that pass (`mobility.independence`): where they are, J_d has the rank of its columns, and none of it may be left out,
#: though its singular values spread by as much as those of J and of the coordinates together
DEPENDENT_TOLERANCE = 1e-14
#: matrices from which on the inverses of their squares are looked at: a quarter of the time of singular values;
#: conditions of such squares that rounding does not reach
SOME, CLEAR = 16, 1e10
#: entries of a projector, which has a norm of one or zero, that are rounding
ROUNDING = 1e-13


def ranked_svd(
    J: Array, tolerance: float = RANK_TOLERANCE, most: int | None = None, full: bool = True
) -> tuple[Array, Array, Array, Array]:
    """(U, s, Vt, kept) of matrices (..., m, n), U and Vt square if `full`; `kept` marks singular values above zero.

    `most` bounds the rank: off the constraints, rows that repeat others there seem to be independent.
    """
    m, n = J.shape[-2:]
    if m == 0 or n == 0:
        lead = J.shape[:-2]
        U = np.broadcast_to(np.eye(m), (*lead, m, m))
        Vt = np.broadcast_to(np.eye(n), (*lead, n, n))
        return U, np.zeros((*lead, 0)), Vt, np.zeros((*lead, 0), dtype=bool)
    U, s, Vt = np.linalg.svd(J, full_matrices=full)
    kept = s > tolerance * np.maximum(s[..., :1], 1e-300)
    return U, s, Vt, kept if most is None else kept & (np.arange(s.shape[-1]) < most)


def ranks(J: Array, tolerance: float = RANK_TOLERANCE) -> Array:
    """Rank of each matrix (..., m, n), by singular values alone: the vectors would take four fifths of the time."""
    if 0 in J.shape[-2:]:
        return np.zeros(J.shape[:-2], dtype=int)
    if math.prod(J.shape[:-2]) >= SOME and _by_values(J[(0,) * (J.ndim - 2)], tolerance) == min(J.shape[-2:]):
        return _mostly_full(J, tolerance)
    return _by_values(J, tolerance)


def _by_values(J: Array, tolerance: float) -> Array:
    s = np.linalg.svd(J, compute_uv=False)
    return (s > tolerance * np.maximum(s[..., :1], 1e-300)).sum(axis=-1)


def _mostly_full(J: Array, tolerance: float) -> Array:
    """Many ranks, most of which are full. What the squares do not decide is left to singular values."""
    full = np.full(J.shape[:-2], min(J.shape[-2:]))
    _, clear = _inverse_squares(J if J.shape[-2] >= J.shape[-1] else np.swapaxes(J, -1, -2))
    if not clear.all():
        full[~clear] = _by_values(J[~clear], tolerance)
    return full


def _inverse_squares(J: Array) -> tuple[Array, Array]:
    """(A⁻¹, whether it is sure) of A = Jᵀ J: tr A ≥ σ_1² and ‖A⁻¹‖_F ≥ 1/σ_n² bound the quotient of singular values."""
    A = np.swapaxes(J, -1, -2) @ J
    try:
        inverse = np.linalg.inv(A)
    except np.linalg.LinAlgError:  # one is singular without rounding: nothing is known of the others
        return A, np.zeros(J.shape[:-2], dtype=bool)
    size = np.trace(A, axis1=-2, axis2=-1) * np.sqrt(np.einsum("...ij,...ij->...", inverse, inverse))
    return inverse, size < CLEAR  # not where it is not a number


def inverse_values(s: Array, kept: Array) -> Array:
    return np.where(kept, 1.0 / np.where(kept, s, 1.0), 0.0)


def pseudo_inverse(J: Array, tolerance: float = RANK_TOLERANCE, most: int | None = None) -> Array:
    """J⁺ with the folder's notion of rank."""
    return inverse_with_values(J, tolerance, most)[0]


def inverse_with_values(J: Array, tolerance: float = RANK_TOLERANCE, most: int | None = None) -> tuple[Array, Array]:
    """(J⁺, singular values of J)."""
    U, s, Vt, kept = ranked_svd(J, tolerance, most, full=False)
    k = s.shape[-1]
    back = inverse_values(s, kept)[..., :, None] * np.swapaxes(U[..., :, :k], -1, -2)
    return np.swapaxes(Vt[..., :k, :], -1, -2) @ back, s


def newton_step(J: Array, phi: Array) -> Array:
    """−J⁺ φ, (..., n). Of many that have full columns from the squares: off by 1e-6 of itself, which a step may be."""
    if math.prod(J.shape[:-2]) < SOME or not 0 < J.shape[-1] <= J.shape[-2]:
        return -(pseudo_inverse(J) @ phi[..., None])[..., 0]
    inverse, clear = _inverse_squares(J)
    step = -(inverse @ (np.swapaxes(J, -1, -2) @ phi[..., None]))[..., 0]
    if not clear.all():
        step[~clear] = -(pseudo_inverse(J[~clear]) @ phi[~clear][..., None])[..., 0]
    return step


def null_space(J: Array, tolerance: float = RANK_TOLERANCE) -> Array:
    """Orthonormal columns of the motions that one J (m, n) allows."""
    _, _, Vt, kept = ranked_svd(_square(J), tolerance)
    return Vt[int(kept.sum()) :].T


def _square(J: Array) -> Array:
    """R of J = Q R where J is tall: of the same singular values and right vectors, without the left ones' cost."""
    return np.asarray(np.linalg.qr(J, mode="r")) if J.shape[-2] > J.shape[-1] > 0 else J


def motion_projector(J: Array, tolerance: float = RANK_TOLERANCE) -> Array:
    """1 − J⁺J, (..., n, n); what does not move has zeros: the rank of columns is relative, and rounding would count."""
    _, s, Vt, kept = ranked_svd(_square(J), tolerance)
    Y = Vt[..., : s.shape[-1], :] * kept[..., :, None]
    P = np.eye(J.shape[-1]) - np.swapaxes(Y, -1, -2) @ Y
    P[np.abs(P) < ROUNDING] = 0.0
    return P


__all__ = ["DEPENDENT_TOLERANCE", "NEAR", "RANK_TOLERANCE", "inverse_values", "inverse_with_values",
           "motion_projector", "newton_step", "null_space", "pseudo_inverse", "ranked_svd", "ranks"]  # fmt: skip
