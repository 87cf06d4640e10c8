"""A joint that turns about one axis, its angle counted from elsewhere: X_t(q) = X(q + c).

A placement R that turns about the joint's own axis e by β is part of the joint's angle,

    R(e, β) R(e, q) = R(e, β + q),

one addition per state instead of a product with a matrix for every vector that crosses the joint. Any placement is
such a turn after a simpler one, R = A R(e, β): where it keeps e in a coordinate axis A has zeros and ±1 only, where it
keeps e in a coordinate plane A has one column of those.

q and v keep their meaning, and so do limits, springs and rest positions, which are stated of them. `reduction` makes
such joints; descriptions have none.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.mechanism.joints import JointModel, MapJoint
from polybody.mechanism.mechanism import TreeJoint, tidy_rotation


class TurnedJoint(JointModel):
    """A joint model of one angle at q + c. Final: nothing derives from it."""

    nq = nv = 1

    def __init__(self, model: JointModel, offset: float) -> None:
        self.model, self.offset = model, offset
        self.kind, self.constant_map = model.kind, model.constant_map
        self.rates_are_velocities = model.rates_are_velocities

    def configuration(self, q: Array, *, domain: Domain = FLOAT) -> tuple[Array, Array]:
        return self.model.configuration(q + domain.const(self.offset), domain=domain)

    def velocity_map(self, q: Array, *, domain: Domain = FLOAT) -> Array:
        return self.model.velocity_map(q, domain=domain)

    def velocity_map_rate(self, q: Array, v: Array, *, domain: Domain = FLOAT) -> Array:
        return self.model.velocity_map_rate(q, v, domain=domain)

    def rate(self, q: Array, v: Array, *, domain: Domain = FLOAT) -> Array:
        return self.model.rate(q, v, domain=domain)

    def neutral(self) -> Array:
        """Where q is zero, as without the offset."""
        return self.model.neutral()

    def random(self, rng: np.random.Generator, shape: tuple[int, ...] = ()) -> Array:
        return self.model.random(rng, shape)

    def integrate(self, q: Array, d: Array, *, domain: Domain = FLOAT) -> Array:
        return self.model.integrate(q, d, domain=domain)

    def difference(self, q0: Array, q1: Array, *, domain: Domain = FLOAT) -> Array:
        return self.model.difference(q0, q1, domain=domain)


def turned(joint: TreeJoint, axis: int) -> TreeJoint:
    """The same joint, which turns about a coordinate axis of its body, with what it can of its placement in its angle.
    """
    H, R = joint.model.constant_map, np.asarray(joint.rotation, dtype=float)
    simple = _simple(R[:, axis], R[:, (axis + 1) % 3], axis)
    if not isinstance(joint.model, MapJoint) or H is None or simple is None:
        return joint
    rest = simple.T @ R
    b, c = (axis + 1) % 3, (axis + 2) % 3
    angle = float(np.arctan2(rest[c, b], rest[b, b]))
    if abs(angle) < 4e-16:  # as `tidy_rotation` does
        return joint
    return replace(joint, rotation=simple, model=TurnedJoint(joint.model, angle / float(H[axis, 0])))


def _simple(direction: Array, near: Array, axis: int) -> Array | None:
    """A rotation with that column `axis` and as many zeros as it can have, the next column near to one given."""
    free = np.flatnonzero(direction == 0)
    if not len(free):
        return None
    b, c = (axis + 1) % 3, (axis + 2) % 3
    k = int(free[np.argmax(np.abs(near[free]))])
    beside, result = np.zeros(3), np.zeros((3, 3))
    beside[k] = 1.0 if near[k] >= 0 else -1.0
    result[:, axis], result[:, b], result[:, c] = direction, beside, np.cross(direction, beside)
    return tidy_rotation(result)


__all__ = ["TurnedJoint", "turned"]
