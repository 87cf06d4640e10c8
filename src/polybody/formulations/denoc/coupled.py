"""Joints that share coordinates or rotors, eliminated together as one joint on the body A they stand on.

S are the joints of the group (`mechanism.groups`), M̂_i the articulated inertias of their bodies, in which everything
beyond S is eliminated already, and I_i = M̂_i + Σ_{k in S on i} B_kiᵀ I_k B_ki those of S frozen. With H_i the columns
of joint i in their slots, the wrenches that unit accelerations of the slots need at O_i are gathered inwards,

    W_i = I_i H_i + Σ_{k in S on i} B_kiᵀ W_k
    m̂_S = Σ_i H_iᵀ W_i + (Σ_i H_iᵀ Σ_k B_kiᵀ W_k)ᵀ + armature          slots of S × slots of S
    ψ̂_S = Σ_{roots i} B_iAᵀ W_i,    ψ_S = ψ̂_S m̂_S⁻¹,    M̂_A += Σ_{roots i} B_iAᵀ I_i B_iA − ψ_S ψ̂_Sᵀ

which is (47)-(50) for one joint with as many columns as S has slots. Dense in S, and only there.
"""

from __future__ import annotations

import numpy as np

from polybody.algebra.domains import Array, Domain
from polybody.errors import PolybodyError
from polybody.formulations.denoc.links import Crossing
from polybody.formulations.denoc.pivots import (
    Factors,
    articulated_to_parent,
    freed_inverse,
    less_product,
    may_be_held,
    singular_message,
)
from polybody.late import dataclass
from polybody.mechanism.groups import Group
from polybody.mechanism.mechanism import GROUND, Mechanism


@dataclass(frozen=True, eq=False)
class Gathered:
    """A group before elimination: m̂_S, ψ̂_S about the origin of its base, and the group's frozen inertia there."""

    m_hat: Array
    psi_hat: Array
    frozen: Array


def gathered(
    mechanism: Mechanism, group: Group, across: list[Crossing], M_hat: list[Array], *, domain: Domain
) -> Gathered:
    """m̂_S and what of the group the base feels; zeros for the ground, which feels nothing."""
    size, place = len(group.slots), {slot: k for k, slot in enumerate(group.slots)}
    m_hat = domain.array(mechanism.armature[np.ix_(group.slots, group.slots)])
    I = {i: M_hat[i] for i in group.joints} | {group.base: domain.zeros(6, 6)}
    W = {i: domain.zeros(6, size) for i in I}
    for i in reversed(group.joints):
        joint, step = mechanism.joints[i], across[i]
        H, own = step.H, [place[k] for k in range(joint.v.start, joint.v.stop)]
        beyond = H.T @ W[i]
        m_hat[own, :] = m_hat[own, :] + beyond
        m_hat[:, own] = m_hat[:, own] + beyond.T
        needed = I[i] @ H
        m_hat[np.ix_(own, own)] = m_hat[np.ix_(own, own)] + H.T @ needed
        W[i][:, own] = W[i][:, own] + needed
        if joint.parent != GROUND:
            I[joint.parent] = I[joint.parent] + articulated_to_parent(step, I[i], domain=domain)
            for k in range(size):
                W[joint.parent][:, k] = W[joint.parent][:, k] + np.concatenate(
                    step.wrench_to_parent(W[i][:3, k], W[i][3:, k])
                )
    return Gathered(m_hat, W[group.base], I[group.base])


def eliminate_group(
    mechanism: Mechanism, group: Group, across: list[Crossing], M_hat: list[Array], free: Array | None = None, *,
    domain: Domain,
) -> tuple[Factors, Array]:  # fmt: skip
    """The factors of a group, and what its base feels of it; `free` as in `pivots.eliminate`."""
    whole = gathered(mechanism, group, across, M_hat, domain=domain)
    for k, slot in enumerate(group.slots):
        if domain.is_zero(whole.m_hat[k, k]):
            raise PolybodyError(singular_message(mechanism.owner(slot).name))
    inverse = freed_inverse(whole.m_hat, free if may_be_held(free, domain) else None, domain=domain)
    psi = whole.psi_hat @ inverse
    return Factors(whole.psi_hat, psi, whole.m_hat, inverse), less_product(whole.frozen, psi, whole.psi_hat)


__all__ = ["Gathered", "eliminate_group", "gathered"]
