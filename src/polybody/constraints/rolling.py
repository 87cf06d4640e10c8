"""Constraints on velocities: what rolls without slipping, blades, and rows a user writes, A(q) v = b(q).

A body's point c carries a wheel (radius r, axis u), a sphere, or an ellipsoid with semi-axes D along the body's axes; n
is the ground's normal. ρ leads from c to the point that touches:

    wheel, disk    ρ = −r (n − (n·u) u)/√(1 − (n·u)²)       height  n·(c − p_0) − r √(1 − (n·u)²)
    sphere         ρ = −r n                                 height  n·(c − p_0) − r
    ellipsoid      ρ = −R D² n_b/√(n_b·D² n_b), n_b = Rᵀn   height  n·(c − p_0) − √(n_b·D² n_b)
    blade          ρ = 0

The material point there does not move: e·(ċ + ω × ρ) = 0 for e along the ground (two rows; for a wheel that may slide
sideways one, along u × n; for a blade one, across it). Disks, spheres and ellipsoids stay on the ground besides: that
row has a position too, the height, whose rate is n·(ċ + ω × ρ). All other rows have no residual: they cannot be
integrated, so q is free and v is not. Multipliers are forces on the body at the point that touches; they do no work.
Only a user's rows may have a right side: J v − b takes the place of J v, J̇v − ḃ that of γ, and their multipliers do
the work λᵀb. Time in b is the coordinate of a joint whose rate is 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polybody.algebra.domains import Array, Domain
from polybody.algebra.rotations import cross
from polybody.constraints.constraint import Constraint, PairConstraint
from polybody.constraints.place import Place
from polybody.description.expressions import Expression, parse
from polybody.description.records import Rolling, VelocityRelation
from polybody.mechanism.geared import own_coordinates
from polybody.mechanism.kinds import plane_axes
from polybody.mechanism.mechanism import GROUND, BodyFrame, Mechanism, TreeJoint

#: kinds that stay on the ground by a row of their own
GROUNDED = ("disk", "sphere", "ellipsoid")


class RollingConstraint(PairConstraint):
    """One wheel, disk, sphere, ellipsoid or blade on a plane of the world."""

    def __init__(self, record: Rolling, b: BodyFrame) -> None:
        self.record, self.name, self.kind, self.b = record, record.name, record.kind, b
        self.a = BodyFrame("world", GROUND, np.eye(3), np.zeros(3))
        labels = ["along 1", "along 2"]
        if record.kind == "blade" or (record.kind == "wheel" and not record.lateral):
            labels = ["across"] if record.kind == "blade" else ["along"]
        if record.kind in GROUNDED:
            labels.append("height")
        self.labels, self.units = tuple(labels), ("m",) * len(labels)
        self.normal = np.asarray(record.normal, dtype=float)

    def _axis(self, place: Place) -> Array:
        return place.frame(self.b)[0] @ place.domain.array(self.record.axis)

    def _reach(self, place: Place) -> tuple[Array, Any]:
        """(ρ, how far c is above the ground where it touches)."""
        domain, record = place.domain, self.record
        n, r = domain.array(self.normal), domain.const(record.radius[0])
        if record.kind == "blade":
            return domain.zeros(3), domain.const(0)
        if record.kind == "sphere":
            return -(n * r), r
        if record.kind == "ellipsoid":
            R = place.frame(self.b)[0]
            square = domain.array(np.asarray(record.radius) * np.asarray(record.radius))
            inside = R.T @ n
            high = domain.sqrt(inside @ (square * inside))
            return -(R @ (square * inside)) / high, high
        u = self._axis(place)
        along = n @ u
        slope = domain.sqrt(domain.const(1) - along * along)
        return -(n - u * along) * (r / slope), r * slope

    def _rows(self, place: Place) -> Array:
        """Directions in which the point that touches does not move, world axes."""
        domain, record = place.domain, self.record
        n = domain.array(self.normal)
        if self.labels[0] in ("across", "along"):
            row = cross(n, self._axis(place)) if record.kind == "blade" else cross(self._axis(place), n)
            return (row / domain.sqrt(row @ row)).reshape(1, 3)
        rows = [domain.array(e) for e in plane_axes(self.normal)]
        return np.array([*rows, *([n] if record.kind in GROUNDED else [])], dtype=domain.dtype)

    def residual(self, place: Place, far: bool = False) -> Array:
        phi = place.domain.zeros(self.size)
        if self.record.kind in GROUNDED:
            n, (_, c) = place.domain.array(self.normal), place.frame(self.b)
            phi[-1] = n @ (c - place.domain.array(self.record.ground)) - self._reach(place)[1]
        return phi

    def columns(self, place: Place) -> Array:
        J, (rho, _) = place.relative_jacobian(self.a, self.b), self._reach(place)
        moved = np.array(
            [J[3:, k] + cross(J[:3, k], rho) for k in range(J.shape[1])], dtype=place.domain.dtype
        ).reshape(J.shape[1], 3).T  # fmt: skip
        return self._rows(place) @ moved

    def velocity(self, place: Place) -> Array:
        V = place.relative_twist(self.a, self.b)
        return self._rows(place) @ (V[3:] + cross(V[:3], self._reach(place)[0]))

    def wrench_map(self, place: Place) -> Array:
        rho, rows = self._reach(place)[0], self._rows(place)
        columns = [np.concatenate([cross(rho, row), row]) for row in rows]
        return np.array(columns, dtype=place.domain.dtype).T


class VelocityRelationConstraint(Constraint):
    """Σ A_k(q) v_k = b(q) over velocities of joints, A_k and b numbers or expressions in joint coordinates."""

    kind = "velocity relation"
    labels, units = ("rate",), ("",)

    def __init__(self, record: VelocityRelation, mechanism: Mechanism) -> None:
        self.name = record.name
        self.terms: list[tuple[int, float | Expression]] = []
        self.joints: dict[str, TreeJoint] = {}
        index = mechanism.joint_index
        for joint, number, text in record.terms:
            self.terms.append((mechanism.joints[index[joint]].v.start + number, coefficient(text)))
        self.right = coefficient(record.equals)
        for term in (*(x for _, x in self.terms), self.right):
            if isinstance(term, Expression):
                self.joints |= {name: mechanism.joints[index[name]] for name in term.joints}

    def _coefficients(self, q: Array, domain: Domain) -> list[Any]:
        """A_k and, last, b."""
        own = {name: own_coordinates(j.model, q[j.q], domain=domain) for name, j in self.joints.items()}
        values = (*(x for _, x in self.terms), self.right)
        return [x.value(own, domain) if isinstance(x, Expression) else domain.const(x) for x in values]

    def residual(self, place: Place, far: bool = False) -> Array:
        return place.domain.zeros(1)

    def support(self, mechanism: Mechanism) -> list[int]:
        return sorted({slot for slot, _ in self.terms})

    def columns(self, place: Place) -> Array:
        support = self.support(place.mechanism)
        J = place.domain.zeros(1, len(support))
        for (slot, _), value in zip(self.terms, self._coefficients(place.q, place.domain)[:-1], strict=True):
            J[0, support.index(slot)] = J[0, support.index(slot)] + value
        return J

    def velocity(self, place: Place) -> Array:
        assert place.v is not None
        *coefficients, b = self._coefficients(place.q, place.domain)
        total = -b
        for (slot, _), value in zip(self.terms, coefficients, strict=True):
            total = total + value * place.v[slot]
        return np.array([total], dtype=place.domain.dtype)


def coefficient(text: str) -> float | Expression:
    """A number, or an expression in joint coordinates."""
    try:
        return float(text)
    except ValueError:
        return parse(text)


def velocity_constraints(mechanism: Mechanism) -> Sequence[Constraint]:
    """Those of a mechanism, rolling first."""
    rolling = [RollingConstraint(record, mechanism.point(record.body, record.point)) for record in mechanism.rolling]
    return [*rolling, *(VelocityRelationConstraint(record, mechanism) for record in mechanism.velocity_relations)]


__all__ = ["GROUNDED", "RollingConstraint", "VelocityRelationConstraint", "velocity_constraints"]
