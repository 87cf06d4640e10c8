"""Expressions in joint coordinates: "rocker - 2*sin(crank)", read once and evaluated over any scalar domain.

A joint of one number is written by its name, or as q["any name"]; number k of a joint with several as q["ball"][k].
Functions are sin, cos, tan, asin, acos, atan, atan2, sqrt, and pi is a number. Only these are understood: an
expression is data, nothing of it is ever executed.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from polybody.algebra.domains import Array, Domain
from polybody.errors import InputError

_ARGUMENTS = {"sin": 1, "cos": 1, "tan": 1, "asin": 1, "acos": 1, "atan": 1, "atan2": 2, "sqrt": 1}
_LONGEST = 2000
_DEEPEST = 60
_LARGEST_POWER = 12


@dataclass(frozen=True, eq=False)
class Expression:
    """A parsed expression; `used` are its (joint, number) pairs."""

    text: str
    tree: ast.expr
    used: tuple[tuple[str, int], ...]

    @property
    def joints(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for name, _ in self.used))

    def value(self, q: Mapping[str, Array], domain: Domain) -> Any:
        """The value at joint coordinates `q` of that domain."""
        return _evaluate(self.tree, q, domain)


def parse(text: str) -> Expression:
    """The expression of a text; an `InputError` says what is not understood, and where."""
    if len(text) > _LONGEST:
        raise InputError(f"the expression has {len(text)} characters, at most {_LONGEST} are read")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InputError(f"{text!r} is no expression: {error}") from None
    used: dict[tuple[str, int], None] = {}
    _check(tree, text, used, 0)
    if not used:
        raise InputError(f"{text!r} names no joint")
    return Expression(text.strip(), tree, tuple(used))


def _coordinate(node: ast.expr) -> tuple[str, int] | None:
    """(joint, number) of a name, q["name"] or q["name"][k]."""
    if isinstance(node, ast.Name) and node.id != "pi":
        return node.id, 0
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Constant):
        return None
    inner, key = node.value, node.slice.value
    if isinstance(inner, ast.Name) and inner.id == "q" and isinstance(key, str):
        return key, 0
    if isinstance(key, int) and not isinstance(key, bool) and key >= 0 and isinstance(inner, ast.Subscript):
        before = _coordinate(inner)
        return None if before is None or isinstance(inner.value, ast.Subscript) else (before[0], key)
    return None


def _check(node: ast.expr, text: str, used: dict[tuple[str, int], None], depth: int) -> None:
    place = f" at column {node.col_offset + 1} of {text!r}"
    if depth > _DEEPEST:
        raise InputError(f"the expression {text!r} is nested too deeply")
    found = _coordinate(node)
    if found is not None:
        used[found] = None
    elif isinstance(node, ast.Name):  # pi
        pass
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool) or not isinstance(node.value, int | float) or not math.isfinite(node.value):
            raise InputError(f"{node.value!r}{place} is no finite number")
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        _check(node.operand, text, used, depth + 1)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.Div):
        _check(node.left, text, used, depth + 1)
        _check(node.right, text, used, depth + 1)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        power = node.right
        whole = isinstance(power, ast.Constant) and isinstance(power.value, int) and 0 < power.value <= _LARGEST_POWER
        if not whole:
            raise InputError(f"a power{place} must be a whole number from 1 to {_LARGEST_POWER}")
        _check(node.left, text, used, depth + 1)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        name = node.func.id
        if name not in _ARGUMENTS or len(node.args) != _ARGUMENTS[name]:
            known = ", ".join(f"{key}({'y, x' if n == 2 else 'x'})" for key, n in _ARGUMENTS.items())
            raise InputError(f"no function {name!r} of {len(node.args)} arguments{place}; there are {known}")
        for argument in node.args:
            _check(argument, text, used, depth + 1)
    else:
        wanted = "wanted joints, numbers, + - * / ** and functions"
        raise InputError(f"{ast.unparse(node)!r}{place} is not understood; {wanted}")


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
