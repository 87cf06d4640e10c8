"""Long expressions as short pieces, so that lines can break between them.

Neither LaTeX's display mathematics nor MathML in browsers breaks lines by itself. An expression is cut at the signs of
its sums, also inside the brackets of a long factor; a `Writer` prints each piece in its own language.
"""

from __future__ import annotations

from typing import Any, Protocol

import sympy

#: Expressions up to this many characters of plain text stay in one piece.
SHORT = 60


class Writer(Protocol):
    """One language of mathematics."""

    def whole(self, expression: Any) -> str:
        """A short expression."""
        ...

    def factor(self, expression: Any) -> str:
        """A short expression as a factor of a product, in brackets if it is a sum."""
        ...

    def operator(self, sign: str) -> str:
        """+, −, ( or )."""
        ...

    def power(self, exponent: Any) -> str:
        """A bracket's exponent, to be put after the bracket."""
        ...


def pieces(expression: Any, writer: Writer, short: int = SHORT) -> list[str]:
    """The expression, cut; joined in order the pieces are the whole."""
    if len(str(expression)) <= short:
        return [writer.whole(expression)]
    if expression.is_Add:
        return _sum(expression, writer, short)
    if expression.is_Mul:
        return _product(expression, writer, short)
    if expression.is_Pow and expression.base.is_Add and expression.exp.is_Integer and expression.exp > 1:
        return _bracketed(pieces(expression.base, writer, short), writer, writer.power(expression.exp))
    return [writer.whole(expression)]


def _sum(expression: Any, writer: Writer, short: int) -> list[str]:
    result: list[str] = []
    for k, term in enumerate(expression.as_ordered_terms()):
        negative = term.could_extract_minus_sign()
        parts = pieces(-term if negative else term, writer, short)
        if k or negative:
            parts[0] = writer.operator("−" if negative else "+") + parts[0]
        result += parts
    return result


def _product(expression: Any, writer: Writer, short: int) -> list[str]:
    if expression.could_extract_minus_sign():
        parts = _product(-expression, writer, short) if (-expression).is_Mul else pieces(-expression, writer, short)
        return [writer.operator("−") + parts[0], *parts[1:]]
    brief = [f for f in expression.args if len(str(f)) <= short or not (f.is_Add or f.is_Pow)]
    long = [f for f in expression.args if f not in brief]
    head = writer.factor(sympy.Mul(*brief)) if brief else ""
    if not long:
        return [head]
    result: list[str] = []
    for factor in long:
        base, exponent = (factor.base, factor.exp) if factor.is_Pow else (factor, None)
        if exponent is not None and not (base.is_Add and exponent.is_Integer and exponent > 1):
            result.append(writer.factor(factor))
            continue
        result += _bracketed(pieces(base, writer, short), writer, "" if exponent is None else writer.power(exponent))
    result[0] = head + result[0]
    return result


def _bracketed(parts: list[str], writer: Writer, after: str) -> list[str]:
    parts = list(parts)
    parts[0] = writer.operator("(") + parts[0]
    parts[-1] = parts[-1] + writer.operator(")") + after
    return parts


__all__ = ["SHORT", "Writer", "pieces"]
