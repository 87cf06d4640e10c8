"""Numbers of a geometry as elements of a finite field: sums and products without rounding.

Files write 0.1, 120deg, 0.12990381056766578: decimals, fractions, these times cosines of common angles, and sums with
√2, √3 or √5. All of them are elements of ℚ(ζ), ζ = exp(2πi/720), and ζ ↦ a root of unity of GF(p), p = 1 mod 720, maps
sums and products of them to sums and products. What is zero there is zero in GF(p); what is not zero stays so for all
but few primes.

A number is read as the simplest of these within rounding of it. One that is none of them becomes a fraction of its own
digits, and two that differ by rounding only become the same. Rotations are read entry by entry, and where that gives no
rotation, by a quaternion of fractions: each is orthogonal without rounding.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from polybody.identification.proofs.lattices import relation

Array = np.ndarray
#: numbers of files that differ by this part are the same
SAME = 1e-13
#: cosines of half degrees are read
TURN = 720
#: whole numbers of a sum with a root
LARGEST = 2000


class PrimeField:
    """GF(p) with a primitive 720th root of unity, and how numbers are read as elements of it."""

    def __init__(self, p: int) -> None:
        assert p % TURN == 1, p
        self.p = p
        self.root = _primitive_root(p)
        c30, c45, c36 = self.cosine(60), self.cosine(90), self.cosine(72)
        self._roots = {3: 2 * c30 % p, 2: 2 * c45 % p, 5: (4 * c36 - 1) % p}
        self._others: dict[float, int] = {}

    def inverse(self, x: int) -> int:
        """1/x."""
        return pow(x, -1, self.p)

    def fraction(self, x: Fraction) -> int:
        """The element of a fraction."""
        return x.numerator * self.inverse(x.denominator % self.p) % self.p

    def cosine(self, k: int) -> int:
        """cos(k · 0.5°)."""
        z = pow(self.root, k % TURN, self.p)
        return (z + self.inverse(z)) * self.inverse(2) % self.p

    def number(self, x: float, same: float = SAME) -> int:
        """The element of a number: a short fraction, such a fraction times a cosine, or else its digits."""
        found = self._common(x, same)
        return self._digits(x, same) if found is None else found

    def _common(self, x: float, same: float) -> int | None:
        read = _read(x, same)
        if read is None:
            return None
        if isinstance(read, _Sum):
            return -(read.a + read.b * self._roots[read.d]) * self.inverse(read.n % self.p) % self.p
        fraction, angle = read
        return self.fraction(fraction) * self.cosine(angle) % self.p if angle else self.fraction(fraction)

    def _digits(self, x: float, same: float) -> int:
        size = abs(x)
        near = next((known for known in self._others if abs(known - size) <= same * size), None)
        if near is None:
            near, self._others[size] = size, self.fraction(Fraction(repr(float(size))))
        return self._others[near] if x > 0 else -self._others[near] % self.p

    def numbers(self, values: Iterable[float], same: float = SAME) -> list[int]:
        """The elements of several numbers."""
        return [self.number(float(x), same) for x in values]

    def rotation(self, R: Array, same: float = SAME) -> list[list[int]]:
        """The element of a rotation: orthogonal in the field."""
        read = [[self._common(float(x), same) for x in row] for row in R]
        entries = [[x for x in row if x is not None] for row in read]
        if all(len(row) == 3 for row in entries) and self._orthogonal(entries):
            return entries
        return self._by_quaternion(R, same)

    def _orthogonal(self, R: list[list[int]]) -> bool:
        return all(
            (sum(R[r][i] * R[r][j] for r in range(3)) - (i == j)) % self.p == 0 for i in range(3) for j in range(i + 1)
        )

    def _by_quaternion(self, R: Array, same: float) -> list[list[int]]:
        """Rotations that are each other's inverse have quaternions that differ in signs: they stay inverse here."""
        w, xyz = _quaternion(R)
        p, q = self.p, self.numbers([*xyz, w], same)
        scale = 2 * self.inverse(sum(x * x for x in q) % p) % p
        x, y, z, w_ = q
        rows = [
            [-(y * y + z * z), x * y - z * w_, x * z + y * w_],
            [x * y + z * w_, -(x * x + z * z), y * z - x * w_],
            [x * z - y * w_, y * z + x * w_, -(x * x + y * y)],
        ]
        return [[(value * scale + (i == j)) % p for j, value in enumerate(row)] for i, row in enumerate(rows)]


class _Sum(NamedTuple):
    """n x + a + b √d = 0."""

    n: int
    a: int
    b: int
    d: int


#: of half degrees up to a right angle, but for those of 0° and 90°
_COSINES = np.cos(2 * np.pi * np.arange(1, TURN // 4) / TURN)
#: of a continued fraction that have denominators up to 1000: these grow as Fibonacci's numbers do, or faster
CONVERGENTS = 17


@functools.lru_cache(maxsize=4096)
def _read(x: float, same: float) -> tuple[Fraction, int] | _Sum | None:
    """A number as a short fraction times the cosine of so many half degrees, or as a sum with a root; else None."""
    short = _short(x, same)
    if short is not None:
        return short, 0
    for k in np.flatnonzero(_may_be_short(x / _COSINES, same)).tolist():
        short = _short(x / float(_COSINES[k]), same)
        if short is not None:
            return short, k + 1
    return _sum(x, same)


def _may_be_short(x: Array, same: float) -> Array:
    """Which numbers `_short` must look at: it takes a hundred times as long."""
    grid, slack = float(_grid(same)), 4 * same * np.abs(x)
    found = np.abs(np.rint(x * grid) / grid - x) <= slack
    # So near, a fraction with a denominator up to 1000 is a convergent of the number's continued fraction.
    whole = np.floor(x)
    rest, (p, before), (q, earlier) = x - whole, (whole, np.ones_like(x)), (np.ones_like(x), np.zeros_like(x))
    for _ in range(CONVERGENTS):
        found |= (np.abs(p - q * x) <= slack * q) & (q <= 1000)
        on = rest > 1e-12
        turned = 1 / np.where(on, rest, 1.0)
        whole = np.floor(turned)
        rest = np.where(on, turned - whole, 0.0)
        (p, before), (q, earlier) = (np.where(on, whole * p + before, p), p), (np.where(on, whole * q + earlier, q), q)
    return found


def _sum(x: float, same: float) -> _Sum | None:
    """a + b √d with small fractions a and b, as the corners of turned parts have."""
    slack = max(same, 1e-14) * abs(x)
    for d in (3, 2, 5):
        n, a, b = relation((x, 1.0, d**0.5), slack)
        if n and max(abs(n), abs(a), abs(b)) <= LARGEST and abs(n * x + a + b * d**0.5) <= 2 * slack:
            return _Sum(n, a, b, d)
    return None


def _grid(same: float) -> int:
    return 10**9 if same <= SAME else 10**6


def _short(x: float, same: float) -> Fraction | None:
    """A decimal with few digits, or a fraction with a small denominator, within a part `same` of x."""
    if abs(x) < same:
        return Fraction(0)
    grid = _grid(same)
    for simple in (Fraction(round(x * grid), grid), Fraction(x).limit_denominator(1000)):
        if simple and abs(float(simple) - x) <= same * abs(x):
            return simple
    return None


def _quaternion(R: Array) -> tuple[float, Array]:
    """(w, vector) with w = 1: tangents of half angles, where the rotation is no half turn."""
    w = np.sqrt(max(0.0, 1.0 + float(np.trace(R)))) / 2
    vector = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / 4
    if w > 1e-6:
        return 1.0, vector / w**2
    k = int(np.argmax(np.diag(R)))
    column = (R + np.eye(3))[:, k]
    return 0.0, column / column[k]


def _primitive_root(p: int) -> int:
    """An element of order 720."""
    for x in range(2, 1000):
        root = pow(x, (p - 1) // TURN, p)
        if all(pow(root, TURN // q, p) != 1 for q in (2, 3, 5)):
            return root
    raise AssertionError(p)


def random_prime(rng: np.random.Generator) -> int:
    """A prime of 121 bits, 1 mod 720, drawn at random."""
    while True:
        p = ((int(rng.integers(2**59, 2**60)) << 51) | int(rng.integers(2**51))) * TURN + 1
        if _is_prime(p, rng):
            return p


def _is_prime(n: int, rng: np.random.Generator) -> bool:
    """Miller and Rabin, with bases that decide every number below 2^64, and 40 drawn at random: wrong once in 4^40."""
    d, twos = n - 1, 0
    while d % 2 == 0:
        d, twos = d // 2, twos + 1
    for base in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, *rng.integers(2, 2**62, size=40).tolist()):
        x = pow(base, d, n)
        if x in (1, n - 1):
            continue
        if not any((x := x * x % n) == n - 1 for _ in range(twos - 1)):
            return False
    return True


__all__ = ["PrimeField", "random_prime"]
