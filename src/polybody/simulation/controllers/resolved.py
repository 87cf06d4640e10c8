"""Resolved motion: joint rates (Whitney) and accelerations (Luh, Walker & Paul) that move a frame as wanted.

    rate           v_r = J⁺(ẋ_d + K x̃) + (1 − J⁺J) v₀,      then a = k_v (v_r − v)
                   x̃'' + k_v x̃' + k_v K x̃ = 0 about a constant target: poles of s² + k_v s + k_v K
    acceleration   a = J⁺(ẍ_d + K_d x̃' + K_p x̃ − J̇v) + (1 − J⁺J) a₀,      x̃'' + K_d x̃' + K_p x̃ = 0

and inverse dynamics make that motion. J⁺ = Jᵀ(JJᵀ + λ²)⁻¹ with damping λ. Passive coordinates move as they do: on a
free base the active joints θ are given the rates with which the frame moves so, the base's answer included, by the
generalised Jacobian J_g of `own_motion`: θ̇_r = θ̇ + J_g⁺(ẋ_d + K x̃ − ẋ).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from polybody.model.arguments import as_model, finite
from polybody.model.model import Model
from polybody.simulation.controllers.frame_motion import FrameMotion
from polybody.simulation.controllers.gains import number
from polybody.simulation.controllers.own_motion import (
    actuator_motion,
    drift,
    fully_driven,
    joint_map,
    on_loops,
    own_columns,
    steering,
    task_forces,
)

Array = np.ndarray
Wish = Callable[[Array], Any]


class Resolving:
    """What both laws share: J⁺ and what is wished for in the model's own coordinates."""

    def __init__(
        self, model: Model, frame: str, target: Any, rows: str, damping: float, posture: Any, null_gain: float
    ) -> None:
        self.model: Model = as_model("controllers", model)
        self.motion = FrameMotion(self.model, frame, target, rows)
        self.damping, self.null_gain = number("damping", damping), number("null_gain", null_gain)
        self.posture: Wish | None = None
        self.rest: Array | None = None  # the configuration, where the posture is one
        if callable(posture):
            self.posture = posture
        elif posture is not None:
            self.rest = rest = finite("posture", self.model._q(posture, "posture"))
            self.posture = lambda q: self.model.difference(q, rest)

    def wish(self, q: Array) -> Array:
        """Where the rest of the motion would like to go, own coordinates."""
        u = own_columns(self.model)
        return np.zeros(len(u)) if self.posture is None else np.asarray(self.posture(q), dtype=float)[u]

    def inverse(self, J: Array) -> Array:
        """J⁺."""
        if self.damping == 0:
            return np.linalg.pinv(J, rcond=1e-10)
        return J.T @ np.linalg.inv(J @ J.T + self.damping**2 * np.eye(len(J)))


class ResolvedRate:
    """Resolved-rate control: the frame's error decays as exp(−K t), and joint rates follow with the (faster) gain k_v.

    `target` as in `FrameMotion`. `posture` is a configuration, or a function of q that returns a joint motion; it is
    applied to the self-motion with `null_gain`. `damping` keeps rates bounded near singular configurations.
    """

    def __init__(
        self, model: Model, frame: str, target: Any, gain: float = 5.0, rate_gain: float = 50.0, *, rows: str = "pose",
        damping: float = 0.0, posture: Any = None, null_gain: float = 1.0,
    ) -> None:  # fmt: skip
        self.resolving = Resolving(model, frame, target, rows, damping, posture, null_gain)
        self.model = self.resolving.model
        self.gain, self.rate_gain = number("gain", gain), number("rate_gain", rate_gain)

    def rate(self, t: float, q: Array, v: Array) -> Array:
        """v_r of the model's own coordinates; passive ones change as impulses of the active joints change them."""
        r = self.resolving
        J, _ = r.motion.jacobian(q, v)
        speed, _ = r.motion.goal_motion(t, q)
        wanted = speed + self.gain * r.motion.error(t, q)
        wish = r.null_gain * r.wish(q)
        if not fully_driven(r.model, q):
            A, B = actuator_motion(r.model, q)
            own, now = J @ joint_map(r.model, q) @ B, v[own_columns(r.model)]
            aside = A @ (wish - now)
            return now + B @ (aside + r.inverse(own) @ (wanted - J @ v - own @ aside))
        J = J @ joint_map(r.model, q)
        return wish + r.inverse(J) @ (wanted - J @ wish)

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        r = self.resolving
        q, v = on_loops(r.model, q, v)
        a = self.rate_gain * (self.rate(t, q, v) - v[own_columns(r.model)])
        return steering(r.model, q, v, a)


class ResolvedAcceleration:
    """Resolved-acceleration control of a frame: x̃'' + k_d x̃' + k_p x̃ = 0, with damped self-motion.

    Options as in `ResolvedRate`: a₀ = null_gain · (posture's motion − 2 v) is projected onto the self-motion.
    """

    def __init__(
        self, model: Model, frame: str, target: Any, kp: float = 100.0, kd: float = 20.0, *, rows: str = "pose",
        damping: float = 0.0, posture: Any = None, null_gain: float = 1.0,
    ) -> None:  # fmt: skip
        self.resolving = Resolving(model, frame, target, rows, damping, posture, null_gain)
        self.model = self.resolving.model
        self.kp, self.kd = number("kp", kp), number("kd", kd)

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        r = self.resolving
        q, v = on_loops(r.model, q, v)
        J, J_drift = r.motion.jacobian(q, v)
        speed, acceleration = r.motion.goal_motion(t, q)
        wanted = acceleration + self.kd * (speed - J @ v) + self.kp * r.motion.error(t, q)
        rest = r.null_gain * (r.wish(q) - 2 * v[own_columns(r.model)])
        if not fully_driven(r.model, q):
            return task_forces(r.model, q, v, J, J_drift, wanted, steering(r.model, q, v, rest))
        own = J @ joint_map(r.model, q)
        seen = J_drift + J @ drift(r.model, q, v)
        return steering(r.model, q, v, rest + r.inverse(own) @ (wanted - seen - own @ rest))


__all__ = ["ResolvedAcceleration", "ResolvedRate"]
