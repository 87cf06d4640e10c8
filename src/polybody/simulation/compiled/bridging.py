"""The step across a singular configuration of loops (`simulation.bridge`), found by compiled code.

Python has chosen where it ends and where its stages are looked for, once for each configuration; the iterations are a
loop of machine code over the field and the way back to the loops that the run's own steps call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from polybody.kernels.stepping_code import CANNOT
from polybody.kernels.stepping_gauss import Gauss
from polybody.properties import cached_property
from polybody.simulation.bridge import gauss
from polybody.simulation.compiled.watch import NOTHING
from polybody.simulation.constrained_motion import LOST

if TYPE_CHECKING:
    from polybody.simulation.compiled.engine import Compiled

Array = np.ndarray


class Bridging:
    """Such steps of one run."""

    def __init__(self, compiled: Compiled) -> None:
        self._of = compiled

    @cached_property
    def _method(self) -> Gauss:
        _, A, b, _ = gauss()
        return Gauss(A, b)

    def __call__(self, t: float, y: Array, Y: Array, times: Array, end: float) -> tuple[Array, Array] | None:
        """(F at the stages, y₁) of a step from (t, y) to the time `end`; None where it is not to be had.

        Y (stages, size) is where stages are looked for, `times` their times.
        """
        of, problem = self._of, self._of.problem
        loop = of.loop(NOTHING, across=self._method)
        size, rank = problem.size, of._believing.rank
        states = loop.room("states", 3, loop.parts.padded)
        states[0, :size], states[0, size] = y, t
        nodes = loop.room("dense", 1, self._method.dense_rows, loop.parts.padded)
        nodes[0, :-1, :size], nodes[0, :-1, size] = Y, times
        loop.room("answers", 3, loop.parts.answer)
        loop.array("times", np.array([t, end]))
        loop.refresh()
        loop.set(steps=1, evaluations=0, nearby=0, off_loops=0.0, off_manifold=0.0, count=0, next=0, tick_count=0,
                 tick_next=0, narrow=float(LOST * rank))  # fmt: skip
        status = loop.run()
        problem.evaluations += loop.word("evaluations")
        if status == CANNOT:
            return None
        problem.singular += loop.word("nearby")
        problem.off_loops = max(problem.off_loops, loop.number("off_loops"))
        answers = loop.held("stages").reshape(-1, loop.parts.answer)
        return answers[: self._method.stages, :size].copy(), nodes[0, -1, :size].copy()


__all__ = ["Bridging"]
