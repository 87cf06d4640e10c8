"""Sub-networks of bodies as (m+1)-ports that move: each by its own terminal equations, joints between their ports.

A sub-network k has an entry port (a body B of its, where the joint that carries it ends) and ports where other
sub-networks are carried. Seen from them it is (18)-(39) at each state: with x_B the twist of its entry in its own axes,
ν its inner velocities, v_k = [x_B; ν], and g the gravity,

    y_k = M_k(q_k) v̇_k + h_k(q_k, v_k),      v̇_k with Ḃ's acceleration less g                                  (20)
    x_A = J_A(q_k) v_k                        at each further port A

A joint between port A of one and the entry B of another gives x_B = Ad x_A + H v_j, so v_k = T_k(q) v with v all joint
velocities, and the through variables that the cut-sets add up are

    tau = Σ_k T_kᵀ y_k + I v̇_j − passive_j(q_j, v_j)                                                            (42)

Nothing of the inside of a sub-network is used but its terminal equations. The motion is that of the network with all
sub-networks expanded (`Network.use` without `reduced`), whose model counts the energy of a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.algebra.domains import domain
from polybody.errors import InputError
from polybody.formulations.network.graph import Groups, node_of
from polybody.formulations.network.parts import WORLD, JointPart, Parts, Port
from polybody.mechanism.compliant_stops import compliant
from polybody.mechanism.friction import friction_forces
from polybody.mechanism.joints import ReversedJoint
from polybody.model.model import Model
from polybody.networks.mechanism import model_of

if TYPE_CHECKING:
    from polybody.networks.network import Network

Array = np.ndarray
#: a body's port at its frame, and the joint that stands for its entry
FRAME, ENTRY = "(frame)", "(entry)"


@dataclass(frozen=True, eq=False)
class Piece:
    """A sub-network, or bodies outside of all that are joined to each other; no `entry` where it is on the ground."""

    name: str
    model: Model  # with a free joint at its entry, and without gravity there
    entry: Entry | None


@dataclass(frozen=True, eq=False)
class Entry:
    """The joint that carries a piece: from body A of piece `before` (None: the ground) to body B."""

    joint: JointPart
    before: int | None
    a: str
    b: str
    place_a: tuple[Array, Array]  # (p, R) of its ports in their bodies
    place_b: tuple[Array, Array]
    reverse: bool


@dataclass(eq=False)
class ReducedDynamics:
    """tau(q, v, a) of a mechanism by the terminal equations of its pieces."""

    whole: Model
    gravity: Array
    pieces: list[Piece] = field(default_factory=list)

    def __call__(self, q: Any, v: Any, a: Any) -> Any:
        import casadi as ca

        rate = self.whole.casadi("rate").call([q, v])[0]
        tau = ca.SX.zeros(self.whole.nv)
        poses: list[tuple[Any, Any]] = []  # (R, p) of each piece's entry body
        for piece in self.pieces:
            q_k, v_k, pose = self._state(piece, poses, q, v)
            poses.append(pose)
            a_k = ca.jtimes(v_k, ca.vertcat(q, v), ca.vertcat(rate, a))
            if piece.entry is not None:  # gravity as an acceleration of the entry: the linear part of its numbers
                free = piece.model.joint_slices()[f"{piece.entry.b} {ENTRY}"][1]
                a_k[free.start + 3 : free.stop] -= pose[0].T @ ca.DM(self.gravity)
                tau[self._slots(piece.entry.joint)[1]] += self._carried(piece.entry.joint, q, v, a)
            y = piece.model.casadi("inverse_dynamics").call([q_k, v_k, a_k])[0]
            tau += ca.jacobian(v_k, v).T @ y
        return tau

    def _slots(self, joint: JointPart) -> tuple[slice, slice]:
        return self.whole.joint_slices()[joint.name] if joint.model is not None else (slice(0, 0), slice(0, 0))

    def _carried(self, joint: JointPart, q: Any, v: Any, a: Any) -> Any:
        """What an entry joint takes itself: I v̇_j − passive_j."""
        import casadi as ca

        graph: Any = domain("casadi")
        here_q, here_v = self._slots(joint)
        u = v[here_v]
        taken = ca.DM(joint.armature.astype(float)) @ a[here_v] + ca.DM(joint.damping.astype(float)) @ u
        if joint.stiffness.any():
            taken += ca.DM(joint.stiffness.astype(float)) @ (q[here_q] - ca.DM(np.asarray(joint.rest, dtype=float)))
        if joint.friction is not None:
            taken -= graph.column(friction_forces(joint.friction, graph.scalars(u), domain=graph))
        return taken

    def _state(self, piece: Piece, poses: list[tuple[Any, Any]], q: Any, v: Any) -> tuple[Any, Any, tuple[Any, Any]]:
        """(q_k, v_k, pose of its entry body) as expressions of all joint coordinates; the entry is at its neutral."""
        import casadi as ca

        slots = self.whole.joint_slices()
        q_k, v_k = ca.SX(ca.DM(piece.model.neutral())), ca.SX.zeros(piece.model.nv)
        pose: tuple[Any, Any] = (ca.DM.eye(3), ca.DM.zeros(3))
        for name, (own_q, own_v) in piece.model.joint_slices().items():
            if piece.entry is not None and name == f"{piece.entry.b} {ENTRY}":
                pose, v_k[own_v] = self._entered(piece.entry, poses, q, v)
            else:
                q_k[own_q], v_k[own_v] = q[slots[name][0]], v[slots[name][1]]
        return q_k, v_k, pose

    def _entered(self, entry: Entry, poses: list[tuple[Any, Any]], q: Any, v: Any) -> tuple[tuple[Any, Any], Any]:
        """((R, p) in the world, twist in its own axes) of body B."""
        import casadi as ca

        R_A, p_A, x_A = ca.DM.eye(3), ca.DM.zeros(3), ca.DM.zeros(6)
        if entry.before is not None:
            piece = self.pieces[entry.before]
            q_k, v_k, (R, p) = self._state(piece, poses, q, v)
            T = ca.reshape(piece.model.casadi(f"pose:{entry.a}").call([q_k])[0], 4, 4).T
            J = ca.reshape(piece.model.casadi(f"jacobian:{entry.a}:frame").call([q_k])[0], piece.model.nv, 6).T
            R_A, p_A, x_A = R @ T[:3, :3], p + R @ T[:3, 3], J @ v_k
        R_j, p_j, H = self._joint(entry, q)
        (p_a, R_a), (p_b, R_b) = ((ca.DM(x) for x in place) for place in (entry.place_a, entry.place_b))
        R_to_port = R_a @ R_j  # axes of port b in those of A
        R_AB = R_to_port @ R_b.T
        to_B = p_a + R_a @ p_j - R_AB @ p_b  # from A to B, in the axes of A
        moved = H @ v[self._slots(entry.joint)[1]]  # at port b, in its axes
        turn = R_AB.T @ x_A[:3] + R_b @ moved[:3]
        slide = R_AB.T @ (x_A[3:] + ca.cross(x_A[:3], to_B)) + R_b @ moved[3:] - ca.cross(R_b @ moved[:3], p_b)
        return (R_A @ R_AB, p_A + R_A @ to_B), ca.vertcat(turn, slide)

    def _joint(self, entry: Entry, q: Any) -> tuple[Any, Any, Any]:
        """(R, p, H) of the joint from port a to port b."""
        import casadi as ca

        graph: Any = domain("casadi")
        model = entry.joint.model
        if model is None:
            return ca.DM.eye(3), ca.DM.zeros(3), ca.DM.zeros(6, 0)
        model = ReversedJoint(model) if entry.reverse else model
        own = graph.scalars(q[self._slots(entry.joint)[0]])
        R, p = model.configuration(own, domain=graph)
        H = model.velocity_map(own, domain=graph)
        return ca.reshape(graph.column(R), 3, 3).T, graph.column(p), ca.reshape(graph.column(H), model.nv, 6).T


def reduced_dynamics(net: Network, whole: Model) -> ReducedDynamics:
    """The terminal equations of a network's reduced sub-networks, of its other bodies, and of the joints between."""
    groups = _pieces(net)
    owner = {body: k for k, bodies in enumerate(groups.values()) for body in bodies}
    across = {name: joint for name, joint in net.parts.joints.items() if _bridges(net, joint, owner)}
    _refuse_other_bridges(net, owner, across)
    made = ReducedDynamics(whole, np.asarray(net.gravity, dtype=float))
    place: dict[int, int] = {}
    waiting = list(enumerate(groups.items()))
    while waiting:
        ready = [(k, item, entry) for k, item in waiting if (entry := _entry(net, k, owner, across, place)) is not ...]
        if not ready:
            raise InputError(f"the sub-network {waiting[0][1][0]!r} is carried by nothing; connect it by a joint")
        for k, (name, bodies), entry in ready:
            place[k] = len(made.pieces)
            made.pieces.append(Piece(name, _own_model(net, name, bodies, across, entry), entry))
            waiting = [other for other in waiting if other[0] != k]
    used = {piece.entry.joint.name for piece in made.pieces if piece.entry is not None}
    closing = [name for name in across if name not in used]
    closing += [name for name in net.parts.joints if name in {loop.name for loop in whole.mechanism.description.loops}]
    if closing:
        raise InputError(f"joint {closing[0]!r} closes a loop, which reduced sub-networks cannot have: use them "
                         "without `reduced`")
    return made


def _pieces(net: Network) -> dict[str, list[str]]:
    """{name: bodies}: the sub-networks that are reduced (outermost first), then groups of bodies outside of them."""
    found: dict[str, list[str]] = {}
    outside = []
    for body in net.parts.bodies:
        word = min((w for w in net.reductions if body.startswith(f"{w}.")), key=len, default=None)
        found.setdefault(word, []).append(body) if word is not None else outside.append(body)
    groups = Groups()
    for joint in net.parts.joints.values():
        ends = [node_of(net, port) for port in (joint.a, joint.b)]
        if all(end in outside for end in ends):
            groups.join(*ends)
    for body in outside:
        found.setdefault(f"bodies with {groups.find(body)!r}", []).append(body)
    return found


def _bridges(net: Network, joint: JointPart, owner: Mapping[str, int]) -> bool:
    """Whether a joint is between pieces, or carries one from the ground."""
    ends = [node_of(net, port) for port in (joint.a, joint.b)]
    if WORLD not in ends:
        return owner[ends[0]] != owner[ends[1]]
    body = ends[0] if ends[1] == WORLD else ends[1]
    word = next((w for w in net.reductions if body.startswith(f"{w}.")), None)
    return word is not None and not joint.name.startswith(f"{word}.")


def _entry(
    net: Network, k: int, owner: Mapping[str, int], across: Mapping[str, JointPart], place: Mapping[int, int]
) -> Any:
    """How piece k is carried, by pieces that have their place: an `Entry`, None by the ground itself, … not yet."""
    own = {body for body, by in owner.items() if by == k}
    inside = [joint for name, joint in net.parts.joints.items() if name not in across]
    if any({node_of(net, j.a), node_of(net, j.b)} & own and WORLD in (node_of(net, j.a), node_of(net, j.b))
           for j in inside):
        return None
    for joint in across.values():
        for a, b, reverse in ((joint.a, joint.b, False), (joint.b, joint.a, True)):
            before = node_of(net, a)
            if node_of(net, b) in own and (before == WORLD or owner[before] in place):
                _refuse_law(joint)
                ports = net.ports[a], net.ports[b]
                at_a, at_b = ((port.place.astype(float), port.axes.astype(float)) for port in ports)
                carrier = None if before == WORLD else place[owner[before]]
                return Entry(joint, carrier, before, node_of(net, b), at_a, at_b, reverse)
    return ...


def _refuse_law(joint: JointPart) -> None:
    stopped = joint.limits is not None and compliant(joint.limits)
    if joint.driven or stopped or (joint.stiffness.any() and joint.nq != joint.nv):
        what = "is driven" if joint.driven else "has compliant stops" if stopped else "is elastic in several directions"
        raise InputError(f"joint {joint.name!r} {what} and carries a reduced sub-network; use that without `reduced`")


def _refuse_other_bridges(net: Network, owner: Mapping[str, int], across: Mapping[str, JointPart]) -> None:
    """Springs, rods, gears, relations and motors act inside one piece."""

    def side(joint: str) -> Any:
        part = net.parts.joints[joint]
        ends = [node_of(net, part.a), node_of(net, part.b)]
        return "between" if joint in across else next(owner[end] for end in ends if end != WORLD)

    sides: list[tuple[str, set[Any]]] = []
    for kind in ("springs", "forces", "holds"):
        for name, part in getattr(net.parts, kind).items():
            ends = {node_of(net, port) for port in (part.a, part.b) if port is not None}
            sides.append((name, {owner.get(end, WORLD) for end in ends}))
    sides += [(gear.name, {side(gear.follower), side(gear.leader)}) for gear in net.parts.gears.values()]
    sides += [(relation.name, {side(j) for j in relation.joints}) for relation in net.parts.relations.values()]
    sides += [(motor.name, {side(j) for j in motor.speeds}) for motor in net.parts.motors.values()]
    for name, found in sides:
        if len(found) > 1 or "between" in found:
            raise InputError(f"{name!r} acts between sub-networks that are reduced ({', '.join(net.reductions)}), "
                             "where only joints may: use them without `reduced`")


def _own_model(
    net: Network, name: str, bodies: list[str], across: Mapping[str, JointPart], entry: Entry | None
) -> Model:
    """The model of a piece, free at its entry."""
    from polybody.networks.network import Network

    own, parts = set(bodies), net.parts

    def mine(kind: str) -> dict[str, Any]:
        return {word: part for word, part in getattr(parts, kind).items() if word not in across
                and own & {node_of(net, port) for port in (part.a, part.b) if port is not None}}

    made = Network(name, net.gravity if entry is None else (0.0, 0.0, 0.0))
    joints = mine("joints")
    made.parts = Parts(
        bodies={body: parts.bodies[body] for body in bodies}, ground=dict(parts.ground), joints=joints,
        springs=mine("springs"), forces=mine("forces"), holds=mine("holds"),
        gears={n: gear for n, gear in parts.gears.items() if gear.follower in joints},
        relations={n: relation for n, relation in parts.relations.items() if set(relation.joints) <= set(joints)},
        motors={n: motor for n, motor in parts.motors.items() if set(motor.speeds) <= set(joints)},
    )  # fmt: skip
    made.ports = dict(net.ports)
    used = {*joints, *across, *made.parts.springs, *made.parts.forces, *made.parts.holds}
    made.connections = {port: user for port, user in net.connections.items() if user in used}
    if entry is not None:
        ends = [Port(WORLD, f"{name} {FRAME}", np.zeros(3), np.eye(3)), Port(entry.b, FRAME, np.zeros(3), np.eye(3))]
        made.ports |= {port.full: port for port in ends}
        made.joint(f"{entry.b} {ENTRY}", "floating", ends[0].full, ends[1].full)
    model = model_of(made)
    if model.mechanism.constrained:
        raise InputError(f"the sub-network {name!r} has loops or constraints, so that it has no inertia matrix of its "
                         "own; use it without `reduced`")
    return model


__all__ = ["ReducedDynamics", "reduced_dynamics"]
