"""Loads on a held object: shares and internal loads.

The object needs the wrench w = M_o V̇° + b_o (33). m grips supply it as

    f_j = W_j⁻ᵀ (w / m + λ_j),      Σ λ_j = 0

each an equal share, taken to its grip, plus an internal load: λ_j (j = 2 … m), a wrench in object axes at the object's
origin, is what arm j exerts beyond its share, and arm 1 takes the opposite. The columns of N (6m×6(m−1)) are these
loads one by one: WᵀN = 0.
"""

from __future__ import annotations

import numpy as np

from polybody.grasping.grips import Holding, hold_matrix

Array = np.ndarray

AXES = ("moment x", "moment y", "moment z", "force x", "force y", "force z")


def internal_basis(grasp: Holding) -> Array:
    """N, 6m×6(m−1): unit internal loads, in grip axes."""
    m = grasp.m
    N = np.zeros((6 * m, 6 * (m - 1)))
    lifted = [np.linalg.inv(hold_matrix(grip)).T for grip in grasp.grips]
    for j in range(1, m):
        columns = slice(6 * (j - 1), 6 * j)
        N[6 * j : 6 * j + 6, columns] = lifted[j]
        N[:6, columns] = -lifted[0]
    return N


def internal_names(grasp: Holding) -> list[str]:
    """What each column of N is."""
    first = grasp.grips[0].tip.name
    return [f"{axis} of {grip.tip.name} against {first}" for grip in grasp.grips[1:] for axis in AXES]


def equal_shares(grasp: Holding) -> Array:
    """6m×6: f_e of equal shares of the object's wrench (object axes, object origin)."""
    return np.vstack([np.linalg.inv(hold_matrix(grip)).T for grip in grasp.grips]) / grasp.m


def internal_part(grasp: Holding, f_e: Array) -> Array:
    """λ, (..., 6(m−1)), of loads f_e (..., m, 6)."""
    at_object = np.stack([f_e[..., j, :] @ hold_matrix(grip) for j, grip in enumerate(grasp.grips)], axis=-2)
    extra = at_object - at_object.mean(axis=-2, keepdims=True)
    return extra[..., 1:, :].reshape(*f_e.shape[:-2], 6 * (grasp.m - 1))


__all__ = ["equal_shares", "internal_basis", "internal_names", "internal_part"]
