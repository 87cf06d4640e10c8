"""Expressions in joint coordinates: "rocker - 2*sin(crank)", read once and evaluated over any scalar domain.

A joint of one number is written by its name, or as q["any name"]; number k of a joint with several as q["ball"][k].
Functions are sin, cos, tan, asin, acos, atan, atan2, sqrt, and pi is a number. Only these are understood: an
expression is data, nothing of it is ever executed.
"""

from __future__ import annotations

import ast
import math
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.description.limits import (
    EXPRESSION_CHARACTERS,
    EXPRESSION_DEPTH,
    EXPRESSION_POWER,
    EXPRESSION_TERMS,
    LARGEST_NUMBER,
)
from polybody.description.naming import printable
from polybody.errors import InputError
from polybody.late import dataclass
from polybody.names import counted

_ARGUMENTS = {"sin": 1, "cos": 1, "tan": 1, "asin": 1, "acos": 1, "atan": 1, "atan2": 2, "sqrt": 1}


@dataclass(frozen=True, eq=False)
class Expression:
    """A parsed expression; `used` are its (joint, number) pairs."""

    text: str
    tree: ast.expr
    used: tuple[tuple[str, int], ...]

    @property
    def joints(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for name, _ in self.used))

    def renamed(self, new: Callable[[str], str]) -> Expression:
        """The same function of joints under other names."""

        def rebuilt(node: ast.AST) -> Any:
            found = _coordinate(node) if isinstance(node, ast.expr) else None
            if found is not None:
                return ast.parse(f"q[{new(found[0])!r}][{found[1]}]", mode="eval").body
            for field, old in ast.iter_fields(node):
                if isinstance(old, list):
                    setattr(node, field, [rebuilt(x) if isinstance(x, ast.expr) else x for x in old])
                elif isinstance(old, ast.expr) and not (field == "func" and isinstance(node, ast.Call)):
                    setattr(node, field, rebuilt(old))
            return node

        return parse(ast.unparse(rebuilt(ast.parse(self.text, mode="eval").body)))

    def value(self, q: Mapping[str, Array], domain: Domain) -> Any:
        """The value at joint coordinates `q` of that domain."""
        try:
            return _evaluate(self.tree, q, domain)
        except (ZeroDivisionError, FloatingPointError):
            raise InputError(f"{self.text!r:.200} divides by zero") from None


def parse(text: str) -> Expression:
    """The expression of a text; an `InputError` says what is not understood, and where."""
    if len(text) > EXPRESSION_CHARACTERS:
        raise InputError(f"the expression has {len(text)} characters, at most {EXPRESSION_CHARACTERS} are read")
    text = text.strip()
    if printable(text) != text:
        raise InputError(f"the expression {text!r:.200} has control characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # of escapes in names
            tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InputError(f"{text!r:.200} is not an expression: {error}") from None
    used: dict[tuple[str, int], None] = {}
    _check(tree, text, used, 0)
    if not used:
        raise InputError(f"{text!r} names no joint")
    expression = Expression(text, tree, tuple(used))
    _refuse_nowhere_defined(expression)
    return expression


def _refuse_nowhere_defined(expression: Expression) -> None:
    """j/0 and 1/(j - j) divide by zero wherever the joints are: seen at a point that is special to no function."""
    point: dict[str, Any] = {name: {} for name in expression.joints}
    for k, (name, number) in enumerate(expression.used):
        point[name][number] = 0.1 + 0.6180339887 * (k + 1) % 0.5
    try:
        with np.errstate(divide="raise", invalid="ignore", over="ignore"):
            expression.value(point, FLOAT)
    except InputError:
        raise
    except (ValueError, OverflowError):
        pass  # outside of what asin or sqrt take there is no value either, but elsewhere there may be


def _coordinate(node: ast.expr) -> tuple[str, int] | None:
    """(joint, number) of a name, q["name"] or q["name"][k]."""
    if isinstance(node, ast.Name):
        return None if node.id == "pi" else (node.id, 0)
    number = 0
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Subscript):
        key = node.slice.value if isinstance(node.slice, ast.Constant) else None
        node = node.value
        if not isinstance(key, int) or isinstance(key, bool) or key < 0:
            return None
        number = key
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Constant):
        return None
    inner, name = node.value, node.slice.value
    named = isinstance(inner, ast.Name) and inner.id == "q" and isinstance(name, str)
    return (str(name), number) if named else None


def _check(node: ast.expr, text: str, used: dict[tuple[str, int], None], depth: int) -> int:
    """Refuse what is not understood, collect the coordinates; returns the number of terms, 0 where it is a constant.

    Terms are those of the sum when everything is multiplied out, which is what symbolic models may do; a function is
    one term.
    """
    place = f" at column {node.col_offset + 1} of {text!r:.200}"
    if depth > EXPRESSION_DEPTH:
        raise InputError(f"the expression {text!r:.200} is nested too deeply")
    terms = 0
    found = _coordinate(node)
    if found is not None:
        used[found] = None
        terms = 1
    elif isinstance(node, ast.Name):  # pi
        pass
    elif isinstance(node, ast.Constant):
        number = isinstance(node.value, int | float) and not isinstance(node.value, bool)
        if not number or not abs(node.value) <= LARGEST_NUMBER:  # type: ignore[arg-type,operator]
            said = f"{node.value!r:.40}" if not isinstance(node.value, int) else "the number"
            raise InputError(f"{said}{place} is not a finite number (of at most {LARGEST_NUMBER:g})")
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        terms = _check(node.operand, text, used, depth + 1)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.Div):
        both = [_check(side, text, used, depth + 1) for side in (node.left, node.right)]
        if any(both):
            left, right = (max(1, count) for count in both)
            terms = left + right if isinstance(node.op, ast.Add | ast.Sub) else left * right
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        power = node.right.value if isinstance(node.right, ast.Constant) else None
        if not isinstance(power, int) or isinstance(power, bool) or not 0 < power <= EXPRESSION_POWER:
            raise InputError(f"a power{place} must be a whole number from 1 to {EXPRESSION_POWER}")
        base = _check(node.left, text, used, depth + 1)
        terms = math.comb(base + power - 1, power) if base else 0
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        name = node.func.id
        if name not in _ARGUMENTS or len(node.args) != _ARGUMENTS[name]:
            known = ", ".join(f"{key}({'y, x' if n == 2 else 'x'})" for key, n in _ARGUMENTS.items())
            raise InputError(
                f"no function {name!r:.40} of {counted(len(node.args), 'argument')}{place}; available: {known}"
            )
        terms = min(1, sum([_check(argument, text, used, depth + 1) for argument in node.args]))
    else:
        wanted = "expected joints, numbers, + - * / ** and functions"
        said = ast.get_source_segment(text, node) or text
        raise InputError(f"{said!r:.200}{place} is not understood; {wanted}")
    if terms > EXPRESSION_TERMS:
        raise InputError(f"multiplied out, powers and products{place} have more than {EXPRESSION_TERMS} terms")
    if terms == 0:
        _refuse_undefined(node, place)
    return terms


def _refuse_undefined(node: ast.expr, place: str) -> None:
    """An expression without coordinates must have a value: 1/0, asin(2) and sqrt(-1) have none."""
    try:
        value = float(_evaluate(node, {}, FLOAT))
    except (ArithmeticError, ValueError):
        value = math.nan
    if not abs(value) <= LARGEST_NUMBER:
        raise InputError(f"{ast.unparse(node)!r:.80}{place} has no finite value")


def _evaluate(node: ast.expr, q: Mapping[str, Array], domain: Domain) -> Any:
    found = _coordinate(node)
    if found is not None:
        return q[found[0]][found[1]]
    if isinstance(node, ast.Name):
        return domain.const(math.pi)
    if isinstance(node, ast.Constant):
        return domain.const(node.value)
    if isinstance(node, ast.UnaryOp):
        value = _evaluate(node.operand, q, domain)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.Call):
        assert isinstance(node.func, ast.Name)
        return _FUNCTIONS[node.func.id](domain, *(_evaluate(a, q, domain) for a in node.args))
    assert isinstance(node, ast.BinOp)
    left = _evaluate(node.left, q, domain)
    if isinstance(node.op, ast.Pow):
        assert isinstance(node.right, ast.Constant)
        assert isinstance(node.right.value, int)
        result = left
        for _ in range(node.right.value - 1):
            result = result * left
        return result
    right = _evaluate(node.right, q, domain)
    if isinstance(node.op, ast.Add):
        return left + right
    if isinstance(node.op, ast.Sub):
        return left - right
    return left * right if isinstance(node.op, ast.Mult) else left / right


def _asin(d: Domain, x: Any) -> Any:
    return d.atan2(x, d.sqrt(d.const(1) - x * x))


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sin": lambda d, x: d.sin(x),
    "cos": lambda d, x: d.cos(x),
    "tan": lambda d, x: d.sin(x) / d.cos(x),
    "asin": _asin,
    "acos": lambda d, x: d.const(math.pi / 2) - _asin(d, x),
    "atan": lambda d, x: d.atan2(x, d.const(1)),
    "atan2": lambda d, y, x: d.atan2(y, x),
    "sqrt": lambda d, x: d.sqrt(x),
}

__all__ = ["Expression", "parse"]
