"""MuJoCo's joints as ours.

The joints of one MuJoCo body act in turn, the first nearest the parent; each has an axis a and an anchor p in the
body's frame, and moves by q − qpos0 (`ref`). With T_0 the body's place in its parent,

    T = T_0 · exp(S_1 (q_1 − ref_1)) · exp(S_2 (q_2 − ref_2)) ⋯       S = [a; p × a] (hinge),  [0; a] (slide)

One hinge through the origin is `revolute`, one slide `prismatic`. Any other set of hinges and slides is one compound
`custom` joint: our columns run from the child outwards, so they, q and the joint's name ("c+b+a" for the file's joints
a, b, c) run against the file's order. Our q is MuJoCo's minus its `ref`. Where a compound joint cannot be (a ball among
the joints, columns that depend on each other) the joints form a chain of bodies without mass. A ball off the origin
turns such a body at its anchor, to which the body itself is fixed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polybody.algebra.rotations import quaternion_matrix
from polybody.description import shapes
from polybody.description.records import Array, Body, Joint, Limits, frozen_array
from polybody.errors import InputError

FREE, BALL, SLIDE, HINGE = range(4)


@dataclass(frozen=True)
class MjJoint:
    """What MuJoCo says of one joint, in our order and signs."""

    name: str
    type: int
    anchor: Array
    axis: Array
    stiffness: float
    rest: Array  # our q where the spring is slack
    damping: Array
    friction: Array
    armature: Array
    lower: float
    upper: float
    effort: float
    source: str | None

    @property
    def column(self) -> Array:
        """Its twist in body axes at the body's origin."""
        if self.type == SLIDE:
            return np.concatenate([np.zeros(3), self.axis])
        return np.concatenate([self.axis, np.cross(self.anchor, self.axis)])


def xyzw(quaternion: Array) -> Array:
    """MuJoCo's (w, x, y, z) in our order."""
    return np.array([*quaternion[1:], quaternion[0]])


def place(position: Array, quaternion: Array) -> Array:
    """The 4×4 pose of MuJoCo's position and quaternion (w, x, y, z)."""
    pose = np.eye(4)
    unit = np.asarray(quaternion, dtype=float) / np.linalg.norm(quaternion)
    pose[:3, :3] = quaternion_matrix(xyzw(unit))
    pose[:3, 3] = position
    return pose


def shift(position: Array) -> Array:
    pose = np.eye(4)
    pose[:3, 3] = position
    return pose


def read_joint(model: Any, j: int, name: str, source: str | None) -> MjJoint:
    """Joint j of a compiled model."""
    kind, qpos, dof = int(model.jnt_type[j]), int(model.jnt_qposadr[j]), int(model.jnt_dofadr[j])
    nv = {FREE: 6, BALL: 3}.get(kind, 1)
    dofs = slice(dof, dof + nv)
    if hasattr(model, "jnt_stiffnesspoly") and np.any(model.jnt_stiffnesspoly[j]):  # since MuJoCo 4
        raise InputError(f"{source or name}: joint {name!r} has a spring that is not linear, which is not read")
    stiffness = float(model.jnt_stiffness[j])
    if kind == FREE and stiffness:
        raise InputError(f"{source or name}: free joint {name!r} has a stiffness, which is not read")
    lower, upper, effort = -np.inf, np.inf, np.inf
    rest = np.zeros(1)
    if kind in (SLIDE, HINGE):
        reference = float(model.qpos0[qpos])
        rest = np.array([float(model.qpos_spring[qpos]) - reference])
        if model.jnt_limited[j]:
            lower, upper = (float(x) - reference for x in model.jnt_range[j])
        if model.jnt_actfrclimited[j]:
            effort = float(np.abs(model.jnt_actfrcrange[j]).max())
    elif kind == BALL:
        rest = xyzw(model.qpos_spring[qpos : qpos + 4])
    order = [3, 4, 5, 0, 1, 2] if kind == FREE else list(range(nv))  # MuJoCo's free joint: [linear; angular]

    def numbers(values: Array) -> Array:
        return np.array(values[dofs], dtype=float)[order]

    return MjJoint(
        name=name,
        type=kind,
        anchor=np.array(model.jnt_pos[j]),
        axis=np.array(model.jnt_axis[j]),
        stiffness=stiffness,
        rest=rest,
        damping=numbers(model.dof_damping),
        friction=numbers(model.dof_frictionloss),
        armature=numbers(model.dof_armature),
        lower=lower,
        upper=upper,
        effort=effort,
        source=source,
    )


def connect(joints: list[MjJoint], parent: str, child: str, T0: Array) -> tuple[list[Body], list[Joint]]:
    """Our joints, and the bodies without mass they need, for one MuJoCo body and its joints."""
    if len(joints) == 1:
        return _one(joints[0], parent, child, T0)
    if all(j.type in (SLIDE, HINGE) for j in joints):
        outwards = joints[::-1]
        H = np.column_stack([j.column for j in outwards])
        if not np.isfinite(H).all():
            raise InputError(f"{joints[0].source or child}: joints of body {child!r} have axes or places that overflow")
        if H.shape[1] <= 6 and np.linalg.matrix_rank(H) == H.shape[1]:
            return [], [_compound(outwards, H, parent, child, T0)]
    bodies: list[Body] = []
    result: list[Joint] = []
    for k, joint in enumerate(joints):
        near = parent if k == 0 else f"{child}@{joints[k - 1].name}"
        far = child if k == len(joints) - 1 else f"{child}@{joint.name}"
        more_bodies, more_joints = _one(joint, near, far, T0 if k == 0 else np.eye(4))
        bodies += more_bodies + ([Body(far, source=joint.source)] if far != child else [])
        result += more_joints
    return bodies, result


def _one(joint: MjJoint, parent: str, child: str, T0: Array) -> tuple[list[Body], list[Joint]]:
    off_origin = bool(np.any(joint.anchor))
    if joint.type == FREE:
        return [], [_record([joint], "floating", parent, child, np.eye(4))]
    if joint.type == SLIDE:
        return [], [_record([joint], "prismatic", parent, child, T0, axis=joint.axis)]
    if joint.type == HINGE and not off_origin:
        return [], [_record([joint], "revolute", parent, child, T0, axis=joint.axis)]
    if joint.type == HINGE:
        return [], [_compound([joint], joint.column[:, None], parent, child, T0)]
    if not off_origin:
        return [], [_record([joint], "spherical", parent, child, T0)]
    anchor = f"{child}@{joint.name}_anchor"
    weld = Joint(f"{joint.name}_anchor", "fixed", anchor, child, origin=frozen_array(shift(-joint.anchor)),
                 source=joint.source)
    turn = _record([joint], "spherical", parent, anchor, T0 @ shift(joint.anchor))
    return [Body(anchor, source=joint.source)], [turn, weld]


def _compound(outwards: list[MjJoint], H: Array, parent: str, child: str, T0: Array) -> Joint:
    stages = (1,) * len(outwards)
    return _record(outwards, "custom", parent, child, T0, map=frozen_array(H), stages=stages)


def _record(joints: list[MjJoint], kind: str, parent: str, child: str, origin: Array, **more: Any) -> Joint:
    """One joint record from the numbers of all its MuJoCo joints."""
    stiffness = np.concatenate([np.full(j.damping.size, j.stiffness) for j in joints])
    damping, friction, armature = (
        np.concatenate([getattr(j, key) for j in joints]) for key in ("damping", "friction", "armature")
    )
    rest = np.concatenate([j.rest for j in joints])
    if "axis" in more:
        more["axis"] = frozen_array(more["axis"])
    return Joint(
        name="+".join(j.name for j in joints),
        kind=kind,
        parent=parent,
        child=child,
        origin=frozen_array(origin),
        stiffness=frozen_array(np.diag(stiffness)) if stiffness.any() else None,
        damping=frozen_array(np.diag(damping)) if damping.any() else None,
        friction=shapes.friction("frictionloss", friction, len(friction)),
        armature=frozen_array(armature) if armature.any() else None,
        rest=frozen_array(rest) if stiffness.any() else None,
        limits=_limits(joints),
        source=joints[0].source,
        **more,
    )


def _limits(joints: list[MjJoint]) -> Limits | None:
    if any(j.type in (FREE, BALL) for j in joints):
        return None
    lower, upper, effort = ([getattr(j, key) for j in joints] for key in ("lower", "upper", "effort"))
    if not np.isfinite([*lower, *upper, *effort]).any():
        return None
    return Limits(*(frozen_array(x) for x in (lower, upper, np.full(len(joints), np.inf), effort)))


__all__ = ["BALL", "FREE", "HINGE", "SLIDE", "MjJoint", "connect", "place", "read_joint", "shift", "xyzw"]
