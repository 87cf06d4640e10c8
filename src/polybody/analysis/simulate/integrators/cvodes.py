"""SUNDIALS' CVODES through CasADi: backward differences of order 1 to 5, for stiff problems.

Without controller, wrenches or held stops the right side is an expression graph, whose exact Jacobian CVODES is given.
Otherwise it is called back in Python, and its Jacobian comes from finite differences. W is a quadrature beside the
state, without part in error control.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from polybody.algebra.domains import domain
from polybody.analysis.simulate.failures import BlowUp, ControllerError
from polybody.analysis.simulate.integrators.base import Options, Step, finite, hermite
from polybody.analysis.simulate.problem import Problem
from polybody.formulations import denoc
from polybody.mechanism import kinematics

Array = np.ndarray
MOST_STEPS = 200_000  # between two output times
CHUNK = 256  # output times a call: a restart costs CVODES its history


class Cvodes:
    """Its steps, as the driver sees them, go from one wanted time to the next; CVODES takes many inside each."""

    name, order, adaptive = "cvodes", 5, True

    def steps(self, problem: Problem, t: float, y: Array, end: float, options: Options) -> Iterator[Step]:
        times = wanted_times(t, end, options)
        right_side = graph_right_side(problem) if problem.autonomous else CalledBack(problem)
        chunk = CHUNK
        while len(times):
            grid = times[:chunk]
            try:
                states, tries = integrate(right_side, problem, t, y, grid, options)
            except RuntimeError as error:
                if len(grid) > 1:  # keep what comes before
                    chunk = max(1, len(grid) // 16)
                    continue
                if isinstance(right_side, CalledBack) and right_side.error is not None:
                    raise right_side.error from right_side.error.__cause__
                raise BlowUp(f"CVODES gave up: {_last_line(error)}") from None
            for time, raw in zip(grid, states, strict=True):
                if not finite(raw):
                    raise BlowUp("numbers are not finite any more")
                new = problem.project(raw) if problem.moves() else raw
                dense = partial(hermite, problem, t, time, y, new)
                yield Step(t, time, y, new, dense, tries, problem.off_manifold(raw))
                t, y, tries = time, new, 0
            times = times[len(grid) :]


def wanted_times(t: float, end: float, options: Options) -> Array:
    """The driver's sample times after t, at most `max_step` apart, `end` last."""
    inside = [s for s in options.times if t + 1e-12 * (1 + abs(t)) < s < end]
    marks = [t, *inside, end]
    fine: list[float] = []
    for a, b in pairwise(marks):
        count = int(np.ceil((b - a) / min(options.max_step, 0.05)))
        fine.extend(a + (b - a) * (np.arange(1, count) / count) if count > 1 else [])
        fine.append(b)
    return np.array(fine)


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


class CalledBack:
    """The right side as a Python function; the first error it raises is kept, CasADi only says that there was one."""

    def __init__(self, problem: Problem) -> None:
        import casadi

        self.error: ControllerError | None = None
        owner = self
        size = problem.size - 1

        class RightSide(casadi.Callback):
            def __init__(self) -> None:
                casadi.Callback.__init__(self)
                self.construct("right_side", {"enable_fd": True})

            def get_n_in(self) -> int:
                return 2

            def get_n_out(self) -> int:
                return 2

            def get_sparsity_in(self, i: int) -> Any:
                return casadi.Sparsity.dense(1 if i == 0 else size, 1)

            def get_sparsity_out(self, i: int) -> Any:
                return casadi.Sparsity.dense(size if i == 0 else 1, 1)

            def eval(self, arguments: Any) -> Any:
                t, x = float(arguments[0]), np.asarray(arguments[1]).ravel()
                try:
                    rate = problem.rate(t, np.append(x, 0.0))
                except ControllerError as error:
                    owner.error = error
                    raise
                return [rate[:-1], rate[-1:]]

        self.function = RightSide()

    def __call__(self, t: Any, x: Any) -> Any:
        return self.function(t, x)


def integrate(
    right_side: Any, problem: Problem, t: float, y: Array, grid: Array, options: Options
) -> tuple[list[Array], int]:
    """(states at the grid's times, rejected tries)."""
    import casadi

    x, time = casadi.MX.sym("x", problem.size - 1), casadi.MX.sym("t")
    rate, power = right_side(time, x)
    settings = {"reltol": options.rtol, "abstol": options.atol, "max_num_steps": MOST_STEPS, "print_stats": False}
    settings["min_step_size"] = 1e-14 * (1 + abs(t))  # a run that blows up would take steps of nothing
    if np.isfinite(options.max_step):
        settings["max_step_size"] = options.max_step
    settings["show_eval_warnings"] = False
    solver = casadi.integrator("cvodes", "cvodes", {"x": x, "t": time, "ode": rate, "quad": power}, t, grid, settings)
    answer = solver(x0=y[:-1])
    states = np.asarray(answer["xf"]).T
    work = np.asarray(answer["qf"]).ravel() + y[-1]
    statistics = solver.stats()
    problem.evaluations += int(statistics.get("nfevals", 0)) if problem.autonomous else 0
    return list(np.column_stack([states, work])), int(statistics.get("netfails", 0))


def _last_line(error: Exception) -> str:
    return str(error).strip().splitlines()[-1]


__all__ = ["Cvodes"]
