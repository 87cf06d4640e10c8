"""A network with reduced sub-networks as pieces: which bodies belong together, and what joins or acts between them.

Pieces are groups of bodies that joints connect: of one sub-network that is reduced, or outside of all. Joints that
close circuits are those of the expanded model; the others are a tree, so that each piece is entered by one joint at
most, or is on the ground by joints of its own. A piece's model has what acts inside of it: joints with their laws,
loops, springs, gears, rotors, rods, guides, relations. What acts between pieces is an entry's, a `Strut`, or `Between`
ports (`circuits`). A joint that closes a circuit between pieces and has coordinates of its own in the expanded model
(armature, limits, a motor, springs in several directions) carries a piece without mass there, as in
`mechanism.driven_loops`, that is welded to its other end.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.errors import InputError
from polybody.formulations.network.graph import Groups, node_of
from polybody.formulations.network.parts import WORLD, JointPart, Parts, Port
from polybody.model.model import Model
from polybody.networks.mechanism import closing_joints, model_of
from polybody.networks.ports import ENTRY, Coordinates, Entry, Piece, Strut
from polybody.networks.reduced import ReducedDynamics

if TYPE_CHECKING:
    from polybody.networks.network import Network

#: a body's port at its frame
FRAME = "(frame)"


def reduced_dynamics(net: Network, whole: Model) -> ReducedDynamics:
    """The terminal equations of a network's reduced sub-networks, of its other bodies, and of what is between."""
    net = _with_ends(net, whole)
    loops = closing_joints(net)
    groups = _groups(net, loops)
    owner = {body: k for k, bodies in enumerate(groups.values()) for body in bodies}
    across = {name: joint for name, joint in net.parts.joints.items()
              if name not in loops and _bridges(net, joint, owner)}
    place: dict[int, int] = {}
    held: set[str] = set()
    pieces: list[Piece] = []
    waiting = list(enumerate(groups.items()))
    while waiting:
        ready = [(k, item, entry) for k, item in waiting
                 if (entry := _entry(net, k, owner, across, loops, place)) is not ...]
        if not ready:
            raise InputError(f"the sub-network {waiting[0][1][0]!r} is carried by nothing; connect it by a joint")
        for k, (name, bodies), entry in ready:
            place[k] = len(pieces)
            inside = _inside(net, {*bodies, WORLD} if entry is None else set(bodies), across)
            held |= inside
            pieces.append(Piece(name, _own_model(net, name, bodies, inside, entry), entry))
            waiting = [other for other in waiting if other[0] != k]

    def end(port: str) -> tuple[int | None, str, np.ndarray]:
        body = node_of(net, port)
        return (None if body == WORLD else place[owner[body]]), body, net.ports[port].place.astype(float)

    struts = [Strut(part, end(part.a), end(part.b)) for name, part in net.parts.springs.items() if name not in held]
    gravity = np.asarray(net.gravity, dtype=float)
    rotors = [motor for motor in net.parts.motors.values()
              if not any(set(motor.speeds) <= set(piece.model.mechanism.joint_index) for piece in pieces)]
    made = ReducedDynamics(whole, gravity, Coordinates(whole, net.parts.followers()), pieces, struts, rotors)
    made.close({body: place[k] for body, k in owner.items()})
    return made


def _with_ends(net: Network, whole: Model) -> Network:
    """Joints that close circuits and have coordinates in the expanded model go to a body without mass, welded."""
    own = whole.joint_slices()
    chosen = [name for name in closing_joints(net) if name in own]
    if not chosen:
        return net
    copy = type(net)(net.name, net.gravity)
    parts = vars(net.parts) | {"joints": {}, "bodies": dict(net.parts.bodies)}
    copy.parts, copy.ports, copy.connections = Parts(**parts), dict(net.ports), dict(net.connections)
    copy.reductions = net.reductions
    welds: dict[str, JointPart] = {}
    for name, joint in net.parts.joints.items():
        if name not in chosen:
            copy.parts.joints[name] = joint
            continue
        end = f"{name}_end"
        copy.body(end, ports={"a": np.eye(4), "b": np.eye(4)})
        copy.parts.joints[name] = replace(joint, b=f"{end}.a")
        empty = np.zeros((0, 0))
        copy.connections |= {f"{end}.a": name, f"{end}.b": f"{name}_weld"}
        welds[f"{name}_weld"] = JointPart(f"{name}_weld", "fixed", None, f"{end}.b", joint.b, empty, empty, np.zeros(0),
                                          empty, False, None, None)
    copy.parts.joints |= welds
    return copy


def _word(net: Network, body: str) -> str | None:
    """The outermost reduced sub-network that a body is in."""
    return min((word for word in net.reductions if body.startswith(f"{word}.")), key=len, default=None)


def _groups(net: Network, loops: Collection[str]) -> dict[str, list[str]]:
    """{name: bodies} of pieces: bodies of one reduced sub-network, or outside of all, that joints connect."""
    groups = Groups()
    for joint in net.parts.joints.values():
        ends = [node_of(net, port) for port in (joint.a, joint.b)]
        if joint.name not in loops and WORLD not in ends and _word(net, ends[0]) == _word(net, ends[1]):
            groups.join(*ends)
    found: dict[str, list[str]] = {}
    for body in net.parts.bodies:
        found.setdefault(f"{_word(net, body) or 'bodies'} with {groups.find(body)!r}", []).append(body)
    return found


def _bridges(net: Network, joint: JointPart, owner: Mapping[str, int]) -> bool:
    """Whether a joint is between pieces, or carries one from the ground."""
    ends = [node_of(net, port) for port in (joint.a, joint.b)]
    if WORLD not in ends:
        return owner[ends[0]] != owner[ends[1]]
    word = _word(net, ends[0] if ends[1] == WORLD else ends[1])
    return word is not None and not joint.name.startswith(f"{word}.")


def _entry(
    net: Network, k: int, owner: Mapping[str, int], across: Mapping[str, JointPart], loops: Collection[str],
    place: Mapping[int, int],
) -> Any:  # fmt: skip
    """How piece k is carried, by pieces that have their place: an `Entry`, None by the ground itself, … not yet."""
    own = {body for body, by in owner.items() if by == k}
    inside = [joint for name, joint in net.parts.joints.items() if name not in across and name not in loops]
    if any({node_of(net, j.a), node_of(net, j.b)} & own and WORLD in (node_of(net, j.a), node_of(net, j.b))
           for j in inside):
        return None
    for joint in across.values():
        for a, b, reverse in ((joint.a, joint.b, False), (joint.b, joint.a, True)):
            before = node_of(net, a)
            if node_of(net, b) in own and (before == WORLD or owner[before] in place):
                ports = net.ports[a], net.ports[b]
                at_a, at_b = ((port.place.astype(float), port.axes.astype(float)) for port in ports)
                carrier = None if before == WORLD else place[owner[before]]
                return Entry(joint, carrier, before, node_of(net, b), at_a, at_b, reverse)
    return ...


def _inside(net: Network, own: Collection[str], across: Mapping[str, JointPart]) -> set[str]:
    """Joints (also those that close loops), springs, rods, guides and relations between bodies of one piece."""
    parts = net.parts
    found = {name for kind in (parts.joints, parts.springs, parts.holds) for name, part in kind.items()
             if name not in across and {node_of(net, part.a), node_of(net, part.b)} <= set(own)}
    return found | {name for name, relation in parts.relations.items() if set(relation.joints) <= found}


def _own_model(net: Network, name: str, bodies: list[str], inside: Collection[str], entry: Entry | None) -> Model:
    """The model of a piece, free at its entry."""
    from polybody.networks.network import Network

    parts = net.parts
    joints = {word: joint for word, joint in parts.joints.items() if word in inside}
    made = Network(name, net.gravity if entry is None else (0.0, 0.0, 0.0))
    made.parts = Parts(
        bodies={body: parts.bodies[body] for body in bodies}, ground=dict(parts.ground), joints=joints,
        springs={word: spring for word, spring in parts.springs.items() if word in inside},
        gears={n: gear for n, gear in parts.gears.items() if {gear.follower, gear.leader} <= set(joints)},
        motors={n: motor for n, motor in parts.motors.items() if set(motor.speeds) <= set(joints)},
        holds={n: hold for n, hold in parts.holds.items() if n in inside},
        relations={n: relation for n, relation in parts.relations.items() if n in inside},
    )  # fmt: skip
    made.ports = dict(net.ports)
    made.connections = dict(net.connections)
    if entry is not None:
        ends = [Port(WORLD, f"{name} {FRAME}", np.zeros(3), np.eye(3)), Port(entry.b, FRAME, np.zeros(3), np.eye(3))]
        made.ports |= {port.full: port for port in ends}
        made.joint(f"{entry.b} {ENTRY}", "floating", ends[0].full, ends[1].full)
    return model_of(made)


__all__ = ["reduced_dynamics"]
