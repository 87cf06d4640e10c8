"""Linear couplings, eliminated: a follower q_f = k q_l + c has no coordinates of its own.

Chains resolve to the one leader at their root, q_f = k_1 (k_2 q + c_2) + c_1. A coupling whose follower follows
already, or whose leader follows it in turn (a cycle), cannot be solved for a coordinate: it stays as the relation
q_f − k q_l − c = 0. With E the matrix of all joints' velocities per independent one, what is given for the velocities
of all joints becomes

    armature Eᵀ A E,     motors' speeds (per velocity) · E,     limits those of the leader and all its followers,

and a velocity is active where that of its joint or of a follower is. What a joint's spring, damper and friction are
stays said in the joint's own coordinate, k q + c.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.algebra.scalars import is_symbolic, plain
from polybody.description.records import Coupling, Limits, Relation
from polybody.errors import InputError
from polybody.late import dataclass
from polybody.mechanism.geared import GearedJoint, own_coordinates, own_velocities

if TYPE_CHECKING:
    from polybody.mechanism.mechanism import Mechanism, TreeJoint


@dataclass(frozen=True)
class Following:
    """(root leader, factor, offset) of each follower, and the couplings left over."""

    followers: dict[str, tuple[str, float, float]]
    rest: tuple[Coupling, ...]


def resolved(couplings: Sequence[Coupling]) -> Following:
    """Every follower by its root leader; a coupling that would make a second leader or a cycle is left over.

    Whatever lies on the way to a root gets its root, so that long chains take time in proportion to their length.
    """
    above: dict[str, tuple[str, float, float]] = {}
    rest = []

    def root(joint: str) -> str:
        way = []
        while joint in above:
            way.append(joint)
            joint = above[joint][0]
        for name in reversed(way[:-1]):
            leader, factor, offset = above[name]
            _, further, shift = above[leader]
            above[name] = joint, factor * further, factor * shift + offset
        return joint

    for coupling in couplings:
        if coupling.joint in above or root(coupling.source_joint) == coupling.joint:
            rest.append(coupling)
        else:
            above[coupling.joint] = coupling.source_joint, coupling.ratio, coupling.offset
    for joint in list(above):
        root(joint)
    return Following(above, tuple(rest))


def left_over(coupling: Coupling) -> Relation:
    """A coupling as a relation between coordinates."""
    if is_symbolic(coupling.ratio, coupling.offset):
        raise InputError(
            f"coupling of {coupling.joint!r}: its ratio cannot be a parameter, because {coupling.joint!r} follows "
            "another joint already and this coupling is a relation"
        )
    text = f"q[{coupling.joint!r}] - ({coupling.ratio!r})*q[{coupling.source_joint!r}] - ({coupling.offset!r})"
    return Relation(f"coupling of {coupling.joint}", text, coupling.source)


def eliminated(mechanism: Mechanism, couplings: Sequence[Coupling]) -> Mechanism:
    """The mechanism, every joint of which has coordinates of its own, with followers in the slots of their leaders."""
    if not couplings:
        return mechanism
    _check_sizes(mechanism, couplings)
    following = resolved(couplings)
    followers = {j.name: following.followers[j.name] for j in mechanism.joints if j.name in following.followers}
    slices = _slots(mechanism, followers)
    limits, active = _shared(mechanism, followers)
    joints = tuple(_in_slot(joint, followers, slices, limits, active) for joint in mechanism.joints)
    nq = sum(j.nq for j in joints if j.name not in followers)
    nv = sum(j.nv for j in joints if j.name not in followers)
    slots, factors = _expansion(mechanism, joints)
    old = mechanism.motors
    speeds = old.speed_entries.moved(slots, factors, nv, both=False)
    return replace(
        mechanism,
        joints=joints,
        armature_entries=mechanism.armature_entries.moved(slots, factors, nv, both=True),
        motors=replace(old, speed_entries=speeds, driven=slots[old.driven]),
        motor_damping_entries=mechanism.motor_damping_entries.moved(slots, factors, nv, both=True),
        nq=nq,
        nv=nv,
        followers=followers,
        relations=(*mechanism.relations, *(left_over(c) for c in following.rest)),
    )


def _check_sizes(mechanism: Mechanism, couplings: Sequence[Coupling]) -> None:
    for coupling in couplings:
        for name in (coupling.joint, coupling.source_joint):
            where = f"{coupling.source}: " if coupling.source else ""
            if name not in mechanism.joint_index:
                raise InputError(f"{where}coupling of {coupling.joint!r}: {name!r} is not a moving joint of the tree")
            joint = mechanism.joints[mechanism.joint_index[name]]
            if (joint.nq, joint.nv) != (1, 1):
                raise InputError(
                    f"{where}coupling of {coupling.joint!r}: joint {name!r} ({joint.kind}) does not have exactly one "
                    "coordinate; write a relation"
                )


def _slots(mechanism: Mechanism, followers: Mapping[str, tuple[str, float, float]]) -> dict[str, tuple[slice, slice]]:
    """Slices of q and v: consecutive over independent joints, the leader's for followers."""
    slices: dict[str, tuple[slice, slice]] = {}
    nq = nv = 0
    for joint in mechanism.joints:
        if joint.name not in followers:
            slices[joint.name] = slice(nq, nq + joint.nq), slice(nv, nv + joint.nv)
            nq, nv = nq + joint.nq, nv + joint.nv
    return slices | {name: slices[leader] for name, (leader, _, _) in followers.items()}


def _in_slot(
    joint: TreeJoint,
    followers: Mapping[str, tuple[str, float, float]],
    slices: Mapping[str, tuple[slice, slice]],
    limits: Mapping[str, Limits],
    active: Mapping[str, Array],
) -> TreeJoint:
    q, v = slices[joint.name]
    leader, factor, offset = followers.get(joint.name, (joint.name, 1.0, 0.0))
    model = GearedJoint(joint.model, factor, offset) if joint.name in followers else joint.model
    return replace(joint, model=model, q=q, v=v, limits=limits[leader], active=active[leader])


def _expansion(mechanism: Mechanism, joints: Sequence[TreeJoint]) -> tuple[Array, Array]:
    """For each velocity of all joints the slot it is in, and how fast it is there."""
    slots, factors = np.zeros(mechanism.nv, dtype=int), np.ones(mechanism.nv, dtype=object)
    for before, joint in zip(mechanism.joints, joints, strict=True):
        slots[before.v] = np.arange(joint.v.start, joint.v.stop)
        if isinstance(joint.model, GearedJoint):
            factors[before.v] = joint.model.factor
    return slots, plain(factors)


def _shared(
    mechanism: Mechanism, followers: Mapping[str, tuple[str, float, float]]
) -> tuple[dict[str, Limits], dict[str, Array]]:
    """Limits and active flags of every independent joint, those of its followers taken up."""
    limits = {joint.name: joint.limits for joint in mechanism.joints}
    active = {joint.name: joint.active for joint in mechanism.joints}
    for name, (leader, factor, offset) in followers.items():
        limits[leader] = _intersected(limits[leader], limits[name], name, leader, factor, offset)
        active[leader] = active[leader] | active[name]
    return limits, active


def _intersected(own: Limits, other: Limits, name: str, leader: str, factor: float, offset: float) -> Limits:
    """The leader's limits and those of a follower, said for the leader's coordinate."""
    if is_symbolic(factor, offset):
        return own  # mechanisms at numbers have the others
    law = f"joint {name!r} follows {leader!r} by {factor:g} q {'-' if offset < 0 else '+'} {abs(offset):g}"
    low, high = float(other.lower[0]), float(other.upper[0])
    if factor == 0:
        if not low <= offset <= high:
            raise InputError(
                f"{law}, and its limits [{low:g}, {high:g}] do not hold {offset:g}; correct either of them"
            )
        return own
    ends = sorted([(low - offset) / factor, (high - offset) / factor])
    lower, upper = max(float(own.lower[0]), ends[0]), min(float(own.upper[0]), ends[1])
    if lower > upper:
        raise InputError(
            f"{law}, and its limits [{low:g}, {high:g}] leave no position within those of {leader!r} "
            f"[{float(own.lower[0]):g}, {float(own.upper[0]):g}]; correct the limits, or load with couplings=False"
        )
    velocity = np.minimum(own.velocity, other.velocity / abs(factor))
    # Files give followers an effort of zero to say that they have no motor; that does not bind the leader's.
    effort = np.minimum(own.effort, other.effort * abs(factor)) if other.effort[0] > 0 else own.effort
    power = own.power if other.power is None else np.minimum(np.inf if own.power is None else own.power, other.power)
    ends = np.array([lower + 0.0]), np.array([upper + 0.0])  # never −0
    return Limits(*ends, velocity, effort, power, own.stiffness, own.damping)


# ---- all joints by name ----------------------------------------------------------------------------------------------


def joint_positions(mechanism: Mechanism, q: Array, *, domain: Domain = FLOAT) -> dict[str, Array]:
    """{joint: its coordinates (..., nq of the joint)} of all joints of the tree, followers too; q is (..., nq)."""
    return {j.name: own_coordinates(j.model, q[..., j.q], domain=domain) for j in mechanism.joints}


def joint_velocities(mechanism: Mechanism, v: Array, *, domain: Domain = FLOAT) -> dict[str, Array]:
    """{joint: its velocities (..., nv of the joint)} of all joints of the tree; serves accelerations too."""
    return {j.name: own_velocities(j.model, v[..., j.v], domain=domain) for j in mechanism.joints}


def transmitted_efforts(mechanism: Mechanism, efforts: Mapping[str, Array | float]) -> Array:
    """tau (..., nv) of efforts (..., nv of the joint) by name: those on a follower act on its leader, times k."""
    unknown = sorted(set(efforts) - set(mechanism.joint_index))
    if unknown:
        raise InputError(f"no joint {unknown[0]!r} to act on; available: {', '.join(mechanism.joint_index)}")
    given = {name: np.atleast_1d(np.asarray(value, dtype=float)) for name, value in efforts.items()}
    lead = np.broadcast_shapes(*(effort.shape[:-1] for effort in given.values()))
    tau = np.zeros((*lead, mechanism.nv))
    for name, effort in given.items():
        joint = mechanism.joints[mechanism.joint_index[name]]
        tau[..., joint.v] += own_velocities(joint.model, effort)
    return tau


__all__ = [
    "eliminated",
    "joint_positions",
    "joint_velocities",
    "resolved",
    "transmitted_efforts",
]
