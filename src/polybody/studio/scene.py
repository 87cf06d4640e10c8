"""Where everything of a mechanism is in one configuration, in world axes: what drawings of it show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.mechanism import kinematics
from polybody.mechanism.mechanism import GROUND
from polybody.names import counted

if TYPE_CHECKING:
    from polybody.mechanism.mechanism import Mechanism, TreeJoint
    from polybody.model.model import Model

Array = np.ndarray

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


def title_of(model: Model) -> str:
    m = model.mechanism
    if not m.constrained:
        return f"{model.name}: {counted(model.nv, 'degree')} of freedom"
    loops = f", {len(m.closures)} loop{'s' * (len(m.closures) > 1)}" if m.closures else ""
    return f"{model.name}: {counted(model.nv, 'joint velocity', 'joint velocities')}{loops}"


class Scene:
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


__all__ = ["LOOKS", "Scene", "title_of"]
