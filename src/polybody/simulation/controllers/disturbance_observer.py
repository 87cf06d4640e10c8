"""A disturbance observer by generalised momentum (De Luca): what acts on the machine beside what is known.

In the model's own coordinates p = M u̇ and, since Ṁ − 2C is skew, ṗ = Aᵀτ_a + Cᵀu̇ − g + passive + d. The residual

    r = K (p − p₀ − ∫(Aᵀτ_a + Cᵀu̇ − g + passive + r) dt)           obeys  ṙ = K (d − r)

so it is the disturbance d (generalised forces), seen through a filter with poles −K. The integral is stepped from
sample to sample with the trapezoidal rule, r implicitly. Forces that a computer holds (`Sampled` outside) are
integrated as they were issued, forces that a law inside holds as they act. With `compensate` the actuators take r
away from what the law asks for. On a free base they take away what the active joints feel of it, (A M⁻¹Aᵀ)⁺ A M⁻¹ r:
their accelerations are those without the disturbance, the base's are not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.errors import InputError
from polybody.model.arguments import as_model
from polybody.model.model import Model
from polybody.simulation.controllers.gains import gains
from polybody.simulation.controllers.own_motion import actuator_motion, fully_driven, joint_map, on_loops, own_columns
from polybody.simulation.controllers.sampling import Clock, Inner, ask

Array = np.ndarray


class Held:
    """The time integral of forces that are issued now and then and held."""

    def __init__(self, t: float, force: Array) -> None:
        self.t, self.force, self.integral = t, force, np.zeros_like(force)

    def issue(self, t: float, force: Array) -> None:
        self.integral = self.integral + (t - self.t) * self.force
        self.t, self.force = t, force

    def taken(self, t: float) -> Array:
        """The integral up to t since it was last taken."""
        self.issue(t, self.force)
        found, self.integral = self.integral, np.zeros_like(self.force)
        return found


class DisturbanceObserver:
    """A controller with a disturbance observer: `estimate` (m,) in the model's own coordinates.

    `gain` is K in 1/s, one number or one per own coordinate; the observer is updated every `period` seconds.
    """

    def __init__(
        self, model: Model, law: Any, gain: Any = 20.0, *, period: float = 1e-3, compensate: bool = True
    ) -> None:
        self.model: Model = as_model("controllers", model)
        self.inner, self.law, self.clock, self.compensate = Inner(law), law, Clock(period), bool(compensate)
        self.gain = gains("gain", gain, len(own_columns(self.model)))
        if (self.gain <= 0).any():
            raise InputError("gain must be positive: it is the speed of the observer, in 1/s")
        self.estimate = np.zeros(len(self.gain))
        self.times: list[float] = []
        self.estimates: list[Array] = []
        self._integral = self._start = self._bend = self._force = np.zeros(len(self.gain))
        self._held: Held | None = None

    def next_sample(self, t: float) -> float:
        """The next instant, its own or that of the law inside, whose forces change there."""
        return min(self.clock.next(t), self.inner.next_sample(t))

    def sample(self, t: float, q: Array, v: Array) -> None:
        """Update the estimate with the state at t."""
        q, v = on_loops(self.model, q, v)
        p = self.model.mass_matrix(q) @ v[own_columns(self.model)]
        if not self.times or t <= self.times[-1]:
            self.times, self.estimates = [], []
            self.estimate, self._integral = np.zeros(len(p)), np.zeros(len(p))
            self._start, self._held = p, None
        else:
            h = t - self.times[-1]
            pushed = h / 2 * (self._force + self._acting(t, q, v)) if self._held is None else self._held.taken(t)
            half = self._integral + pushed + h / 2 * (self._bend + self._motion(q, v) + self.estimate)
            self.estimate = self.gain * (p - self._start - half) / (1 + h / 2 * self.gain)
            self._integral = half + h / 2 * self.estimate
        self.inner.sample(t, q, v)
        self._bend = self._motion(q, v)
        if self._held is None:
            self._force = self._acting(t, q, v)
        self.times.append(t)
        self.estimates.append(self.estimate)

    def _acting(self, t: float, q: Array, v: Array) -> Array:
        """Aᵀτ_a of the forces that act at a sample instant."""
        return self._generalised(q, self._forces(t, q, v))

    def _forces(self, t: float, q: Array, v: Array) -> Array:
        """The forces for a state. An observer that looks at another's forces holds none of them."""
        inner = self.law
        tau = inner._forces(t, q, v) if isinstance(inner, DisturbanceObserver) else ask(inner, t, q, v)
        return self._compensated(q, v, tau)

    def _generalised(self, q: Array, tau: Array) -> Array:
        return joint_map(self.model, q).T @ np.where(self.model.actuation.active, tau, 0.0)

    def _motion(self, q: Array, v: Array) -> Array:
        """Cᵀu̇ − g + passive."""
        model = self.model
        bend = model.coriolis_matrix(q, v).T @ v[own_columns(model)]
        return bend - model.gravity_forces(q) + model.passive_forces(q, v)

    def measured(self, t: float, q: Array, v: Array) -> Array:
        """The forces for one measurement of a computer, which holds them until the next."""
        tau = self._compensated(q, v, ask(self.law, t, q, v))  # those inside hold theirs, too
        issued = self._generalised(on_loops(self.model, q, v)[0], tau)
        if self._held is None:
            self._held = Held(t, issued)
        else:
            self._held.issue(t, issued)
        return tau

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        return self._compensated(q, v, np.asarray(self.law(t, q, v), dtype=float))

    def _compensated(self, q: Array, v: Array, tau: Array) -> Array:
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
