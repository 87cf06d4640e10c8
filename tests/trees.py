"""A random mechanism in a random state, and the scale that tolerances are relative to."""

from __future__ import annotations

import numpy as np

from mechanisms import random_tree
from polybody.mechanism import mechanism_from
from polybody.mechanism.mechanism import Mechanism

Array = np.ndarray


def random_state(
    seed: int, n: int | None = None, *, least: int = 3, most: int = 8, **options: object
) -> tuple[Mechanism, Array, Array, Array, np.random.Generator]:
    """(mechanism, q, v, a, rng) of a tree with n joints, or between `least` and `most`; options go to `random_tree`."""
    rng = np.random.default_rng(seed)
    count = n or int(rng.integers(least, most + 1))
    mechanism = mechanism_from(random_tree(rng, count, **options))  # type: ignore[arg-type]
    q = np.concatenate([joint.model.random(rng) for joint in mechanism.joints])
    v, a = rng.normal(size=(2, mechanism.nv))
    return mechanism, q, v, a, rng


def scale(*arrays: Array | float) -> float:
    """1 + the largest magnitude among the arrays."""
    return 1.0 + max(float(np.abs(x).max(initial=0.0)) for x in arrays)
