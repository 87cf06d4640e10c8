"""Radau IIA of order 5 with adaptive steps: implicit, for stiff springs, dampers and gains; with the exact Jacobian."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from polybody.interrupts import imported
from polybody.simulation.failures import BlowUp
from polybody.simulation.integrators.base import Options, Step, finite
from polybody.simulation.integrators.solver_steps import solver_steps
from polybody.simulation.jacobian import jacobian
from polybody.simulation.problem import Problem


class Radau5:
    """Steps in Python by SciPy's Radau, which does not report how many tries it rejected; `kernels.stepping_radau`
    takes those of compiled runs."""

    name, order, adaptive = "radau", 5, True

    def steps(self, problem: Problem, t: float, y: np.ndarray, end: float, options: Options) -> Iterator[Step]:
        imported("scipy.integrate")
        from scipy.integrate import Radau

        def rate(t: float, y: np.ndarray) -> np.ndarray:
            """SciPy's Radau never returns once a NaN has reached its step size: it must not see one."""
            result = problem.rate(t, y)
            if not finite(result):
                raise BlowUp("numbers are no longer finite")
            return result

        return solver_steps(Radau, None, problem, t, y, end, options, rate, jac=partial(jacobian, problem))


__all__ = ["Radau5"]
