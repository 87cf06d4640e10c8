"""Impedance (Hogan): a frame that answers forces as a mass, spring and damper would.

    M_d (ẍ − ẍ_d) = K x̃ + D x̃' + f                  with the measured wrench f on the frame
    Λ (ẍ − ẍ_d)   = K x̃ + D x̃' + f                  without: the frame keeps its own inertia Λ, f acts by itself

K, D, M_d are numbers, six (three) numbers or matrices, rows [angular; linear] in world axes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from polybody.errors import InputError
from polybody.model.arguments import as_model, float_array
from polybody.model.model import Model
from polybody.names import counted
from polybody.simulation.controllers.frame_motion import FrameMotion
from polybody.simulation.controllers.gains import number
from polybody.simulation.controllers.own_motion import joint_map, on_loops, slowing, task_forces

Array = np.ndarray
Measured = Callable[[float, Array, Array], Any]


def square(name: str, value: Any, size: int, *, definite: bool = False) -> Array:
    """A size×size matrix from a number, a diagonal or itself, with no negative direction."""
    array = float_array(name, value)
    matrix = array * np.eye(size) if array.ndim == 0 else np.diag(array) if array.ndim == 1 else array
    if matrix.shape != (size, size) or not np.isfinite(matrix).all():
        raise InputError(
            f"{name} has shape {array.shape}; expected a number, {counted(size, 'number')} or {size}×{size}, finite"
        )
    least = np.linalg.eigvalsh((matrix + matrix.T) / 2)[0]
    if least < -1e-12 or (definite and least <= 0):
        kind = "positive definite" if definite else "positive semidefinite"
        raise InputError(f"{name} must be {kind}; its least eigenvalue is {least:.3g}")
    return matrix


def measured_wrench(force: Measured, t: float, q: Array, v: Array) -> Array:
    """What a force sensor shows: six finite numbers, [moment; force] on the frame."""
    wrench = np.asarray(force(t, q, v), dtype=float)
    if wrench.shape != (6,) or not np.isfinite(wrench).all():
        raise InputError(
            f"force returned {wrench.tolist()} at t = {t:g} s; expected six finite numbers [moment; force]"
        )
    return wrench


class Impedance:
    """Impedance controller: a frame responds to wrenches with a given stiffness, damping and, if measured, inertia.

    `target` as in `FrameMotion`. `force(t, q, v)` returns the external wrench [moment; force] on the frame, world axes
    at its origin; with it `inertia` M_d is the apparent inertia of the frame. Self-motion is damped with
    `null_damping`.
    """

    def __init__(
        self, model: Model, frame: str, target: Any, stiffness: Any, damping: Any, *, inertia: Any = None,
        force: Measured | None = None, rows: str = "pose", null_damping: float = 1.0,
    ) -> None:  # fmt: skip
        self.model: Model = as_model("controllers", model)
        self.motion = FrameMotion(self.model, frame, target, rows)
        size = self.motion.size
        self.K, self.D = square("stiffness", stiffness, size), square("damping", damping, size)
        self.M = None if inertia is None else square("inertia", inertia, size, definite=True)
        self.force, self.null_damping = force, number("null_damping", null_damping)
        if force is not None and not callable(force):
            raise InputError("force must be a function of (t, q, v) that returns the wrench on the frame")
        if (inertia is None) != (force is None):
            raise InputError("an inertia of choice needs the wrench on the frame: give inertia and force, or neither")

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        model, motion = self.model, self.motion
        q, v = on_loops(model, q, v)
        J, J_drift = motion.jacobian(q, v)
        speed, acceleration = motion.goal_motion(t, q)
        pull = self.K @ motion.error(t, q) + self.D @ (speed - J @ v)
        loads = None
        if self.M is None or self.force is None:
            own = J @ joint_map(model, q)
            mobility = own @ np.linalg.solve(model.mass_matrix(q), own.T)
            wanted = acceleration + mobility @ pull
        else:
            wrench = measured_wrench(self.force, t, q, v)
            loads = {motion.name: wrench}
            wanted = acceleration + np.linalg.solve(self.M, pull + wrench[-motion.size :])
        tau0 = slowing(model, q, v, self.null_damping)
        return task_forces(model, q, v, J, J_drift, wanted, tau0, loads)


__all__ = ["Impedance", "measured_wrench", "square"]
