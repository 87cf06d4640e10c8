"""Gains as users give them: one number, or one for each velocity."""

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


__all__ = ["gains"]
