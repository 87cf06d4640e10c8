"""Everything that can interrupt integration: a user's events, joint limits, joints that leave their stops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from polybody.errors import InputError, warn
from polybody.late import dataclass
from polybody.model.arguments import finite, float_array
from polybody.simulation.events import Event, Function, Happening
from polybody.simulation.failures import UserFunctionError, call_user
from polybody.simulation.friction import Overload, SlidingSpeed, Stick
from polybody.simulation.problem import Problem
from polybody.simulation.stops import AT, REST, ROUNDING, Excess, Pull, Stop, Stops, is_rounding

Array = np.ndarray
Action = Callable[[float, Array], tuple[Array, str | None]]
STILL = 1e-8  # rad/s or m/s: a joint as slow as this is at rest where another comes to rest, and friction may hold it
LOOP_STILL = 1e-6  # the same in loops, whose joints come to rest together, but each only up to the method's errors
#: rounds in which levels of friction that depend on loads are found, and how little they change when they are
MOST_LEVELS, SAME_LEVEL = 30, 1e-10
BOUNCE = 1e-8  # rad or m: rebounds that go no farther are none
LEVELS = (1e-11, 1e-10, 2e-9)  # rad or m beyond its limit, where a joint that lingers at it is said to run into it
MOST_AT_ONCE = 200  # happenings at one time after which something is stuck


@dataclass(frozen=True, eq=False)
class EventValue:
    """A user's event function, of (t, y)."""

    problem: Problem
    event: Event

    def __call__(self, t: float, y: Array) -> float:
        name = f"event {self.event.name!r}"
        found = call_user(name, t, self.event.function, t, *self.problem.split(y))
        try:
            value = float(found)
        except (TypeError, ValueError):
            value = np.nan
        if not np.isfinite(value):
            raise UserFunctionError(f"{name} returned {found!r} at t = {t:.9g} s; expected a finite number", t)
        return value


class Switches:
    """The functions to watch now, and what to do when one crosses zero."""

    def __init__(self, problem: Problem, events: Sequence[Event], limits: str, restitution: float) -> None:
        if isinstance(events, Event):
            raise InputError("events is one pb.Event; expected a list of them")
        if events is None:
            raise InputError("events is None; expected a list of pb.Event, or nothing")
        for event in events:
            if not isinstance(event, Event):
                raise InputError(f"events holds a {type(event).__name__}; expected pb.Event(name, function, …)")
        self.problem, self.events, self.limits = problem, tuple(events), limits
        problem.limits = limits
        self.stops = Stops(problem.model, restitution, pressing=limits == "stop")
        self.happenings: list[Happening] = []
        self.ended_on_purpose = False
        self._beyond: set[Stop] = set()  # from the start
        self._reached: set[Stop] = set()
        self._leaving: set[Stop] = set()
        self._started = False
        self._slipping: set[int] = set()  # slots of friction that have just broken loose
        self._halted: set[int] = set()  # slots whose sliding has just ended
        if limits == "stop" or problem.friction is not None:
            problem.stops = self.stops
        self._functions: list[Any] | None = None
        self._actions: list[Action] | None = None
        self._last_time, self._at_once = -np.inf, 0
        self.changes: list[float] = []  # times at which joints came to rest or began to slide

    def functions(self) -> list[tuple[Function, int]]:
        """The same list as long as the same functions are watched."""
        if self._functions is None:
            if not self.events and self.problem.friction is None and self.limits != "ignore" and self.stops.is_free:
                self._functions = self.stops.functions  # of all runs
            else:
                self._functions = [(function, direction) for function, direction, _ in self._watched()]
        return self._functions

    def _watched(self) -> list[tuple[Function, int, Action]]:
        return [*self._user_events(), *self._limit_events(), *self._friction_events()]

    def _watch_anew(self) -> None:
        self._functions = self._actions = None

    def act(self, which: Sequence[int], t: float, y: Array) -> tuple[Array, str | None]:
        """(state to go on from, why the run ends here or None), after everything that happens at this time."""
        if self._actions is None:
            self._actions = [action for *_, action in self._watched()]
        self._count(t)
        ends = []
        for action in [self._actions[k] for k in which]:
            y, halt = action(t, y)
            ends.append(halt)
        halt = next((h for h in ends if h is not None), None)
        return (y, halt) if halt is not None else (self.settle(t, y), None)

    @property
    def plain(self) -> bool:
        """Whether compiled code knows all that decides about the next event."""
        known = self.limits == "stop" or not self.stops.levels
        return known and not self._beyond and self._started

    def happened(self, event: Any) -> None:
        """Take over what compiled code has found at an event (`compiled.switching.Switched`)."""
        t, friction, stops = event.time, self.problem.friction, self.stops
        crossed = event.crossed
        before = {place for slot, place in stops.held.items() if slot not in event.moved}
        self._count(t)
        self._watch_anew()
        for own in self.events:
            if ("event", id(own)) in crossed:
                self.happenings.append(Happening(t, own.name))
        if self.limits == "report":
            reached = [stop for stop in stops.all if ("reached", stop) in crossed]
            self.happenings += [Happening(t, stop.name, "reached") for stop in reached]
        leaving = {stop for stop in stops.all if ("left", stop) in crossed}
        self.happenings += [Happening(t, stop.name, "left") for stop in stops.all if stop in leaving]
        slipping = [slot for slot in event.sliding if ("slips", slot) in crossed]
        self.changes += [t] * len(slipping) + [t for slot in event.sliding if ("rests", slot) in crossed]
        for slot in (*slipping, *event.thrown):
            self.happenings.append(Happening(t, stops.held[slot].name, "slips"))
            before.discard(stops.held[slot])
        stops.held, stops.levels = dict(event.held), event.levels
        stops.implied, stops.still = event.implied, event.still
        if friction is not None:
            friction.sliding.update(event.sliding)
        self._tell(t, before - leaving, event.hits)

    def _count(self, t: float) -> None:
        self._at_once = self._at_once + 1 if t - self._last_time < 1e-8 * (1 + abs(t)) else 0
        self._last_time = t
        if self._at_once > MOST_AT_ONCE:
            raise InputError(f"more than {MOST_AT_ONCE} events at t = {t:.9g} s: one of them triggers itself")

    def calls(self, which: Sequence[int]) -> bool:
        """Whether one of these functions, by number, is an event with an action of the user's."""
        return any(event.action is not None for k, event in enumerate(self.events) if k in which)

    def _user_events(self) -> list[tuple[Function, int, Action]]:
        return [(EventValue(self.problem, e), e.direction, partial(self._happen, e)) for e in self.events]

    def require_events(self, t: float, y: Array) -> None:
        """Raise an error where the function of an event is no number: compiled code finds nothing there."""
        for event in self.events:
            EventValue(self.problem, event)(t, y)

    def _happen(self, event: Event, t: float, y: Array) -> tuple[Array, str | None]:
        self.happenings.append(Happening(t, event.name))
        q, v = self.problem.split(y)
        changed, who = None, f"the action of event {event.name!r}"
        if event.action is not None:
            changed = call_user(who, t, event.action, t, q.copy(), v.copy())
        if changed is not None:
            if not isinstance(changed, tuple | list) or len(changed) != 2:
                raise InputError(f"{who} returned {type(changed).__name__}; expected a pair (q, v), or None")
            names = (f"q of {who}", f"v of {who}")
            given = [x.full().ravel() if hasattr(x, "full") else x for x in changed]  # of a casadi.Function
            new_q, new_v = (finite(name, float_array(name, x)) for name, x in zip(names, given, strict=True))
            if new_q.shape != q.shape or new_v.shape != v.shape:
                shapes = f"{q.shape}, {v.shape}"
                raise InputError(f"{who} must return (q, v) of shapes {shapes}")
            y = self._changed(y, *self._closed(who, self.problem.model.normalize(new_q), new_v))
            self.let_go(y)
        if event.terminal:
            self.ended_on_purpose = True
            return y, f"event {event.name!r} at t = {t:.9g} s"
        return y, None

    def _closed(self, who: str, q: Array, v: Array) -> tuple[Array, Array]:
        """A state that a user has given, which must keep loops closed as one that a run begins with."""
        if not self.problem.loops:
            return q, v
        try:
            self.problem.model.engine.require_closed(q, v)
        except InputError as error:
            raise InputError(f"{who}: {error}") from None
        return self.problem.motion.projection(q, v)[:2]

    def let_go(self, y: Array) -> None:
        """Forget joints as held that a user has put elsewhere: they rest, stick or move from where they are now."""
        moved = {slot for slot, place in self.stops.held.items() if abs(y[place.q] - place.limit) > AT}
        self.stops.held = {slot: place for slot, place in self.stops.held.items() if slot not in moved}
        self.stops.implied = {stop for stop in self.stops.implied if abs(stop.excess(y)) <= AT}

    def _changed(self, y: Array, q: Array, v: Array) -> Array:
        """The state with new q and v; the work includes what changed it at once, so that the balance stays one."""
        if np.array_equal(np.concatenate(self.problem.split(y)), np.concatenate([q, v])):
            return y.copy()
        energy = self.problem.model.energy
        work = float(y[-1] + sum(energy(q, v)) - sum(energy(*self.problem.split(y))))
        return self.problem.state(q, v, self.problem.currents(y), work)

    def _limit_events(self) -> list[tuple[Function, int, Action]]:
        if self.limits == "ignore":
            return []
        found: list[tuple[Function, int, Action]] = []
        for stop in self.stops.all:
            held = self.stops.held.get(stop.v)
            if self.limits == "stop" and (stop in self.stops.implied or isinstance(held, Stick)):  # it does not move
                continue
            if held is stop:
                pull = self.stops.pull(stop)
                found.append((partial(pull, self.problem), 1, partial(self._leave, stop)))
            else:
                found.append((Excess(stop, self.stops.levels.get(stop, 0.0)), 1, partial(self._reach, stop)))
        return found

    def _friction_events(self) -> list[tuple[Function, int, Action]]:
        """Joints that slide come to rest; those that stick break loose."""
        friction = self.problem.friction
        found: list[tuple[Function, int, Action]] = []
        for slot in friction.slots if friction is not None else ():
            held = self.stops.held.get(slot)
            if isinstance(held, Stick):
                overload = partial(Overload(slot, self.stops.holding(held)), self.problem)
                found.append((overload, 1, partial(self._slip, held)))
            elif held is None and friction is not None and friction.sliding[slot] and slot not in self.stops.still:
                speed = SlidingSpeed(slot, self.problem.nq + slot, friction.sliding[slot])
                found.append((speed, -1, partial(self._come_to_rest, slot)))
        return found

    def _slip(self, stick: Stick, t: float, y: Array) -> tuple[Array, str | None]:
        """The joint begins to slide, against the force that held it."""
        friction = self.problem.friction
        assert friction is not None
        self.changes.append(t)
        force, _ = self.stops.holding(stick)(self.problem, t, y)
        self.stops.held.pop(stick.v, None)
        friction.sliding[stick.v] = -int(np.sign(force))
        self._slipping.add(stick.v)
        self.happenings.append(Happening(t, stick.name, "slips"))
        return y, None

    def _come_to_rest(self, slot: int, t: float, y: Array) -> tuple[Array, str | None]:
        self._halted.add(slot)  # dealt with by `settle`
        self.changes.append(t)
        y = y.copy()
        y[self.problem.nq + slot] = 0.0
        return y, None

    def _leave(self, stop: Stop, t: float, y: Array) -> tuple[Array, str | None]:
        self.stops.held.pop(stop.v, None)
        self._leaving.add(stop)
        self.happenings.append(Happening(t, stop.name, "left"))
        return y, None

    def _reach(self, stop: Stop, t: float, y: Array) -> tuple[Array, str | None]:
        if self.limits == "stop":
            self._reached.add(stop)  # dealt with by `settle`, together with all others at their limits
            return y, None
        self.happenings.append(Happening(t, stop.name, "reached"))
        if self.limits == "halt":
            self.ended_on_purpose = True
            return y, f"joint {stop.joint!r} reached its {stop.name.rsplit(' ', 2)[-2]} limit at t = {t:.9g} s"
        return y, None

    def settle(self, t: float, y: Array) -> Array:
        """Deal with all joints that are at a limit now: those that run into it hit it, those that press rest there."""
        self._watch_anew()
        reached, leaving, self._reached, self._leaving = self._reached, self._leaving, set(), set()
        stops = self.stops.all if self.limits == "stop" else []
        slipping, halted, self._slipping, self._halted = self._slipping, self._halted, set(), set()
        if self.problem.friction is None and not (reached or leaving or self._beyond) and self._is_far(y):
            self._started = True
            return y
        if not stops and self.problem.friction is None:
            self._linger(y)
            return y
        at_limit = [stop for stop in stops if self._is_at(stop, t, y, reached)]
        before = set(self.stops.held.values())
        y, hits = self._hit(at_limit, y)
        speeds = self.problem.split(y)[1]
        still = 1e-9 * (1 + np.abs(speeds).max(initial=0.0))
        resting = [stop for stop in at_limit if abs(speeds[stop.v]) <= still and stop not in leaving]
        resting += self._returning([stop for stop in at_limit if stop not in resting and stop not in leaving], t, y)
        # At the moment of slipping nothing presses but rounding: which way the joint slips decides about its stop.
        away = {stop for stop in resting if stop.v in slipping and self._slides(stop) < 0}
        slipping -= {stop.v for stop in resting if self._slides(stop) > 0}
        resting = [stop for stop in resting if stop not in away]
        y = self._press(resting, t, y, self._at_rest(t, y, slipping, halted))
        self._tell(t, before - leaving, hits)
        self._linger(y)
        return y

    def _is_far(self, y: Array) -> bool:
        """Whether nothing is held and no joint is at a limit, so that there is nothing to settle."""
        return self.stops.is_free and (self.limits == "ignore" or self.stops.are_far(y))

    def _linger(self, y: Array) -> None:
        """Note joints at a limit that neither press on it nor leave it fast: what they exceed it by starts at zero, or
        at rounding, so that its sign would not tell when they are pushed into it."""
        v, first, self._started = self.problem.split(y)[1], not self._started, True
        self.stops.levels = {}
        for stop in self.stops.all if self.limits == "stop" or (first and self.limits != "ignore") else ():
            free = stop not in self._beyond and stop.v not in self.stops.held and stop not in self.stops.implied
            excess = stop.excess(y)
            if free and -AT <= excess <= AT and -REST < stop.side * v[stop.v] <= STILL:
                self.stops.levels[stop] = next(level for level in LEVELS if level > 2 * excess)

    def _returning(self, stops: list[Stop], t: float, y: Array) -> list[Stop]:
        """Stops that joints leave so slowly that they are back before they have gone as far as `BOUNCE`.

        Several stops can throw a joint to and fro ever faster: there is no end of hits that can be told apart.
        """
        q, v = self.problem.split(y)
        slow = [stop for stop in stops if -REST < stop.side * v[stop.v] < 0]
        if not slow:
            return []
        a = self.problem.free_acceleration(q, v, *self.problem.drive(t, q, v, self.problem.currents(y)))
        return [stop for stop in slow if v[stop.v] ** 2 < 2 * BOUNCE * stop.side * a[stop.v]]

    def _slides(self, stop: Stop) -> int:
        """The way a joint slides: 1 into its stop, −1 away from it, 0 where it does not slide."""
        friction = self.problem.friction
        return 0 if friction is None else stop.side * friction.sliding.get(stop.v, 0)

    def _is_at(self, stop: Stop, t: float, y: Array, reached: set[Stop]) -> bool:
        """True at the limit; a joint that starts beyond its limit is let in first."""
        excess = stop.excess(y)
        if stop in self._beyond and excess <= 0:
            self._beyond.discard(stop)
        if stop in reached or stop in self.stops.implied or self.stops.held.get(stop.v) is stop:
            return True
        if not self._started and excess > AT:
            self._note_beyond(stop, t, excess)
        return excess >= -AT and stop not in self._beyond

    def _hit(self, stops: list[Stop], y: Array) -> tuple[Array, dict[Stop, tuple[float, float]]]:
        """The state after hits of those that run into their stops; {stop: (speed, impulse)} of the hits."""
        q, v = self.problem.split(y)
        if not any(stop.side * v[stop.v] > 0 for stop in stops):
            return y, {}
        q, v = self._put_at(stops, q, v)
        after, impulses = self.stops.impact(stops, q, v)
        least = ROUNDING * np.max(impulses, initial=0.0)  # joints that rounding moves hit nothing
        hits = {s: (float(v[s.v]), float(x)) for s, x in zip(stops, impulses, strict=True) if x > least}
        return self._changed(y, q, after), hits

    def _put_at(self, stops: list[Stop], q: Array, v: Array) -> tuple[Array, Array]:
        """The state with joints exactly at their limits: a little beyond them, their return would not be seen."""
        if not self.problem.loops:
            for stop in stops:
                q[stop.q] = stop.limit
            return q, v
        motion = self.problem.motion
        moved = motion.projection(q, v, {stop.v: (stop.q, stop.limit) for stop in stops})[0]
        return moved, motion.projection(moved, v)[1]

    def _at_rest(self, t: float, y: Array, slipping: set[int], halted: set[int]) -> list[int]:
        """Slots of friction at rest; those that move are noted as sliding the way they go.

        Friction is a finite force and has no impulse: a hit elsewhere, or an action of the user, may set
        joints in motion that stuck.
        """
        friction, v = self.problem.friction, self.problem.split(y)[1]
        found, still = [], LOOP_STILL if halted and self.problem.loops else STILL
        for slot in friction.slots if friction is not None else ():
            stuck = isinstance(self.stops.held.get(slot), Stick)
            if slot in slipping:
                continue
            if slot in halted or abs(v[slot]) <= still:
                found.append(slot)
            elif friction is not None:
                if stuck:
                    self.happenings.append(Happening(t, self.stops.held[slot].name, "slips"))
                friction.sliding[slot] = int(np.sign(v[slot]))
        return found

    def _press(self, resting: list[Stop], t: float, y: Array, rubbing: Sequence[int] = ()) -> Array:
        """Hold what must be pushed or sticks; the state with held joints at their places."""
        before, friction = self.stops.held, self.problem.friction
        self.stops.held, self.stops.implied, self.stops.still = {}, set(), set()
        if not resting and not rubbing:
            return y
        q, v = self.problem.split(y)
        sticks = []
        if friction is not None and rubbing:
            v[list(rubbing)] = 0.0
            for slot in rubbing:
                friction.sliding[slot] = 0
            for slot in rubbing:
                old = before.get(slot)
                sticks.append((old if isinstance(old, Stick) else friction.stick(slot, q), -1.0))
        sticks, forces = self._pressed(resting, t, y, q, v, sticks)
        for (stick, _), force in zip(sticks, forces, strict=True):
            if stick.v not in self.stops.held and friction is not None:
                friction.sliding[stick.v] = -int(np.sign(force))
        if not self.stops.held:
            return y
        if friction is not None:
            self.stops.rest_with_others(q, list(friction.slots))
        if any(v[slot] for slot in self.stops.held):  # those that `_returning` has found
            v = v + self.stops.reaction(q, v)[0]
        still = self.problem.state(q, v, self.problem.currents(y), float(y[-1]))
        return self._changed(y, *self.problem.split(self.problem.project(still)))

    def _pressed(
        self, resting: list[Stop], t: float, y: Array, q: Array, v: Array, sticks: list[tuple[Stick, float]]
    ) -> tuple[list[tuple[Stick, float]], list[float]]:
        """(joints at rest with the level of their friction, its forces on them).

        Levels that depend on loads are those of the joints as they are held: found again until they stay.
        """
        problem, friction = self.problem, self.problem.friction
        forces = [0.0] * len(sticks)
        for _ in range(MOST_LEVELS):
            tau, loads = problem.drive(t, q, v, problem.currents(y))
            change = 0.0
            if friction is not None and sticks:
                loose = tau.copy()
                for (stick, _), force in zip(sticks, forces, strict=True):
                    loose[stick.v] += 0.0 if stick.v in self.stops.held else force
                levels = friction.levels(v, friction.bearing_loads(problem, q, v, loose, loads))
                change = max(abs(levels[stick.v] - level) / (1e-300 + levels[stick.v]) for stick, level in sticks)
                if change <= SAME_LEVEL:
                    break
                sticks = [(stick, levels[stick.v]) for stick, _ in sticks]
            a = problem.settling_acceleration(q, v, tau, loads)
            at_rest = [stop.v for stop in resting] + [stick.v for stick, _ in sticks]
            if resting and is_rounding(a[at_rest], a):  # nothing presses: what comes next decides
                a = problem.coming_acceleration(t, q, v, problem.currents(y), a)
            forces = self.stops.press(resting, q, a, sticks)
            if friction is None or not friction.loaded:
                break
        return sticks, forces

    def _tell(self, t: float, before: set[Stop | Stick], hits: dict[Stop, tuple[float, float]]) -> None:
        held = set(self.stops.held.values())
        if not (held or before or hits):
            return
        sticks = [x for x in held - before if isinstance(x, Stick)]
        self.happenings += [Happening(t, stick.name, "sticks") for stick in sorted(sticks, key=lambda x: x.v)]
        for stop, (speed, impulse) in hits.items():
            end = "rests" if stop.v in self.stops.held or stop in self.stops.implied else "rebounds"
            self.happenings.append(Happening(t, stop.name, f"hit at {speed:.6g}, impulse {impulse:.6g}, {end}"))
        for stop in self.stops.all:
            if stop in held - before - hits.keys():
                self.happenings.append(Happening(t, stop.name, "rests"))
            elif stop in before - held - self.stops.implied:
                self.happenings.append(Happening(t, stop.name, "left"))

    def _note_beyond(self, stop: Stop, t: float, excess: float) -> None:
        """A joint that starts outside its range is let in; then its limit holds."""
        self._beyond.add(stop)
        self.happenings.append(Happening(t, stop.name, f"beyond it by {excess:.6g}"))
        warn(
            f"joint {stop.joint!r} is {excess:.4g} beyond its limit {stop.limit:.4g} at t = {t:.4g} s; the limit acts "
            "once the joint is back inside"
        )


def is_of_load(function: Any) -> bool:
    """Whether a watched function is one of what holds a joint: forces that jump make it jump."""
    return isinstance(getattr(function, "func", function), Pull | Overload)


__all__ = ["Switches", "is_of_load"]
