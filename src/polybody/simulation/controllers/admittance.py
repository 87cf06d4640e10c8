"""Admittance: a position-controlled frame that gives way to measured forces.

    M_d (ẍ_c − ẍ_d) + D (ẋ_c − ẋ_d) + K (x_c − x_d) = f      the frame that is followed, in discrete time
    ẍ = ẍ_c + k_d (ẋ_c − ẋ) + k_p (x_c − x)                  by resolved acceleration, fast

Force in, motion out: for machines that are stiff. The deviation x_c − x_d is a state of the controller; it is stepped
exactly (matrix exponential) from sample to sample with f held.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.errors import InputError
from polybody.interrupts import imported
from polybody.model.arguments import as_model
from polybody.model.model import Model
from polybody.simulation.controllers.frame_motion import FrameMotion
from polybody.simulation.controllers.gains import number
from polybody.simulation.controllers.impedance import Measured, measured_wrench, square
from polybody.simulation.controllers.own_motion import on_loops, slowing, task_forces
from polybody.simulation.controllers.sampling import SAME, Clock

Array = np.ndarray


class Admittance:
    """Admittance controller: a frame follows its target, displaced by the wrench on it.

    The displacement obeys an inertia, damping and stiffness. `force(t, q, v)` returns the wrench [moment; force] on the
    frame, world axes, measured every `period` seconds. kp and kd are the gains of the inner position controller.
    """

    def __init__(
        self, model: Model, frame: str, target: Any, stiffness: Any, damping: Any, inertia: Any, force: Measured, *,
        period: float = 1e-3, kp: float = 2500.0, kd: float = 100.0, rows: str = "pose", null_damping: float = 1.0,
    ) -> None:  # fmt: skip
        self.model: Model = as_model("controllers", model)
        self.motion, self.clock = FrameMotion(self.model, frame, target, rows), Clock(period)
        n = self.motion.size
        K, D = square("stiffness", stiffness, n), square("damping", damping, n)
        M = square("inertia", inertia, n, definite=True)
        self.force, self.null_damping = force, number("null_damping", null_damping)
        self.kp, self.kd = number("kp", kp), number("kd", kd)
        if not callable(force):
            raise InputError("force must be a function of (t, q, v) that returns the wrench on the frame")
        self.A = np.block([[np.zeros((n, n)), np.eye(n)], [-np.linalg.solve(M, K), -np.linalg.solve(M, D)]])
        self.B = np.concatenate([np.zeros((n, n)), np.linalg.inv(M)])
        self.step, self.push = self._held(self.clock.period)
        self.state, self.load, self.at = np.zeros(2 * n), np.zeros(n), np.inf

    def next_sample(self, t: float) -> float:
        """The next instant."""
        return self.clock.next(t)

    def sample(self, t: float, q: Array, v: Array) -> None:
        """Step the deviation to t, and measure."""
        if t <= self.at:  # another run
            self.state = np.zeros_like(self.state)
        else:
            whole = abs(t - self.at - self.clock.period) < SAME * self.clock.period
            step, push = (self.step, self.push) if whole else self._held(t - self.at)
            self.state = step @ self.state + push @ self.load
        wrench = measured_wrench(self.force, t, q, v)
        self.load, self.at = wrench[-self.motion.size :], t

    def _held(self, h: float) -> tuple[Array, Array]:
        """(state, load) → state after h seconds, with the load held."""
        imported("scipy.linalg")
        from scipy.linalg import expm

        n = self.motion.size
        whole = expm(h * np.block([[self.A, self.B], [np.zeros((n, 3 * n))]]))
        return whole[: 2 * n, : 2 * n], whole[: 2 * n, 2 * n :]

    def deviation(self, t: float) -> tuple[Array, Array, Array]:
        """(x_c − x_d, its velocity, its acceleration) at a time since the last sample."""
        n = self.motion.size
        step, push = self._held(min(max(t - self.at, 0.0), self.clock.period))
        x = step @ self.state + push @ self.load
        return x[:n], x[n:], (self.A @ x + self.B @ self.load)[n:]

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        if not np.isfinite(self.at):
            self.sample(t, q, v)
        q, v = on_loops(self.model, q, v)
        J, J_drift = self.motion.jacobian(q, v)
        speed, acceleration = self.motion.goal_motion(t, q)
        aside, rate, bend = self.deviation(t)
        gap = self.motion.error(t, q) + aside
        wanted = acceleration + bend + self.kd * (speed + rate - J @ v) + self.kp * gap
        wrench = np.zeros(6)
        wrench[-self.motion.size :] = self.load
        tau0 = slowing(self.model, q, v, self.null_damping)
        return task_forces(self.model, q, v, J, J_drift, wanted, tau0, {self.motion.name: wrench})


__all__ = ["Admittance"]
