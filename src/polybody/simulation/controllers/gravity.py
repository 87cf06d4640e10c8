"""Gravity compensation: tau = gravity_forces(q), with loops borne by active joints."""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.model.model import Model
from polybody.simulation.arguments import require_model
from polybody.simulation.controllers.gains import gains

Array = np.ndarray


class GravityCompensation:
    """Gravity compensation, with optional joint damping."""

    def __init__(self, model: Model, kd: Any = 0.0) -> None:
        require_model("controllers", model)
        self.model, self.kd = model, gains("kd", kd, model.nv)

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        return self.model.actuation.holding_forces(q) - self.kd * v


__all__ = ["GravityCompensation"]
