"""Proofs that relations of special geometry hold along all motions: a platform does not turn, rods move alike.

Samples of assembled configurations suggest linear relations between natural coordinates (`natural`): bodies that keep
their relative orientation, directions that two bodies share, angles that are equal. Let L be these together with the
linear equations of the joints. A relation need not follow from the equations alone: other assembly modes of the
same machine may break it. It is proved for the branch of a configuration z_0 by counting:

    Put L into the quadratic equations. Of n coordinates that L leaves free, with k independent quadratic polynomials,

        S = {L = 0, Q = 0}  has dimension  n − k  at least at each of its points.                              (1)

    S is a part of what the joints allow, which at a regular z_0 is a manifold of dimension `mobility`. If
    n − k = mobility, S is all of it near z_0, and, both being analytic, along the whole branch: L is an identity.

The tangents of S are among those of the joints, so Q has rank k at z_0, and Newton's method leads from the numbers of
z_0 to a point of S. What (1) needs of the geometry is that polynomials are dependent: equalities between sums and
products of its numbers, decided without rounding (`prime_field`).

Then a relation between twists and velocities, Σ ρ_i x_i = 0, is proved where its bilinear form in (z, ż) is a
combination of the derivatives of L and Q,

    Σ ρ_i x_i(z, ż) = Σ λ_j dQ_j(z) ż,                                                                         (2)

which is linear algebra again. Their number is compared with that of the relations that samples show: proved ones are
among these, so where the numbers agree all are proved.

The arithmetic is that of GF(p) for a prime of 121 bits, drawn at random among those that are 1 mod 720. A rank that is
smaller in GF(p) than for the numbers themselves would need a minor that p divides. Minors of some 500 rows with entries
below 10^12, in a field of degree 192, have norms below 2^(4·10^6), thus fewer than 4·10^4 such primes, among 5·10^31:
below 10^-26.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from polybody.algebra.domains import FLOAT
from polybody.constraints.place import Place
from polybody.identification.proofs.echelon import Echelon, Row, combined, product
from polybody.identification.proofs.natural import NotAlgebraicError, Rate, System, natural_system, twist
from polybody.identification.proofs.prime_field import PrimeField, random_prime
from polybody.late import dataclass
from polybody.mechanism.mechanism import Mechanism

Array = np.ndarray
#: what samples show to this part of one is suggested as a relation
SUGGESTED = 1e-9


@dataclass(frozen=True)
class Proof:
    """Dimensions of what twists with velocities, and directions of gravity, span on all motions at most."""

    motions: int
    directions: int
    relations: tuple[str, ...]  # in words


@dataclass(frozen=True, eq=False)
class _Suggestion:
    rows: list[Row]
    text: str


def proved_motions(mechanism: Mechanism, q: Array, mobility: int) -> Proof | None:
    """Bounds on the motions of the branch of regular configurations q (N, nq); None where the count proves nothing."""
    numbers = PrimeField(random_prime(np.random.default_rng(20260)))
    try:
        system = natural_system(mechanism, numbers)
    except NotAlgebraicError:
        return None
    linear = Echelon(numbers.p)
    linear.extend(system.linear)
    places = [Place(mechanism, at, domain=FLOAT) for at in q]
    words = []
    for suggestion in _suggestions(system, places, linear):
        leads = [linear.add(row) for row in suggestion.rows]
        if any(lead is not None for lead in leads):
            words.append(suggestion.text)
    quadratic = _closed(system, linear, system.quadratic)
    if 0 in linear.rows or system.size - 1 - len(linear) - len(quadratic) != mobility:
        return None
    quadratic = _closed(system, linear, system.quadratic + system.implied)
    return Proof(*_spans(mechanism, system, linear, quadratic), tuple(words))


def _degree(key: tuple[int, int]) -> tuple[int, int, int]:
    return (key[0] > 0) + (key[1] > 0), *key


def _closed(system: System, linear: Echelon, polynomials: list[Row]) -> Echelon:
    """Quadratic polynomials on L = 0; sums of them that are linear go to L, until there are none."""
    p = linear.p
    while True:
        forms = [linear.reduced({k: 1}) for k in range(system.size)]
        found, before = Echelon(p, _degree), len(linear)
        for polynomial in polynomials:
            terms = ((value, product(p, forms[i], forms[j])) for (i, j), value in polynomial.items())
            lead = found.add(combined(p, *terms))
            if lead is not None and lead[0] == 0:
                linear.add({j: value for (_, j), value in found.rows.pop(lead).items()})
        if len(linear) == before:
            return found


def _spans(mechanism: Mechanism, system: System, linear: Echelon, quadratic: Echelon) -> tuple[int, int]:
    """The dimensions of twists with velocities, modulo (2), and of directions of gravity with a constant."""
    p, forms = linear.p, {}

    def reduced(row: Row) -> Row:
        key = tuple(sorted(row.items()))
        if key not in forms:
            forms[key] = linear.reduced(row)
        return forms[key]

    def bilinear(rate: Rate) -> Row:
        moving = [(reduced(f), {k: x for k, x in reduced(g).items() if k}) for f, g in rate]
        return combined(p, *((1, product(p, f, g, apart=True)) for f, g in moving))

    spanned = Echelon(p)
    for row in quadratic.rows.values():
        both = [(value, {(i, j): 1}) for (i, j), value in row.items() if j]
        spanned.add(combined(p, *both, *((value, {(j, i): 1}) for (i, j), value in row.items() if i)))
    before = len(spanned)
    bodies = system.frames[1 : len(mechanism.bodies) + 1]
    rates = [*(x for frame in bodies for x in twist(frame)), *system.velocities.values()]
    spanned.extend(bilinear(rate) for rate in rates)
    g = system.numbers.numbers(np.asarray(mechanism.gravity, dtype=float))
    directions = Echelon(p)
    directions.add({0: 1})
    for frame in bodies:
        directions.extend(reduced(combined(p, *zip(g, frame.column(k), strict=True))) for k in range(3))
    return len(spanned) - before, len(directions)


def _suggestions(system: System, places: list[Place], linear: Echelon) -> Iterator[_Suggestion]:
    """What samples show and `linear` does not say, as linear relations between natural coordinates."""
    turns = [np.array([frame.at(place)[0] for place in places]) for frame in system.frames]
    forms, names = [frame.R for frame in system.frames], [frame.name for frame in system.frames]
    first: list[int] = []  # one frame of each class of those that turn alike
    for b in range(len(turns)):
        a, C = next(((a, C) for a in first if (C := _constant(turns[a], turns[b])) is not None), (b, np.eye(3)))
        if a == b:
            first.append(b)
        elif _rank(linear, *forms[a][0], *forms[b][0]) > _rank(linear, *forms[a][0]):
            rows = _alike(system, forms[a], forms[b], system.numbers.rotation(C, SUGGESTED))
            yield _Suggestion(rows, f"{names[b]} does not turn" if a == 0 else f"{names[b]} turns like {names[a]}")
    for k, b in enumerate(first):
        for a in first[:k]:
            shared = _shared(turns[a], turns[b])
            if shared is not None and _rank(linear, *forms[a][0], *forms[b][0]) == 6 - 2 * (a == 0):
                d, e = (system.numbers.numbers(x, SUGGESTED) for x in shared)
                rows = [
                    system.sum(*zip(d, x, strict=True), *((-s, t) for s, t in zip(e, y, strict=True)))
                    for x, y in zip(forms[a], forms[b], strict=True)
                ]
                yield _Suggestion(rows, f"{names[b]} and {names[a]} share a direction")


def _constant(a: Array, b: Array) -> Array | None:
    """C with R_a C = R_b at all samples."""
    C = a.swapaxes(1, 2) @ b
    return C[0] if np.abs(C - C[0]).max() < SUGGESTED else None


def _rank(linear: Echelon, *forms: Row) -> int:
    """How many of the forms are independent on L = 0."""
    found = Echelon(linear.p)
    found.extend(linear.reduced(form) for form in forms)
    return len(found)


def _alike(system: System, a: list[list[Row]], b: list[list[Row]], C: list[list[int]]) -> list[Row]:
    """R_a C = R_b, entry by entry."""
    return [
        system.sum(*((C[i][j], a[r][i]) for i in range(3)), (-1, b[r][j])) for r in range(3) for j in range(3)
    ]


def _shared(a: Array, b: Array) -> tuple[Array, Array] | None:
    """(d, e) with R_a d = R_b e at all samples, where there is one pair."""
    _, s, vt = np.linalg.svd(np.concatenate([a, -b], axis=2).reshape(-1, 6))
    if s[5] > SUGGESTED * s[0] or s[4] < SUGGESTED * s[0]:
        return None
    d = vt[5] / vt[5][int(np.argmax(np.abs(vt[5])))]
    return d[:3], d[3:]


__all__ = ["Proof", "proved_motions"]
