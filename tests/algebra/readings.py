"""One number, many readings: inputs of every scalar domain from floats, and floats back from its results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi
import mpmath
import numpy as np
import sympy

from polybody.algebra import FLOAT, Domain, JetDomain, domain

Array = np.ndarray

mpmath.mp.dps = 40

DOMAINS: dict[str, Domain] = {
    "float64": FLOAT,
    "complex128": domain("complex128"),
    "sympy": domain("sympy"),
    "casadi": domain("casadi"),
    "mpmath": domain("mpmath"),
    "jet(float64)": JetDomain(FLOAT),
    "jet(sympy)": JetDomain(domain("sympy")),
    "jet(casadi)": JetDomain(domain("casadi")),
}


def reading(name: str, function: Callable[..., Any], *arrays: Array) -> Any:
    """function(*arrays, domain=…) computed in the named domain, as floats.

    In the casadi domain the inputs are symbols: the expression graph is built, then evaluated. In the sympy domain they
    are exact rationals, evaluated to 30 digits at the end.
    """
    d = DOMAINS[name]
    base = d.base if isinstance(d, JetDomain) else d
    columns, entered = [], []
    for values in arrays:
        values = np.asarray(values, dtype=float)
        if base.name == "casadi":
            column, scalars = base.variables("x", values.size)  # type: ignore[attr-defined]
            columns.append(column)
            scalars = scalars.reshape(values.shape)
        else:
            scalars = base.array(values)
        entered.append(d.lift(scalars) if isinstance(d, JetDomain) else scalars)
    result = function(*entered, domain=d)
    if isinstance(result, tuple):
        return tuple(_floats(d, part, columns, arrays) for part in result)
    return _floats(d, result, columns, arrays)


def _floats(d: Domain, result: Any, columns: list[Any], arrays: tuple[Array, ...]) -> Array:
    result = np.asarray(result, dtype=object if d.dtype is object else None)
    if isinstance(d, JetDomain):
        result, d = d.values(result), d.base
    if d.name == "casadi":
        evaluate = casadi.Function("f", columns, [d.column(result)])  # type: ignore[attr-defined]
        values = evaluate(*(np.asarray(a, dtype=float).ravel() for a in arrays))
        return np.array(values, dtype=float).reshape(result.shape)
    if d.name == "complex128":
        assert np.abs(result.imag).max() == 0
        return result.real
    if d.name in ("sympy", "mpmath"):
        return np.array([float(sympy.N(x, 30)) if d.name == "sympy" else float(x) for x in result.ravel()]).reshape(
            result.shape
        )
    return np.asarray(result, dtype=float)
