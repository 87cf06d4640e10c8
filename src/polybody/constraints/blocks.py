"""Elimination by blocks of up to three rows: one order that holds in nearly all postures, for compiled batches.

A single pivot vanishes in some postures of a leg, whichever is chosen: an entry of a direction. A block of rows R and
columns C vanishes only where the leg itself is singular. With B = J_RC, rows R of J are multiplied by X,

    |C| = |R|:        X = B⁻¹ by cofactors
    |C| = |R| − 1:    n with nᵀB = 0 (a vector across, a cross product), X = [B⁺; nᵀ]                            (1)

so that C becomes a unit matrix, and in the second case the row nᵀJ_R is left, without C: of a leg with universal joint
the velocity along it. No rows are chosen where all three matter equally.

    J_q = F_q (X J_R)_C + J'_q             for the other rows q, F_q their entries in columns C                  (2)
    λ_R = Xᵀ μ,   μ_C = y − Σ F_qᵀ λ_q,   μ_n = λ of the row that is left                                        (3)

Cofactors give X with errors of ε‖B‖³/det B and more, in any direction. Where B nearly vanishes, J' has entries of 1/det
and errors of 1/det²; the next block is such a J', and its determinant cancels as many digits. Square blocks that other
rows follow, or that follow others, are therefore refined,

    X ← X + X (1 − B X)                                                                                          (4)

after which B X is 1 up to ε‖B‖‖X‖, as if X were solved for. Errors of the mass matrix of a Stewart platform in given
coordinates, growth up to 1e10: 1.2e-9 of its largest entry at 20,000 random states, 3e-6 at 100,000 without (4).

Columns of few rows that no other rows have (legs, rods, cranks) make the first blocks; nothing fills in. What is left
is divided into such blocks that do best at samples, or planned by single pivots (`constraints.plan`) where it is large.

`growth` is Σ (size of a row)² ‖its column of X‖² over the rows of all blocks, sizes as they are and as they usually
are, both in units in which the columns of J have usual sizes of one; `narrow` and `leftover` are those of
`constraints.elimination`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from polybody.algebra.domains import Array, Domain
from polybody.algebra.many import MANY, Many
from polybody.algebra.rotations import cross
from polybody.constraints.elimination import Elimination, Row, squares
from polybody.constraints.plan import ZERO, Block, Plan, plan_elimination
from polybody.late import dataclass

#: logarithm of growth from which on a block counts as singular, and up to which a square one is taken as it is
SINGULAR, GOOD = 8.0, 1.0
#: velocities up to which it pays: larger mechanisms are sparse, and good pivots are many
LARGE = 60
#: growth from which on its square counts in few digits
TWICE = 1e4
#: first blocks of what is left that may be compared: with more, it is taken by single pivots
TRIED = 5000
#: and so many of them in all samples together: this takes some milliseconds
COMPARED = 10_000
#: of them so many are followed to the end
FIRST = 6


class BlockElimination:
    """The motions of J along a plan of blocks (`constraints.motions`)."""

    def __init__(self, J: Array, plan: Plan, domain: Domain) -> None:
        self.domain, self.independent, self.shape = domain, plan.independent, J.shape
        self._weights = plan.weights
        self.rows: list[Row] = [
            {j: J[i, j] for j in range(J.shape[1]) if not domain.is_zero(J[i, j])} for i in range(J.shape[0])
        ]
        self.open = dict.fromkeys(range(J.shape[0]))
        self._taken: list[_Taken] = []
        self._changed: set[int] = set()  # rows from which something was taken
        self.growth = self.narrow = domain.const(0)
        start = 0
        for rows, columns in plan.blocks:
            usual = [size**2 for size in plan.sizes[start : start + len(columns)]]
            for scale, size in zip(self.take(rows, columns, usual), usual, strict=True):
                self.narrow = self.narrow + domain.const(size) / scale
            start += len(columns)
        self.leftover = squares((x for r in plan.redundant for x in self.rows[r].values()), domain)
        self.G = self._motions()

    @property
    def rounding(self) -> Any:
        """The growth that counts in few digits: errors of a block that nearly vanishes pass through those after it."""
        return self.growth + self.growth * self.growth * self.domain.const(1 / TWICE)

    @property
    def spread(self) -> Any:
        """Σ G², every velocity in its usual size."""
        w = self._weights
        entries = (
            (value, w[k] / w[c]) for c, row in enumerate(self.G) for k, value in zip(self.independent, row, strict=True)
        )
        return self._squares(entries)

    def take(self, R: Sequence[int], C: Sequence[int], usual: Sequence[float] = ()) -> list[Any]:
        """Eliminate columns C by rows R; the squares of the sizes that each of its pivots is compared with.

        `usual` are those sizes in general position: where little is left of a row, it has the errors of what it was.
        """
        domain, rows = self.domain, self.rows
        B = self._entries(R, C)
        X = multiplied(B, domain)
        assert X is not None
        if len(C) == len(R) > 1 and (self._changed & {*R} or self._followed(R, C)):
            X = X + X @ (domain.eye(len(B)) - B @ X)  # (4)
        scales = [self._size(r) for r in R]
        most = [scale + domain.const(usual[min(s, len(C) - 1)]) if usual else scale for s, scale in enumerate(scales)]
        self.growth = self.growth + self._amplified(X, C, most)
        if len(C) < len(R):
            scales = [sum(scales[1:], scales[0])] * len(C)
        rest = sorted({c for r in R for c in rows[r]} - set(C))
        made = [self._combined(x, [rows[r] for r in R], rest) for x in X]
        for r in R[: len(C)]:
            del self.open[r]
        if len(C) < len(R):
            rows[R[-1]] = made[-1]
        factors: dict[int, list[Any]] = {}
        for q in self.open:
            F = [rows[q].pop(c, domain.const(0)) for c in C]
            if not (q in R or all(domain.is_zero(f) for f in F)):
                factors[q] = F
                change = self._combined(F, made, rest)
                for c, value in change.items():
                    rows[q][c] = rows[q][c] - value if c in rows[q] else -value
        self._changed |= {*factors}
        self._taken.append(_Taken(tuple(R), tuple(C), X, made[: len(C)], factors))
        return scales

    def _followed(self, R: Sequence[int], C: Sequence[int]) -> bool:
        """Whether other rows have entries in columns C."""
        return any(c in self.rows[q] for q in self.open if q not in R for c in C)

    def _size(self, r: int) -> Any:
        """The square of a row's size, its columns in their usual sizes."""
        return self._squares((value, self._weights[c]) for c, value in self.rows[r].items())

    def _amplified(self, X: Array, C: Sequence[int], scales: Sequence[Any]) -> Any:
        """Σ (size of row s)² ‖X_s‖², X_s what multiplies that row in the rows of C."""
        total = self.domain.const(0)
        for s, scale in enumerate(scales):
            total = total + scale * self._squares((X[k, s], 1 / self._weights[c]) for k, c in enumerate(C))
        return total

    def _squares(self, weighted: Iterable[tuple[Any, float]]) -> Any:
        """Σ weight · value², of (value, weight): each of the few different weights is multiplied once."""
        sums: dict[float, Any] = {}
        for value, weight in weighted:
            if not self._is_zero(value):
                square = value * value
                sums[weight] = sums[weight] + square if weight in sums else square
        total = self.domain.const(0)
        for weight, value in sums.items():
            total = total + value * self.domain.const(weight)
        return total

    def _entries(self, R: Sequence[int], C: Sequence[int]) -> Array:
        B = self.domain.zeros(len(R), len(C))
        for i, r in enumerate(R):
            for j, c in enumerate(C):
                B[i, j] = self.rows[r].get(c, B[i, j])
        return B

    def _combined(self, weights: Iterable[Any], rows: Sequence[Row], columns: Iterable[int]) -> Row:
        """Σ weight · row."""
        domain = self.domain
        pairs = [(w, row) for w, row in zip(weights, rows, strict=False) if not self._is_zero(w)]
        found: Row = {}
        for c in columns:
            total = domain.const(0)
            for w, row in pairs:
                if c in row:
                    total = total + w * row[c]
            if not domain.is_zero(total):
                found[c] = total
        return found

    def _is_zero(self, x: Any) -> bool:
        return self.domain.is_zero(x)

    def _motions(self) -> Array:
        """G, nv×m, from the last block back."""
        domain, m = self.domain, len(self.independent)
        G = domain.zeros(self.shape[1], m)
        for k, c in enumerate(self.independent):
            G[c, k] = domain.const(1)
        for taken in reversed(self._taken):
            for c, unit in zip(taken.columns, taken.units, strict=True):
                for k in range(m):
                    G[c, k] = -self._along(unit, G[:, k])
        return G

    def _along(self, row: Row, x: Array) -> Any:
        total = self.domain.const(0)
        for c, value in row.items():
            if not self._is_zero(x[c]):
                total = total + value * x[c]
        return total

    def follow(self, right: Array) -> Array:
        """x, nv numbers: J x + right = 0 with the independent ones zero."""
        b, sides = list(right), []
        for taken in self._taken:
            own = [self._weighted(x, [b[r] for r in taken.rows]) for x in taken.X]
            if len(taken.columns) < len(taken.rows):
                b[taken.rows[-1]] = own.pop()
            for q, F in taken.factors.items():
                b[q] = b[q] - self._weighted(F, own)
            sides.append(own)
        x = self.domain.zeros(self.shape[1])
        for taken, own in zip(reversed(self._taken), reversed(sides), strict=True):
            for c, unit, side in zip(taken.columns, taken.units, own, strict=True):
                x[c] = -(side + self._along(unit, x))
        return x

    def _weighted(self, weights: Iterable[Any], values: Sequence[Any]) -> Any:
        total = self.domain.const(0)
        for w, value in zip(weights, values, strict=True):
            if not (self._is_zero(w) or self._is_zero(value)):
                total = total + w * value
        return total

    def bear(self, load: Array) -> Array:
        """λ, one for each row: (Jᵀλ)_d = load_d, zero at rows that repeat others; (3)."""
        left, borne = list(load), []
        for taken in self._taken:
            y = [left[c] for c in taken.columns]
            for value, unit in zip(y, taken.units, strict=True):
                for c, entry in unit.items():
                    if not self._is_zero(value):
                        left[c] = left[c] - entry * value
            borne.append(y)
        found = self.domain.zeros(self.shape[0])
        for taken, y in zip(reversed(self._taken), reversed(borne), strict=True):
            mu = [value - self._weighted([F[k] for F in taken.factors.values()], [found[q] for q in taken.factors])
                  for k, value in enumerate(y)]  # fmt: skip
            if len(taken.columns) < len(taken.rows):
                mu.append(found[taken.rows[-1]])
            for s, r in enumerate(taken.rows):
                found[r] = self._weighted(taken.X[:, s], mu)
        return found

    def least(self, multipliers: Array) -> Array:
        return multipliers  # rows that repeat others are zero: they share nothing


@dataclass(frozen=True, eq=False)
class _Taken:
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    X: Array  # (1)
    units: list[Row]  # X J_R at the other columns
    factors: dict[int, list[Any]]  # F_q of (2)


def multiplied(B: Array, domain: Domain) -> Array | None:
    """X of (1), of a block of one to three rows, or two or three with a column less; None where zeros make it singular.
    """
    n, columns = len(B), [B[:, k] for k in range(B.shape[1])]
    if n == 3:
        across = cross(columns[0], columns[1])
        if len(columns) == 2:
            wide, det = [cross(columns[1], across), cross(across, columns[0])], _dot(across, across)
        else:
            wide = [cross(columns[1], columns[2]), cross(columns[2], columns[0]), across]
            det = _dot(columns[0], wide[0])
    elif n == 2:
        a, b = columns[0]
        across = [-b, a]
        if len(columns) == 1:
            wide, det = [[a, b]], a * a + b * b
        else:
            c, d = columns[1]
            wide, det = [[d, -c], across], a * d - b * c
    else:
        across, wide, det = [], [[domain.const(1)]], B[0, 0]
    if domain.is_zero(det):
        return None
    inverse = domain.const(1) / det
    X = domain.zeros(n, n)
    for i, row in enumerate(wide):
        X[i] = [x * inverse for x in row]
    if len(columns) < n:
        X[-1] = across
    return X


def _dot(a: Array, b: Array) -> Any:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def eliminated(J: Array, plan: Plan, domain: Domain) -> Elimination | BlockElimination:
    """The motions of J along a plan of either kind."""
    return BlockElimination(J, plan, domain) if plan.blocks else Elimination(J, plan, domain)


def plan_blocks(
    samples: Array, like: Plan, kept: Iterable[int] = (), pattern: Array | None = None
) -> Plan | None:
    """The plan by blocks for J samples (k, m, n), with the rank of another; `kept` columns stay independent.

    `pattern` (m, n) says which entries are not zero everywhere, where samples are of one branch only: legs are known by
    them. Columns have the usual sizes of the other plan, where it has blocks.

    None where rows repeat others by their numbers, where blocks are singular at most samples, and of large mechanisms.
    """
    if samples.shape[2] > LARGE:
        return None
    kept = frozenset(kept)
    scale = np.abs(samples).max(axis=(1, 2), keepdims=True)
    used = pattern if pattern is not None else np.abs(samples / np.where(scale == 0, 1, scale)).max(axis=0) > ZERO
    filled = np.flatnonzero(used.any(axis=1)).tolist()
    if len(filled) != len(like.pivots) or not filled:
        return None
    with np.errstate(all="ignore"):
        trial = _Trial(samples, used, like.weights)
        for rows, columns in _legs(trial.A, used, kept):
            trial.add(rows, columns)
        for rows, columns in _remainder(trial, [r for r in filled if r in trial.open], kept):
            trial.add(rows, columns)
        usual = float(_middle(_scores(trial.growth)))
    pivots = tuple((r, c) for rows, columns in trial.blocks for r, c in zip(rows, columns, strict=False))
    if len(pivots) != len(filled) or usual >= SINGULAR:
        return None
    dependent = {c for _, c in pivots}
    independent = tuple(c for c in range(used.shape[1]) if c not in dependent)
    redundant = tuple(r for r in range(used.shape[0]) if r not in set(filled))
    return Plan(pivots, independent, redundant, tuple(trial.sizes), tuple(trial.blocks), trial.weights)


class _Trial:
    """An elimination of all samples at once, block by block as they are chosen; A is J with columns of usual size."""

    def __init__(self, samples: Array, used: Array, weights: tuple[float, ...] = ()) -> None:
        common = () if weights else _middle(np.sqrt((samples**2).sum(axis=1)))
        self.weights = weights or tuple(float(4.0 ** -np.round(np.log2(x))) if x > 0 else 1.0 for x in common)
        self.scale = np.sqrt(self.weights)
        self.A = np.where(used, samples, 0.0) * self.scale
        self.open = list(range(used.shape[0]))
        self.growth = np.zeros(len(samples))
        self.blocks: list[Block] = []
        self.sizes: list[float] = []  # to a power of two

    def add(self, rows: Sequence[int], columns: Sequence[int]) -> None:
        """What `BlockElimination.take` does, in numbers."""
        R, C, A, k = list(rows), list(columns), self.A, len(columns)
        own = A[:, R]
        X, norms = _inverted(own[:, :, C]), (own**2).sum(axis=2)
        self.blocks.append((tuple(R), tuple(C)))
        self.growth += (norms[:, None] * X[:, :k] ** 2).sum(axis=(1, 2))
        for size in _middle(norms).tolist() if k == len(R) else [float(_middle(norms.sum(axis=1)))] * k:
            self.sizes.append(float(2.0 ** np.round(0.5 * np.log2(size))) if size > 0 else 1.0)
        made = X @ own
        self.open = [r for r in self.open if r not in R[:k]]
        if k < len(R):
            A[:, R[-1]] = made[:, -1] / np.prod(self.scale[C])  # a vector across columns as they are
        others = [r for r in self.open if r not in R]
        A[:, others] -= A[:, others][:, :, C] @ made[:, :k]
        A[:, :, C] = 0.0


def _inverted(B: Array) -> Array:
    """X of (1) of many blocks (..., rows, columns)."""
    n, k = B.shape[-2:]
    X = multiplied(np.array([[Many(B[..., i, j]) for j in range(k)] for i in range(n)], dtype=object), MANY)
    assert X is not None
    return np.stack([x.x for x in X.ravel()], axis=-1).reshape(*B.shape[:-1], n)


def _scores(growth: Array) -> Array:
    """The logarithm of growth: one at which a block vanishes does not decide alone."""
    return np.fmin(np.log10(growth), SINGULAR)  # of NaN too


def _compared(A: Array, choices: Sequence[Block]) -> tuple[Array, Array]:
    """(their mean scores, X (samples, choices, rows, rows)) of blocks of one size."""
    R, C = (np.array(x) for x in zip(*choices, strict=True))
    X = _inverted(A[:, R[:, :, None], C[:, None, :]])
    norms = (A**2).sum(axis=2)[:, R]
    growth = (norms[:, :, None] * X[:, :, : C.shape[1]] ** 2).sum(axis=(2, 3))
    return _scores(growth).mean(axis=0), X


def _middle(values: Array) -> Array:
    """The middle one of the first dimension; np.median loads a part of NumPy that takes longer than all else here."""
    return np.sort(values, axis=0)[len(values) // 2]


def _legs(A: Array, used: Array, kept: frozenset[int]) -> list[Block]:
    """Blocks of columns that only two or three rows have."""
    having = {c: frozenset(np.flatnonzero(used[:, c]).tolist()) for c in range(used.shape[1]) if c not in kept}
    own = {R: [c for c, rows in having.items() if rows and rows <= R] for R in {*having.values()} if 1 < len(R) < 4}
    found: list[Block] = []
    gone: set[int] = set()
    best: dict[tuple[frozenset[int], int], tuple[float, tuple[int, ...]]] = {}
    for size, less in ((2, 0), (2, 1), (3, 0), (3, 1)):  # all legs of a kind together
        legs = [R for R in own if len(R) == size]
        choices = [(tuple(sorted(R)), x) for R in legs for x in combinations(own[R], size - less)]
        for (R, x), score in zip(choices, _compared(A, choices)[0].tolist() if choices else (), strict=True):
            key = frozenset(R), less
            best[key] = min(best.get(key, (SINGULAR, ())), (score, x))
    for R in sorted(own, key=lambda x: (len(x), sorted(x))):
        square, across = (best.get((R, less), (SINGULAR, ())) for less in (0, 1))
        growth, columns = square if square[0] <= max(GOOD, across[0]) else across
        if growth < SINGULAR and not R & gone:
            found.append((tuple(sorted(R)), columns))
            gone |= R
    return found


def _remainder(trial: _Trial, rest: list[int], kept: frozenset[int]) -> list[Block]:
    """Blocks of what is left: the best of all where it is small and dense, else single pivots."""
    fit = _scores(trial.growth) < SINGULAR
    if not rest or not fit.any():
        return []
    A = trial.A[fit][:, rest]
    columns = [c for c in np.flatnonzero(np.abs(A).max(axis=(0, 1)) > 0).tolist() if c not in kept]
    choices = comb(len(rest), 3) * comb(len(columns), 3)
    if choices > TRIED:
        return [((rest[i],), (j,)) for i, j in plan_elimination(A / trial.scale, kept=kept).pivots]
    _, blocks = _divided(A[:: 1 + choices * len(A) // COMPARED], list(range(len(rest))), columns)
    return [(tuple(rest[i] for i in rows), chosen) for rows, chosen in blocks]


def _divided(A: Array, rows: list[int], columns: list[int]) -> tuple[float, list[Block]]:
    """(score, blocks) that take all rows of A (samples, rows, n): of the best first blocks the one that leaves most."""
    if not rows:
        return 0.0, []
    size = 2 if len(rows) in (2, 4) else min(3, len(rows))
    choices = [(r, c) for r in combinations(rows, size) for c in combinations(columns, size)]
    if not choices:
        return SINGULAR, []
    found, X = _compared(A, choices)
    scores = found.tolist()
    best: tuple[float, list[Block]] = (np.inf, [])
    for k in np.argsort(found, kind="stable")[: 1 if len(rows) == size else FIRST]:
        r, c = choices[k]
        left = A - A[:, :, list(c)] @ X[:, k] @ A[:, list(r)]
        others, open_columns = [x for x in rows if x not in r], [x for x in columns if x not in c]
        further, blocks = _divided(np.nan_to_num(left), others, open_columns)
        if scores[k] + further < best[0]:
            best = scores[k] + further, [(r, c), *blocks]
    return best


__all__ = ["BlockElimination", "eliminated", "multiplied", "plan_blocks"]
