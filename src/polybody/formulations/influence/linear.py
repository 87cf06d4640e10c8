"""The linearised load: ∂T/∂φ, ∂T/∂φ̇ and ∂T/∂φ̈ from influence coefficients up to the third order.

In the Newton-Euler form (2-205) with gravity and external wrenches, f = m(c̈ − g), α the angular acceleration,

    T_i = Σ_bodies g^c_i · f + g_i · L̇ − g^u_i · T^u,      L = II ω,      L̇ = II α + ω × L
    L_l T_i = h^c_li · f + m g^c_i · L_l c̈ + h_li · L̇ + g_i · L_l L̇ − h^u_li · T^u                          (2-225)

    L_l c̈ = Σ h^c_ln φ̈_n + d^c_lmn φ̇_m φ̇_n,   L_l α and L_l ω likewise                                    (2-212)
    L_l L̇ = g_l × II α + II (L_l α − g_l × α) + (L_l ω) × L + ω × (g_l × L + II (L_l ω − g_l × ω))

since II is carried by its body: L_l (II x) = g_l × II x + II (L_l x − g_l × x) (2-167). The paper shortens the last
line by (2-178), L_l ω − g_l × ω = φ̇ᵀH, which is the errata's compact form; that identity fails between
quasi-velocities of one joint, so it is not used here.

    ∂T/∂φ̇ = φ̇ᵀ(P* + P*ᵀ) + dampers            (2-204), (2-226)            ∂T/∂φ̈ = I*              (2-203)

Loads of springs and dampers are differentiated by jets. L_l is along the velocity direction l: these are derivatives in
the tangent space, v and a held fixed as numbers.
"""

from __future__ import annotations

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.algebra.jets import JetDomain
from polybody.algebra.rotations import cross
from polybody.formulations.influence.arrays import (
    inertia_matrix,
    inertia_power,
    passive_load,
    world_center,
    world_inertia,
)
from polybody.formulations.influence.coefficients import Configured, configured, local_coefficients
from polybody.mechanism.compliant_stops import compliant
from polybody.mechanism.kinematics import rate
from polybody.mechanism.mechanism import Mechanism


def inverse_dynamics_derivatives(
    mechanism: Mechanism, q: Array, v: Array, a: Array, wrenches: Array | None = None, *, domain: Domain = FLOAT
) -> tuple[Array, Array, Array]:
    """(∂tau/∂φ, ∂tau/∂v, ∂tau/∂a), each nv×nv, in tangent space; wrenches stay constant in world axes."""
    at = configured(mechanism, q, domain=domain)
    dq = configuration_derivative(at, v, a, wrenches)
    P = inertia_power(at)
    dv = np.tensordot(P, v, axes=(2, 0)) + np.tensordot(np.swapaxes(P, 1, 2), v, axes=(2, 0))
    if has_passive_loads(mechanism):
        passive_q, passive_v = passive_derivatives(mechanism, q, v, domain=domain)
        dq, dv = dq - passive_q, dv - passive_v
    return dq, dv, inertia_matrix(at)


def configuration_derivative(at: Configured, v: Array, a: Array, wrenches: Array | None) -> Array:
    """∂T/∂φ of inertia, gravity and external wrenches, [i, l]."""
    domain, n = at.domain, at.mechanism.nv
    result = domain.zeros(n, n)
    for body in at.mechanism.bodies:
        index, found = local_coefficients(at, body.index, world_center(at, body.index), 3)
        block = index[:, None], index
        result[block] = result[block] + _body_derivative(at, body.index, found, v[index], a[index])
        if wrenches is not None:
            _, (_, H) = local_coefficients(at, body.index, at.poses[body.index][1], 2)
            result[block] = result[block] - np.tensordot(wrenches[body.index], H, axes=(0, 0)).T
    return result


def _body_derivative(at: Configured, body: int, found: list[Array], v: Array, a: Array) -> Array:
    domain, (G, H, D) = at.domain, found
    m, II = domain.const(at.mechanism.bodies[body].mass), world_inertia(at, body)
    g, gc = G[:3], G[3:]
    acceleration = G @ a + np.tensordot(H @ v, v, axes=(1, 0))
    along = H @ a + np.tensordot(D @ v, v, axes=(2, 0))  # columns L_l [α; c̈]
    omega, alpha = g @ v, acceleration[:3]
    omega_l, alpha_l = (H @ v)[:3], along[:3]
    force = (acceleration[3:] - domain.array(at.mechanism.gravity)) * m
    L = II @ omega
    L_dot = II @ alpha + cross(omega, L)

    def against(x: Array) -> Array:
        """Columns g_l × x."""
        return cross(g, x[:, None])

    L_l = against(L) + II @ (omega_l - against(omega))
    L_dot_l = (
        against(II @ alpha)
        + II @ (alpha_l - against(alpha))
        + cross(omega_l, L[:, None])
        + cross(omega[:, None], L_l)
    )
    load = np.concatenate([L_dot, force])
    return np.tensordot(load, H, axes=(0, 0)).T + g.T @ L_dot_l + (gc.T @ along[3:]) * m


def has_passive_loads(mechanism: Mechanism) -> bool:
    """True where springs or dampers act."""
    if mechanism.sprung or mechanism.motor_damping.any():
        return True
    return any(
        j.stiffness.any() or j.damping.any() or j.friction is not None or compliant(j.limits) for j in mechanism.joints
    )


def passive_derivatives(mechanism: Mechanism, q: Array, v: Array, *, domain: Domain = FLOAT) -> tuple[Array, Array]:
    """∂/∂φ and ∂/∂v of what springs and dampers exert, by jets."""
    jets, n = JetDomain(domain), mechanism.nv
    dq, dv = domain.zeros(n, n), domain.zeros(n, n)
    unit = domain.eye(n)
    for k in range(n):
        moved = jets.lift(q, rate(mechanism, q, unit[k], domain=domain))
        dq[:, k] = jets.rates(passive_load(configured(mechanism, moved, domain=jets), moved, jets.lift(v)))
        still = jets.lift(q)
        dv[:, k] = jets.rates(passive_load(configured(mechanism, still, domain=jets), still, jets.lift(v, unit[k])))
    return dq, dv


__all__ = ["configuration_derivative", "has_passive_loads", "inverse_dynamics_derivatives", "passive_derivatives"]
