"""Derivatives of inverse dynamics in tangent space, differentiated by hand.

Let t_i = [ω; u] be the twist of body i at O_i in its axes and a_i its derivative there (its spatial acceleration). With
c and a_c the parent's, carried to the child (B_ij t_j, B_ij a_j), J = H v the joint's own twist, ρ = H a + Ḣ v, and ×
the bracket of twists,

    t_i = c + J,      a_i = a_c + ρ + c × J

Points x of the body have ẋ = u + ω × x and ẍ = a + α × x + ω × ẋ. A joint is displaced along column h of its map (then
H changes too, by δH; δJ = δH v, δρ = δH a + δ(Ḣ v)), or its velocity is changed along it, or its acceleration. In axes
and at an origin that go with the body, all bodies that the joint carries have the same changes ψ of their twists, and

    δẍ = b_u + b_ω × x + 2 ψ_ω × ẋ
    displaced:  ψ = c × h + δJ,    b = a_c × h + c × (c × h) + δρ + (c + t_i) × δJ
    faster:     ψ = h,             b = (c + t_i) × h + δρ

So the change of the wrench on a whole composite body (mass m, first moment h, inertia I, ḣ = Σ m ẋ, N = tr P − P with
P = Σ m ẋ xᵀ) needs its sums only:

    δf = m b_u + b_ω × h + 2 ψ_ω × ḣ,      δn = h × b_u + I b_ω + 2 N ψ_ω                                     (a)

Inwards these are the columns of δτ at the ancestors, with h ×* γ, the turning of the wrench itself, for a displacement.
The rows of joint i against its ancestors are the same sums read the other way: H_iᵀ(a) = f₃·b_u + n₃·b_ω + g·ψ_ω with

    [n₃; f₃] = M̃ H_i  (a column of the mass matrix, carried by B_ijᵀ),   g = 2 Nᵀ h_ω + 2 ḣ × h_u,  carried by R

Each column is carried to the ground once, and every entry is a few products there.

Kernels compute long texts in the order in which they are written here, with few registers: therefore one vector after
the other is carried, and every sum is taken where it is used. Of a G1's 10,200 moves between registers and memory
(`kernels.schedule`) that leaves 7,900, of 2.38 µs 2.17 (Zen 3); of a Panda's without fingers 1,637 moves depth-first,
1,103 in this order. One origin for all bodies would take more operations,
18,800 instead of 17,100: in the joints' own frames many numbers are zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.algebra.jets import along
from polybody.algebra.rotations import cross
from polybody.algebra.spatial import bracket
from polybody.formulations.denoc.composite import Composite, composite_to_parent, composite_wrench
from polybody.formulations.denoc.inverse import (
    applied_wrenches,
    inward_forces,
)
from polybody.formulations.denoc.links import Crossing, Link, crossings, links
from polybody.late import dataclass
from polybody.mechanism.forces import joint_passive_forces
from polybody.mechanism.kinematics import rate
from polybody.mechanism.mechanism import GROUND, Mechanism, TreeJoint

Vector = tuple[Array, Array]
Way = list[tuple[Crossing, TreeJoint, Array]]  # crossed joint, the joint before it, its map


@dataclass(frozen=True, eq=False)
class Change:
    """How a body's motion changes: ψ_ω, b_ω, b_u."""

    omega: Array
    beta: Array
    a: Array


@dataclass(frozen=True, eq=False)
class Part:
    """Sums of a composite body: its inertia, ḣ, N and γ, the wrench that crosses its joint."""

    body: Composite
    h_dot: Array
    N: Array
    gamma: Vector


@dataclass(frozen=True, eq=False)
class State:
    """Twist and spatial acceleration of a body at O_i, in its axes."""

    t: Array
    a: Array


@dataclass(frozen=True, eq=False)
class Moved:
    """What a joint's own motion does to its body, and to its map: one entry for each of its columns."""

    displaced: list[Change]
    faster: list[Change]
    maps: list[Array] | None  # δH of each column; None where H is constant


def inverse_dynamics_derivatives(
    mechanism: Mechanism, q: Array, v: Array, a: Array, wrenches: Array | None = None, *, domain: Domain = FLOAT
) -> tuple[Array, Array, Array]:
    """(dtau/dq, dtau/dv, dtau/da) in tangent space; wrenches stay constant in world axes."""
    chain = links(mechanism, domain=domain)
    across = crossings(mechanism, chain, q, domain=domain)
    dq, dv, M = _of_bodies(mechanism, chain, across, q, v, a, domain)
    if mechanism.armature.any():
        M = M + domain.array(mechanism.armature)
    loads = () if wrenches is None else (wrenches,)

    def against(q: Array, v: Array, *loads: Array, domain: Domain) -> Array:
        """What is subtracted from the forces of the bodies: passive forces, wrenches and point springs."""
        force = joint_passive_forces(mechanism, q, v, domain=domain)
        if not loads and not mechanism.sprung:
            return force
        chain = links(mechanism, domain=domain)
        across = crossings(mechanism, chain, q, domain=domain)
        applied = applied_wrenches(mechanism, chain, across, q, v, loads[0] if loads else None, domain)
        assert applied is not None
        return force + inward_forces(mechanism, chain, across, applied, domain)

    still = domain.zeros(mechanism.nv)
    none = tuple(domain.zeros(*load.shape) for load in loads)
    apart = not loads and not mechanism.sprung and not mechanism.motor_damping.any()
    unit = _one_of_each(mechanism, domain) if apart else domain.eye(mechanism.nv)
    turned = [(rate(mechanism, q, e, domain=domain), still, *none) for e in unit]
    faster = [(domain.zeros(mechanism.nq), e, *none) for e in unit]
    found = along(against, (q, v, *loads), turned + faster, domain)
    columns = np.array(found, dtype=domain.dtype).reshape(2, len(unit), mechanism.nv)
    if apart:
        columns = np.array([_of_own(mechanism, rows, domain) for rows in columns], dtype=domain.dtype)
    return dq - columns[0].T, dv - columns[1].T, M


def _one_of_each(mechanism: Mechanism, domain: Domain) -> Array:
    """Directions that change the first velocity of every joint, the second of all that have one, and so on."""
    joints = mechanism.independent_joints
    unit = domain.zeros(max((joint.nv for joint in joints), default=0), mechanism.nv)
    for joint in joints:
        for k in range(joint.nv):
            unit[k, joint.v.start + k] = domain.const(1)
    return unit


def _of_own(mechanism: Mechanism, rows: Array, domain: Domain) -> Array:
    """Derivatives along `_one_of_each` of forces that depend on their own joint only, by columns, (nv, nv)."""
    columns = domain.zeros(mechanism.nv, mechanism.nv)
    for joint in mechanism.independent_joints:
        for k in range(joint.nv):
            columns[joint.v.start + k, joint.v] = rows[k, joint.v]
    return columns


def _of_bodies(
    mechanism: Mechanism, chain: list[Link], across: list[Crossing], q: Array, v: Array, a: Array, domain: Domain
) -> tuple[Array, Array, Array]:
    """The derivatives of what bodies and gravity need."""
    ground = State(domain.zeros(6), np.concatenate([domain.zeros(3), -domain.array(mechanism.gravity)]))
    states: list[State] = []
    moved: list[Moved] = []
    for joint, one, step in zip(mechanism.joints, chain, across, strict=True):
        before = ground if joint.parent == GROUND else states[joint.parent]
        state, changes = _changes(one, step, before, q[joint.q], v[joint.v], a[joint.v], domain=domain)
        states.append(state)
        moved.append(changes)
    matrices = tuple(domain.zeros(mechanism.nv, mechanism.nv) for _ in range(3))
    carried: list[list[tuple[Crossing, Part]]] = [[] for _ in chain]
    for joint in reversed(mechanism.joints):
        i = joint.index
        part = _part(chain[i], states[i], carried[i], domain)
        for k in range(joint.nv):
            _fill(mechanism, across, moved, i, k, part, matrices)
        if joint.parent != GROUND:
            carried[joint.parent].append((across[i], part))
    return matrices[0], matrices[1], matrices[2]


def _changes(
    one: Link, step: Crossing, before: State, q: Array, v: Array, a: Array, *, domain: Domain
) -> tuple[State, Moved]:
    """The motion of body i, and what displacing joint i and changing its velocity do to it."""
    model, H, nv = one.joint.model, step.H, one.joint.nv
    c, a_c = step.twist_to_child(before.t), step.twist_to_child(before.a)
    J = H @ v
    units = domain.eye(nv)
    maps = [model.velocity_map_rate(q, e, domain=domain) for e in units]
    constant = all(domain.is_zero(x) for dH in maps for x in dH.ravel())
    rate = model.velocity_map_rate(q, v, domain=domain)
    rho = H @ a if constant else H @ a + rate @ v
    seconds = _second_rates(one, q, v, units, domain) if not constant else []
    state = State(c + J, a_c + rho + bracket(c, J))
    displaced, faster = [], []
    for k in range(nv):
        h = H[:, k]
        psi = bracket(c, h)
        b = bracket(a_c, h) + bracket(c, psi)
        f = psi + psi if nv == 1 else psi + bracket(state.t, h)  # J × h = 0 where there is one h
        if not constant:
            dJ = maps[k] @ v
            psi = psi + dJ
            b = b + maps[k] @ a + seconds[k] + bracket(c + state.t, dJ)
            f = f + dJ + rate[:, k]
        displaced.append(Change(psi[:3], b[:3], b[3:]))
        faster.append(Change(h[:3], f[:3], f[3:]))
    return state, Moved(displaced, faster, None if constant else maps)


def _second_rates(one: Link, q: Array, v: Array, units: Array, domain: Domain) -> list[Array]:
    """δ(Ḣ v) along each of the joint's directions, v held."""
    model = one.joint.model

    def text(q: Array, v: Array, *, domain: Domain) -> Array:
        return model.velocity_map_rate(q, v, domain=domain) @ v

    ways = [(model.rate(q, e, domain=domain), domain.zeros(len(v))) for e in units]
    return along(text, (q, v), ways, domain)


def _part(one: Link, state: State, carried: Sequence[tuple[Crossing, Part]], domain: Domain) -> Part:
    """The sums of a body and of the composite bodies that its joints carry.

    Of the body's own points ẋ = u + ω × x and ẍ = a + α × x + ω × ẋ, so that P = [ω] (½ tr I − I) + u hᵀ.
    """
    (omega, u), (alpha, a), unit = np.split(state.t, 2), np.split(state.a, 2), domain.eye(3)
    mass, h, inertia = one.mass, one.moment, one.inertia
    half = (inertia[0, 0] + inertia[1, 1] + inertia[2, 2]) / domain.const(2)
    J = unit * half - inertia
    P = np.column_stack([cross(omega, J[:, k]) for k in range(3)]) + np.outer(u, h)
    h_dot, N = cross(omega, h) + u * mass, unit * (u @ h) - P
    n = cross(h, a) + inertia @ alpha + N @ omega
    f = a * mass + cross(alpha, h) + cross(omega, h_dot)
    for step, part in carried:
        more = step.wrench_to_parent(*part.gamma)
        n, f = n + more[0], f + more[1]
    for step, part in carried:
        flow, r = step.to_parent(part.h_dot), step.r
        h_dot, N = h_dot + flow, N + (step.turned_general(part.N) + unit * (flow @ r) - np.outer(flow, r))
    for step, part in carried:
        body = composite_to_parent(step, part.body, domain=domain)
        mass, h, inertia = mass + body.mass, h + body.h, inertia + body.inertia
    return Part(Composite(mass, h, inertia), h_dot, N, (n, f))


def _wrench_change(part: Part, change: Change) -> Vector:
    """(a)."""
    body, twice = part.body, change.omega + change.omega
    n = cross(body.h, change.a) + body.inertia @ change.beta + part.N @ twice
    return n, change.a * body.mass + cross(change.beta, body.h) + cross(twice, part.h_dot)


def _fill(
    mechanism: Mechanism, across: list[Crossing], moved: list[Moved], start: int, k: int, part: Part,
    matrices: Sequence[Array],
) -> None:  # fmt: skip
    """The entries of one column of joint `start` against itself and its ancestors, and of its row likewise.

    One vector after the other goes inwards: all together are more numbers than a processor has registers.
    """
    dq, dv, M = matrices
    joint, own, H = mechanism.joints[start], moved[start], across[start].H
    column, way = joint.v.start + k, _inwards(mechanism, across, start)
    h_w, h_u, (n, f) = H[:3, k], H[3:, k], part.gamma
    turned = _wrench_change(part, own.displaced[k])
    _add_along(dq, joint, H, column, turned)
    if own.maps is not None:
        _add_along(dq, joint, own.maps[k], column, part.gamma)
    turned = turned[0] + cross(h_w, n) + cross(h_u, f), turned[1] + cross(h_w, f)
    _add_inwards(dq, way, column, turned)
    faster = _wrench_change(part, own.faster[k])
    _add_along(dv, joint, H, column, faster)
    _add_inwards(dv, way, column, faster)
    n3, f3 = composite_wrench(part.body, H[:, k])
    _add_along(M, joint, H, column, (n3, f3))
    g = (part.N.T @ h_w + cross(part.h_dot, h_u)) * 2.0
    for step, above, H in way:
        n3, f3 = step.wrench_to_parent(n3, f3)
        g = step.to_parent(g)
        for row in range(above.nv):
            at, changes = above.v.start + row, moved[above.index]
            value = _along(H, row, (n3, f3))
            M[at, column] = M[at, column] + value
            M[column, at] = M[column, at] + value  # joints that share a slot meet on its diagonal twice
            for result, change in ((dq, changes.displaced[row]), (dv, changes.faster[row])):
                felt = f3 @ change.a + n3 @ change.beta + g @ change.omega
                result[column, at] = result[column, at] + felt


def _inwards(mechanism: Mechanism, across: list[Crossing], i: int) -> Way:
    """The way from joint i to the ground."""
    way = []
    while (j := mechanism.joints[i].parent) != GROUND:
        way.append((across[i], mechanism.joints[j], across[j].H))
        i = j
    return way


def _add_inwards(result: Array, way: Way, column: int, wrench: Vector) -> None:
    """A column's entries at the ancestors, by a wrench that goes inwards."""
    for step, above, H in way:
        wrench = step.wrench_to_parent(*wrench)
        _add_along(result, above, H, column, wrench)


def _add_along(result: Array, joint: TreeJoint, H: Array, column: int, wrench: Vector) -> None:
    for row in range(joint.nv):
        at = joint.v.start + row
        result[at, column] = result[at, column] + _along(H, row, wrench)


def _along(H: Array, row: int, wrench: Vector) -> Any:
    return H[:3, row] @ wrench[0] + H[3:, row] @ wrench[1]


__all__ = ["inverse_dynamics_derivatives"]
