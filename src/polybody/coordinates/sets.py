"""Kinds of coordinates: frames' positions and orientations, joints, and any differentiable function of q.

A coordinate set answers with its influence coefficients G (..., k, nv), H (..., k, nv, nv) and D over the joints'
velocities. An orientation's "velocity" is the angular velocity, which need not be the derivative of anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from polybody.algebra.domains import FLOAT
from polybody.algebra.jets import JetDomain
from polybody.errors import InputError
from polybody.late import dataclass
from polybody.mechanism import kinematics
from polybody.mechanism.columns import velocity_names
from polybody.model.model import Model
from polybody.names import counted, nearest
from polybody.quantities.frames import find_frame

Array = np.ndarray
AXES = "xyz"


class Coordinates(Protocol):
    """What a set of coordinates can report."""

    def names(self, model: Model) -> list[str]: ...
    def coefficients(self, model: Model, q: Array, order: int) -> list[Array]: ...


def _axes(axes: str, what: str) -> list[int]:
    if not axes or any(a not in AXES for a in axes) or len(set(axes)) != len(axes):
        raise InputError(f"{what}: axes is {axes!r}, expected some of 'xyz', each once")
    return [AXES.index(a) for a in axes]


@dataclass(frozen=True)
class Position:
    """World coordinates of a frame's origin; `axes` selects components."""

    frame: str
    axes: str = "xyz"

    def names(self, model: Model) -> list[str]:
        """One name per coordinate, for this model."""
        find_frame(model.mechanism, self.frame)
        return [f"{self.frame}.{AXES[a]}" for a in _axes(self.axes, f"position of {self.frame!r}")]

    def coefficients(self, model: Model, q: Array, order: int) -> list[Array]:
        """[G], [G, H] or [G, H, D] by `order`: derivatives of the coordinates along v, first index the coordinate."""
        return _rows(model, q, self.frame, order, [3 + a for a in _axes(self.axes, self.frame)])


@dataclass(frozen=True)
class Orientation:
    """Angular velocity of a frame in world axes; `axes` selects components."""

    frame: str
    axes: str = "xyz"

    def names(self, model: Model) -> list[str]:
        """One name per coordinate, for this model."""
        find_frame(model.mechanism, self.frame)
        return [f"{self.frame}.w{AXES[a]}" for a in _axes(self.axes, f"orientation of {self.frame!r}")]

    def coefficients(self, model: Model, q: Array, order: int) -> list[Array]:
        """[G], [G, H] or [G, H, D] by `order`: derivatives of the coordinates along v, first index the coordinate."""
        return _rows(model, q, self.frame, order, _axes(self.axes, self.frame))


@dataclass(frozen=True)
class Pose:
    """Full motion of a frame, [angular; linear] in world axes."""

    frame: str

    def names(self, model: Model) -> list[str]:
        """One name per coordinate, for this model."""
        return Orientation(self.frame).names(model) + Position(self.frame).names(model)

    def coefficients(self, model: Model, q: Array, order: int) -> list[Array]:
        """[G], [G, H] or [G, H, D] by `order`: derivatives of the coordinates along v, first index the coordinate."""
        return _rows(model, q, self.frame, order, list(range(6)))


def _rows(model: Model, q: Array, frame: str, order: int, rows: list[int]) -> list[Array]:
    found = model.coefficients.influence(q, frame, order)
    parts = [x for x in (found.G, found.H, found.D) if x is not None]
    return [np.take(x, rows, axis=x.ndim - 2 - k) for k, x in enumerate(parts)]


@dataclass(frozen=True)
class Joints:
    """Velocities of joints, by name."""

    joints: tuple[str, ...]

    def __init__(self, *joints: str) -> None:
        object.__setattr__(self, "joints", joints)

    def _indices(self, model: Model) -> list[int]:
        table = model.mechanism.joint_index
        indices: list[int] = []
        for name in self.joints:
            if name not in table:
                raise InputError(f"no joint {name!r}{nearest(name, table)}; available: {', '.join(table)}")
            v = model.mechanism.joints[table[name]].v
            indices += range(v.start, v.stop)
        return indices

    def names(self, model: Model) -> list[str]:
        """One name per coordinate, for this model."""
        every = velocity_names(model.mechanism)
        return [every[k] for k in self._indices(model)]

    def coefficients(self, model: Model, q: Array, order: int) -> list[Array]:
        """[G], [G, H] or [G, H, D] by `order`: derivatives of the coordinates along v, first index the coordinate."""
        n, rows, lead = model.mechanism.nv, self._indices(model), q.shape[:-1]
        G = np.broadcast_to(np.eye(n)[rows], (*lead, len(rows), n))
        return [G, *(np.zeros((*lead, len(rows), *(n,) * (k + 1))) for k in range(1, order))]


@dataclass(frozen=True, eq=False)
class Function:
    """Any differentiable function of q as coordinates: `text(q, domain)` returns `size` scalars.

    It is written over a scalar domain: functions are those of the domain (`domain.sin(x)`), constants are
    `domain.const`. Derivatives are exact, by jets.
    """

    text: Callable[..., Any]
    size: int = 1
    label: str = "f"  # prefix of the coordinates' names

    def names(self, model: Model) -> list[str]:
        """One name per coordinate, for this model."""
        return [self.label] if self.size == 1 else [f"{self.label}_{k}" for k in range(self.size)]

    def coefficients(self, model: Model, q: Array, order: int) -> list[Array]:
        """[G], [G, H] or [G, H, D] by `order`: derivatives of the coordinates along v, first index the coordinate."""
        lead = q.shape[:-1]
        states = [self._one(model, q[index], order) for index in np.ndindex(lead)]
        return [np.array([s[k] for s in states]).reshape(*lead, *states[0][k].shape) for k in range(order)]

    def _one(self, model: Model, q: Array, order: int) -> list[Array]:
        m, n = model.mechanism, model.mechanism.nv
        found = []
        for depth in range(1, order + 1):
            values = np.zeros((self.size, *(n,) * depth))
            for index in np.ndindex((n,) * depth):
                values[(slice(None), *index)] = self._derivative(m, q, index)
            found.append(values)
        return found

    def _derivative(self, mechanism: Any, q: Array, index: tuple[int, ...]) -> Array:
        """L_l L_m … f: the innermost derivative is along the last index, each level a jet over the one before."""
        domains = [FLOAT]
        for _ in index:
            domains.append(JetDomain(domains[-1]))  # type: ignore[arg-type]

        moved = q
        for level, k in enumerate(index):  # the outermost derivative acts on the point itself, so it is lifted first
            inner, outer = domains[level], domains[level + 1]
            direction = inner.zeros(mechanism.nv)
            direction[k] = inner.const(1)
            moved = outer.lift(moved, kinematics.rate(mechanism, moved, direction, domain=inner))  # type: ignore[union-attr]
        result = np.asarray(self.text(moved, domains[-1]), dtype=object).reshape(-1)
        if len(result) != self.size:
            raise InputError(
                f"coordinates {self.label!r} gave {counted(len(result), 'number')}, expected size={self.size}"
            )
        for outer in reversed(domains[1:]):
            result = outer.rates(result)  # type: ignore[union-attr]
        return np.asarray(result, dtype=float)


@dataclass(frozen=True, eq=False)
class CoordinateSet:
    """Several kinds of coordinates, one after the other."""

    parts: tuple[Coordinates, ...]

    def names(self, model: Model) -> list[str]:
        """One name per coordinate, for this model."""
        return [name for part in self.parts for name in part.names(model)]

    def coefficients(self, model: Model, q: Array, order: int) -> list[Array]:
        """[G], [G, H] or [G, H, D] by `order`: derivatives of the coordinates along v, first index the coordinate."""
        found = [part.coefficients(model, q, order) for part in self.parts]
        axis = q.ndim - 1
        return [np.concatenate([f[k] for f in found], axis=axis) for k in range(order)]


def coordinate_set(coordinates: Any) -> CoordinateSet:
    """Coordinates as a set: one kind, or a sequence of kinds; a bare name is a joint's."""
    if isinstance(coordinates, CoordinateSet):
        return coordinates
    items: Iterable[Any] = coordinates if isinstance(coordinates, Sequence) and not isinstance(coordinates, str) else [
        coordinates
    ]
    parts = []
    for item in items:
        part = Joints(item) if isinstance(item, str) else item
        if not hasattr(part, "coefficients") or not hasattr(part, "names"):
            raise InputError(
                f"coordinates must be Position, Orientation, Pose, Joints, Function or a joint's name, got {item!r}"
            )
        parts.append(part)
    if not parts:
        raise InputError("a set of coordinates needs at least one coordinate")
    return CoordinateSet(tuple(parts))


__all__ = ["CoordinateSet", "Coordinates", "Function", "Joints", "Orientation", "Pose", "Position", "coordinate_set"]
