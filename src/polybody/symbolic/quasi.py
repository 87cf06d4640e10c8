"""Poincaré's equations in quasi-velocities of one's own choice, which may keep velocity constraints identically.

With p = B(q) w, the fields b_k = Σ_i B_ik v_i and q̇ = V B w. For T̂(q, w) = ½ wᵀBᵀ𝓜B w, π = 𝓜 B w and a potential 𝒱,

    dπ̂_k/dt − Σ_j w_j πᵀ[b_j, b_k] − b_k(T̂) + b_k(𝒱) = (BᵀQ)_k,       π̂ = ∂T̂/∂w = Bᵀπ
    [b_j, b_k]^i = b_j(B_ik) − b_k(B_ij) + Σ_lm c^i_lm B_lj B_mk

b(f) is a derivative along b, c are the structure constants of p. Where B is square this is (40) for other fields. Where
J B = 0, constraints J p = 0 hold for every w, their multipliers vanish, and brackets lead out of the span of B: π has
all its components in them, which is all that distinguishes such equations from those of a holonomic system.
Rotors' inertia A (armature) adds BᵀA (B ẇ + Ḃ w) beside the brackets, as in `formulations.poincare`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from polybody.errors import InputError
from polybody.names import counted
from polybody.symbolic.printing import to_matrix

if TYPE_CHECKING:
    from polybody.symbolic.model import SymbolicModel

#: J B of this size, at states drawn at random, is rounding
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class QuasiEquations:
    """M(q) ẇ + bias(q, w) = Bᵀ Q,   p = B w,   ṗ = B ẇ + Ḃ w,   q̇ = V B w."""

    q: Any
    w: Any
    B: Any
    B_rate: Any  # Ḃ along w
    kinematic_matrix: Any  # V B
    mass_matrix: Any
    bias: Any


def quasi_equations(model: SymbolicModel, B: Any, names: Sequence[str] | None, J: Any = None) -> QuasiEquations:
    """The equations in w; J are rows that B must allow."""
    n = len(model.p)
    B = sympy.Matrix(B)
    _check(model, B, J)
    names = [f"w{k + 1}" for k in range(B.cols)] if names is None else list(names)
    taken = {s.name for s in (*model.q, *model.p, *model.parameters)}
    if len(names) != B.cols or len(set(names)) != len(names) or taken & set(names):
        raise InputError(f"quasi-velocities {names}: expected {B.cols} names that nothing else of the model has")
    w = sympy.Matrix([sympy.Symbol(name) for name in names])
    closed, fields = model._closed, model.kinematic_matrix() * B
    A = to_matrix(closed.domain.array(closed.mechanism.armature))
    rigid = to_matrix(closed.rigid_mass_matrix)
    c = closed.structure_constants
    q = sympy.Matrix(model.q)
    by_q, by_v = [B.diff(x) for x in q], [to_matrix(x) for x in closed.mass_slopes]  # ∂B/∂q_l, v_i(𝓜)
    slopes = [_combined(by_q, fields[:, j]) for j in range(B.cols)]  # b_j(B)
    rate = _combined(slopes, w)
    momentum = rigid * B * w
    inertia_slopes = []  # b_j(Bᵀ𝓜B)
    for j in range(B.cols):
        half = slopes[j].T * rigid * B + B.T * _combined(by_v, B[:, j]) * B / 2
        inertia_slopes.append(half + half.T)
    bias = _combined(inertia_slopes, w) * w
    rest = model.potential_forces() - model.passive_forces().subs(
        dict(zip(model.p, B * w, strict=True)), simultaneous=True
    )
    twist = [_twisted(c, B[:, j], n) for j in range(B.cols)]  # (Σ_l c_lm B_lj)
    for k in range(B.cols):
        bias[k] -= (w.T * inertia_slopes[k] * w)[0] / 2
        for j in range(B.cols):
            bracket = slopes[j][:, k] - slopes[k][:, j] + twist[j] * B[:, k]
            bias[k] -= w[j] * (momentum.T * bracket)[0]
    return QuasiEquations(
        q, w, B, rate, fields, B.T * (rigid + A) * B, bias + B.T * (A * rate * w + rest)
    )  # fmt: skip


def _twisted(c: Any, b: Any, n: int) -> Any:
    """Σ_l c^i_lm b_l as a matrix over (i, m)."""
    result = sympy.zeros(n, n)
    for i, l, m in np.ndindex(c.shape):
        if c[i, l, m] != 0:
            result[i, m] += to_matrix([c[i, l, m]])[0] * b[l]
    return result


def _combined(matrices: Sequence[Any], factors: Any) -> Any:
    """Σ factor · matrix."""
    total = sympy.zeros(*matrices[0].shape)
    for matrix, factor in zip(matrices, factors, strict=True):
        if factor != 0:
            total += matrix * factor
    return total


def _check(model: SymbolicModel, B: Any, J: Any) -> None:
    """B is of q alone, has independent columns, and lets all rows of J hold: at states drawn at random."""
    n, known = len(model.p), {*model.q, *model.parameters}
    strange = B.free_symbols - known
    if B.rows != n or strange:
        odd = f", and has {sorted(map(str, strange))[0]!r} in it" if strange else ""
        raise InputError(
            f"B is {B.rows}×{B.cols}{odd}; expected {counted(n, 'row')} in the model's coordinates and parameters"
        )
    symbols, rng = sorted(known, key=str), np.random.default_rng(0)
    J = sympy.zeros(0, n) if J is None else J
    values = {s: float(x) if x == x else 0.7 for s, x in model.parameters.items()}
    function = sympy.lambdify([symbols], [B, J], cse=True)
    wanted: int | None = None
    for _ in range(4):
        at, rows = function([values.get(s, rng.uniform(0.2, 1.0)) for s in symbols])
        rows = np.asarray(rows, dtype=float).reshape(-1, n)
        wanted = n - (int(np.linalg.matrix_rank(rows, 1e-9)) if len(rows) else 0)
        if np.linalg.matrix_rank(at) != B.cols or B.cols != wanted:
            raise InputError(f"B has {B.cols} columns of rank {np.linalg.matrix_rank(at)}; {wanted} motions are free")
        broken = np.abs(rows @ at).max(axis=1, initial=0.0)
        if np.any(broken > ROUNDING):
            raise InputError(f"B breaks row {int(np.argmax(broken)) + 1} of the constraints' J by {broken.max():.3g}")


__all__ = ["QuasiEquations", "quasi_equations"]
