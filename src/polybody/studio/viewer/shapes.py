"""What a body looks like: its meshes and primitive shapes, or where it has none, shapes made of its joints."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import url2pathname

import numpy as np

from polybody.description.records import Visual
from polybody.errors import warn
from polybody.mechanism import kinematics
from polybody.mechanism.mechanism import GROUND
from polybody.model.model import Model

Array = np.ndarray
GREY, STEEL = (148, 163, 184), (71, 105, 152)


@dataclass(frozen=True)
class Shape:
    """One thing to draw in a body's frame: `kind` is mesh, box, cylinder (along z) or sphere."""

    kind: str
    size: tuple[float, ...]
    pose: Array
    color: tuple[int, int, int] = GREY
    mesh: Any = None
    opacity: float | None = None


def body_shapes(model: Model, size: float) -> list[list[Shape]]:
    """For each body of the tree, and last for the ground, what to draw."""
    m = model.mechanism
    result: list[list[Shape]] = [[] for _ in range(len(m.bodies) + 1)]
    missing: list[str] = []
    for link in m.description.bodies:
        frame = m.frames[m.frame_index[link.name]]
        place = np.eye(4)
        place[:3, :3], place[:3, 3] = frame.rotation, frame.position
        for visual in link.visuals:
            shape = from_visual(visual, place, missing, m.description.source)
            if shape is not None:
                result[frame.body].append(shape)
    if missing:
        listed = ", ".join(missing[:3]) + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")
        warn(f"meshes that cannot be read are drawn as shapes: {listed}")
    made = made_shapes(model, size)
    return [own or stand_in for own, stand_in in zip(result, made, strict=True)]


def from_visual(visual: Visual, place: Array, missing: list[str], source: str | None) -> Shape | None:
    """A shape of the description; meshes that are not there are noted in `missing`."""
    pose = place @ np.asarray(visual.origin)
    color = GREY if visual.color is None else tuple(int(255 * c) for c in visual.color[:3])
    size = tuple(float(x) for x in np.atleast_1d(visual.size))
    if visual.shape != "mesh":
        return Shape(visual.shape, size, pose, color)  # type: ignore[arg-type]
    mesh = load_mesh(find_mesh(visual.mesh, source))
    if mesh is None:
        missing.append(str(visual.mesh))
        return None
    return Shape("mesh", size, pose, color, mesh)  # type: ignore[arg-type]


def find_mesh(name: str | None, source: str | None) -> str | None:
    """The file of a mesh: `package://p/rest` is looked for in folders above the model and in ROS_PACKAGE_PATH."""
    if name is None:
        return None
    name = url2pathname(name.removeprefix("file://")) if name.startswith("file://") else name
    above = [] if source is None else list(Path(source).resolve().parents)
    if not name.startswith("package://"):
        places = [Path(name), *([above[0] / name] if above else [])]
    else:
        rest = name.removeprefix("package://")
        roots = [Path(p) for p in os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep) if p]
        places = [root / rest for root in (*above, *roots)]
        places += [root / rest.partition("/")[2] for root in above if root.name == rest.partition("/")[0]]
    return next((str(place) for place in places if place.is_file()), None)


def load_mesh(path: str | None) -> Any:
    """A trimesh scene or mesh, None where the file is missing or damaged."""
    import trimesh

    if path is None or not os.path.isfile(path):
        return None
    try:
        return trimesh.load(path, process=False)
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


def made_shapes(model: Model, size: float) -> list[list[Shape]]:
    """Rods from each body's origin to what it carries, and a drum along each joint's axis."""
    m = model.mechanism
    rods = 0.022 * size
    result: list[list[Shape]] = [[] for _ in range(len(m.bodies) + 1)]
    for joint in m.joints:
        owner = joint.parent if joint.parent != GROUND else len(m.bodies)
        if joint.kind != "floating":
            add_rod(result[owner], np.zeros(3), joint.position, rods)
        result[joint.index].append(joint_shape(joint, rods))
    for body in m.bodies:
        if body.mass > 0:
            add_rod(result[body.index], np.zeros(3), body.com, 0.8 * rods)
    for frame in m.frames:
        if frame.body != GROUND and frame.name not in {b.name for b in m.description.bodies}:
            add_rod(result[frame.body], np.zeros(3), frame.position, 0.6 * rods)
    return result


def add_rod(shapes: list[Shape], start: Array, end: Array, radius: float) -> None:
    line = np.asarray(end) - np.asarray(start)
    length = float(np.linalg.norm(line))
    if length > 1e-6:
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = frame_along(line / length), (np.asarray(start) + np.asarray(end)) / 2
        shapes.append(Shape("cylinder", (radius, length), pose, STEEL))


def joint_shape(joint: Any, rods: float) -> Shape:
    H = joint.model.velocity_map(joint.model.neutral())
    pose = np.eye(4)
    if joint.nv == 1:
        turning = bool(np.any(H[:3, 0]))
        axis = H[:3, 0] if turning else H[3:, 0]
        pose[:3, :3] = frame_along(axis / np.linalg.norm(axis))
        if turning:
            return Shape("cylinder", (1.9 * rods, 5 * rods), pose, (192, 57, 43))
        return Shape("box", (3.2 * rods, 3.2 * rods, 6 * rods), pose, (41, 128, 185))
    return Shape("sphere", (2.4 * rods,), pose, (39, 174, 96))


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


__all__ = ["Shape", "body_shapes", "extent", "frame_along", "inertia_ellipsoid"]
