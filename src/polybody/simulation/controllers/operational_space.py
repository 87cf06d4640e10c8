"""Operational space (Khatib): tau = Jᵀ Λ (K_p x̃ + K_d (ẋ_d − ẋ) + ẍ_d − J̇v) + bias + null-space damping.

Λ = (J M⁻¹ Jᵀ)⁻¹. With loops the law is written in the independent coordinates (J G, M*, bias*); active joints bear it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from polybody.errors import InputError
from polybody.formulations.influence import Influence
from polybody.model.arguments import float_array
from polybody.model.model import Model
from polybody.quantities.frames import find_frame
from polybody.simulation.arguments import require_model

Array = np.ndarray


class OperationalSpace:
    """Khatib's law for a frame: its error obeys x̃'' + k_d x̃' + k_p x̃ = 0 while the rest of the motion is damped.

    `target` is the frame's wanted pose (4, 4), or with rows="position" its wanted position (3,): a constant, a function
    of time, or a path of `pb.paths`, whose motion of the frame is wanted. A path's velocity and acceleration are exact
    (G v and G a + vᵀHv); so are those of a function that returns (goal, velocity, acceleration), rows [angular; linear]
    in world axes. Of a function that returns the goal alone they are differences in time, to about 1e-7.
    """

    def __init__(
        self, model: Model, frame: str, target: Any, kp: float = 100.0, kd: float = 20.0, *, rows: str = "pose",
        null_damping: float = 1.0,
    ) -> None:  # fmt: skip
        require_model("controllers", model)
        if rows not in ("pose", "position"):
            raise InputError(f"rows is {rows!r}; wanted 'pose' or 'position'")
        find_frame(model.mechanism, frame)
        self.model, self.name, self.kp, self.kd = model, frame, float(kp), float(kd)
        self.position_only, self.null_damping = rows == "position", float(null_damping)
        fixed = None if callable(target) else float_array("target", target)
        self.target: Callable[[float], Any] = target if fixed is None else lambda t: fixed
        self.is_path, self.is_fixed = hasattr(target, "duration"), fixed is not None
        self.tells_motion = self.is_path or isinstance(self.target(0.0), tuple)
        self._check_target()

    def _check_target(self) -> None:
        wanted = (3,) if self.position_only else (4, 4)
        rates = (3,) if self.position_only else (6,)
        if self.is_path:
            shape = np.shape(self.target(0.0)[0])
            if shape != (self.model.nq,):
                raise InputError(f"target is a path through configurations of shape {shape}; wanted ({self.model.nq},)")
            return
        found = self.target(0.0) if self.tells_motion else (self.target(0.0),)
        shapes = [np.shape(x) for x in found]
        if shapes[0] != wanted:
            raise InputError(f"target has shape {shapes[0]}; wanted {wanted}")
        if self.tells_motion and shapes[1:] != [rates, rates]:
            raise InputError(f"target tells rates {shapes[1:]}; wanted velocity and acceleration, {rates} each")

    def _coefficients(self, q: Array) -> Influence:
        found = self.model.coefficients.influence(q, self.name, 2)
        assert found.H is not None
        return Influence(found.G[3:], found.H[3:]) if self.position_only else found

    def _goal(self, t: float) -> Array:
        """The wanted pose or position."""
        found = self.target(t)
        if self.is_path:
            pose = self.model.pose(found[0], self.name)
            return pose[:3, 3] if self.position_only else pose
        return np.asarray(found[0] if self.tells_motion else found, dtype=float)

    def _goal_motion(self, t: float, q: Array) -> tuple[Array, Array]:
        """Velocity and acceleration of the goal: [angular; linear], or linear alone."""
        if self.is_path:
            goal_q, v, a = self.target(t)
            found = self._coefficients(goal_q)
            return found.velocity(v), found.acceleration(v, a)
        if self.tells_motion:
            _, velocity, acceleration = self.target(t)
            return np.asarray(velocity, dtype=float), np.asarray(acceleration, dtype=float)
        if self.is_fixed:
            still = np.zeros(3 if self.position_only else 6)
            return still, still
        s = 1e-4  # seconds
        before, now, after = (self.error(at, q) for at in (t - s, t, t + s))
        return (after - before) / (2 * s), (after - 2 * now + before) / s**2

    def error(self, t: float, q: Array) -> Array:
        """From the frame to its target, world axes: [rotation vector; shift], or the shift alone."""
        from scipy.spatial.transform import Rotation

        pose, goal = self.model.pose(q, self.name), self._goal(t)
        if self.position_only:
            return goal - pose[:3, 3]
        turn = Rotation.from_matrix(goal[:3, :3] @ pose[:3, :3].T).as_rotvec()
        return np.concatenate([turn, goal[:3, 3] - pose[:3, 3]])

    def _closed(self, q: Array, v: Array) -> tuple[Array, Array, Array]:
        """(J, J̇v, v) over the model's own coordinates; with loops the independent ones."""
        found = self._coefficients(q)
        J, drift = found.G, found.acceleration(v, np.zeros(len(v)))
        if not self.model.mechanism.constrained:
            return J, drift, v
        u = list(self.model.engine.independent)
        joints = self.model.constraints.joint_influence(q, 2)
        return J @ joints.G, drift + J @ joints.acceleration(v[u], np.zeros(len(u))), v[u]

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        J, drift, w = self._closed(q, v)
        error, (speed, acceleration) = self.error(t, q), self._goal_motion(t, q)
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
