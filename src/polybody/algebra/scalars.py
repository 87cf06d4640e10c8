"""Numbers that may be scalars of an expression graph: arrays of floats, or of objects where one of them is symbolic."""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain, domain
from polybody.algebra.graph import Node


def numbers(values: Any) -> Array:
    """`values` as an array: of floats, or of objects where some are scalars of an expression graph."""
    array = np.asarray(values)
    return array if array.dtype == object else np.asarray(array, dtype=float)


def is_symbolic(*values: Any) -> bool:
    """Whether any of the numbers is a scalar of an expression graph."""
    for value in values:
        array = np.asarray(value)
        if array.dtype == object and any(isinstance(x, Node) for x in array.flat):
            return True
    return False


def domain_of(*values: Any) -> Domain:
    """The domain that the numbers belong to: float64, or the expression graph's."""
    return domain("casadi") if is_symbolic(*values) else FLOAT


def plain(values: Any) -> Any:
    """The same array, of floats where nothing in it is symbolic."""
    array = np.asarray(values)
    return array if is_symbolic(array) else np.asarray(array, dtype=float)


__all__ = ["domain_of", "is_symbolic", "numbers", "plain"]
