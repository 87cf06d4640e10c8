"""The dynamic model as arrays: inertia I* (n×n), inertia power P* (n×n×n) and generalised loads.

With G^c, H^c the translational coefficients of a body's mass centre, G, H its rotational ones, and II its inertia about
the mass centre in world axes, sums over bodies:

    I*_in  = Σ m g^c_i · g^c_n + g_i · II g_n  (+ armature)                                       (2-158), (2-196)
    P*_imn = Σ m g^c_i · h^c_mn + g_i · II h_mn + g_i · (g_m × II g_n)                                     (2-197)
    T^L    = Σ (G^u)ᵀ T^u                                                                                  (2-147)

P*[i] is the plane of generalised load i. The load of inertia is I* φ̈ + φ̇ᵀP*φ̇ (2-195). P* is not the array of
Christoffel symbols: only its quadratic form is unique. Loads are gravity, external wrenches, and springs and dampers.
"""

from __future__ import annotations

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.algebra.rotations import cross
from polybody.formulations.influence.coefficients import Configured, configured, local_coefficients
from polybody.mechanism.forces import joint_passive_forces, spring_wrenches
from polybody.mechanism.kinematics import body_twists
from polybody.mechanism.mechanism import Mechanism


def world_inertia(at: Configured, body: int) -> Array:
    """II of a body: about its mass centre, world axes."""
    R = at.poses[body][0]
    return R @ at.domain.array(at.mechanism.bodies[body].inertia) @ R.T


def world_center(at: Configured, body: int) -> Array:
    """World position of a body's mass centre."""
    R, p = at.poses[body]
    return p + R @ at.domain.array(at.mechanism.bodies[body].com)


def inertia_matrix(at: Configured) -> Array:
    """I* by (2-196), armature and reflected rotors included."""
    domain = at.domain
    result = domain.array(at.mechanism.armature)
    for body in at.mechanism.bodies:
        index, (G,) = local_coefficients(at, body.index, world_center(at, body.index), 1)
        g, gc, II = G[:3], G[3:], world_inertia(at, body.index)
        block = index[:, None], index
        result[block] = result[block] + g.T @ (II @ g) + (gc.T @ gc) * domain.const(body.mass)
    return result


def inertia_power(at: Configured) -> Array:
    """P* by (2-197), [i, m, n]."""
    domain, n = at.domain, at.mechanism.nv
    result = domain.zeros(n, n, n)
    for body in at.mechanism.bodies:
        index, (G, H) = local_coefficients(at, body.index, world_center(at, body.index), 2)
        g, gc, II = G[:3], G[3:], world_inertia(at, body.index)
        turning = np.tensordot(II, H[:3], axes=(1, 0)) + cross(g[:, :, None], (II @ g)[:, None, :])
        local = np.tensordot(g, turning, axes=(0, 0))
        local = local + np.tensordot(gc, H[3:], axes=(0, 0)) * domain.const(body.mass)
        block = index[:, None, None], index[:, None], index
        result[block] = result[block] + local
    return result


def gravity_load(at: Configured) -> Array:
    """Σ (G^c)ᵀ m g: what gravity exerts on the velocities."""
    domain = at.domain
    g = domain.array(at.mechanism.gravity)
    load = domain.zeros(at.mechanism.nv)
    for body in at.mechanism.bodies:
        index, (G,) = local_coefficients(at, body.index, world_center(at, body.index), 1)
        load[index] = load[index] + (G[3:].T @ g) * domain.const(body.mass)
    return load


def wrench_load(at: Configured, wrenches: list[Array | None] | Array) -> Array:
    """Σ Gᵀ [moment; force] of wrenches on bodies, world axes at body origins (2-147); None where nothing acts."""
    domain = at.domain
    load = domain.zeros(at.mechanism.nv)
    for i, wrench in enumerate(wrenches):
        if wrench is not None:
            index, (G,) = local_coefficients(at, i, at.poses[i][1], 1)
            load[index] = load[index] + G.T @ wrench
    return load


def passive_load(at: Configured, q: Array, v: Array | None) -> Array:
    """What joint springs and dampers and point springs exert on the velocities; dampers only where v is given."""
    mechanism, domain = at.mechanism, at.domain
    load = joint_passive_forces(mechanism, q, v, domain=domain)
    if mechanism.sprung:
        twists = None if v is None else body_twists(mechanism, q, v, domain=domain)
        load = load + wrench_load(at, spring_wrenches(mechanism, at.poses, twists, domain=domain))
    return load


def generalized_load(at: Configured, q: Array, v: Array | None, wrenches: Array | None = None) -> Array:
    """T^L of (2-147): gravity, springs and dampers, external wrenches."""
    load = gravity_load(at) + passive_load(at, q, v)
    return load if wrenches is None else load + wrench_load(at, wrenches)


def dynamic_arrays(mechanism: Mechanism, q: Array, *, domain: Domain = FLOAT) -> tuple[Array, Array]:
    """(I*, P*) at a configuration."""
    at = configured(mechanism, q, domain=domain)
    return inertia_matrix(at), inertia_power(at)


__all__ = [
    "dynamic_arrays",
    "generalized_load",
    "gravity_load",
    "inertia_matrix",
    "inertia_power",
    "passive_load",
    "world_center",
    "world_inertia",
    "wrench_load",
]
