"""Operational space (Khatib): tau = Jᵀ Λ (K_p x̃ + K_d (ẋ_d − ẋ) + ẍ_d − J̇v) + bias + null-space damping.

Λ = (J M⁻¹ Jᵀ)⁻¹. With loops the law is written in the independent coordinates (J G, M*, bias*); active joints bear it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.model.arguments import as_model
from polybody.model.model import Model
from polybody.simulation.controllers.frame_motion import FrameMotion

Array = np.ndarray


class OperationalSpace:
    """Operational-space control of a frame (Khatib): x̃'' + k_d x̃' + k_p x̃ = 0, with damped self-motion.

    `target` is the desired pose (4, 4) of the frame, or with rows="position" its desired position (3,): a constant, a
    function of time, or a path of `pb.paths` (see `FrameMotion`).
    """

    def __init__(
        self, model: Model, frame: str, target: Any, kp: float = 100.0, kd: float = 20.0, *, rows: str = "pose",
        null_damping: float = 1.0,
    ) -> None:  # fmt: skip
        self.model = as_model("controllers", model)
        self.motion = FrameMotion(self.model, frame, target, rows)
        self.kp, self.kd, self.null_damping = float(kp), float(kd), float(null_damping)

    def error(self, t: float, q: Array) -> Array:
        """From the frame to its target, world axes: [rotation vector; shift], or the shift alone."""
        return self.motion.error(t, q)

    def _closed(self, q: Array, v: Array) -> tuple[Array, Array, Array]:
        """(J, J̇v, v) over the model's own coordinates; with loops the independent ones."""
        J, drift = self.motion.jacobian(q, v)
        if not self.model.mechanism.constrained:
            return J, drift, v
        u = list(self.model.engine.independent)
        joints = self.model.constraints.joint_influence(q, 2)
        return J @ joints.G, drift + J @ joints.acceleration(v[u], np.zeros(len(u))), v[u]

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        J, drift, w = self._closed(q, v)
        error, (speed, acceleration) = self.error(t, q), self.motion.goal_motion(t, q)
        M = self.model.mass_matrix(q)
        inverse_JT = np.linalg.solve(M, J.T)
        inertia = np.linalg.pinv(J @ inverse_JT, rcond=1e-9, hermitian=True)
        force = inertia @ (self.kp * error + self.kd * (speed - J @ w) + acceleration - drift)
        damping = -self.null_damping * (M @ w)
        free = damping - J.T @ (inertia @ (inverse_JT.T @ damping))
        wanted = J.T @ force + free + self.model.bias_forces(q, v) - self.model.passive_forces(q, v)
        tau = np.zeros(len(v))
        tau[list(self.model.engine.independent)] = wanted
        return self.model.actuation.equivalent_actuator_forces(q, tau)


__all__ = ["OperationalSpace"]
