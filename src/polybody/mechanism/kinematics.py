"""Where bodies and frames are and how they move, over any domain, one state at a time.

With (R_i, p_i) the pose of body i in the world and H_i(q_i) the joint map in body axes,

    R_i = R_j R_Pi R_Xi,   p_i = p_j + R_j (p_Pi + R_Pi p_Xi)            j = parent(i), P the placement, X the joint
    V_i = Ad(T_i⁻¹ T_j) V_j + H_i v_i                                    twist in body axes at the body's origin
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.algebra.rotations import cross
from polybody.mechanism.joints import closed_manifold
from polybody.mechanism.mechanism import GROUND, BodyFrame, Mechanism, TreeJoint

Pose = tuple[Array, Array]


def relative_pose(joint: TreeJoint, q: Array, *, domain: Domain = FLOAT) -> Pose:
    """(R, p) of body i in its parent's frame; q is the whole configuration."""
    R, p = joint.model.configuration(q[joint.q], domain=domain)
    placement = domain.array(joint.rotation)
    return placement @ R, domain.array(joint.position) + placement @ p


def relative_poses(mechanism: Mechanism, q: Array, *, domain: Domain = FLOAT) -> list[Pose]:
    """(R, p) of every body in its parent's frame: for who wants poses and twists."""
    return [relative_pose(joint, q, domain=domain) for joint in mechanism.joints]


def body_poses(
    mechanism: Mechanism, q: Array, across: list[Pose] | None = None, *, domain: Domain = FLOAT
) -> list[Pose]:
    """(R, p) of every body in the world; `across` are its `relative_poses`, where they are known."""
    poses: list[Pose] = []
    across = relative_poses(mechanism, q, domain=domain) if across is None else across
    for joint, own in zip(mechanism.joints, across, strict=True):
        poses.append(_carried(joint, own, poses))
    return poses


def _carried(joint: TreeJoint, across: Pose, poses: Mapping[int, Pose] | list[Pose]) -> Pose:
    """The pose of a body from that of its parent."""
    if joint.parent == GROUND:
        return across
    (Rj, pj), (R, p) = poses[joint.parent], across
    return Rj @ R, pj + Rj @ p


def supporting_poses(mechanism: Mechanism, q: Array, body: int, *, domain: Domain = FLOAT) -> dict[int, Pose]:
    """(R, p) in the world of a body and of all that carry it, by their numbers; none of the ground."""
    poses: dict[int, Pose] = {}
    for i in sorted(mechanism.supports[body]) if body != GROUND else ():
        joint = mechanism.joints[i]
        poses[i] = _carried(joint, relative_pose(joint, q, domain=domain), poses)
    return poses


def frame_pose(frame: BodyFrame, poses: Mapping[int, Pose] | list[Pose], *, domain: Domain = FLOAT) -> Pose:
    """(R, p) of a frame in the world."""
    R, p = domain.array(frame.rotation), domain.array(frame.position)
    if frame.body == GROUND:
        return R, p
    Rb, pb = poses[frame.body]
    return Rb @ R, pb + Rb @ p


def body_twists(
    mechanism: Mechanism, q: Array, v: Array, across: list[Pose] | None = None, *, domain: Domain = FLOAT
) -> list[Array]:
    """Twist of every body, body axes, at the body's origin; `across` are the `relative_poses`, where they are known."""
    twists: list[Array] = []
    for joint in mechanism.joints:
        own = joint.model.velocity_map(q[joint.q], domain=domain) @ v[joint.v]
        if joint.parent != GROUND:
            R, p = relative_pose(joint, q, domain=domain) if across is None else across[joint.index]
            V = twists[joint.parent]
            carried = np.concatenate([R.T @ V[:3], R.T @ (V[3:] + cross(V[:3], p))])
            own = own + carried
        twists.append(own)
    return twists


def world_maps(mechanism: Mechanism, q: Array, poses: list[Pose], *, domain: Domain = FLOAT) -> list[Array]:
    """For each joint its columns as world-axes twists at the world's origin: [R ω; R v + p × R ω]."""
    pairs = zip(mechanism.joints, poses, strict=True)
    return [_world_map(joint, q, pose, domain) for joint, pose in pairs]


def _world_map(joint: TreeJoint, q: Array, pose: Pose, domain: Domain) -> Array:
    (R, p), H = pose, joint.model.velocity_map(q[joint.q], domain=domain)
    columns = domain.zeros(6, joint.nv)
    for k in range(joint.nv):
        w = R @ H[:3, k]
        columns[:3, k] = w
        columns[3:, k] = R @ H[3:, k] + cross(p, w)
    return columns


def point_jacobian(
    mechanism: Mechanism, body: int, point: Array, maps: Mapping[int, Array] | list[Array], *, domain: Domain = FLOAT
) -> Array:
    """6×nv: twist, in world axes, of the body's point that is at world position `point`."""
    J = domain.zeros(6, mechanism.nv)
    if body == GROUND:
        return J
    for i in mechanism.supports[body]:
        columns = maps[i]
        for k in range(columns.shape[1]):
            w, own = columns[:3, k], mechanism.joints[i].v.start + k
            J[:3, own] = J[:3, own] + w
            J[3:, own] = J[3:, own] + columns[3:, k] + cross(w, point)
    return J


def frame_jacobian(mechanism: Mechanism, q: Array, frame: BodyFrame, *, domain: Domain = FLOAT) -> Array:
    """6×nv Jacobian of a frame's origin: rows [angular; linear], world axes."""
    poses = supporting_poses(mechanism, q, frame.body, domain=domain)
    _, p = frame_pose(frame, poses, domain=domain)
    maps = {i: _world_map(mechanism.joints[i], q, pose, domain) for i, pose in poses.items()}
    return point_jacobian(mechanism, frame.body, p, maps, domain=domain)


def center_of_mass(mechanism: Mechanism, q: Array, *, domain: Domain = FLOAT) -> Array:
    """Centre of mass of all moving bodies, in the world. What is welded to the ground does not count."""
    poses = body_poses(mechanism, q, domain=domain)
    total = domain.zeros(3)
    for body, (R, p) in zip(mechanism.bodies, poses, strict=True):
        if body.mass:
            total = total + (p + R @ domain.array(body.com)) * domain.const(body.mass)
    return total / domain.const(sum(body.mass for body in mechanism.bodies))


def integrate(mechanism: Mechanism, q: Array, d: Array, *, domain: Domain = FLOAT) -> Array:
    """The configuration reached from q along the tangent vector d."""
    parts = [j.model.integrate(q[j.q], d[j.v], domain=domain) for j in mechanism.independent_joints]
    return np.concatenate(parts) if parts else domain.zeros(0)


def refined(
    mechanism: Mechanism, found: Array, q: Array, d: Array, *, domain: Domain = FLOAT
) -> tuple[Array, list[Any]]:
    """(a better approximation than `found` of integrate(q, d), the changes): of joints that have no formula for it."""
    parts, sizes = [], []
    for j in mechanism.independent_joints:
        part, changes = found[j.q], []
        if not closed_manifold(j.model):
            part, changes = j.model.refined(part, q[j.q], d[j.v], domain=domain)
        parts.append(part)
        sizes += changes
    return (np.concatenate(parts) if parts else domain.zeros(0)), sizes


def difference(mechanism: Mechanism, q0: Array, q1: Array, *, domain: Domain = FLOAT) -> Array:
    """The tangent vector that leads from q0 to q1."""
    parts = [j.model.difference(q0[j.q], q1[j.q], domain=domain) for j in mechanism.independent_joints]
    return np.concatenate(parts) if parts else domain.zeros(0)


def rate(mechanism: Mechanism, q: Array, v: Array, *, domain: Domain = FLOAT) -> Array:
    """q̇ of the configuration's numbers."""
    parts = [j.model.rate(q[j.q], v[j.v], domain=domain) for j in mechanism.independent_joints]
    return np.concatenate(parts) if parts else domain.zeros(0)


def tangent_columns(mechanism: Mechanism, q: Array, *, domain: Domain = FLOAT) -> Array:
    """q̇ along each single velocity, (nv, nq)."""
    columns = domain.zeros(mechanism.nv, mechanism.nq)
    for j in mechanism.independent_joints:
        for k, unit in zip(range(j.v.start, j.v.stop), domain.eye(j.nv), strict=True):
            columns[k, j.q] = j.model.rate(q[j.q], unit, domain=domain)
    return columns


__all__ = [
    "Pose",
    "body_poses",
    "body_twists",
    "center_of_mass",
    "difference",
    "frame_jacobian",
    "frame_pose",
    "integrate",
    "point_jacobian",
    "rate",
    "relative_pose",
    "relative_poses",
    "supporting_poses",
    "tangent_columns",
    "world_maps",
]
