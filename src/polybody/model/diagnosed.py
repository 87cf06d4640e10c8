"""Kernels of models with loops on large batches: their diagnostics are looked at piece by piece.

Such a kernel gives six numbers per state beside its results: squares of φ and of J v, growth and leftover of the
elimination, its narrowest pivot, and the square of J a + γ. For ten million states they and what is compared with them
take half a gigabyte: a piece at a time they take some megabytes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.constraints.plan import Plan
from polybody.model.assembly import STATE_TOLERANCE
from polybody.model.batches import batch_shape
from polybody.model.engine import Request
from polybody.model.ranked import refers_to_coordinates
from polybody.quantities.constrained import DRIVEN
from polybody.quantities.quantity import Quantity

if TYPE_CHECKING:
    from polybody.kernels import Kernel

Array = np.ndarray
#: (row over pivot)² above this: in coordinates that are given, all digits but six may be lost by single pivots, all but
#: eight by blocks; where the coordinates themselves are nearly dependent, singular values have no more of them
GROWTH = 1e10
#: the same where the plan has chosen the coordinates, as singular values do better then: by single pivots, whose errors
#: amplify each other, and by blocks. Errors of Stewart, delta and 3-RRR were 4e-7 and 4e-11 there.
GROWTH_FREE, GROWTH_BLOCKS = 1e6, 1e8
#: a redundant row that is not, squared
LEFTOVER = 1e-14
#: square of J a + γ above which an acceleration is looked at
OFF = 1e-12
#: bytes per state of diagnostics and what is compared with them
BYTES = 128


def diagnosed(
    kernel: Kernel, request: Request, given: Sequence[Any], limit: float
) -> tuple[list[Array], Array, tuple[bool, bool] | None]:
    """(values, which states' elimination is not to be believed, whether states or accelerations may be off).

    The last is None where all are on the constraints; nothing more is then to be looked at. `given` are the values of
    the parameters, of all states or of each, `limit` is the growth up to which a state is believed.
    """
    from polybody.kernels import arrays, memory

    lead = batch_shape((*request.all_arrays, *given))
    cost = BYTES * math.prod(lead)
    if cost <= arrays.PIECE:
        *values, told = kernel(*request.all_arrays, *given)
        return values, doubtful(told, limit), _off(request.quantity, request.arrays, told)
    shapes = [(*lead, *shape) for _, shape in kernel.outputs[:-1]]
    values, again = _own_memory(request, shapes), np.empty(lead, dtype=bool)
    if values is None:
        values = [memory.empty(shape) for shape in shapes]
    axis, parts = arrays.pieces(lead, cost)
    may = [False, False]
    for part in parts:
        some = tuple(arrays.cut(x, len(lead), 1, axis, part) for x in (*request.all_arrays, *given))
        place = tuple(arrays.cut(x, len(lead), x.ndim - len(lead), axis, part) for x in values)
        marks = arrays.cut(again, len(lead), 0, axis, part)
        told = np.empty((*marks.shape, *kernel.outputs[-1][1]))
        kernel(*some, out=(*place, told))
        marks[...] = doubtful(told, limit)
        may = [x or y for x, y in zip(may, _off(request.quantity, some, told) or (False, False), strict=True)]
    return values, again, (may[0], may[1]) if any(may) else None


def _own_memory(request: Request, shapes: list[tuple[int, ...]]) -> list[Array] | None:
    """The arrays that results are asked into, where they can be written while arguments are still read."""
    from polybody.kernels import arrays

    given = request.out if isinstance(request.out, tuple) else (request.out,)
    if len(given) != len(shapes) or not all(isinstance(x, np.ndarray) and x.dtype == np.float64 for x in given):
        return None
    fit = all(x.shape == shape and x.flags.writeable for x, shape in zip(given, shapes, strict=True))
    return None if not fit or any(arrays.overlap(given, request.all_arrays)) else list(given)


def growth_limit(quantity: Quantity, plan: Plan) -> float:
    """The growth up to which an answer along a plan is believed."""
    if refers_to_coordinates(quantity) or quantity.name.startswith((*DRIVEN, "projection_step")):
        return GROWTH
    return GROWTH_BLOCKS if plan.blocks else GROWTH_FREE


def doubtful(told: Array, limit: float | None = None) -> Array:
    """States whose elimination is not to be believed."""
    most = GROWTH if limit is None else limit
    return ~((told[..., 2] < most) & (told[..., 4] < GROWTH) & (told[..., 3] < LEFTOVER))


def _off(quantity: Quantity, arrays: Sequence[Array], told: Array) -> tuple[bool, bool] | None:
    """(whether states, whether accelerations may be off the constraints); None where all are on them."""
    if quantity.name == "projection_step":
        return None
    states = not bool(told[..., :2].max(initial=0.0) < STATE_TOLERANCE**2)  # true of NaN
    accelerations = "a" in quantity.arguments and _may_break(arrays, told[..., 5], states)
    return (states, accelerations) if states or accelerations else None


def _may_break(arrays: Sequence[Array], gaps: Array, states: bool) -> bool:
    """Whether squares of J a + γ are more than `require_acceleration` surely allows, which computes them once more."""
    if not gaps.max(initial=0.0) > OFF or states:
        return bool(np.any(gaps > OFF))
    v, a = (np.abs(x).max(axis=-1) for x in arrays[1:3])
    return bool(np.any(gaps > OFF * np.square(1 + a + v * v)))


__all__ = ["GROWTH", "GROWTH_BLOCKS", "GROWTH_FREE", "LEFTOVER", "diagnosed", "doubtful", "growth_limit"]
