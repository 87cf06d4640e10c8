"""One-state functions over leading batch dimensions, by a plain loop: for what is not compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polybody.errors import InputError
from polybody.model.arguments import into

Array = np.ndarray
#: arrays as large as the results that a composed answer may need on its way
ON_THE_WAY = 3


def batch_shape(arrays: Sequence[Array]) -> tuple[int, ...]:
    """The broadcast leading dimensions of arrays whose last axis is the state's."""
    try:
        return np.broadcast_shapes(*(a.shape[:-1] for a in arrays))
    except ValueError:
        shapes = ", ".join(str(a.shape) for a in arrays)
        raise InputError(f"the leading dimensions of {shapes} do not broadcast with each other") from None


def each_state(function: Callable[..., Array], arrays: Sequence[Array], shape: tuple[int, ...]) -> Array:
    """function(state of each array) for every state of the broadcast batch; results of `shape`."""
    lead = batch_shape(arrays)
    wide = [np.broadcast_to(a, (*lead, a.shape[-1])) for a in arrays]
    result = np.empty((*lead, *shape))
    for index in np.ndindex(lead):
        result[index] = function(*(a[index] for a in wide))
    return result


def in_pieces(
    answer: Callable[[Sequence[Array]], Any], arrays: Sequence[Array], shapes: Sequence[tuple[int, ...]],
    out: Any = None,
) -> Any:  # fmt: skip
    """answer(arrays) piece by piece, so that what it needs on the way is some megabytes, not several times the results.

    `shapes` are those of its results, of one state. A batch that is small is answered in one go.
    """
    from polybody.kernels import arrays as kernel_arrays

    lead = batch_shape(arrays)
    cost = ON_THE_WAY * 8 * int(np.prod(lead, dtype=int)) * sum(int(np.prod(shape, dtype=int)) for shape in shapes)
    if cost <= kernel_arrays.PIECE or max(lead, default=1) == 1:
        return into(out, answer(arrays))
    results = out if out is not None else tuple(np.empty((*lead, *shape)) for shape in shapes)
    several = results if isinstance(results, tuple) else (results,)
    axis, parts = kernel_arrays.pieces(lead, cost)
    for part in parts:
        found = answer([kernel_arrays.cut(x, len(lead), 1, axis, part) for x in arrays])
        found = found if isinstance(found, tuple) else (found,)
        if len(found) != len(several):
            return into(out, found)  # says that `out` holds too many or too few
        own = (kernel_arrays.cut(x, len(lead), len(s), axis, part) for x, s in zip(several, shapes, strict=True))
        into(tuple(own), found)
    return out if out is not None else several[0] if len(several) == 1 else several


__all__ = ["batch_shape", "each_state", "in_pieces"]
