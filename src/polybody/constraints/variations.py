"""Small changes of a closed motion: derivatives along the constraints, in independent coordinates.

A neighbouring state is reached by the displacement δu and the change δu̇ of independent coordinates; the others follow.
With T_k = dJ/du_k, the derivative of J along the k-th column of G in tangent space, E the nv×rows matrix whose rows u
are zero and rows d −J_d⁺, and G = [1; E J_u]:

    δφ = G δu
    δv = G δu̇ + V δu                     V_k    = E T_k v                          since J v = 0 stays
    δa = G δü + W_q δu + W_v δu̇          W_q,k  = E (T_k a + dγ[G_k, V_k])         since J a + γ = 0 stays
                                         W_v,k  = E dγ[0, G_k] = E (T_k v + Σ_l u̇_l T_l G_k)

dγ[d, w] is the change of γ with φ along d and v along w. In the same words the second-order influence coefficients of
all joints are H[:, k, n] = dG_n/du_k = E T_k G_n. The motion ID(q, v, a) = tau + Jᵀλ changes by

    ∂ID/∂φ δφ + ∂ID/∂v δv + M δa = δtau + Σ T_kᵀλ δu_k + Jᵀδλ

and Gᵀ takes the δλ away, GᵀJᵀ = 0:

    M* δü = Gᵀδtau − R_q δu − R_v δu̇,    M* = GᵀMG
    R_q = Gᵀ(∂ID/∂φ G + ∂ID/∂v V + M W_q − [T_kᵀλ]),         R_v = Gᵀ(∂ID/∂v G + M W_v)

Where constraints are redundant λ is not unique, but GᵀT_kᵀλ is: loads that nothing feels, Jᵀλ₀ = 0, stay so along the
constraints. Actuators A bear a motion by the least τ_A = W⁻¹G_A y, G_AᵀW⁻¹G_A y = Gᵀ ID, so that

    G_Aᵀ δτ_A = R_q δu + R_v δu̇ + M* δü,     δτ_A = W⁻¹(G_A δy + δG_A y),     δG y = Σ E T_k G y δu_k
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from polybody.constraints.minimal import Transfer
from polybody.constraints.ranks import pseudo_inverse

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Following:
    """How all joints follow δu and δu̇: δφ = G δu, δv = G δu̇ + V δu, δa = G δü + W_q δu + W_v δu̇."""

    independent: tuple[int, ...]
    E: Array  # nv × rows
    T: Array  # m × rows × nv
    G: Array
    V: Array
    W_q: Array
    W_v: Array


@dataclass(frozen=True, eq=False)
class MotionDerivatives:
    """Derivatives of a closed motion: of a (nv rows) by δu, δu̇ (m columns) and tau (nv columns)."""

    follow: Following
    da_dq: Array
    da_dv: Array
    da_dtau: Array


def returning(transfer: Transfer, J: Array) -> Array:
    """E, nv×rows."""
    d = list(transfer.dependent)
    E = np.zeros((*J.shape[:-2], J.shape[-1], J.shape[-2]))
    E[..., d, :] = -pseudo_inverse(J[..., d])
    return E


def columns(E: Array, T: Array, w: Array) -> Array:
    """[E T_k w], nv×m, of a vector w."""
    return E @ np.einsum("...krn,...n->...rk", T, w)


def second_coefficients(E: Array, T: Array, G: Array) -> Array:
    """H (..., nv, m, m) of all joints: H[:, k, n] is the derivative of G[:, n] along u_k."""
    return np.einsum("...ir,...krj,...jn->...ikn", E, T, G, optimize=True)


def following(
    transfer: Transfer, J: Array, T: Array, v: Array, a: Array, bias_change: Callable[[Array, Array], Array]
) -> Following:
    """G, V, W_q, W_v of one choice of coordinates; `bias_change(d, w)` is dγ[d, w] of columns (nv, m), rows×m."""
    E, G = returning(transfer, J), transfer.G
    V = columns(E, T, v)
    W_q = columns(E, T, a) + E @ bias_change(G, V)
    along = np.einsum("...lrn,...l->...rn", T, v[..., list(transfer.independent)])
    return Following(transfer.independent, E, T, G, V, W_q, V + E @ along @ G)


def demanded(
    follow: Following, multipliers: Array, tree: tuple[Array, Array, Array]
) -> tuple[Array, Array, Array]:
    """(R_q, R_v, M*) from λ and the tree's (∂ID/∂φ, ∂ID/∂v, M)."""
    D_q, D_v, M = tree
    G, back = follow.G, np.swapaxes(follow.G, -1, -2)
    loads = np.einsum("...krn,...r->...nk", follow.T, multipliers)
    R_q = back @ (D_q @ G + D_v @ follow.V + M @ follow.W_q - loads)
    return R_q, back @ (D_v @ G + M @ follow.W_v), back @ M @ G


def forward_changes(follow: Following, demand: tuple[Array, Array, Array]) -> MotionDerivatives:
    """How a changes with δu, δu̇ and tau."""
    R_q, R_v, M = demand
    G = follow.G
    m = G.shape[-1]
    right = np.concatenate([-R_q, -R_v, np.swapaxes(G, -1, -2)], axis=-1)
    u = np.linalg.solve(M, right)
    return MotionDerivatives(
        follow, G @ u[..., :m] + follow.W_q, G @ u[..., m : 2 * m] + follow.W_v, G @ u[..., 2 * m :]
    )


def inverse_changes(
    follow: Following, demand: tuple[Array, Array, Array], driven: Array, shared: Array | None,
    weights: Array | None = None,
) -> tuple[Array, Array, Array]:
    """(dτ/du, dτ/du̇, dτ/dü), each nv×m with zeros where nothing drives.

    `shared` is [E T_k G y], needed where there are more actuators than coordinates; G_A must have full rank.
    """
    GA = follow.G[..., driven, :]
    spread = np.ones((len(driven), 1)) if weights is None else 1.0 / weights[:, None]
    inner = np.swapaxes(GA, -1, -2) @ (spread * GA)
    R_q, R_v, M = demand
    own = np.zeros_like(GA) if shared is None else spread * shared[..., driven, :]

    def at_actuators(needed: Array) -> Array:
        return spread * GA @ np.linalg.solve(inner, needed)

    parts = at_actuators(R_q - np.swapaxes(GA, -1, -2) @ own) + own, at_actuators(R_v), at_actuators(M)
    d_u, d_v, d_a = (np.zeros((*part.shape[:-2], follow.G.shape[-2], part.shape[-1])) for part in parts)
    for whole, part in zip((d_u, d_v, d_a), parts, strict=True):
        whole[..., driven, :] = part
    return d_u, d_v, d_a


__all__ = [
    "Following", "MotionDerivatives", "columns", "demanded", "following", "forward_changes", "inverse_changes",
    "returning", "second_coefficients",
]
