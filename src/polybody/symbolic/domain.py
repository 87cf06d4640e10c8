"""The scalar domain of trigonometric polynomials: every formulation's text, read as closed formulas."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import sympy

from polybody.algebra.domains import Array, Domain
from polybody.symbolic.printing import to_sympy
from polybody.symbolic.ring import ONE, ZERO, Number, Ring, Trig, divided, exact

#: A square root this near to one comes from the rounding of a unit axis.
UNIT_WITHIN = 4e-16


class TrigDomain(Domain):
    """Elements of one `Ring`; numbers stay `Fraction`s or floats."""

    name = "trigonometric polynomials"

    def __init__(self, ring: Ring) -> None:
        self.ring = ring

    def const(self, value: Any) -> Any:
        if isinstance(value, Trig):
            return value
        return self.from_sympy(value) if isinstance(value, sympy.Basic) else exact(value)

    def _enter(self, value: Any) -> Any:
        return self.const(value)

    def zeros(self, *shape: int) -> Array:
        result = np.empty(shape, dtype=object)
        result.fill(ZERO)
        return result

    def from_sympy(self, expression: Any) -> Any:
        """Sums, products and powers are taken apart; anything else is a generator of its own."""
        if expression.is_Rational:
            return Fraction(int(expression.p), int(expression.q))
        if expression.is_Float:
            return exact(float(expression))
        if expression.is_Add or expression.is_Mul:
            parts = [self.from_sympy(a) for a in expression.args]
            total = parts[0]
            for part in parts[1:]:
                total = total + part if expression.is_Add else total * part
            return total
        if expression.is_Pow and expression.exp.is_Integer:
            base = self.from_sympy(expression.base)
            n = int(expression.exp)
            return base**n if isinstance(base, Trig) else exact(base**n)
        if isinstance(expression, sympy.sin | sympy.cos) and expression.args[0].free_symbols:
            return self._trig(isinstance(expression, sympy.sin), self.from_sympy(expression.args[0]))
        return self.ring.generator(expression)

    def sin(self, x: Any) -> Any:
        return self._trig(True, x)

    def cos(self, x: Any) -> Any:
        return self._trig(False, x)

    def _trig(self, is_sine: bool, x: Any) -> Any:
        if not isinstance(x, Trig):
            return (ZERO if is_sine else ONE) if x == 0 else (math.sin(x) if is_sine else math.cos(x))
        frequency: dict[int, Number] = {}
        offset: Number = ZERO
        for (harmonics, powers), c in x.terms.items():
            if not harmonics and not powers:
                offset = c
            elif not harmonics and len(powers) == 1 and powers[0][1] == 1 and powers[0][0] in self.ring.group:
                frequency[powers[0][0]] = c
            else:
                function = sympy.sin if is_sine else sympy.cos
                return self.ring.generator(function(to_sympy(x)))
        if offset == 0:
            return self.ring.trig(is_sine, frequency)
        s, c = self.ring.trig(True, frequency), self.ring.trig(False, frequency)
        so, co = math.sin(offset), math.cos(offset)
        return s * co + c * so if is_sine else c * co - s * so

    def sqrt(self, x: Any) -> Any:
        if isinstance(x, Trig):
            return self.ring.generator(sympy.sqrt(to_sympy(x)))
        root = math.sqrt(x)
        if abs(root - 1) <= UNIT_WITHIN:
            return ONE
        if isinstance(x, Fraction):
            rational = Fraction(math.isqrt(x.numerator), math.isqrt(x.denominator))
            return rational if rational * rational == x else root
        return root

    def atan2(self, y: Any, x: Any) -> Any:
        if not isinstance(x, Trig) and not isinstance(y, Trig):
            return math.atan2(y, x)
        return self.ring.generator(sympy.atan2(to_sympy(y), to_sympy(x)))

    def tanh(self, x: Any) -> Any:
        return self.ring.generator(sympy.tanh(to_sympy(x))) if isinstance(x, Trig) else math.tanh(x)

    def exp(self, x: Any) -> Any:
        return self.ring.generator(sympy.exp(to_sympy(x))) if isinstance(x, Trig) else math.exp(x)

    def log(self, x: Any) -> Any:
        return self.ring.generator(sympy.log(to_sympy(x))) if isinstance(x, Trig) else math.log(x)

    def less(self, a: Any, b: Any) -> Any:
        if not isinstance(a, Trig) and not isinstance(b, Trig):
            return a < b
        return sympy.Lt(to_sympy(a), to_sympy(b))

    def where(self, condition: Any, yes: Any, no: Any) -> Any:
        if isinstance(condition, bool):
            return yes if condition else no
        return self.ring.generator(sympy.Piecewise((to_sympy(yes), condition), (to_sympy(no), True)))

    def is_zero(self, x: Any) -> bool:
        return not isinstance(x, Trig) and x == 0

    def solve(self, matrix: Array, right: Array) -> Array:
        """By cofactors: the determinant is in normal form, so that sin² + cos² leaves it before it divides."""
        n = matrix.shape[0]
        if not any(isinstance(x, Trig) for x in matrix.ravel()):
            return super().solve(matrix, right)

        @cache
        def minor(rows: tuple[int, ...], columns: tuple[int, ...]) -> Any:
            if not rows:
                return ONE
            total: Any = ZERO
            for k, column in enumerate(columns):
                entry = matrix[rows[0], column]
                if not self.is_zero(entry):
                    rest = minor(rows[1:], columns[:k] + columns[k + 1 :])
                    total = total + entry * rest * ((-1) ** k)
            return total

        everything = tuple(range(n))
        determinant = minor(everything, everything)
        adjugate = self.zeros(n, n)
        for i in range(n):
            for j in range(n):
                value = minor(everything[:j] + everything[j + 1 :], everything[:i] + everything[i + 1 :])
                adjugate[i, j] = value * ((-1) ** (i + j))
        columns = right.reshape(n, -1)
        result = adjugate @ columns
        if isinstance(determinant, Trig):
            quotients = [divided(x, determinant) for x in result.ravel()]
        else:
            quotients = [x / exact(determinant) for x in result.ravel()]
        for index, value in zip(np.ndindex(result.shape), quotients, strict=True):
            result[index] = value
        return result.reshape(right.shape)


__all__ = ["TrigDomain"]
