"""Linear equations of a network: solved for numbers with a diagnosis, for symbols by elimination on sure pivots.

Numbers: LU where the system is regular; else the singular value decomposition reports what the equations leave open
(null vectors) and where they contradict each other (what is left over).
Symbols and expression graphs: Gauss-Jordan that takes constant pivots first, sparsest row first (most entries of
circuits, cut-sets and levers are 0 and ±1), so that only the core of the mechanism is ever divided by an expression.
Whether an expression vanishes for all values of its variables is decided at random points: the same elimination runs
beside it in numbers, and an entry that is zero at every point is zero (sin² + cos² − 1 would else become a pivot). Such
expressions hold for general values of their symbols; where a pivot happens to vanish (a spatial loop lying in a plane)
they are 0/0, and numbers must be solved as numbers.
"""

from __future__ import annotations

import numpy as np

from polybody.algebra.domains import Array, Domain
from polybody.errors import PolybodyError
from polybody.late import dataclass

#: singular values below this part of the largest count as zero
RANK_TOLERANCE = 1e-11
#: reciprocal condition numbers above this are those of regular systems
REGULAR = 1e-13


@dataclass(frozen=True, eq=False)
class Answer:
    """z with A z = B for each column of B; `null` spans what A leaves open, `left` is B − A z."""

    z: Array
    null: Array
    left: Array


def solve_numbers(A: Array, B: Array) -> Answer:
    """Least-norm solution of scaled equations, with what is open and what is contradicted."""
    import scipy.linalg as la

    if not A.size:
        return Answer(B.copy(), np.zeros((0, 0)), B.copy())
    As, Bs, columns = scaled(A, B)
    getrf, getrs, gecon = la.get_lapack_funcs(("getrf", "getrs", "gecon"), (As,))
    lu, pivots, _ = getrf(As)
    if gecon(lu, np.abs(As).sum(axis=0).max())[0] > REGULAR:
        y = getrs(lu, pivots, Bs)[0]
        y = y + getrs(lu, pivots, Bs - As @ y)[0]  # one refinement: pin forces to the last digits
        return Answer(y * columns[:, None], np.zeros((A.shape[1], 0)), np.zeros_like(B))
    y, ways = least_norm(As, Bs)
    ways = ways[np.abs(ways).max(axis=1) > 0]
    return Answer(y * columns[:, None], ways.T * columns[:, None], Bs - As @ y)


def scaled(A: Array, B: Array) -> tuple[Array, Array, Array]:
    """(r A c, r B, c): rows and columns (..., n, n) with 1 as their largest entries; those of zeros are left."""
    rows = 1 / _or_one(np.abs(A).max(axis=-1))[..., None]
    columns = 1 / _or_one(np.abs(A * rows).max(axis=-2))
    return A * rows * columns[..., None, :], B * rows, columns


def _or_one(sizes: Array) -> Array:
    return np.where(sizes == 0, 1.0, np.maximum(sizes, 1e-300))


def least_norm(A: Array, B: Array) -> tuple[Array, Array]:
    """(y, null): A y = B (..., n, k) by singular values, and rows that span what A leaves open; others are 0."""
    U, s, Vt = np.linalg.svd(A)
    kept = s > RANK_TOLERANCE * s[..., :1]
    weights = np.where(kept, 1 / np.where(kept, s, 1.0), 0.0)[..., None]
    return np.swapaxes(Vt, -1, -2) @ (weights * (np.swapaxes(U, -1, -2) @ B)), Vt * ~kept[..., None]


#: at how many random points expressions are probed
PROBES = 2


def probed(matrix: Array, *, domain: Domain) -> Array:
    """(PROBES, *shape): the entries at random values of their variables."""
    rng = np.random.default_rng(0)
    return np.array([domain.probe(matrix, rng) for _ in range(PROBES)])


def eliminate(A: Array, B: Array, *, domain: Domain) -> Array:
    """z with A z = B over any domain, for an A that is regular for general values of its variables."""
    A, B = A.copy(), B.copy()
    n = A.shape[0]
    shadow = probed(A, domain=domain)
    filled = [{int(j) for j in np.flatnonzero(np.abs(shadow[:, i]).max(axis=0) > 0)} for i in range(n)]
    open_rows, where = set(range(n)), [-1] * n
    while open_rows:
        i, j = _pivot(A, shadow, filled, open_rows, domain)
        open_rows.remove(i)
        where[j] = i
        _scale_row(A, B, shadow, filled[i], i, j, domain)
        for row in range(n):
            if row != i and j in filled[row]:
                _subtract_row(A, B, shadow, filled, row, i, j, domain)
    return B[where]


def _scale_row(A: Array, B: Array, shadow: Array, columns: set[int], i: int, j: int, domain: Domain) -> None:
    """Make the pivot one."""
    pivot = A[i, j]
    if domain.is_constant(pivot) and float(pivot) == 1.0:
        return
    flip = domain.is_constant(pivot) and float(pivot) == -1.0
    for k in columns:
        A[i, k] = -A[i, k] if flip else A[i, k] / pivot
    B[i] = -B[i] if flip else B[i] / pivot
    shadow[:, i] = shadow[:, i] / shadow[:, i, j][:, None]


def _subtract_row(
    A: Array, B: Array, shadow: Array, filled: list[set[int]], row: int, i: int, j: int, domain: Domain
) -> None:
    """Row `row` minus its entry at j times the pivot row."""
    factor, weight = A[row, j], shadow[:, row, j].copy()
    for k in filled[i] - {j}:
        size = np.abs(shadow[:, row, k]).max() + np.abs(weight * shadow[:, i, k]).max()
        A[row, k] = A[row, k] - factor * A[i, k]
        shadow[:, row, k] -= weight * shadow[:, i, k]
        if np.abs(shadow[:, row, k]).max() > 1e-11 * size:
            filled[row].add(k)
        else:
            A[row, k] = domain.const(0)
            shadow[:, row, k] = 0.0
            filled[row].discard(k)
    A[row, j], shadow[:, row, j] = domain.const(0), 0.0
    filled[row].discard(j)
    B[row] = B[row] - B[i] * factor


def _pivot(A: Array, shadow: Array, filled: list[set[int]], rows: set[int], domain: Domain) -> tuple[int, int]:
    """±1 in the shortest row; else a number; else an expression that is far from zero where it was probed."""
    best: tuple[tuple[int, int], int, int] | None = None
    counts: dict[int, int] = {}
    for i in rows:
        for j in filled[i]:
            counts[j] = counts.get(j, 0) + 1
    for i in rows:
        for j in filled[i]:
            x = A[i, j]
            grade = 2 if not domain.is_constant(x) else 0 if abs(float(x)) == 1.0 else 1
            if grade == 2 and np.abs(shadow[:, i, j]).min() < 1e-8 * np.abs(shadow[:, i]).max():
                grade = 3
            key = (grade, (len(filled[i]) - 1) * (counts[j] - 1))
            if best is None or key < best[0]:
                best = (key, i, j)
    if best is None or not filled[best[1]]:
        raise PolybodyError("the network's equations are singular for all values of their symbols")
    return best[1], best[2]


__all__ = ["REGULAR", "Answer", "eliminate", "least_norm", "probed", "scaled", "solve_numbers"]
