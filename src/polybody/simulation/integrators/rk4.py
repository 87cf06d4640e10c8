"""The classical Runge-Kutta method of order 4 with fixed steps."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from polybody.simulation.failures import BlowUp
from polybody.simulation.integrators.base import Options, Step, finite, fixed_times, hermite
from polybody.simulation.problem import Problem


class RungeKutta4:
    """Four evaluations a step."""

    name, order, adaptive = "rk4", 4, False

    def steps(self, problem: Problem, t: float, y: np.ndarray, end: float, options: Options) -> Iterator[Step]:
        for t0, t1 in fixed_times(t, end, options.dt):
            h, middle = t1 - t0, t0 + (t1 - t0) / 2
            k1 = problem.rate(t0, y)
            k2 = problem.rate(middle, y + h / 2 * k1)
            k3 = problem.rate(middle, y + h / 2 * k2)
            k4 = problem.rate(t1, y + h * k3)
            raw = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            if not finite(raw):
                raise BlowUp("numbers are no longer finite")
            new = problem.project(raw) if problem.moves() else raw
            yield Step(t0, t1, y, new, partial(hermite, problem, t0, t1, y, new), 0, problem.off_manifold(raw))
            y = new


__all__ = ["RungeKutta4"]
