"""Derivatives of a problem's equations as CasADi functions, for solvers that evaluate them without Python.

    M da − Jᵀ dλ = dF − dID[d, w] + (Jᵀλ)_q d,        J da = −dg[d, w],        g = J a + γ                       (1)

with F all that acts from outside, ID the inverse dynamics of the (cut) tree, d and w displacements of q in tangent
space and of v. Differentiated as one graph, the accelerations of a Stewart platform take 140,000 operations, those of
a G1 220,000. Here M, dID, J, (Jᵀλ)_q and dg are graphs of their own (3,000 to 30,000 operations) and the rest is dense
linear algebra, which CasADi does in C:

    da = β + G (GᵀMG)⁻¹ Gᵀ (f − M β),     G = [1; −J_d⁻¹J_u],    β_d = −J_d⁻¹ dg,    β_u = 0                      (2)

along the plan of elimination, f the right side of (1). Joints that are held keep a = 0: in trees their rows of M are
replaced by those of 1, with loops their motions are made stiff. Only Newton's iterations see that.

Where friction depends on what joints bear, F depends on a and λ too; with z = (a, λ)

    (M − F_a) da − (Jᵀ + F_λ) dλ = dF − dID[d, w] + (Jᵀλ)_q d,        J da = −dg[d, w]                          (3)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polybody.formulations import denoc
from polybody.mechanism import kinematics
from polybody.properties import cached_property
from polybody.quantities.constrained import along_plan
from polybody.simulation.compiled import bearing
from polybody.simulation.compiled.field import Acting
from polybody.simulation.loop_slopes import row_changes

Array = np.ndarray
ROUNDS = 3  # of loads that friction depends on, and that on them
STIFF = 1e6  # times the mean inertia: of motions of joints that are held, with loops


class Blocks:
    """Functions of (x, c, row), x = [q; v; i; W; t] as in `field`, or of q, v and what else is named."""

    def __init__(self, acting: Acting, rows: Sequence[int] = (), back: float = 0.0) -> None:
        self.acting, self.rows, self.back = acting, list(rows), back
        self.nq, self.nv, self.size = acting.model.nq, acting.model.nv, acting.size - 1
        self.bears = bool(acting.holding.bearing)

    @property
    def _dynamics(self) -> Any:
        """The mechanism of joint-space dynamics, as `Acting.motion_under` chooses it."""
        return self.acting.mechanism if self.acting.frames else self.acting.model.engine.reduced_mechanism

    def function(self, name: str, columns: list[Any], constants: Any, results: list[Any]) -> Any:
        """A casadi.Function of nodes."""
        made = self.acting.made(name, columns, constants, results, self.acting.graph)
        return getattr(made, "function", made)

    # Graphs.

    @cached_property
    def outside(self) -> Any:
        """(x, z, c, row) -> F, di/dt, [power, growth, narrow], ∂[F; di/dt]/∂[q; v; i], ∂F/∂z; z is empty where F does
        not depend on it."""
        import casadi

        acting, graph = self.acting, self.acting.graph
        columns, x, c, row = acting.columns(graph)
        z_in, z = graph.variables("a_and_loads", self.nv + len(self.rows) if self.bears else 0)
        force, rates, told = self.acting_text(*acting.state(x, graph), z, c, row)
        made = self.function("outside", [columns[0], z_in, *columns[1:]], columns[1], [force, rates, told])
        given = made.sx_in()
        found = made.call(given)
        slopes = casadi.jacobian(casadi.vertcat(*found[:2]), given[0])[:, : self.size]
        return casadi.Function("outside", given, [*found, slopes, casadi.jacobian(found[0], given[1])])

    def acting_text(
        self, q: Array, v: Array, i: Array, t: Any, z: Array, c: Array, row: Array
    ) -> tuple[Array, Array, Array]:
        """(joint forces of all that acts from outside, di/dt, [power, growth, narrow]: whether they are to be
        believed)."""
        acting, graph = self.acting, self.acting.graph
        a = borne = None
        loads = acting.loads(t, c, graph)
        tau, _, rates = acting.drive(q, v, i, t, c, row, graph)
        growth, narrow = acting.doubt(graph), graph.const(0)
        if self.bears:
            a = z[: self.nv]
            if acting.plan is not None:
                J = acting.model.engine.constraints.traced.jacobian(q, domain=graph)
                borne, found = J[self.rows].T @ z[self.nv :], along_plan(acting.plan)(J, graph)
                growth, narrow = growth + found.growth, found.narrow
            by_load = bearing.exerted(acting, q, v, a, borne, loads, c, graph)
            force = tau + acting.holding.friction(v, acting.split_constants(c)[3], graph) + by_load
        else:
            force = acting.rubbed(q, v, tau, loads, c, graph)[0]
        told = [acting.power(q, v, force, loads, c, graph, a), growth, narrow]
        for frame, wrench in zip(acting.frames, loads, strict=True):
            force = force + kinematics.frame_jacobian(acting.mechanism, q, frame, domain=graph).T @ wrench
        return force, rates, np.array(told, dtype=object)

    @cached_property
    def apart(self) -> Any:
        """(x, c) -> q with unit quaternions, v, ∂(Γv)/∂[q; v], Γ⁺."""
        import casadi

        acting, graph = self.acting, self.acting.graph
        columns, x, _, _ = acting.columns(graph)
        q, v, _, _ = acting.state(x, graph)
        moved = kinematics.rate(acting.mechanism, q, v, domain=graph)
        made = self.function("apart", columns[:2], columns[1], [q, v, moved])
        given = made.sx_in()
        q, v, rate = made.call(given)
        turn = casadi.jacobian(rate, given[0])[:, : self.size]
        return casadi.Function("apart", given, [q, v, turn, self._back(turn[:, self.nq : self.nq + self.nv])])

    def _back(self, gamma: Any) -> Any:
        """Γ⁺: by columns, which are orthogonal where a joint has quaternions; other joints have as many q as v."""
        import casadi

        found = casadi.SX(self.nv, self.nq)
        for joint in self.acting.mechanism.independent_joints:
            own = gamma[joint.q, joint.v]
            if joint.model.rates_are_velocities:
                found[joint.v, joint.q] = casadi.SX.eye(joint.nv)
            elif joint.nq == joint.nv:
                found[joint.v, joint.q] = casadi.inv(casadi.densify(own))
            else:
                found[joint.v, joint.q] = casadi.diag(1 / casadi.sum1(own**2)) @ own.T
        return casadi.sparsify(found)

    @cached_property
    def inertia(self) -> Any:
        """(q, v, a, c) -> ID, ∂ID/∂q, ∂ID/∂v, M."""
        acting, graph, m = self.acting, self.acting.graph, self._dynamics
        (q_in, q), (v_in, v), (a_in, a) = self._variables(graph, q=self.nq, v=self.nv, a=self.nv)
        constants = acting.columns(graph)[0][1]
        needed = denoc.inverse_dynamics(m, q, v, a, None, domain=graph)
        parts = denoc.inverse_dynamics_derivatives(m, q, v, a, None, domain=graph)
        results = [needed, *(part.T.ravel() for part in parts)]
        return self._matrices("inertia", [q_in, v_in, a_in, constants], constants, results, [0] + 3 * [self.nv])

    @cached_property
    def loops(self) -> Any:
        """(q, v, a, λ, c) -> J, (Jᵀλ)_q, g_q, g_v of `rows`."""
        acting, graph, r = self.acting, self.acting.graph, len(self.rows)
        sizes = {"q": self.nq, "v": self.nv, "a": self.nv, "multipliers": r}
        columns, arrays = zip(*self._variables(graph, **sizes), strict=True)
        constants = acting.columns(graph)[0][1]
        system: Any = acting.model.engine.constraints.traced  # type: ignore[attr-defined]
        found = row_changes(acting.mechanism, system, self.rows, self.back)(*arrays, domain=graph)
        results = [part.T.ravel() for part in found]
        return self._matrices("loops", [*columns, constants], constants, results, [r, self.nv, r, r])

    @cached_property
    def jacobian(self) -> Any:
        """(q, c) -> J of `rows`."""
        acting, graph = self.acting, self.acting.graph
        q_in, q = graph.variables("q", self.nq)
        constants = acting.columns(graph)[0][1]
        system: Any = acting.model.engine.constraints.traced  # type: ignore[attr-defined]
        J = system.jacobian(q, domain=graph)[self.rows]
        return self._matrices("rows", [q_in, constants], constants, [J.T.ravel()], [len(self.rows)])

    @staticmethod
    def _variables(graph: Any, **sizes: int) -> list[tuple[Any, Array]]:
        return [graph.variables(name, size) for name, size in sizes.items()]

    def _matrices(self, name: str, columns: list[Any], constants: Any, results: list[Any], heights: list[int]) -> Any:
        """The function whose results, columns one after the other, are matrices with so many rows (0: one column)."""
        import casadi

        made = self.function(name, columns, constants, results)
        given = made.sx_in()
        found = made.call(given)
        shaped = [
            casadi.sparsify(casadi.reshape(column, rows, column.shape[0] // rows)) if rows else column
            for column, rows in zip(found, heights, strict=True)
        ]
        return casadi.Function(name, given, shaped)

    # Linear algebra.

    def rate_slopes(self, name: str) -> Any:
        """(x, c, row, ẋ) -> ∂ẋ/∂x: the `custom_jacobian` of the casadi.Function `name`, (x, c, row) -> ẋ."""
        import casadi

        nq, nv, n = self.nq, self.nv, self.size
        x, c, row, rate = self._inputs(n)
        q, v, turn, back = self.apart(x, c)
        a = rate[nq : nq + nv]
        needed, by_q, by_v, M = self.inertia(q, v, a, c)
        z = casadi.MX(0, 1) if not self.bears else a
        if self.rows:
            loads = self._loads(x, q, a, c, row, needed)
            z = casadi.vertcat(z, loads) if self.bears else z
        _, _, _, driven, by_z = self.outside(x, z, c, row)
        f = driven[:nv, :] - self._by_state(by_q @ back, by_v)
        a_x = self._with_loops(q, v, a, loads, c, M, f, back, by_z) if self.rows else self._of_tree(c, M, f, by_z)
        slopes = casadi.vertcat(turn, a_x, driven[nv:, :])
        return self._as_jacobian(name, [x, c, row], rate, casadi.horzcat(slopes, casadi.MX(n, 2)))

    def _loads(self, x: Any, q: Any, a: Any, c: Any, row: Any, needed: Any) -> Any:
        """λ from what dependent joints need; where F depends on it, as near as Newton's iterations of a step ask."""
        import casadi

        assert self.acting.plan is not None
        bound, count = list(self.acting.plan.dependent), ROUNDS if self.bears else 1
        J_d, loads = casadi.densify(self.jacobian(q, c))[:, bound], casadi.MX.zeros(len(self.rows))
        for _ in range(count):
            z = casadi.vertcat(a, loads) if self.bears else casadi.MX(0, 1)
            loads = casadi.solve(J_d.T, (needed - self.outside(x, z, c, row)[0])[bound])
        return loads

    def _of_tree(self, c: Any, M: Any, f: Any, by_z: Any) -> Any:
        """M⁻¹f, or zero for joints that are held; by (3) where F depends on a."""
        import casadi

        free, way = self._free(c), "ldl"
        if self.bears:
            M, way = M - by_z, "qr"  # not symmetric
        if free is not None:
            M = M * (free @ free.T) + casadi.diag(1 - free)
            f = casadi.diag(free) @ f
        return casadi.solve(casadi.densify(M), casadi.densify(f), way)

    def _with_loops(self, q: Any, v: Any, a: Any, loads: Any, c: Any, M: Any, f: Any, back: Any, by_z: Any) -> Any:
        """δa of (2), or of (3) where F depends on z."""
        import casadi

        plan, r, nv = self.acting.plan, len(self.rows), self.nv
        assert plan is not None
        u, bound = list(plan.independent), list(plan.dependent)
        J, force_q, gap_q, gap_v = self.loops(q, v, a, loads, c)
        f = f + self._by_state(force_q @ back, casadi.MX(nv, nv))
        gap, free = self._by_state(gap_q @ back, gap_v), self._free(c)
        if self.bears:
            M = M - by_z[:, :nv]
            if free is not None:
                M = M + casadi.diag(1 - free) * (casadi.trace(M) * (STIFF / nv))
            left = casadi.vertcat(casadi.horzcat(M, -J.T - by_z[:, nv:]), casadi.horzcat(J, casadi.MX(r, r)))
            return casadi.solve(casadi.densify(left), casadi.densify(casadi.vertcat(f, -gap)), "qr")[:nv, :]
        J_d = casadi.densify(self.jacobian(q, c))[:, bound]
        followed = -casadi.solve(J_d, casadi.densify(casadi.horzcat(J[:, u], gap)))
        order = np.argsort([*u, *bound]).tolist()
        G = casadi.vertcat(casadi.MX.eye(len(u)), followed[:, : len(u)])[order, :]
        beta = casadi.vertcat(casadi.MX(len(u), self.size), followed[:, len(u) :])[order, :]
        S, right = G.T @ M @ G, G.T @ (f - M @ beta)
        if free is not None:
            stiff = casadi.diag(1 - free) * (casadi.trace(S) * (STIFF / len(u)))
            S, right = S + G.T @ stiff @ G, right - G.T @ (stiff @ beta)
        assert r == len(bound)
        return beta + G @ casadi.solve(casadi.densify(S), casadi.densify(right), "ldl")

    def _free(self, c: Any) -> Any:
        """For each velocity 1, or 0 where it is held; None where none is."""
        import casadi

        acting = self.acting
        if not acting.holding.frozen:
            return None
        end = len(acting.constants) - 1 - len(acting.parameters)
        first = end - acting.holding.size + len(acting.holding.rubbing)
        free = casadi.MX.ones(self.nv)
        for k, (_, slot) in enumerate(acting.holding.slots):
            free[slot] = c[first + k]
        return free

    def equation_slopes(self, name: str, resting: Sequence[int]) -> Any:
        """Of (x, z, c, row) -> [ẋ; 0] of `idas`, z = (a, λ, s): by x and by z."""
        import casadi

        nq, nv, n, r, e = self.nq, self.nv, self.size, len(self.rows), len(resting)
        x, c, row, outputs = self._inputs(n + nv + r + e)
        z = casadi.MX.sym("z", nv + r + e)
        a = z[:nv]
        q, v, turn, back = self.apart(x, c)
        _, _, _, driven, by_z = self.outside(x, z[: nv + r] if self.bears else casadi.MX(0, 1), c, row)
        _, by_q, by_v, M = self.inertia(q, v, a, c)
        balance = self._by_state(by_q @ back, by_v) - driven[:nv, :]
        held_x, J = casadi.MX(r, n), casadi.MX(r, nv)
        if r:
            J, force_q, gap_q, gap_v = self.loops(q, v, a, z[nv : nv + r], c)
            balance = balance - self._by_state(force_q @ back, casadi.MX(nv, nv))
            held_x = self._by_state(gap_q @ back, gap_v)
        E = casadi.sparsify(casadi.DM(np.eye(nv)[:, list(resting)])) if e else casadi.DM(nv, 0)
        known = casadi.horzcat(M, -J.T) - by_z if self.bears else casadi.horzcat(M, -J.T)
        still, height = n - nq - nv, n + nv + r + e
        by_x = casadi.vertcat(turn, casadi.MX(nv, n), driven[nv:, :], balance, held_x, casadi.MX(e, n))
        by_z = casadi.vertcat(
            casadi.MX(nq, nv + r + e), casadi.horzcat(casadi.MX.eye(nv), casadi.MX(nv, r + e)),
            casadi.MX(still, nv + r + e), casadi.horzcat(known, -E), casadi.horzcat(J, casadi.MX(r, r + e)),
            casadi.horzcat(E.T, casadi.MX(e, r + e)),
        )  # fmt: skip
        return self._as_jacobian(name, [x, z, c, row], outputs, casadi.horzcat(by_x, casadi.MX(height, 2)), by_z)

    def _inputs(self, outputs: int) -> tuple[Any, Any, Any, Any]:
        import casadi

        acting = self.acting
        sizes = {"x": self.size + 2, "c": len(acting.constants), "row": acting.law.signals.rows.shape[1]}
        return *(casadi.MX.sym(name, k) for name, k in sizes.items()), casadi.MX.sym("found", outputs)  # type: ignore[return-value]

    def _by_state(self, by_q: Any, by_v: Any) -> Any:
        """Derivatives by q and v with zero columns for currents."""
        import casadi

        return casadi.horzcat(by_q, by_v, casadi.MX(by_q.shape[0], self.size - self.nq - self.nv))

    @staticmethod
    def _as_jacobian(name: str, inputs: list[Any], output: Any, *blocks: Any) -> Any:
        """Blocks by the first inputs; none by the others."""
        import casadi

        rest = [casadi.MX(output.shape[0], column.shape[0]) for column in inputs[len(blocks) :]]
        return casadi.Function(f"jac_{name}", [*inputs, output], [*blocks, *rest])


__all__ = ["Blocks"]
