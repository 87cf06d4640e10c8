"""Constraints between joint coordinates: any differentiable function f(q) = 0.

A relation's Jacobian is taken by jets, one for each velocity of the joints it names: J_k = df along q̇ = Γ e_k. The
coordinate of a joint that follows another is its own, k q + c; linear couplings that could not be eliminated (a second
leader, a cycle) come here as relations (`mechanism.couplings`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polybody.algebra.domains import Array, Domain
from polybody.algebra.jets import JetDomain
from polybody.constraints.constraint import Constraint
from polybody.constraints.place import Place
from polybody.description.expressions import Expression
from polybody.mechanism.geared import own_coordinates
from polybody.mechanism.mechanism import Mechanism, TreeJoint


class RelationConstraint(Constraint):
    """f(q) = 0 for an expression f in joint coordinates."""

    kind = "relation"
    labels, units = ("value",), ("",)

    def __init__(self, name: str, expression: Expression, mechanism: Mechanism) -> None:
        self.name, self.expression = name, expression
        index = mechanism.joint_index
        self.joints: Sequence[TreeJoint] = [mechanism.joints[index[joint]] for joint in expression.joints]

    def _value(self, q: Array, domain: Domain) -> Any:
        own = {joint.name: own_coordinates(joint.model, q[joint.q], domain=domain) for joint in self.joints}
        return self.expression.value(own, domain)

    def residual(self, place: Place, far: bool = False) -> Array:
        return np.array([self._value(place.q, place.domain)], dtype=place.domain.dtype)

    def _along(self, q: Array, v: Array, domain: Domain) -> Any:
        """df along v, over the domain of q and v."""
        jets = JetDomain(domain)
        moving = np.empty(len(q), dtype=object)
        for joint in self.joints:
            rate = joint.model.rate(q[joint.q], v[joint.v], domain=domain)
            moving[joint.q] = jets.lift(q[joint.q], rate)
        value = jets.array([self._value(moving, jets)])
        return jets.rates(value)[0]

    def support(self, mechanism: Mechanism) -> list[int]:
        return list(dict.fromkeys(k for joint in self.joints for k in range(joint.v.start, joint.v.stop)))

    def columns(self, place: Place) -> Array:
        domain = place.domain
        support = self.support(place.mechanism)
        J = domain.zeros(1, len(support))
        for column, k in enumerate(support):
            unit = domain.zeros(place.mechanism.nv)
            unit[k] = domain.const(1)
            J[0, column] = self._along(place.q, unit, domain)
        return J

    def velocity(self, place: Place) -> Array:
        assert place.v is not None
        return np.array([self._along(place.q, place.v, place.domain)], dtype=place.domain.dtype)


__all__ = ["RelationConstraint"]
