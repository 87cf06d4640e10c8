"""A spring and damper in joint space: tau = K_p log(q, q_d) + K_d (v_d − v) [+ gravity].

log is the manifold's `difference`, so that errors of quaternions are rotation vectors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.errors import InputError
from polybody.model.arguments import float_array
from polybody.model.model import Model
from polybody.simulation.arguments import require_model
from polybody.simulation.controllers.gains import gains

if TYPE_CHECKING:
    from polybody.paths.path import Path

Array = np.ndarray


class PD:
    """PD controller in joint space, towards a configuration or along a path; `gravity` adds gravity compensation."""

    def __init__(
        self, model: Model, target: Any = None, kp: Any = 100.0, kd: Any = 20.0, *, path: Path | None = None,
        gravity: bool = False,
    ) -> None:  # fmt: skip
        require_model("controllers", model)
        if (target is None) == (path is None):
            raise InputError("PD wants either a target configuration or a path")
        self.model, self.path, self.gravity = model, path, gravity
        self.kp, self.kd = gains("kp", kp, model.nv), gains("kd", kd, model.nv)
        self.target: Array | None = None
        if target is not None:
            self.target = float_array("target", target)
            if self.target.ndim == 0 or self.target.shape[-1] != model.nq:
                raise InputError(f"target has shape {self.target.shape}; expected ({model.nq},)")

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        goal, speed = (self.target, 0.0) if self.path is None else self.path(t)[:2]
        assert goal is not None, "a PD law has a target or a path"
        tau = self.kp * self.model.difference(q, goal) + self.kd * (speed - v)
        return tau + self.model.actuation.holding_forces(q) if self.gravity else tau


__all__ = ["PD"]
