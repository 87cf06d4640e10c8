"""The point nearest to a wanted one on which linear equations hold: x = start + E⁺(right − E start).

Two ways to it. `nearest` looks at the rank of every state (pseudo-inverses over leading dimensions). `nearest_fixed` is
straight-line text over any domain, for equations whose independent rows are known beforehand: row by row, with e_i the
row and w_i what is left of it beside the rows before (Gram and Schmidt),

    w_i = e_i − Σ_k (w_k·e_i / w_k·w_k) w_k,        x ← x + w_i (right_i − e_i·x) / (w_i·w_i)

so that x meets every row as it comes and stays the nearest. Known zeros are skipped: arms that share no joint cost
nothing to each other. `growth`, the sum of |e_i|²/|w_i|², is large where the rows are not independent after all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polybody.algebra.domains import Array, Domain

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


def nearest_fixed(E: Array, right: Array, start: Array, rows: Sequence[int], domain: Domain) -> tuple[Array, Any]:
    """(x, growth) of one state, from the rows that are independent; the others are for the caller to look at."""
    x, growth = start.copy(), domain.const(0)
    before: list[tuple[dict[int, Any], Any]] = []
    for i in rows:
        e = {j: E[i, j] for j in range(E.shape[1]) if not domain.is_zero(E[i, j])}
        w = dict(e)
        for other, inverse in before:
            shared = [j for j in other if j in w]
            if not shared:
                continue
            factor = sum((other[j] * w[j] for j in shared), domain.const(0)) * inverse
            for j, value in other.items():
                w[j] = w[j] - factor * value if j in w else -(factor * value)
        inverse = domain.const(1) / sum((value * value for value in w.values()), domain.const(0))
        step = (right[i] - sum((value * x[j] for j, value in e.items()), domain.const(0))) * inverse
        for j, value in w.items():
            x[j] = x[j] + value * step
        growth = growth + sum((value * value for value in e.values()), domain.const(0)) * inverse
        before.append((w, inverse))
    return x, growth


__all__ = ["GROWTH", "independent_rows", "nearest", "nearest_fixed"]
