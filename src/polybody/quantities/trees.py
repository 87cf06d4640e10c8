"""Texts of trees that no formulation's paper has: all frames at once, momentum as a matrix, no constraints.

Momentum about the centre of mass c, world axes, is linear in v. A unit of velocity j moves everything beyond its joint,
a composite body of mass m, first moment h and inertia I about the world's origin, with the screw [ω; u] there:

    A_j = [I ω + h × u − c × p;  p],      p = m u + ω × h
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.algebra.domains import Array, Domain
from polybody.algebra.rotations import cross, skew
from polybody.algebra.spatial import pose
from polybody.formulations import denoc
from polybody.mechanism import kinematics
from polybody.mechanism.mechanism import GROUND, Mechanism, TreeBody


def poses(m: Mechanism, q: Array, *, domain: Domain) -> Array:
    """(frames, 4, 4)."""
    bodies = kinematics.body_poses(m, q, domain=domain)
    found = [pose(*kinematics.frame_pose(frame, bodies, domain=domain), domain=domain) for frame in m.frames]
    return np.array(found, dtype=domain.dtype)


def body_rotations(m: Mechanism, q: Array, *, domain: Domain) -> Array:
    """(bodies, 3, 3)."""
    found = [R for R, _ in kinematics.body_poses(m, q, domain=domain)]
    return np.array(found, dtype=domain.dtype).reshape(-1, 3, 3)


def centroidal_momentum_matrix(m: Mechanism, q: Array, *, domain: Domain) -> Array:
    """(6, nv): A with momentum = A v, from composite bodies about the world's origin."""
    bodies = kinematics.body_poses(m, q, domain=domain)
    columns = kinematics.world_maps(m, q, bodies, domain=domain)
    parts = [world_inertia(body, place, domain=domain) for body, place in zip(m.bodies, bodies, strict=True)]
    for joint in reversed(m.joints):
        if joint.parent != GROUND:
            sums = zip(parts[joint.parent], parts[joint.index], strict=True)
            parts[joint.parent] = tuple(one + other for one, other in sums)
    roots = [joint.index for joint in m.joints if joint.parent == GROUND]
    center = sum((parts[i][1] for i in roots), domain.zeros(3)) / sum((parts[i][0] for i in roots), domain.const(0))
    A = domain.zeros(6, m.nv)
    for joint in m.joints:
        found = momentum_columns(parts[joint.index], columns[joint.index], center)
        A[:, joint.v] = A[:, joint.v] + found
    return A


def world_inertia(body: TreeBody, place: kinematics.Pose, *, domain: Domain) -> tuple[Any, ...]:
    """Mass, first moment and inertia of a body at its pose, about the world's origin."""
    R, p = place
    mass, c = domain.const(body.mass), p + R @ domain.array(body.com)
    arm = skew(c, domain=domain)
    return mass, c * mass, R @ domain.array(body.inertia) @ R.T - (arm @ arm) * mass


def momentum_columns(part: tuple[Any, ...], screws: Array, center: Array) -> Array:
    """A_j for every column [ω; u] of screws, which move a composite body (mass, first moment, inertia)."""
    mass, moment, inertia = part
    columns = []
    for w, u in ((x[:3], x[3:]) for x in screws.T):
        linear = u * mass + cross(w, moment)
        columns.append(np.concatenate([inertia @ w + cross(moment, u) - cross(center, linear), linear]))
    return np.column_stack(columns)


def unconstrained_loads(
    m: Mechanism, q: Array, v: Array, tau: Array, wrenches: Array | None = None, *, domain: Domain
) -> tuple[Array, Array]:
    """(a, no multipliers)."""
    return denoc.forward_dynamics(m, q, v, tau, wrenches, domain=domain), domain.zeros(0)


def no_step(m: Mechanism, q: Array, v: Array, *, domain: Domain) -> tuple[Array, Array]:
    """A tree is never off its constraints."""
    return domain.zeros(m.nv), domain.zeros(m.nv)


def implicit_residual(
    m: Mechanism, q: Array, v: Array, a: Array, tau: Array, multipliers: Array, *, domain: Domain
) -> tuple[Array, Array]:
    """(ID(q, v, a) − tau, no rows)."""
    return denoc.inverse_dynamics(m, q, v, a, domain=domain) - tau, domain.zeros(0)


def augmented_system(m: Mechanism, q: Array, v: Array, tau: Array, *, domain: Domain) -> tuple[Array, Array]:
    """(M, tau − ID(q, v, 0))."""
    force = tau - denoc.inverse_dynamics(m, q, v, domain.zeros(m.nv), domain=domain)
    return denoc.mass_matrix(m, q, domain=domain), force


__all__ = [
    "augmented_system",
    "body_rotations",
    "centroidal_momentum_matrix",
    "implicit_residual",
    "momentum_columns",
    "no_step",
    "poses",
    "unconstrained_loads",
    "world_inertia",
]
