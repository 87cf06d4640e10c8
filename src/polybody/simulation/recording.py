"""All steps and events of a run, for who goes through it again: `Run.watcher`.

`simulate` keeps states at the times a user wants. Differentiating a run takes every step, what held the joints in it,
the plan of elimination with loops, the instants of the controller, and the states before and after every event.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.late import dataclass, field
from polybody.simulation.compiled.given import possible_holding

if TYPE_CHECKING:
    from polybody.simulation.run import Run

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Mode:
    """What is held and what slides: `numbers` of `compiled.holding`, `frozen` where something is held."""

    frozen: bool
    numbers: Array


@dataclass(frozen=True, eq=False)
class Stretch:
    """Steps from (t[k], y[k]) to (t[k + 1], y[k + 1]) in one mode; `plan` of elimination, with loops.

    `inside`: the last one ends at an event within a step of the method, by the step's interpolant.
    """

    t: Array
    y: Array
    mode: Mode
    plan: Any
    inside: bool = False


@dataclass(frozen=True, eq=False)
class Crossing:
    """An event: the state before and after it, the functions that crossed zero, what was and what is held."""

    t: float
    before: Array
    after: Array
    functions: list[Any]
    mode: Mode
    then: Mode
    plan: Any


@dataclass(frozen=True, eq=False)
class Instant:
    """The controller has sampled."""

    t: float
    y: Array


@dataclass
class Record:
    """What happened in a run, in the order of time."""

    parts: list[Stretch | Crossing | Instant] = field(default_factory=list)
    mode: Mode = field(default_factory=lambda: Mode(False, np.zeros(0)))
    start: Array = field(default_factory=lambda: np.zeros(0))

    def begun(self, run: Run, t: float, y: Array) -> None:
        self.mode, self.start = _mode(run), y

    def steps(self, run: Run, t: Array, y: Array, inside: bool) -> None:
        self.parts.append(Stretch(t.copy(), y.copy(), self.mode, _plan(run), inside))

    def event(self, run: Run, t: float, before: Array, after: Array, functions: list[Callable[..., Any]]) -> None:
        was, self.mode = self.mode, _mode(run)
        self.parts.append(Crossing(t, before.copy(), after.copy(), functions, was, self.mode, _plan(run)))

    def sampled(self, t: float, y: Array) -> None:
        self.parts.append(Instant(t, y.copy()))


def _mode(run: Run) -> Mode:
    problem = run.problem
    stops = problem.stops
    frozen = stops is not None and bool(stops.held)
    holding = replace(possible_holding(problem), frozen=frozen)
    return Mode(frozen, holding.numbers(stops, problem.friction))


def _plan(run: Run) -> Any:
    if not run.problem.loops:
        return None
    return run.problem.motion.plans.free(run.problem.split(run.last)[0])


__all__ = ["Crossing", "Instant", "Mode", "Record", "Stretch"]
