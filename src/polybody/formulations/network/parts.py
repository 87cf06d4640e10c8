"""The components of a network, as they are put in: numbers or symbols, nothing computed yet.

A port is a frame fixed to its component: a place (3) and axes (3×3). A port's full name is `component.port`; the ground
is the component `world`. Electrical nodes are names of their own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.description.expressions import Expression
from polybody.description.records import Friction, Limits
from polybody.errors import InputError
from polybody.late import dataclass, field
from polybody.mechanism.joints import JointModel

Array = np.ndarray
#: the ground's name, and the name of every body's port at its mass centre
WORLD, CENTRE = "world", "G"


def as_array(values: Any) -> Array:
    """float64 where all entries are numbers, else an object array of symbols."""
    raw = np.asarray(values, dtype=object)
    numeric = all(isinstance(x, (int, float, np.number)) for x in raw.ravel())
    return raw.astype(float) if numeric else raw


@dataclass(frozen=True, eq=False)
class Port:
    """A frame fixed to a component."""

    component: str
    name: str
    place: Array
    axes: Array

    @property
    def full(self) -> str:
        return f"{self.component}.{self.name}"


def port_of(component: str, name: str, where: Any) -> Port:
    """A port from a point (3), or from a 4×4 pose."""
    array = as_array(where)
    if array.shape == (3,):
        return Port(component, name, array, np.eye(3))
    if array.shape == (4, 4):
        return Port(component, name, array[:3, 3], array[:3, :3])
    raise InputError(f"port {component}.{name}: a point (3) or a pose (4×4) is expected, got shape {array.shape}")


@dataclass(frozen=True, eq=False)
class RigidBody:
    """A body with k ports and its mass centre G: (1)."""

    name: str
    mass: Any
    com: Array
    inertia: Array  # about the com, body axes
    ports: dict[str, Port]

    @property
    def ideal(self) -> bool:
        """True for the ideal body (3), which has neither mass nor inertia."""
        return not np.any(self.inertia) and bool(np.all(np.asarray(self.mass) == 0))


@dataclass(frozen=True, eq=False)
class JointPart:
    """A joint from port a (its parent side) to port b (its child side): x_b − x_a = Φ v, Φᵀ y = tau.

    model None is a weld. `driven` marks a velocity driver: its motion is always given.
    """

    name: str
    kind: str
    model: JointModel | None
    a: str
    b: str
    stiffness: Array
    damping: Array
    rest: Array
    armature: Array  # nv×nv
    driven: bool = False
    friction: Friction | None = None
    limits: Limits | None = None  # compliant stops

    @property
    def nv(self) -> int:
        return 0 if self.model is None else self.model.nv

    @property
    def nq(self) -> int:
        return 0 if self.model is None else self.model.nq


@dataclass(frozen=True, eq=False)
class SpringPart:
    """A spring and damper along the line from port a to port b; a damper where the stiffness is zero."""

    name: str
    a: str
    b: str
    stiffness: Any
    length: Any
    damping: Any


@dataclass(frozen=True, eq=False)
class ForceDriver:
    """A through driver: the wrench [moment; force] it exerts on port b (and minus it on a), world axes."""

    name: str
    a: str | None  # None: the ground
    b: str
    wrench: Array


@dataclass(frozen=True, eq=False)
class ElectricPart:
    """A one-port between two nodes: voltage source, current source, or resistor (`value` in V, A or Ω)."""

    name: str
    kind: str  # "voltage", "current", "resistor"
    plus: str
    minus: str
    value: Any


@dataclass(frozen=True, eq=False)
class MotorPart:
    """A motor whose shaft turns with E v; its winding is a branch of the electrical graph, or open where plus is None.

    u = R i + L di/dt + K_e E v,   tau = Eᵀ (K_t i − J E a − B E v);   a gear on one joint is E = N.
    """

    name: str
    speeds: dict[str, Array]  # E: {joint: nv numbers}
    torque_constant: Any
    speed_constant: Any
    resistance: Any
    inductance: Any
    inertia: Any
    damping: Any
    plus: str | None
    minus: str | None


@dataclass(frozen=True, eq=False)
class GearPart:
    """A gear between two joints of one freedom: v_f = k v_l, q_f = k q_l + c; what it exerts, λ on f, is −k λ on l."""

    name: str
    follower: str
    leader: str
    factor: Any
    offset: Any


@dataclass(frozen=True, eq=False)
class HoldPart:
    """A rod, or a guide: the point of port b stays `length` from port a, on a "line" or in a "plane" of port a."""

    name: str
    kind: str  # "rod", "line", "plane"
    a: str
    b: str
    length: Any  # of a rod
    axis: Array  # of a guide, in the axes of port a: along the line, or across the plane

    @property
    def size(self) -> int:
        """How many directions it holds."""
        return 2 if self.kind == "line" else 1


@dataclass(frozen=True, eq=False)
class RelationPart:
    """f(q) = 0 for an expression in joint coordinates."""

    name: str
    expression: Expression

    @property
    def joints(self) -> tuple[str, ...]:
        return self.expression.joints


@dataclass(eq=False)
class Parts:
    """All components of a network, by kind and name."""

    bodies: dict[str, RigidBody] = field(default_factory=dict)
    ground: dict[str, Port] = field(default_factory=dict)
    joints: dict[str, JointPart] = field(default_factory=dict)
    springs: dict[str, SpringPart] = field(default_factory=dict)
    forces: dict[str, ForceDriver] = field(default_factory=dict)
    electric: dict[str, ElectricPart] = field(default_factory=dict)
    motors: dict[str, MotorPart] = field(default_factory=dict)
    multiports: dict[str, Any] = field(default_factory=dict)
    gears: dict[str, GearPart] = field(default_factory=dict)
    holds: dict[str, HoldPart] = field(default_factory=dict)
    relations: dict[str, RelationPart] = field(default_factory=dict)

    def followers(self) -> dict[str, GearPart]:
        """The gears by the joints that follow by them."""
        return {gear.follower: gear for gear in self.gears.values()}

    def windings(self) -> dict[str, MotorPart]:
        """The motors whose windings are connected."""
        return {name: motor for name, motor in self.motors.items() if motor.plus is not None}

    def names(self) -> set[str]:
        return {name for kind in vars(self).values() if kind is not self.ground for name in kind}


__all__ = [
    "CENTRE",
    "WORLD",
    "ElectricPart",
    "ForceDriver",
    "GearPart",
    "HoldPart",
    "JointPart",
    "MotorPart",
    "Parts",
    "Port",
    "RelationPart",
    "RigidBody",
    "SpringPart",
    "as_array",
    "port_of",
]
