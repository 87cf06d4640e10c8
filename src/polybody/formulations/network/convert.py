"""A mechanism as a network: bodies and joints as components, loops as joints like any other, without cutting."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from polybody.algebra.spatial import pose
from polybody.description.records import LOOP_SPRING, Rod
from polybody.errors import PolybodyError
from polybody.formulations.network.network import Network
from polybody.formulations.network.parts import WORLD, MotorPart
from polybody.mechanism.compliant_stops import compliant
from polybody.mechanism.joints import ReversedJoint
from polybody.mechanism.mechanism import GROUND, Mechanism, TreeJoint

Array = np.ndarray
N = TypeVar("N", bound=Network)


def network_of(mechanism: Mechanism, powered: bool = False, make: type[N] = Network) -> N:
    """The network of a mechanism: its tree joints first, in their order, then its loops.

    So arrays q and v of the mechanism serve as the network's. Joints go from the parent of their record to its child.
    `powered` connects the winding of each motor to a voltage source named `MOTOR supply`; else windings are open.
    Joints that follow others do so by a gear, named `FOLLOWER gear`, and have no place in these arrays.
    """
    for what in ("contacts", "rolling", "velocity_relations"):
        names = ", ".join(repr(record.name) for record in getattr(mechanism, what))
        if names:
            raise PolybodyError(f"a network of bodies has no component for {what} ({names}); add the whole model as a "
                                "part, Network.mechanism(name, model): there they act")
    followers, mechanism = mechanism.followers, mechanism.uncoupled
    net = make(mechanism.name, mechanism.gravity)
    places = _places(mechanism)
    net.ground({key: where for (body, key), where in places.items() if body == GROUND})
    for body in mechanism.bodies:
        own = {key: where for (index, key), where in places.items() if index == body.index}
        net.body(_name(mechanism, body.index), body.mass, body.com, body.inertia, ports=own)
    for joint in mechanism.joints:
        _add_joint(net, mechanism, joint)
    _add_motors(net, mechanism, powered)
    for name, (leader, factor, offset) in followers.items():
        net.gear(f"{name} gear", name, leader, factor, offset)
    drives = {element.name: element for element in mechanism.closure_springs}
    for closure in mechanism.closures:
        ends = (f"{_name(mechanism, closure.a.body)}.{closure.name}:a",
                f"{_name(mechanism, closure.b.body)}.{closure.name}:b")
        kind = "fixed" if closure.model is None else closure.model.kind
        drive = {key: getattr(drives[closure.name], key) for key in LOOP_SPRING} if closure.name in drives else {}
        net.joint(closure.name, kind, *ends, model=closure.model, **drive)
    for spring in mechanism.springs:
        ends = (f"{_name(mechanism, spring.body_a)}.{spring.name}:a",
                f"{_name(mechanism, spring.body_b)}.{spring.name}:b")
        net.spring(spring.name, *ends, spring.stiffness, spring.length, spring.damping)
    _add_holds(net, mechanism)
    return net


def _add_holds(net: Network, mechanism: Mechanism) -> None:
    """Rods, guides and relations."""
    for record in (*mechanism.rods, *mechanism.guides):
        bodies = (mechanism.point(link, (0, 0, 0)).body for link in (record.body_a, record.body_b))
        a, b = (f"{_name(mechanism, body)}.{record.name}:{end}" for body, end in zip(bodies, "ab", strict=True))
        if isinstance(record, Rod):
            net.rod(record.name, a, b, record.length)
        elif record.kind == "line":
            net.point_on_line(record.name, a, b, record.axis)
        else:
            net.point_in_plane(record.name, a, b, record.axis)
    for relation in mechanism.relations:
        net.relation(relation.name, relation.expression)


def _name(mechanism: Mechanism, body: int) -> str:
    """A body's name in the network; one that a joint, loop or other part also bears gets a suffix."""
    if body == GROUND:
        return WORLD
    name = mechanism.bodies[body].name
    m = mechanism
    others = (m.joints, m.closures, m.springs, m.rods, m.guides, m.relations)
    taken = {x.name for group in others for x in group}
    return f"{name} (body)" if name in taken else name


def _places(mechanism: Mechanism) -> dict[tuple[int, str], Array]:
    """{(body, port): pose}: a port for each end of each joint, loop, spring, rod and guide."""
    places: dict[tuple[int, str], Array] = {}
    for joint in mechanism.joints:
        places[(joint.parent, f"{joint.name}:{'b' if joint.reversed else 'a'}")] = pose(joint.rotation, joint.position)
        places[(joint.index, f"{joint.name}:{'a' if joint.reversed else 'b'}")] = np.eye(4)
    for closure in mechanism.closures:
        for end, frame in (("a", closure.a), ("b", closure.b)):
            places[(frame.body, f"{closure.name}:{end}")] = pose(frame.rotation, frame.position)
    for spring in mechanism.springs:
        places[(spring.body_a, f"{spring.name}:a")] = pose(np.eye(3), spring.point_a)
        places[(spring.body_b, f"{spring.name}:b")] = pose(np.eye(3), spring.point_b)
    for record in (*mechanism.rods, *mechanism.guides):
        for end, link, point in (("a", record.body_a, record.point_a), ("b", record.body_b, record.point_b)):
            frame = mechanism.point(link, point)
            places[(frame.body, f"{record.name}:{end}")] = pose(frame.rotation, frame.position)
    return places


def _add_joint(net: Network, mechanism: Mechanism, joint: TreeJoint) -> None:
    inner, outer = _name(mechanism, joint.parent), _name(mechanism, joint.index)
    a, b = (outer, inner) if joint.reversed else (inner, outer)
    model = joint.model.joint if isinstance(joint.model, ReversedJoint) else joint.model
    # rotors come with their motors
    own = mechanism.armature_entries.block(joint.v) - mechanism.motors.reflected_inertia.block(joint.v)
    net.joint(
        joint.name, joint.kind, f"{a}.{joint.name}:a", f"{b}.{joint.name}:b", model=model, stiffness=joint.stiffness,
        damping=joint.damping, rest=joint.rest, armature=own, friction=joint.friction,
        limits=joint.limits if compliant(joint.limits) else None,
    )


def _add_motors(net: Network, mechanism: Mechanism, powered: bool) -> None:
    motors = mechanism.motors
    for k, name in enumerate(motors.names):
        speeds = {j.name: motors.speeds[k, j.v] for j in mechanism.joints if motors.speeds[k, j.v].any()}
        label = f"{name} (motor)" if name in net.parts.names() else name
        nodes = (f"{label}+", f"{label}-") if powered else (None, None)
        record = mechanism.description.motors[k]
        net.add_motor(MotorPart(label, speeds, record.torque_constant, record.speed_constant, record.resistance,
                                record.inductance, record.rotor_inertia, record.damping, *nodes))
        if nodes[0] is not None and nodes[1] is not None:
            net.voltage(f"{label} supply", nodes[0], nodes[1])


__all__ = ["network_of"]
