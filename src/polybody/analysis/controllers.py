"""Controllers: tau = controller(t, q, v). Any function will do; these are the usual ones.

    PD                 tau = K_p log(q, q_d) + K_d (v_d − v) [+ gravity]
    gravity            tau = gravity_forces(q)
    computed torque    tau = ID(q, v, a_d + K_p log(q, q_d) + K_d (v_d − v))
    operational space  tau = Jᵀ Λ (K_p x̃ + K_d (ẋ_d − ẋ) + ẍ_d − J̇v) + bias + null-space damping,  Λ = (J M⁻¹ Jᵀ)⁻¹

log is the manifold's `difference`, so that errors of quaternions are rotation vectors. With loops, gravity, ID and the
operational force are borne by active joints; computed torque steers the independent coordinates, the others follow, and
the operational law is written in them (J G, M*, bias*).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from polybody.analysis.paths.path import Path
from polybody.errors import InputError

Array = np.ndarray


def zero(model: Any) -> Callable[[float, Array, Array], Array]:
    """No torque."""
    return lambda t, q, v: np.zeros(model.nv)


class Given:
    """Torques from a table (times, tau), linear in between, or from a function of time."""

    def __init__(self, model: Any, tau: Any, times: Any = None) -> None:
        self.model = model
        if callable(tau):
            self._function: Callable[[float], Any] = tau
            return
        table = np.asarray(tau, dtype=float)
        if table.shape == (model.nv,):
            self._function = lambda t: table
            return
        grid = np.asarray(times, dtype=float)
        if grid.ndim != 1 or table.shape != (len(grid), model.nv) or (np.diff(grid) <= 0).any():
            raise InputError(
                f"tau has shape {table.shape} for times of shape {grid.shape}; wanted ({model.nv},), or "
                f"(n, {model.nv}) with n growing times"
            )
        self._function = lambda t: np.array([np.interp(t, grid, table[:, k]) for k in range(model.nv)])

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        return np.asarray(self._function(t), dtype=float)


def _gains(name: str, value: Any, nv: int) -> Array:
    array = np.asarray(value, dtype=float)
    if array.shape not in ((), (nv,)) or not np.isfinite(array).all():
        raise InputError(f"{name} has shape {array.shape}; wanted one finite number or {nv}")
    return np.broadcast_to(array, (nv,)).copy()


class PD:
    """A spring and damper in joint space towards a configuration or along a path; `gravity` adds what holds still."""

    def __init__(
        self, model: Any, target: Any = None, kp: Any = 100.0, kd: Any = 20.0, *, path: Path | None = None,
        gravity: bool = False,
    ) -> None:  # fmt: skip
        if (target is None) == (path is None):
            raise InputError("PD wants either a target configuration or a path")
        self.model, self.path, self.gravity = model, path, gravity
        self.kp, self.kd = _gains("kp", kp, model.nv), _gains("kd", kd, model.nv)
        self.target: Array | None = None
        if target is not None:
            self.target = np.asarray(target, dtype=float)
            if self.target.shape != (model.nq,):
                raise InputError(f"target has shape {self.target.shape}; wanted ({model.nq},)")

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        goal, speed = (self.target, 0.0) if self.path is None else self.path(t)[:2]
        tau = self.kp * self.model.difference(q, goal) + self.kd * (speed - v)
        return tau + self.model.holding_forces(q) if self.gravity else tau


class GravityCompensation:
    """What holds the mechanism still, with an optional damping of its motion."""

    def __init__(self, model: Any, kd: Any = 0.0) -> None:
        self.model, self.kd = model, _gains("kd", kd, model.nv)

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        return self.model.holding_forces(q) - self.kd * v


class ComputedTorque:
    """Inverse dynamics along a path: the error obeys ë + K_d ė + K_p e = 0."""

    def __init__(self, model: Any, path: Path, kp: Any = 100.0, kd: Any = 20.0) -> None:
        self.model, self.path = model, path
        self.kp, self.kd = _gains("kp", kp, model.nv), _gains("kd", kd, model.nv)

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        goal, speed, acceleration = self.path(t)
        a = acceleration + self.kp * self.model.difference(q, goal) + self.kd * (speed - v)
        u = list(self.model.independent_columns)
        if len(u) < len(v):  # the path's accelerations, with errors added, no longer agree with the loops
            v, a = self.model.follow(q, v[u], a[u])
        return self.model.inverse_dynamics(q, v, a)


class OperationalSpace:
    """Khatib's law for a frame: its error obeys x̃'' + k_d x̃' + k_p x̃ = 0 while the rest of the motion is damped.

    `target(t)` (or a constant) is the frame's wanted pose (4, 4), or with rows="position" its wanted position (3,).
    """

    def __init__(
        self, model: Any, frame: str, target: Any, kp: float = 100.0, kd: float = 20.0, *, rows: str = "pose",
        null_damping: float = 1.0,
    ) -> None:  # fmt: skip
        if rows not in ("pose", "position"):
            raise InputError(f"rows is {rows!r}; wanted 'pose' or 'position'")
        model.frame(frame)
        self.model, self.name, self.kp, self.kd = model, frame, float(kp), float(kd)
        self.position_only, self.null_damping = rows == "position", float(null_damping)
        fixed = None if callable(target) else np.asarray(target, dtype=float)
        self.target: Callable[[float], Any] = target if fixed is None else lambda t: fixed
        shape = np.shape(self.target(0.0))
        wanted = (3,) if self.position_only else (4, 4)
        if shape != wanted:
            raise InputError(f"target has shape {shape}; wanted {wanted}")

    def error(self, t: float, q: Array) -> Array:
        """From the frame to its target, world axes: [rotation vector; shift], or the shift alone."""
        from scipy.spatial.transform import Rotation

        pose, goal = self.model.pose(q, self.name), np.asarray(self.target(t), dtype=float)
        if self.position_only:
            return goal - pose[:3, 3]
        turn = Rotation.from_matrix(goal[:3, :3] @ pose[:3, :3].T).as_rotvec()
        return np.concatenate([turn, goal[:3, 3] - pose[:3, 3]])

    def _jacobian(self, q: Array) -> Array:
        J = self.model.jacobian(q, self.name)
        return J[3:] if self.position_only else J

    def _closed(self, q: Array, v: Array) -> tuple[Array, Array, Array]:
        """(J, J̇v, v) over the model's own coordinates; with loops the independent ones."""
        h = 1e-6  # seconds: differences of the Jacobian along the motion
        J = self._jacobian(q)
        drift = (self._jacobian(self.model.integrate(q, v, h)) - self._jacobian(self.model.integrate(q, v, -h))) @ v
        drift = drift / (2 * h)
        if not self.model.mechanism.constrained:
            return J, drift, v
        u = list(self.model.independent_columns)
        joints = self.model.joint_influence(q, 2)
        return J @ joints.G, drift + J @ joints.acceleration(v[u], np.zeros(len(u))), v[u]

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        s = 1e-4  # seconds: differences of the target in time
        J, drift, w = self._closed(q, v)
        error = self.error(t, q)
        before, after = self.error(t - s, q), self.error(t + s, q)
        speed, acceleration = (after - before) / (2 * s), (after - 2 * error + before) / s**2
        M = self.model.mass_matrix(q)
        inverse_JT = np.linalg.solve(M, J.T)
        inertia = np.linalg.pinv(J @ inverse_JT, rcond=1e-9, hermitian=True)
        force = inertia @ (self.kp * error + self.kd * (speed - J @ w) + acceleration - drift)
        damping = -self.null_damping * (M @ w)
        free = damping - J.T @ (inertia @ (inverse_JT.T @ damping))
        wanted = J.T @ force + free + self.model.bias_forces(q, v) - self.model.passive_forces(q, v)
        tau = np.zeros(len(v))
        tau[list(self.model.independent_columns)] = wanted
        return self.model.borne(q, tau)


__all__ = ["PD", "ComputedTorque", "Given", "GravityCompensation", "OperationalSpace", "zero"]
