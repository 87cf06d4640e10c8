"""Events: times at which a function of the state crosses zero, found inside steps by their interpolants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polybody.errors import InputError
from polybody.late import dataclass
from polybody.simulation.integrators import Interpolant, Step
from polybody.simulation.integrators.base import LOOKS
from polybody.simulation.moments import moment
from polybody.simulation.roots import crossing

Array = np.ndarray


def longest_step(spacing: float, times: Array) -> float:
    """Steps up to which watched functions of the time are looked at once per `spacing`, or once per recorded time if
    that is more. A mechanism at rest has no error that would keep steps short: dop853 stepped over whole pulses of a
    controller."""
    return LOOKS * max(spacing, float(np.diff(times).min(initial=np.inf)) if len(times) > 1 else 0.0)


@dataclass(frozen=True)
class Event:
    """Event where `function(t, q, v)` crosses zero: upwards (`direction` 1), downwards (−1) or either way (0).

    A `terminal` event ends the run. `action(t, q, v)` may return a new (q, v), from which the run continues.
    """

    name: str  # as the run lists it
    function: Callable[[float, Array, Array], float]
    direction: int = 0
    terminal: bool = False
    action: Callable[[float, Array, Array], tuple[Any, Any] | None] | None = None

    def __post_init__(self) -> None:
        if not callable(self.function) or not (self.action is None or callable(self.action)):
            raise InputError(f"event {self.name!r}: its function and its action must be functions of (t, q, v)")
        if self.direction not in (-1, 0, 1):
            raise InputError(f"event {self.name!r}: direction is {self.direction!r}; expected 1 (upwards), −1 or 0")


@dataclass(frozen=True)
class Happening:
    """What happened in a run, and when."""

    time: float
    name: str
    detail: str = ""


Function = Callable[[float, Array], float]  # of (t, y)


def first_crossing(
    step: Step, dense: Interpolant, functions: Sequence[tuple[Function, int]], fresh: bool
) -> tuple[float, list[int]] | None:
    """(time, which ones) of the first crossing in a step, if there is one.

    `fresh` steps start where something was just dealt with: there functions are zero up to rounding, and their signs
    are read a moment later.
    """
    if not functions:
        return None
    marks = np.linspace(step.t0, step.t1, step.looks + 1)
    states = [step.y0, *(dense(t) for t in marks[1:-1]), step.y1]
    if fresh:
        marks[0] += min(max(moment(step.t0, 1e-9), 1e-6 * (step.t1 - step.t0)), 0.1 * (step.t1 - step.t0))
        states[0] = dense(marks[0])
    found: list[tuple[float, int]] = []
    for which, (function, direction) in enumerate(functions):
        values = [function(t, y) for t, y in zip(marks, states, strict=True)]
        for k in range(step.looks):
            if crosses(values[k], values[k + 1], direction):
                found.append((root(function, dense, float(marks[k]), float(marks[k + 1]), values[k], step), which))
                break
    if not found:
        return None
    first = min(found)[0]
    return first, [which for time, which in found if time - first <= moment(first, 1e-12)]


def crosses(before: float, after: float, direction: int) -> bool:
    """Whether the sign changes the wanted way between two looks."""
    up = before < 0 <= after
    down = before > 0 >= after
    return (up and direction >= 0) or (down and direction <= 0)


def root(function: Function, dense: Interpolant, low: float, high: float, at_low: float, step: Step) -> float:
    """The first time, up to rounding, at which the function has reached zero (`roots`)."""

    def value(t: float) -> float:
        return at_low if t == low else function(t, step.y1 if t >= step.t1 else dense(t))

    if value(high) == 0.0:
        return high
    return crossing(value, low, high, 1e-14 + 4e-16 * abs(high))


__all__ = ["Event", "Function", "Happening", "crosses", "first_crossing"]
