"""Controllers with a memory of their own: integral terms, filters, observers, written as two functions.

    z ← update(t, q, v, z)      at every instant t = k·period, the first of them the start of the run
    tau = force(t, q, v, z)     at every time, z held between the instants

Both are functions of their arguments alone, so that nothing of a run is left in the controller for the next one, and
`pb.sensitivities` can differentiate them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from polybody.errors import InputError
from polybody.model.arguments import float_array
from polybody.names import counted
from polybody.simulation.controllers.sampling import Clock

Array = np.ndarray


class Stateful:
    """A controller that remembers numbers z: `force(t, q, v, z)` are joint forces, `update(t, q, v, z)` the next z.

    `start` is z before the first instant; z is updated every `period` seconds, at first when the run starts.
    """

    def __init__(
        self, force: Callable[..., Any], update: Callable[..., Any], start: Any, period: float = 1e-3
    ) -> None:
        for name, function in (("force", force), ("update", update)):
            if not callable(function):
                raise InputError(f"{name} is a {type(function).__name__}; expected a function of (t, q, v, z)")
        self.force, self.update, self.clock = force, update, Clock(period)
        self.start = np.atleast_1d(float_array("start", start))
        if self.start.ndim != 1 or not np.isfinite(self.start).all():
            raise InputError(f"start has shape {self.start.shape}; expected finite numbers (n,)")
        self.state, self._last = self.start.copy(), np.inf

    def next_sample(self, t: float) -> float:
        """The next instant."""
        return self.clock.next(t)

    def sample(self, t: float, q: Array, v: Array) -> None:
        """Update z with the state at t."""
        before = self.start if t <= self._last else self.state  # another run
        found = np.asarray(self.update(t, q, v, before.copy()), dtype=float)
        if found.shape != self.start.shape or not np.isfinite(found).all():
            wanted = counted(len(self.start), "finite number")
            raise InputError(f"update returned {found} at t = {t:.9g} s; expected {wanted}")
        self.state, self._last = found, t

    def resume(self, t: float, z: Array) -> None:
        """z is what its last update, at t, has made of it."""
        self.state, self._last = z, t

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        if not np.isfinite(self._last):
            self.sample(t, q, v)
        return np.asarray(self.force(t, q, v, self.state), dtype=float)


__all__ = ["Stateful"]
