"""The system equations: circuits and cut-sets substituted into the terminal equations of all components.

Unknown are the rates of the across variables of the tree branches, the through variables of the chords, and the joint
accelerations; circuits and cut-sets give the rest, x_C = Q_Cᵀ x_T and y_T = −Q_C y_C (electrical edges: voltages and
currents themselves). The terminal equations are then as many as the unknowns:

    body, port p      ẋ_p − K_pᵀ ẋ_G = K̇_pᵀ x_G
    body, G           P_G ẋ_G − Σ K_p y_p − y_G = −Q_G x_G − u_G                                    (14)
    joint             ẋ − Φ a = Φ̇ v,   and for each freedom   −Φᵀ y + armature a − motors = tau + passive
                      or, for a velocity driver,   a given
    rod, guide        y + [w; 0] λ = 0,   wᵀ ẋ_lin = −ẇᵀ x_lin
    relation          J a = −J̇ v;   Jᵀ λ acts along its joints
    gear              a_f − k a_l = 0;   λ acts along the follower, −k λ along the leader
    spring, force     y = what the state or the driver says
    multiport         ẋ − A y = b
    electrical        voltage, current, or u − R i = K_e E v for a winding

A joint's through variable acts on the joint at port b; minus it is the joint's wrench on the child.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.algebra.domains import Array, Domain
from polybody.algebra.rotations import cross
from polybody.formulations.network.graph import SystemGraph
from polybody.formulations.network.holding import held_directions, relation_drift, relation_row
from polybody.formulations.network.parts import CENTRE, GearPart, HoldPart, RelationPart, RigidBody
from polybody.formulations.network.situation import Situation
from polybody.formulations.network.terminals import active_port, lever, swapped
from polybody.late import dataclass, field
from polybody.mechanism.compliant_stops import stop_forces
from polybody.mechanism.forces import spring_gradient
from polybody.mechanism.friction import friction_forces

if TYPE_CHECKING:
    from polybody.formulations.network.network import Network


@dataclass(frozen=True, eq=False)
class Problem:
    """What is given: joint forces, accelerations of driven joints, wrenches of drivers, sources, opened ports."""

    forces: dict[str, Array] = field(default_factory=dict)
    accelerations: dict[str, Array] = field(default_factory=dict)
    wrenches: dict[str, Array] = field(default_factory=dict)
    sources: dict[str, Any] = field(default_factory=dict)
    #: edges whose terminal equations give way to inputs: {edge: "through" | "across"}
    opened: dict[str, str] = field(default_factory=dict)


@dataclass(eq=False)
class Tableau:
    """A z = B: the last column of B is what is given, the first ones are the inputs at opened ports."""

    net: Network
    graph: SystemGraph
    state: Situation
    problem: Problem
    domain: Domain

    def __post_init__(self) -> None:
        self.edge = {e.name: i for i, e in enumerate(self.graph.edges)}
        self.columns: dict[tuple[str, str], slice] = {}
        n = 0
        in_tree = set(self.graph.tree)
        for i, e in enumerate(self.graph.edges):
            self.columns[("across" if i in in_tree else "through", e.name)] = slice(n, n + e.size)
            n += e.size
        for joint in self.net.parts.joints.values():
            self.columns[("a", joint.name)] = slice(n, n + joint.nv)
            n += joint.nv
        for name in self.net.parts.gears:
            self.columns[("gear", name)] = slice(n, n + 1)
            n += 1
        for name, part in {**self.net.parts.holds, **self.net.parts.relations}.items():
            self.columns[("load", name)] = slice(n, n + getattr(part, "size", 1))
            n = self.columns[("load", name)].stop
        self.size = n
        self.inputs = {name: slice(6 * k, 6 * k + 6) for k, name in enumerate(self.problem.opened)}
        self.width = 6 * len(self.inputs) + 1
        self.A, self.B = self.domain.zeros(n, n), self.domain.zeros(n, self.width)
        self.labels: list[str] = []
        self.force_rows: dict[str, slice] = {}  # of joints whose force is given
        self._Q = self.graph.cutset_chords
        self._branch = {e: k for k, e in enumerate(self.graph.tree)}
        self._chord = {e: k for k, e in enumerate(self.graph.cotree)}
        self._assemble()

    # -- across and through of any edge, by circuits and cut-sets --------------------------------------------------

    def _terms(self, kind: str, name: str) -> list[tuple[slice, int]]:
        """[(columns of an unknown, ±1)]: the across rate or the through variable of an edge."""
        if (kind, name) in self.columns:
            return [(self.columns[(kind, name)], 1)]
        i = self.edge[name]
        if kind == "across":
            entries = self._Q[:, self._chord[i]]
            return [(self.columns[("across", self.graph.edges[self.graph.tree[k]].name)], int(entries[k]))
                    for k in np.flatnonzero(entries)]
        entries = self._Q[self._branch[i]]
        return [(self.columns[("through", self.graph.edges[self.graph.cotree[k]].name)], -int(entries[k]))
                for k in np.flatnonzero(entries)]

    def read(self, kind: str, name: str, z: Array) -> Array:
        """The across rate or through variable of an edge in a solution."""
        total = self.domain.zeros(self.graph.edges[self.edge[name]].size, *z.shape[1:])
        for columns, sign in self._terms(kind, name):
            total = total + (z[columns] if sign > 0 else -z[columns])
        return total

    def _rows(self, label: str, count: int) -> slice:
        start = len(self.labels)
        self.labels += [label] * count
        return slice(start, start + count)

    def _add(self, rows: slice, kind: str, name: str, matrix: Array) -> None:
        """A[rows] += matrix · (across rate or through of an edge)."""
        for columns, sign in self._terms(kind, name):
            self.A[rows, columns] = self.A[rows, columns] + (matrix if sign > 0 else -matrix)

    def _give(self, rows: slice, value: Array) -> None:
        self.B[rows, -1] = self.B[rows, -1] + value

    # -- terminal equations ----------------------------------------------------------------------------------------

    def _assemble(self) -> None:
        net = self.net
        for body in net.parts.bodies.values():
            self._body(body)
        for name in net.parts.joints:
            self._open(name) if name in self.problem.opened else self._joint(name)
        for name in net.parts.springs:
            self._through_given(name, self._spring_wrench(name))
        for name, driver in net.parts.forces.items():
            if name in self.problem.opened:
                self._open(name)
            else:
                given = self.problem.wrenches.get(name, driver.wrench)
                self._through_given(name, swapped(self.domain.array(given)))
        for name, multiport in net.parts.multiports.items():
            self._multiport(name, multiport)
        for gear in net.parts.gears.values():
            self._gear(gear)
        for hold in net.parts.holds.values():
            self._hold(hold)
        self._relation_rows = {name: relation_row(net, part, self.state) for name, part in net.parts.relations.items()}
        for relation in net.parts.relations.values():
            self._relation(relation)
        self._electrical()
        assert len(self.labels) == self.size, "as many equations as unknowns"

    def _body(self, body: RigidBody) -> None:
        domain, frame = self.domain, self.state.frames[body.name]
        eye = domain.eye(6)
        centre = self.state.port(self.net, f"{body.name}.{CENTRE}")
        omega, v_G = centre.x[3:], centre.x[:3]
        J = frame.R @ domain.array(body.inertia) @ frame.R.T
        mass = domain.array([body.mass])[0]
        kinetic = active_port(mass, J, omega, domain.array(self.net.gravity), domain=domain)
        rows = self._rows(body.name, 6)
        self._add(rows, "across", f"{body.name}.{CENTRE}", kinetic.P)
        self._add(rows, "through", f"{body.name}.{CENTRE}", -eye)
        self._give(rows, -(kinetic.Q @ centre.x) - kinetic.u)
        for port in body.ports.values():
            if port.name == CENTRE:
                continue
            place, velocity = self._port_point(port.full)
            K = lever(place - centre.p, domain=domain)
            self._add(rows, "through", port.full, -K)
            here = self._rows(body.name, 6)
            self._add(here, "across", port.full, eye)
            self._add(here, "across", f"{body.name}.{CENTRE}", -K.T)
            self._give(here, np.concatenate([cross(omega, velocity - v_G), domain.zeros(3)]))

    def _port_point(self, full: str) -> tuple[Array, Array]:
        """Where a port is and how fast that place moves: port a of a joint or guide is where port b is."""
        user = self.net.connections.get(full, "")
        part = self.net.parts.joints.get(user) or self.net.parts.holds.get(user)
        slides = part is not None and part.a == full and part.kind != "rod"
        placed = self.state.port(self.net, part.b if part is not None and slides else full)
        return placed.p, placed.x[:3]

    def _joint(self, name: str) -> None:
        joint, state, domain = self.net.parts.joints[name], self.state.joints[name], self.domain
        rows = self._rows(name, 6)
        self._add(rows, "across", name, domain.eye(6))
        self._give(rows, state.drift + self._multiport_slide(name))
        if not joint.nv:
            return
        a = self.columns[("a", name)]
        self.A[rows, a] = -state.directions
        here = self._rows(name, joint.nv)
        if name in self.problem.accelerations:
            self.A[here, a] = domain.eye(joint.nv)
            self._give(here, self.problem.accelerations[name])
            return
        self.force_rows[name] = here
        self._add(here, "through", name, -state.directions.T)
        self.A[here, a] = domain.array(joint.armature)
        self._give(here, self.joint_force(name))
        self._motors(name, here)
        for gear, share in self.gear_shares(name):
            self.A[here, self.columns[("gear", gear)]] = -domain.array([[share]])

    def _gear(self, gear: GearPart) -> None:
        row = self._rows(gear.name, 1)
        for joint, share in ((gear.follower, 1), (gear.leader, -gear.factor)):
            self.A[row, self.columns[("a", joint)]] = self.domain.array([[share]])

    def _hold(self, part: HoldPart) -> None:
        w, rate = held_directions(self.net, part, self.state)
        a, b = self.state.port(self.net, part.a), self.state.port(self.net, part.b)
        loads, none = self.columns[("load", part.name)], self.domain.zeros(3, part.size)
        rows = self._rows(part.name, 6)
        self._add(rows, "through", part.name, self.domain.eye(6))
        self.A[rows, loads] = np.concatenate([w, none])
        here = self._rows(part.name, part.size)
        self._add(here, "across", part.name, np.concatenate([w, none]).T)
        place, _ = self._port_point(part.a)
        at_a = a.x[:3] + cross(a.x[3:], place - a.p)
        self._give(here, -(rate.T @ (b.x[:3] - at_a)))

    def _relation(self, part: RelationPart) -> None:
        """J a = −J̇ v; its load enters the equations of the joints it names."""
        row = self._rows(part.name, 1)
        load = self.columns[("load", part.name)]
        for joint, J in self._relation_rows[part.name].items():
            self.A[row, self.columns[("a", joint)]] = J.reshape(1, -1)
            if joint in self.force_rows:
                here = self.force_rows[joint]
                self.A[here, load] = self.A[here, load] - J.reshape(-1, 1)
        self._give(row, -np.array([relation_drift(self.net, part, self.state)], dtype=self.domain.dtype))

    def relation_shares(self, name: str) -> list[tuple[str, Array]]:
        """[(relation, what of its load acts along the joint)]."""
        return [(r, rows[name]) for r, rows in self._relation_rows.items() if name in rows]

    def gear_shares(self, name: str) -> list[tuple[str, Any]]:
        """[(gear, what of its λ acts along the joint)]."""
        gears = self.net.parts.gears.values()
        return [(g.name, 1 if g.follower == name else -g.factor) for g in gears if name in (g.follower, g.leader)]

    def joint_force(self, name: str) -> Array:
        """tau + passive, nv numbers."""
        joint, state, domain = self.net.parts.joints[name], self.state.joints[name], self.domain
        force = self.problem.forces.get(name, domain.zeros(joint.nv))
        if joint.stiffness.any():
            force = force - spring_gradient(joint, state.q, domain=domain)
        if joint.damping.any():
            force = force - domain.array(joint.damping) @ state.v
        if joint.friction is not None:
            force = force + friction_forces(joint.friction, state.v, domain=domain)
        if joint.limits is not None:
            force = force + stop_forces(joint.limits, state.q, state.v, domain=domain)
        return force + self._bearings(name)

    def _motors(self, name: str, rows: slice) -> None:
        """Rotors, which may tie this joint to others, and the torque of windings: Eᵀ(K_t i − J E a)."""
        domain = self.domain
        for motor in self.net.parts.motors.values():
            if name not in motor.speeds:
                continue
            E = domain.array(motor.speeds[name])
            J, K_t = domain.array([motor.inertia, motor.torque_constant])
            for other, speeds in motor.speeds.items():
                columns = self.columns[("a", other)]
                self.A[rows, columns] = self.A[rows, columns] + np.outer(E, domain.array(speeds)) * J
            if motor.plus is not None:
                self._add(rows, "through", motor.name, -(E * K_t).reshape(-1, 1))

    def shaft_speed(self, name: str) -> Any:
        """E v of a motor."""
        total = self.domain.const(0)
        for joint, speeds in self.net.parts.motors[name].speeds.items():
            total = total + self.domain.array(speeds) @ self.state.joints[joint].v
        return total

    def _bearings(self, name: str) -> Array:
        """−Eᵀ B E v: what the bearings of motors exert along a joint."""
        force = self.domain.zeros(self.net.parts.joints[name].nv)
        for motor in self.net.parts.motors.values():
            if name in motor.speeds and motor.damping != 0:
                drag = self.domain.array([motor.damping])[0] * self.shaft_speed(motor.name)
                force = force - self.domain.array(motor.speeds[name]) * drag
        return force

    def _multiport_slide(self, name: str) -> Array:
        """Port a of a multiport is a point of its body: where the joint slides, its place lacks ω_a × (v_b − v_a)."""
        joint = self.net.parts.joints[name]
        if self.net.ports[joint.a].component not in self.net.parts.multiports:
            return self.domain.zeros(6)
        self.net.refuse_sliding_multiport(joint, self.state)
        a, b = self.state.port(self.net, joint.a), self.state.port(self.net, joint.b)
        return np.concatenate([cross(a.x[3:], b.x[:3] - a.x[:3]), self.domain.zeros(3)])

    def _open(self, name: str) -> None:
        """An opened edge: its across rate or its through variable (on the outside, so with minus) is an input."""
        rows, kind = self._rows(name, 6), self.problem.opened[name]
        eye = self.domain.eye(6)
        self._add(rows, kind, name, eye)
        self.B[rows, self.inputs[name]] = eye if kind == "across" else -eye
        joint = self.net.parts.joints.get(name)
        if joint is not None and joint.nv:
            here = self._rows(name, joint.nv)
            self.A[here, self.columns[("a", name)]] = self.domain.eye(joint.nv)

    def _through_given(self, name: str, on_head: Array) -> None:
        rows = self._rows(name, 6)
        self._add(rows, "through", name, self.domain.eye(6))
        self._give(rows, -on_head)

    def _spring_wrench(self, name: str) -> Array:
        """What the spring exerts on port b."""
        spring, domain = self.net.parts.springs[name], self.domain
        a, b = self.state.port(self.net, spring.a), self.state.port(self.net, spring.b)
        k, length0, c = domain.array([spring.stiffness, spring.length, spring.damping])
        line = b.p - a.p
        if domain.is_zero(length0) and domain.is_zero(c):
            force = -(line * k)
        else:
            length = domain.sqrt(line @ line)
            u = line / length
            force = -(u * ((length - length0) * k + (u @ (b.x[:3] - a.x[:3])) * c))
        return np.concatenate([force, domain.zeros(3)])

    def _multiport(self, name: str, multiport: Any) -> None:
        for i, port in enumerate(multiport.ports):
            rows = self._rows(name, 6)
            self._add(rows, "across", f"{name}.{port}", self.domain.eye(6))
            self._give(rows, self.domain.array(multiport.b[6 * i : 6 * i + 6]))
            for j, other in enumerate(multiport.ports):
                block = multiport.A[6 * i : 6 * i + 6, 6 * j : 6 * j + 6]
                self._add(rows, "through", f"{name}.{other}", -self.domain.array(block))

    def _electrical(self) -> None:
        domain, one = self.domain, self.domain.array([[1]])
        for part in self.net.parts.electric.values():
            row = self._rows(part.name, 1)
            value = domain.array([self.problem.sources.get(part.name, part.value)])
            if part.kind == "resistor":
                self._add(row, "across", part.name, one)
                self._add(row, "through", part.name, -value.reshape(1, 1))
            else:
                self._add(row, "across" if part.kind == "voltage" else "through", part.name, one)
                self._give(row, value)
        for motor in self.net.parts.windings().values():
            row = self._rows(motor.name, 1)
            slope = one if motor.inductance != 0 else -domain.array([[motor.resistance]])
            self._add(row, "through", motor.name, slope)
            if motor.inductance != 0:
                self._give(row, domain.array([self.state.currents[motor.name]]))
            else:
                self._add(row, "across", motor.name, one)
                self._give(row, self.back_voltage(motor.name))

    def back_voltage(self, name: str) -> Array:
        """K_e E v of a motor."""
        K_e = self.domain.array([self.net.parts.motors[name].speed_constant])[0]
        return self.domain.array([K_e * self.shaft_speed(name)])


__all__ = ["Problem", "Tableau"]
