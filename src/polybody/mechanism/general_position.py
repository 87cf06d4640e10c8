"""A configuration in general position, always the same one.

Whether a pivot vanishes, or a rank drops, is asked at such a configuration. It is drawn by Python's own generator:
NumPy's takes 8 ms to import, which first answers would wait for.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from polybody.mechanism.mechanism import Mechanism

Array = np.ndarray


class Draws:
    """What joints ask of a `numpy.random.Generator`."""

    def __init__(self, seed: int = 0) -> None:
        self._source = random.Random(seed)

    def uniform(self, low: Array | float, high: Array | float, size: tuple[int, ...]) -> Array:
        drawn = np.array([self._source.random() for _ in range(int(np.prod(size)))]).reshape(size)
        return low + (np.asarray(high) - low) * drawn

    def normal(self, size: tuple[int, ...]) -> Array:
        return np.array([self._source.gauss(0.0, 1.0) for _ in range(int(np.prod(size)))]).reshape(size)


def general_configuration(mechanism: Mechanism) -> Array:
    """q (nq,) in general position."""
    draws: Any = Draws()
    return np.concatenate([np.zeros(0), *(joint.model.random(draws) for joint in mechanism.independent_joints)])


__all__ = ["Draws", "general_configuration"]
