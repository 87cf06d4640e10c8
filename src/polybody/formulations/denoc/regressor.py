"""The regressor of inverse dynamics: tau = Y(q, v, a) p, linear in the inertial parameters of the bodies.

The wrench that moves body i, about O_i in body axes, is linear in its mass m, first moment h = m c and inertia I about
O_i (the notation of `inverse`):

    f_i = m a_i + E_i h,      n_i = I α_i + ω_i × I ω_i + h × a_i                                          (7)

so [n_i; f_i] = A_i p_i with a 6×10 matrix A_i, p_i = (m, h_x, h_y, h_z, I_xx, I_yy, I_zz, I_xy, I_xz, I_yz). Joint j
between the ground and body i sees it through its own motion S = [s; u] carried to body i: row j of Y has Sᵀ A_i there,

    m: uᵀa_i      h: E_iᵀ u + a_i × s      I: sᵀ of (I α + ω × I ω) for a unit of each entry.

Carrying the joint's motion outwards costs six numbers a pair (j, i); carrying wrenches inwards would cost sixty.

Kinetic and potential energy are linear in the same parameters, with V = [ω; v_o] the twist of the body,

    T = ½ m v_oᵀv_o + v_oᵀ(ω × h) + ½ ωᵀIω,        U = −m gᵀp_o − gᵀR h

and so is momentum about the world's origin. (About the centre of mass it is not: the centre depends on the masses.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.algebra.rotations import cross
from polybody.formulations.denoc.inverse import Motion, body_wrench, outward_motions, spin_matrix
from polybody.formulations.denoc.links import Crossing, crossings, inertial, links
from polybody.mechanism.kinematics import body_poses, body_twists
from polybody.mechanism.mechanism import GROUND, Mechanism

#: the parameters of one body, in the order of its columns
BODY_PARAMETERS = ("mass", "mx", "my", "mz", "Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz")
#: (row, column) of the six entries of a symmetric 3×3 matrix, in that order
ENTRIES = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))


def moment_columns(motion: Motion) -> list[Array]:
    """n = I α + ω × I ω for a unit of each entry of I, six vectors."""
    (x, y, z), (ax, ay, az) = motion.omega, motion.alpha
    columns = [
        (ax, x * z, -(x * y)),
        (-(y * z), ay, x * y),
        (y * z, -(x * z), az),
        (ay - x * z, ax + y * z, x * x - y * y),
        (az + x * y, z * z - x * x, ax - y * z),
        (y * y - z * z, az - x * y, ay + x * z),
    ]
    return [np.array(column, dtype=motion.omega.dtype) for column in columns]


def seen_by(screw: Array, motion: Motion, E: Array, moments: list[Array]) -> Array:
    """Sᵀ A_i: what a joint that moves the body by the screw [s; u] sees of its ten parameters."""
    s, u = screw[:3], screw[3:]
    first = E.T @ u + cross(motion.a, s)
    return np.array([u @ motion.a, *first, *(s @ n for n in moments)], dtype=screw.dtype)


def carried_screw(step: Crossing, screw: Array) -> Array:
    """The screw of a motion of body j, as that of body i beyond it."""
    s, u = screw[:3], screw[3:]
    return np.concatenate([step.to_child(s), step.to_child(u + cross(s, step.r))])


def regressor(mechanism: Mechanism, q: Array, v: Array, a: Array, *, domain: Domain = FLOAT) -> Array:
    """Y (nv, 10·bodies), body by body in the order of `BODY_PARAMETERS`; without springs, dampers and armature."""
    chain = links(mechanism, domain=domain)
    across = crossings(mechanism, chain, q, domain=domain)
    motions = outward_motions(mechanism, chain, across, q, v, a, domain.array(mechanism.gravity), domain)
    Y = domain.zeros(mechanism.nv, 10 * len(chain))
    screws: list[list[tuple[int, Array]]] = []  # of every body: (velocity, screw) of the joints that move it
    for joint, step, motion in zip(mechanism.joints, across, motions, strict=True):
        i = joint.index
        above = [] if joint.parent == GROUND else screws[joint.parent]
        own = list(zip(range(joint.v.start, joint.v.stop), step.H.T, strict=True))
        screws.append([*((k, carried_screw(step, screw)) for k, screw in above), *own])
        E, moments = spin_matrix(motion.omega, motion.alpha), moment_columns(motion)
        for k, screw in screws[i]:  # a follower and its leader share k
            Y[k, 10 * i : 10 * i + 10] = Y[k, 10 * i : 10 * i + 10] + seen_by(screw, motion, E, moments)
    return Y


def changes_of_forces(
    mechanism: Mechanism, q: Array, v: Array, a: Array, changes: Sequence[tuple[int, Array]], *, domain: Domain = FLOAT
) -> Array:
    """Y δp (nv, k) of changes δp of one body each: (body, δp (10,)). Each is a wrench; nothing else of Y is read."""
    chain = links(mechanism, domain=domain)
    across = crossings(mechanism, chain, q, domain=domain)
    motions = outward_motions(mechanism, chain, across, q, v, a, domain.array(mechanism.gravity), domain)
    found = domain.zeros(mechanism.nv, len(changes))
    screws: list[list[tuple[int, Array]]] = []
    for joint, step in zip(mechanism.joints, across, strict=True):
        above = [] if joint.parent == GROUND else screws[joint.parent]
        own = list(zip(range(joint.v.start, joint.v.stop), step.H.T, strict=True))
        screws.append([*((k, carried_screw(step, screw)) for k, screw in above), *own])
    for column, (i, change) in enumerate(changes):
        inertia = domain.zeros(3, 3)
        for (r, c), value in zip(ENTRIES, change[4:], strict=True):
            inertia[r, c] = inertia[c, r] = value
        changed = replace(chain[i], mass=change[0], moment=change[1:4], inertia=inertia)
        wrench = np.concatenate(body_wrench(changed, motions[i]))
        for k, screw in screws[i]:
            found[k, column] = found[k, column] + screw @ wrench
    return found


def energy_regressor(mechanism: Mechanism, q: Array, v: Array, *, domain: Domain = FLOAT) -> tuple[Array, Array]:
    """(kinetic, potential) rows, 10·bodies each: energies of the bodies are these times p."""
    g, half = domain.array(mechanism.gravity), domain.const(0.5)
    twists, poses = body_twists(mechanism, q, v, domain=domain), body_poses(mechanism, q, domain=domain)
    kinetic, potential = domain.zeros(10 * len(twists)), domain.zeros(10 * len(twists))
    for i, (V, (R, p)) in enumerate(zip(twists, poses, strict=True)):
        w, u = V[:3], V[3:]
        kinetic[10 * i] = (u @ u) * half
        kinetic[10 * i + 1 : 10 * i + 4] = cross(u, w)
        for k, (r, c) in enumerate(ENTRIES):
            kinetic[10 * i + 4 + k] = w[r] * w[c] * (half if r == c else domain.const(1))
        potential[10 * i] = -(g @ p)
        potential[10 * i + 1 : 10 * i + 4] = -(R.T @ g)
    return kinetic, potential


def momentum_regressor(mechanism: Mechanism, q: Array, v: Array, *, domain: Domain = FLOAT) -> Array:
    """(6, 10·bodies): momentum [angular; linear] about the world's origin, world axes, is this times p."""
    twists, poses = body_twists(mechanism, q, v, domain=domain), body_poses(mechanism, q, domain=domain)
    result = domain.zeros(6, 10 * len(twists))
    for i, (V, (R, p)) in enumerate(zip(twists, poses, strict=True)):
        for k, (angular, linear) in enumerate(_unit_momenta(V[:3], V[3:], domain)):
            moved = R @ linear
            result[:3, 10 * i + k] = R @ angular + cross(p, moved)
            result[3:, 10 * i + k] = moved
    return result


def _unit_momenta(w: Array, u: Array, domain: Domain) -> list[tuple[Array, Array]]:
    """[angular; linear] about O_i in body axes for a unit of each parameter: I ω + h × u and m u + ω × h."""
    none, found = domain.zeros(3), [(domain.zeros(3), u)]
    for axis in domain.eye(3):
        found.append((cross(axis, u), cross(w, axis)))
    for r, c in ENTRIES:
        angular = domain.zeros(3)
        angular[r] = w[c]
        angular[c] = w[r]
        found.append((angular, none))
    return found


def body_parameters(mechanism: Mechanism, *, domain: Domain = FLOAT) -> Array:
    """p of the mechanism's own bodies, 10·bodies."""
    parts: list[Any] = []
    for i in range(len(mechanism.bodies)):
        mass, moment, inertia = inertial(mechanism, i, domain=domain)
        parts.extend([mass, *moment, *(inertia[r, c] for r, c in ENTRIES)])
    return np.array(parts, dtype=domain.dtype)


__all__ = [
    "BODY_PARAMETERS",
    "ENTRIES",
    "body_parameters",
    "changes_of_forces",
    "energy_regressor",
    "momentum_regressor",
    "regressor",
]
