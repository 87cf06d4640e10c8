"""Motor currents as states: L di/dt + R i + K_e E v = voltage, joint forces Eᵀ K_t i.

Motors without inductance have no state: their current follows from voltage and speed at once. A run takes motors into
account when it is given `voltages`; otherwise their circuits are open, and only rotors and bearings act.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.errors import InputError
from polybody.model.arguments import float_array
from polybody.model.model import Model
from polybody.names import counted
from polybody.simulation.failures import ControllerError

Array = np.ndarray
NONE, NOTHING = np.zeros(0, dtype=int), np.zeros(0)  # made once: they are asked for with every run


class Circuits:
    """The motors of a model under given voltages."""

    def __init__(self, model: Model, voltages: Any) -> None:
        self.motors = model.mechanism.motors
        if voltages is not None and not len(self.motors):
            raise InputError(f"voltages are given, but {model.name!r} has no motors")
        self.closed = voltages is not None
        self.voltages = voltages
        self.inductive = np.flatnonzero(self.motors.inductance > 0) if self.closed else NONE
        self.size = len(self.inductive)
        if self.closed:
            self.back_emf, self.torques = self.motors.voltages, self.motors.torques

    def start(self, currents: Any) -> Array:
        """The currents that are states, from one number a motor; zero where none are given."""
        if currents is None:
            return np.zeros(self.size) if self.size else NOTHING
        array = float_array("currents0", currents)
        if not self.closed or array.shape != (len(self.motors),) or not np.isfinite(array).all():
            each = f"{counted(len(self.motors), 'finite number')}, one per motor"
            wanted = each if self.closed else "none without voltages"
            raise InputError(f"currents0 is {array}; expected {wanted}")
        return array[self.inductive]

    def voltage(self, t: float, q: Array, v: Array) -> Array:
        given = self.voltages(t, q.copy(), v.copy()) if callable(self.voltages) else self.voltages
        array = float_array("voltages", given)
        if array.shape != (len(self.motors),) or not np.isfinite(array).all():
            raise ControllerError(
                f"voltages gave {array} at t = {t:.9g} s; expected {counted(len(self.motors), 'finite number')}, "
                "one per motor",
                t,
            )
        return array

    def currents(self, t: float, q: Array, v: Array, i: Array) -> tuple[Array, Array]:
        """(all currents, voltage left for the inductance), one number a motor."""
        left = self.voltage(t, q, v) - self.back_emf @ v
        currents = np.zeros(len(self.motors))
        currents[self.inductive] = i
        plain = self.motors.inductance == 0
        currents[plain] = left[plain] / self.motors.resistance[plain]
        return currents, left - self.motors.resistance * currents

    def drive(self, t: float, q: Array, v: Array, i: Array) -> tuple[Array, Array]:
        """(joint forces, di/dt)."""
        currents, left = self.currents(t, q, v, i)
        return self.torques @ currents, left[self.inductive] / self.motors.inductance[self.inductive]

    def step(self, t: float, q: Array, v: Array, i: Array, h: float, part: float) -> Array:
        """The currents after h by the implicit rule that weighs the end of the step with `part` (½ or 1)."""
        if not self.size:
            return i
        k = self.inductive
        L, R = self.motors.inductance[k], self.motors.resistance[k]
        push = (self.voltage(t, q, v) - self.back_emf @ v)[k]
        return ((L - (1 - part) * h * R) * i + h * push) / (L + part * h * R)


__all__ = ["Circuits"]
