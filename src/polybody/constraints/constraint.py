"""What every constraint can report, over any domain:

    φ(q)                residual, zero where the constraint holds
    J(q)                φ̇ = J v where it holds
    γ(q, v) = J̇ v       so that φ̈ = J a + γ

`residual(far=True)` has the same zeros and the same derivative there, but grows without bound towards the mirrored
poses (an axis turned by π) where plain residuals vanish too: assembly uses it. γ is the rate of J v along q̇ = Γ v with
v held, which a first-order jet gives exactly; closures have it in closed form (`between`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from polybody.algebra.domains import Array
from polybody.algebra.jets import JetDomain
from polybody.constraints.between import velocities_between
from polybody.constraints.place import Place
from polybody.mechanism.mechanism import BodyFrame, Mechanism


class Constraint(ABC):
    """One loop, rod, guide or relation: `labels` names its directions, `units` their residuals' units."""

    name: str
    kind: str
    labels: tuple[str, ...]
    units: tuple[str, ...]
    #: True where straight-line code takes a fixed number of steps of an iteration, which may fail: see `Constraints`
    iterates: bool = False

    @property
    def drifts_as_read(self) -> bool:
        """Whether γ is had by differentiating what `velocity` reads, and in no shorter way."""
        return True

    @property
    def size(self) -> int:
        return len(self.labels)

    @abstractmethod
    def residual(self, place: Place, far: bool = False) -> Array:
        """φ(q)."""

    @abstractmethod
    def support(self, mechanism: Mechanism) -> list[int]:
        """The velocities that J has columns for, in order; all others are zero wherever the mechanism is."""

    @abstractmethod
    def columns(self, place: Place) -> Array:
        """J(q) over its support."""

    def jacobian(self, place: Place) -> Array:
        """J(q), size×nv."""
        J = place.domain.zeros(self.size, place.mechanism.nv)
        J[:, self.support(place.mechanism)] = self.columns(place)
        return J

    @abstractmethod
    def velocity(self, place: Place) -> Array:
        """J v, without J; J v − b where a row has a right side."""

    def bias(self, place: Place, moving: Callable[[], Place]) -> Array:
        """J̇ v; `moving` gives the place over jets along v."""
        along = moving()
        assert isinstance(along.domain, JetDomain)
        return along.domain.rates(self.velocity(along))

    def uprightness(self, place: Place) -> list[Any]:
        """Numbers that are negative where φ vanishes although the joint is not assembled."""
        return []

    def mirrored(self, place: Place) -> bool:
        """True where φ vanishes although the joint is not assembled (numbers only)."""
        return any(value < 0 for value in self.uprightness(place))


class PairConstraint(Constraint):
    """A constraint between two frames, whose loads are wrenches on b, and their opposites on a."""

    a: BodyFrame
    b: BodyFrame

    def support(self, mechanism: Mechanism) -> list[int]:
        return velocities_between(mechanism, self.a.body, self.b.body)

    @abstractmethod
    def wrench_map(self, place: Place) -> Array:
        """6×size: the wrench on b at b's origin, world axes, of unit multipliers."""


__all__ = ["Constraint", "PairConstraint"]
