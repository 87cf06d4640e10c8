"""Inverse dynamics of loops: the actuators' loads for a motion.

Joint loads r = M a + C v + g − passive − Σ Jᵀw move the cut tree so; the loops take what does no work on motions Z that
they allow. Actuators A must bear the rest:

    Z_Aᵀ τ_A = Zᵀ r

exact where A are as many as Z has columns, redundant where more: then the least τ_A (weighted by W: (4-76)-(4-80)) is
given, and any internal load n with Z_Aᵀ n = 0 may be added (4-81)-(4-90). Where Z_A misses a motion that r works on,
the mechanism cannot be held: that motion is named. Over batches Z is replaced by the projector P = 1 − J⁺J.
"""

from __future__ import annotations

import numpy as np

from polybody.constraints.ranks import motion_projector, pseudo_inverse, ranked_svd

Array = np.ndarray


def actuator_loads(J: Array, required: Array, driven: Array, weights: Array | None = None) -> tuple[Array, Array]:
    """(τ (..., nv), unmet (..., nv)): least loads at the driven velocities, and what they leave of P r."""
    P = motion_projector(J)
    wanted = (P @ required[..., None])[..., 0]
    scale = np.ones(len(driven)) if weights is None else 1.0 / np.sqrt(weights)
    columns = P[..., :, driven] * scale
    share = (pseudo_inverse(columns) @ wanted[..., None])[..., 0] * scale
    tau = np.zeros(wanted.shape)
    tau[..., driven] = share
    unmet = wanted - (P[..., :, driven] @ share[..., None])[..., 0]
    return tau, unmet


def internal_load_basis(J: Array, driven: Array) -> Array:
    """(driven, k): loads of the actuators that move nothing, orthonormal, at one state."""
    P = motion_projector(J)
    _, _, Vt, kept = ranked_svd(P[:, driven])
    return Vt[int(kept.sum()) :].T


__all__ = ["actuator_loads", "internal_load_basis"]
