"""The configuration of a joint that closes a loop, from the pose between its ports: of one state, or of many together.

Gauss-Newton on the joint's manifold: with the gap g from X(q) to the pose, a twist in b's axes, q moves along the step
δ that solves H δ = g. How often a joint went around its axis the pose does not say: a spring in it acts the lesser way.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.algebra.domains import Array, Domain
from polybody.algebra.many import Many, numbers, read, scalars
from polybody.algebra.rotations import rotation_log
from polybody.algebra.spatial import twist_log
from polybody.errors import InputError
from polybody.formulations.network.parts import JointPart

#: starts beside neutral, steps from each, and the gap that ends the search
STARTS, STEPS, FOUND = 5, 40, 1e-10


def fit_configuration(joint: JointPart, X: Array, shift: Array, start: Array | None = None) -> tuple[Array, Array]:
    """(q, gap) with X(q) nearest to the pose (X, shift): Gauss-Newton on the joint's manifold, from several starts."""
    assert joint.model is not None
    model, rng = joint.model, np.random.default_rng(0)
    starts = [model.neutral() if start is None else start, *(model.random(rng) for _ in range(STARTS))]
    best: tuple[Array, Array] | None = None
    for q in starts:
        for _ in range(STEPS):
            gap = _gap(model, q, X, shift)
            step = np.linalg.lstsq(model.velocity_map(q), gap, rcond=None)[0]
            if np.abs(step).max(initial=0.0) < 1e-15:
                break
            q = model.integrate(q, step)
        gap = _gap(model, q, X, shift)
        if best is None or np.linalg.norm(gap) < np.linalg.norm(best[1]):
            best = (q, gap)
        if np.linalg.norm(best[1]) < FOUND:
            break
    assert best is not None
    return best


def lesser_way(joint: JointPart, q: Array) -> Array:
    """q (..., nq) with turns of a sprung joint within half a turn of the spring's rest."""
    if joint.model is None or joint.model.constant_map is None or joint.nq != joint.nv or not joint.stiffness.any():
        return q
    angular, linear = np.abs(np.asarray(joint.model.constant_map, dtype=float)).reshape(2, 3, -1).max(axis=1)
    turns = (angular > 0) & (linear == 0)
    return q + turns * 2 * np.pi * np.round((np.asarray(joint.rest, dtype=float) - q) / (2 * np.pi))


def _gap(model: Any, q: Array, X: Array, shift: Array) -> Array:
    R, p = model.configuration(q)
    return twist_log(R.T @ X, R.T @ (shift - p))


def fit_many(joint: JointPart, X: Array, shift: Array) -> Array:
    """q of `fit_configuration` for scalars of many states; an error where some pose is out of the joint's reach."""
    assert joint.model is not None
    model, rng = joint.model, np.random.default_rng(0)
    states = next(len(x.x) for x in (*X.ravel(), *shift, Many(np.zeros(1))) if type(x) is Many)
    poses = np.concatenate([numbers(X, states, (9,)), numbers(shift, states, (3,))], axis=1)
    q, left = np.tile(model.neutral(), (states, 1)), np.arange(states)

    def gap(q: Array, pose: Array, *, domain: Domain) -> tuple[Array, Array]:
        R, p = model.configuration(q, domain=domain)
        turn = rotation_log(R.T @ pose[:9].reshape(3, 3), domain=domain)
        return np.concatenate([turn, R.T @ (pose[9:] - p)]), model.velocity_map(q, domain=domain)

    for start in (model.neutral(), *(model.random(rng) for _ in range(STARTS))):
        q[left] = start
        for _ in range(STEPS):
            off, H = read(gap, (q[left], poses[left]), ((6,), (6, model.nv)))
            step = (np.linalg.pinv(H) @ off[:, :, None])[:, :, 0]
            if np.abs(step).max(initial=0.0) < 1e-15:
                break
            (rate,) = read(lambda q, d, *, domain: model.rate(q, d, domain=domain), (q[left], step), ((model.nq,),))
            q[left] += rate
        off, _ = read(gap, (q[left], poses[left]), ((6,), (6, model.nv)))
        left = left[~(np.abs(off).max(axis=1) < FOUND)]
        if not len(left):
            return scalars(lesser_way(joint, q))
    raise InputError(f"the configuration of joint {joint.name!r}, which closes a loop, was not found in some states")


__all__ = ["fit_configuration", "fit_many", "lesser_way"]
