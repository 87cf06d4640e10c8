"""One joint of the articulated recursion: what eliminating it leaves, (47)-(50). Theory and symbols: `articulated`."""

from __future__ import annotations

import numpy as np

from polybody.algebra.domains import Array, Domain
from polybody.algebra.rotations import skew
from polybody.errors import PolybodyError
from polybody.formulations.denoc.links import Crossing, Link
from polybody.late import dataclass


@dataclass(frozen=True, eq=False)
class Factors:
    """What elimination leaves at joint i, or at a group: ψ̂_i (6×r), m̂_i⁻¹ applied as ψ_i, and m̂_i itself."""

    psi_hat: Array
    psi: Array
    m_hat: Array
    inverse: Array  # m̂_i⁻¹


def body_matrix(one: Link, *, domain: Domain) -> Array:
    """M_i about O_i, 6×6."""
    h = skew(one.moment, domain=domain)
    M = domain.zeros(6, 6)
    M[:3, :3], M[:3, 3:], M[3:, :3], M[3:, 3:] = one.inertia, h, -h, domain.eye(3) * one.mass
    return M


def symmetric_inverse(matrix: Array, *, domain: Domain) -> Array:
    """The inverse of a small symmetric positive definite matrix."""
    n = matrix.shape[0]
    if n == 1:
        return np.array([[domain.const(1) / matrix[0, 0]]], dtype=matrix.dtype)
    return domain.solve(matrix, domain.eye(n))


def freed_inverse(matrix: Array, free: Array | None, *, domain: Domain) -> Array:
    """The inverse of m̂ on the columns that are free (1), zero on those that are held (0): F (F m̂ F + 1 − F)⁻¹ F."""
    if free is None:
        return symmetric_inverse(matrix, domain=domain)
    n = matrix.shape[0]
    if n == 1:
        return np.array([[free[0] / matrix[0, 0]]], dtype=matrix.dtype)
    held = domain.eye(n) * (domain.zeros(n) + domain.const(1) - free)
    inverse = symmetric_inverse(matrix * np.outer(free, free) + held, domain=domain)
    return inverse * np.outer(free, free)


def may_be_held(free: Array | None, domain: Domain) -> bool:
    """Whether some of the columns are not free for certain."""
    return free is not None and not all(domain.is_zero(x - domain.const(1)) for x in free)


def eliminate(
    one: Link, step: Crossing, M_hat: Array, free: Array | None = None, *, domain: Domain
) -> tuple[Factors, Array]:
    """The factors of joint i, and M̂_ii, what the parent feels of the articulated body.

    `free` has 1 for each of its columns, or 0 for one that is held: frozen, it does not accelerate.
    """
    H = step.H
    psi_hat = M_hat @ H
    m_hat = H.T @ psi_hat + one.armature
    if domain.is_zero(m_hat[0, 0]):
        raise PolybodyError(singular_message(one.joint.name))
    held = may_be_held(free, domain)
    inverse = freed_inverse(m_hat, free if held else None, domain=domain)
    psi = psi_hat @ inverse
    rest = np.empty((6, 6), dtype=M_hat.dtype)
    dead = set() if held else _annihilated(one, H, domain)
    zero = domain.const(0)
    for i in range(6):
        for j in range(i, 6):
            value = zero if i in dead or j in dead else M_hat[i, j] - psi[i] @ psi_hat[j]
            rest[i, j] = rest[j, i] = value
    return Factors(psi_hat, psi, m_hat, inverse), rest


def _annihilated(one: Link, H: Array, domain: Domain) -> set[int]:
    """Rows of M̂_ii that vanish: coordinate directions along which the joint is free and carries no armature."""
    if not all(domain.is_zero(x) for x in one.armature.ravel()):
        return set()
    dead = set()
    for k in range(H.shape[1]):
        rows = [i for i in range(6) if not domain.is_zero(H[i, k])]
        if len(rows) == 1:
            dead.add(rows[0])
    return dead


def singular_message(joint: str) -> str:
    return (
        f"the mass matrix is singular at joint {joint!r}: nothing beyond it has inertia along its motion; "
        "give its body mass and inertia, or the joint an armature"
    )


def articulated_to_parent(step: Crossing, M: Array, *, domain: Domain) -> Array:
    """B_ijᵀ M B_ij: turn the blocks, then move them from O_i to O_j."""
    A, D = step.turned(M[:3, :3]), step.turned(M[3:, 3:])
    C = step.turned_general(M[:3, 3:])
    r = skew(step.r, domain=domain)
    rC = r @ C.T
    C_new = C + r @ D
    shift = C_new @ r.T
    result = np.empty((6, 6), dtype=M.dtype)
    for i in range(3):
        for j in range(i, 3):
            result[i, j] = result[j, i] = A[i, j] + rC[i, j] + shift[i, j]
    result[:3, 3:], result[3:, :3], result[3:, 3:] = C_new, C_new.T, D
    return result


def less_product(M: Array, psi: Array, psi_hat: Array) -> Array:
    """M − ψ ψ̂ᵀ of a symmetric result: computed above the diagonal, mirrored below."""
    rest = np.empty((6, 6), dtype=M.dtype)
    for i in range(6):
        for j in range(i, 6):
            rest[i, j] = rest[j, i] = M[i, j] - psi[i] @ psi_hat[j]
    return rest


__all__ = [
    "Factors",
    "articulated_to_parent",
    "body_matrix",
    "eliminate",
    "freed_inverse",
    "less_product",
    "may_be_held",
    "singular_message",
    "symmetric_inverse",
]
