"""Arguments of the façade: arrays of the right size, frames by name, errors that say what would be right."""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.errors import InputError
from polybody.names import listed, nearest

Array = np.ndarray


def state_array(name: str, values: Any, size: int) -> Array:
    """`values` as a float array of shape (..., size)."""
    array = float_array(name, values)
    if array.ndim == 0 or array.shape[-1] != size:
        raise InputError(f"{name} has shape {array.shape}, wanted ({size},) or (..., {size})")
    return array


def float_array(name: str, values: Any) -> Array:
    """`values` as a float array of any shape; complex numbers are refused, not cut down to their real parts."""
    try:
        array = np.asarray(values)
        if np.iscomplexobj(array):
            raise InputError(f"{name} must be real numbers, got {array.dtype}")
        return np.asarray(array, dtype=float)
    except (TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{name} must be numbers in a regular array, got {type(values).__name__}") from None


def finite(name: str, array: Array) -> Array:
    """The array, or an error that names its first entry which is no finite number."""
    if not np.isfinite(array).all():
        index = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        place = f"[{', '.join(map(str, index))}]" if index else ""
        raise InputError(f"{name}{place} is {array[index]}; wanted a finite number")
    return array


def choose(kind: str, name: str, table: dict[str, int]) -> int:
    """The index of a name, or an error that offers the nearest one."""
    if not isinstance(name, str):
        raise InputError(f"a {kind} is chosen by its name, not by {name!r}; there are {listed(table)}")
    if name in table:
        return table[name]
    raise InputError(f"no {kind} {name!r}{nearest(name, table)}; there are {listed(table)}")


__all__ = ["choose", "finite", "float_array", "state_array"]
