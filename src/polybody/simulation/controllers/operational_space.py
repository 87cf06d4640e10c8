"""Operational space (Khatib): tau = Jᵀ Λ (K_p x̃ + K_d (ẋ_d − ẋ) + ẍ_d − J̇v) + bias + null-space damping.

Λ = (J M⁻¹ Jᵀ)⁻¹. With loops, more or fewer actuators than motions and on free bases in the form of `own_motion`, of
which this is the case where every coordinate is driven.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.model.arguments import as_model
from polybody.model.model import Model
from polybody.simulation.controllers.frame_motion import FrameMotion
from polybody.simulation.controllers.gains import number
from polybody.simulation.controllers.own_motion import on_loops, slowing, task_forces

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
        self.kp, self.kd, self.null_damping = number("kp", kp), number("kd", kd), number("null_damping", null_damping)

    def error(self, t: float, q: Array) -> Array:
        """From the frame to its target, world axes: [rotation vector; shift], or the shift alone."""
        return self.motion.error(t, q)

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        q, v = on_loops(self.model, q, v)
        J, J_drift = self.motion.jacobian(q, v)
        speed, acceleration = self.motion.goal_motion(t, q)
        wanted = acceleration + self.kd * (speed - J @ v) + self.kp * self.error(t, q)
        return task_forces(self.model, q, v, J, J_drift, wanted, slowing(self.model, q, v, self.null_damping))


__all__ = ["OperationalSpace"]
