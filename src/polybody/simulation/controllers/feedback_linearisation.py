"""Feedback linearisation with outputs of one's own: y = h(q) obeys ÿ = ÿ_d + K_d (ẏ_d − ẏ) + K_p (y_d − y).

    ẏ = G v,   ÿ = G a + vᵀHv       G, H the influence coefficients of h, exact by jets

The forces come from `own_motion`, so outputs may be as many as actuators, or fewer; what they do not see are the zero
dynamics, which `null_damping` damps where actuators reach them. Underactuated machines are taken (partial feedback
linearisation). Where the decoupling matrix J M⁻¹Aᵀ loses rank the outputs cannot be steered, and an error says so.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.algebra.domains import FLOAT
from polybody.errors import InputError, PolybodyError
from polybody.model.arguments import as_model, finite, float_array
from polybody.model.model import Model
from polybody.names import counted
from polybody.simulation.controllers.gains import gains, number
from polybody.simulation.controllers.own_motion import joint_map, on_loops, slowing, task_forces

Array = np.ndarray
#: σ_min/σ_max of the decoupling matrix at which outputs are lost
LOST = 1e-8


class FeedbackLinearisation:
    """Feedback linearisation: outputs y(q) follow `target`, numbers or a function of time that returns (y, ẏ, ÿ).

    `outputs` is a `pb.Function` (or several), written over a scalar domain. kp and kd are numbers or one per output.
    """

    def __init__(
        self, model: Model, outputs: Any, target: Any, kp: Any = 100.0, kd: Any = 20.0, *, null_damping: float = 1.0
    ) -> None:
        self.model: Model = as_model("controllers", model)
        self.outputs = tuple(outputs) if isinstance(outputs, tuple | list) else (outputs,)
        if not self.outputs or not all(hasattr(f, "text") and hasattr(f, "coefficients") for f in self.outputs):
            raise InputError("outputs must be a pb.Function(text, size), or several")
        self.size = sum(int(f.size) for f in self.outputs)
        actuators = int(self.model.actuation.active.sum())
        if self.size > actuators:
            raise InputError(
                f"{counted(self.size, 'output')} for {counted(actuators, 'actuator')}: {self.size - actuators} too many"
            )
        self.kp, self.kd = gains("kp", kp, self.size), gains("kd", kd, self.size)
        self.null_damping = number("null_damping", null_damping)
        self.fixed = fixed = None if callable(target) else float_array("target", target)
        if fixed is not None:
            finite("target", fixed)
        if fixed is not None and fixed.shape != (self.size,):
            raise InputError(f"target has shape {fixed.shape}; expected ({self.size},), one number per output")
        still = np.zeros(self.size)
        self.target: Any = target if fixed is None else lambda t: (fixed, still, still)

    def values(self, q: Array) -> Array:
        """y(q)."""
        return np.concatenate([np.asarray(f.text(q, FLOAT), dtype=float).reshape(-1) for f in self.outputs])

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        model = self.model
        q, v = on_loops(model, q, v)
        parts = [f.coefficients(model, q, 2) for f in self.outputs]
        G, H = np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])
        drift = np.einsum("pmn,m,n->p", H, v, v)
        y, speed, acceleration = (np.asarray(x, dtype=float) for x in self.target(t))
        wanted = acceleration + self.kd * (speed - G @ v) + self.kp * (y - self.values(q))
        self._check(t, q, G)
        tau0 = slowing(model, q, v, self.null_damping)
        return task_forces(model, q, v, G, drift, wanted, tau0)

    def _check(self, t: float, q: Array, G: Array) -> None:
        joints = joint_map(self.model, q)
        A = joints[self.model.actuation.active]
        s = np.linalg.svd(G @ joints @ np.linalg.solve(self.model.mass_matrix(q), A.T), compute_uv=False)
        if not s[-1] > LOST * s[0]:
            raise PolybodyError(
                f"at t = {t:.6g} s the actuators cannot steer these outputs: the decoupling matrix has singular values "
                f"{np.array2string(s, precision=3)}; choose other outputs, or stay away from there"
            )


__all__ = ["FeedbackLinearisation"]
