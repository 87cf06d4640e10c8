"""The right side of a problem as an expression graph, with what is recorded beside it.

    x = [q; v; i; W; t],    ẋ = [Γ(q) v; FD(q, v, tau, w); di/dt; vᵀ(tau + dampers) + Σ wᵀV; 1]

as `simulation.problem` computes it in Python: what is changed there (what acts on the joints, what does work) is
changed here too. Beside ẋ are recorded tau and the motors' currents, and with loops `growth` and `narrow`, which say
whether the elimination along its plan may be believed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from polybody.algebra.domains import Domain, domain
from polybody.algebra.shared import SharedGraph
from polybody.constraints.elimination import squares
from polybody.constraints.plan import Plan
from polybody.formulations import denoc
from polybody.late import dataclass, field
from polybody.mechanism import kinematics
from polybody.mechanism.joints import closed_manifold
from polybody.mechanism.mechanism import BodyFrame, Mechanism
from polybody.mechanism.saturation import DriveLimits, saturated
from polybody.model.diagnosed import GROWTH
from polybody.model.model import Model
from polybody.model.numbering import Numbering
from polybody.model.plans import SWITCH
from polybody.model.tracing import Recorded, as_traced
from polybody.names import counted
from polybody.properties import cached_property
from polybody.quantities import constrained
from polybody.quantities.constrained import Closed, along_plan
from polybody.quantities.shortest import forward_dynamics
from polybody.simulation.compiled import bearing, event_texts, rolled
from polybody.simulation.compiled.holding import Holding
from polybody.simulation.compiled.joint_space import remember
from polybody.simulation.compiled.law import Law
from polybody.simulation.compiled.tracing import key_of
from polybody.simulation.compiled.watch import Watch
from polybody.simulation.currents import Circuits
from polybody.simulation.failures import NotCompiled

Array = np.ndarray
#: the field that was traced last: who differentiates a run asks for it again
_LAST: dict[str, Any] = {}


@dataclass(frozen=True, eq=False)
class Motion:
    """The motion under all that acts, as nodes of one graph."""

    graph: Any
    columns: list[Any]  # of x, constants and row
    x: Array
    c: Array
    state: tuple[Array, Array, Array, Any]  # q, v, i, t
    loads: list[Array]
    tau: Array  # of controller and motors
    whole: Array  # and of dry friction
    currents: Array
    rates: Array  # of the currents
    a: Array
    told: Array
    held: Array | None  # what holds joints that are held
    numberings: list[Numbering] = field(default_factory=list)

    def shared(self, made: Any) -> Any:
        """A part of the same columns: what another has put on its tape is not numbered again."""
        if isinstance(made, Recorded):
            if not self.numberings:
                self.numberings.append(Numbering(made.columns, made.known))
            made.numbering = self.numberings[0]
        return made


@dataclass(frozen=True, eq=False)
class Acting:
    """All that acts on a model, and how: the controller's law, frames with constant wrenches, voltages, dampers."""

    model: Model
    law: Law
    frames: tuple[BodyFrame, ...] = ()
    wrenches: Array = field(default_factory=lambda: np.zeros(0))  # six numbers a frame
    circuits: Circuits | None = None
    dissipates: bool = True
    plan: Plan | None = None  # of elimination, with loops
    holding: Holding = field(default_factory=Holding)  # joints that stops or friction hold
    held: Array = field(default_factory=lambda: np.zeros(0))  # its numbers
    drives: DriveLimits | None = None  # bounds of what the controller asks for
    whole: Model | None = None  # with dry friction, as controllers know it, where `model` is without
    changing: tuple[Any, ...] = ()  # for each frame: its wrench as a casadi.Function of time, or None
    rolled: bool = False  # dynamics are recursions over the tree (`rolled`)

    @property
    def constants(self) -> Array:
        if self.motors is None and not (len(self.law.constants) or len(self.wrenches) or len(self.held)):
            return np.append(self.parameters, 0.0) if len(self.parameters) else np.zeros(1)
        voltages = [] if self.motors is None else np.asarray(self.motors.voltages, dtype=float)
        return np.concatenate([self.law.constants, self.wrenches, voltages, self.held, self.parameters, [0.0]])

    def renumbered(self, **numbers: Any) -> Acting:
        """The same texts with other numbers: the law's constants, `held`."""
        new = object.__new__(Acting)  # a copy with its key, at every event
        new.__dict__.update(self.__dict__, **numbers)
        return new

    @property
    def parameters(self) -> Array:
        """Values of what of the model is an input (`model.with_parameters`)."""
        values = self.model.engine.tree.source.values
        return np.zeros(0) if values is None else np.asarray(values, dtype=float)

    @property
    def mechanism(self) -> Mechanism:
        """The cut tree that texts are read with."""
        return self.model.engine.tree.traced_mechanism

    @property
    def known(self) -> Mechanism:
        """The cut tree as controllers know it, with dry friction."""
        if self.whole is None:
            return self.mechanism
        source = self.whole.engine.tree.source
        return source.traced if len(self.parameters) else source.mechanism

    @cached_property
    def is_calm(self) -> bool:
        """Whether no wrench reads the time, though it was given as a function of it."""
        return not any(wave is not None and wave.jac_sparsity(0, 0).nnz() for wave in self.changing)

    @property
    def motors(self) -> Circuits | None:
        return self.circuits if self.circuits is not None and self.circuits.closed else None

    @cached_property
    def key(self) -> str:
        """What distinguishes its graph from others of the same code."""
        frames = [frame.name for frame in self.frames]
        motors = None if self.motors is None else self.motors.inductive.tolist()
        plan = self.plan.label if self.plan else ""
        limits = None if self.drives is None else [self.drives.effort, self.drives.velocity, self.drives.power]
        bounds = "" if limits is None else np.array(limits).tobytes().hex()
        waves = [None if f is None else key_of(f) for f in self.changing]
        acts = f"{self.law.key} {len(self.law.constants)} {frames} {waves} {motors} {self.dissipates}"
        return f"{acts} {plan} {bounds} {self.holding.key} {self.rolled}"

    @property
    def size(self) -> int:
        """Of y."""
        return self.model.nq + self.model.nv + (self.circuits.size if self.circuits else 0) + 1

    @property
    def recorded(self) -> int:
        return self.model.nv + (0 if self.motors is None else len(self.motors.motors))

    @cached_property
    def curved(self) -> bool:
        return any(joint.nq != joint.nv for joint in self.model.mechanism.independent_joints)

    # Columns and their parts.

    @property
    def graph(self) -> Any:
        """What texts are read over; with loops one graph with all kernels of the mechanism."""
        return domain("casadi") if self.plan is None else self.model.engine.constraints.graph

    def columns(self, graph: Any) -> tuple[list[Any], Array, Array, Array]:
        """(casadi columns, x, constants, row)."""
        sizes = {"c": len(self.constants), "row": self.law.signals.rows.shape[1]}
        made = [self._x(graph), *(graph.variables(name, size) for name, size in sizes.items())]
        return [column for column, _ in made], made[0][1], made[1][1], made[2][1]

    def _x(self, graph: Any) -> tuple[Any, Array]:
        if not isinstance(graph, SharedGraph):
            return graph.variables("x", self.size + 1)
        nq, nv = self.model.nq, self.model.nv
        return graph.stacked(("q", nq), ("v", nv), ("x", self.size + 1 - nq - nv))

    def split(self, x: Array, graph: Any) -> tuple[Array, Array]:
        """(q, v): of a shared graph the arrays that all texts read."""
        nq, nv = self.model.nq, self.model.nv
        if not isinstance(graph, SharedGraph):
            return x[:nq], x[nq : nq + nv]
        return graph.variables("q", nq)[1], graph.variables("v", nv)[1]

    def state(self, x: Array, graph: Domain) -> tuple[Array, Array, Array, Any]:
        """(q with unit quaternions, v, i, t)."""
        q, v = self.split(x, graph)
        if self.curved:
            given = q
            q = graph.once("unit", (self.mechanism, given), lambda: unit(self.mechanism, given, graph))
        return q, v, x[len(q) + len(v) : self.size - 1], x[self.size]

    def loads(self, t: Any, c: Array, graph: Any) -> list[Array]:
        """The wrench on each frame: a constant, or what its function says at that time."""
        constant = self.split_constants(c)[1]
        return [
            wrench if function is None else graph.scalars(function(graph.column([t])))
            for wrench, function in zip(constant, self.changing or [None] * len(constant), strict=True)
        ]

    def split_constants(self, c: Array) -> tuple[Array, list[Array], Array, Array]:
        """(the law's, a wrench for each frame, voltages, the numbers of `holding`)."""
        first, loads = len(self.law.constants), 6 * len(self.frames)
        wrenches = [c[first + 6 * k : first + 6 * k + 6] for k in range(len(self.frames))]
        end = len(c) - 1 - len(self.parameters)
        return c[:first], wrenches, c[first + loads : end - self.holding.size], c[end - self.holding.size : end]

    # Texts.

    def drive(self, q: Array, v: Array, i: Array, t: Any, c: Array, row: Array, graph: Domain) -> tuple[Array, ...]:
        """(joint forces of controller and motors, all currents, di/dt)."""
        of_law, _, voltages, _ = self.split_constants(c)
        tau = self.law.text(self.known, t, q, v, of_law, row, graph)
        if self.drives is not None:
            tau = saturated(self.drives, tau, v, domain=graph)
        if self.motors is None:
            return tau, graph.zeros(0), graph.zeros(0)
        motors, inductive = self.mechanism.motors, self.motors.inductive  # their numbers may be parameters
        left = voltages - graph.array(motors.voltages) @ v
        currents = graph.zeros(len(motors))
        currents[inductive] = i
        for k in sorted(set(range(len(motors))) - set(inductive)):
            currents[k] = left[k] / graph.const(motors.resistance[k])
        left = left - graph.array(motors.resistance) * currents
        rates = left[inductive] / graph.array(motors.inductance[inductive])
        return tau + graph.array(motors.torques) @ currents, currents, rates

    @property
    def doubtful(self) -> bool:
        """Whether the field of a tree may have to be refused."""
        return self.law.doubtful or bool(self.holding.bearing)

    def rubbed(
        self, q: Array, v: Array, tau: Array, loads: list[Array], c: Array, graph: Domain
    ) -> tuple[Array, Any]:
        """(tau with what dry friction exerts on joints that slide, how little it may be believed: 0 to 1)."""
        if self.holding.bearing:
            return bearing.rubbed(self, q, v, tau, loads, c, graph)
        if self.holding.rubs:
            tau = tau + self.holding.friction(v, self.split_constants(c)[3], graph)
        return tau, graph.const(0)

    def accelerate(
        self, q: Array, v: Array, tau: Array, loads: list[Array], c: Array, graph: Domain
    ) -> tuple[Array, Array]:
        """(a, [growth, narrow])."""
        return self.motion_under(q, v, tau, loads, c, graph)[:2]

    def motion_under(
        self, q: Array, v: Array, tau: Array, loads: list[Array], c: Array, graph: Domain
    ) -> tuple[Array, Array, Array | None]:
        """(a, [growth, narrow], λ: what holds each joint that is held, (nv,), of all others zero up to rounding; None
        where none is)."""
        m = self.mechanism if loads else self.model.engine.reduced_mechanism
        on_bodies = on_bodies_text(m, q, self.frames, loads, graph) if loads else None
        if self.plan is None:
            free = self.holding.free(m.nv, self.split_constants(c)[3], graph)
            told = np.array([self.doubt(graph), graph.const(0)], dtype=object)
            if free is None:
                known = (x.acceleration(m, q, v, tau) for x in self.law.solved if on_bodies is None)
                a = next((x for x in known if x is not None), None)
                return forward_dynamics(m, q, v, tau, on_bodies, domain=graph) if a is None else a, told, None
            held = graph.zeros(m.nv)
            a = denoc.forward_dynamics(m, q, v, tau, on_bodies, domain=graph, free=free, holding=held)
            return a, told, held
        closed = Closed(m, self.model.engine.constraints.traced, along_plan(self.plan), ())
        a = constrained.forward_dynamics(closed, q, v, tau, on_bodies, domain=graph)
        found, held = closed.motions(q, graph), None
        if self.holding.frozen and not self.holding.loose:
            answer, load = self._held(closed, q, a, c, graph)
            a, held = a + found.G @ (answer @ load), self._at_slots(load, graph)
        return a, np.array([found.growth + self.doubt(graph), found.narrow], dtype=object), held

    def doubt(self, graph: Domain) -> Any:
        """Of drives that are asked for what they cannot give, and of tasks that are nearly singular: terms are believed
        up to 1e10."""
        total = graph.const(0)
        for term in self.law.doubts:
            total = total + term * graph.const(SWITCH / GROWTH)
        return total

    def _at_slots(self, load: Array, graph: Domain) -> Array:
        found = graph.zeros(self.model.nv)
        found[[slot for _, slot in self.holding.slots]] = load
        return found

    def _held(self, closed: Closed, q: Array, a: Array, c: Array, graph: Domain) -> tuple[Array, Array]:
        """(M*⁻¹Nᵀ, λ) of joints that may be held, a the acceleration without."""
        G, M = closed.motions(q, graph).G, constrained.mass_matrix(closed, q, domain=graph)
        answer = graph.solve(M, G[[slot for _, slot in self.holding.slots]].T)
        return answer, self.holding.held_forces(G, answer, a, self.split_constants(c)[3], graph)

    def power(
        self, q: Array, v: Array, tau: Array, loads: list[Array], c: Array, graph: Domain, a: Array | None = None
    ) -> Any:
        """Ẇ; a are the accelerations, where they are known."""
        m = self.mechanism
        power = v @ tau
        if self.dissipates:
            still = denoc.passive_forces(m, q, graph.zeros(m.nv), domain=graph)
            power = power + v @ (denoc.passive_forces(m, q, v, domain=graph) - still)
        for frame, wrench in zip(self.frames, loads, strict=True):
            power = power + wrench @ (kinematics.frame_jacobian(m, q, frame, domain=graph) @ v)
        if self.model.mechanism.paced:
            a = self.accelerate(q, v, tau, loads, c, graph)[0] if a is None else a
            on = on_bodies_text(m, q, self.frames, loads, graph)
            power = power + v @ (denoc.inverse_dynamics(m, q, v, a, on, domain=graph) - tau)
        return power

    def function(self, name: str, watched: Watch | None = None) -> Any:
        """The tape or casadi.Function of a part of `kernels.stepping`."""
        if watched is not None and name in ("watch", "watch_after"):
            return as_traced(self._watch if name == "watch" else lambda w: rolled.after_watch(self, w), watched)
        if name in ("loose", "loose_watch"):
            free = rolled.loosened(self)
            if name == "loose":
                return as_traced(free._field)
            assert watched is not None
            return as_traced(free._watch, replace(watched, holding=free.holding))
        if name != "field":
            return as_traced(self.text, name)
        key = f"{self.key}:{self.model.engine.constraints.source.digest}"
        found = _LAST.get(key)
        if found is None:
            found = as_traced(self.text, name)
            _LAST.clear()
            _LAST[key] = found
        return found

    def text(self, name: str) -> Any:
        """What of it is traced: to whoever differentiates it, it is a casadi.Function."""
        makers = {"field": self._field, "leap": self._leap, "unit": self._unit, "back": self._back,
                  "slopes": self.slopes, "tick": self._tick, "inertia": lambda: event_texts.inertia(self),
                  "energy": lambda: event_texts.whole_energy(self),
                  "bearing": lambda: event_texts.bearing_levels(self), **rolled.texts(self)}  # fmt: skip
        if name not in makers:
            from polybody.simulation.compiled import rolled_middle  # of one method: others' first runs do not wait

            makers |= rolled_middle.texts(self)
        return makers[name]()

    def made(self, name: str, columns: list[Any], constants: Any, results: list[Any], graph: Any) -> Any:
        """What `kernels` compile; what of the mechanism is a symbol becomes a part of the constants."""
        import casadi

        end = constants.shape[0] - 1
        values = constants[end - len(self.parameters) : end]
        symbols = {id(m): m.symbols[0] for m in (self.mechanism, self.known) if m.symbols}.values()
        known = [(column, values) for column in symbols]
        if not any(isinstance(x, casadi.SX) for x in results):
            return Recorded(name, columns, results, known)
        outputs = [x if isinstance(x, casadi.SX) else graph.column(x) for x in results]
        for column in symbols:
            outputs = casadi.substitute(outputs, [column], [values])
        return casadi.Function(name, columns, [casadi.densify(x) for x in outputs])

    def motion(self) -> Motion:
        """What the parts of a loop have in common, traced once; `forget` drops it."""
        found = self.__dict__.get("_motion")
        if found is None:
            graph = self.graph
            columns, x, c, row = self.columns(graph)
            q, v, i, t = self.state(x, graph)
            loads = self.loads(t, c, graph)
            if self.plan is None:
                remember(self.mechanism, self.model.engine.reduced_mechanism)
            tau, currents, rates = self.drive(q, v, i, t, c, row, graph)
            whole, doubt = self.rubbed(q, v, tau, loads, c, graph)
            a, told, held = self.motion_under(q, v, whole, loads, c, graph)
            self.law.solved.clear()  # graphs may go
            told[0] = told[0] + doubt * graph.const(SWITCH)
            found = Motion(graph, columns, x, c, (q, v, i, t), loads, tau, whole, currents, rates, a, told, held)
            self.__dict__["_motion"] = found
        return found

    def forget(self) -> None:
        """Drop the graph that parts share: they have been traced."""
        if "_motion" not in self.__dict__:
            return
        from polybody.kernels.locks import tracing

        with tracing:
            self.__dict__.pop("_motion", None)

    def _field(self) -> Any:
        m = self.motion()
        q, v, graph = *m.state[:2], m.graph
        power = self.power(q, v, m.whole, m.loads, m.c, graph)
        moved = kinematics.rate(self.mechanism, q, v, domain=graph)
        rate = np.concatenate([moved, m.a, m.rates, [power, 1.0]])
        told = np.concatenate([m.tau, m.currents, m.told])
        return m.shared(self.made("field", m.columns, m.columns[1], [rate, told], graph))

    def _leap(self) -> Any:
        """Semi-implicit Euler: v₁ = v₀ + h a, q₁ = q₀ ∘ exp(h v₁), currents by the implicit rule with v₁."""
        m = self.motion()
        graph, columns, x, c, loads = m.graph, m.columns, m.x, m.c, m.loads
        answer, known = graph.variables("answer", self.size + 1)
        step, h = graph.variables("h", 1)
        q, v, i, t = m.state
        nq, nv = self.model.nq, self.model.nv
        faster = v + known[nq : nq + nv] * h[0]
        moved = kinematics.integrate(self.mechanism, q, faster * h[0], domain=graph)
        power = self.power(q, (v + faster) / graph.const(2), m.whole, loads, c, graph)
        if self.motors is not None and self.motors.size:
            k, motors = self.motors.inductive, self.mechanism.motors
            L, R = graph.array(motors.inductance[k]), graph.array(motors.resistance[k])
            push = (self.split_constants(c)[2] - graph.array(motors.voltages) @ faster)[k]
            i = (L * i + push * h[0]) / (L + R * h[0])
        new = np.concatenate([moved, faster, i, [x[self.size - 1] + power * h[0], t + h[0]]])
        return self.made("leap", [columns[0], answer, step, *columns[1:]], columns[1], [new], graph)

    def slopes(self) -> Any:
        """(x, c, row) -> ∂ẏ/∂y, row by row, without the work W."""
        import casadi

        made = self._field()
        columns = made.sx_in()
        rate = made.call(columns)[0][: self.size - 1]
        slopes = casadi.jacobian(rate, columns[0])[:, : self.size - 1]
        return casadi.Function("slopes", columns, [casadi.densify(casadi.vec(slopes.T))])

    def _tick(self) -> Any:
        """What the law remembers from an instant on (`remembered`)."""
        graph = self.graph
        columns, x, c, row = self.columns(graph)
        memory, of_law = self.law.memory, self.split_constants(c)[0]
        column, told = graph.variables("told", memory.width)
        q, v, _, t = self.state(x, graph)
        count = len(of_law) - memory.size
        self.law.doubts.clear()  # of another text
        z = memory.updated(self.known, t, q, v, of_law[count:], told, of_law[:count], row, graph)
        doubt = np.array([self.doubt(graph)], dtype=object)
        return self.made("tick", [*columns, column], columns[1], [z, doubt], graph)

    def _unit(self) -> Any:
        graph = self.graph
        columns, x, c, _ = self.columns(graph)
        nq, worst = self.model.nq, graph.const(0)
        for joint in self.model.mechanism.independent_joints:
            if joint.nq != joint.nv:
                part = x[joint.q.stop - 4 : joint.q.stop]
                off = graph.sqrt(part @ part) - graph.const(1)
                off = graph.where(graph.less(off, graph.const(0)), -off, off)
                worst = graph.where(graph.less(worst, off), off, worst)
        new = np.concatenate([unit(self.model.mechanism, x[:nq], graph), x[nq:]])
        if self.plan is None:
            new = self.holding.pinned(new, nq, self.split_constants(c)[3], graph)
        off = np.array([worst], dtype=object)
        return self.made("unit", columns[:2], columns[1], [new, off], graph)

    def _back(self) -> Any:
        graph = self.graph
        columns, x, c, _ = self.columns(graph)
        nq, nv, system = self.model.nq, self.model.nv, self.model.engine.constraints.traced
        assert self.plan is not None
        q, v = self.split(x, graph)
        found = along_plan(self.plan)(system.jacobian(q, domain=graph), graph)
        residual = system.residual(q, domain=graph)
        step, off = found.follow(residual), squares(residual, graph)
        speed = v + found.follow(system.velocity(q, v, domain=graph))
        if self.holding.frozen:
            numbers = self.split_constants(c)[3]
            step = self.holding.kept(found.G, step, numbers, graph, x)
            speed = self.holding.kept(found.G, speed, numbers, graph)
            off = off + squares(self.holding.gaps(x, numbers, graph), graph)
        moved = kinematics.integrate(self.mechanism, q, step, domain=graph)
        new = np.concatenate([moved, speed, x[nq + nv :]])
        told = [graph.sqrt(off), found.growth, found.narrow, *found.turns.ravel()]
        return self.made("back", columns[:2], columns[1], [new, np.array(told, dtype=object)], graph)

    def _watch(self, watch: Watch) -> Any:
        load, borne, shared = None, None, None
        if watch.holding.frozen and not watch.holding.loose:
            m = self.motion()
            graph, columns, c, (q, v, _, t), tau, loads = m.graph, m.columns, m.c, m.state, m.whole, m.loads
            load, shared = m.held, m.shared
            if self.holding.bearing:
                borne = bearing.sizes(bearing.forces(self, q, v, tau, loads, c, graph), graph)
        else:
            graph = self.graph
            columns, x, c, _ = self.columns(graph)
            q, v, _, t = self.state(x, graph)
            load = graph.zeros(self.model.nv) if watch.holding.loose else None
        values = list(watch(t, q, v, graph))
        values += watch.holding.watched(q, v, self.split_constants(c)[3], load, graph, borne)
        made = self.made("watch", columns, columns[1], [np.array(values, dtype=object)], graph)
        return made if shared is None else shared(made)


def unit(mechanism: Any, q: Array, graph: Domain) -> Array:
    """q with unit quaternions."""
    q = q.copy()
    for joint in mechanism.independent_joints:
        if joint.nq != joint.nv:
            part = slice(joint.q.stop - 4, joint.q.stop)
            q[part] = q[part] / graph.sqrt(q[part] @ q[part])
    return q


def on_bodies_text(m: Any, q: Array, frames: Sequence[BodyFrame], loads: list[Array], graph: Domain) -> Array:
    """Wrenches on frames as wrenches on bodies at their origins, world axes, (bodies, 6)."""
    from polybody.algebra.rotations import cross

    poses, result = kinematics.body_poses(m, q, domain=graph), graph.zeros(len(m.bodies), 6)
    for frame, wrench in zip(frames, loads, strict=True):
        if frame.body >= 0:
            lever = poses[frame.body][0] @ graph.array(frame.position)
            moved = np.concatenate([wrench[:3] + cross(lever, wrench[3:]), wrench[3:]])
            result[frame.body] = result[frame.body] + moved
    return result


def require_compilable(model: Model, method: str) -> None:
    """Raise `NotCompiled` where a model's field is no straight-line code of reasonable length."""
    engine: Any = model.engine
    if model.mechanism.constrained and not engine.is_compiled:
        many = counted(model.nv, "velocity", "velocities")
        raise NotCompiled(f"{many} with loops are too many for straight-line code")
    if model.nv > rolled.MOST_STRAIGHT:
        rolled.require_rolled(model)
    strict = method in ("semi-implicit", "midpoint") or model.mechanism.constrained
    if strict and not all(closed_manifold(joint.model) for joint in model.mechanism.independent_joints):
        raise NotCompiled("a joint's manifold has no closed form")


__all__ = ["Acting", "require_compilable"]
