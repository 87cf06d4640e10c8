"""The named kinds of joint as instances of map matrices.

Columns run from the child outwards. With z the joint's axis and e_1, e_2 completing a right-handed frame (e_1, e_2, z):

    revolute, continuous  [z; 0]            prismatic  [0; z]             screw  [z; pitch z]
    cylindrical           [z; 0], [0; z]    universal  [y; 0], [z; 0] in stages (1, 1)
    planar                [z; 0], [0; e_1], [0; e_2]
"""

from __future__ import annotations

import numpy as np

from polybody.algebra.domains import FLOAT, Domain
from polybody.algebra.rotations import axis_angle_matrix, cross
from polybody.algebra.scalars import domain_of, numbers
from polybody.description.records import SIZES, Joint, Loop, joint_size
from polybody.errors import InputError
from polybody.mechanism.joints import FloatingJoint, JointModel, MapJoint, PlanarJoint, SphericalJoint
from polybody.mechanism.maps import JointMap, joint_kinematics

Array = np.ndarray


def plane_axes(axis: Array) -> tuple[Array, Array]:
    """e_1, e_2 with (e_1, e_2, axis) right-handed: x, y turned by the shortest rotation from z to the axis."""
    domain = domain_of(axis)
    if domain is not FLOAT:
        return _plane_axes_over(axis, domain)
    z = np.array([0.0, 0.0, 1.0])
    turn = cross(z, axis)
    sine, cosine = float(np.linalg.norm(turn)), float(axis[2])
    if sine < 1e-15:
        R = np.eye(3) if cosine > 0 else np.diag([1.0, -1.0, -1.0])
    else:
        R = axis_angle_matrix(turn / sine, float(np.arctan2(sine, cosine)))
    return R[:, 0], R[:, 1]


def _plane_axes_over(axis: Array, domain: Domain) -> tuple[Array, Array]:
    """The same in closed form: R = 1 + [t] + [t]²/(1 + z), t = z × axis; where the axis is −z, half a turn about x."""
    x, y, z = axis
    c = domain.const
    back = domain.less(z, c(-1 + 1e-15))
    s = c(1) / domain.where(back, c(1), z + c(1))
    e1 = [c(1) - x * x * s, -(x * y * s), -x]
    e2 = [-(x * y * s), domain.where(back, c(-1), c(1) - y * y * s), -y]
    return np.array(e1, dtype=domain.dtype), np.array(e2, dtype=domain.dtype)


def _column(angular: Array, linear: Array) -> Array:
    return np.concatenate([angular, linear])


def joint_model(record: Joint | Loop) -> JointModel:
    """The model of a joint or loop record that is not fixed."""
    kind, zero = record.kind, np.zeros(3)
    axis = numbers(record.axis)
    if kind == "spherical":
        return SphericalJoint()
    if kind == "floating":
        return FloatingJoint()
    if kind in ("revolute", "continuous"):
        columns, stages = [_column(axis, zero)], (1,)
    elif kind == "prismatic":
        columns, stages = [_column(zero, axis)], (1,)
    elif kind == "screw":
        if record.pitch is None:
            raise InputError(f"joint {record.name!r}: a screw needs its pitch, in metres per radian")
        columns, stages = [_column(axis, axis * record.pitch)], (1,)
    elif kind == "cylindrical":
        columns, stages = [_column(axis, zero), _column(zero, axis)], (2,)
    elif kind == "universal":
        columns, stages = [_column(np.array([0.0, 1, 0]), zero), _column(np.array([0.0, 0, 1]), zero)], (1, 1)
    elif kind == "planar":
        columns, stages = [_column(axis, zero), *(_column(zero, e) for e in plane_axes(axis))], (3,)
    elif kind == "custom":
        if record.map is None:
            raise InputError(f"joint {record.name!r}: a custom joint needs its map, a 6×r matrix")
        try:
            return MapJoint(kind, joint_kinematics(record.map, record.stages))
        except InputError as error:
            raise InputError(f"joint {record.name!r}: {error}") from None
    else:
        raise InputError(f"joint {record.name!r}: no kind {kind!r}; available: {', '.join(SIZES)} and custom")
    joint_map = JointMap(np.column_stack(columns), stages)
    return PlanarJoint(kind, joint_map) if kind == "planar" else MapJoint(kind, joint_map)


__all__ = ["SIZES", "joint_model", "joint_size", "plane_axes"]
