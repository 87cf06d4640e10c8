"""Derivatives of inverse dynamics in tangent space, by the recursions of `inverse` differentiated by hand.

A joint j is displaced along column h = [h_ω; h_u] of its map (then H changes too, by δH), or its velocity is changed
along it, or its acceleration. Let δω, δα, δa be the changes of its body's motion in its own axes. With c = Rᵀω of the
parent, α_c and A likewise (A with E r), E_c = [α_c] + [c][c], ω_J and u the joint's own twist and ρ = H a + Ḣ v:

    displaced:  δω = c × h_ω + δω_J        δω_J, δu = δH v,   δρ = δH a + δ(Ḣ v)
                δα = α_c × h_ω + δρ_ω + (c × h_ω) × ω_J + c × δω_J
                δa = A × h_ω + E_c h_u + δρ_u + (c × h_ω + δω) × u + (c + ω) × δu
    faster:     δω = h_ω,   δα = δρ_ω + c × h_ω,   δa = δρ_u + h_ω × u + (c + ω) × h_u

β = δα − δω × ω is carried outwards as a vector, for δE = [β] + 2[δω][ω]. So the change of the wrench on a whole
composite body (mass m, first moment h, inertia I; Σ m ẋ = ḣ and P = Σ m ẋ xᵀ of its points, rates in inertial
space from its origin) needs its sums only:

    δf = m δa + β × h + 2 δω × ḣ,      δn = h × δa + I β + 2 (tr P − P) δω                                   (a)

Inwards these are the columns of δτ at the ancestors, with h ×* γ, the turning of the wrench itself, for a displacement.
The rows of joint i against its ancestors are the same sums read the other way: H_iᵀ(a) = f₃·δa + n₃·β + g·δω with

    [n₃; f₃] = M̃ H_i  (a column of the mass matrix, carried by B_ijᵀ),   g = 2 (tr P − Pᵀ) h_ω + 2 ḣ × h_u,
    g_j = R g + 2 ṙ × f₃

Each column is carried to the ground once, and every entry is a few products there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.algebra.jets import along
from polybody.algebra.rotations import cross
from polybody.formulations.denoc.composite import Composite, composite_wrench, composites
from polybody.formulations.denoc.inverse import (
    Motion,
    applied_wrenches,
    body_wrench,
    ground_motion,
    inward_forces,
    outward_motion,
    spin_matrix,
)
from polybody.formulations.denoc.links import Crossing, Link, crossings, links
from polybody.mechanism.forces import joint_passive_forces
from polybody.mechanism.kinematics import rate
from polybody.mechanism.mechanism import GROUND, Mechanism

Vector = tuple[Array, Array]


@dataclass(frozen=True, eq=False)
class Change:
    """How a body's motion changes: δω, β = δα − δω × ω, δa."""

    omega: Array
    beta: Array
    a: Array


@dataclass(frozen=True, eq=False)
class Flow:
    """Σ m ẋ and P = Σ m ẋ xᵀ of a composite body."""

    h_dot: Array
    P: Array


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

    unit, still = domain.eye(mechanism.nv), domain.zeros(mechanism.nv)
    none = tuple(domain.zeros(*load.shape) for load in loads)
    turned = [(rate(mechanism, q, e, domain=domain), still, *none) for e in unit]
    faster = [(domain.zeros(mechanism.nq), e, *none) for e in unit]
    found = along(against, (q, v, *loads), turned + faster, domain)
    columns = np.array(found, dtype=domain.dtype).reshape(2, mechanism.nv, mechanism.nv)
    return dq - columns[0].T, dv - columns[1].T, M


def _of_bodies(
    mechanism: Mechanism, chain: list[Link], across: list[Crossing], q: Array, v: Array, a: Array, domain: Domain
) -> tuple[Array, Array, Array]:
    """The derivatives of what bodies and gravity need."""
    ground = ground_motion(domain.array(mechanism.gravity), domain=domain)
    motions: list[Motion] = []
    moved: list[Moved] = []
    slides: list[Array] = []
    for joint, one, step in zip(mechanism.joints, chain, across, strict=True):
        before = ground if one.parent == GROUND else motions[one.parent]
        own = q[joint.q], v[joint.v], a[joint.v]
        motions.append(outward_motion(one, step, before, *own, domain=domain))
        changes, slide = _changes(one, step, before, motions[-1], *own, domain=domain)
        moved.append(changes)
        slides.append(slide)
    wrenches = _gathered(chain, across, [body_wrench(one, x) for one, x in zip(chain, motions, strict=True)])
    parts = composites(chain, across, domain=domain)
    flows = _flows(chain, across, motions, slides, parts, domain)
    matrices = tuple(domain.zeros(mechanism.nv, mechanism.nv) for _ in range(3))
    for joint in mechanism.joints:
        for k in range(joint.nv):
            _fill(mechanism, across, slides, moved, joint.index, k, parts, flows, wrenches[joint.index], matrices)
    return matrices[0], matrices[1], matrices[2]


def _changes(
    one: Link, step: Crossing, before: Motion, motion: Motion, q: Array, v: Array, a: Array, *, domain: Domain
) -> tuple[Moved, Array]:
    """What displacing joint i and changing its velocity do to its body, and ṙ, the velocity of O_i from O_j."""
    model, H = one.joint.model, step.H
    twist = H @ v
    omega_J, u = twist[:3], twist[3:]
    c, alpha_c = step.to_child(before.omega), step.to_child(before.alpha)
    E_j = spin_matrix(before.omega, before.alpha)
    shifted = step.to_child(before.a if one.parent == GROUND else before.a + E_j @ step.r)
    E_c = spin_matrix(c, alpha_c)
    slide = cross(before.omega, step.r) + step.to_parent(u)
    units = domain.eye(one.joint.nv)
    maps = [model.velocity_map_rate(q, e, domain=domain) for e in units]
    constant = all(domain.is_zero(x) for dH in maps for x in dH.ravel())
    seconds = _second_rates(one, q, v, units, domain) if not constant else []
    own_rate = model.velocity_map_rate(q, v, domain=domain)
    displaced, faster = [], []
    for k in range(one.joint.nv):
        h_w, h_u = H[:3, k], H[3:, k]
        turned = cross(c, h_w)
        d_omega, d_alpha = turned, cross(alpha_c, h_w) + cross(turned, omega_J)
        d_a = cross(shifted, h_w) + E_c @ h_u + cross(turned + turned, u)
        f_alpha, f_a = cross(c, h_w), cross(h_w, u) + cross(c + motion.omega, h_u)
        if not constant:
            x, rho = maps[k] @ v, maps[k] @ a + seconds[k]
            d_omega = d_omega + x[:3]
            d_alpha = d_alpha + rho[:3] + cross(c, x[:3])
            d_a = d_a + rho[3:] + cross(x[:3], u) + cross(c + motion.omega, x[3:])
            y = maps[k] @ v + own_rate[:, k]
            f_alpha, f_a = f_alpha + y[:3], f_a + y[3:]
        displaced.append(Change(d_omega, d_alpha - cross(d_omega, motion.omega), d_a))
        faster.append(Change(h_w, f_alpha - cross(h_w, motion.omega), f_a))
    return Moved(displaced, faster, None if constant else maps), slide


def _second_rates(one: Link, q: Array, v: Array, units: Array, domain: Domain) -> list[Array]:
    """δ(Ḣ v) along each of the joint's directions, v held."""
    model = one.joint.model

    def text(q: Array, v: Array, *, domain: Domain) -> Array:
        return model.velocity_map_rate(q, v, domain=domain) @ v

    ways = [(model.rate(q, e, domain=domain), domain.zeros(len(v))) for e in units]
    return along(text, (q, v), ways, domain)


def _gathered(chain: list[Link], across: list[Crossing], wrenches: Sequence[Vector]) -> list[Vector]:
    """γ_i, the wrench that crosses each joint, in axes of its body."""
    gamma = list(wrenches)
    for i in reversed(range(len(chain))):
        j = chain[i].parent
        if j != GROUND:
            n, f = across[i].wrench_to_parent(*gamma[i])
            gamma[j] = (gamma[j][0] + n, gamma[j][1] + f)
    return gamma


def _flows(
    chain: list[Link], across: list[Crossing], motions: list[Motion], slides: list[Array], parts: list[Composite],
    domain: Domain,
) -> list[Flow]:  # fmt: skip
    """ḣ and P of every composite body: of one body ḣ = ω × h, P = [ω] (½ tr I − I)."""
    flows = []
    for one, motion in zip(chain, motions, strict=True):
        half = (one.inertia[0, 0] + one.inertia[1, 1] + one.inertia[2, 2]) / domain.const(2)
        J = domain.eye(3) * half - one.inertia
        P = np.column_stack([cross(motion.omega, J[:, k]) for k in range(3)])
        flows.append(Flow(cross(motion.omega, one.moment), P))
    for i in reversed(range(len(chain))):
        j = chain[i].parent
        if j != GROUND:
            step, slide, part = across[i], slides[i], parts[i]
            h_dot = step.to_parent(flows[i].h_dot) + slide * part.mass
            P = step.turned_general(flows[i].P) + np.outer(h_dot, step.r) + np.outer(slide, step.to_parent(part.h))
            flows[j] = Flow(flows[j].h_dot + h_dot, flows[j].P + P)
    return flows


def _wrench_change(part: Composite, flow: Flow, spread: Any, change: Change) -> Vector:
    """(a); `spread` is tr P."""
    twice = change.omega + change.omega
    n = cross(part.h, change.a) + part.inertia @ change.beta + twice * spread - flow.P @ twice
    return n, change.a * part.mass + cross(change.beta, part.h) + cross(twice, flow.h_dot)


def _fill(
    mechanism: Mechanism, across: list[Crossing], slides: list[Array], moved: list[Moved], start: int, k: int,
    parts: list[Composite], flows: list[Flow], gamma: Vector, matrices: Sequence[Array],
) -> None:  # fmt: skip
    """The entries of one column of joint `start` against itself and its ancestors, and of its row likewise."""
    dq, dv, M = matrices
    joint, step, part, flow = mechanism.joints[start], across[start], parts[start], flows[start]
    column, H = joint.v.start + k, across[start].H
    h_w, h_u = H[:3, k], H[3:, k]
    spread = flow.P[0, 0] + flow.P[1, 1] + flow.P[2, 2]
    turned = _wrench_change(part, flow, spread, moved[start].displaced[k])
    faster = _wrench_change(part, flow, spread, moved[start].faster[k])
    n3, f3 = composite_wrench(part, H[:, k])
    for row in range(joint.nv):
        at = joint.v.start + row
        dq[at, column] = dq[at, column] + _along(H, row, turned)
        dv[at, column] = dv[at, column] + _along(H, row, faster)
        M[at, column] = M[at, column] + _along(H, row, (n3, f3))
        maps = moved[start].maps
        if maps is not None:
            dq[at, column] = dq[at, column] + _along(maps[k], row, gamma)
    n, f = gamma
    turned = turned[0] + cross(h_w, n) + cross(h_u, f), turned[1] + cross(h_w, f)
    g = (h_w * spread - flow.P.T @ h_w + cross(flow.h_dot, h_u)) * 2.0
    i = start
    while mechanism.joints[i].parent != GROUND:
        step, slide = across[i], slides[i]
        turned, faster = step.wrench_to_parent(*turned), step.wrench_to_parent(*faster)
        n3, f3 = step.wrench_to_parent(n3, f3)
        g = step.to_parent(g) + cross(slide + slide, f3)
        i = mechanism.joints[i].parent
        above, H = mechanism.joints[i], across[i].H
        for row in range(above.nv):
            at = above.v.start + row
            dq[at, column] = dq[at, column] + _along(H, row, turned)
            dv[at, column] = dv[at, column] + _along(H, row, faster)
            value = _along(H, row, (n3, f3))
            M[at, column] = M[at, column] + value
            M[column, at] = M[column, at] + value  # joints that share a slot meet on its diagonal twice
            for result, change in ((dq, moved[i].displaced[row]), (dv, moved[i].faster[row])):
                felt = f3 @ change.a + n3 @ change.beta + g @ change.omega
                result[column, at] = result[column, at] + felt


def _along(H: Array, row: int, wrench: Vector) -> Any:
    return H[:3, row] @ wrench[0] + H[3:, row] @ wrench[1]


__all__ = ["inverse_dynamics_derivatives"]
