"""Scalars that are the numbers of many states side by side: a text read once answers for all of them.

A `Many` holds one number of each state, (states,), and computes with NumPy. What is known stays a Python float and is
folded as in an expression graph (`graph`): a product with zero is 0.0, a product with one is the other factor. A text
costs as long as it takes to trace it, and nothing is left to number, encode or compile: the quickest answer for a batch
that no other follows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polybody.algebra.domains import Array, FoldingDomain

_NUMBERS = (float, int, np.number)


class Many:
    """One scalar of many states."""

    __slots__ = ("x",)

    def __init__(self, x: Array) -> None:
        self.x = x

    def __add__(self, other: Any) -> Any:
        if type(other) is Many:
            return Many(self.x + other.x)
        if type(other) is float or isinstance(other, _NUMBERS):
            return self if other == 0 else Many(self.x + other)
        return NotImplemented

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if type(other) is Many:
            return Many(self.x - other.x)
        if type(other) is float or isinstance(other, _NUMBERS):
            return self if other == 0 else Many(self.x - other)
        return NotImplemented

    def __rsub__(self, other: Any) -> Any:
        if type(other) is float or isinstance(other, _NUMBERS):
            return Many(-self.x) if other == 0 else Many(other - self.x)
        return NotImplemented

    def __neg__(self) -> Many:
        return Many(-self.x)

    def __mul__(self, other: Any) -> Any:
        if type(other) is Many:
            return Many(self.x * other.x)
        if type(other) is float or isinstance(other, _NUMBERS):
            return 0.0 if other == 0 else self if other == 1 else Many(self.x * other)
        return NotImplemented

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if type(other) is Many:
            return Many(self.x / other.x)
        if isinstance(other, _NUMBERS):
            return self if other == 1 else Many(self.x / other)
        return NotImplemented

    def __rtruediv__(self, other: Any) -> Any:
        if isinstance(other, _NUMBERS):
            return 0.0 if other == 0 else Many(other / self.x)
        return NotImplemented

    def __pow__(self, other: Any) -> Many:
        return Many(self.x ** (other.x if type(other) is Many else other))

    def __rpow__(self, other: Any) -> Many:
        return Many(other**self.x)

    def __lt__(self, other: Any) -> Array:
        return self.x < (other.x if type(other) is Many else other)

    def __gt__(self, other: Any) -> Array:
        return self.x > (other.x if type(other) is Many else other)

    def __repr__(self) -> str:
        return f"Many({self.x})"


def _plain(x: Any) -> Any:
    return x.x if type(x) is Many else x


class ManyDomain(FoldingDomain):
    """Numbers of many states at once."""

    name = "many"

    def const(self, value: Any) -> Any:
        return value if type(value) is Many else float(value)

    def sin(self, x: Any) -> Any:
        return Many(np.sin(x.x)) if type(x) is Many else math.sin(x)

    def cos(self, x: Any) -> Any:
        return Many(np.cos(x.x)) if type(x) is Many else math.cos(x)

    def sqrt(self, x: Any) -> Any:
        return Many(np.sqrt(x.x)) if type(x) is Many else math.sqrt(x)

    def atan2(self, y: Any, x: Any) -> Any:
        if type(y) is not Many and type(x) is not Many:
            return math.atan2(y, x)
        return Many(np.arctan2(_plain(y), _plain(x)))

    def tanh(self, x: Any) -> Any:
        return Many(np.tanh(x.x)) if type(x) is Many else math.tanh(x)

    def exp(self, x: Any) -> Any:
        return Many(np.exp(x.x)) if type(x) is Many else math.exp(x)

    def log(self, x: Any) -> Any:
        return Many(np.log(x.x)) if type(x) is Many else math.log(x)

    def less(self, a: Any, b: Any) -> Any:
        return a < b

    def where(self, condition: Any, yes: Any, no: Any) -> Any:
        if not isinstance(condition, np.ndarray):
            return yes if condition else no
        return Many(np.where(condition, _plain(yes), _plain(no)))

    def is_zero(self, x: Any) -> bool:
        return type(x) is not Many and bool(x == 0)

    def is_constant(self, x: Any) -> bool:
        return type(x) is not Many


MANY = ManyDomain()


def scalars(values: Array) -> Array:
    """The columns of an array (states, n) as scalars, (n,)."""
    found = np.empty(values.shape[1], dtype=object)
    for k, column in enumerate(np.ascontiguousarray(values.T)):
        found[k] = Many(column)
    return found


def numbers(values: Any, states: int, shape: Sequence[int]) -> Array:
    """Scalars, in the order of an array of this shape, as numbers (states, *shape)."""
    flat = np.asarray(values, dtype=object).ravel().tolist()
    found = np.empty((len(flat), states))  # turned at the end: rows are written sooner than columns
    for k, x in enumerate(flat):
        found[k] = x.x if type(x) is Many else x
    return np.ascontiguousarray(found.T).reshape(states, *shape)


def read(text: Callable[..., Any], arrays: Sequence[Array], shapes: Sequence[Sequence[int]]) -> list[Array]:
    """What text(*scalars, domain) computes of arrays (states, n): one array (states, *shape) for each result."""
    with np.errstate(all="ignore"):  # of branches that are not taken
        results = text(*(scalars(x) for x in arrays), domain=MANY)
    results = results if isinstance(results, tuple) else (results,)
    return [numbers(x, len(arrays[0]), shape) for x, shape in zip(results, shapes, strict=True)]


__all__ = ["MANY", "Many", "ManyDomain", "numbers", "read", "scalars"]
