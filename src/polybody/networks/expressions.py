"""Equations of parts as text: "winding.v = resistance*winding.i + inductance*der(winding.i)".

Names are a part's parameters and variables, the across and through variables of its ports (`port.v`, or `v` alone in a
part of one port), `time` and `pi`; `der(…)` is the time derivative. Functions are those of `FUNCTIONS`. An expression
is data: nothing of it is ever executed. It is read over numbers, SymPy or CasADi by the tables of functions given.
"""

from __future__ import annotations

import ast
import keyword
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from polybody.description.limits import EXPRESSION_CHARACTERS, EXPRESSION_DEPTH, LARGEST_NUMBER
from polybody.description.naming import printable
from polybody.errors import InputError
from polybody.names import counted

#: function: how many arguments
FUNCTIONS = {
    "sin": 1, "cos": 1, "tan": 1, "asin": 1, "acos": 1, "atan": 1, "atan2": 2, "sqrt": 1, "exp": 1, "log": 1,
    "tanh": 1, "abs": 1, "sign": 1, "min": 2, "max": 2, "der": 1,
}  # fmt: skip
#: ports may be named as Python's keywords are ("in.v"): they are marked while Python parses them
_MARK = "_as_a_port"
_KEYWORDS = re.compile(rf"\b({'|'.join(keyword.kwlist)})(?=\.[A-Za-z_])")
_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.Pow: lambda a, b: a**b,
}


@dataclass(frozen=True, eq=False)
class Text:
    """A parsed expression."""

    text: str  # as written
    tree: ast.expr  # parsed

    def names(self) -> Iterator[str]:
        """The names it uses, `port.v` with their dot."""
        nodes: list[ast.expr] = [self.tree]
        for node in nodes:
            if isinstance(node, ast.Attribute):
                yield _dotted(node, self.text)
            elif isinstance(node, ast.Name):
                if node.id != "pi":
                    yield node.id
            elif isinstance(node, ast.BinOp):
                nodes += [node.left, node.right]
            elif isinstance(node, ast.UnaryOp):
                nodes.append(node.operand)
            elif isinstance(node, ast.Call):
                nodes += node.args

    def value(self, lookup: Callable[[str], Any], functions: dict[str, Callable[..., Any]]) -> Any:
        """Its value; `lookup` gives names, `functions` the functions of the scalars they are."""
        return _evaluate(self.tree, self.text, lookup, functions)


def parse(text: str) -> Text:
    """The expression of a text; an `InputError` says what is not understood."""
    text = str(text).replace("^", "**").strip()
    if len(text) > EXPRESSION_CHARACTERS:
        raise InputError(f"the expression has {len(text)} characters, at most {EXPRESSION_CHARACTERS} are read")
    if printable(text) != text:
        raise InputError(f"the expression {text!r:.200} has control characters")
    try:
        tree = ast.parse(_KEYWORDS.sub(rf"\1{_MARK}", text), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InputError(f"{text!r:.200} is not an expression: {error}") from None
    _check(tree, text, 0)
    return Text(text, tree)


def parse_equation(text: str) -> tuple[Text, Text]:
    """(left, right) of "left = right"."""
    sides = str(text).split("=")
    if len(sides) != 2:
        raise InputError(f"{text!r:.200} is not an equation: expected one '=' in it")
    return parse(sides[0]), parse(sides[1])


def parse_condition(text: str) -> Text:
    """"a > b", "a < b", or several joined by "and" and "or", as an expression that is positive where it holds."""
    for word, function in ((" or ", "max"), (" and ", "min")):
        first, _, rest = text.partition(word)
        if rest:
            return parse(f"{function}({parse_condition(first).text}, {parse_condition(rest).text})")
    for sign, flip in ((">", False), ("<", True)):
        if sign in text:
            left, _, right = text.partition(sign)
            parse(left)
            parse(right)
            return parse(f"({right}) - ({left})" if flip else f"({left}) - ({right})")
    raise InputError(f"{text!r:.200} is not a condition: expected '>' or '<' in it")


def _check(node: ast.expr, text: str, depth: int) -> None:
    if depth > EXPRESSION_DEPTH:
        raise InputError(f"the expression {text!r:.200} is nested too deeply")
    if isinstance(node, ast.Name):
        return
    if isinstance(node, ast.Attribute):
        _dotted(node, text)
    elif isinstance(node, ast.Constant):
        value = node.value
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST_NUMBER:
            raise InputError(f"{value!r:.40} in {text!r:.200} is not a finite number (of at most {LARGEST_NUMBER:g})")
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        _check(node.operand, text, depth + 1)
    elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        _check(node.left, text, depth + 1)
        _check(node.right, text, depth + 1)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        if FUNCTIONS.get(node.func.id) != len(node.args):
            called = f"{node.func.id!r:.40} of {counted(len(node.args), 'argument')}"
            raise InputError(f"no function {called} in {text!r:.200}; available: {', '.join(FUNCTIONS)}")
        for argument in node.args:
            _check(argument, text, depth + 1)
    else:
        said = ast.get_source_segment(text, node) or text
        raise InputError(f"{said!r:.200} in {text!r:.200} is not understood; expected names, numbers, + - * / ** and "
                         "functions")


def _dotted(node: ast.Attribute, text: str) -> str:
    if not isinstance(node.value, ast.Name):
        raise InputError(f"{ast.unparse(node)!r:.80} in {text!r:.200} is not understood; expected PORT.VARIABLE")
    return f"{node.value.id.removesuffix(_MARK)}.{node.attr}"


def _evaluate(node: ast.expr, text: str, lookup: Callable[[str], Any], functions: dict[str, Any]) -> Any:
    if isinstance(node, ast.Name):
        return functions["pi"] if node.id == "pi" else lookup(node.id)
    if isinstance(node, ast.Attribute):
        return lookup(_dotted(node, text))
    if isinstance(node, ast.Constant):
        return functions["number"](node.value)
    if isinstance(node, ast.UnaryOp):
        value = _evaluate(node.operand, text, lookup, functions)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.Call):
        assert isinstance(node.func, ast.Name)
        arguments = [_evaluate(a, text, lookup, functions) for a in node.args]
        if node.func.id not in functions:
            raise InputError(f"{node.func.id}() has no place in {text!r:.200}")
        return functions[node.func.id](*arguments)
    assert isinstance(node, ast.BinOp)
    left, right = (_evaluate(side, text, lookup, functions) for side in (node.left, node.right))
    try:
        return _OPERATORS[type(node.op)](left, right)
    except ZeroDivisionError:
        raise InputError(f"{text!r:.200} divides by zero") from None


NUMBERS: dict[str, Any] = {
    **{name: getattr(math, name) for name in ("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sqrt", "exp",
                                              "log", "tanh")},
    "abs": abs, "min": min, "max": max, "sign": lambda x: float((x > 0) - (x < 0)), "pi": math.pi, "number": float,
}  # fmt: skip


def casadi_functions(der: Callable[[Any], Any] | None = None) -> dict[str, Any]:
    """The functions over CasADi's SX; `der` is the time derivative where there is one."""
    import casadi as ca

    table = {name: getattr(ca, name) for name in ("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sqrt", "exp",
                                                  "log", "tanh", "sign")}
    table |= {"abs": ca.fabs, "min": ca.fmin, "max": ca.fmax, "pi": math.pi, "number": float}
    return table if der is None else {**table, "der": der}


def sympy_functions() -> dict[str, Any]:
    """The functions over SymPy; der(x) is printed as a derivative by the caller's own function."""
    import sympy as sp

    table = {name: getattr(sp, name) for name in ("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sqrt", "exp",
                                                  "log", "tanh", "sign")}
    return {**table, "abs": sp.Abs, "min": sp.Min, "max": sp.Max, "pi": sp.pi,
            "number": lambda x: sp.nsimplify(x, rational=True)}


__all__ = ["FUNCTIONS", "NUMBERS", "Text", "casadi_functions", "parse", "parse_condition", "parse_equation",
           "sympy_functions"]  # fmt: skip
