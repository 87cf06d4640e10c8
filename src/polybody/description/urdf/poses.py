"""URDF's `<origin xyz rpy>`: a translation and turns about fixed axes, R = Rz(yaw) Ry(pitch) Rx(roll)."""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.algebra.rotations import quaternion_matrix, rpy_matrix
from polybody.description.records import Array, frozen_array
from polybody.description.xml.fields import Fields

_IDENTITY = frozen_array(np.eye(4))


def read_origin(element: Any, owner: str, fields: Fields) -> Array:
    """The 4×4 pose of the element's <origin>; the identity where there is none."""
    origin = fields.child(element, "origin", owner=owner)
    if origin is None:
        return _IDENTITY
    xyz = fields.numbers(origin, "xyz", (0.0, 0.0, 0.0), owner=owner)
    pose = np.eye(4)
    pose[:3, 3] = xyz
    if origin.get("quat_xyzw") is not None:  # URDF 1.2
        pose[:3, :3] = _quaternion_rotation(origin, owner, fields)
    else:
        rpy = fields.numbers(origin, "rpy", (0.0, 0.0, 0.0), owner=owner)
        if any(rpy):
            pose[:3, :3] = rpy_matrix(np.array(rpy))
    pose.setflags(write=False)
    return pose


def _quaternion_rotation(origin: Any, owner: str, fields: Fields) -> Array:
    quaternion = np.array(fields.numbers(origin, "quat_xyzw", (0.0, 0.0, 0.0, 1.0), owner=owner))
    length = float(np.linalg.norm(quaternion))
    if abs(length - 1) > 1e-3:
        fields.problem(origin, f"{owner}: the quaternion quat_xyzw has length {length:.6g}, expected 1")
        return np.eye(3)
    return quaternion_matrix(quaternion / length)


__all__ = ["read_origin"]
