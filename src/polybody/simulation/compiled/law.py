"""The text of a controller, as a compiled field takes it; `laws` writes those of the usual ones.

    tau = text(mechanism, t, q, v, constants, row, domain)

`constants` are numbers that may change without another compilation (gains, targets); `row` is the row of a table of
*signals* that holds at t: a path is a table of polynomials, a table of torques one of straight lines.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from polybody.constraints.plan import Plan
from polybody.late import dataclass, field

Array = np.ndarray


@dataclass(frozen=True)
class Signals:
    """A table over time: row k holds from breaks[k] to the next, the first before it too, the last ever after."""

    breaks: Array = field(default_factory=lambda: np.zeros(0))
    rows: Array = field(default_factory=lambda: np.zeros((0, 0)))

    def row(self, t: float) -> Array:
        """The row of a time."""
        k = max(0, int(np.searchsorted(self.breaks, t, side="right")) - 1)
        return self.rows[k] if len(self.breaks) else np.zeros(0)


@dataclass(frozen=True, eq=False)
class Solved:
    """What a text has made of a tree's dynamics at a state, which the field need not make again."""

    mechanism: Any
    q: Array
    v: Array
    factors: Any  # of M: `solve(force)`
    needed: Array  # forces with which nothing accelerates

    def acceleration(self, m: Any, q: Array, v: Array, tau: Array) -> Array | None:
        """a under forces tau; None where it is of another mechanism or state."""
        is_this = m is self.mechanism and q is self.q and v is self.v
        return self.factors.solve(tau - self.needed) if is_this else None


@dataclass(frozen=True)
class Law:
    """Joint forces as text. `key` distinguishes texts, not their constants and signals."""

    key: str
    text: Callable[..., Array]  # (mechanism, t, q, v, constants, row, domain) -> tau
    constants: Array = field(default_factory=lambda: np.zeros(0))
    signals: Signals = field(default_factory=Signals)
    doubts: list[Any] = field(default_factory=list)  # nodes that are large where the text just read is not believed
    doubtful: bool = False  # of trees too
    memory: Any = None  # the `Remembered` whose z are the last of the constants
    held: bool = False  # the constants are forces that Python computes at the controller's instants
    solved: list[Solved] = field(default_factory=list)  # by the text just read
    steady: bool = False  # a user's function that turned out not to read the time


#: the plan of elimination that holds when a text is read
Planned = Callable[[], Plan]


def free() -> Law:
    """Of whoever has no controller."""
    return Law("free", lambda m, t, q, v, c, row, domain: domain.zeros(m.nv))


__all__ = ["Law", "Planned", "Signals", "Solved", "free"]
