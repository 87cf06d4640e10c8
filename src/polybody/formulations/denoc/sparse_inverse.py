"""M⁻¹ from M = Lᵀ D L, eliminated from the tips: L has entries between a joint and its ancestors only, as M has.

    L_kj = M_kj / d_k,   M_ji −= L_kj M_ki                     k from the last to the first, i ≤ j < k, d_k = M_kk
    W = L⁻¹,   M⁻¹_ab = Σ_k W_ak W_bk / d_k                    k an ancestor of both, or one of them

Slots are numbered outwards, so nothing fills in on a tree; joints that share slots or rotors fill what they must.
"""

from __future__ import annotations

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.errors import PolybodyError
from polybody.formulations.denoc.composite import mass_matrix
from polybody.formulations.denoc.pivots import singular_message
from polybody.mechanism.mechanism import Mechanism


def inverse_mass_matrix(mechanism: Mechanism, q: Array, *, domain: Domain = FLOAT) -> Array:
    """M(q)⁻¹."""
    M, n = mass_matrix(mechanism, q, domain=domain).copy(), mechanism.nv
    L, scales = domain.zeros(n, n), domain.zeros(n)
    for k in reversed(range(n)):
        if domain.is_zero(M[k, k]):
            raise PolybodyError(singular_message(mechanism.owner(k).name))
        scales[k] = domain.const(1) / M[k, k]
        inner = [j for j in range(k) if not domain.is_zero(M[k, j])]
        for j in inner:
            L[k, j] = M[k, j] * scales[k]
        for at, j in enumerate(inner):
            for i in inner[: at + 1]:
                M[j, i] = M[j, i] - L[k, j] * M[k, i]
    return _product(_unit_inverse(L, domain), scales, domain)


def _unit_inverse(L: Array, domain: Domain) -> Array:
    """The inverse of 1 + L, row by row outwards."""
    n = len(L)
    W = domain.eye(n)
    for k in range(n):
        inner = [i for i in range(k) if not domain.is_zero(L[k, i])]
        for j in range(k):
            for i in inner:
                if i >= j and not domain.is_zero(W[i, j]):
                    W[k, j] = W[k, j] - L[k, i] * W[i, j]
    return W


def _product(W: Array, scales: Array, domain: Domain) -> Array:
    """W diag(scales) Wᵀ: computed below the diagonal, mirrored above."""
    n = len(W)
    filled = [[k for k in range(a + 1) if not domain.is_zero(W[a, k])] for a in range(n)]
    scaled = [{k: W[a, k] * scales[k] for k in filled[a]} for a in range(n)]
    result = domain.zeros(n, n)
    for a in range(n):
        for b in range(a + 1):
            for k in filled[b]:
                if k in scaled[a]:
                    result[a, b] = result[a, b] + scaled[a][k] * W[b, k]
            result[b, a] = result[a, b]
    return result


__all__ = ["inverse_mass_matrix"]
