"""The same motion with the whole mass matrix, for rotors that couple joints and so break the tree.

    M a + Aᵀf = τ − bias,     A a = γ,     f = Kᵀy

with K the independent rows of the grasp: (K A M⁻¹ Aᵀ Kᵀ) y = K (A M⁻¹(τ − bias) − γ).
"""

from __future__ import annotations

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.formulations.operators.sweeps import composite_mass_matrix, inverse, state
from polybody.grasping.consistency import closure_terms
from polybody.grasping.grips import Holding, hold_matrix


def row_matrix(grasp: Holding) -> Array:
    """K of all rows, r×6m, in the axes of the grips."""
    K = np.zeros((sum(len(rows.K) for rows in grasp.rows), 6 * grasp.m))
    position = 0
    for rows in grasp.rows:
        K[position : position + len(rows.K), 6 * rows.grip : 6 * rows.grip + 6] = rows.K @ np.linalg.inv(
            hold_matrix(grasp.grips[rows.grip])
        )
        position += len(rows.K)
    return K


def dense_forward_dynamics(
    grasp: Holding, q: Array, v: Array, force: Array, wrenches: Array | None, *, domain: Domain = FLOAT
) -> tuple[Array, Array, Array]:
    """(a, f_e (m×6), how far grips accelerate apart); `force` is tau with joint springs and dampers."""
    m = grasp.mechanism
    M = composite_mass_matrix(m, q, domain=domain)
    A, gamma = closure_terms(grasp, q, v, domain=domain)
    right = force - inverse(state(m, q, v, wrenches, domain=domain), None)
    K = domain.array(row_matrix(grasp))
    closed = K @ A
    Y = domain.solve(M, np.column_stack([closed.T, right]))
    y = domain.solve(closed @ Y[:, :-1], closed @ Y[:, -1] - K @ gamma)
    a = Y[:, -1] - Y[:, :-1] @ y
    f = K.T @ y
    if grasp.workless.size:
        N = domain.array(grasp.workless)
        f = f - N @ (N.T @ f)
    return a, f.reshape(-1, 6), (A @ a - gamma).reshape(-1, 6)


__all__ = ["dense_forward_dynamics", "row_matrix"]
