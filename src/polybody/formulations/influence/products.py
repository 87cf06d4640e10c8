"""Freeman's generalised scalar and cross products (appendix A, (2-175), (2-190)), with the errata's shapes.

A three-way array C is P×M×N: P planes, each an M×N matrix. For a K×P matrix A

    [A • C]_(k;m,n) = Σ_p A_kp C_(p;m,n)              K×M×N                                             (A-10)

so that φ̇ᵀ(A • C)φ̇ = A (φ̇ᵀCφ̇). `two_sided` is [D]ᵀC[D] plane by plane, P×N×N for D = M×N. The cross product takes
each column of A against each column of B:

    [Aᵀ × B]_(m;n) = a_m × b_n,                       3×M×N (the paper prints the 3 second)            (2-190)

Arrays may belong to any scalar domain.
"""

from __future__ import annotations

import numpy as np

from polybody.algebra.domains import Array
from polybody.algebra.rotations import cross


def scalar_product(A: Array, C: Array) -> Array:
    """A • C: combine the planes of C, (..., P) with (P, ...)."""
    return np.tensordot(A, C, axes=(A.ndim - 1, 0))


def cross_product(A: Array, B: Array) -> Array:
    """Aᵀ × B: (3, M) with (3,) or (3, N) gives (3, M) or (3, M, N)."""
    if B.ndim == 1:
        return cross(A, B[:, None])
    return cross(A[:, :, None], B[:, None, :])


def two_sided(D: Array, C: Array) -> Array:
    """[D]ᵀ C [D], plane by plane: D is M×N, C is P×M×M, the result P×N×N."""
    right = np.tensordot(C, D, axes=(2, 0))
    return np.swapaxes(np.tensordot(right, D, axes=(1, 0)), 1, 2)


def quadratic(x: Array, C: Array, y: Array) -> Array:
    """xᵀ C y, plane by plane: P numbers."""
    return np.tensordot(np.tensordot(C, y, axes=(2, 0)), x, axes=(1, 0))


__all__ = ["cross_product", "quadratic", "scalar_product", "two_sided"]
