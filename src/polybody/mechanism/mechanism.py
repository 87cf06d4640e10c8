"""The immutable `Mechanism`: a tree of moving bodies, each moved by one joint, with loops and springs kept beside it.

Body i is moved by joint i (numbered in depth-first preorder, −1 is the ground). The frame of body i is the outboard
frame of joint i: for a joint walked forward that is the child link's own frame, for a reversed one the joint frame on
the parent link. Links joined by fixed joints are merged into one body; every link keeps its place as a frame.

    pose of body i in body parent(i) = placement_i · X_i(q_i)

A joint that follows another (see `couplings`) moves its body like any other, but its slices of q and v are its
leader's: several joints share one slot. So what joints do to v adds up in their slots, and what goes through q and v
number by number goes over `independent_joints`.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from polybody.algebra.scalars import domain_of, is_symbolic, numbers
from polybody.algebra.spatial import inverse_pose, joined_inertia
from polybody.description.records import (
    WORLD,
    Description,
    Friction,
    Guide,
    Joint,
    Limits,
    Relation,
    Rod,
    Rolling,
    VelocityRelation,
)
from polybody.errors import InputError
from polybody.late import dataclass, field
from polybody.mechanism.closure_springs import ClosureSpring, closure_spring
from polybody.mechanism.contacts import GroundContact
from polybody.mechanism.couplings import eliminated
from polybody.mechanism.driven_loops import with_driven_loops
from polybody.mechanism.entries import Entries
from polybody.mechanism.geared import GearedJoint, own_model
from polybody.mechanism.graph import Step, joint_graph, walk
from polybody.mechanism.groups import Group, elimination_groups
from polybody.mechanism.joints import JointModel, ReversedJoint
from polybody.mechanism.kinds import joint_model, joint_size
from polybody.mechanism.motors import Motors, motors_of
from polybody.properties import cached_property

Array = np.ndarray
GROUND = -1


@dataclass(frozen=True, eq=False)
class TreeJoint:
    """Joint i of the tree, which moves body i relative to body `parent`.

    A follower's q, v, limits and active are those of its slot, its leader's; stiffness, damping, friction and rest are
    said in its own coordinate.
    """

    index: int  # i
    name: str  # that of the description
    model: JointModel  # kinematics of its kind
    parent: int
    rotation: Array  # placement of the joint frame in the parent body's frame
    position: Array  # of its origin
    q: slice
    v: slice
    stiffness: Array  # nv×nv
    damping: Array  # nv×nv
    friction: Friction | None
    rest: Array  # configuration where the spring is slack
    limits: Limits
    active: Array  # nv booleans
    reversed: bool  # given child to parent
    record: Joint  # of the description

    @property
    def kind(self) -> str:
        """Kind of the joint: revolute, prismatic, …"""
        return self.model.kind

    @property
    def nv(self) -> int:
        """Number of entries of v that belong to this joint."""
        return self.model.nv

    @property
    def nq(self) -> int:
        """Number of entries of q that belong to this joint."""
        return self.model.nq

    @property
    def follows(self) -> bool:
        """Whether the joint follows another and has no coordinates of its own."""
        return isinstance(self.model, GearedJoint)


@dataclass(frozen=True, eq=False)
class TreeBody:
    """A moving body: everything that is rigidly joined to the outboard side of its joint."""

    index: int
    name: str
    mass: Any  # a float, or a scalar of an expression graph (see `variation`)
    com: Array
    inertia: Array  # about the com, body axes
    links: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Inertial:
    """Mass, first moment m c and inertia about the origin: the parameters in which dynamics is linear."""

    mass: Any
    moment: Array
    inertia: Array


@dataclass(frozen=True, eq=False)
class BodyFrame:
    """A frame fixed to a body (GROUND for the ground): its place in the body's frame."""

    name: str
    body: int
    rotation: Array
    position: Array


@dataclass(frozen=True, eq=False)
class Closure:
    """A loop's cut joint between frame a (its parent side) and frame b (its child side); model None for a weld."""

    name: str
    model: JointModel | None
    a: BodyFrame
    b: BodyFrame


@dataclass(frozen=True, eq=False)
class PointSpring:
    """A spring-damper between two points fixed to bodies."""

    name: str
    body_a: int
    point_a: Array
    body_b: int
    point_b: Array
    stiffness: float
    length: float
    damping: float


@dataclass(frozen=True, eq=False)
class FixedJoint:
    """A merged joint, for reactions: `link` is its child side, held in the tree body `body` by frame `frame`."""

    name: str
    body: int
    near: str
    far: str
    record: Joint


@dataclass(frozen=True, eq=False)
class Mechanism:
    """A tree of joints and bodies, ready for any formulation. Build it with `mechanism_from`."""

    name: str
    gravity: Array
    joints: tuple[TreeJoint, ...]
    bodies: tuple[TreeBody, ...]
    frames: tuple[BodyFrame, ...]
    closures: tuple[Closure, ...]
    springs: tuple[PointSpring, ...]
    fixed_joints: tuple[FixedJoint, ...]
    armature_entries: Entries  # nv×nv: armature and reflected rotor inertia
    motors: Motors
    motor_damping_entries: Entries  # nv×nv: what the motors' bearings add to the joints' damping
    nq: int
    nv: int
    description: Description = field(repr=False)
    #: inertial parameters that replace the bodies' own in joint-space dynamics (see `reduction`)
    inertials: tuple[Inertial, ...] | None = None
    rods: tuple[Rod, ...] = ()
    guides: tuple[Guide, ...] = ()
    relations: tuple[Relation, ...] = ()
    #: constraints on velocities
    rolling: tuple[Rolling, ...] = ()
    velocity_relations: tuple[VelocityRelation, ...] = ()
    #: of loops' cut joints; they act on the tree too, when its loops are cut
    closure_springs: tuple[ClosureSpring, ...] = ()
    #: of points of bodies with the ground
    contacts: tuple[GroundContact, ...] = ()
    #: {follower: (leader, factor, offset)}, in the order of the joints; leaders are independent
    followers: dict[str, tuple[str, float, float]] = field(default_factory=dict)
    #: the CasADi columns of symbols among the numbers: further inputs of functions traced from it (see `variation`)
    symbols: tuple[Any, ...] = ()

    @property
    def armature(self) -> Array:
        """Armature and reflected rotor inertia, nv×nv."""
        return self.armature_entries.dense

    @property
    def motor_damping(self) -> Array:
        """What the motors' bearings add to the joints' damping, nv×nv."""
        return self.motor_damping_entries.dense

    @cached_property
    def constrained(self) -> bool:
        """True where loops, rods, guides or relations hold beside the tree."""
        held = self.closures or self.rods or self.guides or self.relations
        return bool(held or self.rolling or self.velocity_relations)

    @cached_property
    def paced(self) -> bool:
        """True where a velocity relation has a right side: v = 0 is then no motion, and constraints do work."""
        return any(r.equals != "0" for r in self.velocity_relations)

    def cut(self) -> Mechanism:
        """The tree alone: what is left when every constraint is taken away. Followers follow, loops' springs act."""
        return replace(self, closures=(), rods=(), guides=(), relations=(), rolling=(), velocity_relations=())

    @property
    def sprung(self) -> bool:
        """Whether forces act on bodies besides joints': of point springs, springs of cut joints, contacts."""
        return bool(self.springs or self.closure_springs or self.contacts)

    @cached_property
    def independent_joints(self) -> tuple[TreeJoint, ...]:
        """The joints that own their slices of q and v: all but followers. Their slices follow each other."""
        return tuple(joint for joint in self.joints if not joint.follows)

    def owner(self, slot: int) -> TreeJoint:
        """The independent joint that has number `slot` of v."""
        return next(joint for joint in self.independent_joints if joint.v.start <= slot < joint.v.stop)

    @cached_property
    def slots(self) -> Array:
        """For each column of all joints, joint after joint, the velocity it belongs to."""
        columns = [np.arange(joint.v.start, joint.v.stop) for joint in self.joints]
        return np.concatenate([np.zeros(0, dtype=int), *columns])

    @cached_property
    def columns(self) -> tuple[slice, ...]:
        """Each joint's own columns among those of all joints; where nobody follows, its slice of v."""
        ends = np.cumsum([0, *(joint.nv for joint in self.joints)])
        return tuple(slice(int(a), int(b)) for a, b in pairwise(ends))

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The joints as articulated recursions eliminate them, outwards: one by one, coupled ones together."""
        return elimination_groups(self.joints, self.supports, self.armature)

    @property
    def separable(self) -> bool:
        """True where neither coordinates nor rotors couple joints: each is eliminated alone."""
        return len(self.groups) == len(self.joints)

    @cached_property
    def uncoupled(self) -> Mechanism:
        """The same tree with a slot for every joint: q and v are those of `joint_positions`, `joint_velocities`."""
        if not self.followers:
            return self
        free = mechanism_from(self.description, couplings=False)
        joints = tuple(
            replace(joint, model=own_model(own.model), rotation=own.rotation, position=own.position)
            for joint, own in zip(free.joints, self.joints, strict=True)
        )
        same = (
            "gravity", "bodies", "frames", "closures", "springs", "closure_springs", "contacts", "inertials", "rods",
            "guides", "relations", "rolling", "velocity_relations",
        )  # fmt: skip
        return replace(free, joints=joints, **{name: getattr(self, name) for name in same})

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """The bodies moved from each body."""
        result: list[list[int]] = [[] for _ in self.bodies]
        for joint in self.joints:
            if joint.parent != GROUND:
                result[joint.parent].append(joint.index)
        return tuple(tuple(c) for c in result)

    def point(self, link: str, point: Any) -> BodyFrame:
        """A point of a link as a frame of its tree body."""
        frame = self.frames[self.frame_index[link]]
        position = frame.position + frame.rotation @ numbers(point)
        return BodyFrame(link, frame.body, frame.rotation, position)

    @cached_property
    def frame_index(self) -> dict[str, int]:
        return {frame.name: i for i, frame in enumerate(self.frames)}

    @cached_property
    def joint_index(self) -> dict[str, int]:
        return {joint.name: joint.index for joint in self.joints}

    @cached_property
    def graph(self) -> Any:
        """The description's bodies and joints as a networkx graph."""
        return joint_graph(self.description)

    @cached_property
    def digest(self) -> str:
        """A hash of everything that matters to motion."""
        followed = "".join(sorted(self.followers))  # the same description may be loaded with its couplings loosened
        return hashlib.sha256(f"{self.description.digest()}:{followed}".encode()).hexdigest()

    @cached_property
    def supports(self) -> tuple[tuple[int, ...], ...]:
        """For each body the joints between it and the ground, outermost last."""
        result: list[tuple[int, ...]] = []
        for joint in self.joints:
            above = () if joint.parent == GROUND else result[joint.parent]
            result.append((*above, joint.index))
        return tuple(result)


def mechanism_from(description: Description, *, couplings: bool = True) -> Mechanism:
    """Build the mechanism of a description that `description.checks` found sound.

    Joints that follow others by linear couplings have no coordinates of their own; without `couplings` they are free.
    Cut joints with armature, limits or motors have (`driven_loops`).
    """
    if not couplings:
        description = replace(description, couplings=())
    description = with_driven_loops(description)
    builder = _TreeBuilder(description)
    for step in walk(description):
        builder.take(step)
    return builder.finish()


def unlimited(nv: int) -> Limits:
    inf = np.full(nv, np.inf)
    return Limits(-inf, inf, inf, inf)


class _TreeBuilder:
    """Collects joints in walking order, then merges, measures and freezes."""

    def __init__(self, description: Description) -> None:
        self.description = description
        #: for each link its tree body and its pose in that body's frame
        self.place: dict[str, tuple[int, Array]] = {WORLD: (GROUND, np.eye(4))}
        self.joints: list[TreeJoint] = []
        self.fixed: list[tuple[Step, int]] = []
        self.names: list[str] = []
        self.nq = self.nv = 0

    def take(self, step: Step) -> None:
        body, pose_near = self.place[step.near]
        record = step.joint
        if record.kind == "fixed":
            origin = _inverse(record.origin) if step.reversed else numbers(record.origin)
            self.place[step.far] = (body, pose_near @ origin)
            self.fixed.append((step, body))
            return
        model = joint_model(record)
        index = len(self.joints)
        if step.reversed:
            placement, model, far_pose = pose_near, ReversedJoint(model), _inverse(record.origin)
        else:
            placement, far_pose = pose_near @ record.origin, np.eye(4)
        self.joints.append(self._tree_joint(index, record, model, body, placement, step.reversed))
        self.place[step.far] = (index, far_pose)
        self.names.append(step.far)

    def _tree_joint(
        self, index: int, record: Joint, model: JointModel, parent: int, placement: Array, reverse: bool
    ) -> TreeJoint:
        nq, nv = joint_size(record)
        q, v = slice(self.nq, self.nq + nq), slice(self.nv, self.nv + nv)
        self.nq, self.nv = self.nq + nq, self.nv + nv

        def or_zero(values: Array | None, *shape: int) -> Array:
            return np.zeros(shape) if values is None else numbers(values).reshape(shape)

        rest = model.neutral() if record.rest is None else numbers(record.rest)
        default_active = (record.kind != "floating",) * nv
        return TreeJoint(
            index=index,
            name=record.name,
            model=model,
            parent=parent,
            rotation=tidy_rotation(placement[:3, :3]),
            position=placement[:3, 3].copy(),
            q=q,
            v=v,
            stiffness=or_zero(record.stiffness, nv, nv),
            damping=or_zero(record.damping, nv, nv),
            friction=record.friction,
            rest=rest,
            limits=record.limits or unlimited(nv),
            active=np.array(default_active if record.active is None else record.active, dtype=bool),
            reversed=reverse,
            record=record,
        )

    def finish(self) -> Mechanism:
        d = self.description
        frames = self._frames()
        motors = motors_of(d, {j.name: j.v for j in self.joints}, {j.name: j.active for j in self.joints}, self.nv)
        rotors = motors.reflected_inertia
        own = [(j, numbers(j.record.armature)) for j in self.joints if j.record.armature is not None]
        slots = np.concatenate([np.zeros(0, dtype=int), *(np.arange(j.v.start, j.v.stop) for j, _ in own)])
        values = np.concatenate([np.zeros(0), *(np.ravel(armature) for _, armature in own)])
        parts = [(slots, slots, values), (rotors.rows, rotors.columns, rotors.values)]
        fixed = [FixedJoint(s.joint.name, body, s.near, s.far, s.joint) for s, body in self.fixed]
        free = Mechanism(
            name=d.name,
            gravity=numbers(d.gravity),
            joints=tuple(self.joints),
            bodies=tuple(self._bodies()),
            frames=tuple(frames),
            closures=tuple(self._closures()),
            springs=tuple(self._springs()),
            closure_springs=tuple(self._closure_springs()),
            contacts=tuple(self._contacts()),
            fixed_joints=tuple(fixed),
            armature_entries=Entries.summed((self.nv, self.nv), parts),
            motors=motors,
            motor_damping_entries=motors.reflected_damping,
            nq=self.nq,
            nv=self.nv,
            description=d,
            rods=d.rods,
            guides=d.guides,
            relations=d.relations,
            rolling=d.rolling,
            velocity_relations=d.velocity_relations,
        )
        return eliminated(free, d.couplings)

    def _bodies(self) -> list[TreeBody]:
        parts: list[list[tuple[float, Array, Array]]] = [[] for _ in self.joints]
        links: list[list[str]] = [[] for _ in self.joints]
        for link in self.description.bodies:
            body, T = self.place[link.name]
            if body == GROUND:
                continue
            R = T[:3, :3]
            parts[body].append((_mass(link.mass), R @ link.com + T[:3, 3], R @ link.inertia @ R.T))
            links[body].append(link.name)
        result = []
        for i, name in enumerate(self.names):
            mass, com, inertia = parts[i][0] if len(parts[i]) == 1 else _joined(parts[i])
            result.append(TreeBody(i, name, mass, com, inertia, tuple(links[i])))
        return result

    def _frame(self, name: str, link: str, origin: Array) -> BodyFrame:
        body, T = self.place[link]
        T = T @ numbers(origin)
        return BodyFrame(name, body, tidy_rotation(T[:3, :3]), T[:3, 3].copy())

    def _frames(self) -> list[BodyFrame]:
        links = [WORLD, *(b.name for b in self.description.bodies if b.name != WORLD)]
        result = [self._frame(name, name, np.eye(4)) for name in links]
        return result + [self._frame(f.name, f.body, f.origin) for f in self.description.frames]

    def _closures(self) -> list[Closure]:
        result = []
        for loop in self.description.loops:
            model = None if loop.kind == "fixed" else joint_model(loop)
            a = self._frame(f"{loop.name}.a", loop.body_a, loop.origin_a)
            b = self._frame(f"{loop.name}.b", loop.body_b, loop.origin_b)
            if a.body == b.body:
                raise InputError(
                    f"loop {loop.name!r} joins {loop.body_a!r} and {loop.body_b!r}, which are one rigid body; "
                    "a loop must join two bodies that can move apart"
                )
            result.append(Closure(loop.name, model, a, b))
        return result

    def _closure_springs(self) -> list[ClosureSpring]:
        pairs = zip(self.description.loops, self._closures(), strict=True)
        found = [closure_spring(loop, closure.a, closure.b) for loop, closure in pairs]
        return [spring for spring in found if spring is not None]

    def _contacts(self) -> list[GroundContact]:
        result = []
        for contact in self.description.contacts:
            body, T = self.place[contact.body]
            if body == GROUND:
                raise InputError(f"contact {contact.name!r} is of {contact.body!r}, which is part of the ground")
            result.append(GroundContact(body, np.asarray(contact.points) @ T[:3, :3].T + T[:3, 3], contact))
        return result

    def _springs(self) -> list[PointSpring]:
        result = []
        for s in self.description.springs:
            (body_a, Ta), (body_b, Tb) = self.place[s.body_a], self.place[s.body_b]
            point_a = Ta[:3, :3] @ s.point_a + Ta[:3, 3]
            point_b = Tb[:3, :3] @ s.point_b + Tb[:3, 3]
            result.append(PointSpring(s.name, body_a, point_a, body_b, point_b, s.stiffness, s.length, s.damping))
        return result


def _inverse(origin: Any) -> Array:
    return inverse_pose(numbers(origin), domain=domain_of(origin))


def _joined(parts: list[tuple[Any, Array, Array]]) -> tuple[Any, Array, Array]:
    return joined_inertia(parts, domain=domain_of(*(x for part in parts for x in part)))


def _mass(mass: Any) -> Any:
    return mass if is_symbolic(mass) else float(mass)


def tidy_rotation(rotation: Array) -> Array:
    """The rotation with entries that are 0 or ±1 up to rounding made exact, so that expression graphs can fold them."""
    if rotation.dtype == object:
        return _tidy_graph(rotation)
    whole = np.rint(rotation) + 0.0  # never −0
    return np.where(np.abs(rotation - whole) < 4e-16, whole, rotation)


def _tidy_graph(rotation: Array) -> Array:
    """The same where some entries are scalars of an expression graph."""
    result = rotation.copy()
    for index, entry in np.ndenumerate(rotation):
        if not is_symbolic(entry):
            result[index] = float(tidy_rotation(np.array(float(entry))))
    return result


__all__ = [
    "GROUND",
    "BodyFrame",
    "Closure",
    "FixedJoint",
    "Inertial",
    "Mechanism",
    "PointSpring",
    "TreeBody",
    "TreeJoint",
    "mechanism_from",
    "tidy_rotation",
    "unlimited",
]
