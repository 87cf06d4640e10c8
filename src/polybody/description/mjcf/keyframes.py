"""Configurations with names as MJCF's keyframes.

A keyframe's qpos lists the file's joints as they stand in it, each body before what it carries. A free joint's numbers
are its place in the world, where ours are its place in the joint's origin; quaternions have their scalar first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.algebra.rotations import matrix_quaternion, quaternion_matrix
from polybody.description.mjcf.sayable import pieces
from polybody.description.records import Configuration, Description, Joint

Array = np.ndarray


def add_keyframes(root: Any, world: Any, description: Description) -> None:
    """One <key> for every configuration of the description; `world` holds the joints that were written."""
    import lxml.etree as etree

    written = [element.get("name") for element in world.iter("joint", "freejoint")]
    for named in description.configurations:
        frame = root.find("keyframe")
        frame = etree.SubElement(root, "keyframe") if frame is None else frame
        at = _places(description, named)
        qpos = [x for name in written for x in at[name]]
        etree.SubElement(frame, "key", name=named.name, qpos=" ".join(repr(float(x)) for x in qpos))


def _places(description: Description, named: Configuration) -> dict[str, list[float]]:
    """{name of a written joint: its numbers in qpos}."""
    said: dict[str, Any] = dict(named.joints)
    waiting = list(description.couplings)
    while waiting:  # followers of followers come after what they follow
        ready = [c for c in waiting if c.source_joint not in {other.joint for other in waiting}]
        for coupling in ready:
            said[coupling.joint] = (coupling.ratio * said.get(coupling.source_joint, (0.0,))[0] + coupling.offset,)
        waiting = [c for c in waiting if c not in ready] if ready else []
    found: dict[str, list[float]] = {}
    for joint in description.joints:
        if joint.kind in ("floating", "spherical"):
            found[joint.name] = _whole(joint, said.get(joint.name))
        else:
            made = pieces(joint)  # from the parent outwards; our numbers run the other way
            values = said.get(joint.name, (0.0,) * len(made))
            found |= {piece.name: [x] for piece, x in zip(made, reversed(values), strict=True)}
    return found


def _whole(joint: Joint, values: Any) -> list[float]:
    """qpos of a ball or a free joint."""
    if joint.kind == "spherical":
        x, y, z, w = (0.0, 0.0, 0.0, 1.0) if values is None else values
        return [w, x, y, z]
    T = np.eye(4)
    if values is not None:
        turn = np.asarray(values[3:], dtype=float)
        T[:3, 3], T[:3, :3] = values[:3], quaternion_matrix(turn / np.linalg.norm(turn))
    T = joint.origin @ T
    x, y, z, w = matrix_quaternion(T[:3, :3])
    return [*T[:3, 3].tolist(), w, x, y, z]


__all__ = ["add_keyframes"]
