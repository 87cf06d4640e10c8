"""Actuators of a description as a controller: controls u in, joint forces out.

    force = clip(gain · clip(u) + bias_0 + bias_1 l + bias_2 l̇),   l = gear · q,   tau = gear · force

the law of MJCF's motors and of its position and velocity servos, which mechanism files and `build.actuator` share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from polybody.algebra.domains import FLOAT, Domain
from polybody.errors import InputError
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
        self.function: Callable[..., Any] | None = controls if callable(controls) else None
        self.constant: Array | None = None
        if self.function is None:
            self.constant = self._numbers(np.zeros(len(self.names)) if controls is None else controls)

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

    def controls(self, t: Any, q: Any, v: Any) -> Any:
        """What the function of (t, q, v) says, in the order of `names`."""
        assert self.function is not None
        said = self.function(t, q, v)
        return [said.get(name, 0.0) for name in self.names] if isinstance(said, dict) else said

    def forces(self, q: Array, v: Array, u: Array, *, domain: Domain = FLOAT) -> Array:
        """Force of each actuator, before its gear."""
        m, found = self.model.mechanism, domain.zeros(len(self.records))
        for i, record in enumerate(self.records):
            joint = m.joints[m.joint_index[record.joint]]
            place = own_coordinates(joint.model, q[joint.q], domain=domain)[record.coordinate]
            speed = own_velocities(joint.model, v[joint.v], domain=domain)[record.coordinate]
            gain, gear, *bias = (domain.const(float(x)) for x in (record.gain, record.gear, *record.bias))
            drive = _within(u[i], record.control, domain) * gain
            found[i] = _within(drive + bias[0] + (place * bias[1] + speed * bias[2]) * gear, record.limit, domain)
        return found

    def efforts(self, q: Array, v: Array, u: Array, *, domain: Domain = FLOAT) -> Array:
        """tau (nv,); what acts on a follower acts on its leader."""
        m = self.model.mechanism
        tau = domain.zeros(m.nv)
        for record, force in zip(self.records, self.forces(q, v, u, domain=domain), strict=True):
            joint = m.joints[m.joint_index[record.joint]]
            own = domain.zeros(joint.nv)
            own[record.coordinate] = force * domain.const(float(record.gear))
            tau[joint.v] = tau[joint.v] + own_velocities(joint.model, own, domain=domain)
        return tau

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        u = self.constant if self.constant is not None else self._numbers(self.function(t, q, v))  # type: ignore[misc]
        return self.efforts(q, v, u)


def _within(x: Any, bounds: Array, domain: Domain) -> Any:
    """x between two bounds, infinite ones left out."""
    low, high = (domain.const(float(bound)) for bound in bounds)
    x = x if np.isneginf(bounds[0]) else domain.where(domain.less(x, low), low, x)
    return x if np.isposinf(bounds[1]) else domain.where(domain.less(high, x), high, x)


__all__ = ["Actuators"]
