"""`network.model()`: the bodies, joints and constraints of a network as a `Model`.

A joint of a network goes from a port frame to a port frame; a model's joint ends at its child's frame. Where port b is
elsewhere on its body, a massless link at the port is the child, with the body welded to it: links that are welded are
merged, and nothing of the motion changes. Joints that close loops become loops.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.algebra.spatial import inverse_pose, pose
from polybody.description.records import Description
from polybody.errors import PolybodyError
from polybody.formulations.network.graph import Groups, node_of
from polybody.formulations.network.parts import WORLD, JointPart
from polybody.mechanism.joints import MapJoint, PlanarJoint
from polybody.model.builder import Builder
from polybody.model.model import Model
from polybody.model.validation import model_from

if TYPE_CHECKING:
    from polybody.formulations.network import Network

Array = np.ndarray


def model_of(net: Network) -> Model:
    """The model of a network's mechanism; what a model has no record for raises an error by name."""
    _refuse_others(net)
    build, parts = Builder(net.name, net.gravity), net.parts
    for body in parts.bodies.values():
        build.body(body.name, float(body.mass), body.com, body.inertia)
    named, closing = named_joints(net), closing_joints(net)
    for joint in parts.joints.values():
        (body_a, pose_a), (body_b, pose_b) = (_port(net, port) for port in (joint.a, joint.b))
        drive: dict[str, Any] = {
            key: getattr(joint, key) for key in ("stiffness", "damping") if getattr(joint, key).any()
        }
        if joint.stiffness.any():
            drive["rest"] = joint.rest
        if joint.armature.any():
            drive["armature"] = np.diag(joint.armature)
        if joint.name in closing:
            if joint.name in named:
                raise PolybodyError(f"joint {joint.name!r} is named by a gear or relation and closes a loop, as all "
                                    "joints of that loop are named; a model has no record for it")
            build.loop(joint.name, joint.kind, body_a, body_b, pose_a, pose_b, **joint_words(joint), **drive)
            continue
        child = body_b
        if not np.allclose(pose_b, np.eye(4), atol=1e-15):
            child = f"{joint.b} (port)"
            build.body(child, 0.0)
            build.joint(f"{child} weld", "fixed", child, body_b, inverse_pose(pose_b))
        build.joint(joint.name, joint.kind, body_a, child, pose_a, **joint_words(joint), **drive)
    for gear in parts.gears.values():
        build.couple(gear.follower, gear.leader, float(gear.factor), float(gear.offset))
    _add_others(net, build)
    return model_from(_with_laws(net, build.description()), warn=False)  # oddities were told where bodies were made


def named_joints(net: Network) -> set[str]:
    """Joints whose coordinates gears and relations name."""
    parts = net.parts
    geared = {name for gear in parts.gears.values() for name in (gear.follower, gear.leader)}
    return geared | {name for relation in parts.relations.values() for name in relation.joints}


def closing_joints(net: Network) -> set[str]:
    """Joints that close circuits: those between bodies that joints before them connect already.

    Joints that gears and relations name come first, for they need coordinates.
    """
    groups, named = Groups(), named_joints(net)
    return {joint.name for joint in sorted(net.parts.joints.values(), key=lambda joint: joint.name not in named)
            if not groups.join(node_of(net, joint.a), node_of(net, joint.b))}


def _with_laws(net: Network, description: Description) -> Description:
    """Friction and stops of joints are records already: they go over as they are."""

    def own(record: Any) -> Any:
        part = net.parts.joints.get(record.name)
        if part is None or (part.friction is None and part.limits is None):
            return record
        return replace(record, friction=part.friction, limits=part.limits)

    joints, loops = (tuple(own(record) for record in group) for group in (description.joints, description.loops))
    return replace(description, joints=joints, loops=loops)


def _refuse_others(net: Network) -> None:
    parts = net.parts
    driven = [f"velocity driver {name!r}" for name, joint in parts.joints.items() if joint.driven]
    others = [*driven, *(f"force {name!r}" for name in parts.forces)]
    others += [f"multiport {name!r}" for name in parts.multiports]
    others += [f"motor {name!r} of several coordinates, which are not as many as their motors"
               for group in coupled_motors(net) if group.matrix is None for name in group.motors]
    others += [f"armature of {name!r} that couples its coordinates" for name, joint in parts.joints.items()
               if np.any(joint.armature - np.diag(np.diag(joint.armature)))]
    if others:
        raise PolybodyError(f"a model has no record for {', '.join(others)}; network.solve knows them, at one state")
    if not parts.bodies:
        raise PolybodyError(f"network {net.name!r} has no bodies, so it is not a mechanism")
    net.check()


def _port(net: Network, full: str) -> tuple[str, Array]:
    port = net.ports[full]
    return (WORLD if port.component == WORLD else port.component), pose(port.axes, port.place)


def joint_words(joint: JointPart) -> dict[str, Any]:
    """What the record of a joint says besides its kind."""
    model = joint.model
    if not isinstance(model, MapJoint | PlanarJoint):
        return {}
    H, stages = model.map.H, model.map.stages
    if joint.kind == "custom":
        return {"map": H, "stages": stages}
    if joint.kind == "universal":
        return {}
    axis = H[3:, 0] if joint.kind == "prismatic" else H[:3, 0]
    pitch = {"pitch": float(H[3:, 0] @ axis)} if joint.kind == "screw" else {}
    return {"axis": axis, **pitch}


def _add_others(net: Network, build: Builder) -> None:
    parts = net.parts
    for spring in parts.springs.values():
        (a, T_a), (b, T_b) = _port(net, spring.a), _port(net, spring.b)
        build.spring(spring.name, a, T_a[:3, 3], b, T_b[:3, 3], float(spring.stiffness), float(spring.length),
                     float(spring.damping))
    for hold in parts.holds.values():
        (a, T_a), (b, T_b) = _port(net, hold.a), _port(net, hold.b)
        ends = (a, T_a[:3, 3]), (b, T_b[:3, 3])
        if hold.kind == "rod":
            build.rod(hold.name, *ends[0], *ends[1], float(hold.length))
        else:
            put = build.point_on_line if hold.kind == "line" else build.point_in_plane
            put(hold.name, *ends[0], T_a[:3, :3] @ hold.axis, *ends[1])
    for relation in parts.relations.values():
        build.relation(relation.name, relation.expression.text)
    for group in coupled_motors(net):
        for name, (joint, coordinate) in group.motors.items():
            motor = parts.motors[name]
            gear = float(motor.speeds[joint][coordinate]) if len(group.motors) == 1 else 1.0
            build.motor(joint, float(motor.resistance), float(motor.inductance), float(motor.torque_constant),
                        float(motor.speed_constant), float(motor.inertia), float(motor.damping), gear, name=name,
                        coordinate=coordinate)
        if len(group.motors) > 1:
            label = " and ".join(group.motors)
            build.transmission(f"{label} transmission", [joint for joint, _ in group.motors.values()], group.matrix)


@dataclass(frozen=True, eq=False)
class MotorGroup:
    """Motors that turn with the same joints: {motor: (joint, coordinate)} one each, and G of φ̇ = G q̇ in their order.

    No matrix where they are not as many as the coordinates, or some joint has several.
    """

    motors: dict[str, tuple[str, int]]
    matrix: Array | None


def coupled_motors(net: Network) -> list[MotorGroup]:
    """The motors of a network by the coordinates that they share."""
    groups, parts = Groups(), net.parts
    turned = {name: [(joint, int(k)) for joint, E in motor.speeds.items() for k in np.flatnonzero(E)]
              for name, motor in parts.motors.items()}
    for name, places in turned.items():
        for place in places:
            groups.join(f"motor {name}", f"place {place}")
    members: dict[str, list[str]] = {}
    for name in turned:
        members.setdefault(groups.find(f"motor {name}"), []).append(name)
    return [_group(net, names, turned) for names in members.values()]


def _group(net: Network, names: list[str], turned: dict[str, list[tuple[str, int]]]) -> MotorGroup:
    places = list(dict.fromkeys(place for name in names for place in turned[name]))
    E = np.array([[float(net.parts.motors[name].speeds[joint][k]) if joint in net.parts.motors[name].speeds else 0.0
                   for joint, k in places] for name in names])
    single = len({joint for joint, _ in places}) == len(places)
    if len(names) != len(places) or not single or np.linalg.matrix_rank(E) < len(names):
        return MotorGroup(dict.fromkeys(names, ("", 0)), None)
    from scipy.optimize import linear_sum_assignment  # a third of a second, which most networks do without

    _, order = linear_sum_assignment(-np.abs(E))  # each motor on a joint that it turns with
    return MotorGroup({name: places[k] for name, k in zip(names, order, strict=True)}, np.linalg.inv(E[:, order]))


__all__ = ["closing_joints", "joint_words", "model_of", "named_joints"]
