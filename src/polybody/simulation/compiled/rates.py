"""ẏ and ∂ẏ/∂y of a problem as compiled kernels, for implicit methods that take their steps in Python."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from polybody.model.plans import SWITCH
from polybody.model.tracing import compiled, source_digest
from polybody.simulation.compiled.engine import MOST_IMPLICIT, acting_of, possible_holding
from polybody.simulation.compiled.field import require_compilable
from polybody.simulation.compiled.laws import NotCompiled
from polybody.simulation.problem import Problem

Array = np.ndarray


class Rates:
    """The right side and its exact Jacobian, each one call; a user's traced functions are differentiated too.

    Not for loops, whose accelerations must be looked at near singular configurations, nor while a joint is held.
    """

    def __init__(self, problem: Problem) -> None:
        if problem.loops:
            raise NotCompiled("loops are solved in Python")
        require_compilable(problem.model, "radau")
        if problem.model.nv > MOST_IMPLICIT:
            raise NotCompiled(f"{problem.model.nv} velocities are too many for a compiled Jacobian")
        possible_holding(problem, "radau")
        self.problem, self.acting = problem, acting_of(problem)
        acting, n = self.acting, self.acting.size
        inputs = [("x", n + 1), ("c", len(acting.constants)), ("row", acting.law.signals.rows.shape[1])]
        key = f"{acting.key}:{problem.model.engine.tree.source.digest}:{source_digest()}"
        recorded = acting.recorded + 2
        self._rate = compiled(
            "simulate rate", inputs, [("rate", (n + 1,)), ("told", (recorded,))], lambda: acting.function("field"), key
        )
        self._slopes = compiled("simulate slopes", inputs, [("slopes", (n, n))], acting.slopes, key)
        self._constants = acting.constants

    def held(self, t: float, y: Array) -> Rates:
        """These rates with the forces, or the memory, that a controller has from t on, until its next instant."""
        law = self.acting.law
        if law.held:
            now = self.problem.torque(t, *self.problem.split(y))
        elif law.memory is not None:
            now = np.concatenate([law.constants[: len(law.constants) - law.memory.size], law.memory.take()])
        else:
            return self
        self._constants = self.acting.renumbered(law=replace(law, constants=now)).constants
        return self

    def _arguments(self, t: float, y: Array) -> tuple[Array, Array, Array]:
        return np.append(y, t), self._constants, self.acting.law.signals.row(t)

    def rate(self, t: float, y: Array) -> Array:
        if self.problem.resting:
            return self.problem.rate(t, y)
        self.problem.evaluations += 1
        rate, told = self._rate(*self._arguments(t, y))
        return rate[:-1] if not self.acting.law.doubtful or told[-2] < SWITCH else self.problem.rate(t, y)

    def jacobian(self, t: float, y: Array) -> Any:
        return self._slopes(*self._arguments(t, y))


def rates_of(problem: Problem, t: float, y: Array) -> Rates | None:
    """Compiled rates for steps from (t, y), or None where there are none or none are requested."""
    if not problem.compilable or problem.resting:
        return None
    try:
        return Rates(problem).held(t, y)
    except NotCompiled:
        return None


__all__ = ["Rates", "rates_of"]
