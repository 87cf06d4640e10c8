"""A LaTeX document of the equations; long formulas continue on further lines (see `pieces`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from polybody.symbolic.mathml import name_parts
from polybody.symbolic.pieces import pieces
from polybody.symbolic.sections import parameter_rows, sections

if TYPE_CHECKING:
    from polybody.symbolic.model import SymbolicModel

#: Characters of LaTeX source on one printed line, about.
LINE = 150
#: What multipliers add to the equation.
LOADS = r" + J(q)^{\mathsf T} \lambda, \qquad \phi(q) = 0"
PREAMBLE = r"""\documentclass[11pt]{article}
\usepackage{amsmath}
\usepackage[margin=22mm]{geometry}
\allowdisplaybreaks
\begin{document}
"""


class Latex:
    """A `Writer` of LaTeX fragments."""

    def __init__(self, names: dict[Any, str]) -> None:
        self.names = names

    def whole(self, expression: Any) -> str:
        return sympy.latex(expression, symbol_names=self.names)

    def factor(self, expression: Any) -> str:
        text = self.whole(expression)
        return rf"\left({text}\right)" if expression.is_Add else text + r"\,"

    def operator(self, sign: str) -> str:
        return {"−": " - ", "+": " + ", "(": r"\bigl(", ")": r"\bigr)"}[sign]

    def power(self, exponent: Any) -> str:
        return f"^{{{exponent}}}"


def document(model: SymbolicModel) -> str:
    """The whole document."""
    writer = Latex(_dotted(model))
    lines = [PREAMBLE, rf"\section*{{{_text(model.name)}}}",
             r"\[ M(q)\,\dot p + h(q, p) + F(q) = Q + f(q, p)" + (LOADS if model.honours_loops else "")
             + r", \qquad \dot q = V(q)\,p \]"]  # fmt: skip
    for section in sections(model):
        lines += [rf"\subsection*{{{_text(section.title)}}}", r"\begin{align*}"]
        formulas = [_formula(letter, indices, expression, writer) for letter, indices, expression in section.formulas]
        lines += [" \\\\\n".join(formulas), r"\end{align*}"]
    rows = parameter_rows(model)
    if rows:
        lines += [r"\subsection*{Parameters}", r"\begin{tabular}{lrl}"]
        lines += [rf"${writer.whole(s)}$ & {number} & {_text(meaning)} \\" for s, number, meaning in rows]
        lines.append(r"\end{tabular}")
    return "\n".join([*lines, r"\end{document}", ""])


def _dotted(model: SymbolicModel) -> dict[Any, str]:
    """Indices from the first digit on (c_{1x}), rates with dots."""
    names = {x: _indexed(x.name) for x in (*model.q, *model.p, *model.parameters)}
    return names | {sympy.Symbol(f"{x.name}_dot"): _indexed(x.name, dot=True) for x in (*model.q, *model.p)}


def _indexed(name: str, dot: bool = False) -> str:
    base, index = name_parts(name)
    letter = sympy.latex(sympy.Symbol(base))
    letter = rf"\dot{{{letter}}}" if dot else letter
    return f"{letter}_{{{index}}}" if index else letter


def _formula(letter: str, indices: str, expression: Any, writer: Latex) -> str:
    symbol = writer.whole(sympy.Symbol(letter))
    name = f"{symbol}_{{{indices}}}" if indices else symbol
    lines, current = [], ""
    for part in pieces(expression, writer):
        if current and len(current) + len(part) > LINE:
            lines.append(current)
            current = ""
        current += part
    lines.append(current)
    return f"{name} &= " + " \\\\\n&\\quad ".join(lines)


def _text(text: str) -> str:
    for character in "&%$#_{}":
        text = text.replace(character, "\\" + character)
    return text.replace("−", "$-$")


__all__ = ["Latex", "document"]
