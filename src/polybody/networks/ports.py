"""Pieces of a network (bodies of a sub-network that joints connect), their ports, and what is between the pieces.

A piece k has an entry (a body B of its, where the joint that carries it ends) and ports where other pieces are carried or
act. With x_B the twist of its entry in its own axes, ν its inner velocities and v_k = [x_B; ν], port A has

    x_A = J_A(q_k) v_k,        x_B = Ad x_A + H v_j + δ                                                     (10), (11)

with H v_j the motion of the joint that carries it from port A of another piece. δ = 0 opens that joint as a port, as
in (20): what multiplies δ in the power of the whole is the wrench that the joint exerts at B.
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from polybody.algebra.domains import domain
from polybody.formulations.network.parts import GearPart, JointPart, MotorPart, SpringPart
from polybody.mechanism.compliant_stops import compliant, stop_forces
from polybody.mechanism.forces import spring_gradient
from polybody.mechanism.friction import friction_forces
from polybody.mechanism.joints import ReversedJoint
from polybody.model.model import Model

Array = np.ndarray
#: the joint at the entry of a piece is named by its body and this
ENTRY = "(entry)"


@dataclass(frozen=True, eq=False)
class Piece:
    """A sub-network, or bodies outside of all that are joined to each other; no `entry` where it is on the ground."""

    name: str
    model: Model  # with a free joint at its entry, and without gravity there
    entry: Entry | None

    @property
    def tree(self) -> Model:
        """The model with its loops cut."""
        return self.model.tree if self.model.mechanism.constrained else self.model

    @property
    def free(self) -> range:
        """Columns of v_k that are x_B."""
        if self.entry is None:
            return range(0)
        own = self.model.joint_slices()[f"{self.entry.b} {ENTRY}"][1]
        return range(own.start, own.stop)


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


@dataclass(frozen=True, eq=False)
class Strut:
    """A spring between points (piece or None for the ground, body, point) of different pieces."""

    part: SpringPart
    a: tuple[int | None, str, Array]
    b: tuple[int | None, str, Array]


@dataclass(frozen=True, eq=False)
class State:
    """(q_k, v_k) of a piece and (R, p) of its entry body in the world, as expressions of all joint coordinates."""

    piece: Piece
    q: Any
    v: Any
    R: Any
    p: Any

    def pose(self, body: str) -> tuple[Any, Any]:
        """(R, p) of a body in the world."""
        import casadi as ca

        T = ca.reshape(self.piece.tree.casadi(f"pose:{body}").call([self.q])[0], 4, 4).T
        return self.R @ T[:3, :3], self.p + self.R @ T[:3, 3]

    def twist(self, body: str) -> Any:
        """[ω; v] of a body at its frame, in its own axes."""
        import casadi as ca

        J = self.piece.tree.casadi(f"jacobian:{body}:frame").call([self.q])[0]
        return ca.reshape(J, self.piece.tree.nv, 6).T @ self.v


class Coordinates:
    """Joint coordinates of pieces in those of the whole network; followers have their leaders', geared."""

    def __init__(self, whole: Model, followers: Mapping[str, GearPart]) -> None:
        self.slices, self.followers = whole.joint_slices(), followers

    def own(self, joint: JointPart | str, q: Any, v: Any) -> tuple[Any, Any]:
        """(q_j, v_j) of a joint's own coordinates."""
        import casadi as ca

        name = joint if isinstance(joint, str) else joint.name
        if not isinstance(joint, str) and joint.model is None:
            return ca.SX(0, 1), ca.SX(0, 1)
        gear = self.followers.get(name)
        own_q, own_v = self.slices[name if gear is None else gear.leader]
        if gear is None:
            return q[own_q], v[own_v]
        return float(gear.factor) * q[own_q] + float(gear.offset), float(gear.factor) * v[own_v]

    def state(self, piece: Piece, states: list[State], q: Any, v: Any, shift: Any) -> State:
        """The piece's own coordinates; its entry is at its neutral, and `shift` is δ."""
        import casadi as ca

        q_k, v_k = ca.SX(ca.DM(piece.model.neutral())), ca.SX.zeros(piece.model.nv)
        R, p = ca.DM.eye(3), ca.DM.zeros(3)
        for name, (own_q, own_v) in piece.model.joint_slices().items():
            if piece.entry is not None and name == f"{piece.entry.b} {ENTRY}":
                (R, p), twist = self._entered(piece.entry, states, q, v)
                v_k[own_v] = twist + shift
            else:
                q_k[own_q], v_k[own_v] = self.own(name, q, v)
        return State(piece, q_k, v_k, R, p)

    def _entered(self, entry: Entry, states: list[State], q: Any, v: Any) -> tuple[tuple[Any, Any], Any]:
        """((R, p) in the world, twist in its own axes) of body B."""
        import casadi as ca

        R_A, p_A, x_A = ca.DM.eye(3), ca.DM.zeros(3), ca.DM.zeros(6)
        if entry.before is not None:
            (R_A, p_A), x_A = states[entry.before].pose(entry.a), states[entry.before].twist(entry.a)
        own_q, own_v = self.own(entry.joint, q, v)
        R_j, p_j, H = _joint(entry, own_q)
        (p_a, R_a), (p_b, R_b) = ((ca.DM(x) for x in place) for place in (entry.place_a, entry.place_b))
        R_to_port = R_a @ R_j  # axes of port b in those of A
        R_AB = R_to_port @ R_b.T
        to_B = p_a + R_a @ p_j - R_AB @ p_b  # from A to B, in the axes of A
        moved = H @ own_v  # at port b, in its axes
        turn = R_AB.T @ x_A[:3] + R_b @ moved[:3]
        slide = R_AB.T @ (x_A[3:] + ca.cross(x_A[:3], to_B)) + R_b @ moved[3:] - ca.cross(R_b @ moved[:3], p_b)
        return (R_A @ R_AB, p_A + R_A @ to_B), ca.vertcat(turn, slide)

    def inertia(self, entry: Entry) -> Array:
        """Armature of an entry joint at its own coordinates."""
        joint = entry.joint
        return np.zeros((joint.nv, joint.nv)) if joint.model is None else joint.armature.astype(float)

    def speed(self, motor: MotorPart, q: Any, v: Any) -> Any:
        """Of a motor that turns with joints of several pieces, or between them."""
        import casadi as ca

        return sum((ca.dot(ca.DM(E.astype(float)), self.own(joint, q, v)[1]) for joint, E in motor.speeds.items()),
                   ca.SX(0))

    def exerted(self, entry: Entry, q: Any, v: Any) -> Any:
        """What an entry joint takes at its own coordinates at rest: springs, dampers, friction, stops."""
        import casadi as ca

        graph: Any = domain("casadi")
        joint = entry.joint
        if joint.model is None:
            return ca.SX(0, 1)
        taken = ca.DM(joint.damping.astype(float)) @ v
        if joint.stiffness.any():
            taken += graph.column(spring_gradient(joint, graph.scalars(q), domain=graph))
        if joint.friction is not None:
            taken -= graph.column(friction_forces(joint.friction, graph.scalars(v), domain=graph))
        if joint.limits is not None and compliant(joint.limits) and joint.name not in self.followers:
            taken -= graph.column(stop_forces(joint.limits, graph.scalars(q), graph.scalars(v), domain=graph))
        return taken


def _joint(entry: Entry, q: Any) -> tuple[Any, Any, Any]:
    """(R, p, H) of the joint from port a to port b."""
    import casadi as ca

    graph: Any = domain("casadi")
    model = entry.joint.model
    if model is None:
        return ca.DM.eye(3), ca.DM.zeros(3), ca.DM.zeros(6, 0)
    model = ReversedJoint(model) if entry.reverse else model
    own = graph.scalars(q)
    R, p = model.configuration(own, domain=graph)
    H = model.velocity_map(own, domain=graph)
    return ca.reshape(graph.column(R), 3, 3).T, graph.column(p), ca.reshape(graph.column(H), model.nv, 6).T


__all__ = ["ENTRY", "Coordinates", "Entry", "Piece", "State", "Strut"]
