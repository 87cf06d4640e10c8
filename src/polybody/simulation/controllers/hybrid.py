"""Hybrid force and position control (Raibert & Craig, in Khatib's form): motion here, force there.

With Ω the projector on directions that move freely and Ω̄ = 1 − Ω on those in contact, in world axes,

    ẍ* = Ω(ẍ_d + K_d x̃' + K_p x̃)            motion, none along the contact
    f* = Ω̄(f_d + K_f (f_d − f) − D ẋ)        force that the frame exerts
    tau = Jᵀ(Λ(ẍ* − J̇v) + f*) + bias + null-space damping

Before it touches, f* moves the frame towards the contact. f is the measured wrench that the frame exerts; without a
measurement K_f has no part, and the force is controlled in open loop.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.errors import InputError
from polybody.model.arguments import as_model, finite, float_array
from polybody.model.model import Model
from polybody.names import counted
from polybody.simulation.controllers.frame_motion import FrameMotion
from polybody.simulation.controllers.gains import number
from polybody.simulation.controllers.impedance import Measured, measured_wrench
from polybody.simulation.controllers.own_motion import joint_map, on_loops, slowing, task_forces

Array = np.ndarray
NAMES = ("rx", "ry", "rz", "x", "y", "z")


class HybridForcePosition:
    """Hybrid control: force along some directions of a frame, position along the others.

    `contact` are the force-controlled directions: names among "rx ry rz x y z" in world axes, or rows (k, 6); with
    rows="position" the orientation is not controlled (`target` is then a point, rows are (k, 3)). `wrench` is the
    desired wrench [moment; force] exerted by the frame, six numbers or a function of time. `force(t, q, v)` measures
    the exerted wrench, for feedback with `kf`. `contact_damping` slows the frame down before contact.
    """

    def __init__(
        self, model: Model, frame: str, target: Any, wrench: Any, contact: Any, *, kp: float = 100.0, kd: float = 20.0,
        kf: float = 0.0, force: Measured | None = None, contact_damping: float = 10.0, null_damping: float = 1.0,
        rows: str = "pose",
    ) -> None:  # fmt: skip
        self.model: Model = as_model("controllers", model)
        self.motion = FrameMotion(self.model, frame, target, rows)
        self.kp, self.kd, self.kf = number("kp", kp), number("kd", kd), number("kf", kf)
        self.contact_damping = number("contact_damping", contact_damping)
        self.null_damping = number("null_damping", null_damping)
        self.force = force
        if self.kf and force is None:
            raise InputError("kf needs the measured wrench: force(t, q, v)")
        self.fixed = fixed = None if callable(wrench) else float_array("wrench", wrench)
        if fixed is not None and (fixed.shape != (6,) or not np.isfinite(fixed).all()):
            raise InputError(f"wrench is {fixed.tolist()}; expected six finite numbers [moment; force]")
        self.wrench: Any = wrench if fixed is None else lambda t: fixed
        basis, _ = np.linalg.qr(_directions(contact, self.motion.size).T)
        self.touching = basis @ basis.T
        self.free = np.eye(self.motion.size) - self.touching

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        model, motion = self.model, self.motion
        q, v = on_loops(model, q, v)
        J, J_drift = motion.jacobian(q, v)
        speed, acceleration = motion.goal_motion(t, q)
        wanted = acceleration + self.kd * (speed - J @ v) + self.kp * motion.error(t, q)
        push = np.asarray(self.wrench(t), dtype=float)
        if self.force is not None:
            push = push + self.kf * (push - measured_wrench(self.force, t, q, v))
        push = self.touching @ (push[-motion.size :] - self.contact_damping * (J @ v))
        own = J @ joint_map(model, q)
        mobility = own @ np.linalg.solve(model.mass_matrix(q), own.T)
        # No acceleration along the contact, else the motion's inertia would change the force there; the force is given
        # as what it would accelerate, which is Jᵀf where every coordinate is driven.
        tau0 = slowing(model, q, v, self.null_damping)
        return task_forces(model, q, v, J, J_drift, self.free @ wanted + mobility @ push, tau0)


def _directions(contact: Any, size: int) -> Array:
    names = NAMES[-size:]
    if isinstance(contact, str):
        words = contact.split()
        if not words or any(word not in names for word in words) or len(set(words)) < len(words):
            raise InputError(
                f"contact is {contact!r}; expected some of {' '.join(names)!r}, each once, or rows of "
                f"{counted(size, 'number')}"
            )
        return np.eye(size)[[names.index(word) for word in words]]
    rows = np.atleast_2d(finite("contact", float_array("contact", contact)))
    if rows.shape[1] != size or np.linalg.matrix_rank(rows) < len(rows):
        raise InputError(f"contact has shape {rows.shape}; expected independent rows of {counted(size, 'number')}")
    return rows


__all__ = ["HybridForcePosition"]
