"""Rods, points on lines and points in planes. With d = p_b − p_a between a point of each body,

    rod      ‖d‖ − L = 0                            J = dᵀ/‖d‖ (J_b − J_a)
    line     e_1·d, e_2·d = 0   in a's axes         the point of b stays on a line fixed to a
    plane    n·d = 0            in a's axes         the point of b stays in a plane fixed to a
"""

from __future__ import annotations

import numpy as np

from polybody.algebra.domains import Array, Domain
from polybody.constraints.constraint import PairConstraint
from polybody.constraints.place import Place
from polybody.mechanism.kinds import plane_axes
from polybody.mechanism.mechanism import BodyFrame


class RodConstraint(PairConstraint):
    """A massless rod of fixed length between two points; its load is positive where it pushes."""

    kind = "rod"
    labels, units = ("length",), ("m",)

    def __init__(self, name: str, a: BodyFrame, b: BodyFrame, length: float) -> None:
        self.name, self.a, self.b, self.length = name, a, b, length

    def _direction(self, place: Place) -> tuple[Array, object]:
        d = place.frame(self.b)[1] - place.frame(self.a)[1]
        length = place.domain.sqrt(d @ d)
        return d / length, length

    def residual(self, place: Place, far: bool = False) -> Array:
        _, length = self._direction(place)
        return np.array([length - place.domain.const(self.length)], dtype=place.domain.dtype)

    def columns(self, place: Place) -> Array:
        # u·(ω_a × d) = 0: the point of a may be taken at b's.
        u, _ = self._direction(place)
        Ra, _ = place.frame(self.a)
        return ((Ra.T @ u) @ place.relative_jacobian(self.a, self.b)[3:]).reshape(1, -1)

    def velocity(self, place: Place) -> Array:
        u, _ = self._direction(place)
        (_, pa), (_, pb) = place.frame(self.a), place.frame(self.b)
        apart = place.twist(self.b.body, pb)[3:] - place.twist(self.a.body, pa)[3:]
        return np.array([u @ apart], dtype=place.domain.dtype)

    def wrench_map(self, place: Place) -> Array:
        u, _ = self._direction(place)
        return np.concatenate([place.domain.zeros(3), u]).reshape(6, 1)


class GuideConstraint(PairConstraint):
    """A point of b that stays on a line, or in a plane, of a."""

    def __init__(self, name: str, kind: str, a: BodyFrame, b: BodyFrame, axis: Array) -> None:
        self.name, self.kind, self.a, self.b = name, kind, a, b
        rows = plane_axes(axis) if kind == "line" else (axis,)
        self.rows = np.array(rows)
        self.labels = ("across 1", "across 2") if kind == "line" else ("off plane",)
        self.units = ("m",) * self.size

    def _rows(self, domain: Domain) -> Array:
        return domain.array(self.rows)

    def residual(self, place: Place, far: bool = False) -> Array:
        return self._rows(place.domain) @ place.relative_pose(self.a, self.b)[1]

    def columns(self, place: Place) -> Array:
        return self._rows(place.domain) @ place.relative_jacobian(self.a, self.b)[3:]

    def velocity(self, place: Place) -> Array:
        return self._rows(place.domain) @ place.relative_twist(self.a, self.b)[3:]

    def wrench_map(self, place: Place) -> Array:
        Ra, _ = place.frame(self.a)
        return np.concatenate([place.domain.zeros(3, self.size), Ra @ self._rows(place.domain).T])


__all__ = ["GuideConstraint", "RodConstraint"]
