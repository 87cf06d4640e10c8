"""Arguments of the façade: arrays of the right size, frames by name, errors that say what would be right."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

import numpy as np

from polybody.errors import InputError

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


def nearest(name: str, names: Iterable[str]) -> str:
    """" (did you mean 'x'?)", or nothing where no name is near."""
    found = difflib.get_close_matches(name, list(names), n=1, cutoff=0.5)
    return f" (did you mean {found[0]!r}?)" if found else ""


def choose(kind: str, name: str, table: dict[str, int]) -> int:
    """The index of a name, or an error that offers the nearest one."""
    if name in table:
        return table[name]
    raise InputError(f"no {kind} {name!r}{nearest(name, table)}; there are {_some(table)}")


def _some(names: Iterable[str], most: int = 12) -> str:
    listed = list(names)
    text = ", ".join(listed[:most])
    return f"{text} and {len(listed) - most} more" if len(listed) > most else text


__all__ = ["choose", "nearest", "state_array"]
