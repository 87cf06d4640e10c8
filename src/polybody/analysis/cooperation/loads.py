"""Loads on a held object: shares, internal loads, and the joint forces that bring them about.

The object needs the wrench w = M_o V̇° + b_o (33). m grips supply it as

    f_j = W_j⁻ᵀ (w / m + λ_j),      Σ λ_j = 0

each an equal share, taken to its grip, plus an internal load: λ_j (j = 2 … m), a wrench in object axes at the object's
origin, is what arm j exerts beyond its share, and arm 1 takes the opposite. The columns of N (6m×6(m−1)) are these
loads one by one: WᵀN = 0.

The inverse problem asks for a motion and internal loads: unknown are the accelerations that were not asked for and the
loads f. Closure A a = −Ȧv, the object's balance and the passive columns' equations are linear in them; among their
solutions the one nearest to the wanted loads and to the wanted arm motion is taken.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polybody.analysis.cooperation.grips import Holding, hold_matrix

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
    return extra[..., 1:, :].reshape(*f_e.shape[:-2], -1)


@dataclass(frozen=True, eq=False)
class Demand:
    """One state's linear equations of the inverse problem, with what each row stands for."""

    E: Array
    right: Array
    start: Array  # wanted values of the unknowns
    rows: list[tuple[str, int]]  # ("closure", row of A), ("passive", column of v) or ("object", column of v)


def demand(
    A: Array, M: Array, bias: Array, gamma: Array, a: Array, fixed: Array, tau: Array, passive: Array, f: Array,
    of_object: Array,
) -> Demand:  # fmt: skip
    """The equations for unknown x = (a of the columns not `fixed`, f_e).

    M a + bias + Aᵀf = tau on all columns (A's sign: f acts on the object); A a = gamma; `passive` and the object's
    columns must get by with tau as given.
    """
    free = np.flatnonzero(~fixed)
    held = np.unique(np.concatenate([passive, of_object])).astype(int)
    k = len(free)
    E = np.zeros((A.shape[0] + len(held), k + A.shape[0]))
    E[: A.shape[0], :k] = A[:, free]
    E[A.shape[0] :, :k] = M[held[:, None], free]
    E[A.shape[0] :, k:] = A[:, held].T
    known = np.where(fixed, a, 0.0)
    right = np.concatenate([gamma - A @ known, tau[held] - bias[held] - M[held] @ known])
    names = [("closure", r) for r in range(A.shape[0])]
    names += [("object" if c in of_object else "passive", int(c)) for c in held]
    return Demand(E, right, np.concatenate([a[free], f]), names)


def nearest(wanted: Demand) -> tuple[Array, Array]:
    """(x nearest to the start that solves E x = right as well as can be, the residual of every row).

    Closure comes first, then the object's balance, then passive columns, so that a residual shows up in the row that
    is to blame. Orthogonal projections on nested spaces compose, so x is the nearest of all solutions.
    """
    x, free = wanted.start, np.eye(len(wanted.start))
    for level in ("closure", "object", "passive"):
        rows = [r for r, (kind, _) in enumerate(wanted.rows) if kind == level]
        reach = wanted.E[rows] @ free
        back = free @ np.linalg.pinv(reach, rcond=1e-11)
        x = x + back @ (wanted.right[rows] - wanted.E[rows] @ x)
        free = free - back @ reach
    return x, wanted.E @ x - wanted.right


__all__ = ["Demand", "demand", "equal_shares", "internal_basis", "internal_names", "internal_part", "nearest"]
