"""Symmetric matrices computed above the diagonal only, so that expression graphs hold no operation twice."""

from __future__ import annotations

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain


def symmetric_inverse(A: Array, domain: Domain) -> Array:
    """A⁻¹ of a symmetric positive definite A = L D Lᵀ: L⁻ᵀ D⁻¹ L⁻¹. Numbers that are not so raise LinAlgError."""
    if domain is FLOAT:
        values = np.linalg.eigvalsh(A)
        if not values[0] > 1e-14 * values[-1]:
            raise np.linalg.LinAlgError("singular")
        return np.linalg.inv(A)
    n, one = A.shape[0], domain.const(1)
    rest, below, D = A.copy(), domain.eye(n), []
    for k in range(n):
        D.append(one / rest[k, k])
        factors = [rest[i, k] * D[k] for i in range(k + 1, n)]
        for i, factor in enumerate(factors, k + 1):
            for j in range(i, n):
                rest[j, i] = rest[j, i] - rest[j, k] * factor
            below[i, : k + 1] = below[i, : k + 1] - factor * below[k, : k + 1]
    result = np.empty_like(A)
    for i in range(n):
        for j in range(i, n):
            result[i, j] = result[j, i] = sum((below[k, i] * D[k] * below[k, j] for k in range(j, n)), domain.const(0))
    return result


def symmetric_sum(A: Array, X: Array, Y: Array) -> Array:
    """A + X Yᵀ where the sum is symmetric."""
    result = np.empty_like(A)
    for i in range(len(A)):
        for j in range(i, len(A)):
            result[i, j] = result[j, i] = A[i, j] + X[i] @ Y[j]
    return result


__all__ = ["symmetric_inverse", "symmetric_sum"]
