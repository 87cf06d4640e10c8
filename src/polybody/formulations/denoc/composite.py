"""Composite bodies: the generalised inertia matrix (21)-(24) and the convective matrix C (25)-(29).

The composite body i is everything beyond joint i, frozen. About O_i it has mass m̃, first moment h̃ and inertia Ĩ
(M̃_i of (23b)), gathered inwards. With F_i = M̃_i H_i, carried inwards by B_ijᵀ to every ancestor j,

    i_ij = F_iᵀ B_ij H_j                                                                                   (24)

C = Nᵀ(M Ṅ + Ṁ N), rates in inertial space. About O_i, Ṁ = [ [ω]I_c − [h][ω×c]  0 ; −[m ω×c]  0 ] (the paper's
[ω]I at the mass centre, moved). Its composite K̃ has the same shape, [Ñ 0; −[ḣ] 0]:

    ḣ_j += ḣ_i + m̃_i ṙ,     Ñ_j += Ñ_i − [h̃_i][ṙ] − [r][ḣ_i + m̃_i ṙ]            ṙ the velocity of O_i from O_j
                                                                                           (28) corrected
and with Ḣ_i the inertial rate of the joint map, F'_i = M̃_i Ḣ_i + K̃_i H_i, G_i = K̃_iᵀ H_i:

    c_ji = H_jᵀ B_ijᵀ F'_i,                 j an ancestor of i or i itself                        (29), i ≤ j
    c_ij = F_iᵀ B_ij Ḣ_j + (G_i + Σ ṙ × f)ᵀ H_ω,j                                                 (29), otherwise
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.algebra.rotations import cross, skew
from polybody.formulations.denoc.links import Crossing, Link, crossings, links
from polybody.mechanism.mechanism import GROUND, Mechanism


@dataclass(frozen=True, eq=False)
class Composite:
    """Mass, first moment and inertia about O_i of a composite body, in axes of i."""

    mass: Any
    h: Array
    inertia: Array


def composite_to_parent(step: Crossing, part: Composite, *, domain: Domain) -> Composite:
    """B_ijᵀ M̃_i B_ij in its three parts: the same composite about O_j, in axes of j."""
    h = step.to_parent(part.h)
    r, m = step.r, part.mass
    shifted = h + r * m
    # −[r][h] − [h][r] − m[r][r] = (r·(2h + m r)) 1 − …, gathered from outer products so that zeros fold.
    total = h + shifted
    dot = r @ total
    inertia = step.turned(part.inertia)
    result = np.empty((3, 3), dtype=inertia.dtype)
    for i in range(3):
        for j in range(i, 3):
            outer = (r[i] * total[j] + r[j] * total[i]) / domain.const(2)
            value = inertia[i, j] - outer
            result[i, j] = result[j, i] = value + dot if i == j else value
    return Composite(m, shifted, result)


def composites(chain: list[Link], across: list[Crossing], *, domain: Domain) -> list[Composite]:
    """M̃_i of every body, (23b)."""
    parts = [Composite(one.mass, one.moment, one.inertia) for one in chain]
    for i in reversed(range(len(chain))):
        j = chain[i].parent
        if j != GROUND:
            more = composite_to_parent(across[i], parts[i], domain=domain)
            parts[j] = Composite(parts[j].mass + more.mass, parts[j].h + more.h, parts[j].inertia + more.inertia)
    return parts


def composite_wrench(part: Composite, t: Array) -> tuple[Array, Array]:
    """M̃ t as (n, f)."""
    w, v = t[:3], t[3:]
    return part.inertia @ w + cross(part.h, v), v * part.mass + cross(w, part.h)


def mass_matrix(mechanism: Mechanism, q: Array, *, domain: Domain = FLOAT) -> Array:
    """The generalised inertia matrix (24), with armature and reflected rotors."""
    chain = links(mechanism, domain=domain)
    across = crossings(mechanism, chain, q, domain=domain)
    parts = composites(chain, across, domain=domain)
    M = domain.zeros(mechanism.nv, mechanism.nv)
    for joint in mechanism.joints:
        for k in range(joint.nv):
            n, f = composite_wrench(parts[joint.index], across[joint.index].H[:, k])
            _fill_inertia(mechanism, across, joint.index, joint.v.start + k, n, f, M)
    return M + domain.array(mechanism.armature) if mechanism.armature.any() else M


def _fill_inertia(
    mechanism: Mechanism, across: list[Crossing], start: int, row: int, n: Array, f: Array, M: Array
) -> None:
    """Carry one column's wrench to the ground and project it on every joint it passes."""
    i = start
    while i != GROUND:
        joint, step = mechanism.joints[i], across[i]
        for k in range(joint.nv):
            column = joint.v.start + k
            if i != start or column <= row:
                value = step.H[:3, k] @ n + step.H[3:, k] @ f
                M[row, column] = M[row, column] + value
                if i != start or column != row:  # joints that share a slot meet on its diagonal twice
                    M[column, row] = M[column, row] + value
        if joint.parent != GROUND:
            n, f = step.wrench_to_parent(n, f)
        i = joint.parent


@dataclass(frozen=True, eq=False)
class Drift:
    """K̃ of a composite body: Ñ and the rate ḣ of its first moment."""

    N: Array
    h_dot: Array


def angular_velocities(
    mechanism: Mechanism, across: list[Crossing], v: Array, *, domain: Domain
) -> tuple[list[Array], list[Array]]:
    """ω_i of every body in its axes, and ṙ_i, the velocity of O_i from O_j, in axes of the parent j."""
    omegas: list[Array] = []
    drifts: list[Array] = []
    for joint, step in zip(mechanism.joints, across, strict=True):
        relative = step.H @ v[joint.v]
        slide = step.to_parent(relative[3:])
        if joint.parent == GROUND:
            omegas.append(relative[:3])
            drifts.append(slide)
        else:
            before = omegas[joint.parent]
            omegas.append(step.to_child(before) + relative[:3])
            drifts.append(cross(before, step.r) + slide)
    return omegas, drifts


def own_drift(mechanism: Mechanism, i: int, omega: Array, *, domain: Domain) -> Drift:
    """Ṁ of body i about O_i."""
    body = mechanism.bodies[i]
    c, I_c = domain.array(body.com), domain.array(body.inertia)
    swing = cross(omega, c) * domain.const(body.mass)
    N = skew(omega, domain=domain) @ I_c - skew(c, domain=domain) @ skew(swing, domain=domain)
    return Drift(N, swing)


def composite_drifts(
    mechanism: Mechanism,
    across: list[Crossing],
    parts: list[Composite],
    omegas: list[Array],
    slides: list[Array],
    *,
    domain: Domain,
) -> list[Drift]:
    """K̃_i of every composite body, (28)."""
    drifts = [own_drift(mechanism, i, omega, domain=domain) for i, omega in enumerate(omegas)]
    for joint in reversed(mechanism.joints):
        i, j = joint.index, joint.parent
        if j == GROUND:
            continue
        step, rate = across[i], slides[i]
        h, h_dot = step.to_parent(parts[i].h), step.to_parent(drifts[i].h_dot) + rate * parts[i].mass
        N = step.turned_general(drifts[i].N) - skew(h, domain=domain) @ skew(rate, domain=domain)
        N = N - skew(step.r, domain=domain) @ skew(h_dot, domain=domain)
        drifts[j] = Drift(drifts[j].N + N, drifts[j].h_dot + h_dot)
    return drifts


def coriolis_matrix(mechanism: Mechanism, q: Array, v: Array, *, domain: Domain = FLOAT) -> Array:
    """Saha's C of (25)-(29), such that Ṁ − 2C is skew."""
    chain = links(mechanism, domain=domain)
    across = crossings(mechanism, chain, q, domain=domain)
    parts = composites(chain, across, domain=domain)
    omegas, slides = angular_velocities(mechanism, across, v, domain=domain)
    drifts = composite_drifts(mechanism, across, parts, omegas, slides, domain=domain)
    rates = [
        _inertial_rate(joint.model.velocity_map_rate(q[joint.q], v[joint.v], domain=domain), across[i].H, omegas[i])
        for i, joint in enumerate(mechanism.joints)
    ]
    C = domain.zeros(mechanism.nv, mechanism.nv)
    for joint in mechanism.joints:
        for k in range(joint.nv):
            _fill_convective(mechanism, across, parts, drifts, slides, rates, joint.index, k, C)
    return C


def _inertial_rate(H_dot: Array, H: Array, omega: Array) -> Array:
    """The rate in inertial space of the joint map's columns, body axes: Ḣ + ω × H."""
    columns = [
        np.concatenate([H_dot[:3, k] + cross(omega, H[:3, k]), H_dot[3:, k] + cross(omega, H[3:, k])])
        for k in range(H.shape[1])
    ]
    return np.column_stack(columns)


def _fill_convective(
    mechanism: Mechanism,
    across: list[Crossing],
    parts: list[Composite],
    drifts: list[Drift],
    slides: list[Array],
    rates: list[Array],
    start: int,
    k: int,
    C: Array,
) -> None:
    """Column and row of C for one column of joint `start`, carried to the ground."""
    H, own = across[start].H[:, k], mechanism.joints[start].v.start + k
    drift = drifts[start]
    n_col, f_col = composite_wrench(parts[start], rates[start][:, k])
    n_col, f_col = n_col + drift.N @ H[:3], f_col + cross(H[:3], drift.h_dot)  # F'
    n, f = composite_wrench(parts[start], H)  # F
    g = drift.N.T @ H[:3] + cross(drift.h_dot, H[3:])  # G = K̃ᵀ H
    i = start
    while i != GROUND:
        joint, step = mechanism.joints[i], across[i]
        for m in range(joint.nv):
            other = joint.v.start + m
            C[other, own] = C[other, own] + step.H[:3, m] @ n_col + step.H[3:, m] @ f_col
            if i != start:
                C[own, other] = C[own, other] + rates[i][:3, m] @ n + rates[i][3:, m] @ f + g @ step.H[:3, m]
        if joint.parent != GROUND:
            n_col, f_col = step.wrench_to_parent(n_col, f_col)
            n, f = step.wrench_to_parent(n, f)
            g = step.to_parent(g) + cross(slides[i], f)
        i = joint.parent


__all__ = [
    "Composite",
    "composite_to_parent",
    "composite_wrench",
    "composites",
    "coriolis_matrix",
    "mass_matrix",
]
