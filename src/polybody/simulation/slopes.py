"""Derivatives of a run's right side, ẋ = f(x, z, p) with x = [q; v; i]: of the motion's equation, not of its solution.

A motion satisfies ID(q, v, a, p) = tau, and J a + γ = 0 with loops. At the acceleration a of a state

    M δa − Jᵀ δλ = δtau − ID_q δq − ID_v δv − ID_p δp + (Jᵀλ)_q δq                                         (1)
    J δa         = −(J a + γ)_q δq − (J a + γ)_v δv                                                        (2)

with kernels of ID's derivatives (`denoc.derivatives`), of what parameters of bodies change (`denoc.regressor`, in which
ID is linear), and of the forces tau of controller, motors and friction. Their texts are short, and the solution is one
of linear equations for each state: to differentiate the text of forward dynamics takes ten times as many operations
for a humanoid. Rows of q̇ = Γ(q) v are copied where Γ = 1.

The text of forward dynamics itself is differentiated where these are not all: wrenches on frames, friction by load,
joints held in loops, parameters that change loops or charts of joints, rolling.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.algebra import many
from polybody.algebra.domains import Domain, domain
from polybody.formulations import denoc
from polybody.garbage import uncollected
from polybody.kernels import background
from polybody.kernels.locks import tracing
from polybody.mechanism import kinematics
from polybody.model.engine import Request
from polybody.model.tracing import Recorded, compiled
from polybody.model.tree_engine import MOST_SPARED, SPARING, sparing
from polybody.properties import cached_property
from polybody.quantities.table import QUANTITIES
from polybody.simulation.compiled.field import Acting, unit
from polybody.simulation.loop_slopes import Loops, are_described, move_nothing

if TYPE_CHECKING:
    from polybody.simulation.step_derivatives import StepDerivatives

Array = np.ndarray
#: numbers of a body in which its forces are linear, or nearly: its mass, its centre, its inertia
INERTIAL = ("mass", "com", "inertia")
BY_PARAMETERS = "forces by parameters"
#: velocities of trees up to which the text of forward dynamics is differentiated as a whole: one short kernel
MOST_WHOLE = 9


@dataclass(frozen=True, eq=False)
class Turning:
    """A joint whose rates are not its velocities: its places in q and v, Γ, ∂(Γv)/∂q and ∂d/∂q of each state."""

    q: slice
    v: slice
    gamma: Array
    turn: Array
    back: Array


@dataclass(frozen=True, eq=False)
class Slopes:
    """[f_x, f_p, f_z] of a batch of states: `rows` (states, n − top, n + k + m), below those of q̇."""

    sizes: tuple[int, int, int]  # n, k, m
    rows: Array
    top: int = 0
    plain: tuple[Array, Array] = (np.zeros(0, dtype=int), np.zeros(0, dtype=int))  # q̇ = v: places in x of both
    turning: tuple[Turning, ...] = ()

    def carried(self, b: int, S: Array, S_z: Array) -> Array:
        """f_x S + f_p + f_z S_z at state b."""
        n, k, m = self.sizes
        rows = self.rows[b]
        found = np.empty((n, k))
        below = np.matmul(rows[:, :n], S, out=found[self.top :])
        below += rows[:, n : n + k]
        if m:
            below += rows[:, n + k :] @ S_z
        if self.top:
            found[self.plain[0]] = S[self.plain[1]]
            for x in self.turning:
                found[x.q] = x.turn[b] @ S[x.q] + x.gamma[b] @ S[x.v]
        return found

    def __getitem__(self, some: slice) -> Slopes:
        """Those of some of the states."""
        turning = [Turning(x.q, x.v, x.gamma[some], x.turn[some], x.back[some]) for x in self.turning]
        return Slopes(self.sizes, self.rows[some], self.top, self.plain, tuple(turning))

    @cached_property
    def dense(self) -> Array:
        """(states, n, n + k + m)."""
        if not self.top:
            return self.rows
        found = np.zeros((len(self.rows), self.sizes[0], self.rows.shape[2]))
        found[:, self.top :] = self.rows
        found[:, self.plain[0], self.plain[1]] = 1.0
        for x in self.turning:
            found[:, x.q, x.q], found[:, x.q, x.v] = x.turn, x.gamma
        return found


Stages = tuple[list[Array], list[Slopes]]


class Sloping:
    """f and its derivatives in one mode, compiled."""

    def __init__(self, of: StepDerivatives, acting: Acting, inputs: list[tuple[str, int]], key: str) -> None:
        self.of, self.acting, self.inputs, self.key = of, acting, inputs, key
        self.sizes, self.width = (of.n, of.k, of.m), of.n + of.k + of.m
        joints = acting.model.mechanism.independent_joints
        self.curved = [joint for joint in joints if not joint.model.rates_are_velocities]

    def __call__(self, t: Array, x: Array, c: Array, z: Array) -> tuple[Array, Slopes]:
        """(f, its derivatives) at states of several steps."""
        full, row = self._given(t, x, z)
        if not self.is_structured:
            rate, rows = self._whole(full, c, row)
            return rate, Slopes(self.sizes, rows)
        rate = self._rate(full, c, row)[0][:, : self.of.n]
        return rate, self._of_motion(x, rate, full, c, row)

    def _given(self, t: Array, x: Array, z: Array) -> tuple[Array, Array]:
        """What kernels take as x and row."""
        full = np.concatenate([x, np.zeros((len(x), 1)), t[:, None]], axis=1)
        return full, np.concatenate([self.of.control.rows(t), z], axis=1)

    def stages(self, t: Array, c: Array, z: Array, parts: Array, state: Callable[[list[Array]], Array]) -> Stages:
        """f and its derivatives at the stages of explicit steps: `parts` are their times, (stages, steps); `state(K)`
        is x of the next stage, K the f of those before.

        The equations of motion (1) are solved for many stages at once: no f depends on them.
        """
        K: list[Array] = []
        if not self.is_structured:
            found = []
            for at in parts:
                f, slopes = self(t + at, state(K), c, z)
                K.append(f)
                found.append(slopes)
            return K, found
        given: list[tuple[Array, ...]] = []
        for at in parts:
            x = state(K)
            full, row = self._given(t + at, x, z)
            K.append(self._rate(full, c, row)[0][:, : self.of.n])
            given.append((x, K[-1], full, c, row))
        found, together = [], max(1, MOST_SPARED // len(t))
        for first in range(0, len(given), together):
            some = given[first : first + together]
            with sparing(), background.building():  # who compiles beside texts on numbers takes half of their time
                whole = self._of_motion(*(np.concatenate(arrays) for arrays in zip(*some, strict=True)))
            found += [whole[k * len(t) : (k + 1) * len(t)] for k in range(len(some))]
        return K, found

    def rate(self, t: float, x: Array, c: Array, z: Array) -> Array:
        """f of one state."""
        row = np.concatenate([self.of.control.rows(np.array([t])), z[None]], axis=1)
        return self._rate(np.concatenate([x, [0.0, t]])[None], c[None], row)[0][0, : self.of.n]

    @cached_property
    def is_structured(self) -> bool:
        """Whether (1) and (2) are all."""
        acting = self.acting
        if acting.plan is None and acting.model.nv <= MOST_WHOLE:
            return False
        in_loops = acting.plan is None or (not acting.holding.frozen and are_described(acting.model))
        known = in_loops and (all(joint.nq != joint.nv for joint in self.curved) or move_nothing(acting.model))
        return known and not (acting.frames or acting.holding.bearing)

    @cached_property
    def loops(self) -> Loops:
        """Those along the plan."""
        return Loops(self.acting.model, self.acting.plan)

    # The text of forward dynamics, and what is differentiated of it.

    @cached_property
    def _rate(self) -> Any:
        acting = self.acting
        outputs = [("rate", (acting.size + 1,)), ("recorded", (acting.recorded + 2,))]
        return compiled("sensitivities rate", self.inputs, outputs, lambda: acting.function("field"), self.key)

    @cached_property
    def _whole(self) -> Any:
        import casadi

        def make() -> Any:
            made = self.acting.text("field")
            x, c, row = made.sx_in()
            rate = made.call([x, c, row])[0][: self.of.n]
            return casadi.Function("slopes", [x, c, row], [rate, self.by(rate, x, c, row)])

        outputs = [("rate", (self.of.n,)), ("slopes", (self.of.n, self.width))]
        return compiled("sensitivities field", self.inputs, outputs, make, self.key)

    def by(self, value: Any, x: Any, c: Any, row: Any) -> Any:
        """∂value/∂[x, p, z], row by row."""
        import casadi

        n, k, m = self.sizes
        end = c.shape[0] - 1
        parts = [x[:n], c[end - k : end], row[row.shape[0] - m :]]
        return casadi.densify(casadi.vec(casadi.horzcat(*(casadi.jacobian(value, p) for p in parts)).T))

    # Equation (1).

    def _of_motion(self, x: Array, rate: Array, full: Array, c: Array, row: Array) -> Slopes:
        (n, k, _), acting = self.sizes, self.acting
        nq, nv = acting.model.nq, acting.model.nv
        v, a = np.ascontiguousarray(x[:, nq : nq + nv]), np.ascontiguousarray(rate[:, nq : nq + nv])
        q, turning = self.turning(x[:, :nq], v)
        tree = acting.model.engine.tree
        dq, dv, M = tree.answer(Request(QUANTITIES["inverse_dynamics_derivatives"], (q, v, a)))
        plain_q, plain_v = self.plain

        def placed(by_q: Array, by_v: Array | None, below: int = 0) -> Array:
            found = np.zeros((len(x), by_q.shape[1] + below, self.width))
            rows = found[:, : by_q.shape[1]]
            rows[:, :, plain_q] = by_q[:, :, plain_v]
            for part in turning:
                rows[:, :, part.q] = by_q[:, :, part.v.start - nq : part.v.stop - nq] @ part.back
            if by_v is not None:
                rows[:, :, nq : nq + nv] = by_v
            return found

        right = placed(dq, dv, n - nq - nv)
        right[:, :nv, n : n + k] = self._forces_by_parameters(q, v, a)
        np.negative(right, out=right)
        tau: Any = 0.0
        if self.is_driven:
            tau, by = self._drive(full, c, row)
            tau, right = tau[:, :nv], right + by
        if acting.plan is None:
            M, right[:, :nv] = self._free(M, right[:, :nv], c[0])
            right[:, :nv] = np.linalg.inv(M) @ right[:, :nv]  # in half the time of LAPACK's solution of so many columns
        else:
            load = tree.answer(Request(QUANTITIES["inverse_dynamics"], (q, v, a))) - tau
            right[:, :nv] = self.loops.solved(q, v, a, load, M, right[:, :nv], placed)
        return Slopes(self.sizes, right, nq, (plain_q, nq + plain_v), turning)

    def _free(self, M: Array, right: Array, c: Array) -> tuple[Array, Array]:
        """The equations of joints that are not held; the others stay at rest."""
        holding = self.acting.holding
        if not holding.frozen:
            return M, right
        free = holding.apart(self.acting.split_constants(c)[3])[1]
        held = [slot for (_, slot), value in zip(holding.slots, free, strict=True) if not value]
        M, right = M.copy(), right.copy()
        M[:, held], M[:, :, held], right[:, held] = 0.0, 0.0, 0.0
        M[:, held, held] = 1.0
        return M, right

    @cached_property
    def plain(self) -> tuple[Array, Array]:
        """Places in q and in v of joints whose rates are their velocities."""
        joints = [x for x in self.acting.model.mechanism.independent_joints if x.model.rates_are_velocities]
        pairs = [(x.q.start + i, x.v.start + i) for x in joints for i in range(x.nv)]
        found = np.array(pairs, dtype=int).reshape(-1, 2)
        return found[:, 0], found[:, 1]

    def turning(self, q: Array, v: Array) -> tuple[Array, tuple[Turning, ...]]:
        """(q with unit quaternions, the joints that have them)."""
        if not self.curved:
            return np.ascontiguousarray(q), ()
        nq = q.shape[1]
        turned, *found = self._turns(np.ascontiguousarray(q), v)
        parts = []
        for joint, gamma, turn, made in zip(self.curved, found[::3], found[1::3], found[2::3], strict=True):
            across = np.swapaxes(gamma, 1, 2)
            back = np.linalg.solve(across @ gamma, across @ made)
            parts.append(Turning(joint.q, slice(nq + joint.v.start, nq + joint.v.stop), gamma, turn, back))
        return turned, tuple(parts)

    @cached_property
    def _turns(self) -> Any:
        """(q, v) -> unit quaternions u, and for each joint that turns Γ(u), ∂(Γ(u)v)/∂q and ∂u/∂q."""
        import casadi

        m = self.acting.model.mechanism
        inputs = [("q", m.nq), ("v", m.nv)]
        outputs: list[tuple[str, tuple[int, ...]]] = [("unit", (m.nq,))]
        for joint in self.curved:
            shapes = ((joint.nq, joint.nv), (joint.nq, joint.nq), (joint.nq, joint.nq))
            outputs += [(f"{joint.name} {name}", shape) for name, shape in zip("abc", shapes, strict=True)]

        def make() -> Any:
            graph: Any = domain("casadi")
            (column, q), (speed, v) = (graph.variables(*port) for port in inputs)
            turned = unit(m, q, graph)
            rate, whole = graph.column(kinematics.rate(m, turned, v, domain=graph)), graph.column(turned)
            found = [whole]
            for joint in self.curved:
                own = column[joint.q]
                by = (casadi.jacobian(rate[joint.q], x) for x in (speed[joint.v], own))
                by = [*by, casadi.jacobian(whole[joint.q], own)]
                found += [casadi.densify(casadi.vec(x.T)) for x in by]
            return casadi.Function("turns", [column, speed], found)

        return compiled("sensitivities turns", inputs, outputs, make, self.of.problem.model.engine.tree.source.digest)

    @cached_property
    def is_driven(self) -> bool:
        acting = self.acting
        return bool(self.of.problem.controller is not None or acting.motors is not None or acting.holding.rubs)

    @cached_property
    def _drive(self) -> Any:
        """(x, c, row) -> [tau; di/dt] and its derivatives."""
        import casadi

        acting = self.acting

        def make() -> Any:
            graph: Any = domain("casadi")
            columns, x, c, row = acting.columns(graph)
            q, v, i, t = acting.state(x, graph)
            tau, _, rates = acting.drive(q, v, i, t, c, row, graph)
            tau, _ = acting.rubbed(q, v, tau, [], c, graph)
            made = acting.made("drive", columns, columns[1], [np.concatenate([tau, rates])], graph)
            given = made.sx_in()
            (value,) = made.call(given)
            return casadi.Function("drive", given, [value, self.by(value, *given)])

        rows = self.of.n - acting.model.nq
        outputs = [("drive", (rows,)), ("by", (rows, self.width))]
        return compiled("sensitivities drive", self.inputs, outputs, make, self.key)

    def _forces_by_parameters(self, q: Array, v: Array, a: Array) -> Array:
        """ID_p, (states, nv, k)."""
        model, k = self.acting.model, self.of.k
        tree, results = model.engine.tree, [("by_parameters", (model.nv, k))]
        inputs = [("q", model.nq), ("v", model.nv), ("a", model.nv)]
        first = SPARING.get() and len(q) <= MOST_SPARED and len(self._of_bodies) == k
        if not first or not tree.spares(BY_PARAMETERS, inputs, results):
            return self._by_parameters(q, v, a, *tree.source.given())

        def text(q: Array, v: Array, a: Array, *, domain: Domain) -> Array:
            m, found = tree.mechanism, domain.zeros(model.nv, k)
            own = self._changes(np.asarray(tree.source.values, dtype=float)).full()
            changes = [(body, j, domain.array(own[10 * body : 10 * body + 10, j])) for j in range(k)
                       for body in range(len(m.bodies)) if own[10 * body : 10 * body + 10, j].any()]  # fmt: skip
            columns = denoc.changes_of_forces(m, q, v, a, [(body, row) for body, _, row in changes], domain=domain)
            for (_, j, _), column in zip(changes, columns.T, strict=True):
                found[:, j] = found[:, j] + column
            return found

        with uncollected(), tracing:
            return many.read(text, (q, v, a), [(model.nv, k)])[0]

    @cached_property
    def _of_bodies(self) -> list[int]:
        """Parameters that are numbers of bodies in which forces are linear, or nearly."""
        chosen = enumerate(self.acting.model.parameters)
        return [j for j, x in chosen if x.place[0] == "bodies" and x.place[2] in INERTIAL]

    @property
    def _changes(self) -> Any:
        """p -> how the ten numbers of each body change with p, a casadi.Function."""
        import casadi

        graph: Any = domain("casadi")
        m = self.acting.model.engine.tree.source.traced
        (p,) = m.symbols
        numbers = graph.column(denoc.body_parameters(m, domain=graph))
        return casadi.Function("changes", [p], [casadi.jacobian(numbers, p)])

    @cached_property
    def _by_parameters(self) -> Any:
        """(q, v, a, p) -> ID_p."""
        model = self.acting.model
        tree, k = model.engine.tree, self.of.k
        inputs = [("q", model.nq), ("v", model.nv), ("a", model.nv)]

        def make() -> Any:
            import casadi

            graph: Any = domain("casadi")
            (columns, (q, v, a)), m = zip(*(graph.variables(*port) for port in inputs), strict=True), tree.source.traced
            (p,), found = m.symbols, graph.zeros(model.nv, k)
            of_bodies = self._of_bodies
            numbers = casadi.jacobian(graph.column(denoc.body_parameters(m, domain=graph)), p)
            changes, places = [], []
            for j in of_bodies:
                own = graph.scalars(casadi.densify(numbers[:, j])).reshape(-1, 10)
                for body in np.flatnonzero([not all(graph.is_zero(x) for x in row) for row in own]):
                    changes.append((int(body), own[body]))
                    places.append(j)
            columns_of = denoc.changes_of_forces(m, q, v, a, changes, domain=graph)
            for j, column in zip(places, columns_of.T, strict=True):
                found[:, j] = found[:, j] + column
            others = [j for j in range(k) if j not in set(of_bodies)]
            if others:
                tau = graph.column(denoc.inverse_dynamics(m, q, v, a, domain=graph))
                by = casadi.densify(casadi.jacobian(tau, p)[:, others])
                found[:, others] = graph.scalars(casadi.vec(by.T)).reshape(model.nv, len(others))
            return Recorded("by_parameters", [*columns, p], [found])

        outputs = [("by_parameters", (model.nv, k))]
        return compiled(BY_PARAMETERS, [*inputs, ("p", k)], outputs, make, tree.source.digest)


__all__ = ["Slopes", "Sloping", "Turning"]
