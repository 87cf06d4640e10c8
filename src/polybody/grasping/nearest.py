"""The point nearest to a wanted one on which linear equations hold: x = start + E⁺(right − E start).

Two ways to it. `nearest` looks at the rank of every state (pseudo-inverses over leading dimensions). `nearest_fixed` is
straight-line text over any domain, for equations whose independent rows are known beforehand: row by row, with e_i the
row and w_i what is left of it beside the rows before (Gram and Schmidt),

    w_i = e_i − Σ_k (w_k·e_i / w_k·w_k) w_k,        x ← x + w_i (right_i − e_i·x) / (w_i·w_i)

so that x meets every row as it comes and stays the nearest. Taken so, rows of arms that share a base or an object would
fill in, each with the columns of all arms before it. Rows of one arm are therefore first made orthonormal in the
columns that are its own, Q_j a_j + B_j s = r_j with s the shared columns; together C = [Q B], and C Cᵀ = 1 + B Bᵀ has
the inverse 1 − B (1 + BᵀB)⁻¹ Bᵀ, in which only a matrix of the shared columns is inverted: the cost is linear in the
number of arms.

`growth`, the sum of |e_i|²/|w_i|², is large where the rows are not independent after all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polybody.algebra.domains import Array, Domain
from polybody.grasping.symmetric import symmetric_inverse

#: singular values below this part of the largest are zero
RANK = 1e-11
#: growth above this: the rows are not independent in that state, to ten digits of the answer
GROWTH = 1e10


def independent_rows(E: Array, tolerance: float = 1e-9) -> list[int]:
    """The rows of one matrix that no earlier row implies."""
    basis, kept = np.zeros((0, E.shape[1])), []
    for i, row in enumerate(E):
        rest = row - basis.T @ (basis @ row)
        rest = rest - basis.T @ (basis @ rest)  # twice is enough to be orthogonal to rounding
        norm = float(np.linalg.norm(rest))
        if norm > tolerance * max(float(np.linalg.norm(row)), 1e-300):
            basis = np.vstack([basis, rest / norm])
            kept.append(i)
    return kept


def nearest(E: Array, right: Array, start: Array, levels: Sequence[Sequence[int]]) -> tuple[Array, Array]:
    """(x, rank) over leading dimensions: x (..., n) meets the rows of E (..., r, n) as well as can be, level by level.

    A residual so shows up in the last level that could not be met. Orthogonal projections on nested spaces compose, so
    x is the nearest of all solutions.
    """
    x, free = start, np.broadcast_to(np.eye(E.shape[-1]), (*E.shape[:-2], E.shape[-1], E.shape[-1]))
    rank = np.zeros(E.shape[:-2], dtype=int)
    for rows in levels:
        own = E[..., list(rows), :]
        reach = own @ free
        back, found = _pseudo_inverse(reach, np.abs(own).max(axis=(-1, -2), initial=0.0))
        back = free @ back
        x = x + (back @ (right[..., list(rows)] - (own @ x[..., None])[..., 0])[..., None])[..., 0]
        free, rank = free - back @ reach, rank + found
    return x, rank


def _pseudo_inverse(A: Array, size: Array) -> tuple[Array, Array]:
    """(A⁺, rank) of matrices (..., r, n); `size` is that of the rows before they were projected."""
    if not A.size:
        return np.zeros((*A.shape[:-2], A.shape[-1], A.shape[-2])), np.zeros(A.shape[:-2], dtype=int)
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    kept = s > RANK * np.maximum(size[..., None], 1e-300)
    back = np.where(kept, 1.0 / np.where(kept, s, 1.0), 0.0)
    return np.swapaxes(Vt, -1, -2) @ (back[..., None] * np.swapaxes(U, -1, -2)), kept.sum(axis=-1)


@dataclass(frozen=True)
class Order:
    """Independent rows in the order they are met: groups (arms) first, then the others."""

    groups: tuple[tuple[int, ...], ...]
    later: tuple[int, ...]

    def __len__(self) -> int:
        return sum(len(group) for group in self.groups) + len(self.later)


def plan_rows(E: Array, arms: Sequence[Sequence[int]]) -> Order:
    """The order for one sample of the equations; `arms` are rows that may have columns of their own."""
    groups = []
    for rows, own in zip(arms, _own_columns([np.any(E[list(rows)] != 0, axis=0) for rows in arms]), strict=True):
        kept = independent_rows(E[np.ix_(list(rows), own)])
        groups.append(tuple(rows[k] for k in kept))
    first = [i for group in groups for i in group]
    rest = [i for i in range(len(E)) if i not in first]
    order = [*first, *rest]
    kept = [order[k] for k in independent_rows(E[order])]
    return Order(tuple(groups), tuple(i for i in kept if i not in first))


def _own_columns(filled: Sequence[Array]) -> list[list[int]]:
    """The columns that each group touches and no other does."""
    count = np.sum(filled, axis=0)
    return [[int(j) for j in np.flatnonzero(own & (count == 1))] for own in filled]


@dataclass(frozen=True, eq=False)
class _Row:
    """A group's row made orthonormal in its own columns: q·x_own + b·x_shared = r."""

    q: dict[int, Any]
    b: dict[int, Any]
    r: Any


class _Groups:
    """The rows of all groups, C = [Q B], with C Cᵀ = 1 + B Bᵀ inverted by way of K = 1 + BᵀB."""

    def __init__(self, E: Array, right: Array, order: Order, domain: Domain) -> None:
        self.domain, self.growth = domain, domain.const(0)
        self.rows: list[_Row] = []
        filled = [[_sparse(E[i], domain) for i in group] for group in order.groups]
        touched = [np.isin(np.arange(E.shape[1]), [j for row in rows for j in row]) for rows in filled]
        for group, rows, own in zip(order.groups, filled, _own_columns(touched), strict=True):
            self._orthonormal(rows, [right[i] for i in group], set(own))
        self.shared = sorted({j for row in self.rows for j in row.b})
        K = domain.eye(len(self.shared))
        for a, j in enumerate(self.shared):
            for c, k in enumerate(self.shared[a:], a):
                both = (row.b[j] * row.b[k] for row in self.rows if j in row.b and k in row.b)
                K[a, c] = K[c, a] = K[a, c] + sum(both, domain.const(0))
        self.K_inverse = symmetric_inverse(K, domain) if self.shared else K

    def _orthonormal(self, rows: list[dict[int, Any]], right: list[Any], own: set[int]) -> None:
        done: list[_Row] = []
        for row, r in zip(rows, right, strict=True):
            q, b = ({j: x for j, x in row.items() if (j in own) is mine} for mine in (True, False))
            before = _dot(q, q, self.domain)
            for other in done:
                factor = _dot(other.q, q, self.domain)
                _less(q, factor, other.q)
                _less(b, factor, other.b)
                r = r - factor * other.r
            left = _dot(q, q, self.domain)
            self.growth = self.growth + before / left
            scale = self.domain.const(1) / self.domain.sqrt(left)
            done.append(_Row({j: x * scale for j, x in q.items()}, {j: x * scale for j, x in b.items()}, r * scale))
        self.rows += done

    def back(self, y: list[Any]) -> dict[int, Any]:
        """Cᵀ (C Cᵀ)⁻¹ y, with zeros left out; y has None for a zero."""
        zero, result = self.domain.const(0), {}
        weights = list(y)
        if self.shared:
            pulled = [
                sum((row.b[j] * v for row, v in zip(self.rows, y, strict=True) if v is not None and j in row.b), zero)
                for j in self.shared
            ]
            t = dict(zip(self.shared, self.K_inverse @ np.array(pulled, dtype=self.domain.dtype), strict=True))
            for k, row in enumerate(self.rows):
                if row.b:
                    weights[k] = (zero if y[k] is None else y[k]) - _dot(row.b, t, self.domain)
        for row, weight in zip(self.rows, weights, strict=True):
            if weight is not None:
                _less(result, -weight, row.q)
                _less(result, -weight, row.b)
        return result

    def start(self, x: Array) -> dict[int, Any]:
        """The least step from x that meets the groups' rows."""
        at = dict(enumerate(x))
        return self.back([row.r - _dot(row.q, at, self.domain) - _dot(row.b, at, self.domain) for row in self.rows])

    def beside(self, e: dict[int, Any]) -> dict[int, Any]:
        """What is left of a row beside those of the groups."""
        touched = [any(j in e for part in (row.q, row.b) for j in part) for row in self.rows]
        if not any(touched):
            return dict(e)
        y = [
            _dot(row.q, e, self.domain) + _dot(row.b, e, self.domain) if met else None
            for row, met in zip(self.rows, touched, strict=True)
        ]
        w = dict(e)
        _less(w, self.domain.const(1), self.back(y))
        return w


def _sparse(row: Array, domain: Domain) -> dict[int, Any]:
    return {j: x for j, x in enumerate(row) if not domain.is_zero(x)}


def _dot(a: dict[int, Any], b: dict[int, Any], domain: Domain) -> Any:
    return sum((x * b[j] for j, x in a.items() if j in b), domain.const(0))


def _less(a: dict[int, Any], factor: Any, b: dict[int, Any]) -> None:
    """a ← a − factor b."""
    for j, x in b.items():
        a[j] = a[j] - factor * x if j in a else -(factor * x)


def nearest_fixed(E: Array, right: Array, start: Array, order: Order, domain: Domain) -> tuple[Array, Any]:
    """(x, growth) of one state, from the rows of `order`; the others are for the caller to look at."""
    groups = _Groups(E, right, order, domain)
    x, growth = start.copy(), groups.growth
    for j, step in groups.start(start).items():
        x[j] = x[j] + step
    before: list[tuple[dict[int, Any], Any]] = []
    for i in order.later:
        e = _sparse(E[i], domain)
        w = groups.beside(e)
        for other, inverse in before:
            if any(j in w for j in other):
                _less(w, _dot(other, w, domain) * inverse, other)
        inverse = domain.const(1) / _dot(w, w, domain)
        step = (right[i] - _dot(e, dict(enumerate(x)), domain)) * inverse
        for j, value in w.items():
            x[j] = x[j] + value * step
        growth = growth + _dot(e, e, domain) * inverse
        before.append((w, inverse))
    return x, growth


__all__ = ["GROWTH", "Order", "independent_rows", "nearest", "nearest_fixed", "plan_rows"]
