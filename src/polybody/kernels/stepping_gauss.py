"""Machine code for one long step by Gauss' collocation, in the language of `native`: across places where a field may
not be asked.

    Y_i = x + h Σ_j A_ij F_j,    F_i = ẋ(Y_i put back on the manifold),    x₁ = x + h Σ b_i F_i

The loop `stepping_methods.FIXED` takes such a step. Where it begins to look for the Y_i is given in the rows of
`dense`, which hold them afterwards; behind them is x₁ before it is put back. The F_i are the job's `stages`. Iterations
end where the largest change, relative to 1 + |x|, is rounding: below DONE, or below NEARLY_DONE while it no longer
shrinks. The last of y, which nothing depends on, has no part in it.
"""

from __future__ import annotations

import numpy as np

from polybody.late import dataclass
from polybody.properties import cached_property

Array = np.ndarray
MOST_ITERATIONS = 40
DONE, NEARLY_DONE = 1e-14, 1e-9


@dataclass(frozen=True)
class Gauss:
    """A (n, n) and b (n,) of the method."""

    A: Array
    b: Array

    adaptive = False

    @property
    def stages(self) -> int:
        return len(self.b)

    @property
    def dense_rows(self) -> int:
        """The stages, and the end of the step."""
        return len(self.b) + 1

    @cached_property
    def rows(self) -> Array:
        """The table that the loop reads."""
        return np.concatenate([self.A, self.b[None]])


NUMBERS: dict[str, float] = {"MOST_ITERATIONS": MOST_ITERATIONS, "DONE_AT": DONE, "NEARLY_DONE": NEARLY_DONE}

STEPPED = """
def _stepped(job, x, f, new, h: float):
    K = word(job + STAGES)
    tableau = word(job + TABLEAU)
    stage = word(job + STAGE)
    nodes = word(job + DENSE)
    off = 0.0
    before = 1e300
    count = 0
    going = 1
    while going == 1:
        for s in range(STAGE_COUNT):
            _copy(stage, nodes + X * s, N)
            if _returned(job, stage) != 0:
                return CANNOT
            off = most(number(job + FIRST), off)
            if _evaluate(job, stage, K + F * s) != 0:
                return CANNOT
        worst = 0.0
        for s in range(STAGE_COUNT):
            combine(stage, x, h, K, tableau + 8 * STAGE_COUNT * s, STAGE_COUNT)
            for i in range(CONTROLLED):
                change = size(number(stage + 8 * i) - number(nodes + X * s + 8 * i))
                worst = most(change / (1.0 + size(number(x + 8 * i))), worst)
            if _finite(stage, NX) == 0:
                return CANNOT
            _copy(nodes + X * s, stage, N)
        count += 1
        if worst < DONE_AT or (worst < NEARLY_DONE and worst > 0.5 * before):
            going = 0
        elif count == MOST_ITERATIONS:
            return CANNOT
        before = worst
    put(job + OFF_LOOPS, most(off, number(job + OFF_LOOPS)))
    combine(new, x, h, K, tableau + 8 * STAGE_COUNT * STAGE_COUNT, STAGE_COUNT)
    _copy(nodes + X * STAGE_COUNT, new, N)
    return 0
"""

__all__ = ["NUMBERS", "STEPPED", "Gauss"]
