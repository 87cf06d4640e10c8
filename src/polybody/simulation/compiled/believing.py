"""How far compiled steps believe an elimination of loops, and how they go on where they did not.

Code that gives up has met one of two things, at a state within the step ahead. Its plan of elimination does badly there
(`growth`), while the loops themselves are sound: another plan takes over, one that this motion knows or a new one, and
nothing is done in Python but the choice. Or rows of the loops are narrow, as near singular configurations. Equal steps
go on up to where rounding alone would do harm (`LOST`), from states that are put on the loops before each evaluation.
Adaptive steps look at the distance: where the motion reaches none before it ends, or not for some steps, they go on up
to half the time until then and ask again. What is left is for the method in Python: configurations that are reached
within two steps, which it bridges by one, and equal steps with a stage within `LOST` of one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from polybody.constraints.plan import growth
from polybody.model.plans import SWITCH
from polybody.simulation.bridge import crossing_time
from polybody.simulation.constrained_motion import LOST, MENDED, NEAR
from polybody.simulation.problem import Problem

if TYPE_CHECKING:
    from polybody.kernels.stepping import Loop

Array = np.ndarray
WIDER = 3.0  # times as narrow as the rows are now
BADLY = 0.5 * SWITCH  # growth for each pivot from which a plan is held to be why code gave up
GIVEN = 1e2  # (size/row)² for each pivot up to which it is believed at states between steps that somebody else takes
FAR_OFF = 2.0  # steps to a singular configuration above which they are taken by compiled code


class Believing:
    """The limits of one run with loops."""

    def __init__(self, problem: Problem, adaptive: bool, given: bool = False) -> None:
        self.problem, self.adaptive, self.given = problem, adaptive, given
        #: when a singular configuration ahead is to be looked for again, and the longest step until then
        self.until, self.longest = np.inf, np.inf
        self._last = (np.nan, 0)  # where code gave up last, and how often there

    @property
    def rank(self) -> int:
        return max(self.problem.motion._rank, 1)

    def limits(self) -> tuple[float, float]:
        """Growth and narrow up to which an elimination is believed."""
        near = MENDED if self.adaptive else NEAR  # nearer by, adaptive methods look for a way across
        near = GIVEN if self.given else near
        return float(SWITCH * self.rank), float(near * self.rank)

    def can_go_on(self, loop: Loop, row: int, t: float, y: Array, left: float, h: float) -> bool:
        """Whether compiled code can take the step from (t, y) after all; h is the step that was tried, `left` the time
        until the end."""
        count = self._last[1] + 1 if self._last[0] == t else 0
        self._last = (t, count)
        if count > 1:  # it has tried another plan, and wider rows
            return False
        if count == 0 and self._replanned(y, h):
            return True
        return self._widened(loop, row, t, y, left, h)

    def _replanned(self, y: Array, h: float) -> bool:
        """Take another plan, where one does better in the middle or at the end of the step ahead."""
        problem, plans = self.problem, self.problem.motion.plans
        (q, v), before = problem.split(y), plans.free(None)
        for part in (1.0, 0.5):
            there = problem.model.tree.integrate(q, v, part * h)
            if growth(problem.motion.kernels.jacobian(there), before) > BADLY * self.rank:
                plans.switch(there, self.rank)
                if plans.free(None) is not before:
                    return True
        return False

    def _widened(self, loop: Loop, row: int, t: float, y: Array, left: float, h: float) -> bool:
        """Let steps go on where rows of the loops are narrow: equal ones always, up to `LOST`, adaptive ones if no
        singular configuration comes soon."""
        if not self.adaptive:
            far, lost = loop.number("narrow") < LOST * self.rank, float(LOST * self.rank)
            loop.set(narrow=lost)
            return far
        narrow = loop.held("answers")[row, loop.parts.told + 1]
        wider = float(min(WIDER * narrow, NEAR * self.rank))
        ahead = crossing_time(self.problem, y)
        if ahead < left and ahead < FAR_OFF * h:
            loop.set(narrow=self.limits()[1])
            return False
        self._look_after(t, ahead, left)
        if wider > 1.2 * loop.number("narrow"):
            loop.set(narrow=wider)
        elif self.longest >= h:  # rows are narrow within the step only: a shorter one may not come so far
            self.until, self.longest = t + 0.5 * h, 0.5 * h
        return True

    def near(self, loop: Loop, done: int) -> int:
        """How many evaluations of these steps were near a singular configuration; they are not where rows are narrow
        along the plan alone. Steps that have passed it are believed as usual again."""
        narrow = loop.held("answers")[: done + 1, loop.parts.told + 1]
        if narrow[-1] < MENDED * self.rank:
            loop.set(narrow=self.limits()[1])
        q = loop.held("states")[int(np.argmax(narrow)), : self.problem.nq]
        return loop.word("nearby") if self.problem.motion._is_near(self.problem.motion.kernels.jacobian(q)) else 0

    def ask_again(self, loop: Loop, t: float, y: Array, end: float, h: float) -> None:
        """Where a configuration was ahead: how long to go on now."""
        if t < self.until:
            return
        ahead = crossing_time(self.problem, y)
        if ahead < end - t and ahead < FAR_OFF * h:
            loop.set(narrow=self.limits()[1])
            ahead = np.inf
        self._look_after(t, ahead, end - t)

    def _look_after(self, t: float, ahead: float, left: float) -> None:
        """Look again halfway to what is ahead; no step until then goes farther than three quarters of the way."""
        soon = ahead < left
        self.until, self.longest = (t + 0.5 * ahead, 0.25 * ahead) if soon else (np.inf, np.inf)


__all__ = ["Believing"]
