"""SUNDIALS' IDAS through CasADi: the equations as they stand, differential and algebraic, by backward differences.

    q̇ = Γ v,    v̇ = a
    0 = ID(q, v, a) − force − Jᵀλ − E s
    0 = J a + γ + 2α J v + α² φ,    0 = Eᵀ a                    x = (q, v, i),  z = (a, λ, s)

The last line is the loops' at the level of accelerations (index 1), with Baumgarte's terms, by which what drifts off
comes back in 1/α s; wanted states are put on the loops exactly. J has the rows that are independent in general
position: loads of redundant ones are not determined. E picks joints that rest at a stop or stick, s is what holds them;
of joints that rest and that loops connect only as many as are independent: one that sticks holds a whole four-bar. No
mass matrix is formed or inverted. Where the loops lose rank these equations have no solution: `bridge` steps across,
and where it cannot IDAS gives up, while other methods go through.

Controllers, motors and wrenches act through `force`, which is called back in Python; the rest is an expression graph.
a and λ have no part in error control. They start from values that meet the equations (IDAS' own search for them fails
where tolerances are near rounding), and Newton's iterations weigh them by their scale in the mechanism: one λ that
happens to be zero must not be asked for to 1e-11.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from polybody.algebra.domains import domain
from polybody.constraints.mobility import pivoted
from polybody.constraints.ranks import null_space
from polybody.formulations import denoc
from polybody.interrupts import passed_on
from polybody.mechanism import kinematics
from polybody.simulation.integrators.base import Options, Step
from polybody.simulation.integrators.sundials import CalledBack, integrate, sundials_steps
from polybody.simulation.jacobian import outside_derivatives
from polybody.simulation.problem import Problem

Array = np.ndarray
#: 1/s
ALPHA = 5.0
#: between two output times: where loops lose rank, steps would become ever smaller
MOST_STEPS = 3_000
#: of a unit of motion that loops leave: a joint that moves less is held by them
STILL = 1e-7


class Idas:
    """Loops without elimination: positions, velocities, accelerations and loads are all unknowns."""

    name, order, adaptive = "idas", 5, True

    def steps(self, problem: Problem, t: float, y: Array, end: float, options: Options) -> Iterator[Step]:
        def made() -> tuple[CalledBack, Equations, dict[str, Any]]:
            called = outside_forces(problem)
            rows = problem.motion.independent_rows(problem.split(y)[0]) if problem.loops else []
            equations = Equations(problem, rows, resting_alone(problem, rows, problem.split(y)[0]))
            return called, equations, equations.with_forces(called)

        from polybody.kernels.locks import tracing  # all of `kernels`, which other methods import when they are ready

        with tracing:
            called, equations, graph = passed_on(made)

        def solve(t: float, y: Array, grid: Array) -> tuple[Array, int, int]:
            z, sizes, rates = consistent_start(problem, equations.rows, equations.resting, t, y)
            chosen = idas_options(problem, rates, sizes, options)
            return integrate("idas", graph, called, t, y, grid, options, {"z0": z}, chosen)

        hint = " (through singular positions of loops take dop853 or rk4)" if problem.loops else ""
        return sundials_steps(f"IDAS{hint}", solve, called, problem, t, y, end, options)


class Equations:
    """The graph of a model's equations with the constraint rows that are independent."""

    def __init__(self, problem: Problem, rows: list[int], resting: list[int]) -> None:
        import casadi

        self.problem, self.rows, self.resting = problem, rows, resting
        tree = problem.model.tree.mechanism if problem.loops else problem.model.mechanism
        graph: Any = domain("casadi")
        n = tree.nv
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
        algebraic = np.concatenate([needed, held, a[resting]])
        outputs = [kinematics.rate(tree, q, v, domain=graph), algebraic]
        self.function = casadi.Function("equations", list(columns), [graph.column(x) for x in outputs])

    def with_forces(self, called: CalledBack) -> dict[str, Any]:
        """The equations with what acts from outside, as CasADi's integrators take them."""
        import casadi

        nq, nv, rows = self.problem.nq, self.problem.nv, len(self.rows)
        sizes = {"x": self.problem.size - 1, "z": nv + rows + len(self.resting), "t": 1}
        x, z, time = (casadi.MX.sym(name, size) for name, size in sizes.items())
        q, v, a, loads, push = x[:nq], x[nq : nq + nv], z[:nv], z[nv : nv + rows], z[nv + rows :]
        force, currents, power = called(time, x)
        rate, algebraic = self.function(q, v, a, loads, push, force)
        return {"x": x, "z": z, "t": time, "ode": casadi.vertcat(rate, a, currents), "alg": algebraic, "quad": power}


def consistent_start(
    problem: Problem, rows: list[int], resting: list[int], t: float, y: Array
) -> tuple[Array, Array, Array]:
    """(z, sizes of z, ẋ): accelerations and loads that meet the equations at a state, the scales below which
    differences of accelerations (m/s², rad/s²) and of loads mean nothing, and its rates."""
    (q, v), i = problem.split(y), problem.currents(y)
    force = problem.outside_force(t, q, v, i)[0]
    a = problem.accelerate(q, v, force, None)
    J = np.eye(problem.nv)[resting]
    if rows:
        J = np.concatenate([problem.model.engine.constraints.jacobian(q)[rows], J])
    needed, inertia = problem.tree.inverse_dynamics(q, v, a) - force, problem.tree.mass_matrix(q).diagonal()
    return *loads_at_start(v, a, force, needed, J, inertia), problem.rate(t, y)[:-1]


def loads_at_start(
    v: Array, a: Array, force: Array, needed: Array, J: Array, inertia: Array
) -> tuple[Array, Array]:
    """(z, sizes of z); `needed` is ID − F, `inertia` the diagonal of M, J the rows of loops and joints at rest."""
    loads = np.linalg.lstsq(J.T, needed, rcond=None)[0] if len(J) else np.zeros(0)
    fast = max(1.0, float(np.abs(v).max(initial=0.0)) ** 2, float(np.abs(a).max(initial=0.0)))
    heavy = max(float(np.abs(x).max(initial=0.0)) for x in (needed, force, loads, inertia * fast))
    return np.concatenate([a, loads]), np.concatenate([np.full(len(a), fast), np.full(len(loads), heavy)])


def idas_options(problem: Problem, rates: Array, sizes: Array, options: Options) -> dict[str, Any]:
    """What CasADi is told of a start."""
    tolerances = np.concatenate([np.full(problem.size - 1, options.atol), options.rtol * sizes])
    return {
        "max_num_steps": MOST_STEPS, "suppress_algebraic": True, "calc_ic": False, "init_xdot": rates.tolist(),
        "abstolv": tolerances.tolist(),
    }  # fmt: skip


def resting_alone(problem: Problem, rows: list[int], q: Array) -> list[int]:
    """The resting velocities that are independent of each other on the motions that the loops' rows leave."""
    resting = problem.resting
    if not rows or not resting:
        return resting
    left = null_space(problem.model.engine.constraints.jacobian(q)[rows])[resting]
    sizes, order = pivoted(left.T)
    return sorted(resting[k] for k in order[: int(np.sum(sizes > STILL))])


def outside_forces(problem: Problem) -> CalledBack:
    """(t, x) -> (joint forces of all that acts from outside, rates of currents, power)."""
    nv, count = problem.nv, problem.circuits.size

    def function(t: float, x: Array) -> list[Array]:
        problem.evaluations += 1
        y = np.append(x, 0.0)
        (q, v), i = problem.split(y), problem.currents(y)
        force, power = problem.outside_force(t, q, v, i)
        return [force, problem.circuits.drive(t, q, v, i)[1] if count else np.zeros(0), np.array([power])]

    def slopes(t: float, x: Array) -> list[Array]:
        by_state = outside_derivatives(problem, t, np.append(x, 0.0))
        return [by_state[:nv], by_state[nv:], np.zeros((1, len(x)))]

    return CalledBack(function, slopes, problem.size - 1, [nv, count, 1])


__all__ = ["ALPHA", "Idas", "idas_options", "loads_at_start", "resting_alone"]
