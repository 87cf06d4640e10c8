"""Kernels of models with loops on large batches: their diagnostics are looked at piece by piece.

Such a kernel gives six numbers per state beside its results: squares of φ and of J v, growth and leftover of the
elimination, its narrowest pivot, and the square of J a + γ. For ten million states they and what is compared with them
take half a gigabyte: a piece at a time they take some megabytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.model.assembly import STATE_TOLERANCE
from polybody.model.batches import batch_shape
from polybody.model.engine import Request

if TYPE_CHECKING:
    from polybody.kernels import Kernel

Array = np.ndarray
#: (row over pivot)² above this: ten digits of the answer would be lost
GROWTH = 1e10
#: a redundant row that is not, squared
LEFTOVER = 1e-14
#: square of J a + γ above which an acceleration is looked at
OFF = 1e-12
#: bytes per state of diagnostics and what is compared with them
BYTES = 128


def diagnosed(
    kernel: Kernel, request: Request, given: Sequence[Any]
) -> tuple[list[Array], Array, tuple[bool, bool] | None]:
    """(values, which states' elimination is not to be believed, whether states or accelerations may be off).

    The last is None where all are on the constraints; nothing more is then to be looked at. `given` are the values of
    the parameters, of all states or of each.
    """
    from polybody.kernels import arrays, memory

    lead = batch_shape((*request.all_arrays, *given))
    cost = BYTES * int(np.prod(lead, dtype=int))
    if cost <= arrays.PIECE:
        *values, told = kernel(*request.all_arrays, *given)
        return values, doubtful(told), _off(request, told)
    shapes = [(*lead, *shape) for _, shape in kernel.outputs[:-1]]
    values, again = _own_memory(request, shapes), np.empty(lead, dtype=bool)
    if values is None:
        values = [memory.empty(shape) for shape in shapes]
    axis, parts = arrays.pieces(lead, cost)
    off = [False, False]
    for part in parts:
        some = tuple(arrays.cut(x, len(lead), 1, axis, part) for x in (*request.all_arrays, *given))
        place = tuple(arrays.cut(x, len(lead), x.ndim - len(lead), axis, part) for x in values)
        marks = arrays.cut(again, len(lead), 0, axis, part)
        told = np.empty((*marks.shape, *kernel.outputs[-1][1]))
        kernel(*some, out=(*place, told))
        marks[...] = doubtful(told)
        off = [x or y for x, y in zip(off, _off(request, told) or (False, False), strict=True)]
    return values, again, (off[0], off[1]) if any(off) else None


def _own_memory(request: Request, shapes: list[tuple[int, ...]]) -> list[Array] | None:
    """The arrays that results are asked into, where they can be written while arguments are still read."""
    from polybody.kernels import arrays

    given = request.out if isinstance(request.out, tuple) else (request.out,)
    if len(given) != len(shapes) or not all(isinstance(x, np.ndarray) and x.dtype == np.float64 for x in given):
        return None
    fit = all(x.shape == shape and x.flags.writeable for x, shape in zip(given, shapes, strict=True))
    return None if not fit or any(arrays.overlap(given, request.all_arrays)) else list(given)


def doubtful(told: Array) -> Array:
    """States whose elimination is not to be believed."""
    return ~((told[..., 2] < GROWTH) & (told[..., 4] < GROWTH) & (told[..., 3] < LEFTOVER))


def _off(request: Request, told: Array) -> tuple[bool, bool] | None:
    if request.quantity.name == "projection_step":
        return None
    states = not np.all((told[..., 0] < STATE_TOLERANCE**2) & (told[..., 1] < STATE_TOLERANCE**2))
    accelerations = "a" in request.quantity.arguments and bool(np.any(told[..., 5] > OFF))
    return (bool(states), accelerations) if states or accelerations else None


__all__ = ["GROWTH", "LEFTOVER", "diagnosed", "doubtful"]
