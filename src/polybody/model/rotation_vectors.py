"""Rotation vectors of many matrices: `rotation_log` of the algebra as a kernel."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from polybody.algebra.rotations import rotation_log
from polybody.model.tracing import compiled, trace

if TYPE_CHECKING:
    from polybody.kernels import Kernel

Array = np.ndarray


def rotation_vectors(rotations: Array) -> Array:
    """The vectors (..., 3) of rotation matrices (..., 3, 3), of length at most π."""
    return _kernel()(np.ascontiguousarray(rotations, dtype=float).reshape(*rotations.shape[:-2], 9))


@cache
def _kernel() -> Kernel:
    name, inputs = "rotation vectors", [("rotation", 9)]
    text = lambda r, *, domain: rotation_log(r.reshape(3, 3), domain=domain)  # noqa: E731
    return compiled(name, inputs, [("vector", (3,))], lambda: trace(name, inputs, text), "")


__all__ = ["rotation_vectors"]
