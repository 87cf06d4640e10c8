"""Rows whose quaternions are not unit, found by machine code: NumPy takes longer for it than a kernel for dynamics."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable

import numpy as np

from polybody.kernels.machine import Loaded
from polybody.kernels.programs import has_runtime, runtime_of
from polybody.kernels.target import host

FEW = 10_000  # numbers
TOLERANCE = 2e-6  # by which the sum of squares may differ from one


@functools.cache
def _search(code: Loaded) -> Callable[..., int]:
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 4)
    return kind(code.addresses["first_off_unit"])


def first_off_unit(array: np.ndarray, element: int) -> int:
    """The first row, counted over all leading dimensions, whose four numbers from `element` on are no unit quaternion.

    −1 where all are. NaN is not found: it comes out as NaN. `array` is (..., n), of float64 or float32.
    """
    if array.ndim == 1:  # in half a microsecond
        a, b, c, d = array[element : element + 4].tolist()
        return 0 if abs(a * a + b * b + c * c + d * d - 1) > TOLERANCE else -1
    if array.dtype not in (np.float64, np.float32) or not array.flags.c_contiguous or not array.flags.aligned:
        array = np.ascontiguousarray(array, dtype=np.float64)
    if array.size <= FEW and not has_runtime(host()):  # the first call of a process does not wait for machine code
        squares = (array.reshape(-1, array.shape[-1])[:, element : element + 4].astype(float) ** 2).sum(axis=1)
        off = np.flatnonzero(np.abs(squares - 1) > TOLERANCE)
        return int(off[0]) if len(off) else -1
    size, width = array.itemsize, array.shape[-1]
    search = _search(runtime_of(host()))
    return search(array.ctypes.data + size * element, array.size // max(1, width), size * width, size)


__all__ = ["TOLERANCE", "first_off_unit"]
