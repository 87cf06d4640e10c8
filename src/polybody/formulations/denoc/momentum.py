"""Momentum of the joints and how it drifts, p = M v and Cᵀv, by one recursion in O(n).

Outwards the twists t_i = [ω; u] of the origins O_i, t_i = B_ij t_j + H_i θ̇. Inwards the momentum μ = [L; P] of all that
is beyond a joint, about O_i in axes of body i (h = m c, I about O_i):

    μ_i = [I ω + h × u;  m u + ω × h] + Σ_{k ∈ children(i)} B_kiᵀ μ_k,        p_i = H_iᵀ μ_i

The wrench γ_i on all of it is the rate of μ_i in inertial space, γ = μ̇ + [ω × L + u × P;  ω × P], and H_iᵀγ_i is what
M θ̈ + C θ̇ has for the joint. With ṗ = M θ̈ + Ṁ θ̇ and Ṁ = C + Cᵀ

    (Cᵀθ̇)_i = ṗ_i − H_iᵀγ_i = Ḣ_iᵀ μ_i − H_iᵀ [ω × L + u × P;  ω × P]

Rotors and armature add constants to M: they have a part in p only.
"""

from __future__ import annotations

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.algebra.rotations import cross
from polybody.formulations.denoc.inverse import joint_force
from polybody.formulations.denoc.links import crossings, links
from polybody.mechanism.mechanism import GROUND, Mechanism


def momentum_and_drift(
    mechanism: Mechanism, q: Array, v: Array, *, domain: Domain = FLOAT
) -> tuple[Array, Array]:
    """(M v, Cᵀv)."""
    chain = links(mechanism, domain=domain)
    across = crossings(mechanism, chain, q, domain=domain)
    twists: list[Array] = []
    for joint, one, step in zip(mechanism.joints, chain, across, strict=True):
        own = step.H @ v[joint.v]
        twists.append(own if one.parent == GROUND else step.twist_to_child(twists[one.parent]) + own)
    momenta = []
    for one, t in zip(chain, twists, strict=True):
        w, u = t[:3], t[3:]
        momenta.append((one.inertia @ w + cross(one.moment, u), u * one.mass + cross(w, one.moment)))
    p, drift = domain.zeros(mechanism.nv), domain.zeros(mechanism.nv)
    for joint in reversed(mechanism.joints):
        step, (L, P), (w, u) = across[joint.index], momenta[joint.index], np.split(twists[joint.index], 2)
        p[joint.v] = p[joint.v] + joint_force(step, L, P)
        rate = joint.model.velocity_map_rate(q[joint.q], v[joint.v], domain=domain)
        turned = joint_force(step, cross(w, L) + cross(u, P), cross(w, P))
        drift[joint.v] = drift[joint.v] + (rate[:3].T @ L + rate[3:].T @ P - turned)
        if joint.parent != GROUND:
            n, f = step.wrench_to_parent(L, P)
            before = momenta[joint.parent]
            momenta[joint.parent] = before[0] + n, before[1] + f
    return (p + domain.array(mechanism.armature) @ v if mechanism.armature.any() else p), drift


__all__ = ["momentum_and_drift"]
