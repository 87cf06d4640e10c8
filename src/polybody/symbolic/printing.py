"""Ring elements as SymPy expressions with common factors taken out.

The terms of an element are factored greedily: the factor that most terms share is taken out, its cofactor and the
remaining terms are treated likewise. This is Horner's scheme for many variables; it makes sums of hundreds of terms
readable and cheap to evaluate, and costs time proportional to terms times factors.

For common-subexpression elimination another order is better: always the same, velocities and parameters first, then
the angles from the tip inwards. Each expression alone is longer, but they share more with each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import sympy

from polybody.symbolic.ring import Atom, Number, Ring, Trig

Factor = Any  # an Atom, or the number of a generator (negative powers: its tuple (generator, -1))
Term = tuple[dict[Factor, int], Number]


def number(value: Any) -> Any:
    """A coefficient as a SymPy number."""
    if isinstance(value, Fraction):
        return sympy.Rational(value.numerator, value.denominator)
    if isinstance(value, int):
        return sympy.Integer(value)
    return sympy.Float(value)


def to_sympy(x: Any, *, shared: bool = False) -> Any:
    """The expression, factored; `shared` chooses factors so that many expressions have much in common."""
    if isinstance(x, sympy.Basic):
        return x
    if not isinstance(x, Trig):
        return number(x)
    symbols = _Symbols(x.ring)
    terms: list[Term] = []
    for (harmonics, powers), c in x.terms.items():
        factors: dict[Factor, int] = dict.fromkeys(harmonics, 1)
        for generator, exponent in powers:
            factors[generator if exponent > 0 else (generator, -1)] = abs(exponent)
        terms.append((factors, c))
    return _factored(terms, symbols, _steady if shared else _most_frequent)


def to_matrix(array: Any, *, shared: bool = False) -> Any:
    """A SymPy matrix of an array of ring elements (a vector becomes a column)."""
    rows = [[to_sympy(x, shared=shared) for x in (row if hasattr(row, "__len__") else [row])] for row in array]
    return sympy.Matrix(rows)


class _Symbols:
    """SymPy objects of factors, made once for an expression."""

    def __init__(self, ring: Ring) -> None:
        self.ring = ring
        self.made: dict[Factor, Any] = {}

    def __call__(self, factor: Factor) -> Any:
        found = self.made.get(factor)
        if found is None:
            found = self.made[factor] = self._make(factor)
        return found

    def _make(self, factor: Factor) -> Any:
        if isinstance(factor, int):
            return self.ring.names[factor]
        if len(factor) == 2:
            return 1 / self.ring.names[factor[0]]
        return self._function(factor)

    def _function(self, atom: Atom) -> Any:
        angle = sympy.Add(*(number(n) * self.ring.names[a] for a, n in atom[2]))
        return sympy.sin(angle) if atom[1] else sympy.cos(angle)


Choice = Callable[[Counter[Factor]], Factor]


def _factored(terms: list[Term], symbols: _Symbols, choose: Choice) -> Any:
    if len(terms) == 1:
        return _term(*terms[0], symbols)
    counts: Counter[Factor] = Counter()
    for factors, _ in terms:
        counts.update(factors.keys())
    repeated = Counter({factor: count for factor, count in counts.items() if count > 1})
    if not repeated:
        return sympy.Add(*(_term(factors, c, symbols) for factors, c in terms))
    best = choose(repeated)
    inside = [(_without(factors, best), c) for factors, c in terms if best in factors]
    outside = [term for term in terms if best not in term[0]]
    if all(c < 0 for _, c in inside):  # −x(a + b) reads better than x(−a − b)
        product = -symbols(best) * _factored([(factors, -c) for factors, c in inside], symbols, choose)
    else:
        product = symbols(best) * _factored(inside, symbols, choose)
    return product + _factored(outside, symbols, choose) if outside else product


def _most_frequent(counts: Counter[Factor]) -> Factor:
    return max(counts.items(), key=lambda item: (item[1], _rank(item[0])))[0]


def _steady(counts: Counter[Factor]) -> Factor:
    """Generators in their order, then the innermost group of angles that comes first."""

    def rank(factor: Factor) -> tuple[Any, ...]:
        if isinstance(factor, int):
            return (0, factor)
        return (1, factor[0]) if len(factor) == 2 else (2, factor[0], not factor[1], str(factor[2]))

    return min(counts, key=rank)


def _rank(factor: Factor) -> tuple[int, str]:
    """Among factors that occur equally often, generators go out before functions; names decide the rest."""
    return (1 if isinstance(factor, int) else 0, str(factor))


def _without(factors: dict[Factor, int], taken: Factor) -> dict[Factor, int]:
    rest = dict(factors)
    if rest[taken] == 1:
        del rest[taken]
    else:
        rest[taken] -= 1
    return rest


def _term(factors: dict[Factor, int], c: Number, symbols: _Symbols) -> Any:
    return _tangents(sympy.Mul(number(c), *(symbols(f) ** e for f, e in factors.items())))


def _tangents(product: Any) -> Any:
    """sin a / cos a as tan a."""
    if not product.is_Mul:
        return product
    for factor in product.args:
        if factor.is_Pow and factor.exp == -1 and isinstance(factor.base, sympy.cos):
            sine = sympy.sin(factor.base.args[0])
            if sine in product.args:
                return _tangents(product / factor / sine * sympy.tan(factor.base.args[0]))
    return product


__all__ = ["number", "to_matrix", "to_sympy"]
