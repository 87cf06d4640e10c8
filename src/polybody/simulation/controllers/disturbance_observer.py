"""A disturbance observer by generalised momentum (De Luca): what acts on the machine beside what is known.

In the model's own coordinates p = M u̇ and, since Ṁ − 2C is skew, ṗ = Aᵀτ_a + Cᵀu̇ − g + passive + d. The residual

    r = K (p − p₀ − ∫(Aᵀτ_a + Cᵀu̇ − g + passive + r) dt)           obeys  ṙ = K (d − r)

so it is the disturbance d (generalised forces), seen through a filter with poles −K. The integral is stepped from
sample to sample with the trapezoidal rule, r implicitly. With `compensate` the actuators take r away from what the law
asks for. On a free base they take away what the active joints feel of it, (A M⁻¹Aᵀ)⁺ A M⁻¹ r: their accelerations are
those without the disturbance, the base's are not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.errors import InputError
from polybody.model.arguments import as_model
from polybody.model.model import Model
from polybody.simulation.controllers.gains import gains
from polybody.simulation.controllers.own_motion import actuator_motion, fully_driven, joint_map, on_loops, own_columns
from polybody.simulation.controllers.sampling import Clock, ask

Array = np.ndarray


class DisturbanceObserver:
    """A controller with a disturbance observer: `estimate` (m,) in the model's own coordinates.

    `gain` is K in 1/s, one number or one per own coordinate; the observer is updated every `period` seconds.
    """

    def __init__(
        self, model: Model, law: Any, gain: Any = 20.0, *, period: float = 1e-3, compensate: bool = True
    ) -> None:
        if not callable(law):
            raise InputError(f"law is a {type(law).__name__}; expected a controller, a function of (t, q, v)")
        self.model: Model = as_model("controllers", model)
        self.law, self.clock, self.compensate = law, Clock(period), bool(compensate)
        self.gain = gains("gain", gain, len(own_columns(self.model)))
        if (self.gain <= 0).any():
            raise InputError("gain must be positive: it is the speed of the observer, in 1/s")
        self.estimate = np.zeros(len(self.gain))
        self.times: list[float] = []
        self.estimates: list[Array] = []
        self._integral = self._start = self._rate = np.zeros(len(self.gain))

    def next_sample(self, t: float) -> float:
        """The next instant."""
        return self.clock.next(t)

    def sample(self, t: float, q: Array, v: Array) -> None:
        """Update the estimate with the state at t."""
        q, v = on_loops(self.model, q, v)
        p = self.model.mass_matrix(q) @ v[own_columns(self.model)]
        if not self.times or t <= self.times[-1]:
            self.times, self.estimates = [], []
            self.estimate, self._integral = np.zeros(len(p)), np.zeros(len(p))
            self._start = p
        else:
            h = t - self.times[-1]
            rate = self._known(t, q, v)  # under the forces that have acted, with the last estimate
            half = self._integral + h / 2 * (self._rate + rate + self.estimate)
            self.estimate = self.gain * (p - self._start - half) / (1 + h / 2 * self.gain)
            self._integral = half + h / 2 * self.estimate
        self._rate = self._known(t, q, v)
        self.times.append(t)
        self.estimates.append(self.estimate)

    def _known(self, t: float, q: Array, v: Array) -> Array:
        """Aᵀτ_a + Cᵀu̇ − g + passive."""
        model = self.model
        w = v[own_columns(model)]
        force = joint_map(model, q).T @ np.where(model.actuation.active, self(t, q, v), 0.0)
        bend = model.coriolis_matrix(q, v).T @ w
        return force + bend - model.gravity_forces(q) + model.passive_forces(q, v)

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        tau = ask(self.law, t, q, v)
        if not self.compensate or not self.estimate.any():
            return tau
        model = self.model
        q, _ = on_loops(model, q, v)
        away = np.zeros(model.nv)
        if fully_driven(model, q):
            away[own_columns(model)] = self.estimate
            return tau - model.actuation.equivalent_actuator_forces(q, away)
        _, B = actuator_motion(model, q)
        away[model.actuation.active] = B.T @ self.estimate
        return tau - away


__all__ = ["DisturbanceObserver"]
