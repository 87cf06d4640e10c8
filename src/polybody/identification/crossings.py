"""A joint at samples of its coordinates: what it carries of twists to the child and of inertias to the parent.

With (R, r) the placement of the child body in the parent, x_b = X x_a + H θ̇ and I_a = T I_b. Joints of one kind and map
have the same samples, which are drawn once; lengths are in units of `length`.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from polybody.algebra.domains import FLOAT, Domain
from polybody.formulations.denoc.regressor import ENTRIES
from polybody.late import dataclass
from polybody.mechanism.joints import FloatingJoint, JointModel, MapJoint, PlanarJoint, SphericalJoint
from polybody.mechanism.kinematics import Pose
from polybody.model.tracing import trace

Array = np.ndarray

#: rotations are taken as turns by right angles where they differ by no more: files write 1.5708
RIGHT_ANGLES = 1e-5
#: samples of one joint's coordinates: more than the functions in (3) of `row_space` of a joint with one coordinate (a
#: screw has fifteen), and more than the dimension of what any other joint's matrices T can span
FEW, MANY = 18, 128


@dataclass(frozen=True, eq=False)
class Across:
    """A joint at samples: X carries twists to the child, T inertias to the parent; H its map."""

    X: Array  # (samples, 6, 6)
    T: Array  # (samples, 10, 10)
    H: Array  # (samples, 6, r)


def crossings(model: JointModel | None, near: Pose, far: Pose | None, length: float) -> Across:
    """A joint between body frames at samples of its coordinates; lengths are in units of `length`.

    The joint's frames are placed in the parent body at `near`, in the child body at `far` (none: they are the body's).
    Without a model the frames are welded.
    """
    turned, place = squared_up(near[0]), np.asarray(near[1], dtype=float)
    turning, slide, H = _WELDED if model is None else _samples(model)
    R, r = turned @ turning, place + slide @ turned.T
    if far is not None:
        back = squared_up(far[0]).T
        H = twist_map(back, -back @ far[1]) @ H
        R = R @ back
        r = r - R @ far[1]
    H = np.concatenate([H[:, :3], H[:, 3:] / length], axis=1)
    return Across(twist_map(R, r / length), inertia_map(R, r / length), H)


_WELDED = np.eye(3)[None], np.zeros((1, 3)), np.zeros((1, 6, 0))
_KNOWN: dict[Hashable, tuple[Array, Array, Array]] = {}


def _samples(model: JointModel) -> tuple[Array, Array, Array]:
    """(turning, slide, joint map) at samples of the joint's coordinates."""
    key = _key(model)
    if key is None:
        return _drawn(model)
    if key not in _KNOWN:
        if len(_KNOWN) >= 64:
            _KNOWN.clear()
        _KNOWN[key] = _drawn(model)
    return _KNOWN[key]


def _key(model: JointModel) -> Hashable:
    """What joints have in common whose samples are the same; None where that is not known."""
    if type(model) in (SphericalJoint, FloatingJoint):
        return type(model)
    if type(model) in (MapJoint, PlanarJoint):
        assert isinstance(model, MapJoint)
        return type(model), np.asarray(model.map.H, dtype=float).tobytes(), model.map.stages
    return None


def _drawn(model: JointModel) -> tuple[Array, Array, Array]:
    """By the graph of the joint's text, which is read at all samples at once: one by one they took 60 ms of a Stewart
    platform."""
    if model.nq == 1:
        q = (-1.45 + 3.1 * np.arange(FEW) / FEW)[:, None]
    else:
        q = model.random(np.random.default_rng(20), (MANY,))

    def text(q: Array, *, domain: Domain = FLOAT) -> tuple[Array, Array, Array]:
        R, p = model.configuration(q, domain=domain)
        return R, p, model.velocity_map(q, domain=domain)

    shapes = ((3, 3), (3,), (6, model.nv))
    at_once = trace("crossing", [("q", model.nq)], text).evaluation(shapes)
    if at_once is not None:
        turning, slide, H = at_once(q)
        return turning, slide, H
    placed = [text(x) for x in q]  # an operation that cannot be read so
    turning, slide, H = (np.array([one[k] for one in placed], dtype=float) for k in range(3))
    return turning, slide, H


def inertia_map(R: Array, r: Array) -> Array:
    """T, (..., 10, 10): the parameters of a body about its own frame, as those about a frame it is placed in by (R, r).
    """
    mass, h, inertia = np.eye(10)[0], np.eye(10)[:, 1:4], np.zeros((10, 3, 3))
    for k, (i, j) in enumerate(ENTRIES):
        inertia[4 + k, i, j] = inertia[4 + k, j, i] = 1.0
    lead, back = R.shape[:-2], R.swapaxes(-1, -2)
    turned = h @ back  # first moments of the ten units, k
    rows = R @ inertia.swapaxes(0, 1).reshape(3, 30)  # R I_k, and then R I_k Rᵀ: as two products of matrices
    rows = np.moveaxis(rows.reshape(*lead, 3, 10, 3), -2, -3).reshape(*lead, 30, 3) @ back
    arm, moment = skews(r)[..., None, :, :], skews(turned[..., 1:4, :])  # others have no first moments
    moved = rows.reshape(*lead, 10, 3, 3)
    moved[..., 1:4, :, :] -= arm @ moment + moment @ arm
    moved[..., :1, :, :] -= arm @ arm
    first = turned + mass[:, None] * r[..., None, :]
    about = np.stack([moved[..., i, j] for i, j in ENTRIES], axis=-1)
    weight = np.broadcast_to(mass[:, None], (*first.shape[:-1], 1))
    return np.concatenate([weight, first, about], axis=-1).swapaxes(-1, -2)


def skews(x: Array) -> Array:
    """The matrices (..., 3, 3) of x ×."""
    found = np.zeros((*x.shape, 3))
    found[..., 2, 1], found[..., 0, 2], found[..., 1, 0] = x[..., 0], x[..., 1], x[..., 2]
    return found - found.swapaxes(-1, -2)


def squared_up(R: Array) -> Array:
    """The rotation with entries near 0 and ±1 made so, and orthogonal again."""
    whole = np.rint(R)
    near = np.where(np.abs(R - whole) < RIGHT_ANGLES, whole, R)
    u, _, vt = np.linalg.svd(near)
    return u @ vt


def twist_map(R: Array, r: Array) -> Array:
    """X, (..., 6, 6): a twist about a frame, as one about a frame that is placed in it by (R, r)."""
    X, back = np.zeros((*R.shape[:-2], 6, 6)), R.swapaxes(-1, -2)
    X[..., :3, :3] = X[..., 3:, 3:] = back
    X[..., 3:, :3] = -back @ skews(r)
    return X


__all__ = ["Across", "crossings", "inertia_map", "skews", "squared_up", "twist_map"]
