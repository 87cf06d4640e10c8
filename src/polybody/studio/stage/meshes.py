"""Triangles: every shape as positions, normals, faces and colours, ready for any rasteriser.

Files hold several hundred thousand triangles per robot. `reduced` clusters vertices: all that fall into one cell of a
grid become their mean, and faces that lose a corner are dropped. The cell is found by bisection on the number of
faces left.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from polybody.studio.stage.shapes import Shape

Array = np.ndarray
SIDES = 28  # of round things
#: faces around one point that are looked at for its normals
MOST_AROUND = 48
#: corners sharper than this angle stay sharp
CREASE = np.cos(np.deg2rad(38))


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


def triangles(shape: Shape) -> Triangles:
    """A shape of any kind in its body's frame."""
    if shape.kind == "mesh":
        return _mesh(shape).moved(shape.pose)
    if shape.kind == "box":
        made = box(shape.size)
    elif shape.kind == "cylinder":
        made = cylinder(shape.size[0], shape.size[1])
    elif shape.kind == "plate":
        made = plate(np.reshape(shape.size[1:], (-1, 2)), shape.size[0])
    else:
        made = ball(shape.size[0])
    return made.moved(shape.pose)


def _mesh(shape: Shape) -> Triangles:
    mesh = shape.mesh.to_geometry() if hasattr(shape.mesh, "to_geometry") else shape.mesh
    scale = np.asarray(shape.size if len(shape.size) == 3 else (1.0, 1.0, 1.0))
    positions = np.asarray(mesh.vertices, dtype=float) * scale
    return creased(positions, np.asarray(mesh.faces), _colors(mesh))


def _colors(mesh: Any) -> Array | None:
    """Colours of the vertices where the file states any; textures are read at the vertices."""
    visual: Any = getattr(mesh, "visual", None)
    if getattr(visual, "kind", None) is None:
        return None
    if visual.kind == "texture":
        visual = visual.to_color()
    colors = np.asarray(visual.vertex_colors)[:, :3]
    return colors.astype(np.uint8) if len(colors) == len(mesh.vertices) else None


def creased(positions: Array, faces: Array, colors: Array | None = None) -> Triangles:
    """Smooth normals within bends, sharp ones across creases.

    The normal at a corner of a face is the mean of the faces around that point whose own normals lie within the crease
    angle of the face's, each by the angle it spans there.
    """
    faces = np.asarray(faces, dtype=np.int64)
    corner = positions[faces]
    area = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    length = np.linalg.norm(area, axis=1)
    keep = length > 0
    faces, unit = faces[keep], area[keep] / length[keep, None]
    key = _keys(np.round(positions * 1e7).astype(np.int64))
    _, member, place = np.unique(key, return_index=True, return_inverse=True)
    normals = _corner_normals(place[faces].ravel(), _angles(positions[faces]).ravel(), unit)
    welded = faces if colors is not None else member[place[faces]]  # .stl files repeat each corner
    corners = np.column_stack([welded.reshape(-1), np.round(normals * 64).astype(np.int64)])
    _, first, index = np.unique(_keys(corners), return_index=True, return_inverse=True)
    source = corners[first, 0]
    return Triangles(
        positions[source].astype(np.float32), normals[first].astype(np.float32),
        index.reshape(-1, 3).astype(np.uint32), None if colors is None else colors[source],
    )  # fmt: skip


def _angles(corner: Array) -> Array:
    """The angles (m, 3) of triangles (m, 3, 3) at their corners."""
    ahead, back = np.roll(corner, -1, axis=1) - corner, np.roll(corner, 1, axis=1) - corner
    sizes = np.linalg.norm(ahead, axis=2) * np.linalg.norm(back, axis=2)
    return np.arccos(np.clip(np.einsum("fck,fck->fc", ahead, back) / np.maximum(sizes, 1e-300), -1, 1))


def _corner_normals(place: Array, angle: Array, unit: Array) -> Array:
    """The normals of all corners (3 m, 3); `place` says which point each corner is at."""
    if not len(place):
        return np.zeros((0, 3))
    order = np.argsort(place, kind="stable")
    face = order // 3
    count = np.bincount(place)
    count = count[count > 0]
    start = np.concatenate([[0], np.cumsum(count)[:-1]])
    many = np.repeat(np.minimum(count, MOST_AROUND), count)  # partners of each corner, in the sorted order
    begin = np.repeat(start, count)
    mine = np.repeat(np.arange(len(order)), many)
    offset = np.arange(len(mine)) - np.repeat(np.cumsum(many) - many, many)
    other = np.repeat(begin, many) + offset
    near = np.einsum("ij,ij->i", unit[face[mine]], unit[face[other]]) >= CREASE
    mine, other = mine[near], other[near]
    weight = angle[order][other]
    total = np.column_stack([np.bincount(mine, weight * unit[face[other], k], len(order)) for k in range(3)])
    size = np.linalg.norm(total, axis=1, keepdims=True)
    found = np.where(size > 0, total / np.where(size > 0, size, 1.0), unit[face])
    result = np.empty_like(found)
    result[order] = found
    return result


def _keys(rows: Array) -> Array:
    """One number per row of whole numbers, equal where the rows are; odd multipliers keep others apart."""
    odd = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x27D4EB2F165667C5], dtype=np.uint64)
    mixed = rows.astype(np.uint64) * odd[: rows.shape[1]]
    mixed ^= mixed >> np.uint64(29)
    return (mixed * odd[::-1][: rows.shape[1]]).sum(axis=1, dtype=np.uint64)


def reduced(mesh: Triangles, most: int) -> Triangles:
    """At most so many faces, as near to the shape as clustering comes."""
    if len(mesh.faces) <= most:
        return mesh
    low, span = mesh.positions.min(axis=0), float(np.ptp(mesh.positions, axis=0).max())
    coarse, fine = 4.0, 2048.0
    best: tuple[Array, Array] | None = None
    for _ in range(9):
        cells = np.sqrt(coarse * fine)
        key = np.floor((mesh.positions - low) / span * cells).astype(np.int64)
        _, label = np.unique(key @ np.array([1, 4096, 4096**2]), return_inverse=True)
        label = label.reshape(-1)
        faces = label[mesh.faces]
        whole = (faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2]) & (faces[:, 2] != faces[:, 0])
        if whole.sum() <= most:
            best, coarse = (label, faces[whole]), cells
        else:
            fine = cells
    if best is None:
        return mesh
    label, faces = best
    count = np.bincount(label)
    positions = np.column_stack([np.bincount(label, mesh.positions[:, k]) / count for k in range(3)])
    colors = None
    if mesh.colors is not None:
        colors = np.column_stack([np.bincount(label, mesh.colors[:, k]) / count for k in range(3)]).astype(np.uint8)
    return creased(positions, faces, colors)


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


def hull_points(mesh: Triangles, directions: Array) -> Array:
    """The vertices that lie farthest in each direction: they bound the shape closely."""
    if not len(mesh.positions):
        return mesh.positions
    return mesh.positions[np.unique(np.argmax(directions @ mesh.positions.T, axis=1))]


__all__ = ["Triangles", "ball", "box", "creased", "cylinder", "hull_points", "plate", "reduced", "triangles"]
