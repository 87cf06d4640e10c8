"""Which joints follow which: an order of elimination for constraint Jacobians, chosen once, on numbers.

Straight-line code cannot look for pivots. J of a mechanism keeps its zeros wherever it moves, so pivots are chosen
beforehand on sample states in general position: of the entries that are large enough in their rows in every sample, the
one whose elimination fills in least (Markowitz' count). What has no row left is independent; rows that vanish are
redundant there. So legs are eliminated one by one, and chains from their ends, without a special case.
"""

from __future__ import annotations

import hashlib
import heapq
import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from polybody.late import dataclass
from polybody.properties import cached_property

Array = np.ndarray
Row = dict[int, tuple[float, ...]]
Block = tuple[tuple[int, ...], tuple[int, ...]]  # rows, columns

#: an entry smaller than this part of its row's largest is no pivot, unless there is no better
GOOD = 0.2
TOLERABLE = 1e-3
#: a row of which less is left is taken after all others
LEFT = 0.02
#: entries below this part of the samples' largest are rounding
ZERO = 1e-9


@dataclass(frozen=True)
class Plan:
    """Pivots (row, column) in order; independent columns; rows that repeat others; the size of each pivot's row.

    Sizes are those of the samples, to a power of two: near singular configurations whole rows vanish. With `blocks`
    pivots are taken together, by blocks in order (`constraints.blocks`); `pivots` then has a row for each dependent
    column.
    """

    pivots: tuple[tuple[int, int], ...]
    independent: tuple[int, ...]
    redundant: tuple[int, ...]
    sizes: tuple[float, ...]
    blocks: tuple[Block, ...] = ()
    weights: tuple[float, ...] = ()  # of blocks, for each column 1 / (its usual size)²: rows are compared without units

    @property
    def dependent(self) -> tuple[int, ...]:
        return tuple(column for _, column in self.pivots)

    @cached_property
    def label(self) -> str:
        """What distinguishes the kernels of two plans."""
        return hashlib.sha256(f"{self};{self.independent}".encode()).hexdigest()[:16]

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        if self.blocks:
            return f"{self.blocks};{self.sizes};{self.weights}"
        return ";".join(f"{r},{c},{size:g}" for (r, c), size in zip(self.pivots, self.sizes, strict=True))


def plan_elimination(samples: Array, kept: Iterable[int] = (), rank: int | None = None) -> Plan:
    """The plan for J samples (k, m, n); `kept` columns never become dependent.

    `rank` bounds the number of pivots: what is left then is redundant, up to rounding.
    """
    A = np.array(samples, dtype=float)
    _, m, n = A.shape
    scale = np.abs(A).max(axis=(1, 2), keepdims=True) if A.size else np.ones((len(A), 1, 1))
    table = _Table(A / np.where(scale == 0, 1, scale), frozenset(kept))
    pivots: list[tuple[int, int]] = []
    while rank is None or len(pivots) < rank:
        found = table.best()
        if found is None:
            break
        table.eliminate(*found)
        pivots.append(found)
    taken_rows, taken = {i for i, _ in pivots}, {j for _, j in pivots}
    independent, redundant = (k for k in range(n) if k not in taken), (i for i in range(m) if i not in taken_rows)
    norms = np.sqrt((np.asarray(samples) ** 2).sum(axis=2)).max(axis=0, initial=0.0)
    sizes = tuple(float(2.0 ** np.round(np.log2(norms[i]))) for i, _ in pivots)
    return Plan(tuple(pivots), tuple(independent), tuple(redundant), sizes)


class _Table:
    """The rows that are left, by their entries: {column: numbers of all samples}. Only what a pivot touches is redone,
    so that the plan of a long chain costs in proportion to its length. Samples are few: plain numbers are faster than
    arrays of them."""

    def __init__(self, A: Array, kept: frozenset[int]) -> None:
        self.kept = kept
        self.rows: list[Row] = [
            {j: tuple(A[:, i, j].tolist()) for j in np.flatnonzero(np.abs(A[:, i]).max(axis=0) > ZERO).tolist()}
            for i in range(A.shape[1])
        ]
        #: what the rows are before elimination: of one that nearly vanishes, another may have to take the place
        self.whole = [_largest(row) for row in self.rows]
        self.having: dict[int, set[int]] = {}
        for i, row in enumerate(self.rows):
            for j in row:
                self.having.setdefault(j, set()).add(i)
        self.queue: list[tuple[int, float, float, int, int]] = []
        self.current: dict[int, tuple[int, float, float, int, int]] = {}
        self._ask(range(len(self.rows)))

    def best(self) -> tuple[int, int] | None:
        """The pivot that fills in least among the good ones; failing these, the best of all."""
        while self.queue:
            key = heapq.heappop(self.queue)
            if self.current.get(key[3]) is key:
                return key[3], key[4]
        return None

    def eliminate(self, i: int, j: int) -> None:
        pivot = self.rows[i]
        self.current.pop(i, None)
        for c in pivot:
            self.having[c].discard(i)
        changed = set().union(*(self.having[c] for c in pivot))
        for r in self.having.pop(j):
            self._subtract(self.rows[r], r, pivot, j)
        self._ask(changed | set().union(*(self.having.get(c, set()) for c in pivot)))

    def _subtract(self, row: Row, r: int, pivot: Row, j: int) -> None:
        factors = [x / y for x, y in zip(row.pop(j), pivot[j], strict=True)]
        still = (0.0,) * len(factors)
        for c, values in pivot.items():
            if c == j:
                continue
            parts = zip(row.get(c, still), factors, values, strict=True)
            new = tuple([0.0 if abs(y := x - factor * value) < ZERO else y for x, factor, value in parts])
            if any(new):
                row[c] = new
                self.having[c].add(r)
            elif c in row:
                del row[c]
                self.having[c].discard(r)

    def _ask(self, rows: Iterable[int]) -> None:
        """Each row's own best pivot, put in the queue: (class of its size, fill, −size, row, column)."""
        for i in rows:
            key = self._of_row(i)
            if key is None:
                self.current.pop(i, None)
            elif self.current.get(i) != key:
                self.current[i] = key
                heapq.heappush(self.queue, key)

    def _of_row(self, i: int) -> tuple[int, float, float, int, int] | None:
        row = self.rows[i]
        largest = _largest(row)
        if not row or max(largest) <= ZERO:
            return None
        scale = [x or math.inf for x in largest]
        width = sum(max(map(abs, values)) > ZERO for values in row.values())
        left = min(x / (y or 1.0) for x, y in zip(largest, self.whole[i] or largest, strict=True))
        poor, best = int(left <= LEFT), None
        for c, values in row.items():
            size = min([abs(x) / y for x, y in zip(values, scale, strict=True)])
            if size <= 0 or c in self.kept:
                continue
            level = max(0 if size > GOOD else 1 if size > TOLERABLE else 2, poor)
            key = (level, float((width - 1) * (len(self.having[c]) - 1)), -size, i, c)
            if best is None or key < best:
                best = key
        return best


def _largest(row: Row) -> list[float]:
    """The size of the largest entry, for each sample."""
    return [max(map(abs, values)) for values in zip(*row.values(), strict=True)]


def resized(plan: Plan, like: Plan) -> Plan:
    """The plan with the rows' sizes of another: for one that was made near a singular configuration."""
    known = {i: size for (i, _), size in zip(like.pivots, like.sizes, strict=True)}
    sizes = (max(known.get(i, 0.0), size) for (i, _), size in zip(plan.pivots, plan.sizes, strict=True))
    return replace(plan, sizes=tuple(sizes))


def growth(J: Array, plan: Plan) -> float:
    """The sum of (row/pivot)² and (size/row)² over the plan's pivots, at one J."""
    A, total = np.array(J, dtype=float), 0.0
    for (i, j), size in zip(plan.pivots, plan.sizes, strict=True):
        if A[i, j] == 0:
            return np.inf
        row = float(A[i] @ A[i])
        total += row / float(A[i, j]) ** 2 + size**2 / row
        others = np.flatnonzero(A[:, j])
        others = others[others != i]
        A[others] -= np.outer(A[others, j] / A[i, j], A[i])
        A[i] = 0.0
    return total


__all__ = ["Block", "Plan", "growth", "plan_elimination", "resized"]
