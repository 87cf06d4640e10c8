"""Moving about on the manifold of configurations: neutral, random, along a velocity, and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from polybody.errors import InputError
from polybody.mechanism.mechanism import Mechanism, TreeJoint
from polybody.model.arguments import random_generator

Array = np.ndarray
#: arguments that are configurations
CONFIGURATIONS = ("q", "q0", "q1")
TOGETHER = 2**17  # states that are drawn together


def neutral(mechanism: Mechanism) -> Array:
    """Every joint's child at its origin."""
    parts = [joint.model.neutral() for joint in mechanism.independent_joints]
    return np.concatenate(parts) if parts else np.zeros(0)


def draw(mechanism: Mechanism, rng: Any, size: Any = None) -> Array:
    """Configurations within joint limits, quaternions uniformly; (nq,) or (*size, nq)."""
    rng = random_generator("rng", rng)
    shape = () if size is None else tuple(np.atleast_1d(size))
    if not all(isinstance(n, int | np.integer) and n >= 0 for n in shape):
        raise InputError(f"size is {size!r}, expected a whole number that is not negative, or several")
    return drawn(mechanism, rng, tuple(int(n) for n in shape))


def drawn(mechanism: Mechanism, rng: Any, whole: tuple[int, ...]) -> Array:
    """The same, (*whole, nq), by whatever draws as a `numpy.random.Generator` does."""
    count = math.prod(whole)
    result = np.empty((count, mechanism.nq))
    for start in range(0, count, TOGETHER):  # what is drawn on the way is as large as the joint's own numbers, twice
        part = result[start : start + TOGETHER]
        for joint in mechanism.independent_joints:
            part[:, joint.q] = _within(joint, joint.model.random(rng, (len(part),)), rng)
    return result.reshape(*whole, mechanism.nq)


def _within(joint: TreeJoint, q: Array, rng: np.random.Generator) -> Array:
    """q (..., nq) of one joint, drawn again where limits bound it: from one limit, as far as an unbounded draw is from
    zero."""
    if joint.nq != joint.nv:
        return q
    low, high = joint.limits.lower, joint.limits.upper
    both = np.isfinite(low) & np.isfinite(high)
    q = np.where(both, rng.uniform(np.where(both, low, 0), np.where(both, high, 1), size=q.shape), q)
    q = np.where(np.isfinite(low) & ~both & (q < low), low + np.abs(q), q)
    return np.where(np.isfinite(high) & ~both & (q > high), high - np.abs(q), q)


def normalized(mechanism: Mechanism, q: Array) -> Array:
    """q with its quaternions made unit; a zero quaternion is an error."""
    q = q.copy()
    for joint in with_quaternions(mechanism):
        part = q[..., joint.q]
        norms = np.linalg.norm(part[..., -4:], axis=-1, keepdims=True)
        if np.any(norms == 0):
            raise InputError(f"joint {joint.name!r}: its quaternion is zero; expected a unit quaternion (x, y, z, w)")
        part[..., -4:] /= norms
    return q


@lru_cache(maxsize=32)  # asked for with every state that is checked
def with_quaternions(mechanism: Mechanism) -> tuple[TreeJoint, ...]:
    return tuple(joint for joint in mechanism.independent_joints if joint.nq != joint.nv)


def unit_places(mechanism: Mechanism, arguments: Sequence[str]) -> list[tuple[int, int]]:
    """(argument, first of four elements) of every quaternion among arguments of these names."""
    firsts = [joint.q.stop - 4 for joint in with_quaternions(mechanism)]
    return [(k, first) for k, name in enumerate(arguments) if name in CONFIGURATIONS for first in firsts]


def require_unit(mechanism: Mechanism, name: str, q: Array) -> None:
    """Refuse quaternions that are no rotations: whose sum of squares is off one by more than 2e-6."""
    from polybody.kernels.units import first_off_unit

    for joint in with_quaternions(mechanism):
        row = first_off_unit(q, joint.q.stop - 4)
        if row >= 0:
            index = tuple(int(i) for i in np.unravel_index(row, q.shape[:-1])) if q.ndim > 1 else ()
            where = f"[{', '.join(map(str, index))}]" if index else ""
            length = float(np.linalg.norm(q[(*index, joint.q)][-4:]))
            raise InputError(
                f"{name}{where}: the quaternion of joint {joint.name!r} has length {length:.9g}, expected 1; "
                "model.normalize(q) makes it unit"
            )


__all__ = [
    "CONFIGURATIONS", "draw", "drawn", "neutral", "normalized", "require_unit", "unit_places", "with_quaternions",
]  # fmt: skip
