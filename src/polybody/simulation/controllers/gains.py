"""Gains as users give them: one number, or one for each velocity; finite, and where it matters not negative."""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.errors import InputError
from polybody.model.arguments import float_array

Array = np.ndarray


def gains(name: str, value: Any, nv: int) -> Array:
    array = float_array(name, value)
    many = array.ndim > 1 and array.shape[-1] == nv  # of a rollout: a row for each state
    if not (many or array.shape in ((), (nv,))) or not np.isfinite(array).all():
        raise InputError(f"{name} has shape {array.shape}; expected one finite number or {nv}")
    return array.copy() if many else np.broadcast_to(array, (nv,)).copy()


def number(name: str, value: Any) -> float:
    """One finite number, not negative: a gain, a damping."""
    array = float_array(name, value)
    if array.shape != () or not 0 <= array < np.inf:
        raise InputError(f"{name} is {value!r}; expected one finite number that is not negative")
    return float(array)


__all__ = ["gains", "number"]
