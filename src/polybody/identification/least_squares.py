"""Ordinary, weighted and iteratively reweighted least squares, and how sure the estimate is.

Rows of one coordinate have one standard deviation, estimated from their residuals (weighted); reweighting by Huber's
function, min(1, 1.345 s/|r|), keeps outliers from pulling. Samples are thinned to about the filter's bandwidth first:
neighbours that a low-pass filter made alike would count many times. The covariance is σ²(AᵀA)⁻¹ of the weighted rows,
increased by (1 + ρ)/(1 − ρ) where residuals still follow each other with correlation ρ > 0: what a model does not
explain is not noise.

Only triangles are computed: QR of [A b] has R and z = Qᵀb side by side, Q is not formed. While all rows of a coordinate
have one weight, those of each coordinate are reduced once, and every sweep starts from their small triangles.
"""

from __future__ import annotations

import numpy as np

from polybody.errors import InputError
from polybody.late import dataclass
from polybody.names import counted

Array = np.ndarray
METHODS = ("ordinary", "weighted", "reweighted")
#: solutions of each method: weights are those of the one before
SWEEPS = {"ordinary": 1, "weighted": 4, "reweighted": 7}
HUBER = 1.345


@dataclass(frozen=True, eq=False)
class Fit:
    """x with its covariance; R x − z are the weighted residuals up to a constant (for further conditions on x)."""

    x: Array
    covariance: Array
    condition: float
    R: Array
    z: Array
    sigma: Array  # of each coordinate's rows
    residual: float  # sum of squares of the weighted rows


def solve(A: Array, b: Array, method: str = "reweighted") -> Fit:
    """x of A (N, m, k) x = b (N, m)."""
    if method not in METHODS:
        raise InputError(f"method is {method!r}; expected {', '.join(map(repr, METHODS))}")
    N, m, k = A.shape
    if N * m <= k:
        raise InputError(f"{N} samples of {m} joint forces for {counted(k, 'parameter')}: the recording is too short")
    # Columns of one size: the condition number then tells of the motion, not of units.
    size = np.sqrt(np.mean(A**2, axis=(0, 1)))
    still = size <= 1e-12 * size.max(initial=1e-300)  # not moved at all by this recording
    size = np.where(still, 1.0, size)
    rows, sigma, trust = A / size, np.ones(m), np.ones((N, m))
    both = np.concatenate([rows, b[..., None]], axis=-1)
    reduced = [_triangle(both[:, j]) for j in range(m)]
    condition = float(np.linalg.cond(_triangle(np.concatenate(reduced))[:, :k]))
    last = SWEEPS[method] - 1
    for sweep in range(last + 1):
        if np.all(trust == 1.0):
            weighted = [part / s for part, s in zip(reduced, sigma, strict=True)]
        else:
            weighted = [(both * (np.sqrt(trust) / sigma)[..., None]).reshape(-1, k + 1)]
        whole = _triangle(np.concatenate(weighted))
        R, z = whole[:k, :k], whole[:k, k]
        x = np.linalg.lstsq(R, z, rcond=1e-12)[0]
        residual = b - rows @ x
        if sweep == last:
            break
        if method != "ordinary":
            least = 1e-9 * max(float(np.abs(b).max()), 1e-300)
            sigma = np.maximum(_spread(residual, sweep and method == "reweighted"), least)
        if method == "reweighted":
            trust = np.minimum(1.0, HUBER * sigma / np.maximum(np.abs(residual), 1e-300))
    unit = residual * np.sqrt(trust) / sigma
    freedom = max(N * m - k, 1)
    residual_squares = float(np.sum(unit**2))
    variance = residual_squares / freedom
    inverse = np.linalg.pinv(R)
    covariance = inverse @ inverse.T * variance * _inflation(residual / sigma)
    covariance[still, still] = np.inf
    return Fit(x / size, covariance / np.outer(size, size), condition, R * size, z, sigma, residual_squares)


def _triangle(rows: Array) -> Array:
    """R of rows = QR."""
    return np.asarray(np.linalg.qr(rows, mode="r"))


def _spread(residual: Array, robust: object) -> Array:
    """Standard deviation of each coordinate's residuals, by the median where outliers are expected."""
    if robust:
        return 1.4826 * np.median(np.abs(residual - np.median(residual, axis=0)), axis=0)
    return np.sqrt(np.mean(residual**2, axis=0))


def _inflation(residual: Array) -> float:
    """(1 + ρ)/(1 − ρ) of residuals one sample apart."""
    centred = residual - residual.mean(axis=0)
    rho = float(np.sum(centred[1:] * centred[:-1]) / max(float(np.sum(centred**2)), 1e-300))
    rho = min(max(rho, 0.0), 0.95)
    return (1 + rho) / (1 - rho) if rho > 0.1 else 1.0


__all__ = ["METHODS", "Fit", "solve"]
