"""What a caller may pass as a kernel's arguments, and how it becomes addresses and strides.

Leading dimensions broadcast by strides of zero, never by copies. Arrays that a body cannot read as they are (other
dtypes, or rows whose numbers are not neighbours) are converted piece by piece, so that a call needs little more memory
than its arrays.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from polybody.errors import InputError, refuse_masked

PIECE = 16 * 2**20  # bytes converted at a time


def as_argument(value: Any, label: str, size: int) -> np.ndarray:
    """`value` as an array (..., size) of real numbers, or an error that names it."""
    try:
        array = np.asarray(value)
    except ValueError as reason:
        raise InputError(f"{label} is not an array of numbers: {reason}; expected shape (..., {size})") from None
    refuse_masked(label, value)
    if array.dtype.kind not in "fiub":
        raise InputError(f"{label} has dtype {array.dtype}; expected real numbers of shape (..., {size})")
    if array.ndim < 1 or array.shape[-1] != size:
        raise InputError(f"{label} has shape {array.shape}; expected (..., {size})")
    return array


def plain_shapes(values: Sequence[Any], dtype: np.dtype[Any]) -> tuple[tuple[int, ...], ...] | None:
    """The shapes of arguments that are plain: arrays of this dtype, contiguous and aligned; else None."""
    shapes = []
    for value in values:
        if type(value) is not np.ndarray or value.dtype is not dtype:
            return None
        flags = value.flags
        if not flags.c_contiguous or not flags.aligned:
            return None
        shapes.append(value.shape)
    return tuple(shapes)


def plain_leading(shapes: Sequence[tuple[int, ...]], sizes: Sequence[int]) -> tuple[int, ...] | None:
    """The leading shape of arguments of these shapes (..., size) if all have the same one or none; else None."""
    if len(shapes) != len(sizes):
        return None
    leading: tuple[int, ...] = ()
    for shape, size in zip(shapes, sizes, strict=True):
        if shape[-1:] != (size,):
            return None
        own = shape[:-1]
        if own != leading and own:
            if leading:
                return None
            leading = own
    return leading


def plain_results(values: Sequence[Any], shapes: Sequence[tuple[int, ...]], dtype: np.dtype[Any]) -> bool:
    """Whether results of these shapes can be written straight into these arrays."""
    if len(values) != len(shapes):
        return False
    for value, shape in zip(values, shapes, strict=True):
        if type(value) is not np.ndarray or value.dtype is not dtype or value.shape != shape or not value.flags.carray:
            return False
    return True


def batch_shape(arrays: Sequence[np.ndarray], labels: Sequence[str]) -> tuple[int, ...]:
    """The common leading shape."""
    shapes = [a.shape[:-1] for a in arrays]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        listed = ", ".join(f"{label} {a.shape}" for label, a in zip(labels, arrays, strict=True))
        raise InputError(f"the leading dimensions of the arguments do not broadcast: {listed}") from None


def refuse_non_finite(arrays: Sequence[np.ndarray], labels: Sequence[str]) -> None:
    for array, label in zip(arrays, labels, strict=True):
        finite = np.isfinite(array)
        if not finite.all():
            index = tuple(int(i) for i in np.unravel_index(int(np.argmin(finite)), array.shape))
            raise InputError(f"{label}{list(index)} is {array[index]}; expected a finite number")


def as_output(value: Any, label: str, shape: tuple[int, ...]) -> np.ndarray:
    """`value` as an array that results of this shape can be written to."""
    if not isinstance(value, np.ndarray):
        raise InputError(f"{label} is a {type(value).__name__}; expected a NumPy array of shape {shape}")
    if value.shape != shape:
        raise InputError(f"{label} has shape {value.shape}; expected {shape}")
    if value.dtype.kind != "f":
        raise InputError(f"{label} has dtype {value.dtype}; expected float64 (or another float) of shape {shape}")
    if not value.flags.writeable:
        raise InputError(f"{label} is read-only; expected a writeable array of shape {shape}")
    return value


def plain(array: np.ndarray, leading: int, dtype: np.dtype[Any]) -> bool:
    """Whether each row's numbers are native ones of this dtype, aligned and next to each other."""
    if array.dtype != dtype or not array.flags.aligned:
        return False
    expected = dtype.itemsize
    for extent, stride in zip(reversed(array.shape[leading:]), reversed(array.strides[leading:]), strict=True):
        if extent > 1 and stride != expected:
            return False
        expected *= extent
    return True


def collapse(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> tuple[list[int], list[list[int]]]:
    """Batch dimensions merged where every array allows it; `strides[p][d]`."""
    extents: list[int] = []
    kept: list[list[int]] = [[] for _ in strides]
    for d, extent in enumerate(shape):
        if extent == 1:
            continue
        steps = [s[d] for s in strides]
        if extents and all(k[-1] == step * extent for k, step in zip(kept, steps, strict=True)):
            extents[-1] *= extent
            for k, step in zip(kept, steps, strict=True):
                k[-1] = step
        else:
            extents.append(extent)
            for k, step in zip(kept, steps, strict=True):
                k.append(step)
    if not extents:
        return [1], [[0] for _ in strides]
    return extents, kept


def batch_strides(array: np.ndarray, batch: Sequence[int], trailing: int) -> list[int]:
    """Strides over the batch dimensions; zero where the array is broadcast."""
    own = array.ndim - trailing
    missing = len(batch) - own
    return [0] * missing + [0 if array.shape[d] == 1 else array.strides[d] for d in range(own)]


def overlap(outputs: Sequence[np.ndarray], inputs: Sequence[np.ndarray]) -> list[bool]:
    """Which outputs may share memory with an input or another output."""
    return [
        any(np.may_share_memory(out, other) for other in [*inputs, *outputs[:j], *outputs[j + 1 :]])
        for j, out in enumerate(outputs)
    ]


def touching(addresses: Sequence[int], sizes: Sequence[int], inputs: int) -> bool:
    """Whether an output shares memory with an input or another output: of contiguous arrays, by addresses and bytes."""
    for j in range(inputs, len(addresses)):
        begin, end = addresses[j], addresses[j] + sizes[j]
        for k in range(j):
            if begin < addresses[k] + sizes[k] and addresses[k] < end:
                return True
    return False


def cut(array: np.ndarray, batch_ndim: int, trailing: int, axis: int, piece: slice) -> np.ndarray:
    """The part of an array that belongs to a piece of one batch axis."""
    own = array.ndim - trailing
    at = axis - (batch_ndim - own)
    if at < 0 or array.shape[at] == 1:
        return array
    return array[(slice(None),) * at + (piece,)]


def pieces(batch: Sequence[int], converted: int) -> tuple[int, list[slice]]:
    """The longest batch axis and its slices, such that about `PIECE` bytes are converted for each."""
    axis = int(np.argmax(batch))
    count = min(batch[axis], max(2, math.ceil(converted / PIECE)))
    edges = np.linspace(0, batch[axis], count + 1).astype(int).tolist()
    return axis, [slice(lo, hi) for lo, hi in itertools.pairwise(edges) if hi > lo]
