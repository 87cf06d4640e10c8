"""What a person or a file says about a mechanism: frozen records in SI units and radians.

Records hold what was said, in the order it was said: fixed joints are still joints here, a joint given child-to-parent
is still so, loops are still loops. `mechanism` turns them into a graph and a tree. Arrays inside records are read-only.

`source` names where a record came from ("robot.urdf:42"), so that every later complaint can say it.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from collections.abc import Callable
from typing import Any

import numpy as np

from polybody.late import dataclass, field

Array = np.ndarray

#: The ground's name.
WORLD = "world"

KINDS = (
    "fixed",
    "revolute",
    "continuous",
    "prismatic",
    "screw",
    "cylindrical",
    "universal",
    "spherical",
    "planar",
    "floating",
    "custom",
)

#: (nq, nv) of the kinds whose size does not depend on their map
SIZES = {
    "fixed": (0, 0),
    "revolute": (1, 1),
    "continuous": (1, 1),
    "prismatic": (1, 1),
    "screw": (1, 1),
    "cylindrical": (2, 2),
    "universal": (2, 2),
    "spherical": (4, 3),
    "planar": (3, 3),
    "floating": (7, 6),
}


def frozen_array(values: Any) -> Array:
    """A read-only float64 copy."""
    array = np.array(values, dtype=float)
    array.setflags(write=False)
    return array


def _identity() -> Array:
    return frozen_array(np.eye(4))


def _z_axis() -> Array:
    return frozen_array((0.0, 0.0, 1.0))


@dataclass(frozen=True, eq=False)
class Visual:
    """A shape to draw, fixed to a body: `shape` is mesh, box, cylinder or sphere.

    `size` is the mesh's scale (3), the box's edges (3), (radius, length) or (radius,).
    """

    shape: str
    size: Array
    origin: Array = field(default_factory=_identity)
    mesh: str | None = None
    color: tuple[float, float, float, float] | None = None


@dataclass(frozen=True, eq=False)
class Body:
    """A rigid body; `com` in its frame, `inertia` (3×3) about the com in body axes."""

    name: str
    mass: float = 0.0
    com: Array = field(default_factory=lambda: frozen_array(np.zeros(3)))
    inertia: Array = field(default_factory=lambda: frozen_array(np.zeros((3, 3))))
    visuals: tuple[Visual, ...] = ()
    source: str | None = None


@dataclass(frozen=True, eq=False)
class Limits:
    """Bounds of a joint, one number per velocity coordinate; infinite where unbounded.

    `effort` (N or N·m), `velocity` and `power` (W; None: unbounded) bound what drives the joint. A joint whose limits
    have a `stiffness` has compliant stops (see `mechanism.compliant_stops`), with Hunt-Crossley `damping` (s/m, s/rad).
    """

    lower: Array
    upper: Array
    velocity: Array
    effort: Array
    power: Array | None = None
    stiffness: Array | None = None
    damping: Array | None = None


#: What limits say where nothing is given.
UNLIMITED = {
    "lower": -np.inf, "upper": np.inf, "velocity": np.inf, "effort": np.inf, "power": None, "stiffness": None,
    "damping": None,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Friction:
    """What resists a joint's motion, one number per velocity coordinate (see `mechanism.friction` for the law).

    `coulomb` and `static` are forces or moments, `viscous` force per speed, `stribeck` and `regularisation` speeds,
    `exponent` that of the Stribeck curve; `load` adds to both levels per newton of the joint's reaction force.
    """

    coulomb: Array
    viscous: Array
    static: Array
    stribeck: Array
    exponent: Array
    regularisation: Array
    load: Array


#: What a friction says where nothing is given; `static` is then `coulomb`.
FRICTION_DEFAULTS = {
    "coulomb": 0.0, "viscous": 0.0, "static": None, "stribeck": 0.1, "exponent": 2.0, "regularisation": 0.01,
    "load": 0.0,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Joint:
    """A joint between two bodies.

    `origin` places the joint frame in the parent; at neutral the child frame coincides with it. `stiffness` and
    `damping` are nv×nv matrices, `armature` nv numbers, `rest` the configuration (nq numbers, or None for neutral)
    where the spring is slack. `active` says for each velocity coordinate whether it is driven. For
    `custom`, `map` is the 6×r matrix H, columns from the child outwards, and `stages` how many columns each simple
    stage takes (None: one simple stage).
    """

    name: str
    kind: str
    parent: str
    child: str
    origin: Array = field(default_factory=_identity)
    axis: Array = field(default_factory=_z_axis)
    pitch: float | None = None
    map: Array | None = None
    stages: tuple[int, ...] | None = None
    stiffness: Array | None = None
    damping: Array | None = None
    friction: Friction | None = None
    rest: Array | None = None
    armature: Array | None = None
    limits: Limits | None = None
    active: tuple[bool, ...] | None = None
    source: str | None = None


def joint_size(record: Joint | Loop) -> tuple[int, int]:
    """(nq, nv) of a joint or loop record."""
    if record.kind == "custom":
        columns = 0 if record.map is None else int(np.shape(record.map)[1])
        return columns, columns
    return SIZES[record.kind]


@dataclass(frozen=True, eq=False)
class Frame:
    """A named frame fixed to a body."""

    name: str
    body: str
    origin: Array = field(default_factory=_identity)
    source: str | None = None


@dataclass(frozen=True, eq=False)
class Loop:
    """A cut joint: the frames `origin_a` on body_a and `origin_b` on body_b are parent and child of a `kind` joint.

    `stiffness`, `damping`, `friction`, `rest`, `armature` and `limits` are a `Joint`'s, in the cut joint's coordinates.
    """

    name: str
    kind: str
    body_a: str
    body_b: str
    origin_a: Array = field(default_factory=_identity)
    origin_b: Array = field(default_factory=_identity)
    axis: Array = field(default_factory=_z_axis)
    pitch: float | None = None
    map: Array | None = None
    stages: tuple[int, ...] | None = None
    stiffness: Array | None = None
    damping: Array | None = None
    friction: Friction | None = None
    rest: Array | None = None
    armature: Array | None = None
    limits: Limits | None = None
    source: str | None = None


#: What a loop's record may say of the forces in its cut joint.
LOOP_DRIVE = ("stiffness", "damping", "friction", "rest", "armature", "limits")
#: What of it makes a spring, damper and friction.
LOOP_SPRING = ("stiffness", "damping", "friction", "rest")
#: Kinds of cut joints whose springs and dampers act, and their coordinates (see `mechanism.closure_springs`).
SPRUNG_LOOPS = {
    "revolute": ("turn",), "continuous": ("turn",), "prismatic": ("slide",), "screw": ("thread",),
    "cylindrical": ("turn", "slide"),
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Spring:
    """A spring and damper along the line between two points, each in its body's frame."""

    name: str
    body_a: str
    point_a: Array
    body_b: str
    point_b: Array
    stiffness: float
    length: float = 0.0
    damping: float = 0.0
    source: str | None = None


@dataclass(frozen=True, eq=False)
class Contact:
    """Points (n, 3) of a body, or spheres of `radius` around them, that touch the ground (see `mechanism.contacts`).

    The ground is the world's plane through `point` with unit `normal`, or the terrain z = h(x, y): an expression in x
    and y, or `heights` (nx, ny) on a grid over `extent` (x_low, x_high, y_low, y_high). `damping` is Hunt-Crossley's
    (s/m), `friction` Coulomb's coefficient, `slip` the speed below which it is smoothed.
    """

    name: str
    body: str
    points: Array
    stiffness: float
    damping: float = 0.0
    friction: float = 0.0
    radius: float = 0.0
    exponent: float = 1.5
    slip: float = 0.01
    point: Array = field(default_factory=lambda: frozen_array(np.zeros(3)))
    normal: Array = field(default_factory=_z_axis)
    terrain: str | None = None
    heights: Array | None = None
    extent: Array | None = None
    source: str | None = None


@dataclass(frozen=True, eq=False)
class Coupling:
    """q of `joint` = ratio · q of `source_joint` + offset (URDF's mimic)."""

    joint: str
    source_joint: str
    ratio: float = 1.0
    offset: float = 0.0
    source: str | None = None


@dataclass(frozen=True, eq=False)
class Rod:
    """A massless rod that keeps two points, each in its body's frame, `length` apart."""

    name: str
    body_a: str
    point_a: Array
    body_b: str
    point_b: Array
    length: float
    source: str | None = None


@dataclass(frozen=True, eq=False)
class Guide:
    """A point of body_b kept on a line ("line") or in a plane ("plane") of body_a, through point_a.

    `axis`, in body_a's frame, is the line's direction or the plane's normal.
    """

    name: str
    kind: str
    body_a: str
    point_a: Array
    axis: Array
    body_b: str
    point_b: Array
    source: str | None = None


@dataclass(frozen=True, eq=False)
class Relation:
    """expression = 0, an expression in joint coordinates (see `expressions`)."""

    name: str
    expression: str
    source: str | None = None


#: What may roll or glide on the ground.
ROLLING_KINDS = ("wheel", "disk", "sphere", "ellipsoid", "blade")


@dataclass(frozen=True, eq=False)
class Rolling:
    """What rolls without slipping, or a blade, on a plane of the world (see `constraints.rolling`).

    `point` is its centre in the body's frame, `axis` a wheel's or disk's axis or a blade's direction there, `radius`
    one number, or an ellipsoid's three semi-axes. A wheel that is not `lateral` may slide along its axis. Wheels and
    blades belong to bodies that other joints keep on the ground; disks, spheres and ellipsoids stay there themselves.
    """

    name: str
    body: str
    kind: str
    radius: Array = field(default_factory=lambda: frozen_array([0.0]))
    point: Array = field(default_factory=lambda: frozen_array(np.zeros(3)))
    axis: Array = field(default_factory=lambda: frozen_array((0.0, 1.0, 0.0)))
    normal: Array = field(default_factory=_z_axis)
    ground: Array = field(default_factory=lambda: frozen_array(np.zeros(3)))
    lateral: bool = True
    source: str | None = None


@dataclass(frozen=True, eq=False)
class VelocityRelation:
    """Σ coefficient · velocity = equals: (joint, which of its velocities, a number or expression in joint coordinates).

    `equals` is such a number or expression too; time in it is the coordinate of a joint whose own relation is rate = 1.
    """

    name: str
    terms: tuple[tuple[str, int, str], ...]
    source: str | None = None
    equals: str = "0"


@dataclass(frozen=True, eq=False)
class Motor:
    """A direct-current motor that drives one velocity coordinate of a joint.

    L di/dt + R i + speed_constant · motor speed = voltage; motor torque = torque_constant · i. `gear` is motor speed
    over joint speed. `rotor_inertia` and `damping` are at the motor's shaft; they add to what the joint has.
    """

    name: str
    joint: str
    resistance: float
    inductance: float
    torque_constant: float
    speed_constant: float
    rotor_inertia: float = 0.0
    damping: float = 0.0
    gear: float = 1.0
    coordinate: int = 0
    source: str | None = None


@dataclass(frozen=True, eq=False)
class Actuator:
    """What turns a control u into a force on one velocity coordinate of a joint, through a gear.

    With l = gear · q and its rate, force = gain · u + bias[0] + bias[1] · l + bias[2] · l̇, u within `control` and
    force within `limit`; the joint gets gear · force. A motor has no bias, a position servo gain kp and bias (0, −kp,
    −kd).
    """

    name: str
    joint: str
    gain: float = 1.0
    bias: Array = field(default_factory=lambda: frozen_array(np.zeros(3)))
    gear: float = 1.0
    control: Array = field(default_factory=lambda: frozen_array((-np.inf, np.inf)))
    limit: Array = field(default_factory=lambda: frozen_array((-np.inf, np.inf)))
    coordinate: int = 0
    source: str | None = None


@dataclass(frozen=True, eq=False)
class Transmission:
    """A drive that couples the motors of several joints: joint speeds = matrix · motor speeds, in joints' order."""

    name: str
    joints: tuple[str, ...]
    matrix: Array
    source: str | None = None


@dataclass(frozen=True, eq=False)
class Configuration:
    """A configuration with a name: (joint, its numbers of q) pairs; joints that are not named are neutral."""

    name: str
    joints: tuple[tuple[str, tuple[float, ...]], ...]
    source: str | None = None


@dataclass(frozen=True, eq=False)
class Constant:
    """A number that a mechanism file names; `expression` says how it follows from earlier ones, None for a number."""

    name: str
    value: float
    expression: str | None = None


@dataclass(frozen=True, eq=False)
class Formula:
    """A number of a record that is an expression of constants; `place` is that of `parameters.Parameter`."""

    place: tuple[Any, ...]
    expression: str


@dataclass(frozen=True, eq=False)
class Description:
    """Description of a complete mechanism: records in SI units.

    `constants` are numbers with names, `formulas` where they stand; the records hold the values.
    """

    name: str  # of the mechanism
    gravity: Array = field(default_factory=lambda: frozen_array((0.0, 0.0, -9.81)))  # m/s², world axes
    bodies: tuple[Body, ...] = ()  # mass, centre of mass, inertia, shapes
    joints: tuple[Joint, ...] = ()  # between two bodies; with the bodies they form the tree
    frames: tuple[Frame, ...] = ()  # named places on bodies
    loops: tuple[Loop, ...] = ()  # cut joints
    springs: tuple[Spring, ...] = ()  # between two points
    couplings: tuple[Coupling, ...] = ()  # linear relations of joint positions
    source: str | None = None  # the file it was read from
    motors: tuple[Motor, ...] = ()  # electric motors on joints
    transmissions: tuple[Transmission, ...] = ()  # gears from motors to several joints
    rods: tuple[Rod, ...] = ()  # massless, of constant length between two points
    guides: tuple[Guide, ...] = ()  # points that move along curves or surfaces
    relations: tuple[Relation, ...] = ()  # equations between joint positions
    contacts: tuple[Contact, ...] = ()  # points of bodies against planes and height fields
    rolling: tuple[Rolling, ...] = ()  # bodies that roll without slip
    actuators: tuple[Actuator, ...] = ()  # force elements with an input
    velocity_relations: tuple[VelocityRelation, ...] = ()  # linear equations between velocities
    configurations: tuple[Configuration, ...] = ()  # named values of q
    constants: tuple[Constant, ...] = ()
    formulas: tuple[Formula, ...] = ()
    #: the `network:` section of a mechanism file as nested dicts, lists and texts; `networks.reading` reads it
    network: Any = None

    def digest(self) -> str:
        """Hash of everything that affects the motion (not sources, not visual shapes)."""
        digest = hashlib.sha256()
        _hash(self, digest.update)
        return digest.hexdigest()


def without_friction(description: Description) -> Description:
    """The same mechanism without friction in its joints and loops."""
    return dataclasses.replace(
        description,
        joints=tuple(dataclasses.replace(joint, friction=None) for joint in description.joints),
        loops=tuple(dataclasses.replace(loop, friction=None) for loop in description.loops),
    )


def as_data(record: Any, *, skip: tuple[str, ...] = ("source",)) -> Any:
    """The record as nested lists, dicts, strings and exact numbers (floats as hex), for comparing and hashing."""
    if isinstance(record, float):
        return (record + 0.0).hex()
    if isinstance(record, np.ndarray):
        return _exact(record.tolist())
    if isinstance(record, (tuple, list)):
        return [as_data(x, skip=skip) for x in record]
    names = _names_of(type(record))
    if names is None:
        return record
    return {name: as_data(getattr(record, name), skip=skip) for name in names if name not in skip}


def _exact(values: Any) -> Any:
    """The numbers of an array, as nested lists."""
    if type(values) is list:
        return [(x + 0.0).hex() if type(x) is float else _exact(x) for x in values]
    return (values + 0.0).hex() if isinstance(values, float) else values


#: fields of records that do not affect the motion
NOT_OF_MOTION = ("source", "visuals", "configurations", "constants", "formulas", "network")


def _hash(record: Any, write: Callable[[bytes], Any]) -> None:
    """Write what a record says, exactly, each part with its kind and length so that no two records read alike.

    First answers wait for it: an array is written as its bytes, not number by number.
    """
    if record is None:  # most fields are
        write(b"s4 None")
    elif isinstance(record, np.ndarray) and record.dtype == np.float64:
        write(b"a%r" % (record.shape,))
        write((record + 0.0).tobytes())
    elif isinstance(record, float):
        write(b"f" + (record + 0.0).hex().encode())
    elif isinstance(record, (str, int)):
        write(b"s%d %r" % (len(str(record)), record))
    elif isinstance(record, (tuple, list)):
        write(b"[%d" % len(record))
        for x in record:
            _hash(x, write)
    elif (names := _names_of_motion(type(record))) is not None:
        write(type(record).__name__.encode())
        for name in names:
            _hash(getattr(record, name), write)
    else:  # what is rare
        text = json.dumps(as_data(record), sort_keys=True)
        write(b"j%d %s" % (len(text), text.encode()))


@functools.cache
def _names_of(kind: type) -> tuple[str, ...] | None:
    """The fields of a record's class; None of other classes."""
    return tuple(f.name for f in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else None


@functools.cache
def _names_of_motion(kind: type) -> tuple[str, ...] | None:
    """Those of them that affect the motion."""
    names = _names_of(kind)
    return None if names is None else tuple(name for name in names if name not in NOT_OF_MOTION)


def same_description(a: Description, b: Description) -> bool:
    """True when both say the same, bit by bit."""
    return bool(as_data(a) == as_data(b))


__all__ = [
    "FRICTION_DEFAULTS",
    "KINDS",
    "LOOP_DRIVE",
    "LOOP_SPRING",
    "ROLLING_KINDS",
    "SIZES",
    "SPRUNG_LOOPS",
    "UNLIMITED",
    "WORLD",
    "Actuator",
    "Body",
    "Configuration",
    "Contact",
    "Coupling",
    "Description",
    "Frame",
    "Friction",
    "Guide",
    "Joint",
    "Limits",
    "Loop",
    "Motor",
    "Relation",
    "Rod",
    "Rolling",
    "Spring",
    "Transmission",
    "VelocityRelation",
    "Visual",
    "as_data",
    "frozen_array",
    "joint_size",
    "same_description",
    "without_friction",
]
