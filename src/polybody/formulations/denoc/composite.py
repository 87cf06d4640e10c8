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

In long branches they are projected about common origins (`stations`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.algebra.rotations import cross, skew
from polybody.formulations.denoc.links import Crossing, Link, crossings, links
from polybody.formulations.denoc.stations import Stations, stations
from polybody.late import dataclass
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
    make = lambda: inertia_matrix(mechanism, chain, across, domain=domain)  # noqa: E731
    return domain.once("mass matrix", (mechanism, q), make)


def inertia_matrix(mechanism: Mechanism, chain: list[Link], across: list[Crossing], *, domain: Domain) -> Array:
    """The same, from links and crossings that are known."""
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
    slides: list[Array] = []
    for joint, step in zip(mechanism.joints, across, strict=True):
        before = None if joint.parent == GROUND else omegas[joint.parent]
        omega, slide = angular_velocity(step, before, v[joint.v])
        omegas.append(omega)
        slides.append(slide)
    return omegas, slides


def angular_velocity(step: Crossing, before: Array | None, v: Array) -> tuple[Array, Array]:
    """ω_i and ṙ_i from ω_j (None on the ground) and the joint's own velocity."""
    relative = step.H @ v
    slide = step.to_parent(relative[3:])
    if before is None:
        return relative[:3], slide
    return step.to_child(before) + relative[:3], cross(before, step.r) + slide


def own_drift(mechanism: Mechanism, i: int, omega: Array, *, domain: Domain) -> Drift:
    """Ṁ of body i about O_i."""
    body = mechanism.bodies[i]
    c, I_c = domain.array(body.com), domain.array(body.inertia)
    swing = cross(omega, c) * domain.const(body.mass)
    N = skew(omega, domain=domain) @ I_c - skew(c, domain=domain) @ skew(swing, domain=domain)
    return Drift(N, swing)


def drift_to_parent(step: Crossing, part: Composite, drift: Drift, slide: Array, *, domain: Domain) -> Drift:
    """What K̃_i adds to K̃_j, (28): `slide` is ṙ."""
    h, h_dot = step.to_parent(part.h), step.to_parent(drift.h_dot) + slide * part.mass
    N = step.turned_general(drift.N) - skew(h, domain=domain) @ skew(slide, domain=domain)
    return Drift(N - skew(step.r, domain=domain) @ skew(h_dot, domain=domain), h_dot)


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
        more = drift_to_parent(across[i], parts[i], drifts[i], slides[i], domain=domain)
        drifts[j] = Drift(drifts[j].N + more.N, drifts[j].h_dot + more.h_dot)
    return drifts


def coriolis_matrix(mechanism: Mechanism, q: Array, v: Array, *, domain: Domain = FLOAT) -> Array:
    """Saha's C of (25)-(29), such that Ṁ − 2C is skew."""
    chain = links(mechanism, domain=domain)
    across = crossings(mechanism, chain, q, domain=domain)
    parts = composites(chain, across, domain=domain)
    omegas, slides = angular_velocities(mechanism, across, v, domain=domain)
    drifts = composite_drifts(mechanism, across, parts, omegas, slides, domain=domain)
    rates = [
        inertial_rate(joint.model.velocity_map_rate(q[joint.q], v[joint.v], domain=domain), across[i].H, omegas[i])
        for i, joint in enumerate(mechanism.joints)
    ]
    met = stations(mechanism, across, slides, rates, domain=domain)
    C = domain.zeros(mechanism.nv, mechanism.nv)
    for joint in mechanism.joints:
        i = joint.index
        for k in range(joint.nv):
            sent = convective(parts[i], drifts[i], across[i].H[:, k], rates[i][:, k])
            _fill_convective(mechanism, across, slides, met, i, joint.v.start + k, sent, C)
    return C


def inertial_rate(H_dot: Array, H: Array, omega: Array) -> Array:
    """The rate in inertial space of the joint map's columns, body axes: Ḣ + ω × H."""
    columns = [
        np.concatenate([H_dot[:3, k] + cross(omega, H[:3, k]), H_dot[3:, k] + cross(omega, H[3:, k])])
        for k in range(H.shape[1])
    ]
    return np.column_stack(columns)


@dataclass(frozen=True, eq=False)
class Convective:
    """What one column H of joint i sends inwards: F' = (n_col, f_col), F = (n, f) and G = K̃ᵀH, (29)."""

    n_col: Array
    f_col: Array
    n: Array
    f: Array
    g: Array

    def on_joint(self, H: Array, H_dot: Array) -> tuple[Array, Array]:
        """(c_ji, c_ij) for all columns of the joint j it has reached."""
        below = H_dot[:3].T @ self.n + H_dot[3:].T @ self.f + H[:3].T @ self.g
        return H[:3].T @ self.n_col + H[3:].T @ self.f_col, below

    def to_parent(self, step: Crossing, slide: Array) -> Convective:
        """The same about the parent's origin; `slide` is ṙ."""
        n, f = step.wrench_to_parent(self.n, self.f)
        n_col, f_col = step.wrench_to_parent(self.n_col, self.f_col)
        return Convective(n_col, f_col, n, f, step.to_parent(self.g) + cross(slide, f))

    def to_station(self, met: Stations, i: int) -> Convective:
        """The same, given about O_i, at the station of body i."""
        return self.to_parent(*met.steps[i]) if i in met.steps else self


def convective(part: Composite, drift: Drift, H: Array, H_dot: Array) -> Convective:
    """F', F and G of one column H of a joint, H_dot its inertial rate."""
    n_col, f_col = composite_wrench(part, H_dot)
    n_col, f_col = n_col + drift.N @ H[:3], f_col + cross(H[:3], drift.h_dot)
    g = drift.N.T @ H[:3] + cross(drift.h_dot, H[3:])
    return Convective(n_col, f_col, *composite_wrench(part, H), g)


def _fill_convective(
    mechanism: Mechanism, across: list[Crossing], slides: list[Array], met: Stations, start: int, own: int,
    sent: Convective, C: Array,
) -> None:
    """Column and row of C for one column of joint `start`, carried to the ground from station to station."""
    i, sent = start, sent.to_station(met, start)
    while i != GROUND:
        joint = mechanism.joints[i]
        column, row = sent.on_joint(met.H[i], met.rates[i])
        C[joint.v, own] = C[joint.v, own] + column
        if i != start:
            C[own, joint.v] = C[own, joint.v] + row
        if joint.parent != GROUND and met.of[joint.parent] != met.of[i]:
            sent = sent.to_parent(across[i], slides[i]).to_station(met, joint.parent)
        i = joint.parent


__all__ = [
    "Composite",
    "Convective",
    "Drift",
    "angular_velocity",
    "composite_to_parent",
    "composite_wrench",
    "composites",
    "convective",
    "coriolis_matrix",
    "drift_to_parent",
    "inertia_matrix",
    "inertial_rate",
    "mass_matrix",
    "own_drift",
]
