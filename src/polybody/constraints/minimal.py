"""Transfer to minimal coordinates: the dependent joints follow the independent ones (Freeman (4-8)-(4-41)).

u are some of the velocities φ, as many as the mechanism is mobile, d the others. From J φ̇ = 0, J φ̈ + γ = 0:

    φ̇ = G u̇,        [G_u^φ]: rows u the identity, rows d −J_d⁺ J_u                                (4-19), (4-33)
    φ̈ = G ü + β,    β: rows u zero, rows d −J_d⁺ γ;     β = u̇ᵀ[H_uu^φ]u̇                           (4-20), (4-34)

H comes from derivatives of J along columns of G (`variations`, `coefficients`). Dynamics:

    I*_uu = Gᵀ I* G,    P*_uuu = Gᵀ•(Gᵀ P* G) + (Gᵀ I*)•H,    T_u = Gᵀ T_φ                         (4-26)-(4-32)

the held coordinates c of the paper being the residuals themselves, ċ = c̈ = 0. J_d⁺ is an inverse where the constraints
are independent, and for redundant ones the inverse on what they agree on.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polybody.constraints.ranks import DEPENDENT_TOLERANCE, inverse_with_values
from polybody.late import dataclass

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Transfer:
    """φ̇ = G u̇, φ̈ = G ü + β at states (...); E, nv×rows, is −J_d⁺ in rows d; `condition` is that of J_d."""

    independent: tuple[int, ...]
    dependent: tuple[int, ...]
    E: Array
    G: Array
    beta: Array
    condition: Array


def transfer_to(J: Array, gamma: Array, independent: Sequence[int]) -> Transfer:
    """The transfer to these velocities; whether they are independent is reported by `condition`."""
    n = J.shape[-1]
    u = list(independent)
    d = [k for k in range(n) if k not in set(u)]
    Jd, Ju = J[..., d], J[..., u]
    lead = np.broadcast_shapes(J.shape[:-2], gamma.shape[:-1])
    inverse, s = inverse_with_values(Jd, DEPENDENT_TOLERANCE)
    E, G = np.zeros((*J.shape[:-2], n, J.shape[-2])), np.zeros((*J.shape[:-2], n, len(u)))
    E[..., d, :] = -inverse
    G[..., u, range(len(u))] = 1.0
    G[..., d, :] = E[..., d, :] @ Ju
    beta = np.zeros((*lead, n))
    beta[..., d] = -(inverse @ gamma[..., None])[..., 0]
    if d:
        least = s[..., len(d) - 1] if s.shape[-1] >= len(d) else np.zeros(s.shape[:-1])
        condition = s[..., 0] / np.maximum(least, 1e-300)
    else:
        condition = np.ones(J.shape[:-2])
    return Transfer(tuple(u), tuple(d), E, G, beta, condition)


def solve_minimal(M: Array, transfer: Transfer, force: Array) -> Array:
    """a: ü from I*_uu ü = Gᵀ(f − I*β), then φ̈ = G ü + β."""
    G = transfer.G
    back = np.swapaxes(G, -1, -2)
    right = (back @ (force - (M @ transfer.beta[..., None])[..., 0])[..., None])[..., 0]
    u_ddot = np.linalg.solve(back @ M @ G, right[..., None])
    return (G @ u_ddot)[..., 0] + transfer.beta


__all__ = ["Transfer", "solve_minimal", "transfer_to"]
