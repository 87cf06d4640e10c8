"""Poincaré's equations, (40)-(41) and (53), with the errata's signs.

With T = ½ pᵀ𝓜(q)p, the potential 𝒱(q), the momenta π = ∂T/∂p = 𝓜 p and c^i_jk the structure constants of the fields
v_k of the quasi-velocities (see `fields`), v_k(·) a derivative along v_k:

    dπ_k/dt − Σ_ij c^i_jk p_j π_i − v_k(T) + v_k(𝒱) = Q_k                                                    (40)

Written as 𝓜 ṗ + 𝓒(q, p) p + 𝓕(q) = Q_p,

    S = ∂(𝓜p)/∂q V                                      column k is the derivative of 𝓜p along v_k
    𝓒 = S − ½ Sᵀ − (Σ_j p_j c_j)ᵀ 𝓜,   (c_j)_ik = c^i_jk                                                     (53b)
    𝓕_k = v_k(𝒱),   Q_p = τ + what springs, dampers and external wrenches exert                              (53c)

𝓒 is `poincare_matrix`; it is not Saha's C (𝓜̇ − 2𝓒 is not skew), only 𝓒p is the same. Where q̇ = p, c vanishes and
these are Lagrange's equations. Armature enters 𝓜 only: rotors add A ṗ, nothing that depends on p.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.algebra.jets import JetDomain
from polybody.formulations.poincare.chain import (
    JointState,
    joint_states,
    mass_matrix,
    moved_states,
    project_inward,
    quasi_momentum,
    rigid_mass_matrix,
    states_moved_by_each,
)
from polybody.formulations.poincare.fields import structure_constants, transport
from polybody.mechanism.forces import joint_passive_forces, spring_wrenches
from polybody.mechanism.kinematics import body_poses, body_twists
from polybody.mechanism.mechanism import GROUND, Mechanism


def gravity_potential(mechanism: Mechanism, states: list[JointState], *, domain: Domain = FLOAT) -> Any:
    """𝒱 = −Σ m gᵀc: the paper's GravPotChn. Gravity is carried outwards, so that each body adds −m (Rᵀg)ᵀ(…)."""
    g = domain.array(mechanism.gravity)
    fields: list[Array] = []  # gravity in body axes
    heights: list[Any] = []  # gᵀ(O_k − ground)
    total = domain.const(0)
    for joint, state, body in zip(mechanism.joints, states, mechanism.bodies, strict=True):
        near, height = (g, domain.const(0)) if joint.parent == GROUND else (fields[joint.parent], heights[joint.parent])
        fields.append(state.R.T @ near)
        heights.append(height + near @ state.r)
        total = total - (heights[-1] + fields[-1] @ domain.array(body.com)) * domain.const(body.mass)
    return total


def potential_forces(
    mechanism: Mechanism, q: Array, states: list[JointState], *, domain: Domain = FLOAT
) -> Array:
    """𝓕 of (53c) for gravity: v_k(𝒱) for every k."""
    jets, moved = states_moved_by_each(mechanism, q, states, domain=domain)
    return jets.rates(np.array(gravity_potential(mechanism, moved, domain=jets), dtype=object))


def momentum_slopes(
    mechanism: Mechanism, q: Array, p: Array, states: list[JointState], *, domain: Domain = FLOAT
) -> Array:
    """S = ∂(𝓜p)/∂q V."""
    jets, moved = states_moved_by_each(mechanism, q, states, domain=domain)
    return jets.rates(quasi_momentum(mechanism, moved, jets.lift(p), domain=jets))


def assembled_poincare_matrix(S: Array, M: Array, c: Array, p: Array, *, domain: Domain = FLOAT) -> Array:
    """𝓒 of (53b) from S, the rigid 𝓜 and the structure constants."""
    C = S - S.T * domain.const(0.5)
    for i, j, k in np.ndindex(c.shape):
        if not domain.is_zero(c[i, j, k]):
            C[k] = C[k] - M[i] * (c[i, j, k] * p[j])
    return C


def poincare_matrix(mechanism: Mechanism, q: Array, p: Array, *, domain: Domain = FLOAT) -> Array:
    """𝓒(q, p) of (53b), as corrected: the paper's Cmat."""
    states = joint_states(mechanism, q, domain=domain)
    S = momentum_slopes(mechanism, q, p, states, domain=domain)
    M = rigid_mass_matrix(mechanism, states, domain=domain)
    return assembled_poincare_matrix(S, M, structure_constants(mechanism, domain=domain), p, domain=domain)


def bias_forces(mechanism: Mechanism, q: Array, v: Array, *, domain: Domain = FLOAT) -> Array:
    """𝓒p + 𝓕, by (40): the rate of π along the motion, less the transport of π and the slopes of T − 𝒱."""
    states = joint_states(mechanism, q, domain=domain)
    return _bias(mechanism, q, v, states, domain)


def _bias(mechanism: Mechanism, q: Array, p: Array, states: list[JointState], domain: Domain) -> Array:
    jets, half = JetDomain(domain), domain.const(0.5)
    lifted = jets.lift(p)
    momentum = quasi_momentum(mechanism, states, p, domain=domain)
    along = moved_states(mechanism, q, states, p, domain=domain)
    bias = jets.rates(quasi_momentum(mechanism, along, lifted, domain=jets))
    bias = bias - transport(structure_constants(mechanism, domain=domain), p, momentum, domain=domain)
    every, moved = states_moved_by_each(mechanism, q, states, domain=domain)
    slopes = every.rates(quasi_momentum(mechanism, moved, every.lift(p), domain=every))  # v_k(T) = ½ pᵀ v_k(𝓜p)
    heights = every.rates(np.array(gravity_potential(mechanism, moved, domain=every), dtype=object))
    return bias - (slopes.T @ p) * half + heights


def generalized_forces(
    mechanism: Mechanism, q: Array, p: Array, wrenches: Array | None, states: list[JointState], *, domain: Domain
) -> Array:
    """Q_p without the joint forces: springs, dampers, and external wrenches by HᵀΦᵀ."""
    forces = joint_passive_forces(mechanism, q, p, domain=domain)
    if wrenches is None and not mechanism.sprung:
        return forces
    poses = body_poses(mechanism, q, domain=domain)
    total = [domain.zeros(6) if wrenches is None else wrenches[i] for i in range(len(mechanism.bodies))]
    if mechanism.sprung:
        twists = body_twists(mechanism, q, p, domain=domain)
        for i, wrench in enumerate(spring_wrenches(mechanism, poses, twists, domain=domain)):
            total[i] = total[i] if wrench is None else total[i] + wrench
    in_body = [np.concatenate([R.T @ w[:3], R.T @ w[3:]]) for (R, _), w in zip(poses, total, strict=True)]
    return forces + project_inward(mechanism, states, in_body, domain=domain)


def inverse_dynamics(
    mechanism: Mechanism, q: Array, v: Array, a: Array, wrenches: Array | None = None, *, domain: Domain = FLOAT
) -> Array:
    """tau = 𝓜 a + 𝓒 v + 𝓕 − passive − Σ Jᵀ w."""
    states = joint_states(mechanism, q, domain=domain)
    tau = quasi_momentum(mechanism, states, a, domain=domain) + _bias(mechanism, q, v, states, domain)
    if mechanism.armature.any():
        tau = tau + domain.array(mechanism.armature) @ a
    return tau - generalized_forces(mechanism, q, v, wrenches, states, domain=domain)


def forward_dynamics(
    mechanism: Mechanism, q: Array, v: Array, tau: Array, wrenches: Array | None = None, *, domain: Domain = FLOAT
) -> Array:
    """a with 𝓜 a = tau + passive + Σ Jᵀ w − 𝓒 v − 𝓕."""
    states = joint_states(mechanism, q, domain=domain)
    Q = tau + generalized_forces(mechanism, q, v, wrenches, states, domain=domain)
    return domain.solve(mass_matrix(mechanism, q, domain=domain), Q - _bias(mechanism, q, v, states, domain))


__all__ = [
    "assembled_poincare_matrix",
    "bias_forces",
    "forward_dynamics",
    "generalized_forces",
    "gravity_potential",
    "inverse_dynamics",
    "momentum_slopes",
    "poincare_matrix",
    "potential_forces",
]
