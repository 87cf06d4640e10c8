"""Articulated bodies: I = U D Uᵀ by reverse Gaussian elimination (Appendix B), and forward dynamics (5.2) in O(n).

The articulated body i is everything beyond joint i, free to move in its joints. About O_i, with p_i = H_i (6×r):

    ψ̂_i = M̂_i H_i,    m̂_i = H_iᵀ ψ̂_i (+ armature),    ψ_i = ψ̂_i m̂_i⁻¹                            (47), (48)
    M̂_ii = M̂_i − ψ_i ψ̂_iᵀ,     M̂_j += B_ijᵀ M̂_ii B_ij                                     (50), corrected

D is the block diagonal of the m̂_i, U has unit diagonal blocks and (U)_ji = H_jᵀ B_ijᵀ ψ_i for ancestors j of i (46).
Then with φ = τ − C θ̇ − g,

    τ̂_i = φ_i − H_iᵀ η_i,     η_j += B_ijᵀ(ψ_i τ̂_i + η_i)                         (34), (35), corrected
    τ̃_i = m̂_i⁻¹ τ̂_i,         θ̈_i = τ̃_i − ψ_iᵀ μ_i,     μ_i = B_ij(H_j θ̈_j + μ_j)     (36), (37)

A 6×6 symmetric matrix is kept as its blocks [A C; Cᵀ D]. Where a joint turns or slides along a coordinate axis and
carries no armature, M̂_ii H_i = 0 makes a whole row vanish; it is set to zero rather than computed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.algebra.rotations import skew
from polybody.errors import PolybodyError
from polybody.formulations.denoc.composite import mass_matrix
from polybody.formulations.denoc.inverse import tree_forces
from polybody.formulations.denoc.links import Crossing, Link, crossings, links
from polybody.mechanism.forces import joint_passive_forces
from polybody.mechanism.mechanism import GROUND, Mechanism


@dataclass(frozen=True, eq=False)
class Factors:
    """What elimination leaves at joint i: ψ̂_i (6×r), m̂_i⁻¹ applied as ψ_i, and m̂_i itself."""

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


def eliminate(one: Link, step: Crossing, M_hat: Array, *, domain: Domain) -> tuple[Factors, Array]:
    """The factors of joint i, and M̂_ii, what the parent feels of the articulated body."""
    H = step.H
    psi_hat = M_hat @ H
    m_hat = H.T @ psi_hat + one.armature
    if domain.is_zero(m_hat[0, 0]):
        raise PolybodyError(singular_message(one.joint.name))
    inverse = symmetric_inverse(m_hat, domain=domain)
    psi = psi_hat @ inverse
    rest = np.empty((6, 6), dtype=M_hat.dtype)
    dead = _annihilated(one, H, domain)
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


def singular_joint(mechanism: Mechanism) -> str | None:
    """The first joint, from the tips, whose pivot m̂_i vanishes at a configuration in general position."""
    rng = np.random.default_rng(0)
    q = np.concatenate([np.zeros(0), *(joint.model.random(rng) for joint in mechanism.joints)])
    chain = links(mechanism, domain=FLOAT)
    across = crossings(mechanism, chain, q, domain=FLOAT)
    M_hat = [body_matrix(one, domain=FLOAT) for one in chain]
    for i in reversed(range(len(chain))):
        m_hat = across[i].H.T @ M_hat[i] @ across[i].H + chain[i].armature
        size = np.abs(M_hat[i]).max() + np.abs(chain[i].armature).max()
        if size == 0 or np.linalg.eigvalsh(m_hat)[0] <= 1e-14 * size:
            return chain[i].joint.name
        _, rest = eliminate(chain[i], across[i], M_hat[i], domain=FLOAT)
        j = chain[i].parent
        if j != GROUND:
            M_hat[j] = M_hat[j] + articulated_to_parent(across[i], rest, domain=FLOAT)
    return None


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


def factorize(chain: list[Link], across: list[Crossing], *, domain: Domain) -> list[Factors]:
    """The UDUᵀ factors of the generalised inertia matrix, from the tips inwards, in O(n) operations."""
    M_hat = [body_matrix(one, domain=domain) for one in chain]
    factors: list[Factors | None] = [None] * len(chain)
    for i in reversed(range(len(chain))):
        factors[i], rest = eliminate(chain[i], across[i], M_hat[i], domain=domain)
        j = chain[i].parent
        if j != GROUND:
            M_hat[j] = M_hat[j] + articulated_to_parent(across[i], rest, domain=domain)
    return [f for f in factors if f is not None]


def solve_factorized(
    mechanism: Mechanism, chain: list[Link], across: list[Crossing], factors: list[Factors], phi: Array, domain: Domain
) -> Array:
    """θ̈ = (U D Uᵀ)⁻¹ φ by (34)-(37)."""
    tau_hat = domain.zeros(mechanism.nv)
    eta: list[tuple[Array, Array] | None] = [None] * len(chain)
    for joint in reversed(mechanism.joints):
        i, step = joint.index, across[joint.index]
        below = eta[i]
        force = phi[joint.v]
        if below is not None:
            force = force - (step.H[:3].T @ below[0] + step.H[3:].T @ below[1])
        tau_hat[joint.v] = force
        if joint.parent != GROUND:
            pushed = factors[i].psi @ force
            n, f = (pushed[:3], pushed[3:]) if below is None else (pushed[:3] + below[0], pushed[3:] + below[1])
            n, f = step.wrench_to_parent(n, f)
            above = eta[joint.parent]
            eta[joint.parent] = (n, f) if above is None else (above[0] + n, above[1] + f)
    return _outward_accelerations(mechanism, chain, across, factors, tau_hat, domain)


def _outward_accelerations(
    mechanism: Mechanism, chain: list[Link], across: list[Crossing], factors: list[Factors], tau_hat: Array,
    domain: Domain,
) -> Array:
    acceleration = domain.zeros(mechanism.nv)
    moved: list[tuple[Array, Array]] = []
    for joint in mechanism.joints:
        i, step = joint.index, across[joint.index]
        own = factors[i].inverse @ tau_hat[joint.v]
        if joint.parent == GROUND:
            mu = None
        else:
            w, v = moved[joint.parent]
            mu = (step.to_child(w), step.to_child(v + skew(w, domain=domain) @ step.r))
            own = own - (factors[i].psi[:3].T @ mu[0] + factors[i].psi[3:].T @ mu[1])
        acceleration[joint.v] = own
        jump = step.H @ own
        moved.append((jump[:3], jump[3:]) if mu is None else (mu[0] + jump[:3], mu[1] + jump[3:]))
    return acceleration


def inverse_mass_matrix(mechanism: Mechanism, q: Array, *, domain: Domain = FLOAT) -> Array:
    """M(q)⁻¹, column by column from one factorisation."""
    if not mechanism.armature_is_local:
        return domain.solve(mass_matrix(mechanism, q, domain=domain), domain.eye(mechanism.nv))
    chain = links(mechanism, domain=domain)
    across = crossings(mechanism, chain, q, domain=domain)
    factors = factorize(chain, across, domain=domain)
    unit = domain.eye(mechanism.nv)
    columns = [solve_factorized(mechanism, chain, across, factors, e, domain) for e in unit]
    return np.column_stack(columns)


def solve_mass_matrix(mechanism: Mechanism, q: Array, force: Array, *, domain: Domain = FLOAT) -> Array:
    """M(q)⁻¹ force, in O(n); dense only where rotors couple joints."""
    if not mechanism.armature_is_local:
        return domain.solve(mass_matrix(mechanism, q, domain=domain), force)
    chain = links(mechanism, domain=domain)
    across = crossings(mechanism, chain, q, domain=domain)
    factors = factorize(chain, across, domain=domain)
    return solve_factorized(mechanism, chain, across, factors, force, domain)


def forward_dynamics(
    mechanism: Mechanism, q: Array, v: Array, tau: Array, wrenches: Array | None = None, *, domain: Domain = FLOAT
) -> Array:
    """a = M⁻¹ (tau + passive + Σ Jᵀ w − C v − g), section 5.2."""
    chain = links(mechanism, domain=domain)
    across = crossings(mechanism, chain, q, domain=domain)
    bias = tree_forces(mechanism, chain, across, q, v, None, wrenches, domain)
    phi = tau + joint_passive_forces(mechanism, q, v, domain=domain) - bias
    if not mechanism.armature_is_local:
        return domain.solve(mass_matrix(mechanism, q, domain=domain), phi)
    factors = factorize(chain, across, domain=domain)
    return solve_factorized(mechanism, chain, across, factors, phi, domain)


def udu(mechanism: Mechanism, q: Array, *, domain: Domain = FLOAT) -> tuple[Array, Array]:
    """The dense U (unit block upper triangular) and block diagonal D with U D Uᵀ = M (55)."""
    chain = links(mechanism, domain=domain)
    across = crossings(mechanism, chain, q, domain=domain)
    factors = factorize(chain, across, domain=domain)
    U, D = domain.eye(mechanism.nv), domain.zeros(mechanism.nv, mechanism.nv)
    for joint in mechanism.joints:
        D[joint.v, joint.v] = factors[joint.index].m_hat
        for k in range(joint.nv):
            column = factors[joint.index].psi[:, k]
            n, f, i = column[:3], column[3:], joint.index
            while mechanism.joints[i].parent != GROUND:
                n, f = across[i].wrench_to_parent(n, f)
                i = mechanism.joints[i].parent
                H = across[i].H
                U[mechanism.joints[i].v, joint.v.start + k] = H[:3].T @ n + H[3:].T @ f  # (46)
    return U, D


__all__ = [
    "Factors",
    "articulated_to_parent",
    "body_matrix",
    "eliminate",
    "factorize",
    "forward_dynamics",
    "inverse_mass_matrix",
    "singular_joint",
    "singular_message",
    "solve_factorized",
    "solve_mass_matrix",
    "udu",
]
