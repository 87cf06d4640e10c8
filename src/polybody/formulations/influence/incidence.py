"""Which velocity turns which screw: the constants behind every influence coefficient.

Let s_n be the screw of velocity n (a column of its joint's map) in world axes at a fixed point, and L_m the derivative
along velocity m. Moving an earlier joint carries a later screw along rigidly, so that

    L_m s_n = σ_mn [s_m, s_n]                                                                              (*)

with σ_mn = 1 if the joint of m lies between the ground and the joint of n, and 0 if not. Inside one joint the screws
are fixed in the child (they turn with it, σ = 1), except that in a compound joint the stages nearer to the child do not
move those further out (σ = 0 for stage(m) < stage(n)). A joint given child-to-parent carries its screws on the other
side, which makes each of these two cases the other. Freeman's "m < n" is (*) for single joints on one chain.

The velocity directions of a joint do not commute when they are quasi-velocities: [X_m, X_n] = Σ_k c^k_mn X_k. Inside
one stage the screws span a subalgebra, and its structure constants are these c.

Joints that share a slot (followers and their leader) have a screw each, so that σ and screws go by columns, joint after
joint; `folded` adds the columns of each slot: L of a slot is the sum of L over its columns, and so is its screw.
"""

from __future__ import annotations

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.algebra.spatial import bracket_matrix
from polybody.mechanism.joints import JointModel, MapJoint, ReversedJoint
from polybody.mechanism.mechanism import GROUND, Mechanism


def _forward(model: JointModel) -> JointModel:
    return model.joint if isinstance(model, ReversedJoint) else model


def _stage_slices(model: JointModel) -> list[slice]:
    model = _forward(model)
    return model.map.stage_slices() if isinstance(model, MapJoint) else [slice(0, model.nv)]


def _inside(model: JointModel) -> Array:
    """σ within one joint."""
    stage = np.concatenate([np.full(s.stop - s.start, k) for k, s in enumerate(_stage_slices(model))])
    nearer = stage[:, None] < stage[None, :]
    return nearer if isinstance(model, ReversedJoint) else ~nearer


def incidence(mechanism: Mechanism) -> Array:
    """σ over the columns of all joints, booleans: σ[m, n] says that column m carries the screw of column n."""
    columns = mechanism.columns
    sigma = np.zeros((len(mechanism.slots),) * 2, dtype=bool)
    for joint, own in zip(mechanism.joints, columns, strict=True):
        for i in mechanism.supports[joint.index][:-1]:
            sigma[columns[i], own] = True
        sigma[own, own] = _inside(joint.model)
    return sigma


def support(mechanism: Mechanism, body: int) -> Array:
    """The columns that move a body, in order."""
    if body == GROUND:
        return np.zeros(0, dtype=int)
    return np.concatenate([np.arange(mechanism.columns[i].start, mechanism.columns[i].stop)
                           for i in mechanism.supports[body]])


def folded(array: Array, slots: Array, size: int, indices: int, *, domain: Domain = FLOAT) -> Array:
    """The last `indices` axes, over columns in `slots`, summed to axes over `size` slots."""
    for axis in range(array.ndim - indices, array.ndim):
        columns = np.moveaxis(array, axis, 0)
        total = domain.zeros(size, *columns.shape[1:])
        for slot, column in zip(slots, columns, strict=True):
            total[slot] = total[slot] + column
        array = np.moveaxis(total, 0, axis)
    return array


def structure_constants(mechanism: Mechanism) -> Array:
    """c[k, m, n] with [X_m, X_n] = Σ_k c^k_mn X_k, for the velocity directions X of the configuration's manifold."""
    c = np.zeros((mechanism.nv,) * 3)
    for joint in mechanism.independent_joints:
        H = _map_columns(joint.model)
        for stage in _stage_slices(joint.model):
            left = np.linalg.pinv(H[:, stage])
            whole = slice(joint.v.start + stage.start, joint.v.start + stage.stop)
            for m in range(stage.start, stage.stop):
                brackets = left @ (bracket_matrix(H[:, m]) @ H[:, stage])
                brackets[np.abs(brackets) < 1e-15] = 0.0
                c[whole, joint.v.start + m, whole] = brackets
    return c


def _map_columns(model: JointModel) -> Array:
    model = _forward(model)
    if isinstance(model, MapJoint):
        return np.asarray(model.map.H, dtype=float)
    return np.asarray(model.constant_map, dtype=float)


__all__ = ["folded", "incidence", "structure_constants", "support"]
