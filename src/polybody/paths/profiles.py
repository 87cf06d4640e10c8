"""Time laws s(t) from 0 to 1: (s, ṡ, s̈) for arrays of times, still before 0 and after T."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from polybody.errors import InputError

Array = np.ndarray
Law = Callable[[Array], tuple[Array, Array, Array]]


def cycloidal(T: float) -> Law:
    """Saha (39), corrected: s = t/T − sin(2πt/T)/2π."""

    def law(t: Array) -> tuple[Array, Array, Array]:
        x = np.clip(t / T, 0, 1)
        w = 2 * np.pi
        return x - np.sin(w * x) / w, (1 - np.cos(w * x)) / T, w * np.sin(w * x) / T**2

    return law


def quintic(T: float) -> Law:
    """10x³ − 15x⁴ + 6x⁵: speed and acceleration vanish at both ends."""

    def law(t: Array) -> tuple[Array, Array, Array]:
        x = np.clip(t / T, 0, 1)
        return (
            x**3 * (10 - 15 * x + 6 * x * x),
            30 * x * x * (1 - x) ** 2 / T,
            60 * x * (1 - x) * (1 - 2 * x) / T**2,
        )

    return law


def trapezoidal(T: float, ramp: float = 0.25) -> Law:
    """Constant acceleration for the part `ramp` of T, constant speed, constant deceleration."""
    if not 0 < ramp <= 0.5:
        raise InputError(f"ramp is {ramp!r}; wanted the part of the time that speeding up takes, above 0, at most 0.5")
    top = 1 / (1 - ramp)

    def law(t: Array) -> tuple[Array, Array, Array]:
        x = np.clip(t / T, 0, 1)
        up, down = x < ramp, x > 1 - ramp
        late = np.where(down, 1 - top * (1 - x) ** 2 / (2 * ramp), top * (x - ramp / 2))
        s = np.where(up, top * x * x / (2 * ramp), late)
        ds = top * np.where(up, x / ramp, np.where(down, (1 - x) / ramp, 1.0)) / T
        inside = (t >= 0) & (t <= T)
        dds = np.where(up, top / ramp, np.where(down, -top / ramp, 0.0)) * inside / T**2
        return s, ds, dds

    return law


__all__ = ["Law", "cycloidal", "quintic", "trapezoidal"]
