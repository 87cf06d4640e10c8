"""Time laws s(t) from 0 to 1: (s, ṡ, s̈), still before 0 and after T.

A `Profile` is written once, over operations that arrays and expression graphs both have: `profile(t)` is evaluated on
arrays of times, `profile.text(t, numbers, domain)` gives the same as an expression, for compiled code.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from polybody.errors import InputError
from polybody.late import dataclass

Array = np.ndarray
Law = Callable[[Array], tuple[Array, Array, Array]]
ARRAYS = SimpleNamespace(sin=np.sin, cos=np.cos, where=np.where, less=np.less)


@dataclass(frozen=True, eq=False)
class Profile:
    """A time law: `shape(t, numbers, operations)`, `numbers` its duration first."""

    name: str
    numbers: Array
    shape: Callable[[Any, Any, Any], tuple[Any, Any, Any]]
    corners: tuple[float, ...] = ()  # parts of the duration at which s̈ jumps

    def __call__(self, t: Array) -> tuple[Array, Array, Array]:
        return self.shape(t, self.numbers, ARRAYS)

    def text(self, t: Any, numbers: Any, domain: Any) -> tuple[Any, Any, Any]:
        return self.shape(t, numbers, domain)


def _part(t: Any, T: Any, o: Any) -> Any:
    """t/T within 0 and 1."""
    x = t / T
    return o.where(o.less(x, 0.0), 0.0, o.where(o.less(1.0, x), 1.0, x))


def cycloidal(T: float) -> Profile:
    """Saha (39), corrected: s = t/T − sin(2πt/T)/2π."""

    def shape(t: Any, numbers: Any, o: Any) -> tuple[Any, Any, Any]:
        T, w = numbers[0], 2 * np.pi
        x = _part(t, T, o)
        sine = o.sin(x * w)
        return x - sine / w, (1.0 - o.cos(x * w)) / T, sine * w / (T * T)

    return Profile("cycloidal", np.array([T]), shape)


def quintic(T: float) -> Profile:
    """10x³ − 15x⁴ + 6x⁵: speed and acceleration vanish at both ends."""

    def shape(t: Any, numbers: Any, o: Any) -> tuple[Any, Any, Any]:
        T = numbers[0]
        x = _part(t, T, o)
        u = 1.0 - x
        return x * x * x * (10.0 - x * 15.0 + x * x * 6.0), x * x * u * u * 30.0 / T, x * u * (u - x) * 60.0 / (T * T)

    return Profile("quintic", np.array([T]), shape)


def trapezoidal(T: float, ramp: float = 0.25) -> Profile:
    """Constant acceleration for the part `ramp` of T, constant speed, constant deceleration."""
    if not 0 < ramp <= 0.5:
        raise InputError(
            f"ramp is {ramp!r}; expected the part of the time that speeding up takes, above 0, at most 0.5"
        )

    def shape(t: Any, numbers: Any, o: Any) -> tuple[Any, Any, Any]:
        T, ramp = numbers[0], numbers[1]
        top, x = 1.0 / (1.0 - ramp), _part(t, T, o)
        up, down = o.less(x, ramp), o.less(1.0 - ramp, x)
        rest = 1.0 - x
        late = o.where(down, 1.0 - rest * rest * top / (ramp * 2.0), (x - ramp / 2.0) * top)
        s = o.where(up, x * x * top / (ramp * 2.0), late)
        ds = top * o.where(up, x / ramp, o.where(down, rest / ramp, 1.0)) / T
        pull = top / ramp
        dds = o.where(up, pull, o.where(down, 0.0 - pull, 0.0)) / (T * T)
        outside = o.where(o.less(t, 0.0), 0.0, dds)
        return s, ds, o.where(o.less(T, t), 0.0, outside)

    return Profile("trapezoidal", np.array([T, ramp]), shape, (ramp,) if ramp == 0.5 else (ramp, 1.0 - ramp))


__all__ = ["Law", "Profile", "cycloidal", "quintic", "trapezoidal"]
