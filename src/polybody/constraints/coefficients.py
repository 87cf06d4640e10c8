"""Influence coefficients over independent coordinates: of all joints, and of any parameter of the joints.

L_k is the derivative along u_k, T_k = L_k J, E as in `motions`. From L_m (J G_n) = 0 and L_l of that:

    H_mn  = L_m G_n  = E T_m G_n
    D_lmn = L_l H_mn = E (T_l H_mn + (L_l T_m) G_n + T_m H_ln),    L_l T_m = d²J[G_l, G_m] + dJ[H_lm]

with d²J[x, y] the derivative along x of the one along y. A parameter p with G^p, H^p, D^p over the joints has

    G_n = G^p G_n,    H_mn = H^p[G_m, G_n] + G^p H_mn                                                   (4-9), (4-14)
    D_lmn = D^p[G_l, G_m, G_n] + H^p[H_lm, G_n] + H^p[G_m, H_ln] + H^p[G_l, H_mn] + G^p D_lmn

Nothing is symmetric where velocities are quasi-velocities: H[:, m, n] is the derivative of G[:, n] along u_m, always.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

Array = np.ndarray


def combine(A: Array, C: Array) -> Array:
    """A • C over leading dimensions."""
    return np.einsum("...kp,...pmn->...kmn", A, C)


def sandwich(X: Array, C: Array) -> Array:
    """Xᵀ C X plane by plane, over leading dimensions."""
    return np.einsum("...mi,...pmn,...nj->...pij", X, C, X, optimize=True)


def joint_third_order(
    E: Array, T: Array, G: Array, H: Array, changes: Callable[[Array], Array], seconds: Callable[[Array, Array], Array]
) -> Array:
    """D (..., nv, m, m, m) of all joints.

    `changes(X)` is dJ along each column of X (..., nv, k), (..., k, rows, nv); `seconds(X, Y)` is d²J[x, y] along
    each pair of columns, alike.
    """
    m = G.shape[-1]
    lead, n = H.shape[:-3], H.shape[-3]

    def pairs(x: Array) -> Array:
        """(..., nv, m, m) as columns (..., nv, m·m)."""
        return x.reshape(*lead, n, m * m)

    left = pairs(np.broadcast_to(G[..., :, None], (*lead, n, m, m)))
    right = pairs(np.broadcast_to(G[..., None, :], (*lead, n, m, m)))
    mixed = (changes(pairs(H)) + seconds(left, right)).reshape(*lead, m, m, -1, n)
    inner = (
        np.einsum("...lrj,...jmn->...rlmn", T, H)
        + np.einsum("...lmrj,...jn->...rlmn", mixed, G)
        + np.einsum("...mrj,...jln->...rlmn", T, H)
    )
    return np.einsum("...ir,...rlmn->...ilmn", E, inner)


def carried(parameter: Sequence[Array], joints: Sequence[Array]) -> list[Array]:
    """[G, H, D] of a parameter over u, as many orders as the joints' [G, H, D] have."""
    G = joints[0]
    result = [parameter[0] @ G]
    if len(joints) > 1:
        H = joints[1]
        plane = np.einsum("...pij,...im,...jn->...pmn", parameter[1], G, G, optimize=True)
        result.append(plane + np.einsum("...pi,...imn->...pmn", parameter[0], H))
    if len(joints) > 2:
        H, D = joints[1], joints[2]
        cube = np.einsum("...phij,...hl,...im,...jn->...plmn", parameter[2], G, G, G, optimize=True)
        for pattern in ("...pij,...ilm,...jn->...plmn", "...pji,...iln,...jm->...plmn", "...pji,...imn,...jl->...plmn"):
            cube = cube + np.einsum(pattern, parameter[1], H, G, optimize=True)
        result.append(cube + np.einsum("...pi,...ilmn->...plmn", parameter[0], D))
    return result


__all__ = ["carried", "combine", "joint_third_order", "sandwich"]
