"""The configuration of a joint that closes a loop, from the pose between its ports: of one state, or of many together.

Gauss-Newton on the joint's manifold: with the gap g from X(q) to the pose, a twist in b's axes, q moves along the step
δ that solves H δ = g. How often a joint went around its axis the pose does not say: a spring in it acts the lesser way.
"""

from __future__ import annotations

import numpy as np

from polybody.algebra.domains import Array, Domain
from polybody.algebra.many import Many, numbers, read, scalars
from polybody.algebra.rotations import rotation_log
from polybody.errors import InputError
from polybody.formulations.network.parts import JointPart

#: starts beside neutral, steps from each, and the gap that ends the search
STARTS, STEPS, FOUND = 5, 40, 1e-10


def fit_configuration(joint: JointPart, poses: Array, start: Array | None = None) -> tuple[Array, Array]:
    """(q, gap) with X(q) nearest to the poses (states, 12), R in rows and p: from several starts where one does not do.
    """
    assert joint.model is not None
    model, rng, states = joint.model, np.random.default_rng(0), len(poses)
    starts = [model.neutral() if start is None else start, *(model.random(rng) for _ in range(STARTS))]

    def gap(q: Array, pose: Array, *, domain: Domain) -> tuple[Array, Array]:
        R, p = model.configuration(q, domain=domain)
        turn = rotation_log(R.T @ pose[:9].reshape(3, 3), domain=domain)
        return np.concatenate([turn, R.T @ (pose[9:] - p)]), model.velocity_map(q, domain=domain)

    best, least, left = np.empty((states, model.nq)), np.full((states, 6), np.inf), np.arange(states)
    for begin in starts:
        q = np.tile(begin, (len(left), 1))
        for count in range(STEPS + 1):
            off, H = read(gap, (q, poses[left]), ((6,), (6, model.nv)))
            step = (np.linalg.pinv(H) @ off[:, :, None])[:, :, 0]
            if count == STEPS or np.abs(step).max(initial=0.0) < 1e-15:
                break
            (q,) = read(model.integrate, (q, step), ((model.nq,),))
        nearer = np.linalg.norm(off, axis=1) < np.linalg.norm(least[left], axis=1)
        best[left[nearer]], least[left[nearer]] = q[nearer], off[nearer]
        left = left[np.linalg.norm(least[left], axis=1) >= FOUND]
        if not len(left):
            break
    return best, least


def lesser_way(joint: JointPart, q: Array) -> Array:
    """q (..., nq) with turns of a sprung joint within half a turn of the spring's rest."""
    if joint.model is None or joint.model.constant_map is None or joint.nq != joint.nv or not joint.stiffness.any():
        return q
    angular, linear = np.abs(np.asarray(joint.model.constant_map, dtype=float)).reshape(2, 3, -1).max(axis=1)
    turns = (angular > 0) & (linear == 0)
    return q + turns * 2 * np.pi * np.round((np.asarray(joint.rest, dtype=float) - q) / (2 * np.pi))


def fit_many(joint: JointPart, X: Array, shift: Array) -> Array:
    """q for scalars of many states; an error where some pose is out of the joint's reach."""
    states = next(len(x.x) for x in (*X.ravel(), *shift, Many(np.zeros(1))) if type(x) is Many)
    q, gap = fit_configuration(joint, numbers([*X.ravel(), *shift], states, (12,)))
    if not np.linalg.norm(gap, axis=1).max() < FOUND:
        raise InputError(f"the configuration of joint {joint.name!r}, which closes a loop, is not found in some states")
    return scalars(lesser_way(joint, q))


__all__ = ["fit_configuration", "fit_many", "lesser_way"]
