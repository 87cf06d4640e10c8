"""Products with a sparse G, known zeros skipped, over any domain."""

from __future__ import annotations

import numpy as np

from polybody.algebra.domains import Array, Domain


def sandwiched(G: Array, M: Array, domain: Domain) -> Array:
    """Gᵀ M G for symmetric M."""
    n, m = G.shape
    filled = [[k for k in range(m) if not domain.is_zero(G[i, k])] for i in range(n)]
    MG = domain.zeros(n, m)
    for i in range(n):
        for j in range(n):
            if not domain.is_zero(M[i, j]):
                for k in filled[j]:
                    MG[i, k] = MG[i, k] + M[i, j] * G[j, k]
    result = domain.zeros(m, m)
    for i in range(n):
        for k in filled[i]:
            for c in range(k, m):
                if not domain.is_zero(MG[i, c]):
                    result[k, c] = result[k, c] + G[i, k] * MG[i, c]
    for k in range(m):
        for c in range(k):
            result[k, c] = result[c, k]
    return result


def carried_back(G: Array, force: Array, domain: Domain) -> Array:
    """Gᵀ f."""
    result = domain.zeros(G.shape[1])
    for i in range(G.shape[0]):
        for k in range(G.shape[1]):
            if not (domain.is_zero(G[i, k]) or domain.is_zero(force[i])):
                result[k] = result[k] + G[i, k] * force[i]
    return result


def carried_out(G: Array, u: Array, start: Array, domain: Domain) -> Array:
    """G u + start."""
    result = start.copy()
    for i in range(G.shape[0]):
        for k in range(G.shape[1]):
            if not (domain.is_zero(G[i, k]) or domain.is_zero(u[k])):
                result[i] = result[i] + G[i, k] * u[k]
    return result


def product(G: Array, X: Array, domain: Domain) -> Array:
    """G X, known zeros of G skipped."""
    zero = domain.zeros(G.shape[0])
    columns = [carried_out(G, x, zero, domain) for x in X.T]
    return np.array(columns, dtype=domain.dtype).reshape(X.shape[1], G.shape[0]).T


__all__ = ["carried_back", "carried_out", "product", "sandwiched"]
