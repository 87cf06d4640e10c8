"""Energy and momentum, over any domain.

Kinetic energy ½ Σ (m ċ² + ωᵀ I ω) + ½ vᵀ A v with A the armature; potential −Σ m gᵀc plus what springs store.
Momentum is [angular; linear] about the centre of mass of all moving bodies, world axes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.algebra.rotations import cross
from polybody.mechanism.forces import spring_energy
from polybody.mechanism.kinematics import Pose, body_poses, body_twists, relative_poses
from polybody.mechanism.mechanism import Mechanism


def center_twists(mechanism: Mechanism, twists: list[Array], *, domain: Domain = FLOAT) -> list[tuple[Array, Array]]:
    """(ω, ċ) of every body in body axes, ċ the velocity of its mass centre."""
    return [
        (V[:3], V[3:] + cross(V[:3], domain.array(body.com))) for body, V in zip(mechanism.bodies, twists, strict=True)
    ]


def energy(mechanism: Mechanism, q: Array, v: Array, *, domain: Domain = FLOAT) -> tuple[Any, Any]:
    """(kinetic, potential): armature, rotors and springs included."""
    across = relative_poses(mechanism, q, domain=domain)
    poses = body_poses(mechanism, q, across, domain=domain)
    twists = body_twists(mechanism, q, v, across, domain=domain)
    return kinetic_energy(mechanism, twists, v, domain=domain), potential_energy(mechanism, q, poses, domain=domain)


def kinetic_energy(mechanism: Mechanism, twists: list[Array], v: Array, *, domain: Domain = FLOAT) -> Any:
    double = domain.const(0)
    for body, (w, c_dot) in zip(mechanism.bodies, center_twists(mechanism, twists, domain=domain), strict=True):
        double = double + (c_dot @ c_dot) * domain.const(body.mass) + w @ (domain.array(body.inertia) @ w)
    if mechanism.armature.any():
        double = double + v @ (domain.array(mechanism.armature) @ v)
    return double * domain.const(0.5)


def potential_energy(mechanism: Mechanism, q: Array, poses: list[Pose], *, domain: Domain = FLOAT) -> Any:
    g = domain.array(mechanism.gravity)
    potential = spring_energy(mechanism, q, poses, domain=domain)
    for body, (R, p) in zip(mechanism.bodies, poses, strict=True):
        potential = potential - (g @ (p + R @ domain.array(body.com))) * domain.const(body.mass)
    return potential


def momentum(mechanism: Mechanism, q: Array, v: Array, *, domain: Domain = FLOAT) -> Array:
    """[angular; linear] momentum about the centre of mass, world axes."""
    across = relative_poses(mechanism, q, domain=domain)
    poses = body_poses(mechanism, q, across, domain=domain)
    twists = body_twists(mechanism, q, v, across, domain=domain)
    linear, spin, orbital, first = (domain.zeros(3) for _ in range(4))
    for body, (R, p), (w, c_dot) in zip(
        mechanism.bodies, poses, center_twists(mechanism, twists, domain=domain), strict=True
    ):
        m, c, velocity = domain.const(body.mass), p + R @ domain.array(body.com), R @ c_dot
        linear = linear + velocity * m
        orbital = orbital + cross(c, velocity) * m
        spin = spin + R @ (domain.array(body.inertia) @ w)
        first = first + c * m
    mass = domain.const(sum(body.mass for body in mechanism.bodies))
    return np.concatenate([spin + orbital - cross(first / mass, linear), linear])


__all__ = ["center_twists", "energy", "kinetic_energy", "momentum", "potential_energy"]
