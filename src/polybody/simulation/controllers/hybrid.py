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
from polybody.model.arguments import as_model, float_array
from polybody.model.model import Model
from polybody.simulation.controllers.frame_motion import FrameMotion
from polybody.simulation.controllers.impedance import Measured
from polybody.simulation.controllers.own_motion import joint_map, on_loops, own_columns

Array = np.ndarray
NAMES = ("rx", "ry", "rz", "x", "y", "z")


class HybridForcePosition:
    """Force along some directions of a frame, position along the others.

    `contact` are the directions of force: names among "rx ry rz x y z" in world axes, or rows (k, 6). `wrench` is the
    wrench [moment; force] that the frame shall exert, six numbers or a function of time. `force(t, q, v)` measures what
    it exerts, for `kf`. `contact_damping` slows it down before it touches.
    """

    def __init__(
        self, model: Model, frame: str, target: Any, wrench: Any, contact: Any, *, kp: float = 100.0, kd: float = 20.0,
        kf: float = 0.0, force: Measured | None = None, contact_damping: float = 10.0, null_damping: float = 1.0,
    ) -> None:  # fmt: skip
        self.model: Model = as_model("controllers", model)
        self.motion = FrameMotion(self.model, frame, target)
        self.kp, self.kd, self.kf = float(kp), float(kd), float(kf)
        self.contact_damping, self.null_damping = float(contact_damping), float(null_damping)
        self.force = force
        if self.kf and force is None:
            raise InputError("kf needs the measured wrench: force(t, q, v)")
        fixed = None if callable(wrench) else float_array("wrench", wrench)
        if fixed is not None and fixed.shape != (6,):
            raise InputError(f"wrench has shape {fixed.shape}; wanted six numbers [moment; force]")
        self.wrench: Any = wrench if fixed is None else lambda t: fixed
        rows = _directions(contact)
        basis, _ = np.linalg.qr(rows.T)
        self.touching = basis @ basis.T
        self.free = np.eye(6) - self.touching

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        model, motion = self.model, self.motion
        q, v = on_loops(model, q, v)
        J, J_drift = motion.jacobian(q, v)
        G, u = joint_map(model, q), own_columns(model)
        speed, acceleration = motion.goal_motion(t, q)
        wanted = acceleration + self.kd * (speed - J @ v) + self.kp * motion.error(t, q)
        own = J @ G
        M = model.mass_matrix(q)
        inverse = np.linalg.solve(M, own.T)
        seen = J_drift + J @ (model.constraints.joint_motion(q, v[u], np.zeros(len(u)))[1])
        whole = np.linalg.pinv(own @ inverse, rcond=1e-9, hermitian=True)
        # no acceleration along the contact: else the motion's inertia would change the force there
        pull = own.T @ (whole @ (self.free @ wanted - seen))
        push = np.asarray(self.wrench(t), dtype=float)
        if self.force is not None:
            push = push + self.kf * (push - np.asarray(self.force(t, q, v), dtype=float))
        push = self.touching @ (push - self.contact_damping * (J @ v))
        damping = -self.null_damping * (M @ v[u])
        rest = damping - own.T @ (whole @ (inverse.T @ damping))
        tau = np.zeros(model.nv)
        tau[u] = pull + own.T @ push + rest + model.bias_forces(q, v) - model.passive_forces(q, v)
        if not len(model.constraints):
            return np.where(model.actuation.active, tau, 0.0)
        return model.actuation.equivalent_actuator_forces(q, tau)


def _directions(contact: Any) -> Array:
    if isinstance(contact, str):
        words = contact.split()
        if not words or any(word not in NAMES for word in words):
            raise InputError(f"contact is {contact!r}; wanted some of {' '.join(NAMES)!r}, or rows of six numbers")
        return np.eye(6)[[NAMES.index(word) for word in words]]
    rows = np.atleast_2d(float_array("contact", contact))
    if rows.shape[1] != 6 or np.linalg.matrix_rank(rows) < len(rows):
        raise InputError(f"contact has shape {rows.shape}; wanted independent rows of six numbers")
    return rows


__all__ = ["HybridForcePosition"]
