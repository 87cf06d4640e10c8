"""A joint that follows another: its coordinate is k q + c, with q the coordinate of its leader.

The follower moves its own body, but q and v are its leader's numbers (they share one slot). With X, H those of the
joint itself, all of one coordinate,

    X_f(q) = X(k q + c),     H_f(q) = k H(k q + c),     Ḣ_f(q, v) = k Ḣ(k q + c, k v),     q̇ = v.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.algebra.scalars import is_symbolic
from polybody.mechanism.joints import JointModel


class GearedJoint(JointModel):
    """A joint model of one coordinate at k q + c. Final: nothing derives from it."""

    rates_are_velocities = True
    nq = nv = 1

    def __init__(self, model: JointModel, factor: float, offset: float) -> None:
        self.model, self.factor, self.offset = model, factor, offset
        self.kind = model.kind
        H = model.constant_map
        if H is not None and np.asarray(H).dtype != object and not is_symbolic(factor):
            self.constant_map = np.asarray(H) * factor

    def position(self, q: Any, *, domain: Domain = FLOAT) -> Any:
        """The joint's own coordinate k q + c."""
        return q * domain.const(self.factor) + domain.const(self.offset)

    def configuration(self, q: Array, *, domain: Domain = FLOAT) -> tuple[Array, Array]:
        return self.model.configuration(self.position(q, domain=domain), domain=domain)

    def velocity_map(self, q: Array, *, domain: Domain = FLOAT) -> Array:
        return self.model.velocity_map(self.position(q, domain=domain), domain=domain) * domain.const(self.factor)

    def velocity_map_rate(self, q: Array, v: Array, *, domain: Domain = FLOAT) -> Array:
        k = domain.const(self.factor)
        return self.model.velocity_map_rate(self.position(q, domain=domain), v * k, domain=domain) * k

    def rate(self, q: Array, v: Array, *, domain: Domain = FLOAT) -> Array:
        return v

    def neutral(self) -> Array:
        """Where the leader's number is zero; the slot belongs to the leader, which says what is neutral there."""
        return np.zeros(1)

    def random(self, rng: np.random.Generator, shape: tuple[int, ...] = ()) -> Array:
        return self.model.random(rng, shape)

    def integrate(self, q: Array, d: Array, *, domain: Domain = FLOAT) -> Array:
        return q + d

    def difference(self, q0: Array, q1: Array, *, domain: Domain = FLOAT) -> Array:
        return q1 - q0


def own_model(model: JointModel) -> JointModel:
    """The joint itself, where it is a follower."""
    return model.model if isinstance(model, GearedJoint) else model


def own_coordinates(model: JointModel, q: Array, *, domain: Domain = FLOAT) -> Array:
    """The joint's own coordinates from those of its slot."""
    return model.position(q, domain=domain) if isinstance(model, GearedJoint) else q


def own_velocities(model: JointModel, v: Array, *, domain: Domain = FLOAT) -> Array:
    """The joint's own velocities from those of its slot."""
    return v * domain.const(model.factor) if isinstance(model, GearedJoint) else v


def slot_forces(model: JointModel, force: Array, *, domain: Domain = FLOAT) -> Array:
    """What a force on the joint's own velocities does on those of its slot."""
    return force * domain.const(model.factor) if isinstance(model, GearedJoint) else force


__all__ = ["GearedJoint", "own_coordinates", "own_model", "own_velocities", "slot_forces"]
