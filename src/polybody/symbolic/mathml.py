"""SymPy expressions in presentation MathML, as much of it as models need (MathML Core: browsers show it unaided)."""

from __future__ import annotations

import re
from html import escape
from typing import Any

import sympy

GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "theta": "θ", "lambda": "λ", "mu": "μ",
    "nu": "ν", "xi": "ξ", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "phi": "φ", "psi": "ψ", "omega": "ω",
}  # fmt: skip
TIMES = "<mo>&#8290;</mo>"  # invisible
APPLY = "<mo>&#8289;</mo>"
OPEN, CLOSE = (f'<mo stretchy="false">{bracket}</mo>' for bracket in "()")


class MathML:
    """A `Writer` of MathML fragments."""

    def whole(self, expression: Any) -> str:
        return write(expression)

    def factor(self, expression: Any) -> str:
        return _factor(expression) + TIMES

    def operator(self, sign: str) -> str:
        if sign in "()":
            return f'<mo stretchy="false">{sign}</mo>'
        return f'<mo form="infix">{sign}</mo>'  # a piece begins with it, which would make it a prefix

    def power(self, exponent: Any) -> str:
        return f"<msup><mrow></mrow>{write(exponent)}</msup>"


def write(expression: Any) -> str:
    """The expression as one element."""
    if expression.is_Symbol:
        return symbol(expression.name)
    if expression.is_Integer:
        return f"<mn>{expression}</mn>" if expression >= 0 else f"<mrow><mo>−</mo><mn>{-expression}</mn></mrow>"
    if expression.is_Rational:
        sign = "<mo>−</mo>" if expression.p < 0 else ""
        return f"<mrow>{sign}<mfrac><mn>{abs(expression.p)}</mn><mn>{expression.q}</mn></mfrac></mrow>"
    if expression.is_Float:
        return f"<mn>{float(expression):.7g}</mn>"
    if expression.is_Add:
        return f"<mrow>{''.join(_terms(expression))}</mrow>"
    if expression.is_Mul:
        return _product(expression)
    if expression.is_Pow:
        return _power(expression)
    if isinstance(expression, sympy.Function):
        name = expression.func.__name__
        inside = "<mo>,</mo>".join(write(a) for a in expression.args)
        return f"<mrow><mi>{escape(name)}</mi>{APPLY}{OPEN}{inside}{CLOSE}</mrow>"
    return f"<mtext>{escape(str(expression))}</mtext>"


def symbol(name: str) -> str:
    """q1 as q with index 1, p1_dot with a dot, omega as ω."""
    dotted = name.endswith("_dot")
    base, index = name_parts(name.removesuffix("_dot"))
    # a combining dot, since browsers' fonts often lack a stretchy accent for <mover>
    letter = f"<mi>{escape(GREEK.get(base, base))}{'&#x307;' if dotted else ''}</mi>"
    return f"<msub>{letter}<mi>{escape(index)}</mi></msub>" if index else letter


def name_parts(name: str) -> tuple[str, str]:
    """(letter, index) of a name: I1zz is I with index 1zz, tip_x is tip with index x."""
    base, underscore, index = name.partition("_")
    if underscore:
        return base, index.replace("_", " ")
    match = re.fullmatch(r"([A-Za-z]+?)(\d+[A-Za-z]*)?", name)
    return (match[1], match[2] or "") if match else (name, "")


def _terms(expression: Any) -> list[str]:
    result = []
    for k, term in enumerate(expression.as_ordered_terms()):
        negative = term.could_extract_minus_sign()
        sign = "<mo>−</mo>" if negative else ("<mo>+</mo>" if k else "")
        result.append(sign + write(-term if negative else term))
    return result


def _product(expression: Any) -> str:
    if expression.could_extract_minus_sign():
        return f"<mrow><mo>−</mo>{_factor(-expression)}</mrow>"
    above, below = sympy.fraction(expression)
    if below != 1:
        return f"<mfrac>{write(above)}{write(below)}</mfrac>"
    return f"<mrow>{TIMES.join(_factor(f) for f in expression.as_ordered_factors())}</mrow>"


def _factor(expression: Any) -> str:
    if expression.is_Add:
        return f"<mrow>{OPEN}{write(expression)}{CLOSE}</mrow>"
    return write(expression)


def _power(expression: Any) -> str:
    base, exponent = expression.base, expression.exp
    if exponent == sympy.Rational(1, 2):
        return f"<msqrt>{write(base)}</msqrt>"
    if exponent.could_extract_minus_sign():
        return f"<mfrac><mn>1</mn>{write(sympy.Pow(base, -exponent))}</mfrac>"
    if isinstance(base, (sympy.sin, sympy.cos, sympy.tan)):
        raised = f"<msup><mi>{base.func.__name__}</mi>{write(exponent)}</msup>"
        inside = write(base.args[0])
        return f"<mrow>{raised}{APPLY}{OPEN}{inside}{CLOSE}</mrow>"
    return f"<msup>{_factor(base)}{write(exponent)}</msup>"


__all__ = ["MathML", "name_parts", "symbol", "write"]
