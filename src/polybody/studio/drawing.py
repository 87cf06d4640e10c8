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
from polybody.mechanism import kinematics
from polybody.mechanism.mechanism import GROUND
from polybody.model.arguments import state_array
from polybody.names import counted

if TYPE_CHECKING:
    from polybody.mechanism.mechanism import Mechanism, TreeJoint
    from polybody.model.model import Model

Array = np.ndarray
FORMATS = (".png", ".svg", ".pdf")

#: kind: (colour, marker)
LOOKS = {
    "revolute": ("#c0392b", "o"),
    "continuous": ("#c0392b", "o"),
    "prismatic": ("#2980b9", "s"),
    "screw": ("#8e44ad", "D"),
    "cylindrical": ("#16a085", "h"),
    "universal": ("#d35400", "P"),
    "spherical": ("#27ae60", "o"),
    "planar": ("#2c3e50", "^"),
    "floating": ("#7f8c8d", "*"),
    "custom": ("#b7950b", "X"),
    "fixed": ("#000000", "s"),
}


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


def drawing_svg(model: Model, q: Any = None, width: float = 3.6) -> str:
    """A small drawing as SVG text, for notebooks."""
    import io

    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, width), dpi=100)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 0.94), projection="3d", proj_type="ortho")
    draw_on(axes, model, model.assemble() if q is None else q, legend=False)
    axes.set_axis_off()
    axes.set_title("")
    data = io.StringIO()
    figure.savefig(data, format="svg", metadata={"Date": None})
    return data.getvalue()[data.getvalue().index("<svg") :]


def outer_legend(figure: Any, every: list[Any]) -> None:
    """One legend for all axes, at the right of the drawings and never over them."""
    handles: dict[str, Any] = {}
    for axes in every:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(handles.values(), handles.keys(), loc="center right", fontsize=8, frameon=False)


def scene_points(model: Model, q: Array) -> Array:
    """All points of a drawing: what its axes must hold."""
    return _Scene(model, q).points


def draw_on(axes: Any, model: Model, q: Array, *, points: Array | None = None, legend: bool = True) -> None:
    """Draw on 3-D axes of matplotlib; `points` are what the axes must hold, where several drawings share one camera."""
    scene = _Scene(model, q)
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
    _frame_view(axes, scene.points if points is None else points)
    axes.set_title(_title(model), parse_math=False)  # a name holds dollar signs
    if legend:
        axes.legend(loc="upper left", fontsize=8, framealpha=0.6)


def _title(model: Model) -> str:
    m = model.mechanism
    if not m.constrained:
        return f"{model.name}: {counted(model.nv, 'degree')} of freedom"
    loops = f", {len(m.closures)} loop{'s' * (len(m.closures) > 1)}" if m.closures else ""
    return f"{model.name}: {counted(model.nv, 'joint velocity', 'joint velocities')}{loops}"


class _Scene:
    """Where everything is, in world axes."""

    def __init__(self, model: Model, q: Array) -> None:
        m = model.mechanism
        poses = kinematics.body_poses(m, q)
        self.links: list[tuple[Array, Array]] = []
        self.ground: list[tuple[Array, Array]] = []
        self.offsets: list[tuple[Array, Array]] = []
        self.joints: list[tuple[Array, list[Array], list[Array]]] = []
        self.coms: list[Array] = []
        for joint in m.joints:
            R, p = (np.eye(3), np.zeros(3)) if joint.parent == GROUND else poses[joint.parent]
            place = R @ joint.position + p
            moved = poses[joint.index][1]
            if joint.kind not in ("floating", "planar"):  # nothing holds a free body
                (self.ground if joint.parent == GROUND else self.links).append((p, place))
                self.links.append((place, moved))  # what a sliding joint extends
            self.joints.append((place, *_axes(joint, q[joint.q], poses[joint.index][0])))
            body = m.bodies[joint.index]
            if body.mass > 0:
                com = moved + poses[joint.index][0] @ body.com
                self.coms.append(com)
                self.offsets.append((moved, com))
        named = {frame.name for frame in m.description.frames}
        self.frames = []
        for frame in m.frames:
            if frame.name in named:
                R, p = kinematics.frame_pose(frame, poses)
                self.frames.append((R, p))
                if frame.body != GROUND:
                    self.links.append((poses[frame.body][1], p))
        kinds = {loop.name: loop.kind for loop in m.description.loops}
        self.cuts: list[tuple[str, Array, Array]] = []
        for closure in m.closures:
            ends = [(frame.body, kinematics.frame_pose(frame, poses)[1]) for frame in (closure.a, closure.b)]
            kind = kinds[closure.name]
            self.cuts.append((kind if kind in LOOKS else "custom", ends[0][1], ends[1][1]))
            for body, p in ends:
                (self.ground if body == GROUND else self.links).append((poses[body][1] if body != GROUND else 0 * p, p))
        self.faces = _faces(m, poses)
        self.links = [(a, b) for a, b in self.links if np.linalg.norm(b - a) > 1e-9]
        ends = [end for line in (*self.links, *self.ground, *self.offsets) for end in line]
        self.points = np.array([np.zeros(3), *ends, *(place for place, _, _ in self.joints), *(p for _, p in poses)])
        self.size = float(max(np.ptp(self.points, axis=0).max(), 1e-3))


def _faces(m: Mechanism, poses: list[Any]) -> list[Array]:
    """Corners of each body that joins at least three others, in order around it."""
    corners: dict[int, list[Array]] = {joint.index: [] for joint in m.joints}
    for joint in m.joints:
        if joint.parent != GROUND:
            R, p = poses[joint.parent]
            corners[joint.parent].append(R @ joint.position + p)
        if joint.kind not in ("floating", "planar"):
            corners[joint.index].append(poses[joint.index][1])
    for closure in m.closures:
        for frame in (closure.a, closure.b):
            if frame.body != GROUND:
                corners[frame.body].append(kinematics.frame_pose(frame, poses)[1])
    looped = {frame.body for closure in m.closures for frame in (closure.a, closure.b)}
    faces = []
    for body, points in corners.items():
        if body in looped and len(points) >= 3:
            around = np.array(points) - np.mean(points, axis=0)
            _, _, plane = np.linalg.svd(around)
            faces.append(np.array(points)[np.argsort(np.arctan2(around @ plane[1], around @ plane[0]))])
    return faces


def _draw_faces(axes: Any, faces: list[Array]) -> None:
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    if faces:
        axes.add_collection3d(Poly3DCollection(faces, facecolor="#5dade2", edgecolor="#34495e", alpha=0.25))


def _axes(joint: TreeJoint, q: Array, R: Array) -> tuple[list[Array], list[Array]]:
    """Unit directions a joint turns about and slides along; balls and free bodies have all, and none is drawn."""
    turns: list[Array] = []
    slides: list[Array] = []
    if joint.kind in ("spherical", "floating", "planar"):
        return turns, slides
    H = joint.model.velocity_map(q)
    for column in H.T:
        angular = float(np.linalg.norm(column[:3]))
        part, into = (column[:3], turns) if angular > 1e-12 else (column[3:], slides)
        into.append(R @ part / np.linalg.norm(part))
    return turns, slides


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


__all__ = ["draw", "draw_on", "drawing_svg", "outer_legend", "scene_points"]
