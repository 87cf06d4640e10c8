"""Dimensions of constants and of expressions of them, so that "=L" raises an error where an angle is expected.

A constant written with a unit (30cm) has a dimension; one without (0.3) may be anything. Exponents of angle, length and
mass go through an expression as units do: sums need equal ones, products add them. Radians vanish beside other units:
a radius times an angle is a length. What is neither an angle, nor a length, nor a mass (an area, a ratio) is not
checked.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from polybody.description.expressions import parse
from polybody.description.units import ANGLE, LENGTH, MASS, dimension_of
from polybody.errors import InputError

#: exponents of angle, length and mass; None where a number may be anything
Dimension = tuple[float, float, float] | None
NUMBER: Dimension = (0.0, 0.0, 0.0)
_ONE = {ANGLE: (1.0, 0.0, 0.0), LENGTH: (0.0, 1.0, 0.0), MASS: (0.0, 0.0, 1.0)}
_UNITS = {_ONE[ANGLE]: "rad", _ONE[LENGTH]: "m", _ONE[MASS]: "kg"}
_NAMES = {value: name for name, value in _ONE.items()}


def dimension_of_text(text: str, mark: str, known: Mapping[str, Dimension]) -> Dimension:
    """Of a constant as the file writes it: with a unit, without one, or an expression of others."""
    if text.startswith(mark):
        return _dimension(parse(text[len(mark) :].strip()).tree, known)
    said = dimension_of(text)
    return None if said is None else _ONE[said]


def unit_of(text: str, known: Mapping[str, Dimension]) -> str:
    """The SI unit that the value of an expression carries; none where it is not an angle, a length or a mass."""
    found = _dimension(parse(text).tree, known)
    return "" if found is None else _UNITS.get(found, "")


def _dimension(node: Any, known: Mapping[str, Dimension]) -> Dimension:
    if isinstance(node, ast.Name):
        return known.get(node.id) if node.id != "pi" else NUMBER
    if isinstance(node, ast.UnaryOp):
        return _dimension(node.operand, known)
    if isinstance(node, ast.Call):
        return _of_function(node, [_dimension(argument, known) for argument in node.args])
    if not isinstance(node, ast.BinOp):
        return NUMBER if isinstance(node, ast.Constant) else None
    left = _dimension(node.left, known)
    if isinstance(node.op, ast.Pow):
        return _scaled(left, float(node.right.value))  # type: ignore[attr-defined]
    right = _dimension(node.right, known)
    if isinstance(node.op, ast.Add | ast.Sub):
        return _same(node, left, right)
    if left is None or right is None:
        return None
    sign = 1 if isinstance(node.op, ast.Mult) else -1
    return _without_radians((left[0] + sign * right[0], left[1] + sign * right[1], left[2] + sign * right[2]))


def _same(node: ast.AST, left: Dimension, right: Dimension) -> Dimension:
    """Of a sum: numbers without a unit are taken to have the other's."""
    if left in (None, NUMBER) or right in (None, NUMBER) or left == right:
        return right if left in (None, NUMBER) else left
    raise InputError(f"{ast.unparse(node)!r:.80} joins {_said(left)} and {_said(right)}")


def _of_function(node: ast.Call, given: list[Dimension]) -> Dimension:
    name = node.func.id  # type: ignore[attr-defined]
    if name == "sqrt":
        return _scaled(given[0], 0.5)
    if name == "atan2":
        _same(node, *given)
        return _ONE[ANGLE]
    first = given[0]
    turns = name in ("sin", "cos", "tan")
    if first is not None and (any(first[1:]) or (first[0] and not turns)):
        raise InputError(f"{ast.unparse(node)!r:.80} takes {'an angle' if turns else 'a ratio'}, not {_said(first)}")
    return NUMBER if turns else _ONE[ANGLE]


def _scaled(x: Dimension, power: float) -> Dimension:
    return None if x is None else _without_radians((x[0] * power, x[1] * power, x[2] * power))


def _without_radians(x: tuple[float, float, float]) -> Dimension:
    return (0.0, *x[1:]) if any(x[1:]) else x


def _said(x: Dimension) -> str:
    name = None if x is None else _NAMES.get(x)
    return f"{'an' if name == ANGLE else 'a'} {name}" if name else "another quantity"


__all__ = ["Dimension", "dimension_of_text", "unit_of"]
