"""Every joint's whole wrench on its child, fixed joints included.

The tree merges links that fixed joints join, so that reactions go back to the links of the description: each link is a
component of its own, and (41) runs inwards over all joints in the order of the walk,

    y_far = W x + u − applied + Σ_joints beyond K(r) y

A joint's child is the child of its record, and the wrench is at the origin of the child link's frame, which is the
joint frame carried along by the joint. There Hᵀw = tau + passive − armature·a, with w in the child's axes; a follower
and its leader also have what their coupling exerts. For a joint the tree walks backwards (from child to parent) that is
minus the wrench that holds the far side.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.algebra.rotations import cross
from polybody.description.records import WORLD
from polybody.errors import InputError
from polybody.formulations.network.recursion import PortMotion, kinetic_through, outward_motions, resting
from polybody.formulations.network.terminals import across_at, swapped, through_from
from polybody.mechanism.closure_springs import wrench_on_b
from polybody.mechanism.contacts import contact_forces
from polybody.mechanism.forces import spring_forces
from polybody.mechanism.graph import walk
from polybody.mechanism.kinematics import Pose, body_poses, body_twists, frame_pose
from polybody.mechanism.mechanism import GROUND, BodyFrame, Mechanism

AXES = ("world", "joint")


def reaction_names(mechanism: Mechanism) -> tuple[str, ...]:
    """The joints in the order of the rows of `reactions`: depth-first preorder, fixed joints included."""
    return _names(mechanism.description)


@lru_cache(maxsize=32)
def _names(description: Any) -> tuple[str, ...]:
    return tuple(step.joint.name for step in walk(description))


def link_motion(frame: BodyFrame, poses: list[Pose], motions: list[PortMotion], *, domain: Domain) -> PortMotion:
    """Across variable of a link's origin and its rate, from those of the tree body it belongs to."""
    if frame.body == GROUND:
        return resting(domain=domain)
    motion = motions[frame.body]
    r = poses[frame.body][0] @ domain.array(frame.position)
    x = across_at(motion.x, r)
    rate = across_at(motion.rate, r)
    omega = motion.x[3:]
    rate[:3] = rate[:3] + cross(omega, x[:3] - motion.x[:3])
    return PortMotion(x, rate)


def link_throughs(
    mechanism: Mechanism, q: Array, v: Array, a: Array, poses: list[Pose], *, domain: Domain
) -> dict[str, Array]:
    """What each link needs at its origin for its motion under gravity."""
    motions = outward_motions(mechanism, q, v, a, poses, domain=domain)
    gravity = domain.array(mechanism.gravity)
    needed: dict[str, Array] = {WORLD: domain.zeros(6)}
    for link in mechanism.description.bodies:
        frame = mechanism.frames[mechanism.frame_index[link.name]]
        R, _ = frame_pose(frame, poses, domain=domain)
        motion = link_motion(frame, poses, motions, domain=domain)
        r, J = R @ domain.array(link.com), R @ domain.array(link.inertia) @ R.T
        needed[link.name] = kinetic_through(domain.const(link.mass), r, J, motion, gravity, domain=domain)
    return needed


def subtract_loads(
    mechanism: Mechanism,
    needed: dict[str, Array],
    origins: dict[str, Array],
    q: Array,
    v: Array,
    wrenches: Array | None,
    poses: list[Pose],
    *,
    domain: Domain,
) -> None:
    """Take from `needed` what point springs and the wrenches on frames already give."""
    description = mechanism.description
    if mechanism.sprung:
        twists = body_twists(mechanism, q, v, domain=domain)
        forces = spring_forces(mechanism, poses, twists, domain=domain)
        for record, (a, b, force) in zip(description.springs, forces, strict=True):
            for link, point, f in ((record.body_a, a, force), (record.body_b, b, -force)):
                y = np.concatenate([f, domain.zeros(3)])
                needed[link] = needed[link] - through_from(y, point - origins[link])
        loops = {loop.name: loop for loop in description.loops}
        for element in mechanism.closure_springs:
            wrench, point = wrench_on_b(element, poses, twists, domain=domain)
            for link, w in ((loops[element.name].body_b, wrench), (loops[element.name].body_a, -wrench)):
                needed[link] = needed[link] - through_from(swapped(w), point - origins[link])
        for contact in mechanism.contacts:
            link = contact.record.body
            for place, force in contact_forces(contact, poses, twists, domain=domain):
                y = np.concatenate([force, domain.zeros(3)])
                needed[link] = needed[link] - through_from(y, place - origins[link])
    if wrenches is None:
        return
    owners = {frame.name: frame.body for frame in description.frames}
    for frame, wrench in zip(mechanism.frames, wrenches, strict=True):
        link = owners.get(frame.name, frame.name)
        _, p = frame_pose(frame, poses, domain=domain)
        needed[link] = needed[link] - through_from(swapped(wrench), p - origins[link])


def reactions(
    mechanism: Mechanism,
    q: Array,
    v: Array,
    a: Array,
    wrenches: Array | None = None,
    *,
    axes: str = "world",
    domain: Domain = FLOAT,
) -> Array:
    """(joints, 6): the wrench [moment; force] of each joint on its child, at the child's origin.

    Rows are in the order of `reaction_names`. `wrenches` is None or (frames, 6): a wrench on each frame of the
    mechanism, at its origin, in world axes. `axes` is "world" or "joint", the axes of the child's frame.
    """
    if axes not in AXES:
        raise InputError(f"axes is {axes!r}, expected 'world' or 'joint'")
    poses = body_poses(mechanism, q, domain=domain)
    places = {frame.name: frame_pose(frame, poses, domain=domain) for frame in mechanism.frames}
    origins = {name: p for name, (_, p) in places.items()}
    needed = link_throughs(mechanism, q, v, a, poses, domain=domain)
    subtract_loads(mechanism, needed, origins, q, v, wrenches, poses, domain=domain)
    steps = list(walk(mechanism.description))
    result = domain.zeros(len(steps), 6)
    for row, step in reversed(list(enumerate(steps))):
        y = needed[step.far]
        at_near = through_from(y, origins[step.far] - origins[step.near])
        needed[step.near] = needed[step.near] + at_near
        on_child = swapped(-at_near if step.reversed else y)
        if axes == "joint":
            R = places[step.joint.child][0]
            on_child = np.concatenate([R.T @ on_child[:3], R.T @ on_child[3:]])
        result[row] = on_child
    return result


__all__ = ["AXES", "reaction_names", "reactions"]
