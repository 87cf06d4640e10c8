"""The recursions (40) and (41) on any tree, in inertial axes, and the equations of motion they give.

Port B_i of body i is the origin of its frame; its parent's port A_i is where B_i is now (so it slides where the joint
slides: the Ξ of (29)). With j = parent(i), r = B_i − B_j, and the joint's own across variable x_i* = Φ_i v_i,

    x_bi = K(r)ᵀ x_bj + Φ_i v_i,         Φ_i = [R_i H_v; R_i H_ω]                     (10), (40), corrected
    dx_bi/dt: as it stands, with dr/dt = v_bi − v_bj and dΦ/dt v = Ω_i (Φ_i v) + R_i Ḣ v
    y_bi = K_bi⁻¹ (W_Gi x_Gi + u_Gi) + Σ_children K(r_k) y_bk − applied               (41)
    tau_i = Φ_iᵀ y_bi

y_bi is the whole wrench that joint i exerts on body i. The inertia matrix is P of (26) between free directions,

    M_pq = Φ_pᵀ P_pq Φ_q,    P_pq = Σ_j S_jpᵀ P_Gj S_jq = K(B_q − B_p) P_qq       for an ancestor p of q

and P_qq, the inertia of everything beyond joint q seen from B_q, is kept as (m, h, J): mass, first moment, inertia.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.algebra.rotations import cross, skew
from polybody.errors import PolybodyError
from polybody.formulations.network.terminals import across_at, swapped, through_from
from polybody.late import dataclass
from polybody.mechanism.forces import joint_passive_forces, spring_wrenches
from polybody.mechanism.kinematics import Pose, body_poses, body_twists
from polybody.mechanism.mechanism import GROUND, Mechanism


@dataclass(frozen=True, eq=False)
class PortMotion:
    """Across variable of a port and its rate: x = [v; ω], inertial axes."""

    x: Array
    rate: Array


def resting(*, domain: Domain = FLOAT) -> PortMotion:
    """The ground."""
    return PortMotion(domain.zeros(6), domain.zeros(6))


def joint_directions(mechanism: Mechanism, q: Array, poses: list[Pose], *, domain: Domain = FLOAT) -> list[Array]:
    """Φ_i, 6×nv_i: the free directions of each joint as across variables at B_i."""
    result = []
    for joint, (R, _) in zip(mechanism.joints, poses, strict=True):
        H = joint.model.velocity_map(q[joint.q], domain=domain)
        result.append(np.concatenate([R @ H[3:], R @ H[:3]]))
    return result


def outward_motions(
    mechanism: Mechanism, q: Array, v: Array, a: Array | None, poses: list[Pose], *, domain: Domain = FLOAT
) -> list[PortMotion]:
    """x_b and its rate for every body, (40) with B_i for G_i."""
    ground = resting(domain=domain)
    motions: list[PortMotion] = []
    for joint, (R, p) in zip(mechanism.joints, poses, strict=True):
        own_q, own_v = q[joint.q], v[joint.v]
        H = joint.model.velocity_map(own_q, domain=domain)
        local = H @ own_v
        local_rate = joint.model.velocity_map_rate(own_q, own_v, domain=domain) @ own_v
        if a is not None:
            local_rate = local_rate + H @ a[joint.v]
        jump_v, jump_w = R @ local[3:], R @ local[:3]
        if joint.parent == GROUND:
            before, carried = ground, ground.x
        else:
            before = motions[joint.parent]
            carried = across_at(before.x, p - poses[joint.parent][1])
        x = carried + np.concatenate([jump_v, jump_w])
        omega = x[3:]
        rate_w = before.rate[3:] + R @ local_rate[:3] + cross(omega, jump_w)
        rate_v = before.rate[:3] + R @ local_rate[3:] + cross(omega, jump_v)
        if joint.parent != GROUND:
            r, r_rate = p - poses[joint.parent][1], x[:3] - before.x[:3]
            rate_v = rate_v + cross(before.rate[3:], r) + cross(before.x[3:], r_rate)
        motions.append(PortMotion(x, np.concatenate([rate_v, rate_w])))
    return motions


def kinetic_through(
    mass: Any, r: Array, J: Array, motion: PortMotion, gravity: Array, *, domain: Domain = FLOAT
) -> Array:
    """K_b⁻¹ (W_G x_G + u_G): what a body needs at B for its motion, with r = G − B and J about G, inertial axes."""
    omega, alpha = motion.x[3:], motion.rate[3:]
    a_G = motion.rate[:3] + cross(alpha, r) + cross(omega, cross(omega, r))
    f = (a_G - gravity) * mass
    return np.concatenate([f, J @ alpha + cross(omega, J @ omega) + cross(r, f)])


def body_throughs(
    mechanism: Mechanism, motions: list[PortMotion], poses: list[Pose], gravity: Array, *, domain: Domain = FLOAT
) -> list[Array]:
    """What every body needs at B."""
    result = []
    for body, motion, (R, _) in zip(mechanism.bodies, motions, poses, strict=True):
        r, J = R @ domain.array(body.com), R @ domain.array(body.inertia) @ R.T
        result.append(kinetic_through(domain.const(body.mass), r, J, motion, gravity, domain=domain))
    return result


def applied_throughs(
    mechanism: Mechanism, q: Array, v: Array, poses: list[Pose], wrenches: Array | None, *, domain: Domain = FLOAT
) -> list[Array | None]:
    """External wrenches and point springs on each body, as through variables at B."""
    result: list[Array | None] = [None] * len(mechanism.bodies)
    if mechanism.sprung:
        twists = body_twists(mechanism, q, v, domain=domain)
        result = [None if w is None else swapped(w) for w in spring_wrenches(mechanism, poses, twists, domain=domain)]
    if wrenches is not None:
        for i, wrench in enumerate(wrenches):
            before = result[i]
            result[i] = swapped(wrench) if before is None else before + swapped(wrench)
    return result


def inward_throughs(mechanism: Mechanism, needed: list[Array], poses: list[Pose]) -> list[Array]:
    """y_b of every body: the whole wrench of joint i on body i at B_i, (41)."""
    y = list(needed)
    for joint in reversed(mechanism.joints):
        if joint.parent != GROUND:
            r = poses[joint.index][1] - poses[joint.parent][1]
            y[joint.parent] = y[joint.parent] + through_from(y[joint.index], r)
    return y


def joint_forces(mechanism: Mechanism, y: list[Array], directions: list[Array], *, domain: Domain = FLOAT) -> Array:
    """tau_i = Φ_iᵀ y_bi, summed where joints share a slot."""
    tau = domain.zeros(mechanism.nv)
    for joint in mechanism.joints:
        tau[joint.v] = tau[joint.v] + directions[joint.index].T @ y[joint.index]
    return tau


def joint_throughs(
    mechanism: Mechanism,
    q: Array,
    v: Array,
    a: Array | None,
    wrenches: Array | None,
    poses: list[Pose],
    *,
    springs: bool = True,
    domain: Domain = FLOAT,
) -> list[Array]:
    """y_b for the motion (q, v, a) under gravity, wrenches and (where asked for) point springs."""
    motions = outward_motions(mechanism, q, v, a, poses, domain=domain)
    needed = body_throughs(mechanism, motions, poses, domain.array(mechanism.gravity), domain=domain)
    if springs or wrenches is not None:
        applied = applied_throughs(mechanism, q, v, poses, wrenches, domain=domain)
        needed = [y if w is None else y - w for y, w in zip(needed, applied, strict=True)]
    return inward_throughs(mechanism, needed, poses)


def inverse_dynamics(
    mechanism: Mechanism, q: Array, v: Array, a: Array, wrenches: Array | None = None, *, domain: Domain = FLOAT
) -> Array:
    """tau = M a + C v + g − passive − Σ Jᵀ w."""
    poses = body_poses(mechanism, q, domain=domain)
    y = joint_throughs(mechanism, q, v, a, wrenches, poses, domain=domain)
    tau = joint_forces(mechanism, y, joint_directions(mechanism, q, poses, domain=domain), domain=domain)
    if mechanism.armature.any():
        tau = tau + domain.array(mechanism.armature) @ a
    return tau - joint_passive_forces(mechanism, q, v, domain=domain)


def bias_forces(mechanism: Mechanism, q: Array, v: Array, *, domain: Domain = FLOAT) -> Array:
    """C v + g."""
    poses = body_poses(mechanism, q, domain=domain)
    y = joint_throughs(mechanism, q, v, None, None, poses, springs=False, domain=domain)
    return joint_forces(mechanism, y, joint_directions(mechanism, q, poses, domain=domain), domain=domain)


def beyond(mechanism: Mechanism, poses: list[Pose], *, domain: Domain = FLOAT) -> list[tuple[Any, Array, Array]]:
    """P_qq of (26) for every joint q: (mass, first moment, inertia) about B_q of all that is beyond the joint."""
    result: list[tuple[Any, Array, Array]] = []
    for body, (R, _) in zip(mechanism.bodies, poses, strict=True):
        m, r = domain.const(body.mass), R @ domain.array(body.com)
        S = skew(r, domain=domain)
        result.append((m, r * m, R @ domain.array(body.inertia) @ R.T - (S @ S) * m))
    for joint in reversed(mechanism.joints):
        if joint.parent == GROUND:
            continue
        r = poses[joint.index][1] - poses[joint.parent][1]
        (m, h, J), (M, H, L) = result[joint.index], result[joint.parent]
        S, T = skew(r, domain=domain), skew(h, domain=domain)
        result[joint.parent] = (M + m, H + h + r * m, L + J - T @ S - S @ T - (S @ S) * m)
    return result


def mass_matrix(mechanism: Mechanism, q: Array, *, domain: Domain = FLOAT) -> Array:
    """M of (26) between the free directions of the joints, and armature."""
    poses = body_poses(mechanism, q, domain=domain)
    directions = joint_directions(mechanism, q, poses, domain=domain)
    inertia = beyond(mechanism, poses, domain=domain)
    M = domain.zeros(mechanism.nv, mechanism.nv)
    for joint in mechanism.joints:
        m, h, J = inertia[joint.index]
        for k in range(joint.nv):
            v, w = directions[joint.index][:3, k], directions[joint.index][3:, k]
            y = np.concatenate([v * m + cross(w, h), J @ w + cross(h, v)])
            _project_on_ancestors(mechanism, M, joint.index, joint.v.start + k, y, directions, poses)
    return M + domain.array(mechanism.armature) if mechanism.armature.any() else M


def _project_on_ancestors(
    mechanism: Mechanism, M: Array, i: int, column: int, y: Array, directions: list[Array], poses: list[Pose]
) -> None:
    """Add to M the column `column` of joint i, from the through variable y that its unit acceleration needs at B_i."""
    own = i
    while True:
        joint = mechanism.joints[i]
        values = directions[i].T @ y
        M[joint.v, column] = M[joint.v, column] + values
        if i != own:  # the joint's own block has all its columns; joints that share a slot meet on its diagonal twice
            M[column, joint.v] = M[column, joint.v] + values
        if joint.parent == GROUND:
            return
        y, i = through_from(y, poses[i][1] - poses[joint.parent][1]), joint.parent


def forward_dynamics(
    mechanism: Mechanism, q: Array, v: Array, tau: Array, wrenches: Array | None = None, *, domain: Domain = FLOAT
) -> Array:
    """a from (24) restricted to the free directions: M a = tau + passive + Σ Jᵀ w − C v − g."""
    poses = body_poses(mechanism, q, domain=domain)
    y = joint_throughs(mechanism, q, v, None, wrenches, poses, domain=domain)
    bias = joint_forces(mechanism, y, joint_directions(mechanism, q, poses, domain=domain), domain=domain)
    drive = tau + joint_passive_forces(mechanism, q, v, domain=domain) - bias
    M = mass_matrix(mechanism, q, domain=domain)
    _refuse_idle_joints(mechanism, M, domain)
    try:
        return domain.solve(M, drive)
    except np.linalg.LinAlgError:
        raise PolybodyError(
            "the mass matrix is singular in this configuration: joints that move in one direction have no inertia "
            "between them; give the bodies between them mass and inertia, or the joints armature"
        ) from None


def _refuse_idle_joints(mechanism: Mechanism, M: Array, domain: Domain) -> None:
    for joint in mechanism.independent_joints:
        for k in range(joint.v.start, joint.v.stop):
            if domain.is_zero(M[k, k]):
                raise PolybodyError(
                    f"the mass matrix is singular at joint {joint.name!r}: nothing beyond it has inertia along its "
                    "motion; give its body mass and inertia, or the joint an armature"
                )


__all__ = [
    "PortMotion",
    "applied_throughs",
    "beyond",
    "bias_forces",
    "body_throughs",
    "forward_dynamics",
    "inverse_dynamics",
    "inward_throughs",
    "joint_directions",
    "joint_forces",
    "joint_throughs",
    "kinetic_through",
    "mass_matrix",
    "outward_motions",
    "resting",
]
