"""What compiled loops decide at events themselves, as tables that they read, and what they say has happened.

Limits that are reached and left and joints that come to rest or begin to slide are dealt with inside the loop
(`kernels.stepping_switches`) by the rules of `simulation.switches`, to rounding. What changes nothing ends no loop
either: events of the user without action that are not terminal, and limits that are only reported. Actions of users
that are expressions act there too (`kernels.stepping_actions`); others are called in Python, and the loop goes on after
them. Whatever the loop leaves to Python is beyond it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from polybody.kernels import stepping_switches as kinds
from polybody.kernels.stepping import Loop
from polybody.kernels.stepping_switches import Switching
from polybody.late import dataclass
from polybody.model.tracing import as_traced
from polybody.simulation.compiled import event_texts
from polybody.simulation.compiled.chunk import Chunk
from polybody.simulation.compiled.field import Acting
from polybody.simulation.compiled.holding import Holding
from polybody.simulation.compiled.tracing import key_of, traced_action
from polybody.simulation.compiled.watch import Watch, label_of
from polybody.simulation.failures import NotCompiled
from polybody.simulation.friction import DryFriction, Stick
from polybody.simulation.problem import Problem
from polybody.simulation.stops import ROUNDING, Excess, Stop
from polybody.simulation.switches import EventValue

Array = np.ndarray
PATIENCE = 3  # events


@dataclass(frozen=True, eq=False)
class Switched:
    """One event that a loop has dealt with: when, after which row, what crossed zero, and what is held from then on."""

    time: float
    row: int
    crossed: frozenset[Any]  # labels
    held: dict[int, Stop | Stick]
    sliding: dict[int, int]
    levels: dict[Stop, float]
    hits: dict[Stop, tuple[float, float]]  # speed, impulse
    thrown: tuple[int, ...]  # slots of friction that a hit has set in motion
    moved: tuple[int, ...]  # indices of v that an action has taken away from where they were held
    implied: set[Stop]
    still: set[int]


class Decisions:
    """Whether loops decide at events themselves, by which tables, and what they have decided."""

    def __init__(self, problem: Problem, possible: Holding) -> None:
        self.problem = problem
        self.allowed = False  # nothing stands against it at this time of the run
        self._holds = bool(possible.slots)
        self._wanted = not self._holds  # nothing more is to be compiled for it
        self._events = 0
        self._tables: dict[str, Switching | None] = {}
        self._acts: dict[int, Any] | None = None  # by id of its event: the casadi.Function of an action
        self._acts_key = ""

    @property
    def active(self) -> bool:
        return self._wanted and self.allowed

    @property
    def holding(self) -> bool:
        """Whether loops decide now what is held."""
        return self.active and self._holds

    def now(self, acting: Acting, watch: Watch, functions: Sequence[tuple[Any, int]]) -> Switching | None:
        """What loops decide by now, if they do."""
        return self.table(acting, watch, functions) if self.active else None

    def expect(self, at_hand: Callable[[], bool]) -> None:
        """After an event that Python has dealt with: have loops deal with those to come, at once where their code is
        at hand, else after a few: who meets one or two need not wait for it."""
        if self._wanted or not self.allowed:
            return
        self._events += 1
        self._wanted = self._events >= PATIENCE or (self._events == 1 and at_hand())

    @staticmethod
    def parts(switching: Switching | None) -> list[str]:
        """The parts of a loop that only its decisions need."""
        if switching is None:
            return []
        acts = ["actions"] if switching.actions else []
        if not switching.slots:
            return [*acts, "energy"] if acts else []
        inertias = ["solve", "energy"] if switching.rolled else ["inertia"]
        return ["loose", "loose_watch", *inertias, *(["bearing"] if switching.bearing else []), *acts]

    def key(self, switching: Switching | None) -> str | None:
        """What distinguishes loops that decide from others."""
        return None if switching is None else self._acts_key

    def text(self, acting: Acting) -> Any:
        """The part `actions` of a loop."""
        return as_traced(event_texts.actions, acting, list((self._acts or {}).values()))

    def renew(self) -> None:
        """Look at the actions anew, and at tables that number them: what they read may be another."""
        self._acts, self._tables = None, {}

    def _actions(self, functions: Sequence[tuple[Any, int]]) -> list[int]:
        """Ids of events whose actions are expressions; they stay the same in a run."""
        if self._acts is not None:
            return list(self._acts)
        self._acts = {}
        for function, _ in functions:
            if isinstance(function, EventValue) and function.event.action is not None and not function.event.terminal:
                try:
                    self._acts[id(function.event)] = traced_action(function.event.action, self.problem.model)
                except NotCompiled:
                    continue  # it is called
        self._acts_key = " ".join(map(key_of, self._acts.values()))
        return list(self._acts)

    def table(self, acting: Acting, watch: Watch, functions: Sequence[tuple[Any, int]]) -> Switching | None:
        """What a loop decides by; None where functions must be called."""
        if watch.called or not (watch.count or acting.holding.slots):
            return None
        if watch.key not in self._tables:
            table = switching_of(acting, watch, self.problem, functions, self._actions(functions))
            self._tables[watch.key] = table if table.slots or table.words.any() else None
        return self._tables[watch.key]

    def read(self, loop: Loop, chunk: Chunk, watch: Watch, holding: Holding) -> Chunk:
        """The chunk with what the loop has decided."""
        count, size, stops = loop.word("switched"), loop.parts.size, self.problem.stops
        if not count:
            return chunk
        held = {} if stops is None else stops.held
        found = switched(loop.held("switch_log"), count, watch, holding, self.problem.friction, held)
        ends, rates = loop.held("wholes"), loop.held("whole_rates")
        wholes = {x.row - 2: (float(ends[k, size]), ends[k, :size].copy(), rates[k, :size].copy())
                  for k, x in enumerate(found)}  # fmt: skip
        return replace(chunk, switches=found, wholes=wholes)


def switching_of(
    acting: Acting, watch: Watch, problem: Problem, functions: Sequence[tuple[Any, int]], acts: list[int]
) -> Switching:
    """The tables of a loop; `acts` are ids of events whose actions are made there."""
    holding, friction, stops = acting.holding, problem.friction, problem.stops
    places = {v: k for k, (_, v) in enumerate(holding.slots)}
    quiet = {label_of(f) for f, _ in functions if changes_nothing(f, problem)}
    actions = {("event", x): k for k, x in enumerate(acts)}
    rubbing, limits = list(holding.rubbing), list(holding.stops)
    stop_at, rubs_at = {stop: k for k, stop in enumerate(limits)}, {v: k for k, v in enumerate(rubbing)}
    words = [*((8 * stop.q, 8 * stop.v, places[stop.v]) for stop in limits)]
    words += [(8 * holding.slots[places[v]][0], 8 * v, places[v]) for v in rubbing]
    words += [(8 * q, 8 * v) for q, v in holding.slots]  # type: ignore[list-item]
    for label in watch.labels:
        known = (kinds.ACTS, actions[label]) if label in actions else _kind(label, stop_at, rubs_at, quiet)
        words.append(known)  # type: ignore[arg-type]
    levels = {} if friction is None else friction.levels(np.zeros(problem.nv))
    numbers = [*(x for stop in limits for x in (stop.side, stop.limit)), *(levels[v] for v in rubbing)]
    voltages = 0 if acting.motors is None else len(acting.motors.motors)
    return Switching(
        first=len(acting.law.constants) + 6 * len(acting.frames) + voltages, stops=len(limits), rubs=len(rubbing),
        slots=len(holding.slots), restitution=0.0 if stops is None else stops.restitution,
        words=np.array([x for row in words for x in row], dtype=np.int64), numbers=np.array(numbers, dtype=float),
        passing=problem.nv - (problem.motion._rank if problem.loops else 0), loops=problem.loops,
        bearing=bool(holding.bearing), rolled=acting.rolled, actions=len(acts),
    )  # fmt: skip


def changes_nothing(function: Any, problem: Problem) -> bool:
    """Whether its crossings are only listed."""
    if isinstance(function, EventValue):
        return function.event.action is None and not function.event.terminal
    return isinstance(function, Excess) and problem.limits == "report"


def _kind(label: Any, stops: dict[Stop, int], rubbing: dict[int, int], quiet: set[Any]) -> tuple[int, int]:
    if label in quiet:
        return kinds.QUIET, 0
    word, what = label
    if word in ("reached", "left") and what in stops:
        return (kinds.REACHED if word == "reached" else kinds.LEFT), stops[what]
    if word in ("rests", "slips"):
        return (kinds.RESTS if word == "rests" else kinds.SLIPS), rubbing[what]
    return kinds.UNKNOWN, 0


def switched(
    log: Array, count: int, watch: Watch, holding: Holding, friction: DryFriction | None, held: dict[int, Stop | Stick]
) -> tuple[Switched, ...]:
    """What a loop has noted, in order; `held` is what was held before."""
    found, rubbing, stops = [], holding.rubbing, holding.stops
    lines = log.reshape(kinds.MOST_SWITCHES, -1)[:count]
    names = {} if friction is None else {part.v: part.joint for part in friction.parts}
    W, R, L, P = watch.count, len(rubbing), len(holding.slots), len(stops)
    ends = np.cumsum([2 + W, R, L, L, P, P, 2 * P, R, L]).tolist()
    for line, words in zip(lines.tolist(), lines.view(np.int64).tolist(), strict=True):
        way, free, place, pressed, reachable, hits = (line[a:b] for a, b in pairwise(ends[:7]))
        pushing = {stop.v: stop for stop, x in zip(stops, pressed, strict=True) if x}
        now: dict[int, Stop | Stick] = {}
        for (q, v), moves, at in zip(holding.slots, free, place, strict=True):
            if not moves:
                old = held.get(v)
                stays = isinstance(old, Stick) and old.limit == at
                now[v] = pushing[v] if v in pushing else old if stays and old is not None else Stick(names[v], q, v, at)
        held, least = now, ROUNDING * max(hits[1::2], default=0.0)
        found.append(Switched(
            line[0], words[1], frozenset([x for x, yes in zip(watch.labels, words[2 : 2 + W], strict=True) if yes]),
            now, {v: int(x) for v, x in zip(rubbing, way, strict=True)},
            {stop: 1.0 - x for stop, x in zip(stops, reachable, strict=True) if 0.0 < x < 1.0},
            {stop: (a, b) for stop, a, b in zip(stops, hits[::2], hits[1::2], strict=True) if b > least},
            tuple([v for v, yes in zip(rubbing, words[ends[6] : ends[7]], strict=True) if yes]),
            tuple([v for (_, v), yes in zip(holding.slots, words[ends[7] :], strict=True) if yes]),
            {stop for stop, x in zip(stops, reachable, strict=True) if x == 0.0 and stop.v not in now},
            {v for (_, v), moves, at in zip(holding.slots, free, place, strict=True) if moves and at},
        ))  # fmt: skip
    return tuple(found)


__all__ = ["Decisions", "Switched"]
