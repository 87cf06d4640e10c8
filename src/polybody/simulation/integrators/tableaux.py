"""Explicit methods as data: what `kernels.stepping` steps by."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from polybody.kernels.stepping import Tableau


@cache
def runge_kutta_4() -> Tableau:
    """The classical method of order 4."""
    from polybody.kernels.stepping import Tableau

    A = np.zeros((4, 4))
    A[1, 0], A[2, 1], A[3, 2] = 0.5, 0.5, 1.0
    return Tableau(A, np.array([1, 2, 2, 1]) / 6)


@cache
def dormand_prince_8() -> Tableau:
    """Dormand and Prince's pair of order 8(5, 3) with its interpolant of order 7; SciPy has the numbers."""
    from scipy.integrate import DOP853 as method

    from polybody.kernels.stepping import Tableau

    return Tableau(method.A, method.B, method.A_EXTRA, np.array([method.E5, method.E3]), method.D)


TABLEAUX: dict[str, Callable[[], Tableau]] = {"rk4": runge_kutta_4, "dop853": dormand_prince_8}

__all__ = ["TABLEAUX"]
