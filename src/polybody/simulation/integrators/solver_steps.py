"""One-step solvers with SciPy's interface, stepped by hand: after each step the state is put back on its manifold."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from polybody.simulation.bridge import bridge, is_late
from polybody.simulation.failures import BlowUp
from polybody.simulation.integrators.base import Interpolant, Options, Step, finite
from polybody.simulation.problem import Problem

Array = np.ndarray


def solver_steps(
    solver_class: Any,
    evaluations_a_try: int | None,
    problem: Problem,
    t: float,
    y: Array,
    end: float,
    options: Options,
    rate: Callable[[float, Array], Array] | None = None,
    **more: Any,
) -> Iterator[Step]:
    """Steps of a solver. `evaluations_a_try` lets rejected tries be counted, which its interface does not report.

    The work W takes no part in error control (its tolerance is infinite): it is there to be audited.
    """
    atol = np.full(problem.size, options.atol)
    atol[-1] = np.inf
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="invalid value|overflow", category=RuntimeWarning)
        def restarted(t: float, y: Array, first: float | None) -> Any:
            return solver_class(
                rate or problem.rate, t, y, end, rtol=options.rtol, atol=atol, max_step=options.max_step,
                first_step=first, **more,
            )  # fmt: skip

        solver = restarted(t, y, None if options.first_step is None else min(options.first_step, end - t))
        jerk, leaps = np.zeros(problem.nv), 0
        while solver.status == "running":
            horizon = options.horizon * solver.h_abs
            step, until = bridge(problem, solver.t, solver.y, solver.f, jerk, end, horizon, options)
            if step is not None:
                yield step
                if step.t1 >= end:
                    return
                solver = restarted(step.t1, step.y1, min(solver.h_abs, end - step.t1))
                jerk[:] = 0.0
                continue
            solver.max_step = min(options.max_step, 0.5 * until)
            t0, y0, f0, before = solver.t, solver.y, solver.f, solver.nfev
            message = solver.step()
            if solver.status == "failed":
                raise BlowUp(message or "the step became too small")
            if not finite(solver.y):
                raise BlowUp("numbers are no longer finite")
            if until == np.inf and is_late(problem, solver.y):  # it has come there in one leap, and would have to creep
                leaps += 1
                solver = restarted(t0, y0, 0.5 * (solver.t - t0))
                continue
            dense = solver.dense_output
            if evaluations_a_try is None:  # implicit: Newton's iterations end without regard to W
                dense, solver.y[-1] = with_work(problem, dense(), t0, solver.t, y0[-1])
            tries = None if evaluations_a_try is None else (solver.nfev - before) // evaluations_a_try
            off = problem.off_manifold(solver.y)
            if problem.moves():
                solver.y = problem.project(solver.y)
                solver.f = problem.rate(solver.t, solver.y)
            jerk = (solver.f - f0)[problem.nq : problem.nq + problem.nv] / (solver.t - t0)
            yield Step(
                t0, solver.t, y0, solver.y, dense, None if tries is None else max(0, tries - 1) + leaps, off
            )
            leaps = 0


def with_work(
    problem: Problem, dense: Interpolant, t0: float, t1: float, work: float
) -> tuple[Callable[[], Interpolant], float]:
    """(the interpolant with W by Gauss' quadrature of the power along it, W at its end)."""
    x, h = (np.polynomial.legendre.leggauss(4)[0] + 1) / 2, t1 - t0
    powers = [problem.power_at(t0 + h * s, dense(t0 + h * s)) for s in x]
    terms = np.polynomial.polynomial.polyint(np.linalg.solve(np.vander(x, increasing=True), powers)) * h

    def value(t: float) -> Array:
        y = dense(t)
        y[-1] = work + np.polynomial.polynomial.polyval((t - t0) / h, terms)
        return y

    return lambda: value, work + float(terms.sum())


__all__ = ["solver_steps"]
