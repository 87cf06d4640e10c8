"""Actuators of a description as a controller: controls u in, joint forces out.

    force = clip(gain · clip(u) + bias_0 + bias_1 l + bias_2 l̇),   l = gear · q,   tau = gear · force

the law of MJCF's motors and of its position and velocity servos, which mechanism files and `build.actuator` share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from polybody.errors import InputError
from polybody.mechanism.couplings import transmitted_efforts
from polybody.mechanism.geared import own_coordinates, own_velocities
from polybody.model.arguments import float_array
from polybody.model.model import Model
from polybody.names import listed, nearest
from polybody.simulation.arguments import require_model

Array = np.ndarray


class Actuators:
    """Joint forces from actuator controls.

    The controls are numbers in the order of `names`, {actuator: number}, or a function of (t, q, v) that returns
    either.
    """

    def __init__(self, model: Model, controls: Any = None) -> None:
        require_model("controllers", model)
        self.model, self.records = model, model.description.actuators
        if not self.records:
            raise InputError(f"{model.name!r} has no actuators; a controller that gives joint forces needs none")
        self.names = [record.name for record in self.records]
        self._function: Callable[..., Any] | None = controls if callable(controls) else None
        self._constant: Array | None = None
        if self._function is None:
            self._constant = self._numbers(np.zeros(len(self.names)) if controls is None else controls)

    def _numbers(self, controls: Any) -> Array:
        if isinstance(controls, Mapping):
            for name in controls:
                if name not in self.names:
                    near = nearest(str(name), self.names)
                    raise InputError(f"no actuator {name!r}{near}; available: {listed(self.names)}")
            controls = [controls.get(name, 0.0) for name in self.names]
        u = float_array("controls", controls)
        if u.shape != (len(self.names),):
            raise InputError(f"controls have shape {u.shape}, expected ({len(self.names)},): {listed(self.names)}")
        return u

    def forces(self, q: Array, v: Array, u: Array) -> Array:
        """Force of each actuator, before its gear."""
        m, found = self.model.mechanism, np.zeros(len(self.records))
        for i, record in enumerate(self.records):
            joint = m.joints[m.joint_index[record.joint]]
            place = float(own_coordinates(joint.model, q[joint.q])[record.coordinate])
            speed = float(own_velocities(joint.model, v[joint.v])[record.coordinate])
            b0, b1, b2 = record.bias
            drive = record.gain * float(np.clip(u[i], *record.control))
            found[i] = np.clip(drive + b0 + record.gear * (b1 * place + b2 * speed), *record.limit)
        return found

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        u = self._constant if self._function is None else self._numbers(self._function(t, q, v))
        assert u is not None
        efforts: dict[str, Array] = {}
        m = self.model.mechanism
        for record, force in zip(self.records, self.forces(q, v, u), strict=True):
            own = efforts.setdefault(record.joint, np.zeros(m.joints[m.joint_index[record.joint]].nv))
            own[record.coordinate] += record.gear * force
        return transmitted_efforts(m, efforts)


__all__ = ["Actuators"]
