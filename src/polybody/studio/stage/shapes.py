"""What a body looks like: its meshes and primitive shapes, or where it has none, shapes made of its joints.

Colours: what the file states; else a colour per body from PALETTE. Made shapes show the joint in the colour of its
kind (KINDS). A mesh that cannot be read is a box with its name on it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from polybody.description.records import Visual
from polybody.errors import InputError, warn
from polybody.mechanism import kinematics
from polybody.mechanism.mechanism import GROUND
from polybody.model.model import Model
from polybody.studio.stage import collada
from polybody.studio.stage.collada import Corners

Array = np.ndarray
GREY = (168, 178, 192)
#: colours of bodies without one of their own, in their order
PALETTE = (
    (84, 118, 168), (214, 142, 78), (96, 150, 118), (178, 96, 104), (128, 112, 170), (150, 118, 96), (196, 132, 172),
    (122, 134, 150), (168, 164, 84), (88, 158, 172),
)  # fmt: skip
#: colours of joints by kind, on the page and in rendered pictures as in drawings
KINDS = {
    "revolute": (192, 57, 43), "continuous": (192, 57, 43), "prismatic": (41, 128, 185), "screw": (142, 68, 173),
    "cylindrical": (22, 160, 133), "universal": (211, 84, 0), "spherical": (39, 174, 96), "planar": (44, 62, 80),
    "floating": (127, 140, 141), "custom": (183, 149, 11), "fixed": (60, 60, 60),
}  # fmt: skip


@dataclass(frozen=True)
class Shape:
    """One thing to draw in a body's frame: `kind` is mesh, box, cylinder (along z), sphere or plate.

    A plate's size is its thickness and the corners of its outline in the plane z = 0. `stated` says that the colour is
    the file's. `label` is what to write beside it: the mesh that it represents. `joint` marks the shape of a joint.
    """

    kind: str
    size: tuple[float, ...]
    pose: Array
    color: tuple[int, int, int] = GREY
    mesh: Any = None
    stated: bool = False
    label: str = ""
    joint: str = ""


def body_shapes(model: Model, size: float) -> list[list[Shape]]:
    """For each body of the tree, and last for the ground, what to draw."""
    m = model.mechanism
    result: list[list[Shape]] = [[] for _ in range(len(m.bodies) + 1)]
    missing: list[str] = []
    for link in m.description.bodies:
        frame = m.frames[m.frame_index[link.name]]
        place = np.eye(4)
        place[:3, :3], place[:3, 3] = frame.rotation, frame.position
        result[frame.body] += [from_visual(v, place, missing, m.description.source, size) for v in link.visuals]
    if missing:
        listed = ", ".join(missing[:3]) + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")
        warn(f"unreadable meshes are drawn as labelled boxes: {listed}")
    made = made_shapes(model, size, {index for index, own in enumerate(result) if not own})
    return [own or stand_in for own, stand_in in zip(result, made, strict=True)]


def from_visual(visual: Visual, place: Array, missing: list[str], source: str | None, size: float) -> Shape:
    """A shape of the description; a mesh that is not there is a box with its name, noted in `missing`."""
    pose = place @ np.asarray(visual.origin)
    stated = visual.color is not None
    color = GREY if visual.color is None else tuple(int(255 * min(max(c, 0.0), 1.0)) for c in visual.color[:3])
    sides = tuple(float(x) for x in np.atleast_1d(visual.size))
    if visual.shape != "mesh":
        return Shape(visual.shape, sides, pose, color, stated=stated)  # type: ignore[arg-type]
    mesh = load_mesh(find_mesh(visual.mesh, source))
    if mesh is None:
        missing.append(str(visual.mesh))
        name = str(visual.mesh).replace("\\", "/").rsplit("/", 1)[-1]
        return Shape("box", (0.08 * size,) * 3, pose, (220, 120, 60), stated=True, label=f"{name} is missing")
    return Shape("mesh", sides, pose, color, mesh, stated)  # type: ignore[arg-type]


def find_mesh(name: str | None, source: str | None) -> str | None:
    """The file of a mesh: `package://p/rest` is looked for in folders above the model and in ROS_PACKAGE_PATH."""
    if name is None:
        return None
    if name.startswith("file://"):
        from urllib.request import url2pathname  # with all of HTTP: 40 ms that most models can do without

        name = url2pathname(name.removeprefix("file://"))
    above = [] if source is None else _above(os.path.realpath(source))
    if not name.startswith("package://"):
        places = [name, *([os.path.join(above[0], name)] if above else [])]
    else:
        rest = name.removeprefix("package://")
        package, _, inside = rest.partition("/")
        roots = [p for p in os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep) if p]
        places = [os.path.join(root, rest) for root in (*above, *roots)]
        places += [os.path.join(root, inside) for root in above if os.path.basename(root) == package]
    return next((place for place in places if os.path.isfile(place)), None)


def _above(path: str) -> list[str]:
    """The folders that a file is in, the nearest first: `Path.parents` takes ten times as long."""
    found = [os.path.dirname(path)]
    while (further := os.path.dirname(found[-1])) != found[-1]:
        found.append(further)
    return found


def read_stl(path: str) -> Corners | None:
    """The triangles of a binary .stl file (80 bytes, their number, 50 bytes each), None where it has another length."""
    data = np.fromfile(path, dtype=np.uint8)
    count = int(data[80:84].view("<u4")[0]) if len(data) >= 84 else 0
    if not count or len(data) != 84 + 50 * count:
        return None
    rows = data[84:].reshape(count, 50)[:, 12:48]  # after the normal
    vertices = np.ascontiguousarray(rows).view("<f4").reshape(-1, 3).astype(float)
    return Corners(vertices, np.arange(3 * count).reshape(-1, 3)) if np.isfinite(vertices).all() else None


def load_mesh(path: str | None) -> Any:
    """A mesh of a binary .stl or a .dae file, a trimesh scene or mesh of others, None if it is missing or damaged."""
    if path is None or not os.path.isfile(path):
        return None
    scale = None
    try:
        found = read_stl(path) if path.lower().endswith(".stl") else None
        if path.lower().endswith(".dae"):
            found = collada.read(path)
            scale = collada.unit(path) if found is None else None
    except InputError as error:
        warn(str(error))
        return None
    if found is not None:
        return found
    import trimesh

    try:
        mesh: Any = trimesh.load(path, process=False)
        return mesh if scale in (None, 1.0) else mesh.to_geometry().apply_scale(scale)
    except Exception as error:  # readers of many formats raise many things; the caller draws a shape and says so
        warn(f"{path}: {error}")
        return None


def extent(model: Model, configurations: Array) -> tuple[Array, float]:
    """(middle, largest side) of the box around all joints, mass centres and frames in these configurations."""
    m = model.mechanism
    points = []
    for q in np.atleast_2d(configurations):
        poses = kinematics.body_poses(m, q)
        points += [p for _, p in poses]
        points += [p + R @ body.com for body, (R, p) in zip(m.bodies, poses, strict=True)]
        points += [kinematics.frame_pose(frame, poses)[1] for frame in m.frames]
    low, high = np.min(points, axis=0), np.max(points, axis=0)
    return (low + high) / 2, max(0.05, float(np.max(high - low)))


def made_shapes(model: Model, size: float, wanted: set[int]) -> list[list[Shape]]:
    """Of the bodies wanted: rods from the origin to what one carries, a plate where it joins three others, a marker at
    each joint."""
    m = model.mechanism
    rods = 0.02 * size
    ground = len(m.bodies)
    result: list[list[Shape]] = [[] for _ in range(ground + 1)]
    ends: list[list[Array]] = [[] for _ in range(ground + 1)]
    for joint in m.joints:
        if joint.kind != "floating":
            ends[ground if joint.parent == GROUND else joint.parent].append(np.asarray(joint.position))
        if joint.index not in wanted:
            continue
        result[joint.index].append(joint_shape(joint, rods))
        if joint.kind == "prismatic":
            add_guide(result[joint.index], joint, rods, size)
    for closure in m.closures:
        for frame in (closure.a, closure.b):
            ends[ground if frame.body == GROUND else frame.body].append(np.asarray(frame.position))
    for body in m.bodies:
        if body.mass > 0:
            ends[body.index].append(np.asarray(body.com))
    links = {b.name for b in m.description.bodies}
    for frame in m.frames:
        if frame.body != GROUND and frame.name not in links:
            ends[frame.body].append(np.asarray(frame.position))
    for index, points in enumerate(ends[:-1]):
        if index not in wanted:
            continue
        color = PALETTE[index % len(PALETTE)]
        add_plate(result[index], [np.zeros(3), *points] if m.joints[index].kind != "floating" else points, rods, color)
        for point in points:
            add_rod(result[index], np.zeros(3), point, rods, color)
    for point in ends[ground]:
        result[ground].append(pedestal(point, rods))
    return result


def add_guide(shapes: list[Shape], joint: Any, rods: float, size: float) -> None:
    """The rod that a slide draws out of its joint, as long as its travel."""
    travel = float(joint.limits.upper[0])
    if not (np.isfinite(travel) and travel > 0):
        travel = 0.35 * size
    axis = joint.model.velocity_map(joint.model.neutral())[3:, 0]
    add_rod(shapes, np.zeros(3), -travel * axis / np.linalg.norm(axis), 0.7 * rods, KINDS["prismatic"])


def pedestal(point: Array, rods: float) -> Shape:
    pose = np.eye(4)
    pose[:3, 3] = point
    return Shape("sphere", (1.5 * rods,), pose, (70, 78, 92))


def add_plate(shapes: list[Shape], points: list[Array], rods: float, color: tuple[int, int, int]) -> None:
    """A thin plate over points that span a plane: the hull of at least three that are apart."""
    corners = np.array(sorted(set(map(tuple, np.round(points, 9) + 0.0))))  # `np.unique` imports masked arrays
    if len(corners) < 3:
        return
    middle = corners.mean(axis=0)
    _, spread, axes = np.linalg.svd(corners - middle)
    if spread[1] < 0.05 * spread[0] or (len(spread) > 2 and spread[2] > 0.05 * spread[0]):
        return
    axes[2] = np.cross(axes[0], axes[1])
    flat = (corners - middle) @ axes[:2].T
    outline = hull(flat)
    if len(outline) < 3:  # on one line, after all
        return
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = axes.T, middle
    shapes.append(Shape("plate", (0.9 * rods, *outline.ravel()), pose, color))


def hull(points: Array) -> Array:
    """The corners of the convex hull of points in a plane, (n, 2), counter-clockwise: Andrew's two chains.

    SciPy's is ready when 0.4 s of imports are over.
    """
    least = 1e-12 * float(np.ptp(points, axis=0).max()) ** 2

    def chain(ordered: Array) -> list[Array]:
        kept: list[Array] = []
        for p in ordered:
            while len(kept) > 1 and np.linalg.det([kept[-1] - kept[-2], p - kept[-2]]) <= least:
                kept.pop()
            kept.append(p)
        return kept[:-1]

    order = points[np.lexsort((points[:, 1], points[:, 0]))]
    return np.array([*chain(order), *chain(order[::-1])])


def add_rod(shapes: list[Shape], start: Array, end: Array, radius: float, color: tuple[int, int, int]) -> None:
    """A rod with round ends."""
    line = np.asarray(end) - np.asarray(start)
    length = float(np.linalg.norm(line))
    if length > 1e-6:
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = frame_along(line / length), (np.asarray(start) + np.asarray(end)) / 2
        shapes.append(Shape("cylinder", (radius, length), pose, color))
        for place in (start, end):
            pose = np.eye(4)
            pose[:3, 3] = place
            shapes.append(Shape("sphere", (radius,), pose, color))


def joint_shape(joint: Any, rods: float) -> Shape:
    H = joint.model.velocity_map(joint.model.neutral())
    pose, color = np.eye(4), KINDS.get(joint.kind, KINDS["custom"])
    if joint.nv == 1:
        turning = bool(np.any(H[:3, 0]))
        axis = H[:3, 0] if turning else H[3:, 0]
        pose[:3, :3] = frame_along(axis / np.linalg.norm(axis))
        if turning:
            return Shape("cylinder", (1.8 * rods, 4.4 * rods), pose, color, joint=joint.name)
        return Shape("box", (2.8 * rods, 2.8 * rods, 5 * rods), pose, color, joint=joint.name)
    return Shape("sphere", (2.2 * rods,), pose, color, joint=joint.name)


def frame_along(direction: Array) -> Array:
    """A rotation whose z axis is the direction."""
    helper = np.array([1.0, 0, 0]) if abs(direction[0]) < 0.9 else np.array([0, 1.0, 0])
    x = np.cross(helper, direction)
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(direction, x), direction])


def inertia_ellipsoid(body: Any) -> tuple[Array, Array] | None:
    """(half axes, pose) of the solid ellipsoid with the body's mass and inertia."""
    if body.mass <= 0:
        return None
    moments, axes = np.linalg.eigh(body.inertia)
    squares = 2.5 / body.mass * (moments.sum() - 2 * moments)
    if not np.all(np.isfinite(squares)) or moments.max() <= 0:
        return None
    axes[:, 2] *= np.sign(np.linalg.det(axes))
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = axes, body.com
    return np.sqrt(np.clip(squares, 1e-8, None)), pose


__all__ = ["KINDS", "PALETTE", "Shape", "body_shapes", "extent", "find_mesh", "frame_along", "inertia_ellipsoid"]
