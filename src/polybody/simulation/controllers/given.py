"""Joint forces that are given beforehand: none, a table, or a function of time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from polybody.errors import InputError
from polybody.model.arguments import float_array
from polybody.model.model import Model
from polybody.simulation.arguments import require_model

Array = np.ndarray


def zero(model: Model) -> Callable[[float, Array, Array], Array]:
    """Zero joint forces."""
    require_model("controllers", model)
    return lambda t, q, v: np.zeros(model.nv)


class Given:
    """Joint forces from a table (times, tau), interpolated linearly, or from a function of time."""

    def __init__(self, model: Model, tau: Any, times: Any = None) -> None:
        require_model("controllers", model)
        self.model = model
        self.table: Array | None = None
        self.times: Array | None = None
        if callable(tau):
            self._function: Callable[[float], Any] = tau
            return
        self.table = table = float_array("tau", tau)
        if table.shape == (model.nv,):
            self._function = lambda t: table
            return
        grid = np.zeros(()) if times is None else float_array("times", times)
        if grid.ndim != 1 or table.shape != (len(grid), model.nv) or (np.diff(grid) <= 0).any():
            raise InputError(
                f"tau has shape {table.shape} for times of shape {grid.shape}; expected ({model.nv},), or "
                f"(n, {model.nv}) with n growing times"
            )
        self.times = grid
        self._function = lambda t: np.array([np.interp(t, grid, table[:, k]) for k in range(model.nv)])

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        return np.asarray(self._function(t), dtype=float)


__all__ = ["Given", "zero"]
