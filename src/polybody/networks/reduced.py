"""Sub-networks of bodies as (m+1)-ports that move: each by its own terminal equations, joined at their ports.

A sub-network k has an entry port (a body B of its, where the joint that carries it ends) and ports where other
sub-networks are carried. Seen from them it is (18)-(39) at each state: with x_B the twist of its entry in its own axes,
ν its inner velocities, v_k = [x_B; ν], and g the gravity,

    y_k = M_k(q_k) v̇_k + h_k(q_k, v_k),      v̇_k with Ḃ's acceleration less g                                  (20)
    x_A = J_A(q_k) v_k                        at each further port A

h_k has the forces of springs, dampers, friction and rotors inside. A joint between port A of one and the entry B of
another gives x_B = Ad x_A + H v_j, so v_k = T_k(q) v with v all joint velocities (v_j = f v_i where j follows i by a
gear), and the through variables that the cut-sets add up are

    tau = Σ_k T_kᵀ y_k + Σ_j T_jᵀ (I v̇_j − passive_j(q_j, v_j)) + Σ_s J_sᵀ f_s                                  (42)

with f_s springs between ports of different sub-networks, J_s v their lengthening. Circuits that are closed (loops,
rods, guides and relations, inside a sub-network or between them) add J v̇ + γ = 0. Their reactions are eliminated:
v̇ = G ü + β has the motions that pass, by the plan of elimination of the expanded model (`quantities.constrained`), and
with tau = M v̇ + h of (42)

    GᵀM G ü = Gᵀ (tau − h − M β)                                                                                (a)

Nothing of a sub-network's inertia and forces is used but its terminal equations. The motion is that of the network with
all sub-networks expanded (`Network.use` without `reduced`), whose model counts the energy of a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from polybody.algebra.domains import domain
from polybody.constraints.sparse import carried_back, carried_out, sandwiched
from polybody.formulations.network.parts import GearPart, JointPart, MotorPart, SpringPart
from polybody.mechanism.compliant_stops import compliant, stop_forces
from polybody.mechanism.forces import spring_gradient
from polybody.mechanism.friction import friction_forces
from polybody.mechanism.joints import ReversedJoint
from polybody.model.model import Model
from polybody.quantities.constrained import Closed, along_plan

Array = np.ndarray
#: (q_k, v_k, (R, p) of its entry body in the world) of a piece, as expressions of all joint coordinates
State = tuple[Any, Any, tuple[Any, Any]]
#: the joint at the entry of a piece is named by its body and this
ENTRY = "(entry)"


@dataclass(frozen=True, eq=False)
class Piece:
    """A sub-network, or bodies outside of all that are joined to each other; no `entry` where it is on the ground."""

    name: str
    model: Model  # with a free joint at its entry, and without gravity there; its loops are cut
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
    motors: tuple[MotorPart, ...] = ()  # that turn with it


@dataclass(frozen=True, eq=False)
class Strut:
    """A spring between points (piece or None for the ground, body, point) of different pieces."""

    part: SpringPart
    a: tuple[int | None, str, Array]
    b: tuple[int | None, str, Array]


@dataclass(eq=False)
class ReducedDynamics:
    """tau(q, v, a) of a mechanism, and with closed circuits a(q, v, tau), by the terminal equations of its pieces."""

    whole: Model
    gravity: Array
    followers: Mapping[str, GearPart]
    pieces: list[Piece] = field(default_factory=list)
    struts: list[Strut] = field(default_factory=list)

    def __call__(self, q: Any, v: Any, a: Any) -> Any:
        """(42) without the reactions of closed circuits."""
        import casadi as ca

        rate = self.whole.casadi("rate").call([q, v])[0]
        along = ca.vertcat(q, v), ca.vertcat(rate, a)
        tau = ca.SX.zeros(self.whole.nv)
        states: list[State] = []
        for piece in self.pieces:
            states.append(self._state(piece, states, q, v))
            q_k, v_k, pose = states[-1]
            a_k = ca.jtimes(v_k, *along)
            if piece.entry is not None:  # gravity as an acceleration of the entry: the linear part of its numbers
                free = piece.model.joint_slices()[f"{piece.entry.b} {ENTRY}"][1]
                a_k[free.start + 3 : free.stop] -= pose[0].T @ ca.DM(self.gravity)
                own_q, own_v = self._own(piece.entry.joint, q, v)
                own_a = ca.jtimes(own_v, *along)
                tau += ca.jacobian(own_v, v).T @ self._carried(piece.entry, own_q, own_v, own_a)
            y = piece.model.casadi("inverse_dynamics").call([q_k, v_k, a_k])[0]
            tau += ca.jacobian(v_k, v).T @ y
        for strut in self.struts:
            tau += self._sprung(strut, states, q, v, rate)
        return tau

    def accelerations(self, q: Any, v: Any, tau: Any) -> Any:
        """a under tau with the reactions of closed circuits eliminated, (a)."""
        import casadi as ca

        graph: Any = domain("casadi")
        engine: Any = self.whole.engine
        closed = Closed(engine.reduced_mechanism, engine.constraints.traced, along_plan(engine.function_plan()), ())
        places, speeds = graph.scalars(q), graph.scalars(v)
        found = closed.motions(places, graph)
        beta = found.follow(closed.system.bias(places, speeds, domain=graph))
        any_a = ca.SX.sym("a", self.whole.nv)
        inertia = ca.vec(ca.densify(ca.jacobian(self(q, v, any_a), any_a)))
        M = graph.scalars(inertia).reshape(self.whole.nv, self.whole.nv)  # symmetric: by columns is by rows
        missing = graph.scalars(ca.densify(tau - self(q, v, graph.column(beta))))
        force = carried_back(found.G, missing, graph)
        u = graph.solve(sandwiched(found.G, M, graph), force) if len(force) else force
        return graph.column(carried_out(found.G, u, beta, graph))

    def _own(self, joint: JointPart | str, q: Any, v: Any) -> tuple[Any, Any]:
        """(q_j, v_j) of a joint's own coordinates: those of its leader, geared, where it follows."""
        import casadi as ca

        name = joint if isinstance(joint, str) else joint.name
        if not isinstance(joint, str) and joint.model is None:
            return ca.SX(0, 1), ca.SX(0, 1)
        gear = self.followers.get(name)
        own_q, own_v = self.whole.joint_slices()[name if gear is None else gear.leader]
        if gear is None:
            return q[own_q], v[own_v]
        return float(gear.factor) * q[own_q] + float(gear.offset), float(gear.factor) * v[own_v]

    def _carried(self, entry: Entry, q: Any, v: Any, a: Any) -> Any:
        """What an entry joint takes itself at its coordinates: I v̇_j − passive_j, rotors included."""
        import casadi as ca

        graph: Any = domain("casadi")
        joint = entry.joint
        if joint.model is None:
            return ca.SX(0, 1)
        taken = ca.DM(joint.armature.astype(float)) @ a + ca.DM(joint.damping.astype(float)) @ v
        if joint.stiffness.any():
            taken += graph.column(spring_gradient(joint, graph.scalars(q), domain=graph))
        if joint.friction is not None:
            taken -= graph.column(friction_forces(joint.friction, graph.scalars(v), domain=graph))
        if joint.limits is not None and compliant(joint.limits) and joint.name not in self.followers:
            taken -= graph.column(stop_forces(joint.limits, graph.scalars(q), graph.scalars(v), domain=graph))
        for motor in entry.motors:
            E = ca.DM(motor.speeds[joint.name].astype(float))
            taken += E @ (float(motor.inertia) * ca.dot(E, a) + float(motor.damping) * ca.dot(E, v))
        return taken

    def _sprung(self, strut: Strut, states: list[State], q: Any, v: Any, rate: Any) -> Any:
        """Joint forces that balance a spring; one of zero length pulls with k·line, with no division by its length."""
        import casadi as ca

        part = strut.part
        line = self._point(strut.b, states) - self._point(strut.a, states)
        change = ca.jtimes(line, q, rate)
        stiffness, length, damping = float(part.stiffness), float(part.length), float(part.damping)
        force = stiffness * line
        if length or damping:
            u = line / ca.norm_2(line)
            force += (damping * ca.dot(u, change) - stiffness * length) * u
        return ca.jacobian(change, v).T @ force

    def _point(self, where: tuple[int | None, str, Array], states: list[State]) -> Any:
        import casadi as ca

        k, body, point = where
        if k is None:
            return ca.SX(ca.DM(point))
        q_k, _, (R, p) = states[k]
        T = self._pose(k, body, q_k)
        return p + R @ (T[:3, :3] @ ca.DM(point) + T[:3, 3])

    def _pose(self, k: int, body: str, q_k: Any) -> Any:
        """4×4 of a body against the entry of its piece."""
        import casadi as ca

        return ca.reshape(self.pieces[k].model.casadi(f"pose:{body}").call([q_k])[0], 4, 4).T

    def _state(self, piece: Piece, states: list[State], q: Any, v: Any) -> State:
        """The piece's own coordinates; its entry is at its neutral."""
        import casadi as ca

        q_k, v_k = ca.SX(ca.DM(piece.model.neutral())), ca.SX.zeros(piece.model.nv)
        pose: tuple[Any, Any] = (ca.DM.eye(3), ca.DM.zeros(3))
        for name, (own_q, own_v) in piece.model.joint_slices().items():
            if piece.entry is not None and name == f"{piece.entry.b} {ENTRY}":
                pose, v_k[own_v] = self._entered(piece.entry, states, q, v)
            else:
                q_k[own_q], v_k[own_v] = self._own(name, q, v)
        return q_k, v_k, pose

    def _entered(self, entry: Entry, states: list[State], q: Any, v: Any) -> tuple[tuple[Any, Any], Any]:
        """((R, p) in the world, twist in its own axes) of body B."""
        import casadi as ca

        R_A, p_A, x_A = ca.DM.eye(3), ca.DM.zeros(3), ca.DM.zeros(6)
        if entry.before is not None:
            model = self.pieces[entry.before].model
            q_k, v_k, (R, p) = states[entry.before]
            T = self._pose(entry.before, entry.a, q_k)
            J = ca.reshape(model.casadi(f"jacobian:{entry.a}:frame").call([q_k])[0], model.nv, 6).T
            R_A, p_A, x_A = R @ T[:3, :3], p + R @ T[:3, 3], J @ v_k
        own_q, own_v = self._own(entry.joint, q, v)
        R_j, p_j, H = _joint(entry, own_q)
        (p_a, R_a), (p_b, R_b) = ((ca.DM(x) for x in place) for place in (entry.place_a, entry.place_b))
        R_to_port = R_a @ R_j  # axes of port b in those of A
        R_AB = R_to_port @ R_b.T
        to_B = p_a + R_a @ p_j - R_AB @ p_b  # from A to B, in the axes of A
        moved = H @ own_v  # at port b, in its axes
        turn = R_AB.T @ x_A[:3] + R_b @ moved[:3]
        slide = R_AB.T @ (x_A[3:] + ca.cross(x_A[:3], to_B)) + R_b @ moved[3:] - ca.cross(R_b @ moved[:3], p_b)
        return (R_A @ R_AB, p_A + R_A @ to_B), ca.vertcat(turn, slide)


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


__all__ = ["ENTRY", "Entry", "Piece", "ReducedDynamics", "Strut"]
