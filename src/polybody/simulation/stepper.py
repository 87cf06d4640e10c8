"""A simulation that goes on as long as it is asked to: for pages, games and hardware in the loop.

    live = Stepper(model, q0, dt=1e-3, controller=law, frames=("tool",))
    live.set_wrench("tool", [0, 0, 0, 5, 0, 0])      # acts from now on
    states = live.advance(16)                        # sixteen steps of 1 ms

Steps are those of `simulate`, by compiled code where that can be: stops, events and loops included. Changing a wrench
or the numbers of a controller compiles nothing anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from polybody.errors import InputError
from polybody.model.arguments import as_model, float_array
from polybody.model.model import Model
from polybody.simulation.arguments import lone_state, number, positive
from polybody.simulation.events import Event, Happening
from polybody.simulation.failures import BlowUp, SimulationError
from polybody.simulation.integrators import method_named
from polybody.simulation.kept import Kept
from polybody.simulation.problem import Controller
from polybody.simulation.start import prepared

Array = np.ndarray


class States(NamedTuple):
    """States after each step, and what happened in them: t (n,), q (n, nq), v, a and tau (n, nv)."""

    t: Array
    q: Array
    v: Array
    a: Array
    tau: Array
    happenings: list[Happening]


class Stepper:
    """A model under way from (q0, v0), in fixed steps of `dt` seconds.

    `frames` are those on which wrenches may act later. `path` says how steps are taken ("compiled", or "python: " and
    why); `t`, `q` and `v` where the motion is now.
    """

    def __init__(
        self,
        model: Model,
        q0: Any = None,
        v0: Any = None,
        *,
        dt: float = 1e-3,
        method: str = "rk4",
        controller: Controller | None = None,
        frames: Sequence[str] = (),
        limits: str = "stop",
        restitution: float = 0.0,
        efforts: str | None = None,
        friction: str = "stick",
        events: Sequence[Event] = (),
        start: float = 0.0,
    ) -> None:
        """Arguments as in `simulate`."""
        self.model = as_model("Stepper", model)
        if method_named(method).adaptive:
            raise InputError(f"method {method!r} chooses its steps; a Stepper takes rk4, semi-implicit or midpoint")
        self._said = {"dt": positive("dt", dt), "method": method, "limits": limits, "restitution": restitution,
                      "efforts": efforts, "friction": friction, "events": tuple(events)}  # fmt: skip
        self._wrenches: dict[str, Array] = {name: np.zeros(6) for name in frames}
        self._controller = controller
        self.t = number("start", start)
        self._make(q0, v0)

    def _make(self, q: Any, v: Any) -> None:
        said, dt = self._said, self._said["dt"]
        self._run, self._y, *_ = prepared(
            self.model, dt, q, v, self._controller, wrenches=self._wrenches, start=self.t, **said
        )
        self.problem, self.path = self._run.problem, self._run.path

    @property
    def q(self) -> Array:
        return self.problem.split(self._y)[0]

    @property
    def v(self) -> Array:
        return self.problem.split(self._y)[1]

    def set_state(self, q: Any, v: Any = None) -> None:
        """Go on from another state."""
        self._y = self.problem.state(*lone_state(self.model, q, v))
        self._run.switches.let_go(self._y)

    def set_wrench(self, frame: str, wrench: Any) -> None:
        """The wrench [moment; force] on a frame of `frames`, world axes at its origin, from now on."""
        if frame not in self._wrenches:
            raise InputError(f"no wrench was announced on {frame!r}; the frames are {sorted(self._wrenches)}")
        values = float_array("wrench", wrench)
        if values.shape != (6,) or not np.isfinite(values).all():
            raise InputError(f"the wrench on {frame!r} is {values}; expected 6 finite numbers")
        self._wrenches[frame] = values
        self.problem.set_wrench(frame, values)
        self._run.renew()

    def set_controller(self, controller: Controller | None) -> None:
        """Another controller from now on; one of the same kind with other numbers compiles nothing."""
        self._controller = controller
        self._make(self.q, self.v)

    def advance(self, steps: int = 1) -> States:
        """Take so many steps; an event that ends the run gives fewer states."""
        if int(steps) != steps or steps < 1:
            raise InputError(f"steps is {steps!r}; expected a whole number of at least 1")
        run, seen = self._run, len(self._run.switches.happenings)
        run.record = Kept()
        run.start, run.reached, run.last = self.t, self.t, self._y
        run.end = self.t + int(steps) * self._said["dt"]
        run.renew()  # targets and gains may have been set since
        try:
            run.advance(self.t, self._y, run.end)
        except BlowUp as reason:
            text = f"the motion diverged after t = {run.reached:.9g} s ({reason}); a smaller dt may help"
            raise SimulationError(text, run.reached) from None
        self.t, self._y = run.reached, run.last
        rows, nq, nv = run.record.all()[1:], self.problem.nq, self.problem.nv
        news = run.switches.happenings[seen:]
        return States(rows.t, rows.y[:, :nq], rows.y[:, nq : nq + nv], rows.a, rows.tau, news)


__all__ = ["States", "Stepper"]
