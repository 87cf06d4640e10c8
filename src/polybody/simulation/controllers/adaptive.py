"""Adaptive control (Slotine & Li 1987): the masses of the machine are learnt while it follows its path.

In the model's own coordinates u, with e = u − u_d and a reference that heads back to the path,

    u̇_r = u̇_d − Λ e,     s = u̇ − u̇_r,     F = Y(u, u̇, u̇_r, ü_r) p̂ − K s,     p̂' = −Γ Yᵀ s                  (1)

Y p is M ü_r + C(u, u̇) u̇_r + g with Christoffel's C, for which Ṁ − 2C is skew; so V = ½ sᵀM s + ½ δpᵀΓ⁻¹δp falls by
sᵀK s and s goes to zero, whatever the parameters. Forces quadratic in u̇ are known from the regressor of inverse
dynamics, and C(u, u̇) u̇_r from them by polarisation:

    c(u̇) = C(u, u̇) u̇,     C(u, u̇) u̇_r = ½ [c(u̇ + u̇_r) − c(u̇) − c(u̇_r)]                                     (2)

p̂ is stepped at sample instants; the law (1) acts at every time between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.errors import InputError
from polybody.model.arguments import as_model, float_array
from polybody.model.model import Model
from polybody.simulation.controllers.gains import gains
from polybody.simulation.controllers.own_motion import on_loops, own_columns
from polybody.simulation.controllers.sampling import Clock

if TYPE_CHECKING:
    from polybody.paths.path import Path

Array = np.ndarray


class Adaptive:
    """Adaptive controller of Slotine and Li along a path: tracks without known masses. `parameters` is p̂.

    `rate` is the adaptation gain Γ: a number, scaled by the size of each body, or one per parameter. `terms` adds
    "viscous", "armature", … of the joints to the adapted parameters (see `model.regressor`). Adaptation starts from
    `parameters`, by default the model's own.
    """

    def __init__(
        self, model: Model, path: Path, kd: Any = 20.0, slope: Any = 5.0, rate: Any = 0.5, *,
        parameters: Any = None, terms: str | Sequence[str] = (), period: float = 2e-3,
    ) -> None:  # fmt: skip
        self.model: Model = as_model("controllers", model)
        if self.model.nq != self.model.nv:
            raise InputError("adaptive control takes joints whose positions are plain numbers, no quaternions")
        self.path, self.clock, self.terms = path, Clock(period), terms
        self._own = own_columns(self.model)
        self.kd, self.slope = gains("kd", kd, len(self._own)), gains("slope", slope, len(self._own))
        count = len(self.model.regressor.columns(terms))
        start = np.zeros(count)
        start[: 10 * len(self.model.body_names)] = self.model.regressor.parameters()
        self.start = start if parameters is None else float_array("parameters", parameters)
        if self.start.shape != (count,):
            raise InputError(f"parameters has shape {self.start.shape}; expected ({count},)")
        self.rate = self._rates(rate, start)
        self.parameters = self.start.copy()
        self.times: list[float] = []
        self.history: list[Array] = []

    def _rates(self, rate: Any, start: Array) -> Array:
        given = float_array("rate", rate)
        if given.shape == (len(start),):
            return given
        if given.shape != ():
            raise InputError(f"expected one rate or {len(start)}, got shape {given.shape}")
        bodies = np.abs(start[: 10 * len(self.model.body_names)]).reshape(-1, 10)
        groups = (bodies[:, :1], bodies[:, 1:4], bodies[:, 4:])  # masses, first moments, inertias
        size = np.concatenate([np.repeat(x.max(axis=1)[:, None], x.shape[1], axis=1) for x in groups], axis=1).ravel()
        return float(given) * np.concatenate([np.maximum(size, 1e-2), np.ones(len(start) - len(size))])

    def next_sample(self, t: float) -> float:
        """The next instant of learning."""
        return self.clock.next(t)

    def sample(self, t: float, q: Array, v: Array) -> None:
        """Learn from the state at t: p̂' = −Γ Yᵀ s."""
        if not self.times or t <= self.times[-1]:
            self.times, self.history, self.parameters = [], [], self.start.copy()
        else:
            Y, s = self._regressor(t, q, v)
            self.parameters = self.parameters - (t - self.times[-1]) * self.rate * (Y.T @ s)
        self.times.append(t)
        self.history.append(self.parameters.copy())

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        q, v = on_loops(self.model, q, v)
        Y, s = self._regressor(t, q, v)
        springs = self.model.passive_forces(q, np.zeros(self.model.nv))  # what they do already
        tau = np.zeros(self.model.nv)
        tau[self._own] = Y @ self.parameters - self.kd * s - springs
        return tau

    def _regressor(self, t: float, q: Array, v: Array) -> tuple[Array, Array]:
        """(Y of (1), s)."""
        goal, speed, acceleration = self.path(t)
        own, (q, v) = self._own, on_loops(self.model, q, v)
        e, rate = (q - goal)[own], (v - speed)[own]
        reference, onward = speed[own] - self.slope * e, acceleration[own] - self.slope * rate
        u = v[own]
        none = np.zeros_like(u)
        speeds = np.array([none, u + reference, u, reference, none])
        onwards = np.array([onward, none, none, none, none])
        Y = self._at(q, speeds, onwards)
        quadratic = 0.5 * (Y[1] - Y[2] - Y[3] + Y[4])
        for k, name in enumerate(self.model.regressor.columns(self.terms)):
            if name.rpartition(".")[2] in ("viscous", "coulomb", "stribeck"):  # of the motion itself
                quadratic[:, k] = Y[2][:, k]
        return Y[0] + quadratic, u - reference

    def _at(self, q: Array, speeds: Array, onwards: Array) -> Array:
        """Regressors at q for several speeds and accelerations of the own coordinates."""
        if len(self._own) == self.model.nv:
            return self.model.regressor(q, speeds, onwards, terms=self.terms)
        v, a = self.model.constraints.joint_motion(q, speeds, onwards)
        return self.model.regressor(q, v, a, terms=self.terms)


__all__ = ["Adaptive"]
