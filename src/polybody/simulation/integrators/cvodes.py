"""SUNDIALS' CVODES through CasADi: backward differences of order 1 to 5, for stiff problems.

Without loops, controller, wrenches or held stops the right side is an expression graph, whose exact Jacobian CVODES is
given. Otherwise it is called back in Python, and its Jacobian comes from finite differences. W is a quadrature beside
the state, without part in error control. With loops the right side is the acceleration that keeps them; what drifts off
between two wanted times is put back there.
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


class Cvodes:
    """Its steps, as the driver sees them, go from one wanted time to the next; CVODES takes many inside each."""

    name, order, adaptive = "cvodes", 5, True

    def steps(self, problem: Problem, t: float, y: Array, end: float, options: Options) -> Iterator[Step]:
        called = None if problem.autonomous and not problem.loops else whole_rate(problem)
        right_side = called or graph_right_side(problem)

        def solve(t: float, y: Array, grid: Array) -> tuple[list[Array], int]:
            return integrate(right_side, problem, t, y, grid, options)

        return sundials_steps("CVODES", solve, called, problem, t, y, end, options)


def graph_right_side(problem: Problem) -> Any:
    """casadi.Function (t, x) -> (ẋ, Ẇ) of the model alone."""
    import casadi

    m = problem.model.mechanism
    graph: Any = domain("casadi")
    (q_column, q), (v_column, v) = graph.variables("q", m.nq), graph.variables("v", m.nv)
    time = casadi.SX.sym("t")
    a = denoc.forward_dynamics(m, q, v, graph.zeros(m.nv), domain=graph)
    still = denoc.passive_forces(m, q, graph.zeros(m.nv), domain=graph)
    power = v @ (denoc.passive_forces(m, q, v, domain=graph) - still)
    rate = casadi.vertcat(graph.column(kinematics.rate(m, q, v, domain=graph)), graph.column(a))
    x = casadi.vertcat(q_column, v_column)
    return casadi.Function("right_side", [time, x], [rate, graph.column(graph.array([power]))])


def whole_rate(problem: Problem) -> CalledBack:
    """(t, x) -> (ẋ, Ẇ), called back."""

    def function(t: float, x: Array) -> list[Array]:
        rate = problem.rate(t, np.append(x, 0.0))
        return [rate[:-1], rate[-1:]]

    return CalledBack(function, problem.size - 1, [problem.size - 1, 1])


def integrate(
    right_side: Any, problem: Problem, t: float, y: Array, grid: Array, options: Options
) -> tuple[list[Array], int]:
    """(states at the grid's times, rejected tries)."""
    import casadi

    x, time = casadi.MX.sym("x", problem.size - 1), casadi.MX.sym("t")
    rate, power = right_side(time, x)
    chosen = settings(options)
    chosen["min_step_size"] = 1e-14 * (1 + abs(t))  # a run that blows up would take steps of nothing
    solver = casadi.integrator("cvodes", "cvodes", {"x": x, "t": time, "ode": rate, "quad": power}, t, grid, chosen)
    answer = solver(x0=y[:-1])
    states = np.asarray(answer["xf"]).T
    work = np.asarray(answer["qf"]).ravel() + y[-1]
    statistics = solver.stats()
    problem.evaluations += int(statistics.get("nfevals", 0)) if not isinstance(right_side, CalledBack) else 0
    return list(np.column_stack([states, work])), int(statistics.get("netfails", 0))


__all__ = ["Cvodes"]
