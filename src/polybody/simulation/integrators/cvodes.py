"""SUNDIALS' CVODES through CasADi: backward differences of order 1 to 5, for stiff problems.

The right side and its exact Jacobian are called back in Python. W is a quadrature beside the state, with its part
in error control. With loops the right side is the acceleration that keeps them; what drifts off between two wanted
times is put back there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from polybody.interrupts import passed_on
from polybody.simulation.integrators.base import Options, Step
from polybody.simulation.integrators.sundials import CalledBack, integrate, sundials_steps
from polybody.simulation.jacobian import jacobian
from polybody.simulation.problem import Problem

Array = np.ndarray


class Cvodes:
    """Its steps, as the driver sees them, go from one wanted time to the next; CVODES takes many inside each."""

    name, order, adaptive = "cvodes", 5, True

    def steps(self, problem: Problem, t: float, y: Array, end: float, options: Options) -> Iterator[Step]:
        import casadi

        def made() -> tuple[CalledBack, dict[str, Any]]:
            called = whole_rate(problem)
            x, time = casadi.MX.sym("x", problem.size - 1), casadi.MX.sym("t")
            rate, power = called(time, x)
            return called, {"x": x, "t": time, "ode": rate, "quad": power}

        from polybody.kernels.locks import tracing  # all of `kernels`, which other methods import when they are ready

        with tracing:
            called, equations = passed_on(made)

        def solve(t: float, y: Array, grid: Array) -> tuple[Array, int, int]:
            smallest = {"min_step_size": 1e-14}  # a run that blows up would take steps of nothing
            return integrate("cvodes", equations, called, t, y, grid, options, {}, smallest)

        return sundials_steps("CVODES", solve, called, problem, t, y, end, options)


def whole_rate(problem: Problem) -> CalledBack:
    """(t, x) -> (ẋ, Ẇ)."""

    def function(t: float, x: Array) -> list[Array]:
        rate = problem.rate(t, np.append(x, 0.0))
        return [rate[:-1], rate[-1:]]

    def slopes(t: float, x: Array) -> list[Array]:
        J = jacobian(problem, t, np.append(x, 0.0))
        return [J[:-1, :-1], J[-1:, :-1]]

    return CalledBack(function, slopes, problem.size - 1, [problem.size - 1, 1])


__all__ = ["Cvodes"]
