"""A page that any browser shows offline: MathML, one style sheet inside, no script.

Long formulas are runs of small <math> elements, between which lines may break (see `pieces`).
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from polybody.names import counted
from polybody.symbolic.mathml import MathML, symbol, write
from polybody.symbolic.pieces import pieces
from polybody.symbolic.sections import parameter_rows, sections

if TYPE_CHECKING:
    from polybody.symbolic.model import SymbolicModel

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1b1f24; background: #fff; max-width: 62rem; margin: 2rem auto;
  padding: 0 1.2rem; }
h1 { font-size: 1.6rem; margin: 0 0 .2rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .3rem;
  border-bottom: 1px solid #d5dae0; padding-bottom: .2rem; }
p { margin: .3rem 0 .8rem; color: #4a5560; }
math { font-size: 1.05rem; }
.formula { display: flex; gap: .6em; margin: .55rem 0; }
.name { flex: none; min-width: 4.2em; text-align: right; white-space: nowrap; }
.value { flex: 1; min-width: 0; line-height: 2; }
.value math { margin-right: .25em; }
table { border-collapse: collapse; } td, th { text-align: left; padding: .12rem 1.2rem .12rem 0; vertical-align: top; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
.central { text-align: center; margin: 1rem 0; }
@media (prefers-color-scheme: dark) { body { color: #e4e8ec; background: #15181c; } p { color: #a9b3bd; }
  h2 { border-color: #39424c; } }
@media print { body { margin: 0; max-width: none; } }
"""


def page(model: SymbolicModel) -> str:
    """The whole page."""
    title = escape(model.name)
    body = [f"<h1>{title}</h1>", f"<p>{escape(_summary(model))}</p>", _equation(model.honours_loops)]
    for section in sections(model):
        body += [f"<h2>{escape(section.title)}</h2>", f"<p>{escape(section.text)}</p>"]
        body += [_formula(letter, indices, expression) for letter, indices, expression in section.formulas]
    body.append(_parameters(model))
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>{STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def _summary(model: SymbolicModel) -> str:
    bodies = len(model.mechanism.bodies)
    return (
        f"Equations of motion of {bodies} {'body' if bodies == 1 else 'bodies'} with {counted(len(model.q), 'degree')} "
        "of freedom "
        "in Poincaré's form (Kwatny & Blankenship 1995). Derived by polybody."
    )


def _equation(loops: bool) -> str:
    text = (
        "<mi>M</mi><mo>(</mo><mi>q</mi><mo>)</mo>"
        "<mi>p&#x307;</mi><mo>+</mo><mi>h</mi><mo>(</mo><mi>q</mi><mo>,</mo><mi>p</mi>"
        "<mo>)</mo><mo>+</mo><mi>F</mi><mo>(</mo><mi>q</mi><mo>)</mo><mo>=</mo><mi>Q</mi><mo>+</mo><mi>f</mi>"
        "<mo>(</mo><mi>q</mi><mo>,</mo><mi>p</mi><mo>)</mo>"
    )
    if loops:
        text += (
            "<mo>+</mo><msup><mi>J</mi><mi>T</mi></msup><mi>&#x3bb;</mi><mo>,</mo><mspace width='2em'/>"
            "<mi>&#x3c6;</mi><mo>(</mo><mi>q</mi><mo>)</mo><mo>=</mo><mn>0</mn>"
        )
    return f'<div class="central"><math display="block">{text}</math></div>'


def _formula(letter: str, indices: str, expression: Any) -> str:
    name = f"<msub>{symbol(letter)}<mn>{indices}</mn></msub>" if indices else symbol(letter)
    parts = " ".join(f"<math>{part}</math>" for part in pieces(expression, MathML()))
    return (
        f'<div class="formula"><span class="name"><math>{name}<mo>=</mo></math></span>'
        f'<span class="value">{parts}</span></div>'
    )


def _parameters(model: SymbolicModel) -> str:
    rows = parameter_rows(model)
    if not rows:
        return ""
    lines = [
        f'<tr><td><math>{write(s)}</math></td><td class="number">{number}</td><td>{escape(meaning)}</td></tr>'
        for s, number, meaning in rows
    ]
    head = "<tr><th>symbol</th><th>value</th><th>meaning</th></tr>"
    return "<h2>Parameters</h2>\n<p>SI units.</p>\n<table>" + head + "".join(lines) + "</table>"


__all__ = ["page"]
