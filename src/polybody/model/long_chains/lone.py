"""Mechanisms of one joint, whose numbers are nodes of an expression graph: what a kind's steps are traced from.

The texts of `mechanism` and `formulations` take a mechanism; given one of a single joint and body they are the step of
that joint. Where a step depends on the body before it, that body is moved by a *carrier*, a joint whose configuration
is a pose (R, p) and whose velocity is a twist in body axes: the second joint is attached to what
the scan has reached.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.formulations.denoc.links import Link, links
from polybody.mechanism.entries import Entries
from polybody.mechanism.friction import from_numbers
from polybody.mechanism.joints import JointModel
from polybody.mechanism.mechanism import GROUND, BodyFrame, Inertial, Mechanism, PointSpring, TreeBody, TreeJoint
from polybody.model.long_chains.kinds import Chain, Kind, group_sizes


class Carrier(JointModel):
    """A joint that puts its body at a given pose, with a given twist in body axes."""

    kind, nq, nv = "carrier", 12, 6

    def configuration(self, q: Array, *, domain: Domain = FLOAT) -> tuple[Array, Array]:
        return q[:9].reshape(3, 3), q[9:]

    def velocity_map(self, q: Array, *, domain: Domain = FLOAT) -> Array:
        return domain.eye(6)

    def velocity_map_rate(self, q: Array, v: Array, *, domain: Domain = FLOAT) -> Array:
        return domain.zeros(6, 6)

    def rate(self, q: Array, v: Array, *, domain: Domain = FLOAT) -> Array:
        raise NotImplementedError

    def neutral(self) -> Array:
        return np.concatenate([np.eye(3).ravel(), np.zeros(3)])

    def random(self, rng: np.random.Generator, shape: tuple[int, ...] = ()) -> Array:
        raise NotImplementedError

    def integrate(self, q: Array, d: Array, *, domain: Domain = FLOAT) -> Array:
        raise NotImplementedError

    def difference(self, q0: Array, q1: Array, *, domain: Domain = FLOAT) -> Array:
        raise NotImplementedError


def lone(chain: Chain, kind: Kind, table: Array) -> Mechanism:
    """The joint of a kind on the ground, with its body; groups that the chain does not have are zero."""
    joint = chain.joint(kind)
    sizes, values = group_sizes(joint), iter(chain.values(kind, table))
    parts = {group: np.array([next(values) for _ in range(sizes[group])], dtype=object) for group in chain.groups}

    def part(group: str, *shape: int) -> Array:
        return parts[group].reshape(shape) if group in parts else np.zeros(shape)

    r = joint.nv
    body = TreeBody(0, "body", part("mass", 1)[0], part("com", 3), mirrored(part("central", 6)), ())
    inertials = (Inertial(body.mass, part("moment", 3), mirrored(part("inertia", 6))),) if "moment" in parts else None
    alone = replace(
        joint, index=0, parent=GROUND, rotation=part("placement", 3, 3), position=part("offset", 3),
        q=slice(0, joint.nq), v=slice(0, r), stiffness=part("stiffness", r, r), damping=part("damping", r, r),
        rest=part("rest", joint.nq), friction=from_numbers(part("friction", 6 * r)),
    )  # fmt: skip
    return _of(chain.mechanism, (alone,), (body,), part("armature", r, r), inertials)


def carried(chain: Chain, kind: Kind, table: Array) -> Mechanism:
    """The joint of a kind on a carried body: q = (pose, own q), v = (twist, own v)."""
    own = lone(chain, kind, table)
    joint, body = own.joints[0], own.bodies[0]
    before = replace(
        joint, model=Carrier(), parent=GROUND, rotation=np.eye(3), position=np.zeros(3), q=slice(0, 12), v=slice(0, 6),
    )  # fmt: skip
    after = replace(joint, index=1, parent=0, q=slice(12, 12 + joint.nq), v=slice(6, 6 + joint.nv))
    massless = TreeBody(0, "before", 0.0, np.zeros(3), np.zeros((3, 3)), ())
    return _of(own, (before, after), (massless, body), np.zeros((6 + joint.nv,) * 2), None)


def lone_link(chain: Chain, kind: Kind, table: Array) -> Link:
    """The link of a kind, attached to another."""
    (link,) = links(lone(chain, kind, table), domain=chain.graph)
    return replace(link, parent=0)


def lone_spring(chain: Chain, kind: Kind, table: Array) -> Mechanism:
    """One point spring between bodies 0 and 1."""
    values = chain.values(kind, table)
    spring = PointSpring("spring", 0, values[:3], 1, values[3:6], *values[6:])
    return replace(_of(chain.mechanism, (), chain.mechanism.bodies[:1] * 2, np.zeros((0, 0)), None), springs=(spring,))


def lone_frame(chain: Chain, kind: Kind, table: Array) -> BodyFrame:
    """A frame on body 0."""
    values = chain.values(kind, table)
    return BodyFrame("frame", 0, values[:9].reshape(3, 3), values[9:])


def _of(
    mechanism: Mechanism,
    joints: tuple[TreeJoint, ...],
    bodies: tuple[TreeBody, ...],
    armature: Array,
    inertials: tuple[Inertial, ...] | None,
) -> Mechanism:
    nv = sum(joint.nv for joint in joints)
    return replace(
        mechanism, joints=joints, bodies=bodies, frames=(), springs=(), followers={}, nv=nv,
        armature_entries=Entries.of(armature), motor_damping_entries=Entries.of(np.zeros((nv, nv))),
        nq=sum(joint.nq for joint in joints), inertials=inertials,
    )  # fmt: skip


def mirrored(six: Any) -> Array:
    """A symmetric 3×3 matrix from its upper triangle."""
    result = np.zeros((3, 3), dtype=object)
    for value, i, j in zip(six, *np.triu_indices(3), strict=True):
        result[i, j] = result[j, i] = value
    return result


__all__ = ["carried", "lone", "lone_frame", "lone_link", "lone_spring", "mirrored"]
