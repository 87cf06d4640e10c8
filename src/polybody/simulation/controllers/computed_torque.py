"""Computed torque: tau = ID(q, v, a_d + K_p log(q, q_d) + K_d (v_d − v)).

With loops it steers the independent coordinates, and the others follow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.model.model import Model
from polybody.simulation.arguments import require_model
from polybody.simulation.controllers.gains import gains
from polybody.simulation.controllers.own_motion import on_loops

if TYPE_CHECKING:
    from polybody.paths.path import Path

Array = np.ndarray


class ComputedTorque:
    """Computed torque along a path: inverse dynamics with error dynamics ë + K_d ė + K_p e = 0."""

    def __init__(self, model: Model, path: Path, kp: Any = 100.0, kd: Any = 20.0) -> None:
        require_model("controllers", model)
        self.model, self.path = model, path
        self.kp, self.kd = gains("kp", kp, model.nv), gains("kd", kd, model.nv)

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        goal, speed, acceleration = self.path(t)
        q, v = on_loops(self.model, q, v)
        a = acceleration + self.kp * self.model.difference(q, goal) + self.kd * (speed - v)
        u = list(self.model.engine.independent)
        if len(u) < len(v):  # the path's accelerations, with errors added, no longer agree with the loops
            v, a = self.model.constraints.joint_motion(q, v[u], a[u])
        return self.model.inverse_dynamics(q, v, a)


__all__ = ["ComputedTorque"]
