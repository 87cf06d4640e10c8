"""Which joints follow which: an order of elimination for constraint Jacobians, chosen once, on numbers.

Straight-line code cannot look for pivots. J of a mechanism keeps its zeros wherever it moves, so pivots are chosen
beforehand on sample states in general position: of the entries that are large enough in their rows in every sample, the
one whose elimination fills in least (Markowitz' count). What has no row left is independent; rows that vanish are
redundant there. So legs are eliminated one by one, and chains from their ends, without being told of either.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

Array = np.ndarray

#: an entry smaller than this part of its row's largest is no pivot, unless there is no better
GOOD = 0.2
TOLERABLE = 1e-3
#: entries below this part of the samples' largest are rounding
ZERO = 1e-9


@dataclass(frozen=True)
class Plan:
    """Pivots (row, column) in order; independent columns; rows that repeat others."""

    pivots: tuple[tuple[int, int], ...]
    independent: tuple[int, ...]
    redundant: tuple[int, ...]

    @property
    def dependent(self) -> tuple[int, ...]:
        return tuple(column for _, column in self.pivots)

    def __str__(self) -> str:
        return ";".join(f"{r},{c}" for r, c in self.pivots)


def plan_elimination(samples: Array, wanted: Iterable[int] = (), rank: int | None = None) -> Plan:
    """The plan for J samples (k, m, n); `wanted` columns become dependent only where nothing else can.

    `rank` bounds the number of pivots: what is left then is redundant, up to rounding.
    """
    A = np.array(samples, dtype=float)
    _, m, n = A.shape
    scale = np.abs(A).max(axis=(1, 2), keepdims=True) if A.size else np.ones((len(A), 1, 1))
    A = A / np.where(scale == 0, 1, scale)
    last = set(wanted)
    rows, columns = list(range(m)), list(range(n))
    pivots: list[tuple[int, int]] = []
    while rows and columns and (rank is None or len(pivots) < rank):
        found = _next(A, rows, columns, last)
        if found is None:
            break
        i, j = found
        pivots.append(found)
        rows.remove(i)
        columns.remove(j)
        for r in rows:
            factor = A[:, r, j] / A[:, i, j]
            if np.any(factor):
                A[:, r] -= factor[:, None] * A[:, i]
                A[:, r, j] = 0.0
                A[:, r][np.abs(A[:, r]) < ZERO] = 0.0
    return Plan(tuple(pivots), tuple(columns), tuple(rows))


def _next(A: Array, rows: list[int], columns: list[int], last: set[int]) -> tuple[int, int] | None:
    """The pivot that fills in least among the good ones; failing these, the best of all."""
    part = np.abs(A[np.ix_(range(len(A)), rows, columns)])
    largest = part.max(axis=2)
    alive = largest.max(axis=0) > ZERO
    if not alive.any():
        return None
    ratio = np.where(largest[:, :, None] > 0, part / np.where(largest == 0, 1, largest)[:, :, None], 0.0).min(axis=0)
    filled = part.max(axis=0) > ZERO
    in_row, in_column = filled.sum(axis=1), filled.sum(axis=0)
    penalty = np.array([1e6 if c in last else 0.0 for c in columns])
    best: tuple[float, float, int, int] | None = None
    for threshold in (GOOD, TOLERABLE, 0.0):
        for a, b in np.argwhere((ratio > threshold) & alive[:, None]):
            fill = float((in_row[a] - 1) * (in_column[b] - 1) + penalty[b])
            key = (fill, -float(ratio[a, b]), int(a), int(b))
            if best is None or key < best:
                best = key
        if best is not None:
            return rows[best[2]], columns[best[3]]
    return None


def growth(J: Array, plan: Plan) -> float:
    """The sum of (row/pivot)² over the plan's pivots, at one J."""
    A, total = np.array(J, dtype=float), 0.0
    for i, j in plan.pivots:
        if A[i, j] == 0:
            return np.inf
        total += float(A[i] @ A[i]) / float(A[i, j]) ** 2
        others = np.flatnonzero(A[:, j])
        others = others[others != i]
        A[others] -= np.outer(A[others, j] / A[i, j], A[i])
        A[i] = 0.0
    return total


__all__ = ["Plan", "growth", "plan_elimination"]
