"""Whole numbers n_i, not all zero, with Σ n_i x_i nearly zero for three numbers x: a short vector of a lattice.

    b_i = (e_i, K x_i) ∈ ℤ⁴,      Σ n_i b_i = (n, K Σ n_i x_i)                                                 (1)

Short vectors have small n and a small sum. Semaev's algorithm (2001) reduces three vectors, in whole numbers without
rounding: pairs by Gauss's, then the longest by the nearest of the plane of the two others, until it gets no shorter.
The first is then a shortest vector of the lattice. (mpmath's PSLQ finds the same relations; its import takes 0.1 s.)
"""

from __future__ import annotations

Vector = tuple[int, ...]
#: how much a sum as large as the slack counts, beside whole numbers
WEIGHT = 1000


def relation(x: tuple[float, float, float], slack: float) -> tuple[int, int, int]:
    """The n of (1) in the shortest vector, with sums weighed by `slack`, which is not zero."""
    vectors = [(*(int(i == j) for j in range(3)), round(value * WEIGHT / slack)) for i, value in enumerate(x)]
    return tuple(shortest(vectors)[:3])  # type: ignore[return-value]


def shortest(vectors: list[Vector]) -> Vector:
    """A shortest vector, not zero, of the lattice of three independent ones."""
    while True:
        a, b, c = sorted(vectors, key=_square)
        a, b = _pair(a, b)
        A, B, ab, ac, bc = _square(a), _square(b), _product(a, b), _product(a, c), _product(b, c)
        area = A * B - ab * ab
        s, t = (ab * bc - ac * B) // area, (ab * ac - bc * A) // area  # c + s a + t b is nearest to zero around there
        near = min((_sum(c, i, a, j, b) for i in (s, s + 1) for j in (t, t + 1)), key=_square)
        if _square(near) >= _square(c):
            return min((a, b, c), key=_square)
        vectors = [a, b, near]


def _pair(a: Vector, b: Vector) -> tuple[Vector, Vector]:
    """Gauss's reduction: the same plane, the shorter first."""
    while True:
        if _square(b) < _square(a):
            a, b = b, a
        k = (2 * _product(a, b) + _square(a)) // (2 * _square(a))  # the nearest whole number of a·b/a·a
        if not k:
            return a, b
        b = tuple(y - k * x for x, y in zip(a, b, strict=True))


def _product(a: Vector, b: Vector) -> int:
    return sum(x * y for x, y in zip(a, b, strict=True))


def _square(a: Vector) -> int:
    return _product(a, a)


def _sum(c: Vector, i: int, a: Vector, j: int, b: Vector) -> Vector:
    return tuple(z + i * x + j * y for x, y, z in zip(a, b, c, strict=True))


__all__ = ["relation", "shortest"]
