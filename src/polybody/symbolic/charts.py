"""The joints of a symbolic model: the paper's parameters for each, simple or compound.

A spherical joint becomes the simple joint H = [1; 0] with three angles, a floating one H = 1 with (ax, ay, az, x, y, z)
of (36): Euler angles and the position in the parent's axes. Every other joint already has its map's parameters. A joint
of several columns can be `simple`, one stage with quasi-velocities, if its columns are closed under the bracket, or
`compound`, one stage for each column, so that p = q̇; configuration and q are the same either way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from polybody.algebra.rotations import matrix_quaternion, matrix_rpy, quaternion_matrix
from polybody.errors import InputError
from polybody.mechanism.geared import GearedJoint
from polybody.mechanism.joints import JointModel, MapJoint, ReversedJoint
from polybody.mechanism.maps import JointMap, holonomy_problem
from polybody.mechanism.mechanism import GROUND, Mechanism, TreeJoint

Array = np.ndarray
CHOICES = ("simple", "compound")


def charts(mechanism: Mechanism, choice: str | Mapping[str, str] | None) -> list[MapJoint]:
    """For each joint its map joint, as walked forward. `choice` is for all joints that have both, or by joint name."""
    by_name = dict(choice) if isinstance(choice, Mapping) else {}
    unknown = set(by_name) - set(mechanism.joint_index)
    if unknown:
        known = ", ".join(mechanism.joint_index)
        raise InputError(f"no joint {sorted(unknown)[0]!r} to make simple or compound; available: {known}")
    result = []
    for joint in mechanism.joints:
        own = map_joint(joint.model)
        wanted = by_name.get(joint.name) or (choice if isinstance(choice, str) else None)
        if wanted is not None:
            own = _restaged(mechanism, joint, own, wanted, named=joint.name in by_name)
        result.append(own)
    return result


def map_joint(model: JointModel) -> MapJoint:
    """The joint in the chart of its map matrix; of a follower, its own."""
    if isinstance(model, GearedJoint):
        return map_joint(model.model)
    if isinstance(model, ReversedJoint):
        return map_joint(model.joint)
    if isinstance(model, MapJoint):
        return MapJoint(model.kind, model.map)
    assert model.constant_map is not None
    return MapJoint(model.kind, JointMap(np.asarray(model.constant_map, dtype=float), (model.nv,)))


def _restaged(mechanism: Mechanism, joint: TreeJoint, own: MapJoint, wanted: str, *, named: bool) -> MapJoint:
    if wanted not in CHOICES:
        raise InputError(
            f"joint {joint.name!r}: {wanted!r} is not a kind of joint map, expected 'simple' or 'compound'"
        )
    H, r = own.map.H, own.map.r
    stages = (r,) if wanted == "simple" else (1,) * r
    if stages == own.map.stages:
        return own
    if wanted == "simple":
        problem = holonomy_problem(H)
        if problem is not None:
            if not named:  # "simple" for all means: wherever it exists
                return own
            raise InputError(f"joint {joint.name!r} cannot be simple: {problem}; leave it compound")
    passive = joint.stiffness.any() or joint.damping.any() or joint.friction is not None
    if passive or mechanism.armature[joint.v].any():
        raise InputError(
            f"joint {joint.name!r} has stiffness, damping, friction or armature, given for the velocities of a "
            f"{'compound' if wanted == 'simple' else 'simple'} joint; they have no meaning for the {wanted} one"
        )
    return MapJoint(own.kind, JointMap(H, stages))


def as_walked(joint: TreeJoint, chart: MapJoint) -> JointModel:
    walked = ReversedJoint(chart) if joint.reversed else chart
    if isinstance(joint.model, GearedJoint):
        return GearedJoint(walked, joint.model.factor, joint.model.offset)
    return walked


def chart_rest(joint: TreeJoint) -> Array:
    """The rest configuration in the chart's parameters."""
    if joint.kind == "spherical":
        return matrix_rpy(quaternion_matrix(joint.rest))
    if joint.kind == "floating":
        return np.concatenate([matrix_rpy(quaternion_matrix(joint.rest[3:])), joint.rest[:3]])
    return joint.rest


def model_state(joint: TreeJoint, chart: MapJoint, q: Array, p: Array) -> tuple[Array, Array]:
    """The model's own (q, v) of a joint whose chart is at q with quasi-velocities p."""
    R, position = chart.configuration(q)
    if joint.kind == "spherical":
        own = matrix_quaternion(R)
    elif joint.kind == "floating":
        own = np.concatenate([position, matrix_quaternion(R)])
    else:
        own = q
    model = joint.model.joint if isinstance(joint.model, ReversedJoint) else joint.model
    H, H_chart = model.velocity_map(own), chart.velocity_map(q)
    if np.array_equal(H, H_chart):
        return own, p
    return own, np.linalg.lstsq(H, H_chart @ p, rcond=None)[0]


def parallel_pairs(mechanism: Mechanism, joints: list[MapJoint]) -> list[tuple[int, int]]:
    """Pairs of q numbers that turn about parallel axes with nothing else turning in between."""
    pairs: list[tuple[int, int]] = []
    last: list[tuple[int, Array] | None] = []
    for joint, chart in zip(mechanism.joints, joints, strict=True):
        before = None if joint.parent == GROUND else last[joint.parent]
        if before is not None:
            before = (before[0], joint.rotation.T @ before[1])
        H = chart.map.H
        order: Any = range(chart.nv) if joint.reversed else reversed(range(chart.nv))
        for k in order:
            axis = H[:3, k]
            size = np.linalg.norm(axis)
            if not size:
                continue
            index, unit = joint.v.start + k, axis / size
            if before is not None and before[0] != index and np.linalg.norm(np.cross(before[1], unit)) < 1e-12:
                pairs.append((before[0], index))
            before = (index, unit)
        last.append(before)
    return pairs


__all__ = ["CHOICES", "as_walked", "chart_rest", "charts", "map_joint", "model_state", "parallel_pairs"]
