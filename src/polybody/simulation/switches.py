"""Everything that can interrupt integration: a user's events, joint limits, joints that leave their stops."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from polybody.errors import InputError, PolybodyWarning
from polybody.simulation.events import Event, Function, Happening
from polybody.simulation.problem import Problem
from polybody.simulation.stops import Stop, Stops

Array = np.ndarray
Action = Callable[[float, Array], tuple[Array, str | None]]
NEAR = 1e-12
MOST_AT_ONCE = 200  # happenings at one time after which something is stuck


class Switches:
    """The functions to watch now, and what to do when one crosses zero."""

    def __init__(self, problem: Problem, events: Sequence[Event], limits: str, restitution: float) -> None:
        for event in events:
            if not isinstance(event, Event):
                raise InputError(f"events holds a {type(event).__name__}; wanted pb.Event(name, function, …)")
        self.problem, self.events, self.limits = problem, tuple(events), limits
        self.stops = Stops(problem.model, restitution)
        self.happenings: list[Happening] = []
        self.ended_on_purpose = False
        self._beyond: set[Stop] = set()
        if limits == "stop":
            problem.stops = self.stops
        self._watched: list[tuple[Function, int, Action]] | None = None
        self._last_time, self._at_once = -np.inf, 0

    def functions(self) -> list[tuple[Function, int]]:
        if self._watched is None:
            self._watched = [*self._user_events(), *self._limit_events()]
        return [(function, direction) for function, direction, _ in self._watched]

    def act(self, which: Sequence[int], t: float, y: Array) -> tuple[Array, str | None]:
        """(state to go on from, why the run ends here or None), after everything that happens at this time."""
        assert self._watched is not None
        self._count(t)
        ends = []
        for action in [self._watched[k][2] for k in which]:
            y, halt = action(t, y)
            ends.append(halt)
        halt = next((h for h in ends if h is not None), None)
        return (y, halt) if halt is not None else (self.settle(t, y), None)

    def _count(self, t: float) -> None:
        self._at_once = self._at_once + 1 if t - self._last_time < 1e-8 * (1 + abs(t)) else 0
        self._last_time = t
        if self._at_once > MOST_AT_ONCE:
            raise InputError(f"more than {MOST_AT_ONCE} events at t = {t:.9g} s: one of them triggers itself")

    def _user_events(self) -> list[tuple[Function, int, Action]]:
        return [(partial(self._value, e), e.direction, partial(self._happen, e)) for e in self.events]

    def _value(self, event: Event, t: float, y: Array) -> float:
        return float(event.function(t, *self.problem.split(y)))

    def _happen(self, event: Event, t: float, y: Array) -> tuple[Array, str | None]:
        self.happenings.append(Happening(t, event.name))
        q, v = self.problem.split(y)
        changed = event.action(t, q, v) if event.action is not None else None
        if changed is not None:
            new_q, new_v = (np.asarray(x, dtype=float) for x in changed)
            if new_q.shape != q.shape or new_v.shape != v.shape:
                shapes = f"{q.shape}, {v.shape}"
                raise InputError(f"the action of event {event.name!r} must return (q, v) of shapes {shapes}")
            y = self._changed(y, self.problem.model.normalize(new_q), new_v)
        if event.terminal:
            self.ended_on_purpose = True
            return y, f"event {event.name!r} at t = {t:.9g} s"
        return y, None

    def _changed(self, y: Array, q: Array, v: Array) -> Array:
        """The state with new q and v; the work includes what changed it at once, so that the balance stays one."""
        energy = self.problem.model.energy
        work = float(y[-1] + sum(energy(q, v)) - sum(energy(*self.problem.split(y))))
        return self.problem.state(q, v, self.problem.currents(y), work)

    def _limit_events(self) -> list[tuple[Function, int, Action]]:
        if self.limits == "ignore":
            return []
        found: list[tuple[Function, int, Action]] = []
        for stop in self.stops.all:
            if self.stops.held.get(stop.v) is stop:
                pull = self.stops.pull(stop)
                found.append((partial(pull, self.problem), 1, partial(self._leave, stop)))
            else:
                found.append((partial(self._excess, stop), 1, partial(self._reach, stop)))
        return found

    @staticmethod
    def _excess(stop: Stop, t: float, y: Array) -> float:
        return stop.excess(y)

    def _leave(self, stop: Stop, t: float, y: Array) -> tuple[Array, str | None]:
        self.stops.release(stop)
        self.happenings.append(Happening(t, stop.name, "left"))
        return y, None

    def _reach(self, stop: Stop, t: float, y: Array) -> tuple[Array, str | None]:
        if self.limits == "stop":
            return self._hit(stop, t, y), None
        self.happenings.append(Happening(t, stop.name, "reached"))
        if self.limits == "halt":
            self.ended_on_purpose = True
            return y, f"joint {stop.joint!r} reached its {stop.name.rsplit(' ', 2)[-2]} limit at t = {t:.9g} s"
        return y, None

    def _hit(self, stop: Stop, t: float, y: Array) -> Array:
        q, v = self.problem.split(y)
        speed = v[stop.v]
        q[stop.q] = stop.limit
        after, impulse = self.stops.impact(stop, q, v)
        held = self.stops.held.get(stop.v) is stop
        self.happenings.append(
            Happening(t, stop.name, f"hit at {speed:.6g}, impulse {impulse:.6g}, {'rests' if held else 'rebounds'}")
        )
        return self._changed(y, q, after)

    def settle(self, t: float, y: Array) -> Array:
        """Deal with joints that are at a limit now: those that press on rest there, those held that pull leave."""
        self._watched = None
        if self.limits != "stop" or not self.stops.all:
            return y
        for stop in self.stops.all:
            excess = stop.excess(y)
            if excess > NEAR and stop not in self._beyond and self.stops.held.get(stop.v) is not stop:
                self._note_beyond(stop, t, excess)
            if abs(excess) <= NEAR and stop.v not in self.stops.held:
                y = self._press(stop, t, y)
        for stop in list(self.stops.held.values()):
            if self.stops.pull(stop)(self.problem, t, y) > 0:
                self.stops.release(stop)
        return y

    def _press(self, stop: Stop, t: float, y: Array) -> Array:
        q, v = self.problem.split(y)
        if stop.side * v[stop.v] > 0:
            return self._hit(stop, t, y)
        if v[stop.v] == 0:
            tau, loads = self.problem.drive(t, q, v, self.problem.currents(y))
            if stop.side * self.problem.accelerate(q, v, tau, loads)[stop.v] > 0:
                self.stops.held[stop.v] = stop
                self.happenings.append(Happening(t, stop.name, "rests"))
        return y

    def _note_beyond(self, stop: Stop, t: float, excess: float) -> None:
        """A joint that starts outside its range is let in; then its limit holds."""
        self._beyond.add(stop)
        self.happenings.append(Happening(t, stop.name, f"beyond it by {excess:.6g}"))
        warnings.warn(
            f"joint {stop.joint!r} is {excess:.4g} beyond its limit {stop.limit:.4g} at t = {t:.4g} s; the limit acts "
            "once the joint is back inside",
            PolybodyWarning,
            stacklevel=6,
        )


__all__ = ["Switches"]
