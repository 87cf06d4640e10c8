"""Triangles: every shape as positions, normals, faces and colours, ready for any rasteriser.

Files hold several hundred thousand triangles per robot. `reduced` clusters vertices: all that fall into one cell of a
grid become their mean, and faces that lose a corner are dropped. The cell is found by bisection on the number of
faces left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polybody.studio.stage.shapes import Shape

Array = np.ndarray
SIDES = 28  # of round things
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
    """Smooth normals within each bend, sharp ones across creases: corners of a face take the mean normal of the faces
    around their vertex that lie within the crease angle of it."""
    faces = np.asarray(faces, dtype=np.int64)
    corner = positions[faces]
    area = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    length = np.linalg.norm(area, axis=1)
    keep = length > 0
    faces, area, length = faces[keep], area[keep], length[keep]
    unit = area / length[:, None]
    _, member, place = np.unique(
        _keys(np.round(positions * 1e7).astype(np.int64)), return_index=True, return_inverse=True
    )
    total = np.zeros((place.max(initial=-1) + 1, 3))
    np.add.at(total, place[faces].ravel(), np.repeat(area, 3, axis=0))
    smooth = total / np.maximum(np.linalg.norm(total, axis=1, keepdims=True), 1e-300)
    normals = smooth[place[faces]]
    sharp = np.einsum("fck,fk->fc", normals, unit) < CREASE
    normals[sharp] = np.broadcast_to(unit[:, None], normals.shape)[sharp]
    welded = faces if colors is not None else member[place[faces]]  # .stl files repeat each corner
    corners = np.column_stack([welded.reshape(-1), np.round(normals.reshape(-1, 3) * 64).astype(np.int64)])
    _, first, index = np.unique(_keys(corners), return_index=True, return_inverse=True)
    source = corners[first, 0]
    return Triangles(
        positions[source].astype(np.float32), normals.reshape(-1, 3)[first].astype(np.float32),
        index.reshape(-1, 3).astype(np.uint32), None if colors is None else colors[source],
    )  # fmt: skip


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
    """A convex outline (n, 2), counter-clockwise, as thick as said about z = 0."""
    n = len(outline)
    low, high = (np.column_stack([outline, np.full(n, s * thickness / 2)]) for s in (-1, 1))
    k, after = np.arange(n), (np.arange(n) + 1) % n
    faces = np.vstack([
        np.column_stack([k, after, after + n]), np.column_stack([k, after + n, k + n]),
        *([(0, i + 1, i), (n, n + i, n + i + 1)] for i in range(1, n - 1)),
    ])  # fmt: skip
    return creased(np.vstack([low, high]), faces)


def ball(radius: float, rings: int = 14) -> Triangles:
    """A sphere about the origin."""
    theta = np.linspace(0, np.pi, rings + 1)
    phi = np.linspace(0, 2 * np.pi, 2 * rings, endpoint=False)
    ring = np.array([(np.sin(t) * np.cos(p), np.sin(t) * np.sin(p), np.cos(t)) for t in theta for p in phi])
    n, faces = 2 * rings, []
    for i in range(rings):
        for j in range(n):
            a, b, c, d = i * n + j, (i + 1) * n + j, (i + 1) * n + (j + 1) % n, i * n + (j + 1) % n
            faces += [(a, b, c), (a, c, d)]
    kept = [f for f in faces if len({tuple(np.round(ring[k], 9)) for k in f}) == 3]
    return Triangles((radius * ring).astype(np.float32), ring.astype(np.float32), np.array(kept, dtype=np.uint32))


def hull_points(mesh: Triangles, directions: Array) -> Array:
    """The vertices that lie farthest in each direction: they bound the shape closely."""
    if not len(mesh.positions):
        return mesh.positions
    return mesh.positions[np.unique(np.argmax(directions @ mesh.positions.T, axis=1))]


__all__ = ["Triangles", "ball", "box", "creased", "cylinder", "hull_points", "plate", "reduced", "triangles"]
