"""Joints from map matrices (Kwatny & Blankenship 1995, Propositions 1 to 3, with the errata's corrections).

The velocity across a simple joint, in the outboard (child) frame, is p = H β with H a constant 6×r matrix and β the
joint's quasi-velocities. Each column h = [h_1; h_2] generates a one-parameter motion

    λ(ε) = exp(h ε):   rotation exp(ĥ_1 ε),  translation ∫_0^ε exp(ĥ_1 σ) h_2 dσ                       (12)

and the joint's configuration is the product, column 1 nearest the child,

    X(ε) = λ_r(ε_r) … λ_2(ε_2) λ_1(ε_1)                                                                (15)

With U_j = λ_j … λ_1 the relation of rates is B(ε) ε̇ = H β, b_i = Ad(U_(i−1)⁻¹) h_i, so

    ε̇ = Γ(ε) β,   Γ = B* H,   B* a left inverse of B                                          (16)-(19)

A compound joint is a sequence of simple stages 𝓗_i, the first nearest the child; its configuration is again (15) over
all columns, its kinematic matrix is block diagonal (25), and its joint map depends on the configuration:

    p = H(ε) β,   H_i(ε) = Ad(U_(i−1)⁻¹) 𝓗_i,   U_i the product of the first i stages         (27)-(28)

Erratum: the paper calls every simple joint holonomic. That holds only if span H is closed under the bracket of se(3);
otherwise B ε̇ = H β has no solution. `holonomy_problem` tests it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.algebra.rotations import axis_rotation, skew
from polybody.algebra.spatial import adjoint, bracket_matrix, pose
from polybody.errors import InputError
from polybody.late import dataclass
from polybody.properties import cached_property


def column_motion(h: Array, epsilon: Any, *, domain: Domain = FLOAT) -> tuple[Array, Array]:
    """(R, p) of λ(ε) = exp(h ε), (12): split into turning about the axis and sliding along it."""
    h1, h2 = h[:3], h[3:]
    square = h1 @ h1
    if domain.is_zero(square):
        return domain.eye(3), h2 * epsilon
    norm = domain.sqrt(square)
    u = h1 / norm
    angle = norm * epsilon
    s, c = domain.sin(angle), domain.cos(angle)
    rotation = axis_rotation(u, s, c, domain=domain)
    if all(domain.is_zero(x) for x in h2.tolist()):  # it only turns
        return rotation, domain.zeros(3)
    along = u * (u @ h2)
    across, turned = (h2 - along) / norm, (skew(u, domain=domain) @ h2) / norm
    return rotation, along * epsilon + across * s + turned * (domain.const(1) - c)


def inverse_adjoint(rotation: Array, position: Array, *, domain: Domain = FLOAT) -> Array:
    """Ad(T⁻¹) = [Rᵀ 0; −Rᵀ[p] Rᵀ]."""
    return adjoint(rotation.T, -(rotation.T @ position), domain=domain)


@dataclass(frozen=True, eq=False)
class JointMap:
    """A joint given by its 6×r map matrix `H` and the numbers of columns of its simple `stages`, child outwards."""

    H: Array
    stages: tuple[int, ...]

    @property
    def r(self) -> int:
        """Number of columns: the degrees of freedom of the joint."""
        return self.H.shape[1]

    @property
    def is_simple(self) -> bool:
        """Whether the joint has one stage."""
        return len(self.stages) == 1

    def stage_slices(self) -> list[slice]:
        """The columns of each stage."""
        ends = np.cumsum((0, *self.stages))
        return [slice(int(a), int(b)) for a, b in pairwise(ends)]

    def configuration(self, epsilon: Array, *, domain: Domain = FLOAT) -> tuple[Array, Array]:
        """(R, p) of X(ε), (15) and (26)."""
        return self._partial(domain.array(self.H), epsilon, self.r, domain)

    def _partial(self, H: Array, epsilon: Array, count: int, domain: Domain) -> tuple[Array, Array]:
        """U_count = λ_count … λ_1, (23b)-(23c)."""
        if not count:
            return domain.eye(3), domain.zeros(3)
        rotation, position = column_motion(H[:, 0], epsilon[0], domain=domain)
        for i in range(1, count):
            R, p = column_motion(H[:, i], epsilon[i], domain=domain)
            rotation, position = R @ rotation, R @ position + p
        return rotation, position

    def matrix(self, epsilon: Array, *, domain: Domain = FLOAT) -> Array:
        """X(ε) as a 4×4 matrix, the paper's XXeuc and XXCompnd."""
        return pose(*self.configuration(epsilon, domain=domain), domain=domain)

    def rate_matrix(self, epsilon: Array, stage: slice, *, domain: Domain = FLOAT) -> Array:
        """B(ε) of one simple stage, (18)."""
        H = domain.array(self.H[:, stage])
        B = domain.zeros(6, H.shape[1])
        for i in range(H.shape[1]):
            U = self._partial(H, epsilon[stage], i, domain)
            B[:, i] = inverse_adjoint(*U, domain=domain) @ H[:, i]
        return B

    def kinematic_matrix(self, epsilon: Array, *, domain: Domain = FLOAT) -> Array:
        """Γ(ε) of (16)-(19), block diagonal over the stages (25): the paper's GammaKin and GamCompnd."""
        gamma = domain.zeros(self.r, self.r)
        for stage, closed in zip(self.stage_slices(), self._closed, strict=True):
            gamma[stage, stage] = self._stage_kinematics(epsilon, stage, closed, domain)
        return gamma

    @cached_property
    def _closed(self) -> tuple[bool, ...]:
        """Which stages are known to be closed under the bracket; those of symbolic matrices are not asked."""
        symbolic = self.H.dtype == object
        return tuple(not symbolic and holonomy_problem(self.H[:, s]) is None for s in self.stage_slices())

    def _stage_kinematics(self, epsilon: Array, stage: slice, closed: bool, domain: Domain) -> Array:
        H = domain.array(self.H[:, stage])
        if H.shape[1] == 1:
            return domain.eye(1)
        B = self.rate_matrix(epsilon, stage, domain=domain)
        if not closed:
            return domain.solve(B.T @ B, B.T @ H)  # Moore-Penrose, as the paper prints
        # span B = span H: with S = H⁺ B, B ε̇ = H S ε̇ = H β gives ε̇ = S⁻¹ β, an r×r system only.
        S = domain.solve(H.T @ H, H.T @ B)
        return domain.solve(S, domain.eye(H.shape[1]))

    def joint_map(self, epsilon: Array, *, domain: Domain = FLOAT) -> Array:
        """H(ε) of (27)-(28): constant for a simple joint, the paper's HCompnd for a compound one."""
        H = domain.array(self.H)
        if self.is_simple:
            return H
        result = H.copy()
        for stage in self.stage_slices()[1:]:
            U = self._partial(H, epsilon, stage.start, domain)
            result[:, stage] = inverse_adjoint(*U, domain=domain) @ H[:, stage]
        return result

    def joint_map_rate(self, epsilon: Array, beta: Array, *, domain: Domain = FLOAT) -> Array:
        """dH/dt along β: with ξ the velocity of U_(i−1) in the child frame, d/dt Ad(U⁻¹) = −ad(ξ) Ad(U⁻¹)."""
        result = domain.zeros(6, self.r)
        if self.is_simple:
            return result
        H = self.joint_map(epsilon, domain=domain)
        for stage in self.stage_slices()[1:]:
            xi = H[:, : stage.start] @ beta[: stage.start]
            result[:, stage] = -(bracket_matrix(xi, domain=domain) @ H[:, stage])
        return result


def holonomy_problem(H: Array) -> str | None:
    """Why the columns of H cannot be one simple joint, or None if their span is closed under the bracket."""
    H = np.asarray(H, dtype=float)
    scale = np.linalg.norm(H, axis=0)
    unit = H / np.where(scale == 0, 1, scale)
    rank = np.linalg.matrix_rank(unit, tol=1e-9)
    for i in range(H.shape[1]):
        for j in range(i):
            extra = bracket_matrix(unit[:, i]) @ unit[:, j]
            if np.linalg.matrix_rank(np.column_stack([unit, extra]), tol=1e-9) > rank:
                return (
                    f"its map matrix is not closed under the bracket: columns {j} and {i} together generate "
                    f"{np.array2string(extra, precision=4, suppress_small=True)}, which is outside their span, "
                    "so as one simple stage the joint is not holonomic"
                )
    return None


def joint_kinematics(H: Any, stages: tuple[int, ...] | None = None, *, check: bool = True) -> JointMap:
    """Joint with map matrix H (6×r, columns from the child outwards).

    `stages` are the numbers of columns of the simple stages of a compound joint; None means one simple joint. With
    `check` a stage that is not holonomic raises an error; without, the paper's formulas are evaluated regardless.
    """
    H = np.atleast_2d(np.asarray(H))
    H = H.astype(float) if H.dtype != object else H
    if H.shape == (1, 6):
        H = H.T
    if H.ndim != 2 or H.shape[0] != 6 or not 1 <= H.shape[1] <= 6:
        raise InputError(f"a joint map matrix must be 6×r with r from 1 to 6, got shape {H.shape}")
    stages = (H.shape[1],) if stages is None else tuple(int(n) for n in stages)
    if any(n < 1 for n in stages) or sum(stages) != H.shape[1]:
        raise InputError(f"stages {stages} must be positive and sum to the map's {H.shape[1]} columns")
    numbers = _at_general_values(H)
    _check_columns(numbers)
    result = JointMap(H, stages)
    problems = [holonomy_problem(numbers[:, s]) for s in result.stage_slices()] if check else []
    for problem in filter(None, problems):
        raise InputError(f"{problem}; make it a compound joint, stages={(1,) * H.shape[1]}")
    return result


def _at_general_values(H: Array) -> Array:
    """H with its symbols replaced by numbers in general position: what holds there holds for almost all values."""
    if H.dtype != object:
        return H
    symbols = sorted({s for entry in H.flat for s in getattr(entry, "free_symbols", ())}, key=str)
    values = {symbol: 0.6180339887 + 0.7548776662 * k for k, symbol in enumerate(symbols)}
    return np.array([[float(x.subs(values)) if hasattr(x, "subs") else float(x) for x in row] for row in H])


def _check_columns(H: Array) -> None:
    if not np.isfinite(H).all():
        raise InputError("a joint map matrix must be finite")
    if np.linalg.matrix_rank(H) < H.shape[1]:
        raise InputError(
            f"the columns of the joint map matrix depend on each other (rank {np.linalg.matrix_rank(H)} "
            f"of {H.shape[1]}); every column must add a direction of motion"
        )


__all__ = ["JointMap", "column_motion", "holonomy_problem", "inverse_adjoint", "joint_kinematics"]
