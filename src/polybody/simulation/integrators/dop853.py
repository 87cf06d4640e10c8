"""Dormand and Prince's explicit method of order 8 with adaptive steps: the default.

Compiled runs are stepped by `kernels.stepping_methods`; these are the steps of runs that enter Python. With K the rates
at the stages (Hairer, Nørsett & Wanner, Solving ODEs I, II.4 to II.6 and II.10; scale_i = atol_i + rtol |y_i|):

    y₁ = y + h Σ b_i K_i,     e₅ = Σ E5_i K_i / scale,     e₃ = Σ E3_i K_i / scale
    error = h ‖e₅‖² / √(n (‖e₅‖² + ‖e₃‖²/100)),            h ← h min(10, max(0.2, 0.9 error^(−1/8)))

A step is accepted where error < 1; after a rejected one it does not grow. A rejected one that has passed a corner of
the rates is tried again up to there (`kernels.stepping_corners`). The interpolant of order 7 takes three stages more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from polybody.kernels.stepping_corners import FALLEN
from polybody.simulation.integrators.base import Interpolant, Options, Step
from polybody.simulation.integrators.corners import Corners, corners_of
from polybody.simulation.integrators.solver_steps import solver_steps
from polybody.simulation.integrators.tableaux import dormand_prince_8, nested
from polybody.simulation.problem import Problem

Array = np.ndarray

SAFETY, LEAST, MOST = 0.9, 0.2, 10.0  # of the factors of a step
EXPONENT = -1 / 8


class DormandPrince8:
    """Twelve evaluations a try, dense output of order 7."""

    name, order, adaptive = "dop853", 8, True

    def steps(self, problem: Problem, t: float, y: Array, end: float, options: Options) -> Iterator[Step]:
        corners = corners_of(problem.drives, problem.nq)
        return solver_steps(Steps, dormand_prince_8().stages, problem, t, y, end, options, corners=corners)


class Steps:
    """The method, step by step, as `solver_steps` and networks ask for them; `end` may be set between steps."""

    def __init__(
        self, rate: Callable[[float, Array], Array], t: float, y: Array, end: float, *, rtol: float, atol: Array,
        max_step: float, first_step: float | None, corners: Corners | None = None,
    ) -> None:  # fmt: skip
        self.tableau = dormand_prince_8()
        self.rate, self.t, self.y, self.end = rate, t, y, end
        self.rtol, self.atol, self.max_step, self.corners = rtol, atol, max_step, corners
        self.f, self.nfev, self.status = rate(t, y), 1, "running"
        self.h_abs = self._first_step() if first_step is None else first_step
        dense = self.tableau.dense
        assert dense is not None
        self._K = np.zeros((dense.shape[1], len(y)))
        self._before = t, y

    def _evaluated(self, t: float, y: Array) -> Array:
        self.nfev += 1
        return self.rate(t, y)

    def _first_step(self) -> float:
        """From the second derivative, which a step of Euler's method estimates (II.4)."""
        span, scale = self.end - self.t, self.atol + self.rtol * np.abs(self.y)
        size, slope = _mean(self.y / scale), _mean(self.f / scale)
        h = min(span, 1e-6 if min(size, slope) < 1e-5 else 0.01 * size / slope)
        bend = _mean((self._evaluated(self.t + h, self.y + h * self.f) - self.f) / scale) / h if h else 0.0
        steepest = max(slope, bend)
        after = max(1e-6, 1e-3 * h) if steepest <= 1e-15 else (0.01 / steepest) ** -EXPONENT
        return min(100 * h, after, span, self.max_step)

    def step(self) -> str | None:
        """Take one step: `t`, `y`, `f`; or a message, with the status "failed"."""
        tableau, K, n = self.tableau, self._K, self.tableau.stages
        least = 10 * abs(np.nextafter(self.t, np.inf) - self.t)
        h, growth = min(max(self.h_abs, least), self.max_step), MOST
        asked, limit = 0.0, np.inf  # the next length, after a step to a corner; of errors that corners explain
        while True:
            if not h >= least:
                self.status = "failed"
                return "the step became smaller than the spacing of numbers"
            t = min(self.t + h, self.end)
            h = t - self.t
            K[0] = self.f
            for k in range(1, n):
                a = tableau.A[k, :k]
                K[k] = self._evaluated(self.t + a.sum() * h, self.y + h * (a @ K[:k]))
            y = self.y + h * (tableau.b @ K[:n])
            K[n] = self._evaluated(t, y)
            error = self._error(y, h)
            factor = MOST if error == 0 else SAFETY * error**EXPONENT
            if error < 1:
                break
            factor = max(LEAST, factor) if np.isfinite(factor) else LEAST
            part = 1.0 if self.corners is None else self.corners.within(self.y, y, h, K[:n], tableau.A.sum(axis=1))
            if part < 1 and error < limit:
                asked, limit, h = asked or h * factor, FALLEN * error, h * part
            else:
                asked, h = 0.0, h * factor
            growth = 1.0
        self._before = self.t, self.y
        self.t, self.y, self.f, self.h_abs = t, y, K[n].copy(), asked or h * min(growth, max(LEAST, factor))
        self.status = "finished" if t >= self.end else "running"
        return None

    def _error(self, y: Array, h: float) -> float:
        errors = self.tableau.errors
        assert errors is not None
        scale = self.atol + self.rtol * np.maximum(np.abs(self.y), np.abs(y))
        fifth, third = errors @ self._K[: errors.shape[1]] / scale
        a, b = float(fifth @ fifth), float(third @ third)
        return 0.0 if a == 0 and b == 0 else h * a / np.sqrt((a + 0.01 * b) * len(y))

    def dense_output(self) -> Interpolant:
        """The interpolant of the step just taken, to where it was put back to its manifold."""
        tableau, K, n = self.tableau, self._K, self.tableau.stages
        assert tableau.extra is not None
        assert tableau.dense is not None
        (t0, y0), h = self._before, self.t - self._before[0]
        for k, a in enumerate(tableau.extra, n + 1):
            K[k] = self._evaluated(t0 + a.sum() * h, y0 + h * (a[:k] @ K[:k]))
        change = self.y - y0
        terms = np.array([change, h * K[0] - change, 2 * change - h * (self.f + K[0]), *(h * (tableau.dense @ K))])
        return lambda t: y0 + nested(terms, (t - t0) / h)


def _mean(x: Array) -> float:
    return float(np.sqrt(x @ x / len(x)))


__all__ = ["DormandPrince8", "Steps"]
