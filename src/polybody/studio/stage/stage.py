"""The stage: a model as something to look at, and where everything stands in any state.

Bodies come in the order of the mechanism, the ground last. A pose is seven numbers, place then quaternion (x, y, z,
w), as a rasteriser takes them; `poses` answers for whole batches by the compiled kinematics. `size` is the
mechanism's own (arrows, frames and markers are parts of it), `low` and `high` bound what the configurations shown
will fill, `ground` is the height of the floor along `up`: the lowest point of everything shown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from polybody.mechanism import kinematics
from polybody.mechanism.mechanism import GROUND
from polybody.model.model import Model
from polybody.model.tree_engine import sparing
from polybody.properties import cached_property
from polybody.studio.stage.loads import Loads
from polybody.studio.stage.meshes import Triangles, corners, hull_points, triangles
from polybody.studio.stage.shapes import PALETTE, body_shapes, extent, inertia_ellipsoid
from polybody.studio.stage.welding import distinct

Array = np.ndarray
DIRECTIONS = 50


@dataclass
class Part:
    """One thing that moves with a body; `color` is the file's where `stated`.

    Normals of fine meshes take longer than all else of a page: the triangles are made when somebody looks at them.
    """

    make: Callable[[], Triangles]
    color: tuple[int, int, int]
    stated: bool
    label: str = ""
    joint: str = ""

    @cached_property
    def mesh(self) -> Triangles:
        return self.make()


@dataclass
class Figure:
    """A body with its parts; `hull` are points that bound them."""

    name: str
    parts: list[Part] = field(default_factory=list)
    hull: Array = field(default_factory=lambda: np.zeros((0, 3)))


class Stage:
    """A model to look at. `configurations` (n, nq) are those it will be shown in: they say how large it all is."""

    def __init__(self, model: Model, configurations: Array | None = None, most_faces: int = 400_000) -> None:
        self.model = model
        shown = np.atleast_2d(model.neutral() if configurations is None else configurations)
        shown = shown[distinct(np.linspace(0, len(shown) - 1, 20).astype(int))]
        self.size = extent(model, shown[:1])[1]
        gravity = np.asarray(model.gravity)
        strong = float(np.linalg.norm(gravity))
        self.up = -gravity / strong if strong > 0 else np.array([0.0, 0.0, 1.0])
        self.figures = self._figures(most_faces)
        self._frame_places()
        self.low, self.high, self.ground = self._bounds(shown)
        self.size = max(self.size, 0.6 * float(np.max(self.high - self.low)) if len(shown) == 1 else self.size)
        self.loads = Loads(model)

    def _figures(self, most_faces: int) -> list[Figure]:
        m = self.model.mechanism
        shapes = body_shapes(self.model, self.size)
        made = [[(shape, corners(shape)) for shape in own] for own in shapes]
        total = sum(len(mesh.faces) for own in made for _, mesh in own)
        share = min(1.0, most_faces / max(total, 1))
        names = [*(body.name for body in m.bodies), "world"]
        directions = _directions()
        figures = []
        for index, (name, own) in enumerate(zip(names, made, strict=True)):
            parts = []
            for shape, mesh in own:
                color = shape.color if shape.stated or shape.kind != "mesh" else PALETTE[index % len(PALETTE)]
                most = max(200, int(share * len(mesh.faces))) if share < 1 else None
                stated = shape.stated or mesh.colors is not None
                parts.append(Part(partial(triangles, shape, most), color, stated, shape.label, shape.joint))
            hull = [hull_points(mesh, shape.pose, directions) for shape, mesh in own]
            figures.append(Figure(name, parts, np.concatenate(hull) if hull else np.zeros((0, 3))))
        return figures

    def _frame_places(self) -> None:
        """Which of the model's frames carries each body's pose, and where it sits in the body."""
        m = self.model.mechanism
        index, local = [], []
        for body in m.bodies:
            k = m.frame_index[body.links[0] if body.links else body.name]
            T = np.eye(4)
            T[:3, :3], T[:3, 3] = m.frames[k].rotation, m.frames[k].position
            index.append(k)
            local.append(np.linalg.inv(T))
        self._frame_of, self._in_frame = np.array(index, dtype=int), np.array(local).reshape(-1, 4, 4)

    def matrices(self, q: Array) -> Array:
        """Poses of the bodies, (..., bodies, 4, 4)."""
        if not len(self._frame_of):
            return np.zeros((*q.shape[:-1], 0, 4, 4))
        return self.model.poses(q)[..., self._frame_of, :, :] @ self._in_frame

    def poses(self, q: Array) -> Array:
        """The same as seven numbers each, (..., bodies, 7), float32."""
        return as_poses(self.matrices(q))

    def _bounds(self, shown: Array) -> tuple[Array, Array, float]:
        points = [self.figures[-1].hull]
        if len(shown) > 1:
            with sparing():  # a kernel of theirs would be compiled for as long as all else takes
                T = self.matrices(shown)
        else:
            T = np.tile(np.eye(4), (1, len(self.figures) - 1, 1, 1))
            for k, (R, p) in enumerate(kinematics.body_poses(self.model.mechanism, shown[0])):
                T[0, k, :3, :3], T[0, k, :3, 3] = R, p
        for k, figure in enumerate(self.figures[:-1]):
            points += list(figure.hull @ T[:, k, :3, :3].swapaxes(1, 2) + T[:, k, None, :3, 3])
        every = np.concatenate([p for p in points if len(p)] or [np.zeros((1, 3))])
        return every.min(axis=0), every.max(axis=0), float((every @ self.up).min())

    @property
    def middle(self) -> Array:
        return (self.low + self.high) / 2

    @property
    def span(self) -> float:
        return max(0.05, float(np.linalg.norm(self.high - self.low)))

    @cached_property
    def ellipsoids(self) -> list[tuple[int, Array, Array]]:
        """(body, half axes in m, pose in the body) of the solid ellipsoids with the bodies' masses and inertias."""
        found = [(body.index, inertia_ellipsoid(body)) for body in self.model.mechanism.bodies]
        return [(index, *one) for index, one in found if one is not None]

    @cached_property
    def ellipsoid_scale(self) -> float:
        """The round number, at most 1, that keeps the largest ellipsoid within a tenth of the mechanism."""
        largest = max((float(half.max()) for _, half, _ in self.ellipsoids), default=0.0)
        steps = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01)
        return next((s for s in steps if s * largest <= 0.1 * self.size), steps[-1])

    def frames(self) -> list[dict[str, Any]]:
        """Every frame: its name, its body (the last one is the ground) and its pose there, seven numbers."""
        m = self.model.mechanism
        named = {frame.name for frame in m.description.frames}
        found = []
        for frame in m.frames:
            T = np.eye(4)
            T[:3, :3], T[:3, 3] = frame.rotation, frame.position
            body = frame.body if frame.body != GROUND else len(m.bodies)
            pose = [float(x) for x in as_poses(T[None])[0]]
            found.append({"name": frame.name, "body": body, "pose": pose, "named": frame.name in named})
        return found


def as_poses(T: Array) -> Array:
    """4×4 matrices (..., 4, 4) as place and quaternion (x, y, z, w), (..., 7), float32."""
    return np.concatenate([T[..., :3, 3], quaternions(T[..., :3, :3])], axis=-1).astype(np.float32)


def quaternions(R: Array) -> Array:
    """Rotations (..., 3, 3) as quaternions (..., 4): the row of 4 q qᵀ with the largest diagonal."""
    a, b, c = R[..., 0, 0], R[..., 1, 1], R[..., 2, 2]
    xy, xz, yz = R[..., 0, 1] + R[..., 1, 0], R[..., 0, 2] + R[..., 2, 0], R[..., 1, 2] + R[..., 2, 1]
    xw, yw, zw = R[..., 2, 1] - R[..., 1, 2], R[..., 0, 2] - R[..., 2, 0], R[..., 1, 0] - R[..., 0, 1]
    squares = np.stack([1 + a - b - c, 1 - a + b - c, 1 - a - b + c, 1 + a + b + c], axis=-1)
    x, y, z, w = np.moveaxis(squares, -1, 0)
    rows = np.stack([np.stack(row, axis=-1) for row in ((x, xy, xz, xw), (xy, y, yz, yw), (xz, yz, z, zw),
                                                        (xw, yw, zw, w))], axis=-2)  # fmt: skip
    chosen = np.take_along_axis(rows, squares.argmax(axis=-1)[..., None, None], axis=-2)[..., 0, :]
    return chosen / np.linalg.norm(chosen, axis=-1, keepdims=True)


def _directions() -> Array:
    """Directions spread evenly over the sphere, and the axes."""
    k = np.arange(DIRECTIONS) + 0.5
    z, angle = 1 - 2 * k / DIRECTIONS, np.pi * (1 + 5**0.5) * k
    r = np.sqrt(1 - z * z)
    return np.vstack([np.column_stack([r * np.cos(angle), r * np.sin(angle), z]), np.eye(3), -np.eye(3)])


__all__ = ["Figure", "Part", "Stage", "as_poses", "quaternions"]
