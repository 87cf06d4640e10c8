"""Arguments of the façade: arrays of the right size, frames by name, errors that say what would be right."""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.errors import InputError
from polybody.names import listed, nearest

Array = np.ndarray


def state_array(name: str, values: Any, size: int) -> Array:
    """`values` as a float array of shape (..., size)."""
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be numbers, got {type(values).__name__}") from None
    if array.ndim == 0 or array.shape[-1] != size:
        raise InputError(f"{name} has shape {array.shape}, wanted ({size},) or (..., {size})")
    return array


def choose(kind: str, name: str, table: dict[str, int]) -> int:
    """The index of a name, or an error that offers the nearest one."""
    if name in table:
        return table[name]
    raise InputError(f"no {kind} {name!r}{nearest(name, table)}; there are {listed(table)}")


__all__ = ["choose", "state_array"]
