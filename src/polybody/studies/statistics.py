"""What a study's numbers say: summaries, and Sobol indices of a `saltelli` design.

With y_A, y_B and y_Ai the results of the n samples A, B and A with column i of B (Saltelli et al. 2010, Jansen 1999),

    S_i  = Σ y_B (y_Ai − y_A) / (n V),          first order: the part of the variance that input i alone explains
    ST_i = Σ (y_A − y_Ai)² / (2 n V),           total: with all interactions of i

V the variance of y over A and B. Standard errors are those of a bootstrap over the samples.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polybody.errors import InputError

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class SobolIndices:
    """First-order and total indices of each input, with standard errors."""

    names: tuple[str, ...]  # of the inputs
    first: Array  # share of the variance by each input alone
    total: Array
    first_error: Array  # standard error
    total_error: Array  # standard error

    def __repr__(self) -> str:
        width = max(len(name) for name in self.names)
        rows = [f"{'':{width}}  first          total"]
        for k, name in enumerate(self.names):
            rows.append(f"{name:{width}}  {self.first[k]:6.3f} ± {self.first_error[k]:.3f}  "
                        f"{self.total[k]:6.3f} ± {self.total_error[k]:.3f}")  # fmt: skip
        return "\n".join(rows)


def sobol_indices(y: Array, dimensions: int, names: tuple[str, ...], *, draws: int = 200) -> SobolIndices:
    """Indices from results y in the order of a `saltelli` design."""
    y = np.asarray(y, dtype=float)
    n = len(y) // (dimensions + 2)
    if y.ndim != 1 or n * (dimensions + 2) != len(y) or n < 2:
        raise InputError(f"{len(y)} results are not those of a saltelli design of {dimensions} inputs")
    if not np.isfinite(y).all():
        raise InputError(f"{int(np.sum(~np.isfinite(y)))} cases failed or are not finite; indices need all of them")
    blocks = y.reshape(dimensions + 2, n)
    rng = np.random.default_rng(0)
    first, total = _indices(blocks)
    again = np.array([_indices(blocks[:, rng.integers(0, n, size=n)]) for _ in range(draws)])
    spread = again.std(axis=0)
    return SobolIndices(names, first, total, spread[0], spread[1])


def _indices(blocks: Array) -> tuple[Array, Array]:
    A, B, mixed = blocks[0], blocks[1], blocks[2:]
    center = blocks[:2].mean()
    variance = blocks[:2].var()
    if variance == 0:
        return np.zeros(len(mixed)), np.zeros(len(mixed))
    first = ((B - center) * (mixed - A)).mean(axis=1) / variance
    total = ((A - mixed) ** 2).mean(axis=1) / (2 * variance)
    return first, total


def summary(y: Array) -> dict[str, float]:
    """Mean, deviation and quantiles of finite numbers."""
    good = y[np.isfinite(y)]
    if not len(good):
        return {"count": 0}
    q05, q50, q95 = np.percentile(good, [5, 50, 95])
    numbers = {"mean": good.mean(), "deviation": good.std(), "min": good.min(), "5 %": q05, "median": q50, "95 %": q95,
               "max": good.max()}  # fmt: skip
    return {"count": len(good)} | {name: float(x) + 0.0 for name, x in numbers.items()}  # 0, never −0


__all__ = ["SobolIndices", "sobol_indices", "summary"]
