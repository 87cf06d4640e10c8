"""Triangles: every shape as positions, normals, faces and colours, ready for any rasteriser.

Files hold several hundred thousand triangles per robot. `reduced` clusters their points before anything else is
computed of them: all that fall into one cell of a grid become their mean, and faces that lose a corner are dropped. The
cell is found by bisection on the number of faces left.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from polybody.studio.stage.collada import Corners
from polybody.studio.stage.shapes import Shape
from polybody.studio.stage.welding import distinct, equal, keys

Array = np.ndarray
SIDES = 28  # of round things
HULL_BLOCK = 1024
#: faces around one point that are looked at for its normals
MOST_AROUND = 48
#: corners sharper than this angle stay sharp
CREASE, HALF_CREASE = np.cos(np.deg2rad(38)), np.cos(np.deg2rad(19))


@dataclass(frozen=True)
class Triangles:
    """Positions (n, 3) and normals (n, 3) as float32, faces (m, 3) as uint32, colours (n, 3) as uint8 or None."""

    positions: Array
    normals: Array
    faces: Array
    colors: Array | None = None

    def moved(self, pose: Array) -> Triangles:
        """The same in another frame; poses may scale."""
        turn = pose[:3, :3]
        normals = self.normals @ np.linalg.inv(turn)
        length = np.linalg.norm(normals, axis=1, keepdims=True)
        faces = self.faces if np.linalg.det(turn) > 0 else self.faces[:, ::-1]
        moved = (self.positions @ turn.T + pose[:3, 3]).astype(np.float32)
        return Triangles(moved, (normals / np.maximum(length, 1e-12)).astype(np.float32), faces, self.colors)


def corners(shape: Shape) -> Corners:
    """Vertices and faces of a shape before its pose, without normals: what a file says, or a made shape has."""
    if shape.kind == "mesh":
        mesh = shape.mesh.to_geometry() if hasattr(shape.mesh, "to_geometry") else shape.mesh
        scale = np.asarray(shape.size if len(shape.size) == 3 else (1.0, 1.0, 1.0))
        places = np.asarray(mesh.vertices, dtype=float)
        return Corners(places * scale if np.any(scale != 1.0) else places, np.asarray(mesh.faces), _colors(mesh))
    made = _made(shape)
    return Corners(made.positions, made.faces)


def triangles(shape: Shape, most: int | None = None) -> Triangles:
    """A shape of any kind in its body's frame, of at most so many faces."""
    mesh = None if shape.kind == "mesh" else _made(shape)
    found = corners(shape) if mesh is None else Corners(mesh.positions, mesh.faces)
    if mesh is None or (most is not None and len(found.faces) > most):
        mesh = creased(*(found if most is None else reduced(found, most)))
    return mesh.moved(shape.pose)


def _made(shape: Shape) -> Triangles:
    if shape.kind == "box":
        return box(shape.size)
    if shape.kind == "cylinder":
        return cylinder(shape.size[0], shape.size[1])
    if shape.kind == "plate":
        return plate(np.reshape(shape.size[1:], (-1, 2)), shape.size[0])
    return ball(shape.size[0])


def _colors(mesh: Any) -> Array | None:
    """Colours of the vertices where the file states any; textures are read at the vertices."""
    if isinstance(mesh, Corners):
        return mesh.colors
    visual: Any = getattr(mesh, "visual", None)
    if getattr(visual, "kind", None) is None:
        return None
    if visual.kind == "texture":
        visual = visual.to_color()
    colors = np.atleast_2d(visual.vertex_colors)[:, :3]
    if len(colors) == 1:  # of a material without a picture
        colors = np.repeat(colors, len(mesh.vertices), axis=0)
    return colors.astype(np.uint8) if len(colors) == len(mesh.vertices) else None


def creased(positions: Array, faces: Array, colors: Array | None = None) -> Triangles:
    """Smooth normals within bends, sharp ones across creases.

    The normal at a corner of a face is the mean of the faces around that point whose own normals lie within the crease
    angle of the face's, each by the angle it spans there. Where all faces around a point lie within half that angle of
    their mean, no two are farther apart than the whole of it, and the mean is the normal of all: most points are so.
    """
    faces = np.asarray(faces, dtype=np.int64)
    area = _cross(positions[faces[:, 1]] - positions[faces[:, 0]], positions[faces[:, 2]] - positions[faces[:, 0]])
    length = np.sqrt(np.einsum("ij,ij->i", area, area))
    keep = length > 0
    faces, unit = faces[keep], area[keep] / length[keep, None]
    member, place = equal(_near(positions))
    points = place[faces].ravel()
    angle = _angles(positions[faces]).ravel()
    own = np.repeat(unit, 3, axis=0)
    mean = _unit_rows(_sums(points, angle[:, None] * own, len(member)))
    sharp = np.zeros(len(member), dtype=bool)
    sharp[points[np.einsum("ij,ij->i", own, mean[points]) < HALF_CREASE]] = True
    vertex = (faces if colors is not None else member[place[faces]]).ravel()  # .stl files repeat each corner
    bent = np.flatnonzero(sharp[points])
    normals = _corner_normals(points[bent], angle[bent], own[bent])
    at = vertex[bent]
    first, index = equal(keys(at, *(np.rint(column * 64) for column in normals.T)))
    smooth = np.zeros(len(positions), dtype=bool)
    smooth[vertex] = True
    smooth &= ~sharp[place]
    source = np.concatenate([np.flatnonzero(smooth), at[first]])
    corner = (np.cumsum(smooth) - 1)[vertex]
    corner[bent] = index + int(smooth.sum())
    found = np.concatenate([mean[place[smooth]], normals[first]])
    return Triangles(
        positions[source].astype(np.float32), found.astype(np.float32),
        corner.reshape(-1, 3).astype(np.uint32), None if colors is None else colors[source],
    )  # fmt: skip


def _cross(a: Array, b: Array) -> Array:
    """Products of rows: NumPy's `cross` takes three times as long."""
    x, y, z = a.T
    u, v, w = b.T
    return np.column_stack([y * w - z * v, z * u - x * w, x * v - y * u])


def _sums(place: Array, rows: Array, count: int) -> Array:
    """Sums (count, 3) of the rows at each place."""
    return np.column_stack([np.bincount(place, rows[:, k], count) for k in range(3)])


def _unit_rows(rows: Array) -> Array:
    size = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    return rows / np.where(size > 0, size, 1.0)


def _angles(corner: Array) -> Array:
    """The angles (m, 3) of triangles (m, 3, 3) at their corners."""
    side = np.roll(corner, -1, axis=1) - corner  # from each corner to the next
    length = np.sqrt(np.einsum("fck,fck->fc", side, side))
    back, behind = np.roll(side, 1, axis=1), np.roll(length, 1, axis=1)
    cosine = -np.einsum("fck,fck->fc", side, back) / np.maximum(length * behind, 1e-300)
    return np.arccos(np.clip(cosine, -1, 1))


def _corner_normals(place: Array, angle: Array, unit: Array) -> Array:
    """The normals (k, 3) of corners; `place` says which point each is at, `unit` (k, 3) is its face's own."""
    if not len(place):
        return np.zeros((0, 3))
    order = np.argsort(place, kind="stable")
    unit, weighted = unit[order], (angle[:, None] * unit)[order]
    count = np.bincount(place)
    count = count[count > 0]
    start = np.cumsum(count) - count
    total = np.empty_like(unit)
    for many in np.flatnonzero(np.bincount(count)):  # points that so many corners meet at, all together
        corner = start[count == many][:, None] + np.arange(many)
        partner = corner[:, :MOST_AROUND]
        near = unit[corner] @ unit[partner].swapaxes(1, 2) >= CREASE
        total[corner] = near.astype(float) @ weighted[partner]
    found = np.where(np.any(total != 0, axis=1)[:, None], _unit_rows(total), unit)
    result = np.empty_like(found)
    result[order] = found
    return result


def welded(mesh: Corners) -> Corners:
    """The same with each point once, to a tenth of a micrometre; vertices with colours stay as they are.

    Faces with two corners in one point go, and vertices that no face is left at.
    """
    first, place = equal(_near(mesh.vertices))
    corner = place[mesh.faces]
    a, b, c = corner.T
    keep = (a != b) & (b != c) & (c != a)
    if mesh.colors is None:
        vertices, faces = mesh.vertices[first], corner[keep]
    else:
        vertices, faces = mesh.vertices, mesh.faces[keep]
    used = np.zeros(len(vertices), dtype=bool)
    used[faces] = True
    if used.all():
        return Corners(vertices, faces, mesh.colors)
    return Corners(vertices[used], (np.cumsum(used) - 1)[faces], None if mesh.colors is None else mesh.colors[used])


def _near(positions: Array) -> Array:
    """Numbers that are equal for positions that are."""
    return keys(*(np.rint(column * 1e7) for column in positions.T))


def reduced(mesh: Corners, most: int) -> Corners:
    """At most so many faces, as near to the shape as clustering comes."""
    if len(mesh.faces) <= most:
        return mesh
    points, faces, tints = welded(mesh)
    if not len(points):  # nothing to see
        return Corners(points, faces, tints)
    low, span = points.min(axis=0), float(np.ptp(points, axis=0).max())
    place = (points - low) / span
    coarse, fine = 4.0, 2048.0
    best: tuple[Array, Array] | None = None
    for _ in range(9):
        cells = np.sqrt(coarse * fine)
        x, y, z = (np.floor(column * cells).astype(np.int64) for column in place.T)
        key = x + 4096 * y + 4096**2 * z
        a, b, c = key[faces].T
        whole = (a != b) & (b != c) & (c != a)
        if np.count_nonzero(whole) <= most:
            best, coarse = (key, whole), cells
        else:
            fine = cells
    if best is None:
        return mesh
    key, whole = best
    first, label = equal(key.view(np.uint64))
    count = np.bincount(label, minlength=len(first))
    positions = _sums(label, points, len(first)) / count[:, None]
    colors = None if tints is None else (_sums(label, tints, len(first)) / count[:, None]).astype(np.uint8)
    return Corners(positions, label[faces[whole]], colors)


def box(size: Any) -> Triangles:
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * np.asarray(size[:3]) / 2
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    return creased(corners, np.array([t for a, b, c, d in quads for t in ((a, b, c), (a, c, d))]))


def cylinder(radius: float, length: float, sides: int = SIDES) -> Triangles:
    """Along z, its middle at the origin."""
    angle = np.linspace(0, 2 * np.pi, sides, endpoint=False)
    return plate(radius * np.column_stack([np.cos(angle), np.sin(angle)]), length)


def plate(outline: Array, thickness: float) -> Triangles:
    """A convex outline (n, 2), counter-clockwise, as thick as said about z = 0; sides are smooth where it is round."""
    n = len(outline)
    low, high = (np.column_stack([outline, np.full(n, s * thickness / 2)]) for s in (-1, 1))
    k, after = np.arange(n), (np.arange(n) + 1) % n
    sides = np.vstack([np.column_stack([k, after, after + n]), np.column_stack([k, after + n, k + n])])
    side = creased(np.vstack([low, high]), sides)
    caps = np.array([f for i in range(1, n - 1) for f in ((0, i + 1, i), (n, n + i, n + i + 1))])
    flat = np.repeat([[0.0, 0.0, -1.0], [0.0, 0.0, 1.0]], n, axis=0)
    return Triangles(
        np.vstack([side.positions, low, high]).astype(np.float32), np.vstack([side.normals, flat]).astype(np.float32),
        np.vstack([side.faces, caps + len(side.positions)]).astype(np.uint32),
    )  # fmt: skip


def ball(radius: float, rings: int = 14) -> Triangles:
    """A sphere about the origin."""
    ring, faces = _unit_ball(rings)
    return Triangles((radius * ring).astype(np.float32), ring.astype(np.float32), faces)


@cache
def _unit_ball(rings: int) -> tuple[Array, Array]:
    """(places, faces): every joint and both ends of every rod are balls."""
    theta = np.linspace(0, np.pi, rings + 1)
    phi = np.linspace(0, 2 * np.pi, 2 * rings, endpoint=False)
    ring = np.array([(np.sin(t) * np.cos(p), np.sin(t) * np.sin(p), np.cos(t)) for t in theta for p in phi])
    n, faces = 2 * rings, []
    for i in range(rings):
        for j in range(n):
            a, b, c, d = i * n + j, (i + 1) * n + j, (i + 1) * n + (j + 1) % n, i * n + (j + 1) % n
            faces += [(a, b, c)] * (i < rings - 1) + [(a, c, d)] * (i > 0)  # at the poles two corners are one
    return ring, np.array(faces, dtype=np.uint32)


def hull_points(mesh: Corners, pose: Array, directions: Array) -> Array:
    """The vertices, moved by the pose, that then lie farthest in each direction: they bound the shape closely.

    Block by block: products of that size stay on one core and in its caches. The threads that BLAS starts for a large
    one wait for each other wherever another process keeps a core busy. Columns are contiguous: turned over block by
    block they took twice as long.
    """
    used = np.zeros(len(mesh.vertices), dtype=bool)
    used[mesh.faces] = True
    points = mesh.vertices if used.all() else mesh.vertices[used]
    if not len(points):
        return points
    ahead, rows = (directions @ pose[:3, :3]).astype(np.float32), np.arange(len(directions))
    columns = np.empty((3, len(points)), dtype=np.float32)
    columns[:] = points.T
    most, farthest = np.full(len(rows), -np.inf, dtype=np.float32), np.zeros(len(rows), dtype=np.int64)
    for start in range(0, len(points), HULL_BLOCK):
        reach = ahead @ columns[:, start : start + HULL_BLOCK]
        at = reach.argmax(axis=1)
        there = reach[rows, at]
        farther = there > most
        most[farther], farthest[farther] = there[farther], start + at[farther]
    return points[distinct(farthest)] @ pose[:3, :3].T + pose[:3, 3]


__all__ = ["Triangles", "ball", "box", "corners", "creased", "cylinder", "hull_points", "plate", "reduced", "triangles",
           "welded"]  # fmt: skip
