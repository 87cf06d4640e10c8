"""Least squares among the inertias that a body can have, by Clarabel, an interior-point method for conic programmes.

    min ‖A x − b‖² + Σ w_k (x_k − c_k)²,     J(x_i) ⪰ ε for ten numbers x_i of each body,     x_k ≥ 0 for some k

The residual is an unknown of its own, A x − r = b, so that A is not squared: parameters that a recording hardly shows
would lose half of their digits. J ⪰ ε is said of its upper triangle, column by column, off-diagonal entries times √2,
which keeps products of matrices:

    svec(J(x_i)) − ε svec(1) ∈ PSD
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polybody.errors import InputError, PolybodyError, warn
from polybody.formulations.denoc.regressor import ENTRIES

Array = np.ndarray


def pseudo_inertia(p: Array) -> Array:
    """J (..., 4, 4) of ten parameters (..., 10)."""
    inertia = np.zeros((*p.shape[:-1], 3, 3))
    for k, (r, c) in enumerate(ENTRIES):
        inertia[..., r, c] = inertia[..., c, r] = p[..., 4 + k]
    J = np.zeros((*p.shape[:-1], 4, 4))
    half = np.trace(inertia, axis1=-2, axis2=-1)[..., None, None] / 2
    J[..., :3, :3] = half * np.eye(3) - inertia
    J[..., :3, 3] = J[..., 3, :3] = p[..., 1:4]
    J[..., 3, 3] = p[..., 0]
    return J


def is_consistent(p: Array) -> bool:
    """True where every body (10 numbers each) has a positive definite pseudo-inertia."""
    return bool(np.all(np.linalg.eigvalsh(pseudo_inertia(np.reshape(p, (-1, 10)))) > 0))


def units(mass: float, length: float) -> Array:
    """Ten parameters in which J is a matrix without units, as multiples of SI's."""
    return np.array([mass] + [mass * length] * 3 + [mass * length**2] * 6)


def solve(
    A: Array, b: Array, bodies: Sequence[int], margin: float, positive: Sequence[int] = (),
    weights: Array | None = None, centre: Array | None = None,
) -> Array:  # fmt: skip
    """The x of the programme above; `bodies` are the places in x where the ten parameters of each begin."""
    clarabel = _clarabel()
    from scipy.sparse import csc_matrix, diags

    (rows, n), free = A.shape, len(positive)
    w, c = (np.zeros(n) if x is None else x for x in (weights, centre))
    triangle = _svec(pseudo_inertia(np.eye(10))).T  # svec(J(p)) = triangle p
    left, right = np.zeros((rows + free + 10 * len(bodies), n + rows)), np.zeros(rows + free + 10 * len(bodies))
    left[:rows, :n], left[:rows, n:], right[:rows] = A, -np.eye(rows), b
    left[rows + np.arange(free), list(positive)] = -1.0
    for k, first in enumerate(bodies):
        own = slice(rows + free + 10 * k, rows + free + 10 * k + 10)
        left[own, first : first + 10], right[own] = -triangle, -margin * _svec(np.eye(4))
    cones = [clarabel.ZeroConeT(rows), clarabel.NonnegativeConeT(free)]
    cones += [clarabel.PSDTriangleConeT(4)] * len(bodies)
    P = diags(2 * np.concatenate([w, np.ones(rows)]), format="csc")
    linear = np.concatenate([-2 * w * c, np.zeros(rows)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    answer = clarabel.DefaultSolver(P, linear, csc_matrix(left), right, cones, settings).solve()
    status = str(answer.status)
    if status not in ("Solved", "AlmostSolved"):
        raise PolybodyError(f"the semidefinite programme has no solution: {status}")
    if status == "AlmostSolved":
        warn("consistent estimates were found to the solver's reduced accuracy only, some five digits")
    return np.array(answer.x)[:n]


def _clarabel() -> Any:
    try:
        import clarabel
    except ImportError:
        raise InputError("physically consistent estimates need Clarabel: pip install 'polybody[identify]'") from None
    return clarabel


def _svec(J: Array) -> Array:
    """The upper triangle of matrices (..., 4, 4), column by column."""
    c, r = np.tril_indices(4)  # rows of the lower triangle are columns of the upper one
    return J[..., r, c] * np.where(r == c, 1.0, np.sqrt(2.0))


__all__ = ["is_consistent", "pseudo_inertia", "solve", "units"]
