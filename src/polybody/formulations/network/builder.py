"""`Network`: a mechanism put together from components that are connected at ports.

    net = Network("pendulum", gravity=(0, -9.81, 0))
    net.ground(pin=(0, 0, 0))
    net.body("rod", mass=1.0, com=(0.5, 0, 0), inertia=(0, 0.08, 0.08), ports={"pin": (0, 0, 0)})
    net.joint("hinge", "revolute", "world.pin", "rod.pin")
    answer = net.solve({"hinge": 0.3}, {"hinge": 1.0})

Every port takes one connection. Wrenches are [moment; force] and twists [angular; linear], as everywhere outside.
"""

from __future__ import annotations

import difflib
from typing import Any

import numpy as np

from polybody.description.expressions import parse
from polybody.description.records import Friction, Joint, Limits
from polybody.errors import InputError
from polybody.formulations.network.parts import (
    CENTRE,
    WORLD,
    ElectricPart,
    ForceDriver,
    GearPart,
    HoldPart,
    JointPart,
    MotorPart,
    Parts,
    Port,
    RelationPart,
    RigidBody,
    SpringPart,
    as_array,
    port_of,
)
from polybody.mechanism.joints import JointModel
from polybody.mechanism.kinds import joint_model
from polybody.names import counted

Array = np.ndarray


class NetworkBuilder:
    """Collects components and connections, and rejects what cannot be connected."""

    def __init__(self, name: str = "network", gravity: Any = (0.0, 0.0, -9.81)) -> None:
        self.name = name
        self.gravity = as_array(gravity)
        if self.gravity.shape != (3,):
            raise InputError(f"gravity has shape {self.gravity.shape}, expected three numbers in world axes, m/s²")
        self.parts = Parts()
        self.ports: dict[str, Port] = {}
        #: full name of a port: what is connected there
        self.connections: dict[str, str] = {}

    def __repr__(self) -> str:
        p = self.parts
        return (
            f"<Network {self.name!r}: {counted(len(p.bodies) + len(p.multiports), 'body', 'bodies')}, "
            f"{counted(len(p.joints), 'joint')}>"
        )

    # -- components -------------------------------------------------------------------------------------------------

    def ground(self, ports: dict[str, Any] | None = None, **more: Any) -> None:
        """Ports on the ground, at fixed places: `world.NAME`."""
        for name, where in {**(ports or {}), **more}.items():
            port = port_of(WORLD, name, where)
            self._new_port(port)
            self.parts.ground[name] = port

    def body(
        self, name: str, mass: Any = 0, com: Any = (0, 0, 0), inertia: Any = (0, 0, 0), *, ports: dict[str, Any]
    ) -> None:
        """A rigid body with its ports (points or 4×4 poses in its frame); no mass and inertia: the ideal body.

        `inertia` about the com, body axes: (xx, yy, zz), (xx, yy, zz, xy, xz, yz) or 3×3.
        """
        self._new_name(name)
        if not ports:
            raise InputError(f"body {name!r} has no port, so that nothing can be connected to it")
        if CENTRE in ports:
            raise InputError(f"body {name!r}: the port {CENTRE!r} is its mass centre, and always there")
        if isinstance(mass, (int, float)) and not (0 <= mass < np.inf):
            raise InputError(f"body {name!r}: its mass is {mass}, expected a finite number that is not negative, in kg")
        centre = as_array(com)
        if centre.shape != (3,):
            raise InputError(f"body {name!r}: com has shape {centre.shape}, expected three numbers in its frame")
        made = {key: port_of(name, key, where) for key, where in ports.items()}
        made[CENTRE] = Port(name, CENTRE, centre, np.eye(3))
        for port in made.values():
            self._new_port(port)
        self.parts.bodies[name] = RigidBody(name, mass, centre, _inertia(name, inertia), made)

    def joint(
        self,
        name: str,
        kind: str,
        a: str,
        b: str,
        axis: Any = (0, 0, 1),
        *,
        pitch: float | None = None,
        map: Any = None,
        stages: tuple[int, ...] | None = None,
        model: JointModel | None = None,
        stiffness: Any = 0,
        damping: Any = 0,
        rest: Any = None,
        armature: Any = 0,
        driven: bool = False,
        friction: Friction | None = None,
        limits: Limits | None = None,
    ) -> None:
        """A joint from port a to port b: at its neutral configuration the two port frames coincide.

        `kind` as in `pb.Builder.joint` ("fixed" welds). `friction` and `limits` (compliant stops) are a joint record's.
        `driven` makes it a velocity driver: its motion is given.
        """
        if model is None and kind != "fixed":
            record = Joint(name, kind, a, b, axis=_unit(name, axis), pitch=pitch,
                           map=None if map is None else np.asarray(map, dtype=float), stages=stages)
            model = joint_model(record)
        nv = 0 if model is None else model.nv
        neutral = np.zeros(0) if model is None else model.neutral()
        part = JointPart(
            name, kind, model, a, b, _square(name, "stiffness", stiffness, nv), _square(name, "damping", damping, nv),
            neutral if rest is None else np.atleast_1d(as_array(rest)), _square(name, "armature", armature, nv), driven,
            friction, limits,
        )
        self._new_name(name)
        self._connect(name, a, b)
        self.parts.joints[name] = part

    def motion(self, name: str, port: str) -> None:
        """A velocity driver that moves a port in all six directions: a driven floating joint from the ground."""
        self._check_port(port, name)
        origin = f"{name}_origin"
        self.ground({origin: (0, 0, 0)})
        self.joint(name, "floating", f"{WORLD}.{origin}", port, driven=True)

    def spring(self, name: str, a: str, b: str, stiffness: Any, length: Any = 0, damping: Any = 0) -> None:
        """A spring (and damper) along the line between two ports."""
        self._new_name(name)
        self._connect(name, a, b)
        self.parts.springs[name] = SpringPart(name, a, b, stiffness, length, damping)

    def damper(self, name: str, a: str, b: str, damping: Any) -> None:
        """A damper along the line between two ports."""
        self.spring(name, a, b, 0, 0, damping)

    def force(self, name: str, b: str, a: str | None = None, wrench: Any = (0, 0, 0, 0, 0, 0)) -> None:
        """A force driver: the wrench [moment; force] on port b, world axes; against port a, or the ground."""
        value = as_array(wrench)
        if value.shape != (6,):
            raise InputError(
                f"force {name!r}: the wrench has shape {value.shape}, expected [moment; force], six numbers"
            )
        self._new_name(name)
        self._connect(name, *((b,) if a is None else (a, b)))
        self.parts.forces[name] = ForceDriver(name, a, b, value)

    def motor(
        self,
        name: str,
        joint: str,
        nodes: tuple[str, str] | None = None,
        *,
        torque_constant: Any,
        speed_constant: Any = None,
        resistance: Any = 0,
        inductance: Any = 0,
        rotor_inertia: Any = 0,
        damping: Any = 0,
        gear: Any = 1,
        coordinate: int = 0,
    ) -> None:
        """A motor on one coordinate of a joint, as `pb.Builder.motor`; its winding lies between two electrical nodes.

        Without `speed_constant` it equals the torque constant; without `nodes` the winding is open, and the motor adds
        only its rotor and its bearing.
        """
        if joint not in self.parts.joints:
            raise InputError(f"motor {name!r} is on joint {joint!r}, {_unknown(joint, self.parts.joints)}")
        size = self.parts.joints[joint].nv
        if not 0 <= coordinate < size:
            raise InputError(
                f"motor {name!r}: joint {joint!r} has {counted(size, 'coordinate')}, so no coordinate {coordinate}"
            )
        speeds = np.zeros(size, dtype=object)
        speeds[coordinate] = gear
        emf = torque_constant if speed_constant is None else speed_constant
        plus, minus = nodes if nodes is not None else (None, None)
        self.add_motor(MotorPart(name, {joint: as_array(speeds)}, torque_constant, emf, resistance, inductance,
                                 rotor_inertia, damping, plus, minus))

    def add_motor(self, motor: MotorPart) -> None:
        """A motor that may turn with several joints."""
        if motor.plus is not None and motor.plus == motor.minus:
            raise InputError(f"motor {motor.name!r} has both ends of its winding at node {motor.plus!r}")
        if motor.plus is not None and bool(motor.inductance == 0) and bool(motor.resistance == 0):
            raise InputError(f"motor {motor.name!r} has neither resistance nor inductance; its current is not bounded")
        self._new_name(motor.name)
        self.parts.motors[motor.name] = motor

    def gear(self, name: str, follower: str, leader: str, factor: Any, offset: Any = 0) -> None:
        """A joint that follows another: q of `follower` is factor · q of `leader` + offset.

        Both have one coordinate. Arrays q, v and forces then leave the follower out; mappings may name it.
        """
        for joint in (follower, leader):
            if joint not in self.parts.joints:
                raise InputError(f"gear {name!r} is on joint {joint!r}, {_unknown(joint, self.parts.joints)}")
            part = self.parts.joints[joint]
            if (part.nq, part.nv) != (1, 1):
                raise InputError(f"gear {name!r}: joint {joint!r} has {counted(part.nv, 'coordinate')}, expected one")
        if follower in self.parts.followers():
            other = self.parts.followers()[follower].name
            raise InputError(f"gear {name!r}: joint {follower!r} follows already, by {other!r}")
        if follower == leader or leader in self.parts.followers():
            raise InputError(f"gear {name!r}: {leader!r} follows a joint itself; let {follower!r} follow that one")
        if any(gear.leader == follower for gear in self.parts.gears.values()):
            raise InputError(f"gear {name!r}: {follower!r} leads a joint itself; let that one follow {leader!r}")
        self._new_name(name)
        self.parts.gears[name] = GearPart(name, follower, leader, factor, offset)

    def rod(self, name: str, a: str, b: str, length: Any) -> None:
        """A massless rod: ports a and b stay `length` apart."""
        if isinstance(length, (int, float)) and not 0 < length < np.inf:
            raise InputError(f"rod {name!r}: its length is {length}, expected a finite number above zero, in m")
        self._hold(HoldPart(name, "rod", a, b, length, np.zeros(3)))

    def point_on_line(self, name: str, a: str, b: str, direction: Any = (0, 0, 1)) -> None:
        """Port b stays on the line through port a; its direction in the axes of port a."""
        self._hold(HoldPart(name, "line", a, b, 0, _unit(name, direction)))

    def point_in_plane(self, name: str, a: str, b: str, normal: Any = (0, 0, 1)) -> None:
        """Port b stays in the plane through port a; its normal in the axes of port a."""
        self._hold(HoldPart(name, "plane", a, b, 0, _unit(name, normal)))

    def relation(self, name: str, expression: str) -> None:
        """A function of joint coordinates that is zero, as `pb.Builder.relation`: "rocker - 2*sin(crank)"."""
        part = RelationPart(name, parse(expression))
        for joint, number in part.expression.used:
            if joint not in self.parts.joints:
                raise InputError(f"relation {name!r} names joint {joint!r}, {_unknown(joint, self.parts.joints)}")
            if number >= self.parts.joints[joint].nq:
                raise InputError(f"relation {name!r}: joint {joint!r} has {self.parts.joints[joint].nq} numbers, so no "
                                 f"number {number}")
        self._new_name(name)
        self.parts.relations[name] = part

    def _hold(self, part: HoldPart) -> None:
        self._new_name(part.name)
        if part.kind != "rod" and self.ports.get(part.a) and self.ports[part.a].component in self.parts.multiports:
            raise InputError(f"{part.name!r} slides on port {part.a!r} of a multiport, whose ports are fixed points; "
                             "keep it inside the multiport")
        self._connect(part.name, part.a, part.b)
        self.parts.holds[part.name] = part

    def voltage(self, name: str, plus: str, minus: str, volts: Any = 0) -> None:
        """A voltage source (across driver)."""
        self._electric(name, "voltage", plus, minus, volts)

    def current(self, name: str, plus: str, minus: str, amperes: Any = 0) -> None:
        """A current source (through driver); the current flows inside it from plus to minus."""
        self._electric(name, "current", plus, minus, amperes)

    def resistor(self, name: str, plus: str, minus: str, ohms: Any) -> None:
        """A resistor."""
        self._electric(name, "resistor", plus, minus, ohms)

    def add(self, multiport: Any) -> None:
        """A multiport, as a component: its ports are `NAME.port`."""
        self._new_name(multiport.name)
        for port in multiport.ports:
            self._new_port(Port(multiport.name, port, np.zeros(3), np.eye(3)))
        self.parts.multiports[multiport.name] = multiport

    # -- checks -----------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Refuse a network with a component that nothing is connected to."""
        for body in self.parts.bodies.values():
            if not any(port.full in self.connections for port in body.ports.values()):
                free = ", ".join(repr(p.full) for p in body.ports.values() if p.name != CENTRE)
                raise InputError(
                    f"body {body.name!r} is not connected: connect one of its ports {free}, or leave it out"
                )
        for name, multiport in self.parts.multiports.items():
            if not any(f"{name}.{port}" in self.connections for port in multiport.ports):
                raise InputError(f"multiport {name!r} is not connected: connect one of its ports")

    def _electric(self, name: str, kind: str, plus: str, minus: str, value: Any) -> None:
        if plus == minus:
            raise InputError(f"{kind} {name!r} has both ends at node {plus!r}; it needs two nodes")
        self._new_name(name)
        self.parts.electric[name] = ElectricPart(name, kind, plus, minus, value)

    def _new_name(self, name: str) -> None:
        if name in self.parts.names() or name == WORLD:
            raise InputError(f"the name {name!r} is taken; components need names of their own")

    def _new_port(self, port: Port) -> None:
        if port.full in self.ports:
            raise InputError(f"port {port.full!r} exists already")
        self.ports[port.full] = port

    def _check_port(self, port: str, user: str) -> None:
        if port not in self.ports:
            raise InputError(f"{user!r} is connected to {port!r}, {_unknown(port, self.ports)}")
        if port in self.connections:
            raise InputError(
                f"port {port!r} is connected twice, by {self.connections[port]!r} and {user!r}; "
                "give the body another port at the same place"
            )

    def _connect(self, user: str, *ports: str) -> None:
        if len(ports) == 2 and ports[0] == ports[1]:
            raise InputError(f"{user!r} has both ends at port {ports[0]!r}; it needs two ports")
        for port in ports:
            self._check_port(port, user)
        owners = [self.ports[port].component for port in ports]
        if len(owners) == 2 and owners[0] == owners[1] and owners[0] not in self.parts.multiports:
            raise InputError(f"{user!r} connects two ports of {owners[0]!r}, which is rigid; they cannot move apart")
        for port in ports:
            self.connections[port] = user


def _unknown(name: str, names: Any) -> str:
    near = difflib.get_close_matches(name, list(names), n=1, cutoff=0.5)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    return f"which does not exist{hint}"


def _unit(name: str, axis: Any) -> Array:
    direction = np.asarray(axis, dtype=float)
    length = np.linalg.norm(direction) if direction.shape == (3,) else 0.0
    if not 0 < length < np.inf:
        raise InputError(f"{name!r}: its axis is {axis!r}, expected three numbers that are not all zero")
    return direction / length


def _square(name: str, what: str, values: Any, nv: int) -> Array:
    array = as_array(values)
    if array.ndim == 0:
        return np.eye(nv, dtype=array.dtype) * array.item() if array.item() != 0 else np.zeros((nv, nv))
    if array.shape == (nv,):
        return np.diag(array)
    if array.shape == (nv, nv):
        return array
    raise InputError(f"joint {name!r}: {what} has shape {array.shape}, expected a number, ({nv},) or ({nv}, {nv})")


def _inertia(name: str, values: Any) -> Array:
    array = as_array(values)
    if array.shape == (3, 3):
        return array
    if array.shape == (3,):
        return np.diag(array)
    if array.shape == (6,):
        xx, yy, zz, xy, xz, yz = array
        return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], dtype=array.dtype)
    raise InputError(
        f"body {name!r}: inertia has shape {array.shape}, expected (xx, yy, zz), (xx, yy, zz, xy, xz, yz) or 3×3"
    )


__all__ = ["NetworkBuilder"]
