"""Numbers that plain numpy code carries along with their derivative: `function(traced(q, q_dot))`.

An object array of these goes through operators, indexing, sums, products of matrices and the usual ufuncs (numpy calls
the method of the ufunc's name) as an array of floats would. What needs real floats (numpy.linalg, writing into an array
of floats, `float(x)`) raises TypeError: a derivative is never lost silently. Comparisons, `abs` and truth look at the
value, so that a function defined piece by piece has the derivative of the piece it is in.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from polybody.algebra.jets import Jet

Array = np.ndarray
Rule = tuple[Callable[[float], float], Callable[[float], float]]

#: ufuncs of one number: the function and its derivative.
UNARY: dict[str, Rule] = {
    "sin": (math.sin, math.cos),
    "cos": (math.cos, lambda x: -math.sin(x)),
    "tan": (math.tan, lambda x: 1 + math.tan(x) ** 2),
    "arcsin": (math.asin, lambda x: 1 / math.sqrt(1 - x * x)),
    "arccos": (math.acos, lambda x: -1 / math.sqrt(1 - x * x)),
    "arctan": (math.atan, lambda x: 1 / (1 + x * x)),
    "sinh": (math.sinh, math.cosh),
    "cosh": (math.cosh, math.sinh),
    "tanh": (math.tanh, lambda x: 1 - math.tanh(x) ** 2),
    "arcsinh": (math.asinh, lambda x: 1 / math.hypot(1, x)),
    "arctanh": (math.atanh, lambda x: 1 / (1 - x * x)),
    "exp": (math.exp, math.exp),
    "expm1": (math.expm1, math.exp),
    "log": (math.log, lambda x: 1 / x),
    "log1p": (math.log1p, lambda x: 1 / (1 + x)),
    "log10": (math.log10, lambda x: 1 / (x * math.log(10))),
    "log2": (math.log2, lambda x: 1 / (x * math.log(2))),
    "sqrt": (math.sqrt, lambda x: 0.5 / math.sqrt(x)),
}


class Traced(Jet):
    """A float and its derivative."""

    __slots__ = ()

    def __pow__(self, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented
        x, (n, n_rate) = self.value, self._parts(other)
        rate = self.rate * n * x ** (n - 1) if n != 0 else 0.0
        return Traced(x**n, rate + n_rate * x**n * math.log(x) if n_rate else rate)

    def __rpow__(self, base: Any) -> Any:
        return NotImplemented if isinstance(base, np.ndarray) else Traced(base, 0.0) ** self

    def __neg__(self) -> Traced:
        return Traced(-self.value, -self.rate)

    def __pos__(self) -> Traced:
        return self

    def __abs__(self) -> Traced:
        return -self if self.value < 0 else self

    def __bool__(self) -> bool:
        return bool(self.value)

    def __lt__(self, other: Any) -> Any:
        return NotImplemented if isinstance(other, np.ndarray) else self.value < self._parts(other)[0]

    def __le__(self, other: Any) -> Any:
        return NotImplemented if isinstance(other, np.ndarray) else self.value <= self._parts(other)[0]

    def __gt__(self, other: Any) -> Any:
        return NotImplemented if isinstance(other, np.ndarray) else self.value > self._parts(other)[0]

    def __ge__(self, other: Any) -> Any:
        return NotImplemented if isinstance(other, np.ndarray) else self.value >= self._parts(other)[0]

    def conjugate(self) -> Traced:
        return self

    def arctan2(self, x: Any) -> Traced:
        value, rate = self._parts(x)
        square = self.value**2 + value**2
        return Traced(math.atan2(self.value, value), (value * self.rate - self.value * rate) / square)

    def hypot(self, other: Any) -> Traced:
        value, rate = self._parts(other)
        length = math.hypot(self.value, value)
        return Traced(length, (self.value * self.rate + value * rate) / length)


def _kept(operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A jet's operation, its result a traced number again."""

    def apply(self: Any, other: Any) -> Any:
        found = operation(self, other)
        return found if found is NotImplemented else Traced(found.value, found.rate)

    return apply


def _method(rule: Rule) -> Callable[[Any], Any]:
    function, derivative = rule
    return lambda x: Traced(function(x.value), derivative(x.value) * x.rate)


for _name in ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv"):
    setattr(Traced, f"__{_name}__", _kept(getattr(Jet, f"__{_name}__")))
for _name, _rule in UNARY.items():
    setattr(Traced, _name, _method(_rule))


def traced(values: Array, rates: Array) -> Array:
    """The array of traced numbers with these values and rates."""
    result = np.empty(values.shape, dtype=object)
    for index in np.ndindex(values.shape):
        result[index] = Traced(float(values[index]), float(rates[index]))
    return result


def parts(array: Any) -> tuple[Array, Array]:
    """(values, rates) of what a function made of traced numbers; floats among them do not change."""
    entries = np.asarray(array, dtype=object)
    values, rates = np.empty(entries.shape), np.empty(entries.shape)
    for index in np.ndindex(entries.shape):
        values[index], rates[index] = Jet._parts(entries[index])
    return values, rates


__all__ = ["Traced", "parts", "traced"]
