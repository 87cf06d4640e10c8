"""Another body as the base: the same motion in other coordinates (base-invariance of free systems).

A free-floating system has no body that is its base by nature. `rebase` joins another link to the ground by the floating
`root_joint` in place of the old one; every other joint keeps its q and v. With T(q) the matrix of v' = T v, forces go
tau = Tᵀ tau', and the accelerations a' = T a + Ṫ v.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from polybody.algebra.spatial import inverse_pose
from polybody.description.records import WORLD, Joint
from polybody.errors import InputError
from polybody.mechanism.mechanism import mechanism_from
from polybody.model.arguments import state_array
from polybody.model.batches import batch_shape
from polybody.model.model import Model
from polybody.names import listed, nearest
from polybody.quantities.frames import find_frame

Array = np.ndarray


class Rebased:
    """A model on another base, and the maps between the coordinates of the two."""

    def __init__(self, old: Model, model: Model, base: str, new_base: str, root: str) -> None:
        self.old, self.model = old, model
        self._base, self._new_base, self._root = base, new_base, root

    def forward(self, q: Any, v: Any = None) -> Any:
        """q (and v) of the old model as q (and v) of the new one."""
        return _carried(self.old, self.model, self._root, self._new_base, q, v)

    def backward(self, q: Any, v: Any = None) -> Any:
        """q (and v) of the new model as q (and v) of the old one."""
        return _carried(self.model, self.old, self._root, self._base, q, v)

    def matrix(self, q: Any) -> Array:
        """T(q), (..., nv, nv): v of the new model = T · v of the old one."""
        return _velocity_matrix(self.old, self.model, self._root, self._new_base, state_array("q", q, self.old.nq))


def _carried(source: Model, target: Model, root: str, base: str, q: Any, v: Any) -> Any:
    from scipy.spatial.transform import Rotation

    q = state_array("q", q, source.nq)
    result = np.empty((*q.shape[:-1], target.nq))
    theirs, ours = source.joint_slices(), target.joint_slices()
    for name, (columns, _) in ours.items():
        if name != root:
            result[..., columns] = q[..., theirs[name][0]]
    joint = target.mechanism.joints[target.mechanism.joint_index[root]]
    placed = np.eye(4)
    placed[:3, :3], placed[:3, 3] = joint.rotation, joint.position
    pose = inverse_pose(placed) @ source.pose(q, base)
    part = result[..., ours[root][0]]
    part[..., :3] = pose[..., :3, 3]
    turns = Rotation.from_matrix(pose[..., :3, :3].reshape(-1, 3, 3)).as_quat().reshape((*q.shape[:-1], 4))
    part[..., 3:] = np.where(turns[..., 3:] < 0, -turns, turns)
    if v is None:
        return result
    v = state_array("v", v, source.nv)
    T = _velocity_matrix(source, target, root, base, q)
    lead = batch_shape([q, v])
    return np.broadcast_to(result, (*lead, target.nq)).copy(), (T @ v[..., None])[..., 0]


def _velocity_matrix(source: Model, target: Model, root: str, base: str, q: Array) -> Array:
    T = np.zeros((*q.shape[:-1], target.nv, source.nv))
    theirs, ours = source.joint_slices(), target.joint_slices()
    for name, (_, columns) in ours.items():
        if name != root:
            rows, size = np.arange(columns.start, columns.stop), columns.stop - columns.start
            T[..., rows, np.arange(theirs[name][1].start, theirs[name][1].start + size)] = 1.0
    T[..., ours[root][1], :] = source.jacobian(q, base, axes="frame")
    return T


def rebased(model: Model, body: str) -> Rebased:
    """The model with the link `body` as its base."""
    description = model.description
    links = [b.name for b in description.bodies]
    if body not in links:
        raise InputError(f"no body {body!r}{nearest(body, links)}; available: {listed(links)}")
    root = _floating_root(model, body)
    new = Joint(root.name, "floating", WORLD, body, active=root.active, source=root.source)
    joints = tuple(new if joint is root else joint for joint in description.joints)
    moved = Model(mechanism_from(dataclasses.replace(description, joints=joints)))
    return Rebased(model, moved, root.child, body, root.name)


def _floating_root(model: Model, body: str) -> Joint:
    """The joint that sets the tree of `body` free."""
    frame = find_frame(model.mechanism, body)
    if frame.body < 0:
        raise InputError(f"{body!r} is fixed to the ground, so it cannot become a free base")
    tree = model.mechanism.joints[model.mechanism.supports[frame.body][0]]
    root = tree.record
    if root.kind != "floating" or root.parent != WORLD:
        raise InputError(
            f"{body!r} stands on joint {root.name!r} ({root.kind}); only a free (floating) system can take another "
            "base, see base='floating'"
        )
    held = [key for key in ("stiffness", "damping", "armature", "friction", "limits") if getattr(root, key) is not None]
    if held:
        raise InputError(
            f"joint {root.name!r} has {', '.join(held)}, which hold the base {root.child!r} and no other body; a "
            "flexible base cannot be exchanged"
        )
    return root


__all__ = ["Rebased", "rebased"]
