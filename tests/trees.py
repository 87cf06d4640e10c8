"""A random mechanism in a random state, and the scale that tolerances are relative to."""

from __future__ import annotations

import numpy as np

from mechanisms import random_tree, with_followers
from polybody.mechanism import mechanism_from
from polybody.mechanism.couplings import joint_positions, joint_velocities
from polybody.mechanism.mechanism import Mechanism

Array = np.ndarray


def random_state(
    seed: int, n: int | None = None, *, least: int = 3, most: int = 8, **options: object
) -> tuple[Mechanism, Array, Array, Array, np.random.Generator]:
    """(mechanism, q, v, a, rng) of a tree with n joints, or between `least` and `most`; options go to `random_tree`."""
    rng = np.random.default_rng(seed)
    count = n or int(rng.integers(least, most + 1))
    mechanism = mechanism_from(random_tree(rng, count, **options))  # type: ignore[arg-type]
    q = np.concatenate([joint.model.random(rng) for joint in mechanism.independent_joints])
    v, a = rng.normal(size=(2, mechanism.nv))
    return mechanism, q, v, a, rng


def coupled_state(
    seed: int, *, least: int = 4, most: int = 8, **options: object
) -> tuple[Mechanism, Array, Array, Array, np.random.Generator]:
    """As `random_state`, of a tree with followers; motors and a transmission among its joints."""
    rng = np.random.default_rng(seed)
    description = random_tree(rng, int(rng.integers(least, most + 1)), motors=0.7, **options)  # type: ignore[arg-type]
    mechanism = mechanism_from(with_followers(rng, description))
    q = np.concatenate([joint.model.random(rng) for joint in mechanism.independent_joints])
    v, a = rng.normal(size=(2, mechanism.nv))
    return mechanism, q, v, a, rng


def expanded(mechanism: Mechanism, q: Array, *velocities: Array) -> tuple[Array, ...]:
    """(q of all joints, E = ∂v_all/∂v, velocities of all joints …) for `mechanism.uncoupled`."""
    q_all = np.concatenate(list(joint_positions(mechanism, q).values()), axis=-1)
    E = np.concatenate(list(joint_velocities(mechanism, np.eye(mechanism.nv)).values()), axis=-1).T
    return q_all, E, *(v @ E.T for v in velocities)


def scale(*arrays: Array | float) -> float:
    """1 + the largest magnitude among the arrays."""
    return 1.0 + max(float(np.abs(x).max(initial=0.0)) for x in arrays)
