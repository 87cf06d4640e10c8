"""Ellipsoids of a frame: velocities, forces and accelerations that unit efforts of the actuators give; inertia.

    velocity       x = J_a s, |s| ≤ 1                       radii: singular values of J_a (Yoshikawa)
    force          J_aᵀ f = s, |s| ≤ 1                      radii: their inverses, on the same axes
    acceleration   ẍ = J_z M⁻¹(Aᵀ s − weight), |s| ≤ 1      dynamic manipulability; its centre is the fall at rest
    inertia        Λ = (J_z M⁻¹J_zᵀ)⁻¹                      radii: effective masses along the principal axes

s are rates and forces of the active coordinates, divided by their limits where the ellipsoids are scaled.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from polybody.design.task import RANK, Maps, Task, unit_direction
from polybody.late import dataclass

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Ellipsoid:
    """Radii (..., k), largest first, along the columns of `axes` (..., k, k), about `center` (..., k).

    Where there are fewer actuators than rows the ellipsoid is flat everywhere: measures are those of the `dimension`
    radii that need not vanish.
    """

    kind: str  # velocity, force, acceleration or inertia
    rows: tuple[str, ...]
    axes: Array
    radii: Array
    center: Array
    dimension: int

    @property
    def proper(self) -> Array:
        """The radii that need not vanish (of forces: that need not be infinite), (..., dimension)."""
        lack = self.radii.shape[-1] - self.dimension
        return self.radii[..., lack:] if self.kind in ("force", "inertia") else self.radii[..., : self.dimension]

    @property
    def volume(self) -> Array:
        """The product of the radii: Yoshikawa's measure w = √det(JJᵀ) of the velocity ellipsoid."""
        return np.prod(self.proper, axis=-1)

    @property
    def condition(self) -> Array:
        """Ratio of the largest to the smallest radius; infinite if the ellipsoid is flat."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.proper[..., 0] / self.proper[..., -1]

    @property
    def isotropy(self) -> Array:
        """Geometric over arithmetic mean of the radii: 1 for a sphere, 0 if the ellipsoid is flat."""
        mean = self.proper.mean(axis=-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            root = np.exp(np.mean(np.log(self.proper), axis=-1))
            return np.where(mean > 0, root / mean, 0.0)

    def reach(self, direction: Array) -> Array:
        """Extent from the centre along a direction of the rows."""
        n = unit_direction(direction, len(self.rows))
        along = np.einsum("...ki,k->...i", self.axes, n)
        with np.errstate(divide="ignore", invalid="ignore"):
            parts = np.where(along == 0, 0.0, along / self.radii)
        return 1 / np.linalg.norm(parts, axis=-1)


def velocity(task: Task, maps: Maps, rates: Array) -> Ellipsoid:
    """What rates within `rates` give."""
    return _image("velocity", task, maps, maps.actuators * rates)


def force(task: Task, maps: Maps, efforts: Array) -> Ellipsoid:
    """What forces within `efforts` bear."""
    U, s, _ = np.linalg.svd(maps.actuators / efforts)
    s = _filled(s, len(task.rows))
    with np.errstate(divide="ignore"):
        radii = np.where(s > RANK * s[..., :1], 1 / s, np.inf)
    order = np.argsort(-radii, axis=-1)
    return Ellipsoid(
        "force", tuple(task.names), np.take_along_axis(U, order[..., None, :], axis=-1),
        np.take_along_axis(radii, order, axis=-1), np.zeros(radii.shape), _dimension(task, maps),
    )  # fmt: skip


def acceleration(task: Task, q: Array, maps: Maps, efforts: Array) -> Ellipsoid:
    """What forces within `efforts` give from rest; the centre is where no forces lead."""
    M = task.inertia(q, maps)
    back = np.swapaxes(maps.A, -1, -2) * efforts
    found = _image("acceleration", task, maps, maps.J @ np.linalg.solve(M, back))
    fall = -np.einsum("...ki,...i->...k", maps.J, np.linalg.solve(M, task.weight(q, maps)[..., None])[..., 0])
    return replace(found, center=fall)


def mobility(task: Task, q: Array, maps: Maps) -> Array:
    """J_z M⁻¹J_zᵀ, (..., k, k): the acceleration that a unit force on the frame gives."""
    return maps.J @ np.linalg.solve(task.inertia(q, maps), np.swapaxes(maps.J, -1, -2))


def inertia(task: Task, q: Array, maps: Maps) -> Ellipsoid:
    """Effective masses (and inertias over length²) along principal axes; infinite where the frame cannot move."""
    values, axes = np.linalg.eigh(mobility(task, q, maps))
    top = np.maximum(values[..., -1:], 1e-300)
    with np.errstate(divide="ignore"):
        radii = np.where(values > RANK * top, 1 / np.maximum(values, 1e-300), np.inf)
    kept = min(len(task.rows), maps.Z.shape[-1])
    return Ellipsoid("inertia", tuple(task.names), axes, radii, np.zeros(radii.shape), kept)


def _image(kind: str, task: Task, maps: Maps, matrix: Array) -> Ellipsoid:
    """The image of the unit ball."""
    U, s, _ = np.linalg.svd(matrix)
    s = _filled(s, len(task.rows))
    return Ellipsoid(kind, tuple(task.names), U, s, np.zeros(s.shape), _dimension(task, maps))


def _dimension(task: Task, maps: Maps) -> int:
    """How many directions of the rows the actuators can move at once."""
    return min(len(task.rows), *maps.A.shape[-2:])


def _filled(s: Array, k: int) -> Array:
    """k singular values: zeros where there are fewer actuators than rows."""
    lack = k - s.shape[-1]
    return s if lack <= 0 else np.concatenate([s, np.zeros((*s.shape[:-1], lack))], axis=-1)


__all__ = ["Ellipsoid", "acceleration", "force", "inertia", "mobility", "velocity"]
