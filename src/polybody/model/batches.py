"""Leading batch dimensions: one-state functions by a plain loop, large batches piece by piece."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polybody.errors import InputError, PolybodyError
from polybody.mechanism.columns import state_text
from polybody.model.arguments import into

Array = np.ndarray


def batch_shape(arrays: Sequence[Array]) -> tuple[int, ...]:
    """The broadcast leading dimensions of arrays whose last axis is the state's."""
    alike = {a.shape[:-1] for a in arrays}
    if len(alike) == 1:  # as it mostly is: NumPy's way takes ten times as long
        return alike.pop()
    try:
        return np.broadcast_shapes(*(a.shape[:-1] for a in arrays))
    except ValueError:
        shapes = ", ".join(str(a.shape) for a in arrays)
        raise InputError(f"the leading dimensions of {shapes} do not broadcast with each other") from None


def first_state(array: Array) -> Array:
    """The first state of a batch of any shape."""
    return array.reshape(-1, array.shape[-1])[0]


def spread(count: int, most: int) -> list[int]:
    """Up to `most` of the indices below `count`, evenly; not by `np.unique`, whose first call imports `numpy.ma`."""
    return sorted({k * (count - 1) // max(1, most - 1) for k in range(most)}) if count else []


def each_state(function: Callable[..., Array], arrays: Sequence[Array], shape: tuple[int, ...]) -> Array:
    """function(state of each array) for every state of the broadcast batch; results of `shape`."""
    lead = batch_shape(arrays)
    wide = [np.broadcast_to(a, (*lead, a.shape[-1])) for a in arrays]
    result = np.empty((*lead, *shape))
    for index in np.ndindex(lead):
        result[index] = function(*(a[index] for a in wide))
    return result


def in_pieces(answer: Callable[[Sequence[Array]], Any], arrays: Sequence[Array], cost: int, out: Any = None) -> Any:
    """answer(arrays) piece by piece, so that what it needs on the way is some megabytes, not several times the results.

    `cost` is what one state needs on the way, in bytes. A batch that is small is answered in one go. Errors of a piece
    count the states of the whole batch.
    """
    from polybody.kernels import arrays as kernel_arrays
    from polybody.kernels import memory

    lead = batch_shape(arrays)
    cost *= math.prod(lead)
    if cost <= kernel_arrays.PIECE or max(lead, default=1) == 1:
        return into(out, answer(arrays))
    several = None if out is None else out if isinstance(out, tuple) else (out,)
    axis, parts = kernel_arrays.pieces(lead, cost)
    for part in parts:
        some = [kernel_arrays.cut(x, len(lead), 1, axis, part) for x in arrays]
        try:
            found = answer(some)
        except PolybodyError:
            raise_by_state(answer, some, [part.start if k == axis else 0 for k in range(len(lead))])
            raise
        found = found if isinstance(found, tuple) else (found,)
        if several is None:
            several = tuple(memory.empty((*lead, *x.shape[len(lead) :]), x.dtype) for x in found)
        elif len(found) != len(several):
            return into(out, found)  # says that `out` holds too many or too few
        own = tuple(kernel_arrays.cut(x, len(lead), x.ndim - len(lead), axis, part) for x in several)
        if out is not None:
            into(own, found)
        else:
            for place, value in zip(own, found, strict=True):
                place[...] = value
    assert several is not None
    return out if out is not None else several[0] if len(several) == 1 else several


def raise_by_state(answer: Callable[[Sequence[Array]], Any], arrays: Sequence[Array], start: Sequence[int]) -> None:
    """Raise the error of the first state that has one, with its index in a batch in which these begin at `start`."""
    lead = batch_shape(arrays)
    wide = [np.broadcast_to(x, (*lead, x.shape[-1])) for x in arrays]
    flat = np.arange(math.prod(lead))
    while len(flat) > 1:  # the first half that has one
        half = flat[: len(flat) // 2]
        places = np.unravel_index(half, lead)
        try:
            answer([x[places] for x in wide])
            flat = flat[len(half) :]
        except PolybodyError:
            flat = half
    index = tuple(int(i) for i in np.unravel_index(int(flat[0]), lead))
    try:
        answer([np.array(x[index]) for x in wide])
    except PolybodyError as error:
        error.args = (f"{error}{state_text([i + k for i, k in zip(index, start, strict=True)])}", *error.args[1:])
        raise


__all__ = ["batch_shape", "each_state", "in_pieces", "raise_by_state", "spread"]
