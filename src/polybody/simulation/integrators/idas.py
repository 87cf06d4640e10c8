"""SUNDIALS' IDAS through CasADi: the equations as they stand, differential and algebraic, by backward differences.

    q̇ = Γ v,    v̇ = a
    0 = ID(q, v, a) − force − Jᵀλ − E s
    0 = J a + γ + 2α J v + α² φ,    0 = Eᵀ a                    x = (q, v, i),  z = (a, λ, s)

The last line is the loops' at the level of accelerations (index 1), with Baumgarte's terms, by which what drifts off
comes back in 1/α s; wanted states are put on the loops exactly. J has the rows that are independent in general
position: loads of redundant ones are not determined. E picks joints that rest at a stop, s is what the stops exert. No
mass matrix is formed or inverted. Where the loops lose rank these equations have no solution, and IDAS gives up: other
methods go through.

Controllers, motors and wrenches act through `force`, which is called back in Python; the rest is an expression graph.
a and λ have no part in error control.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from polybody.algebra.domains import domain
from polybody.formulations import denoc
from polybody.mechanism import kinematics
from polybody.simulation.integrators.base import Options, Step
from polybody.simulation.integrators.sundials import CalledBack, settings, sundials_steps
from polybody.simulation.problem import Problem

Array = np.ndarray
#: 1/s
ALPHA = 5.0
#: between two output times: where loops lose rank, steps would become ever smaller
MOST_STEPS = 3_000


class Idas:
    """Loops without elimination: positions, velocities, accelerations and loads are all unknowns."""

    name, order, adaptive = "idas", 5, True

    def steps(self, problem: Problem, t: float, y: Array, end: float, options: Options) -> Iterator[Step]:
        called = outside_forces(problem) if problem.driven else None
        equations = Equations(problem, self._rows(problem, y))

        def solve(t: float, y: Array, grid: Array) -> tuple[list[Array], int]:
            return integrate(equations, called, problem, t, y, grid, options)

        hint = " (through singular positions of loops take dop853 or rk4)" if problem.loops else ""
        return sundials_steps(f"IDAS{hint}", solve, called, problem, t, y, end, options)

    @staticmethod
    def _rows(problem: Problem, y: Array) -> list[int]:
        return problem.model.independent_rows(problem.split(y)[0]) if problem.loops else []


class Equations:
    """The graph of a model's equations with the constraint rows that are independent."""

    def __init__(self, problem: Problem, rows: list[int]) -> None:
        import casadi

        self.problem, self.rows, self.resting = problem, rows, problem.resting
        tree = problem.model.tree.mechanism if problem.loops else problem.model.mechanism
        graph: Any = domain("casadi")
        n, resting = tree.nv, self.resting
        sizes = {"q": tree.nq, "v": n, "a": n, "loads": len(rows), "push": len(resting), "force": n}
        columns, arrays = zip(*(graph.variables(name, size) for name, size in sizes.items()), strict=True)
        q, v, a, loads, push, force = arrays
        needed = denoc.inverse_dynamics(tree, q, v, a, None, domain=graph) - force
        needed[resting] = needed[resting] - push
        held = graph.zeros(0)
        if rows:
            system = problem.model.engine.constraints.constraints
            J, once, twice = system.jacobian(q, domain=graph)[rows], graph.const(2 * ALPHA), graph.const(ALPHA**2)
            needed = needed - J.T @ loads
            speed, gap = system.velocity(q, v, domain=graph)[rows], system.residual(q, domain=graph)[rows]
            held = J @ a + system.bias(q, v, domain=graph)[rows] + speed * once + gap * twice
        still = denoc.passive_forces(tree, q, graph.zeros(tree.nv), domain=graph)
        power = v @ (denoc.passive_forces(tree, q, v, domain=graph) - still)
        algebraic = np.concatenate([needed, held, a[resting]])
        outputs = [kinematics.rate(tree, q, v, domain=graph), algebraic, graph.array([power])]
        self.function = casadi.Function("equations", list(columns), [graph.column(x) for x in outputs])

    def start(self, t: float, y: Array) -> Array:
        """Accelerations and loads that meet the equations at a state."""
        problem = self.problem
        (q, v), i = problem.split(y), problem.currents(y)
        force = problem.outside_force(t, q, v, i)[0]
        a = problem.accelerate(q, v, force, None)
        J = np.eye(problem.nv)[self.resting]
        if self.rows:
            J = np.concatenate([problem.model.engine.constraints.jacobian(q)[self.rows], J])
        if not len(J):
            return a
        tree = problem.model.tree if problem.loops else problem.model
        return np.concatenate([a, np.linalg.lstsq(J.T, tree.inverse_dynamics(q, v, a) - force, rcond=None)[0]])

    @property
    def loads(self) -> int:
        return len(self.rows) + len(self.resting)


def outside_forces(problem: Problem) -> CalledBack:
    """(t, x) -> (joint forces of all that acts from outside, rates of currents, power), called back."""
    count = problem.circuits.size

    def function(t: float, x: Array) -> list[Array]:
        y = np.append(x, 0.0)
        (q, v), i = problem.split(y), problem.currents(y)
        force, power = problem.outside_force(t, q, v, i)
        return [force, problem.circuits.drive(t, q, v, i)[1] if count else np.zeros(0), np.array([power])]

    return CalledBack(function, problem.size - 1, [problem.nv, count, 1])


def integrate(
    equations: Equations, called: CalledBack | None, problem: Problem, t: float, y: Array, grid: Array,
    options: Options,
) -> tuple[list[Array], int]:
    """(states at the grid's times, rejected tries)."""
    import casadi

    nq, nv = problem.nq, problem.nv
    sizes = {"x": problem.size - 1, "z": nv + equations.loads, "t": 1}
    x, z, time = (casadi.MX.sym(name, size) for name, size in sizes.items())
    q, v, a = x[:nq], x[nq : nq + nv], z[:nv]
    loads, push = z[nv : nv + len(equations.rows)], z[nv + len(equations.rows) :]
    if called is None:
        rate, algebraic, power = equations.function(q, v, a, loads, push, 0)
        ode = casadi.vertcat(rate, a)
    else:
        force, currents, power = called(time, x)
        rate, algebraic, _ = equations.function(q, v, a, loads, push, force)
        ode = casadi.vertcat(rate, a, currents)
    dae = {"x": x, "z": z, "t": time, "ode": ode, "alg": algebraic, "quad": power}
    chosen = {**settings(options), "max_num_steps": MOST_STEPS, "suppress_algebraic": True}
    solver = casadi.integrator("idas", "idas", dae, t, grid, chosen)
    answer = solver(x0=y[:-1], z0=equations.start(t, y))
    states = np.asarray(answer["xf"]).T
    work = np.asarray(answer["qf"]).ravel() + y[-1]
    statistics = solver.stats()
    problem.evaluations += int(statistics.get("nfevals", 0)) if called is None else 0
    return list(np.column_stack([states, work])), int(statistics.get("netfails", 0))


__all__ = ["Idas"]
