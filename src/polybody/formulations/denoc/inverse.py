"""Inverse dynamics by the two recursions of Saha's section 5.1, for any tree.

Outwards, with rates of vectors taken in inertial space and written in body axes (j = parent(i), H_i = [H_ω; H_u] the
joint map, H_i θ̈ + Ḣ_i θ̇ =: [η; ζ], ω_J = H_ω θ̇, u = H_u θ̇):

    ω_i = Rᵀω_j + ω_J
    α_i = Rᵀα_j + η + (Rᵀω_j) × ω_J
    a_i = Rᵀ(a_j + E_j r) + ζ + (Rᵀω_j + ω_i) × u              E = [α] + [ω][ω]

The last term of a_i is what the paper forgot for prismatic joints (the errata's ċ_ij). Gravity enters as the ground's
acceleration, a_0 = −g (32). The wrench that moves body i, about O_i (h = m c, I about O_i):

    f_i = m a_i + E_i h,      n_i = I α_i + ω_i × I ω_i + h × a_i                                          (7)

Inwards γ_j += B_ijᵀ γ_i, and τ_i = H_iᵀ γ_i                                                               (30)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.algebra.rotations import cross
from polybody.formulations.denoc.links import Crossing, Link, crossings, links, world_rotations
from polybody.late import dataclass
from polybody.mechanism.forces import joint_passive_forces, spring_wrenches
from polybody.mechanism.kinematics import body_poses, body_twists
from polybody.mechanism.mechanism import GROUND, Mechanism


@dataclass(frozen=True, eq=False)
class Motion:
    """Angular velocity and acceleration of a body, and acceleration of its origin, in body axes."""

    omega: Array
    alpha: Array
    a: Array


def ground_motion(gravity: Array, *, domain: Domain) -> Motion:
    """The ground accelerates against gravity (32)."""
    return Motion(domain.zeros(3), domain.zeros(3), -gravity)


def spin_matrix(omega: Array, alpha: Array) -> Array:
    """E = [α] + [ω][ω]: E r is the acceleration of a point at r against the origin."""
    (x, y, z), (ax, ay, az) = omega, alpha
    xx, yy, zz, xy, xz, yz = x * x, y * y, z * z, x * y, x * z, y * z
    return np.array(
        [[-(yy + zz), xy - az, xz + ay], [xy + az, -(xx + zz), yz - ax], [xz - ay, yz + ax, -(xx + yy)]],
        dtype=omega.dtype,
    )


def outward_motion(
    one: Link, step: Crossing, before: Motion, q: Array, v: Array, a: Array | None, *, domain: Domain
) -> Motion:
    """ν_i, ξ_i from ν_j, ξ_j; q, v and a are the joint's own slices (a None for zero)."""
    H = step.H
    joint_twist = H @ v
    joint_rate = one.joint.model.velocity_map_rate(q, v, domain=domain) @ v
    if a is not None:
        joint_rate = H @ a + joint_rate
    omega_J, u = joint_twist[:3], joint_twist[3:]
    carried = step.to_child(before.omega)
    omega = carried + omega_J
    alpha = step.to_child(before.alpha) + joint_rate[:3] + cross(carried, omega_J)
    shifted = before.a if one.parent == GROUND else before.a + spin_matrix(before.omega, before.alpha) @ step.r
    acceleration = step.to_child(shifted) + joint_rate[3:] + cross(carried + omega, u)
    return Motion(omega, alpha, acceleration)


def body_wrench(one: Link, motion: Motion) -> tuple[Array, Array]:
    """(n, f) about O_i that gives body i its motion, (7)."""
    h, momentum = one.moment, one.inertia @ motion.omega
    f = motion.a * one.mass + spin_matrix(motion.omega, motion.alpha) @ h
    n = one.inertia @ motion.alpha + cross(motion.omega, momentum) + cross(h, motion.a)
    return n, f


def joint_force(step: Crossing, n: Array, f: Array) -> Array:
    """τ_i = H_iᵀ γ_i, (30)."""
    return step.H[:3].T @ n + step.H[3:].T @ f


def outward_motions(
    mechanism: Mechanism,
    chain: list[Link],
    across: list[Crossing],
    q: Array,
    v: Array,
    a: Array | None,
    gravity: Array,
    domain: Domain,
) -> list[Motion]:
    """The motion of every body."""
    ground = ground_motion(gravity, domain=domain)
    motions: list[Motion] = []
    for joint, one, step in zip(mechanism.joints, chain, across, strict=True):
        before = ground if one.parent == GROUND else motions[one.parent]
        rates = None if a is None else a[joint.v]
        motions.append(outward_motion(one, step, before, q[joint.q], v[joint.v], rates, domain=domain))
    return motions


def inward_forces(
    mechanism: Mechanism, chain: list[Link], across: list[Crossing], wrenches: list[tuple[Array, Array]], domain: Domain
) -> Array:
    """τ from the wrenches that bodies need: γ_j += B_ijᵀ γ_i, τ_i = H_iᵀ γ_i, summed where joints share a slot."""
    tau = domain.zeros(mechanism.nv)
    gamma = list(wrenches)
    for joint in reversed(mechanism.joints):
        i = joint.index
        tau[joint.v] = tau[joint.v] + joint_force(across[i], *gamma[i])
        if joint.parent != GROUND:
            n, f = across[i].wrench_to_parent(*gamma[i])
            gamma[joint.parent] = (gamma[joint.parent][0] + n, gamma[joint.parent][1] + f)
    return tau


def applied_wrenches(
    mechanism: Mechanism,
    chain: list[Link],
    across: list[Crossing],
    q: Array,
    v: Array | None,
    wrenches: Array | None,
    domain: Domain,
) -> list[tuple[Array, Array]] | None:
    """External wrenches and point springs on each body, in body axes at O_i; None where nothing acts."""
    if wrenches is None and not mechanism.sprung:
        return None
    rotations = world_rotations(chain, across)
    total: list[Any] = [domain.zeros(6) if wrenches is None else wrenches[i] for i in range(len(chain))]
    if mechanism.sprung:
        poses = body_poses(mechanism, q, domain=domain)
        twists = None if v is None else body_twists(mechanism, q, v, domain=domain)
        for i, wrench in enumerate(spring_wrenches(mechanism, poses, twists, domain=domain)):
            total[i] = total[i] if wrench is None else total[i] + wrench
    return [(R.T @ w[:3], R.T @ w[3:]) for R, w in zip(rotations, total, strict=True)]


def tree_forces(
    mechanism: Mechanism,
    chain: list[Link],
    across: list[Crossing],
    q: Array,
    v: Array,
    a: Array | None,
    wrenches: Array | None,
    domain: Domain,
) -> Array:
    """What the joints must exert for the accelerations a (None: zero): bodies, gravity, wrenches and point springs."""
    gravity = domain.array(mechanism.gravity)
    motions = outward_motions(mechanism, chain, across, q, v, a, gravity, domain)
    needed = [body_wrench(one, motion) for one, motion in zip(chain, motions, strict=True)]
    applied = applied_wrenches(mechanism, chain, across, q, v, wrenches, domain)
    if applied is not None:
        needed = [(n - m, f - g) for (n, f), (m, g) in zip(needed, applied, strict=True)]
    return inward_forces(mechanism, chain, across, needed, domain)


def inverse_dynamics(
    mechanism: Mechanism, q: Array, v: Array, a: Array, wrenches: Array | None = None, *, domain: Domain = FLOAT
) -> Array:
    """tau = M a + C v + g − passive − Σ Jᵀ w."""
    chain = links(mechanism, domain=domain)
    across = crossings(mechanism, chain, q, domain=domain)
    tau = tree_forces(mechanism, chain, across, q, v, a, wrenches, domain)
    if mechanism.armature.any():
        tau = tau + domain.array(mechanism.armature) @ a
    return tau - joint_passive_forces(mechanism, q, v, domain=domain)


def bias_forces(
    mechanism: Mechanism, q: Array, v: Array, *, domain: Domain = FLOAT, gravity: Array | None = None
) -> Array:
    """C v + g, with the mechanism's gravity or the given one."""
    chain = links(mechanism, domain=domain)
    across = crossings(mechanism, chain, q, domain=domain)
    field = domain.array(mechanism.gravity) if gravity is None else gravity
    motions = outward_motions(mechanism, chain, across, q, v, None, field, domain)
    needed = [body_wrench(one, motion) for one, motion in zip(chain, motions, strict=True)]
    return inward_forces(mechanism, chain, across, needed, domain)


def joint_momentum(mechanism: Mechanism, q: Array, v: Array, *, domain: Domain = FLOAT) -> Array:
    """M(q) v, in O(n)."""
    chain = links(mechanism, domain=domain)
    across = crossings(mechanism, chain, q, domain=domain)
    still = domain.zeros(mechanism.nv)
    motions = outward_motions(mechanism, chain, across, q, still, v, domain.zeros(3), domain)
    needed = [body_wrench(one, motion) for one, motion in zip(chain, motions, strict=True)]
    p = inward_forces(mechanism, chain, across, needed, domain)
    return p + domain.array(mechanism.armature) @ v if mechanism.armature.any() else p


def gravity_forces(mechanism: Mechanism, q: Array, *, domain: Domain = FLOAT) -> Array:
    """g(q): what the joints must exert to hold the mechanism at rest."""
    return bias_forces(mechanism, q, domain.zeros(mechanism.nv), domain=domain)


def passive_forces(mechanism: Mechanism, q: Array, v: Array, *, domain: Domain = FLOAT) -> Array:
    """What springs and dampers exert on v: joint springs, joint dampers and point springs."""
    forces = joint_passive_forces(mechanism, q, v, domain=domain)
    if not mechanism.sprung:
        return forces
    chain = links(mechanism, domain=domain)
    across = crossings(mechanism, chain, q, domain=domain)
    applied = applied_wrenches(mechanism, chain, across, q, v, None, domain)
    assert applied is not None
    return forces + inward_forces(mechanism, chain, across, applied, domain)


__all__ = [
    "Motion",
    "applied_wrenches",
    "bias_forces",
    "body_wrench",
    "gravity_forces",
    "ground_motion",
    "inverse_dynamics",
    "inward_forces",
    "joint_force",
    "joint_momentum",
    "outward_motion",
    "outward_motions",
    "passive_forces",
    "spin_matrix",
    "tree_forces",
]
