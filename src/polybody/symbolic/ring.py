"""Trigonometric polynomials in a normal form that collects angle sums.

An element is a sum of terms  coefficient · Π_g trig_g(n·q_g) · Π_k x_k^e_k: at most one sine or cosine for each group
g of angles, and powers of generators x_k (parameters, velocities, lengths of slides; negative powers allowed). Within a
group products are rewritten as sums,

    cos a cos b = ½ cos(a − b) + ½ cos(a + b),   sin a cos b = ½ sin(a + b) + ½ sin(a − b),   …

so that cos a cos b − sin a sin b is cos(a + b), and sin² + cos² is 1, without any search. Angles about parallel axes
that follow each other share a group; products across groups stay products, since their expansion would only grow. The
form is canonical: two elements are the same function exactly when their terms are the same, as long as coefficients
are rationals.

Coefficients are `Fraction`s, or floats where the input was no short decimal; floats that cancel to rounding are zero.
What is no such polynomial (a square root, a quotient) becomes a generator of its own, which represents that expression.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from polybody.names import counted

Number = Fraction | float
Frequency = tuple[tuple[int, Number], ...]  # ((angle, multiple), …), first multiple positive
Atom = tuple[int, bool, Frequency]  # (group, is a sine, frequency)
Harmonics = tuple[Atom, ...]  # sorted by group
Powers = tuple[tuple[int, int], ...]  # ((generator, exponent), …)

ZERO, ONE, HALF = Fraction(0), Fraction(1), Fraction(1, 2)
#: A float sum this much smaller than its parts is their rounding.
ROUNDING = 1e-14


def exact(value: Any) -> Number:
    """The number as a rational where its shortest decimal form is short or it is a small fraction, else a float."""
    if isinstance(value, Fraction):
        return value
    if isinstance(value, int):
        return Fraction(value)
    number = float(value)
    text = repr(number)
    if sum(c.isdigit() for c in text.partition("e")[0].replace(".", "").lstrip("-0")) <= 12:
        return Fraction(text)
    small = Fraction(number).limit_denominator(10_000)
    return small if float(small) == number else number


class Ring:
    """The generators, the groups of angles, and products of monomials, remembered."""

    def __init__(self) -> None:
        self.names: list[Any] = []  # what each generator stands for: a SymPy expression
        self._index: dict[Any, int] = {}
        self.group: dict[int, int] = {}  # angle generator -> group
        self._harmonics: dict[tuple[Harmonics, Harmonics], tuple[tuple[Fraction, Harmonics], ...]] = {}
        self._powers: dict[tuple[Powers, Powers], Powers] = {}

    def generator(self, expression: Any, *, angle: bool = False) -> Trig:
        """The element that represents a SymPy symbol or, opaquely, any expression."""
        index = self._index.get(expression)
        if index is None:
            index = self._index[expression] = len(self.names)
            self.names.append(expression)
        if angle:
            self.group.setdefault(index, index)
        return Trig(self, {((), ((index, 1),)): ONE})

    def index(self, expression: Any) -> int:
        return self._index[expression]

    def join_groups(self, first: Any, second: Any) -> None:
        """Let products of functions of two angles collect into sums of the angles."""
        old, new = self.group[self.index(second)], self.group[self.index(first)]
        for angle, group in self.group.items():
            if group == old:
                self.group[angle] = new

    def trig(self, is_sine: bool, frequency: dict[int, Number]) -> Trig | Number:
        """sin or cos of Σ n·angle; angles of several groups are expanded by the addition theorem."""
        groups = sorted({self.group[angle] for angle in frequency})
        if not groups:
            return ZERO if is_sine else ONE
        own = {a: n for a, n in frequency.items() if self.group[a] == groups[0]}
        rest = {a: n for a, n in frequency.items() if a not in own}
        s, c = self._single(True, own), self._single(False, own)
        if not rest:
            return s if is_sine else c
        s2, c2 = self.trig(True, rest), self.trig(False, rest)
        return s * c2 + c * s2 if is_sine else c * c2 - s * s2

    def _single(self, is_sine: bool, own: dict[int, Number]) -> Trig | Number:
        sign, atom = self._atom(self.group[next(iter(own))], is_sine, own)
        return Trig(self, {((atom,), ()): Fraction(sign)}) if atom else (ZERO if is_sine else ONE)

    @staticmethod
    def _atom(group: int, is_sine: bool, frequency: dict[int, Number]) -> tuple[int, Atom | None]:
        """(sign, atom) with the first multiple positive; no atom for the constant frequency."""
        kept = sorted((a, n) for a, n in frequency.items() if n != 0)
        if not kept:
            return (0 if is_sine else 1), None
        if kept[0][1] < 0:
            return (-1 if is_sine else 1), (group, is_sine, tuple((a, -n) for a, n in kept))
        return 1, (group, is_sine, tuple(kept))

    def product(self, a: Harmonics, b: Harmonics) -> tuple[tuple[Fraction, Harmonics], ...]:
        """The product of two monomials' trigonometric parts, as a sum."""
        key = (a, b)
        found = self._harmonics.get(key)
        if found is None:
            found = self._harmonics[key] = self._harmonics[b, a] = self._multiply(a, b)
        return found

    def _multiply(self, a: Harmonics, b: Harmonics) -> tuple[tuple[Fraction, Harmonics], ...]:
        if not a or not b:
            return ((ONE, a or b),)
        left, right = {atom[0]: atom for atom in a}, {atom[0]: atom for atom in b}
        sums: list[tuple[Fraction, list[Atom]]] = [(ONE, [])]
        for group in sorted(left.keys() | right.keys()):
            if group not in left or group not in right:
                for _, atoms in sums:
                    atoms.append(left.get(group) or right[group])
                continue
            choices = self._within(group, left[group], right[group])
            sums = [(c * k, [*atoms, *extra]) for c, atoms in sums for k, extra in choices]
        return tuple((c, tuple(atoms)) for c, atoms in sums)

    def _within(self, group: int, a: Atom, b: Atom) -> list[tuple[Fraction, list[Atom]]]:
        """Product to sum inside one group."""
        plus, minus = dict(a[2]), dict(a[2])
        for angle, n in b[2]:
            plus[angle] = plus.get(angle, ZERO) + n
            minus[angle] = minus.get(angle, ZERO) - n
        is_sine = a[1] != b[1]
        signs = {(False, False): (1, 1), (True, True): (-1, 1), (True, False): (1, 1), (False, True): (1, -1)}
        result = []
        for frequency, sign in zip((plus, minus), signs[a[1], b[1]], strict=True):
            turn, atom = self._atom(group, is_sine, frequency)
            if turn:
                result.append((HALF * sign * turn, [atom] if atom else []))
        return result

    def powers(self, a: Powers, b: Powers) -> Powers:
        """The product of two monomials' power parts."""
        if not a or not b:
            return a or b
        key = (a, b)
        found = self._powers.get(key)
        if found is None:
            total = dict(a)
            for generator, exponent in b:
                total[generator] = total.get(generator, 0) + exponent
            found = self._powers[key] = tuple(sorted((g, e) for g, e in total.items() if e))
        return found


class Trig:
    """An element of a ring that is not a plain number. Operations give a plain number where the result is one."""

    __slots__ = ("ring", "terms")

    def __init__(self, ring: Ring, terms: dict[tuple[Harmonics, Powers], Number]) -> None:
        self.ring = ring
        self.terms = terms

    def __add__(self, other: Any) -> Any:
        return self._sum(other, 1)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._sum(other, -1)

    def __rsub__(self, other: Any) -> Any:
        return (-self)._sum(other, 1)

    def __neg__(self) -> Trig:
        return Trig(self.ring, {key: -c for key, c in self.terms.items()})

    def _sum(self, other: Any, sign: int) -> Any:
        if isinstance(other, Trig):
            added = other.terms
        elif _is_number(other):
            if other == 0:
                return self
            added = {((), ()): exact(other)}
        else:
            return NotImplemented
        terms = dict(self.terms)
        for key, c in added.items():
            _accumulate(terms, key, c if sign > 0 else -c)
        return settled(self.ring, terms)

    def __mul__(self, other: Any) -> Any:
        if _is_number(other):
            if other == 0:
                return ZERO
            factor = exact(other)
            return self if factor == 1 else Trig(self.ring, {key: c * factor for key, c in self.terms.items()})
        if not isinstance(other, Trig):
            return NotImplemented
        ring, terms = self.ring, {}
        product, powers = ring.product, ring.powers
        for (h1, p1), c1 in self.terms.items():
            for (h2, p2), c2 in other.terms.items():
                c, p = c1 * c2, powers(p1, p2)
                for k, h in product(h1, h2):
                    _accumulate(terms, (h, p), c if k == 1 else c * k)
        return settled(ring, terms)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if _is_number(other):
            return self * (1 / exact(other))
        return self * reciprocal(other) if isinstance(other, Trig) else NotImplemented

    def __rtruediv__(self, other: Any) -> Any:
        return reciprocal(self) * other if _is_number(other) else NotImplemented

    def __pow__(self, n: int) -> Any:
        result: Any = ONE
        for _ in range(abs(n)):
            result = result * self
        return result if n >= 0 else ONE / result

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trig) and self.ring is other.ring and self.terms == other.terms

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Trig({counted(len(self.terms), 'term')})"

    def diff(self, generator: int, opaque: Callable[[int, int], Any]) -> Any:
        """∂/∂x of a generator; `opaque(k, x)` is the derivative of generator k, which represents an expression."""
        result: Any = ZERO
        terms: dict[tuple[Harmonics, Powers], Number] = {}
        for (harmonics, powers), c in self.terms.items():
            for i, (group, is_sine, frequency) in enumerate(harmonics):
                n = dict(frequency).get(generator)
                if n:
                    turned = (*harmonics[:i], (group, not is_sine, frequency), *harmonics[i + 1 :])
                    _accumulate(terms, (turned, powers), c * (n if is_sine else -n))
            for k, e in powers:
                slope = ONE if k == generator else opaque(k, generator)
                if isinstance(slope, Trig) or slope != 0:
                    lowered = self.ring.powers(powers, ((k, -1),))
                    result = result + Trig(self.ring, {(harmonics, lowered): c * e}) * slope
        return settled(self.ring, terms) + result


def _is_number(x: Any) -> bool:
    return isinstance(x, (int, float, Fraction))


def _accumulate(terms: dict[Any, Number], key: Any, c: Number) -> None:
    old = terms.get(key)
    if old is None:
        terms[key] = c
        return
    new = old + c
    if new == 0 or (isinstance(new, float) and abs(new) < ROUNDING * (abs(old) + abs(c))):
        del terms[key]
    else:
        terms[key] = new


def settled(ring: Ring, terms: dict[tuple[Harmonics, Powers], Number]) -> Trig | Number:
    """The element, or the plain number where no symbol is left."""
    if not terms:
        return ZERO
    if len(terms) == 1 and ((), ()) in terms:
        return terms[(), ()]
    return Trig(ring, terms)


def reciprocal(x: Trig) -> Any:
    """1/x: by negative powers for a product of generators, else by a generator that represents the divisor."""
    from polybody.symbolic.printing import to_sympy

    if len(x.terms) == 1:
        ((harmonics, powers), c) = next(iter(x.terms.items()))
        result: Any = Trig(x.ring, {((), tuple((g, -e) for g, e in powers)): 1 / c}) if powers else 1 / c
        for atom in harmonics:
            divisor = x.ring.generator(to_sympy(Trig(x.ring, {((atom,), ()): ONE})))
            result = result * Trig(x.ring, {((), ((_only(divisor), -1),)): ONE})
        return result
    divisor = x.ring.generator(to_sympy(x))
    return Trig(x.ring, {((), ((_only(divisor), -1),)): ONE})


def divided(x: Any, divisor: Trig) -> Any:
    """x / divisor with a cosine cancelled where it divides: sin 2a / cos a is 2 sin a, (1 + cos 2a) / cos a 2 cos a.

    What goes with the same other factors is a polynomial in sines or in cosines of even or of odd multiples of a; each
    is divided whole, or left whole where there would be a remainder (cos 2a / cos a, tan a).
    """
    if not isinstance(x, Trig) or len(divisor.terms) != 1:
        return x / divisor
    ((harmonics, _), _) = next(iter(divisor.terms.items()))
    if len(harmonics) != 1 or harmonics[0][1]:
        return x / divisor
    group, _, frequency = harmonics[0]
    left: dict[Any, Number] = {}
    series: dict[Any, dict[int, Number]] = {}
    for (h, p), c in x.terms.items():
        own = next((atom for atom in h if atom[0] == group), None)
        k = 0 if own is None else _multiple(own[2], frequency)
        if k is None:
            left[h, p] = c
        else:
            others = tuple(atom for atom in h if atom[0] != group)
            series.setdefault((others, p, own is not None and own[1], k % 2), {})[k] = c
    cancelled: dict[Any, Number] = {}
    for (others, p, is_sine, _), parts in series.items():
        quotient = _over_cosine(parts, is_sine)
        for k, c in (parts if quotient is None else quotient).items():
            own = ((group, is_sine, tuple((a, k * n) for a, n in frequency)),) if k else ()
            _accumulate(left if quotient is None else cancelled, (tuple(sorted((*others, *own))), p), c)
    remaining = settled(x.ring, left) / divisor if left else ZERO
    return settled(x.ring, cancelled) * _monomial_inverse(divisor) + remaining


def _multiple(frequency: Frequency, unit: Frequency) -> int | None:
    """k with frequency = k · unit, if it is a whole number."""
    k = Fraction(frequency[0][1]) / Fraction(unit[0][1])
    same = k.denominator == 1 and frequency == tuple((a, int(k) * n) for a, n in unit)
    return int(k) if same else None


def _over_cosine(series: dict[int, Number], is_sine: bool) -> dict[int, Number] | None:
    """Σ c_k f(ka) / cos a as such a sum, f the sine or the cosine; None where a remainder would stay.

    From the highest on, by 2 cos a f((k − 1)a) = f(ka) + f((k − 2)a).
    """
    rest, quotient = dict(series), {}
    while rest:
        k = max(rest)
        c = rest.pop(k)
        if k <= is_sine:
            return None
        quotient[k - 1] = c if k == 1 else 2 * c
        if k > 2 or (k == 2 and not is_sine):
            _accumulate(rest, k - 2, -c)
    return quotient


def _monomial_inverse(divisor: Trig) -> Any:
    """1 / (coefficient and powers of a single term), its cosine left out."""
    ((_, powers), c) = next(iter(divisor.terms.items()))
    return settled(divisor.ring, {((), tuple((g, -e) for g, e in powers)): 1 / c})


def _only(x: Trig) -> int:
    ((_, powers),) = x.terms
    return powers[0][0]


__all__ = ["HALF", "ONE", "ZERO", "Atom", "Harmonics", "Number", "Powers", "Ring", "Trig", "divided", "exact",
           "reciprocal", "settled"]
