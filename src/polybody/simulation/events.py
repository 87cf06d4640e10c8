"""Events: times at which a function of the state crosses zero, found inside steps by their interpolants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from polybody.errors import InputError
from polybody.kernels.stepping_extrema import PARABOLAS, TOUCHED
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

    A function that crosses zero and comes back between two looks is seen by its extremum (`kernels.stepping_extrema`).
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
        looks = [(float(t), function(t, y)) for t, y in zip(marks, states, strict=True)]
        own = partial(_at, function, dense)
        since = looks[1][0] if fresh else step.t0  # before it, functions are still as near to zero as they were
        beyond = [extremum(own, *looks[k : k + 3]) for k in range(step.looks - 1)]
        looks = sorted({*looks, *((x, own(x)) for x in beyond if x is not None and x >= since)})
        for (low, before), (high, after) in pairwise(looks):
            if crosses(before, after, direction):
                found.append((root(function, dense, low, high, before, step), which))
                break
    if not found:
        return None
    first = min(found)[0]
    return first, [which for time, which in found if time - first <= moment(first, 1e-12)]


def extremum(
    function: Callable[[float], float], a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]
) -> float | None:
    """Where a function is beyond zero between three looks (time, value) of one sign: as compiled loops find it,
    by parabolas, if those say that it comes near."""
    way = 1.0 if b[1] > 0 else -1.0
    (p1, q1), (p2, q2), (p3, q3) = ((p, way * q) for p, q in (a, b, c))
    nearest, bend, tilt = min(q1, q2, q3), q1 - 2 * q2 + q3, q3 - q1
    if not (nearest > 0 and abs(tilt) < 2 * bend and (q2 - 0.5 * nearest) * 8 * bend < tilt * tilt):
        return None
    rounding = TOUCHED * (q1 + q3)
    for _ in range(PARABOLAS):
        slope = (q2 - q1) / (p2 - p1)
        bend = ((q3 - q2) / (p3 - p2) - slope) / (p3 - p1)
        if not bend > 0:
            return None
        x, slack = (p1 + p2) / 2 - slope / (2 * bend), 1e-6 * (p3 - p1)
        value = q1 + slope * (x - p1) + bend * (x - p1) * (x - p2)
        if not (p1 + slack < x < p3 - slack and abs(x - p2) > slack and value < 0.9 * q2):
            return None
        q = way * function(x)
        if q < -rounding:
            return x
        if q < q2:
            (p1, q1), (p3, q3) = ((p1, q1), (p2, q2)) if x < p2 else ((p2, q2), (p3, q3))
            p2, q2 = x, q
        elif x < p2:
            p1, q1 = x, q
        else:
            p3, q3 = x, q
    return None


def _at(function: Function, dense: Interpolant, t: float) -> float:
    return function(t, dense(t))


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
