"""Rigid motions, twists, wrenches and spatial inertias.

A pose T = [R p; 0 1] maps components in the moved frame to components in the reference frame. Twists are
[angular; linear], wrenches [moment; force]. With T the pose of frame b in frame a,

    V_a = Ad(T) V_b,      Ad(T)  = [R 0; [p]R R]                 (the same motion, at the other origin, other axes)
    w_b = Ad(T)ᵀ w_a,     w_a = Ad(T)⁻ᵀ w_b                      (power wᵀV is kept)
    ad(V) = [[ω] 0; [v] [ω]],     ad*(V) = −ad(V)ᵀ

    exp ξ = [exp φ  J ρ; 0 1]    for ξ = [φ; ρ]

The spatial inertia of a body about the origin of its frame, c its mass centre and I its inertia about c:

    I_o = [ I − m [c][c]   m [c] ]
          [ −m [c]         m 1   ]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.algebra.rotations import (
    cross,
    left_jacobian,
    left_jacobian_inverse,
    rotation_exp,
    rotation_log,
    skew,
)


def pose(rotation: Array, position: Array, *, domain: Domain = FLOAT) -> Array:
    """The 4×4 matrix [R p; 0 1]."""
    result = domain.eye(4)
    result[:3, :3] = rotation
    result[:3, 3] = position
    return result


def inverse_pose(matrix: Array, *, domain: Domain = FLOAT) -> Array:
    """T⁻¹ = [Rᵀ −Rᵀp; 0 1]."""
    rotation, position = matrix[:3, :3], matrix[:3, 3]
    return pose(rotation.T, -(rotation.T @ position), domain=domain)


def adjoint(rotation: Array, position: Array, *, domain: Domain = FLOAT) -> Array:
    """Ad(T), the 6×6 matrix that carries twists from the moved frame to the reference frame."""
    result = domain.zeros(6, 6)
    result[:3, :3] = rotation
    result[3:, 3:] = rotation
    result[3:, :3] = skew(position, domain=domain) @ rotation
    return result


def bracket(V: Array, U: Array) -> Array:
    """ad(V) U."""
    return np.concatenate([cross(V[:3], U[:3]), cross(V[3:], U[:3]) + cross(V[:3], U[3:])])


def bracket_matrix(twist: Array, *, domain: Domain = FLOAT) -> Array:
    """ad(V): ad(V) W is the Lie bracket of the twists V and W."""
    omega, v = skew(twist[:3], domain=domain), skew(twist[3:], domain=domain)
    result = domain.zeros(6, 6)
    result[:3, :3] = omega
    result[3:, 3:] = omega
    result[3:, :3] = v
    return result


def twist_exp(xi: Array, *, domain: Domain = FLOAT) -> tuple[Array, Array]:
    """(R, p) of the motion exp ξ, ξ = [φ; ρ]."""
    return rotation_exp(xi[:3], domain=domain), left_jacobian(xi[:3], domain=domain) @ xi[3:]


def twist_log(rotation: Array, position: Array) -> Array:
    """ξ with exp ξ = (R, p), for numbers; its rotation is at most π."""
    phi = rotation_log(rotation)
    return np.concatenate([phi, left_jacobian_inverse(phi) @ np.asarray(position, dtype=float)])


def body_inertia(mass: Any, com: Array, inertia: Array, *, domain: Domain = FLOAT) -> Array:
    """The 6×6 spatial inertia about the frame's origin of a body with `inertia` about its mass centre `com`."""
    c = skew(com, domain=domain)
    return origin_inertia(mass, com * mass, inertia - mass * (c @ c), domain=domain)


def origin_inertia(mass: Any, moment: Array, inertia: Array, *, domain: Domain = FLOAT) -> Array:
    """The 6×6 spatial inertia from the first moment m c and the inertia about the frame's origin."""
    h = skew(moment, domain=domain)
    result = domain.zeros(6, 6)
    result[:3, :3], result[:3, 3:], result[3:, :3] = inertia, h, -h
    result[3:, 3:] = mass * domain.eye(3)
    return result


def symmetric_product(R: Array, A: Array) -> Array:
    """R A Rᵀ for symmetric A, with the lower triangle mirrored instead of computed."""
    half = R @ A
    result = np.empty((len(R), len(R)), dtype=half.dtype)
    for i in range(len(R)):
        for j in range(i, len(R)):
            result[i, j] = result[j, i] = half[i] @ R[j]
    return result


def joined_inertia(
    parts: list[tuple[Any, Array, Array]], *, domain: Domain = FLOAT
) -> tuple[Any, Array, Array]:
    """(mass, com, inertia about it) of rigidly joined parts, each given so in one common frame."""
    mass = sum(m for m, _, _ in parts)
    if mass == 0.0:
        return 0.0, np.zeros(3), sum((np.asarray(i) for _, _, i in parts), np.zeros((3, 3)))
    com = sum((np.asarray(c) * m for m, c, _ in parts), np.zeros(3)) / mass
    inertia = np.zeros((3, 3))
    for m, c, i in parts:
        d = skew(np.asarray(c) - com, domain=domain)
        inertia = inertia + np.asarray(i) - (d @ d) * m
    return mass, com, (inertia + inertia.T) / 2


__all__ = [
    "adjoint",
    "body_inertia",
    "bracket",
    "bracket_matrix",
    "inverse_pose",
    "joined_inertia",
    "origin_inertia",
    "pose",
    "symmetric_product",
    "twist_exp",
    "twist_log",
]
