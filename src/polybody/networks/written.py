"""CasADi expressions as equations of a part: text, with what is used more than once as variables of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from polybody.errors import InputError

#: operations by name of CasADi's, as text over arguments in brackets
TEXTS = {
    "ADD": "{a} + {b}", "SUB": "{a} - {b}", "MUL": "{a}*{b}", "DIV": "{a}/{b}", "NEG": "-{a}", "TWICE": "2*{a}",
    "INV": "1/{a}", "SQ": "{a}*{a}", "SQRT": "sqrt({a})", "FABS": "abs({a})", "SIGN": "sign({a})",
    "FMIN": "min({a}, {b})", "FMAX": "max({a}, {b})", "POW": "{a}^{b}", "CONSTPOW": "{a}^{b}",
    **{name.upper(): f"{name}({{a}})" for name in ("sin", "cos", "tan", "asin", "acos", "atan", "exp", "log", "tanh")},
    "ATAN2": "atan2({a}, {b})",
}  # fmt: skip
#: characters from which an intermediate result gets a name
LONG = 300


def written(expressions: Sequence[Any], names: Mapping[str, str], symbols: Sequence[Any], lead: str) -> tuple[
    list[str], list[tuple[str, str]]
]:  # fmt: skip
    """(texts of the expressions, [(variable, text)] of what they share); `names` are the symbols' names in the texts.

    Functions that equations of parts do not have (conditionals) raise an error.
    """
    import casadi as ca

    from polybody.kernels.tape import CONST, INPUT, from_function

    column = ca.vertcat(*symbols)
    tape = from_function(ca.Function("text", [column], [ca.densify(ca.vertcat(*expressions, ca.SX(0, 1)))]))
    table = {getattr(ca, f"OP_{key}"): text for key, text in TEXTS.items()}
    uses: dict[int, int] = {}
    for node in range(len(tape.nodes)):
        for argument in tape.arguments(node):
            uses[argument] = uses.get(argument, 0) + 1
    texts: list[str] = []
    shared: list[tuple[str, str]] = []
    for node, (op, a, b) in enumerate(tape.nodes):
        if op == CONST:
            texts.append(f"({float(a)!r})")
        elif op == INPUT:
            texts.append(names[symbols[int(b)].name()])
        elif op not in table:
            raise InputError("the equations have a condition or function that equations of parts cannot state")
        else:
            arguments = dict(zip("ab", (texts[k] for k in tape.arguments(node)), strict=False))
            text = f"({table[op].format(**arguments)})"
            if uses.get(node, 0) > 1 or len(text) > LONG:
                shared.append((f"{lead}{len(shared)}", text))
                text = shared[-1][0]
            texts.append(text)
    return [texts[node] for node in tape.outputs[0]], shared


__all__ = ["written"]
