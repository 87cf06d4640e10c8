"""Symbols that plain NumPy code can be run on: what comes out is the expression it computes.

`SymbolArray` is an array of `Symbol`s that goes through operators, indexing, sums, products of matrices and the usual
functions of NumPy, also those that choose (`maximum`, `clip`, `where`, `sign`, `abs`). What needs to know a number (an
`if`, `float(x)`, writing into an array of floats, numpy.linalg) raises: such code is no expression.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from polybody.names import counted

Array = np.ndarray


class NeedsNumbers(TypeError):
    """Code asked a symbol for its value."""


def _sx(value: Any) -> Any:
    import casadi

    return value.sx if isinstance(value, Symbol) else casadi.SX(float(value))


def _operation(name: str, *values: Any) -> Symbol:
    import casadi

    return Symbol(getattr(casadi, name)(*(_sx(value) for value in values)))


class Symbol:
    """One scalar of an expression."""

    __slots__ = ("sx",)

    def __init__(self, sx: Any) -> None:
        self.sx = sx

    def _with(self, other: Any, make: Callable[[Any, Any], Any]) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented
        return Symbol(make(self.sx, _sx(other)))

    def __bool__(self) -> bool:
        raise NeedsNumbers("a condition depends on the state")

    def __float__(self) -> float:
        raise NeedsNumbers("a number depends on the state")

    __int__ = __index__ = __float__  # type: ignore[assignment]

    def __neg__(self) -> Symbol:
        return Symbol(-self.sx)

    def __pos__(self) -> Symbol:
        return self

    def __abs__(self) -> Symbol:
        return _operation("fabs", self)

    def conjugate(self) -> Symbol:
        return self

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return _scalar(getattr(ufunc, method)(*_arrays(inputs), **options))

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return _scalar(function(*_arrays(args), **kwargs))

    __hash__ = None  # type: ignore[assignment]


def _arrays(values: Any) -> Any:
    """Symbols among arguments as arrays without dimensions: NumPy would ask a bare object which of two is larger."""
    if isinstance(values, Symbol):
        array = np.empty((), dtype=object)
        array[()] = values
        return array.view(SymbolArray)
    return type(values)(map(_arrays, values)) if type(values) in (list, tuple) else values


def _scalar(value: Any) -> Any:
    return value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value


def _binary(make: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda self, other: self._with(other, make)


for _name, _make in {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "truediv": lambda a, b: a / b,
    "pow": lambda a, b: a**b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b, "eq": lambda a, b: a == b, "ne": lambda a, b: a != b,
}.items():  # fmt: skip
    setattr(Symbol, f"__{_name}__", _binary(_make))
    if _name in ("add", "sub", "mul", "truediv", "pow"):
        setattr(Symbol, f"__r{_name}__", _binary(lambda a, b, make=_make: make(b, a)))

#: NumPy's functions of one or two numbers, by CasADi's names
FUNCTIONS: dict[str, str] = {
    **{name: name for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "log", "sqrt", "sign", "floor",
                               "ceil", "expm1", "log1p", "hypot", "fmod")},
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh",
    "arctan2": "atan2", "absolute": "fabs", "fabs": "fabs", "maximum": "fmax", "minimum": "fmin", "fmax": "fmax",
    "fmin": "fmin", "copysign": "copysign", "logical_and": "logic_and", "logical_or": "logic_or",
}  # fmt: skip
COMPARISONS = {"greater": operator.gt, "greater_equal": operator.ge, "less": operator.lt, "less_equal": operator.le,
               "equal": operator.eq, "not_equal": operator.ne}  # fmt: skip
for _name, _own in FUNCTIONS.items():
    setattr(Symbol, _name, functools.partialmethod(lambda self, *more, own: _operation(own, self, *more), own=_own))


class SymbolArray(np.ndarray):
    """An object array of symbols."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        plain = [np.asarray(x) if isinstance(x, np.ndarray) else x for x in inputs]
        into = None if out is None else tuple(np.asarray(x) for x in out)
        if ufunc.__name__ == "clip":
            found = np.minimum(np.maximum(_symbols(plain[0]), plain[1]), plain[2])
            return _returned(found, into)
        if ufunc.__name__ in FUNCTIONS and method == "__call__":
            one = functools.partial(_operation, FUNCTIONS[ufunc.__name__])
            return _returned(np.frompyfunc(one, len(plain), 1)(*plain), into)
        if ufunc.__name__ in COMPARISONS and method == "__call__":
            return _symbols(np.frompyfunc(COMPARISONS[ufunc.__name__], 2, 1)(*plain))
        if ufunc.__name__ in FUNCTIONS and method == "reduce":
            one = functools.partial(_operation, FUNCTIONS[ufunc.__name__])
            return _returned(np.frompyfunc(one, 2, 1).reduce(plain[0], axis=options.get("axis", 0)), into)
        if into is not None:
            options["out"] = into
        return _symbols(getattr(ufunc, method)(*plain, **options))

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function is np.where and len(args) == 3:
            return _symbols(np.frompyfunc(_chosen, 3, 1)(*(np.asarray(x) for x in args)))
        if function is np.clip:
            low, high = (*args, *kwargs.values())[1:3]
            return np.minimum(np.maximum(_symbols(np.asarray(args[0])), low), high)
        if function.__module__.startswith("numpy.linalg") and function is not np.linalg.norm:
            raise NeedsNumbers(f"numpy.linalg.{function.__name__} needs numbers")
        if function is np.linalg.norm and len(args) == 1 and not kwargs:
            flat = np.asarray(args[0]).ravel()
            return _operation("sqrt", sum((x * x for x in flat[1:]), flat[0] * flat[0]))
        return super().__array_function__(function, types, args, kwargs)


def _chosen(condition: Any, yes: Any, no: Any) -> Any:
    import casadi

    if not isinstance(condition, Symbol):
        return yes if condition else no
    return Symbol(casadi.if_else(condition.sx, _sx(yes), _sx(no)))


def _symbols(value: Any) -> Any:
    return value.view(SymbolArray) if isinstance(value, np.ndarray) and value.dtype == object else value


def _returned(found: Any, into: Any) -> Any:
    if into is None:
        return _symbols(found)
    into[0][...] = found
    return _symbols(into[0])


def symbol_array(column: Any) -> SymbolArray:
    """The entries of a CasADi column."""
    result = np.empty(column.shape[0], dtype=object)
    for k in range(column.shape[0]):
        result[k] = Symbol(column[k])
    return result.view(SymbolArray)


def expression(values: Any, size: int) -> Any:
    """The CasADi column of what code returned: `size` symbols and numbers."""
    import casadi

    flat = np.asarray(values, dtype=object).ravel() if not isinstance(values, Symbol) else [values]
    if len(flat) != size:
        raise NeedsNumbers(f"{counted(len(flat), 'number')} came back, not {size}")
    return casadi.densify(casadi.vertcat(*(_sx(x) for x in flat)))


__all__ = ["NeedsNumbers", "Symbol", "SymbolArray", "expression", "symbol_array"]
