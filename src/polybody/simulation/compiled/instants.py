"""The instants of a controller with a memory that lie ahead in a run, with what is told of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.simulation.compiled.remembered import Remembered, instants

Array = np.ndarray
AT_LEAST = 64


class Ahead:
    """Instants after the last one; worked out in stretches, and each once."""

    def __init__(self, controller: Any, memory: Remembered) -> None:
        self.controller, self.memory = controller, memory
        self.start, self.due, self.begun = np.nan, np.inf, False
        self._times, self._told, self._end = np.zeros(0), np.zeros((0, memory.width)), -np.inf

    def passed(self, t: float) -> None:
        """The controller knows the state at t."""
        if not self.begun:
            self.begun, self.start = True, t
        self.last, self.due = t, self.controller.next_sample(t)

    def next(self, end: float, most: int) -> tuple[Array, Array, float]:
        """(times, told, where they end): the next instants before `end`, and the time up to which they are all."""
        first = int(np.searchsorted(self._times, self.last, side="right"))
        if first >= len(self._times) or self._end != end:
            count = max(AT_LEAST, most)
            self._times, first, self._end = instants(self.memory.clocks, self.last, end, count), 0, end
            self._told = np.ascontiguousarray(self.memory.told(self._times, self.start), dtype=float)
            self._whole = len(self._times) < count
        times, told = self._times[first:], self._told[first:]
        return times, told, end if self._whole else float(times[-1])


__all__ = ["Ahead"]
