"""Dormand and Prince's explicit method of order 8 with adaptive steps: the default."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from polybody.kernels.locks import imported
from polybody.simulation.integrators.base import Options, Step
from polybody.simulation.integrators.scipy_steps import scipy_steps
from polybody.simulation.problem import Problem


class DormandPrince8:
    """SciPy's DOP853; twelve evaluations a try, dense output of order 7."""

    name, order, adaptive = "dop853", 8, True

    def steps(self, problem: Problem, t: float, y: np.ndarray, end: float, options: Options) -> Iterator[Step]:
        imported("scipy.integrate")
        from scipy.integrate import DOP853

        return scipy_steps(DOP853, DOP853.n_stages, problem, t, y, end, options)


__all__ = ["DormandPrince8"]
