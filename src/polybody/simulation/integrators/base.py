"""What an integrator is: a generator of accepted steps.

The driver asks for one step at a time, looks for events inside it, and throws the generator away when an event changes
the state. A step's `dense()` makes its interpolant when it is requested; it must be asked before the next step is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np

from polybody.late import dataclass
from polybody.simulation.problem import Problem

Array = np.ndarray
Interpolant = Callable[[float], Array]
LOOKS = 4  # points a step at which event functions are looked at: a crossing and its return may lie in one step


@dataclass
class Step:
    """One accepted step from (t0, y0) to (t1, y1), y1 already projected."""

    t0: float
    t1: float
    y0: Array
    y1: Array
    dense: Callable[[], Interpolant]
    rejected: int | None = 0
    off_manifold: float = 0.0
    count: int = 1  # the method's own steps that it stands for
    watched: bool = False  # compiled code has looked whether it passed a singular configuration
    looks: int = LOOKS
    left_out: float = 0.0  # tolerances: how far states inside it may be off (`pieces`)
    across: bool = False  # a singular configuration of loops lies within it (`bridge`)


@dataclass(frozen=True)
class Options:
    """What a user may choose. `dt` is for fixed steps, the rest for adaptive ones."""

    dt: float = 1e-3
    rtol: float = 1e-9
    atol: float = 1e-11
    max_step: float = np.inf
    steady_step: float | None = None  # max_step under a law that turns out not to read the time, if that is another
    #: (max_step, steady_step) where wrenches turn out not to read the time
    calm_steps: tuple[float, float | None] | None = None
    first_step: float | None = None
    times: tuple[float, ...] = ()  # where states are wanted, for methods that give nothing in between
    inside: bool = True  # states within steps are wanted: for events, or dense output
    horizon: float = 2.0  # steps within which a singular configuration of loops is crossed by one (`bridge`)


class Integrator(Protocol):
    """A method: `name`, its classical `order`, whether its steps adapt, and its steps."""

    name: str
    order: int
    adaptive: bool

    def steps(self, problem: Problem, t: float, y: Array, end: float, options: Options) -> Iterator[Step]: ...


def fixed_times(t: float, end: float, dt: float) -> Iterator[tuple[float, float]]:
    """(t0, t1) of equal steps, counted from the start so that rounding does not gather; the last one ends at `end`."""
    count = max(1, int(np.ceil((end - t) / dt * (1 - 1e-12))))
    previous = t
    for k in range(1, count + 1):
        following = end if k == count else t + k * dt
        yield previous, following
        previous = following


def hermite(problem: Problem, t0: float, t1: float, y0: Array, y1: Array) -> Interpolant:
    """The cubic through both ends with their rates."""
    h = t1 - t0
    f0, f1 = problem.rate(t0, y0), problem.rate(t1, y1)

    def value(t: float) -> Array:
        s = (t - t0) / h
        return (
            (1 + 2 * s) * (1 - s) ** 2 * y0 + s * s * (3 - 2 * s) * y1 + h * s * (1 - s) * ((1 - s) * f0 - s * f1)
        )

    return value


def finite(*arrays: Any) -> bool:
    return all(np.isfinite(a.sum()) or np.isfinite(a).all() for a in arrays)


__all__ = ["LOOKS", "Integrator", "Interpolant", "Options", "Step", "finite", "fixed_times", "hermite"]
