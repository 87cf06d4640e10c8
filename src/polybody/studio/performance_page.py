"""Ellipsoids and modes in the browser: the page of `polybody view` with the ellipsoids of a frame, and modes to play.

An ellipsoid is drawn by its three principal ellipses, as tubes, so that the mechanism is seen through it and several
can stand in one place. All are scaled to one size; the page's note states their radii. They belong to one configuration
and stay there when the mechanism is moved.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from polybody.design.ellipsoids import Ellipsoid
from polybody.design.performance import Performance
from polybody.design.stiffness import Modes
from polybody.errors import InputError
from polybody.files import write_text
from polybody.studio.performance_plots import COLORS, KINDS, axes_of
from polybody.studio.stage.meshes import Triangles
from polybody.studio.stage.stage import Part, Stage, as_poses

Array = np.ndarray
#: what COLORS look like, and units of the radii (per unit of the actuators)
HUES = {"velocity": "blue", "force": "red", "acceleration": "violet", "inertia": "amber"}
UNITS = {"velocity": "m/s", "force": "N", "acceleration": "m/s²", "inertia": "kg"}
#: the largest radius and the tubes' own, in parts of the mechanism
SIZE, THICK = 0.22, 0.006
AROUND, SIDES = 72, 8
#: modes that the page offers, their swing (rad or m) and how many poses are kept of it
MOST_MODES, SWING, POSES = 8, 0.25, 25


def write_performance_page(
    found: Performance, path: str | os.PathLike[str], q: Any = None, *,
    kinds: Sequence[str] = KINDS, modes: Modes | None = None,
) -> Path:  # fmt: skip
    """Write a page (.html, no network) with the machine at q, ellipsoids of its frame, and `modes` to play."""
    from polybody.studio.viewer.content import posed_content, with_meshes
    from polybody.studio.viewer.html import page
    from polybody.studio.viewer.pack import compressed
    from polybody.studio.viewer.posing import Posing

    target = Path(path)
    if target.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{target}: a page is an .html file")
    model = found.model
    place = model.assemble() if q is None else model._q(q)
    stage = Stage(model, place[None])
    moves = not any(name.startswith("r") for name in found.task.names)  # mixed rows have no one unit
    notes = [
        f"{kind} ({HUES[kind]}) {_radii(ball)}" + (f" {UNITS[kind]}" if moves else "")
        for kind, ball in _added(stage, found, place, kinds)
    ]
    content = with_meshes(stage, posed_content(stage, Posing(model, stage.size, place)))
    played = [] if modes is None else mode_motions(stage, modes)
    note = f"Ellipsoids of {found.frame}, rows {' '.join(found.task.names)}, radii: {'; '.join(notes)}"
    content["analyses"] = {"text": note, "motions": played}
    write_text(target, page(f"polybody: performance of {model.name}", compressed(content, 9)))
    return target


def _added(stage: Stage, found: Performance, q: Array, kinds: Sequence[str]) -> list[tuple[str, Ellipsoid]]:
    """Put the ellipsoids on the stage, on its ground."""
    center, made = found.model.pose(q, found.frame)[:3, 3], []
    for kind in kinds:
        if kind not in KINDS:
            raise InputError(f"no ellipsoid {kind!r}; available: {', '.join(KINDS)}")
        ball: Ellipsoid = getattr(found, f"{kind}_ellipsoid")(q)
        matrix = axes_of(ball, SIZE * stage.size)
        if matrix is not None:
            mesh = tubes(matrix, center, THICK * stage.size)
            red, green, blue = (int(COLORS[kind][k : k + 2], 16) for k in (1, 3, 5))
            stage.figures[-1].parts.append(Part(lambda mesh=mesh: mesh, (red, green, blue), True))
        made.append((kind, ball))
    return made


def _radii(ball: Ellipsoid) -> str:
    return ", ".join(f"{x:.4g}" for x in ball.radii)


def tubes(matrix: Array, center: Array, thick: float) -> Triangles:
    """The three principal ellipses of an ellipsoid as closed tubes."""
    turn = np.linspace(0, 2 * np.pi, AROUND, endpoint=False)[:, None]
    positions, normals, faces = [], [], []
    for a, b in combinations(matrix.T, 2):
        line = center + np.cos(turn) * a + np.sin(turn) * b
        along = -np.sin(turn) * a + np.cos(turn) * b
        along = along / np.maximum(np.linalg.norm(along, axis=1, keepdims=True), 1e-12)
        side = np.cross(a, b)
        if np.linalg.norm(side) < 1e-12:  # a flat ellipse: any direction across it
            side = np.linalg.svd(np.stack([a, b]))[2][-1]
        side = np.broadcast_to(side / np.linalg.norm(side), line.shape)
        out = np.cross(along, side)
        start = sum(len(p) for p in positions)
        for k in range(SIDES):
            angle = 2 * np.pi * k / SIDES
            normal = np.cos(angle) * side + np.sin(angle) * out
            positions.append(line + thick * normal)
            normals.append(normal)
        for k in range(SIDES):
            for i in range(AROUND):
                j, m = (i + 1) % AROUND, (k + 1) % SIDES
                p, r = start + k * AROUND, start + m * AROUND
                faces += [(p + i, p + j, r + j), (p + i, r + j, r + i)]
    return Triangles(
        np.concatenate(positions).astype(np.float32), np.concatenate(normals).astype(np.float32),
        np.array(faces, dtype=np.uint32),
    )  # fmt: skip


def mode_motions(stage: Stage, modes: Modes) -> list[dict[str, Any]]:
    """Modes as the page plays them: there and back."""
    model, found = modes.task.model, []
    reach = np.linspace(-1, 1, POSES)[:, None]
    for k in [k for k in range(len(modes.frequencies)) if modes.frequencies[k] != 0][:MOST_MODES]:
        shape = modes.shapes[k] / np.abs(modes.shapes[k]).max()
        q = model.integrate(modes.q, SWING * reach * shape)
        if len(model.constraints):
            q = model.constraints.assemble_dependent(q)
        poses = as_poses(stage.matrices(q)).ravel()
        name = f"mode {k + 1}: {modes.frequencies[k]:.4g} Hz"
        found.append({"name": name, "detail": "natural mode, amplitude enlarged", "poses": poses})
    return found


__all__ = ["mode_motions", "tubes", "write_performance_page"]
