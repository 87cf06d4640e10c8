"""Accelerations at singular configurations that a motion passes: what the lost rows still say, one derivative later.

Where J loses rank, W its left null vectors, the rows Wᵀ(J a + γ) = 0 say nothing of a, although the branch that the
motion is on has one. Their rate does:

    d/dt (J a + γ) = J ȧ + N a + n = 0,      Wᵀ J = 0      ⇒      Wᵀ (N a + n) = 0

in which N is linear in v: a motion that comes to rest there has no branch, and is left free. Singular values σ up to
the tolerance count as lost: then σ ȧ is neglected, which is small, while a = −γ/σ would have multiplied rounding.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from polybody.constraints.multipliers import solve_multipliers
from polybody.constraints.ranks import ranked_svd

Array = np.ndarray


def crossing_acceleration(
    M: Array, J: Array, gamma: Array, force: Array, speed: float, next_rate: Callable[[Array], Array],
    tolerance: float, rank: int,
) -> Array:
    """a at one state. `next_rate(a)` is d/dt (J a + γ) with a held, over a batch of a; `rank` is that of J nearby."""
    n = J.shape[1]
    answers = next_rate(np.concatenate([np.zeros((1, n)), np.eye(n)])) / max(speed, tolerance)
    drift, N = answers[0], (answers[1:] - answers[0]).T
    said = np.abs(J).max(axis=1) + np.abs(N).max(axis=1) > 0  # across a plane many rows say nothing at all
    J, gamma, N, drift = J[said], gamma[said], N[said], drift[said]
    U, _, _, kept = ranked_svd(J, tolerance, rank)
    count = int(kept.sum())
    held, lost = U[:, :count].T, U[:, count:].T
    rows, right = np.concatenate([held @ J, lost @ N]), np.concatenate([held @ gamma, lost @ drift])
    return solve_multipliers(M, rows, right, force, tolerance, rank).a


__all__ = ["crossing_acceleration"]
