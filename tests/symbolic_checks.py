"""Deciding that two trigonometric expressions are the same function, by SymPy alone."""

from __future__ import annotations

from typing import Any

import sympy


def reduced(expression: Any) -> Any:
    """The expression in sines and cosines of single symbols, sin² replaced: zero exactly when the function is."""
    expression = sympy.expand(sympy.expand_trig(sympy.expand(expression)))
    for sine in sorted(expression.atoms(sympy.sin), key=str):
        cosine = sympy.cos(sine.args[0])
        powers = sympy.Poly(expression, sine).terms()
        parts = [c * sine ** (n % 2) * (1 - cosine**2) ** (n // 2) for (n,), c in powers]
        expression = sympy.expand(sympy.Add(*parts))
    return expression


def assert_same(found: Any, wanted: Any) -> None:
    """Every entry is the same function of all its symbols."""
    found, wanted = sympy.Matrix(found), sympy.Matrix(wanted)
    assert found.shape == wanted.shape
    for index, (a, b) in enumerate(zip(found, wanted, strict=True)):
        assert reduced(a - b) == 0, f"entry {divmod(index, found.cols)}: {a} is not {b}"
