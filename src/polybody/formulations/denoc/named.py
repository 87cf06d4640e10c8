"""Saha's inertias by name: composite bodies M̃ (23b), articulated bodies M̂ and their factors ψ, m̂ (47)-(50).

    M̃_i = M_i + Σ B_kiᵀ M̃_k B_ki              everything beyond joint i, frozen
    M̂_i = M_i + Σ B_kiᵀ M̂_kk B_ki             everything beyond joint i, free to move in its joints
    ψ̂_i = M̂_i H_i,  m̂_i = H_iᵀψ̂_i (+ armature),  ψ_i = ψ̂_i m̂_i⁻¹,  M̂_kk = M̂_k − ψ̂_k ψ_kᵀ

Each about O_i in axes of body i. ψ of joints that share coordinates or rotors is that of their group, about the body
they stand on (`coupled`).
"""

from __future__ import annotations

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.algebra.rotations import skew
from polybody.formulations.denoc.articulated import factorize
from polybody.formulations.denoc.composite import composites
from polybody.formulations.denoc.links import crossings, links
from polybody.mechanism.mechanism import Mechanism


def named_inertias(
    mechanism: Mechanism, q: Array, *, domain: Domain = FLOAT
) -> tuple[Array, Array, Array, Array]:
    """(M̃ (bodies, 6, 6), M̂ (bodies, 6, 6), ψ (6, nv), m̂ (nv, nv) block diagonal)."""
    chain = links(mechanism, domain=domain)
    across = crossings(mechanism, chain, q, domain=domain)
    n = len(chain)
    tilde, hat = domain.zeros(n, 6, 6), domain.zeros(n, 6, 6)
    for i, part in enumerate(composites(chain, across, domain=domain)):
        h = skew(part.h, domain=domain)
        tilde[i, :3, :3], tilde[i, :3, 3:], tilde[i, 3:, :3] = part.inertia, h, -h
        tilde[i, 3:, 3:] = domain.eye(3) * part.mass
    kept: list[Array] = []
    factors = factorize(mechanism, chain, across, domain=domain, kept=kept)
    for i, matrix in enumerate(kept):
        hat[i] = matrix
    psi, m_hat = domain.zeros(6, mechanism.nv), domain.zeros(mechanism.nv, mechanism.nv)
    for group, own in factors.items():
        slots = list(group.slots)
        psi[:, slots] = own.psi
        for row, a in enumerate(slots):
            for column, b in enumerate(slots):
                m_hat[a, b] = own.m_hat[row, column]
    return tilde, hat, psi, m_hat


__all__ = ["named_inertias"]
