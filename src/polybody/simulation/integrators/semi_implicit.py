"""Semi-implicit Euler: v first, then q with the new v, along the manifold's exponential. Order 1, fixed steps.

    v₁ = v₀ + h FD(q₀, v₀),      q₁ = q₀ ∘ exp(h v₁),      i₁ by the implicit rule with v₁
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from polybody.simulation.failures import BlowUp
from polybody.simulation.integrators.base import Options, Step, finite, fixed_times, hermite
from polybody.simulation.problem import Problem


class SemiImplicitEuler:
    """One evaluation a step; what game engines use."""

    name, order, adaptive = "semi-implicit", 1, False

    def steps(self, problem: Problem, t: float, y: np.ndarray, end: float, options: Options) -> Iterator[Step]:
        for t0, t1 in fixed_times(t, end, options.dt):
            h = t1 - t0
            (q, v), i = problem.split(y), problem.currents(y)
            tau, loads = problem.drive(t0, q, v, i)
            faster = v + h * problem.accelerate(q, v, tau, loads)
            moved = problem.model.integrate(q, faster, h)
            power = problem.power(q, (v + faster) / 2, tau, loads)
            i = problem.circuits.step(t0, q, faster, i, h, 1.0)
            raw = problem.state(moved, faster, i, y[-1] + h * power)
            if not finite(raw):
                raise BlowUp("numbers are no longer finite")
            new = problem.project(raw) if problem.moves() else raw
            yield Step(t0, t1, y, new, partial(hermite, problem, t0, t1, y, new), 0, problem.off_manifold(raw))
            y = new


__all__ = ["SemiImplicitEuler"]
