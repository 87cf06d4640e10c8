"""Articulated bodies: I = U D Uᵀ by reverse Gaussian elimination (Appendix B), and forward dynamics (5.2) in O(n).

The articulated body i is everything beyond joint i, free to move in its joints. About O_i, with p_i = H_i (6×r):

    ψ̂_i = M̂_i H_i,    m̂_i = H_iᵀ ψ̂_i (+ armature),    ψ_i = ψ̂_i m̂_i⁻¹                            (47), (48)
    M̂_ii = M̂_i − ψ_i ψ̂_iᵀ,     M̂_j += B_ijᵀ M̂_ii B_ij                                     (50), corrected

D is the block diagonal of the m̂_i, U has unit diagonal blocks and (U)_ji = H_jᵀ B_ijᵀ ψ_i for ancestors j of i (46).
Then with φ = τ − C θ̇ − g,

    τ̂_i = φ_i − H_iᵀ η_i,     η_j += B_ijᵀ(ψ_i τ̂_i + η_i)                         (34), (35), corrected
    τ̃_i = m̂_i⁻¹ τ̂_i,         θ̈_i = τ̃_i − ψ_iᵀ μ_i,     μ_i = B_ij(H_j θ̈_j + μ_j)     (36), (37)

Joints that share coordinates or rotors are eliminated together, as one joint; ψ of a group is about the
origin of the body A that it stands on (see `coupled`), and its (U)_jS = H_jᵀ B_Ajᵀ ψ_S.

A 6×6 symmetric matrix is kept as its blocks [A C; Cᵀ D]. Where a joint turns or slides along a coordinate axis and
carries no armature, M̂_ii H_i = 0 makes a whole row vanish; it is set to zero rather than computed.
"""

from __future__ import annotations

import math

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.algebra.rotations import skew
from polybody.formulations.denoc.coupled import eliminate_group, gathered
from polybody.formulations.denoc.inverse import tree_forces
from polybody.formulations.denoc.links import Crossing, Link, crossings, links
from polybody.formulations.denoc.pivots import (
    Factors,
    articulated_to_parent,
    body_matrix,
    eliminate,
    singular_message,
)
from polybody.mechanism.forces import joint_passive_forces
from polybody.mechanism.general_position import general_configuration
from polybody.mechanism.groups import Group
from polybody.mechanism.mechanism import GROUND, Mechanism


def singular_joint(mechanism: Mechanism) -> str | None:
    """The first joint, from the tips, whose pivot m̂_i vanishes at a configuration in general position."""
    q = general_configuration(mechanism)
    if _all_bodies_resist(mechanism, q):
        return None
    chain = links(mechanism, domain=FLOAT)
    across = crossings(mechanism, chain, q, domain=FLOAT)
    M_hat = [body_matrix(one, domain=FLOAT) for one in chain]
    for group in reversed(mechanism.groups):
        whole = gathered(mechanism, group, across, M_hat, domain=FLOAT)
        size = sum(np.abs(M_hat[i]).max() for i in group.joints) + np.abs(mechanism.armature[list(group.slots)]).max()
        values, motions = np.linalg.eigh(whole.m_hat)
        if size == 0 or values[0] <= 1e-14 * size:
            return mechanism.owner(group.slots[int(np.abs(motions[:, 0]).argmax())]).name
        _, rest = _eliminated(mechanism, group, chain, across, M_hat, domain=FLOAT)
        if group.base != GROUND:
            M_hat[group.base] = M_hat[group.base] + rest
    return None


def _all_bodies_resist(mechanism: Mechanism, q: Array) -> bool:
    """Whether every body by itself, of definite inertia M_i, keeps the pivot of its joint from vanishing.

    M̂_i − M_i is what bodies beyond add, semidefinite as theirs are: m̂_i ≥ λ_min(M_i) σ_min(H_i)². It is compared with a
    bound of |M̂_i|, all bodies stretched out in one line.
    """
    if not mechanism.joints or not all(group.alone for group in mechanism.groups):
        return False
    chain = links(mechanism, domain=FLOAT)
    least = np.linalg.eigvalsh(np.array([body_matrix(one, domain=FLOAT) for one in chain]))[:, 0]
    maps = [one.joint.model.velocity_map(q[one.joint.q], domain=FLOAT) for one in chain]
    least = least * [float((H * H).sum()) if H.shape[1] == 1 else np.linalg.svd(H)[1][-1] ** 2 for H in maps]
    length = sum(1.0 + math.hypot(*one.offset) for one in chain)
    mass = float(sum(one.mass for one in chain))
    most = sum(float(np.abs(one.inertia).sum() + np.abs(one.moment).sum() * length) for one in chain)
    most += mass * (1 + length) ** 2 + float(np.abs(mechanism.armature).max(initial=0.0))
    return bool(least.min() > 1e-12 * most)


def _eliminated(
    mechanism: Mechanism, group: Group, chain: list[Link], across: list[Crossing], M_hat: list[Array],
    free: Array | None = None, *, domain: Domain,
) -> tuple[Factors, Array]:  # fmt: skip
    """The factors of a group, and what the body it stands on feels of the articulated bodies beyond."""
    own = None if free is None else free[list(group.slots)]
    if not group.alone:
        return eliminate_group(mechanism, group, across, M_hat, own, domain=domain)
    i = group.first
    factors, rest = eliminate(chain[i], across[i], M_hat[i], own, domain=domain)
    return factors, rest if group.base == GROUND else articulated_to_parent(across[i], rest, domain=domain)


def factorize(
    mechanism: Mechanism, chain: list[Link], across: list[Crossing], *, domain: Domain, kept: list[Array] | None = None,
    free: Array | None = None,
) -> dict[Group, Factors]:  # fmt: skip
    """The UDUᵀ factors of the generalised inertia matrix, from the tips inwards, in O(n) operations.

    The M̂_i of all bodies are put into `kept` where it is given. `free` has 1 for each velocity, 0 for one that is
    held: its m̂⁻¹ is set to zero, so that what is beyond it is felt as a rigid part of what is before.
    """
    M_hat = [body_matrix(one, domain=domain) for one in chain]
    factors: dict[Group, Factors] = {}
    for group in reversed(mechanism.groups):
        factors[group], rest = _eliminated(mechanism, group, chain, across, M_hat, free, domain=domain)
        if group.base != GROUND:
            M_hat[group.base] = M_hat[group.base] + rest
    if kept is not None:
        kept.extend(M_hat)
    return factors


Wrench = tuple[Array, Array]


def _added(total: list[Wrench | None], body: int, n: Array, f: Array) -> None:
    if body != GROUND:
        before = total[body]
        total[body] = (n, f) if before is None else (before[0] + n, before[1] + f)


def solve_factorized(
    mechanism: Mechanism, across: list[Crossing], factors: dict[Group, Factors], phi: Array, domain: Domain,
    holding: Array | None = None,
) -> Array:  # fmt: skip
    """θ̈ = (U D Uᵀ)⁻¹ φ by (34)-(37).

    `holding` takes what holds velocities that are held, λ_i = m̂_i θ̈_i + ψ̂_iᵀ μ_i − τ̂_i.
    """
    tau_hat = domain.zeros(mechanism.nv)
    eta: list[Wrench | None] = [None] * len(across)
    for group in reversed(mechanism.groups):
        alone = group.alone
        for i in reversed(group.joints):
            joint, step, below = mechanism.joints[i], across[i], eta[i]
            force = phi[joint.v] if alone else tau_hat[joint.v]
            if below is not None:
                force = force - (step.H[:3].T @ below[0] + step.H[3:].T @ below[1])
            tau_hat[joint.v] = force
            if alone and joint.parent != GROUND:
                pushed = factors[group].psi @ force
                n, f = pushed[:3], pushed[3:]
                below = (n, f) if below is None else (n + below[0], f + below[1])
            if below is not None and joint.parent != GROUND:
                _added(eta, joint.parent, *step.wrench_to_parent(*below))
        if not alone:
            slots = list(group.slots)
            tau_hat[slots] = tau_hat[slots] + phi[slots]
            pushed = factors[group].psi @ tau_hat[slots]
            _added(eta, group.base, pushed[:3], pushed[3:])
    return _outward_accelerations(mechanism, across, factors, tau_hat, domain, holding)


def _outward_accelerations(
    mechanism: Mechanism, across: list[Crossing], factors: dict[Group, Factors], tau_hat: Array, domain: Domain,
    holding: Array | None,
) -> Array:  # fmt: skip
    acceleration = domain.zeros(mechanism.nv)
    moved: list[Wrench | None] = [None] * len(across)  # μ of each body with its own jump: twists [ω; v]

    def carried(i: int) -> Wrench | None:
        """μ_i of (37)."""
        step, before = across[i], None if mechanism.joints[i].parent == GROUND else moved[mechanism.joints[i].parent]
        if before is None:
            return None
        w, v = before
        return step.to_child(w), step.to_child(v + skew(w, domain=domain) @ step.r)

    for group in mechanism.groups:
        own, slots, alone = factors[group], list(group.slots), group.alone
        rate = own.inverse @ tau_hat[slots]
        mu = carried(group.first) if alone else None if group.base == GROUND else moved[group.base]
        if mu is not None:
            rate = rate - (own.psi[:3].T @ mu[0] + own.psi[3:].T @ mu[1])
        acceleration[slots] = rate
        if holding is not None:
            felt = own.m_hat @ rate - tau_hat[slots]
            holding[slots] = felt if mu is None else felt + own.psi_hat[:3].T @ mu[0] + own.psi_hat[3:].T @ mu[1]
        for i in group.joints:
            mu = mu if alone else carried(i)
            jump = across[i].H @ acceleration[mechanism.joints[i].v]
            moved[i] = (jump[:3], jump[3:]) if mu is None else (mu[0] + jump[:3], mu[1] + jump[3:])
    return acceleration


def solve_mass_matrix(
    mechanism: Mechanism, q: Array, force: Array, *, domain: Domain = FLOAT, free: Array | None = None
) -> Array:
    """M(q)⁻¹ force, in O(n); dense only inside groups of coupled joints. Zero where velocities are held."""
    chain = links(mechanism, domain=domain)
    across = crossings(mechanism, chain, q, domain=domain)
    factors = factorize(mechanism, chain, across, domain=domain, free=free)
    return solve_factorized(mechanism, across, factors, force, domain)


def forward_dynamics(
    mechanism: Mechanism, q: Array, v: Array, tau: Array, wrenches: Array | None = None, *, domain: Domain = FLOAT,
    free: Array | None = None, holding: Array | None = None,
) -> Array:  # fmt: skip
    """a = M⁻¹ (tau + passive + Σ Jᵀ w − C v − g), section 5.2.

    Velocities that are held (0 in `free`, 1 for all others) do not accelerate, whatever that takes: the forces are put
    into `holding`, (nv,), where that is given; of all others they are zero up to rounding.
    """
    chain = links(mechanism, domain=domain)
    across = crossings(mechanism, chain, q, domain=domain)
    bias = tree_forces(mechanism, chain, across, q, v, None, wrenches, domain)
    phi = tau + joint_passive_forces(mechanism, q, v, domain=domain) - bias
    factors = factorize(mechanism, chain, across, domain=domain, free=free)
    return solve_factorized(mechanism, across, factors, phi, domain, holding)


def udu(mechanism: Mechanism, q: Array, *, domain: Domain = FLOAT) -> tuple[Array, Array]:
    """The dense U (unit block upper triangular) and block diagonal D with U D Uᵀ = M (55); a group is one block."""
    chain = links(mechanism, domain=domain)
    across = crossings(mechanism, chain, q, domain=domain)
    factors = factorize(mechanism, chain, across, domain=domain)
    U, D = domain.eye(mechanism.nv), domain.zeros(mechanism.nv, mechanism.nv)
    for group in mechanism.groups:
        D[np.ix_(group.slots, group.slots)] = factors[group].m_hat
        for slot, column in zip(group.slots, factors[group].psi.T, strict=True):
            n, f, body = column[:3], column[3:], group.base
            if group.alone and body != GROUND:  # ψ of a single joint is about its own origin
                n, f = across[group.first].wrench_to_parent(n, f)
            while body != GROUND:
                joint, step = mechanism.joints[body], across[body]
                U[joint.v, slot] = U[joint.v, slot] + step.H[:3].T @ n + step.H[3:].T @ f  # (46)
                n, f = step.wrench_to_parent(n, f)
                body = joint.parent
    return U, D


__all__ = [
    "Factors",
    "articulated_to_parent",
    "body_matrix",
    "eliminate",
    "factorize",
    "forward_dynamics",
    "singular_joint",
    "singular_message",
    "solve_factorized",
    "solve_mass_matrix",
    "udu",
]
