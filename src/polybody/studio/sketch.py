"""Small drawings of a mechanism for notebooks and reports: the scene of `scene.py` in parallel projection, as strokes.

Lines, faces and joints are drawn from the farthest to the nearest. Ground and named frames show their axes; a bar
below gives the scale. A mechanism that lies in the plane of x and y, or of x and z, is seen squarely.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from polybody.studio.charts import ticks
from polybody.studio.scene import LOOKS, Scene
from polybody.studio.strokes import Line, Picture, Shape, Words, width_of

if TYPE_CHECKING:
    from polybody.model.model import Model

Array = np.ndarray
Stroke = Line | Shape | Words
Dashes = tuple[float, float] | None
AXES = ("#e74c3c", "#2ecc71", "#3498db")
ELEVATION, AZIMUTH = np.deg2rad(22), np.deg2rad(-55)


def sketch(model: Model, q: Array, size: float = 360.0) -> Picture:
    """One configuration."""
    scene = Scene(model, q)
    return Picture(size, size, _Camera(scene.points, size).strokes(model, scene, 0.0, 0.0))


def sketches(model: Model, configurations: list[Array], titles: list[str], size: float = 340.0) -> Picture:
    """Several configurations beside each other, seen by one camera, with a legend of the kinds of joints."""
    scenes = [Scene(model, q) for q in configurations]
    camera = _Camera(np.concatenate([scene.points for scene in scenes]), size)
    legend = _legend(model, len(scenes) * size + 16, 40.0)
    width = max((s.x + width_of(s.said, s.size) for s in legend if isinstance(s, Words)), default=len(scenes) * size)
    picture = Picture(width + 12, size + 26, legend)
    for k, (scene, title) in enumerate(zip(scenes, titles, strict=True)):
        picture.strokes += camera.strokes(model, scene, k * size, 26.0)
        picture.strokes.append(Words((k + 0.5) * size, 18, title, 12, anchor="middle"))
    return picture


class _Camera:
    """World coordinates to pixels of a square."""

    def __init__(self, points: Array, size: float) -> None:
        low, high = points.min(axis=0), points.max(axis=0)
        reach = max(float((high - low).max()), 1e-3)
        thin = (high - low) < 1e-6 * reach
        up, turn = (np.pi / 2, -np.pi / 2) if thin[2] else (0.0, -np.pi / 2) if thin[1] else (ELEVATION, AZIMUTH)
        s, c, se, ce = np.sin(turn), np.cos(turn), np.sin(up), np.cos(up)
        right, above, towards = np.array([-s, c, 0]), np.array([-se * c, -se * s, ce]), np.array([ce * c, ce * s, se])
        self.turned = np.array([right, -above, towards])  # y of pixels runs down
        flat = points @ self.turned.T
        spread = np.ptp(flat[:, :2], axis=0)
        self.size, self.scale = size, 0.8 * size / max(float(spread.max()), 0.25 * reach)
        self.middle = (flat[:, :2].min(axis=0) + flat[:, :2].max(axis=0)) / 2

    def __call__(self, *points: Array) -> tuple[Array, float]:
        """(pixels (n, 2), mean nearness)."""
        flat = np.array(points) @ self.turned.T
        return (flat[:, :2] - self.middle) * self.scale + self.size / 2, float(flat[:, 2].mean())

    def strokes(self, model: Model, scene: Scene, x: float, y: float) -> list[Stroke]:
        """The drawing with its upper left corner at (x, y)."""
        shift, reach = np.array([x, y]), 0.07 * scene.size
        behind: list[Stroke] = []
        found: list[tuple[float, Stroke]] = []

        def line(ends: tuple[Array, Array], colour: str, width: float, dashes: Dashes = None) -> None:
            at, near = self(*ends)
            found.append((near, Line(at + shift, colour, width, dashes)))

        for start, end in scene.ground:
            behind.append(Line(self(start, end)[0] + shift, "#bdc3c7", 1, (5, 4)))
        for corners in scene.faces:
            at, near = self(*corners)
            found.append((near, Shape(at + shift, "#5dade2", "#34495e", 1, 0.25)))
        for start, end in scene.links:
            line((start, end), "#5d6d7e", 4)
        for start, end in scene.offsets:
            line((start, end), "#95a5a6", 1)
        for R, p, long in [(np.eye(3), np.zeros(3), 0.12), *((R, p, 0.06) for R, p in scene.frames)]:
            for column, colour in zip(R.T, AXES, strict=True):
                line((p, p + long * scene.size * column), colour, 1.2)
        for joint, (place, turns, slides) in zip(model.mechanism.joints, scene.joints, strict=True):
            colour, mark = LOOKS[joint.kind]
            for direction in (*turns, *slides):
                dashes = None if any(direction is turn for turn in turns) else (4.0, 3.0)
                line((place - reach * direction, place + reach * direction), colour, 1.8, dashes)
            at, near = self(place)
            found.append((near + 1e-3 * scene.size, marker(mark, at[0] + shift, 5.5, colour)))
        for kind, a, b in scene.cuts:
            (at, near), (colour, mark) = self(b), LOOKS[kind]
            found.append((near + 1e-3 * scene.size, marker(mark, at[0] + shift, 6, "#ffffff", colour)))
            if np.linalg.norm(b - a) > 1e-6 * scene.size:
                line((a, b), "#ff0000", 1.6, (2.0, 3.0))
        for com in scene.coms:
            (u, v), near = self(com)[0][0] + shift, self(com)[1]
            for du, dv in ((4, 0), (0, 4)):
                found.append((near, Line(np.array([[u - du, v - dv], [u + du, v + dv]]), "#000000", 1.2)))
        at, near = self(np.zeros(3))
        found.append((near, marker("s", at[0] + shift, 6, "#000000")))
        return [*behind, *(stroke for _, stroke in sorted(found, key=lambda pair: pair[0])), *self._bar(x, y)]

    def _bar(self, x: float, y: float) -> list[Stroke]:
        """The scale: a round length of at most a third of the width."""
        length = ticks(0.0, self.size / 3 / self.scale, 3)[1]
        start, level = x + 0.05 * self.size, y + 0.97 * self.size
        bar = np.array([[start, level], [start + length * self.scale, level]])
        return [Line(bar, "#64748b", 2), Words(start, level - 5, f"{length:g} m", 10, "#64748b")]


def marker(mark: str, at: Array, size: float, fill: str, edge: str = "#ffffff") -> Shape:
    """The sign of a joint, by matplotlib's letter for it."""
    return Shape(at + size * OUTLINES[mark], fill, edge, 1.0 if edge == "#ffffff" else 2.0)


def _around(count: int, *radii: float, first: float = -np.pi / 2) -> Array:
    angles = first + 2 * np.pi * np.arange(count) / count
    return np.column_stack([np.cos(angles), np.sin(angles)]) * np.resize(radii, count)[:, None]


def _cross(width: float) -> Array:
    corner = np.array([[width, -1], [width, -width], [1, -width]])
    quarter = np.array([[0, -1], [1, 0]])
    turns = [np.linalg.matrix_power(quarter, k) for k in range(4)]
    return np.concatenate([corner @ turn.T for turn in turns])


OUTLINES = {
    "o": _around(24, 1.0), "s": _around(4, 1.25, first=np.pi / 4), "D": _around(4, 1.25), "h": _around(6, 1.1),
    "P": _cross(0.38), "^": _around(3, 1.2), "*": _around(10, 1.4, 0.6),
    "X": _cross(0.38) @ np.array([[0.7071, -0.7071], [0.7071, 0.7071]]).T,
}  # fmt: skip


def _legend(model: Model, x: float, y: float) -> list[Stroke]:
    m = model.mechanism
    kinds = {joint.kind: (LOOKS[joint.kind][0], "#ffffff") for joint in m.joints}
    cut = {loop.name: loop.kind if loop.kind in LOOKS else "custom" for loop in m.description.loops}
    hollow = {cut[closure.name]: ("#ffffff", LOOKS[cut[closure.name]][0]) for closure in m.closures}
    found: list[Stroke] = [marker("s", np.array([x, y]), 6, "#000000"), Words(x + 14, y + 4, "world", 10)]
    for names, said in ((kinds, "{}"), (hollow, "{}, cut")):
        for kind, (fill, edge) in names.items():
            y += 18
            sign = marker(LOOKS[kind][1], np.array([x, y]), 5.5, fill, edge)
            found += [sign, Words(x + 14, y + 4, said.format(kind), 10)]
    if any(body.mass > 0 for body in m.bodies):
        y += 18
        for du, dv in ((4, 0), (0, 4)):
            found.append(Line(np.array([[x - du, y - dv], [x + du, y + dv]]), "#000000", 1.2))
        found.append(Words(x + 14, y + 4, "mass centre", 10))
    return found


__all__ = ["sketch", "sketches"]
