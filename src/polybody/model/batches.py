"""One-state functions over leading batch dimensions, by a plain loop: for what is not compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from polybody.errors import InputError

Array = np.ndarray


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


__all__ = ["batch_shape", "each_state"]
