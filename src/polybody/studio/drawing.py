"""An image of a mechanism in one configuration: links, joints by kind, cut joints, mass centres, frames.

A body is drawn as a hub: lines run from its joint to the joints, cut joints, named frames and mass centre that it
carries, a face where it joins three others or more. A joint is a marker whose colour and shape show its kind, with a
solid line along each axis it turns about and a dashed one along each direction it slides in. The cut joint of a loop
is the same marker, hollow; where the loop is open, a red dotted line runs across the gap. What is fixed to the ground
is thin. A mechanism that lies in a plane is drawn in that plane, any other in perspective.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.errors import InputError
from polybody.model.arguments import state_array
from polybody.studio.scene import LOOKS, Scene, title_of

if TYPE_CHECKING:
    from polybody.model.model import Model

Array = np.ndarray
FORMATS = (".png", ".svg", ".pdf")


def draw(model: Model, path: str | os.PathLike[str], q: Any = None) -> None:
    """Draw the model at q (neutral where none is given) into a .png, .svg or .pdf file."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"{path}: a drawing is one of {', '.join(FORMATS)}")
    if not path.parent.is_dir():
        raise InputError(f"{path}: the folder {str(path.parent)!r} does not exist")
    q = model.neutral() if q is None else state_array("q", q, model.nq)
    if q.ndim != 1:
        raise InputError(f"q has shape {q.shape}, expected one configuration, ({model.nq},)")
    figure = Figure(figsize=(9.4, 7), dpi=150)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.0, 0.02, 0.8, 0.93), projection="3d", proj_type="ortho")
    draw_on(axes, model, q, legend=False)
    outer_legend(figure, [axes])
    figure.savefig(path)


def outer_legend(figure: Any, every: list[Any]) -> None:
    """One legend for all axes, at the right of the drawings and never over them."""
    handles: dict[str, Any] = {}
    for axes in every:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(handles.values(), handles.keys(), loc="center right", fontsize=8, frameon=False)


def draw_on(axes: Any, model: Model, q: Array, *, legend: bool = True) -> None:
    """Draw on 3-D axes of matplotlib."""
    scene = Scene(model, q)
    size = scene.size
    _draw_ground(axes, 0.12 * size)
    for start, end in scene.ground:
        axes.plot(*np.column_stack([start, end]), color="#bdc3c7", linewidth=1, linestyle="--", zorder=0)
    _draw_faces(axes, scene.faces)
    for start, end in scene.links:
        axes.plot(*np.column_stack([start, end]), color="#34495e", linewidth=3.5, alpha=0.75, solid_capstyle="round")
    for start, end in scene.offsets:
        axes.plot(*np.column_stack([start, end]), color="#95a5a6", linewidth=0.8)
    kinds = set()
    for joint, (place, turns, slides) in zip(model.mechanism.joints, scene.joints, strict=True):
        color, marker = LOOKS[joint.kind]
        label = joint.kind if joint.kind not in kinds else None
        kinds.add(joint.kind)
        axes.scatter(*place, color=color, marker=marker, s=70, label=label, depthshade=False, edgecolors="white")
        for directions, style in ((turns, "-"), (slides, "--")):
            for direction in directions:
                ends = np.column_stack([place - 0.07 * size * direction, place + 0.07 * size * direction])
                axes.plot(*ends, color=color, linewidth=1.6, linestyle=style)
    for kind, a, b in scene.cuts:
        color, marker = LOOKS[kind]
        label = f"{kind}, cut" if f"cut {kind}" not in kinds else None
        kinds.add(f"cut {kind}")
        axes.scatter(*b, facecolors="white", edgecolors=color, marker=marker, s=80, linewidths=2, label=label,
                     depthshade=False)  # fmt: skip
        if np.linalg.norm(b - a) > 1e-6 * size:
            axes.plot(*np.column_stack([a, b]), color="red", linewidth=1.5, linestyle=":")
    if len(scene.coms):
        axes.scatter(*np.array(scene.coms).T, color="black", marker="+", s=45, label="mass centre", depthshade=False)
    for R, p in scene.frames:
        _draw_triad(axes, R, p, 0.06 * size)
    _frame_view(axes, scene.points)
    axes.set_title(title_of(model), parse_math=False)  # a name holds dollar signs
    if legend:
        axes.legend(loc="upper left", fontsize=8, framealpha=0.6)


def _draw_faces(axes: Any, faces: list[Array]) -> None:
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    if faces:
        axes.add_collection3d(Poly3DCollection(faces, facecolor="#5dade2", edgecolor="#34495e", alpha=0.25))


def _draw_ground(axes: Any, length: float) -> None:
    _draw_triad(axes, np.eye(3), np.zeros(3), length)
    axes.scatter(0, 0, 0, color="black", marker="s", s=90, label="world", depthshade=False)


def _draw_triad(axes: Any, R: Array, p: Array, length: float) -> None:
    for column, color in zip(R.T, ("#e74c3c", "#2ecc71", "#3498db"), strict=True):
        axes.plot(*np.column_stack([p, p + length * column]), color=color, linewidth=1)


def _frame_view(axes: Any, points: Array) -> None:
    """Equal scales around everything; a plane mechanism is looked at squarely."""
    low, high = points.min(axis=0), points.max(axis=0)
    middle, reach = (low + high) / 2, 0.55 * max(float((high - low).max()), 1e-3)
    for set_limits, centre in zip((axes.set_xlim, axes.set_ylim, axes.set_zlim), middle, strict=True):
        set_limits(centre - reach, centre + reach)
    axes.set_box_aspect((1, 1, 1), zoom=1.12)
    axes.set_xlabel("x [m]")
    axes.set_ylabel("y [m]")
    axes.set_zlabel("z [m]")
    thin = (high - low) < 1e-6 * reach
    if thin[2]:
        axes.view_init(elev=90, azim=-90)
        axes.set_zticks([])
        axes.set_zlabel("")
    elif thin[1]:
        axes.view_init(elev=0, azim=-90)
        axes.set_yticks([])
        axes.set_ylabel("")
    else:
        axes.view_init(elev=22, azim=-55)


__all__ = ["draw", "draw_on", "outer_legend"]
