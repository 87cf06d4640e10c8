"""Forward dynamics of many states of one network together: the text of the tableau is read once over columns of numbers
(`algebra.many`), and its systems A z = B are solved by LAPACK over batches.

Most entries of A are 0 and ±1 of circuits, cut-sets and levers. Unknowns other than accelerations are eliminated on
pivots that are ±1 in every state, sparsest first; a Stewart platform's 420 equations become some 60. What is left is
written out for as many states at a time as take some megabytes, rounding that is left of rows which repeat others as
zeros (to scale it would make equations of it): regular systems are solved by their inverse and one
refinement, singular ones (redundant constraints) by singular values, as `elimination` does it for one state. States
without a unique motion raise an error; which, and why, a single state's call says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.algebra.domains import Array
from polybody.algebra.many import MANY, Many, numbers, scalars
from polybody.errors import InputError
from polybody.formulations.network.elimination import REGULAR, least_norm, scaled
from polybody.formulations.network.fitting import fit_many
from polybody.formulations.network.situation import situation
from polybody.formulations.network.solution import CONTRADICTION, MOVES
from polybody.formulations.network.tableau import Problem, Tableau

if TYPE_CHECKING:
    from polybody.formulations.network.network import Network

#: bytes of the matrices that are solved together; factors and singular vectors take four times as much beside them
TOGETHER = 4 << 20
#: part of the largest terms that went into an equation below which an entry is rounding
CANCELLED = 1e-13


def forward_accelerations(
    net: Network, q: dict[str, Array], v: dict[str, Array], forces: dict[str, Array], order: list[str]
) -> Array:
    """Accelerations of the joints in `order`, (states, their velocities), from {joint: (states, n)}."""
    states = len(next(iter(q.values())))
    with np.errstate(all="ignore"):  # of branches that are not taken
        state = situation(net, _columns(q), _columns(v), domain=MANY, fit=fit_many)
        tableau = Tableau(net, net.graph(()), state, Problem(_columns(forces)), MANY)
    unknowns = np.arange(tableau.size)
    moving = np.concatenate([unknowns[tableau.columns[("a", name)]] for name in net.parts.joints])
    wanted = np.concatenate([unknowns[tableau.columns[("a", name)]] for name in order])
    A, B, sizes, left = _core(tableau.A, tableau.B[:, -1], set(moving.tolist()), states)
    place = {k: i for i, k in enumerate(left)}
    unique, chosen = np.isin(left, moving), [place[k] for k in wanted.tolist()]
    result = np.empty((states, len(wanted)))
    step = max(1, TOGETHER // (8 * max(len(left), 1) ** 2))
    for first in range(0, states, step):
        some = slice(first, first + step)
        size = sizes.dense(some)
        core = A.dense(some) / size
        core[np.abs(core) < CANCELLED] = 0.0
        result[some] = solve_many(core, B.dense(some) / size, unique)[:, chosen, 0]
    return result


def _columns(values: dict[str, Array]) -> dict[str, Array]:
    return {name: scalars(x) for name, x in values.items()}


def _core(A: Array, b: Array, kept: set[int], states: int) -> tuple[_Entries, _Entries, _Entries, list[int]]:
    """The equations that are left once unknowns not in `kept` are eliminated on pivots ±1, the sizes of the terms that
    went into each, and their unknowns."""
    rows: list[dict[int, Any]] = [
        {j: x for j, x in enumerate(row) if type(x) is Many or x != 0.0} for row in A.tolist()
    ]
    right: list[Any] = b.tolist()
    sizes = [np.maximum.reduce(np.broadcast_arrays(1e-300, *map(_size, row.values()))) for row in rows]
    column: list[set[int]] = [set() for _ in rows]  # rows of an unknown
    for i, row in enumerate(rows):
        for j in row:
            column[j].add(i)
    waiting, done = set(range(len(rows))) - kept, set()

    def pivots(j: int) -> list[int]:
        return [i for i in column[j] if rows[i][j] in (1.0, -1.0)]

    while order := sorted((j for j in waiting if pivots(j)), key=lambda j: len(column[j])):
        for j in order:
            among = pivots(j)
            if among:
                i = min(among, key=lambda i: len(rows[i]))
                _eliminate(rows, right, sizes, column, i, j)
                waiting.remove(j)
                done.add(i)
    left = sorted(waiting | kept)
    equations = [i for i in range(len(rows)) if i not in done]
    matrix = np.empty((len(equations), len(left)), dtype=object)
    matrix[...] = [[rows[i].get(j, 0.0) for j in left] for i in equations]
    given, terms = (np.empty((len(equations), 1), dtype=object) for _ in range(2))
    given[:, 0] = [right[i] for i in equations]
    terms[:, 0] = [Many(np.broadcast_to(sizes[i], states)) for i in equations]
    return _Entries(matrix, states), _Entries(given, states), _Entries(terms, states), left


def _size(x: Any) -> Any:
    return np.abs(x.x if type(x) is Many else x)


def _eliminate(
    rows: list[dict[int, Any]], right: list[Any], sizes: list[Any], column: list[set[int]], i: int, j: int
) -> None:
    """Take row i out of the system, and unknown j with it; its entry there is ±1."""
    own = rows[i]
    sign = own.pop(j)
    for k in own:
        column[k].discard(i)
    for r in column[j] - {i}:
        row = rows[r]
        factor = row.pop(j) * sign
        for k, x in own.items():
            new = row[k] - factor * x if k in row else -(factor * x)
            if type(new) is not Many and new == 0.0:
                if k in row:
                    del row[k]
                    column[k].discard(r)
            else:
                row[k] = new
                column[k].add(r)
        right[r] = right[r] - factor * right[i]
        sizes[r] = np.maximum(sizes[r], _size(factor) * sizes[i])
    column[j] = set()


class _Entries:
    """A matrix of scalars: what is the same for all states once, the other entries as (states, entries)."""

    def __init__(self, matrix: Array, states: int) -> None:
        flat = matrix.ravel().tolist()
        varying = [k for k, x in enumerate(flat) if type(x) is Many]
        self.shape, self.places = matrix.shape, np.array(varying, dtype=int)
        self.fixed = np.array([0.0 if type(x) is Many else x for x in flat])
        self.values = numbers([flat[k] for k in varying], states, (len(varying),))

    def dense(self, some: slice) -> Array:
        values = self.values[some]
        found = np.tile(self.fixed, (len(values), 1))
        found[:, self.places] = values
        return found.reshape(len(values), *self.shape)


def solve_many(A: Array, B: Array, moving: Array) -> Array:
    """z with A z = B of each state, of least norm where A is singular; `moving` marks unknowns that must be unique."""
    As, Bs, columns = scaled(A, B)
    try:
        inverse = np.linalg.inv(As)
    except np.linalg.LinAlgError:  # some pivot is exactly zero: ranks are decided by singular values
        return columns[:, :, None] * _least(As, Bs, columns, moving)
    with np.errstate(all="ignore"):  # of matrices that are all but singular
        y = inverse @ Bs
        y = y + inverse @ (Bs - As @ y)  # one refinement: pin forces to the last digits
        condition = np.abs(As).sum(axis=1).max(axis=1) * np.abs(inverse).sum(axis=1).max(axis=1)
    singular = ~(condition * REGULAR < 1)
    if singular.any():
        y[singular] = _least(As[singular], Bs[singular], columns[singular], moving)
    return columns[:, :, None] * y


def _least(A: Array, B: Array, columns: Array, moving: Array) -> Array:
    """The least-norm solutions of scaled equations; an error where they contradict each other or leave motions open."""
    y, open_ways = least_norm(A, B)
    size = 1.0 + np.abs(columns[:, :, None] * y).max(axis=(1, 2), initial=0.0)
    if np.any(np.abs(B - A @ y).max(axis=(1, 2), initial=0.0) > CONTRADICTION * size):
        raise InputError("inconsistent: the network's equations contradict each other")
    null = np.abs(open_ways * columns[:, None, :])
    if np.any(null[:, :, moving].max(axis=2, initial=0.0) > MOVES * np.maximum(null.max(axis=2), 1e-300)):
        raise InputError("floating: the network's equations do not determine all accelerations")
    return y


__all__ = ["forward_accelerations", "solve_many"]
