"""Active and passive columns together, in O(n): the articulated recursion of the spatial operator algebra.

Each column of Φ is either given its acceleration (active, in the paper's use) or given its force (passive). Splitting
Φ_i = [Φ_a Φ_p], the wrench that joint i transmits is affine in the acceleration α = X V̇_{i−1} it is carried with,

    f_i = P_i V̇_i + z_i,     V̇_i = α + ζ'_i + Φ_p a_p,     ζ' = ζ + Φ_a a_a
    D = Φ_pᵀ P Φ_p + A_pp,   G = P Φ_p D⁻¹,   ε = τ_p − Φ_pᵀ(P ζ' + z) − A_pa a_a
    f_i = P⁺ α + z⁺,         P⁺ = P − G D Gᵀ,   z⁺ = z + P ζ' + G ε
    P_{i−1} += XᵀP⁺X,        z_{i−1} += Xᵀ z⁺;     outwards  a_p = D⁻¹ε − Gᵀα

A is the armature. Joints that share coordinates or rotors are one joint with as many columns as they have slots between
them (see `super_joint`). With every column active it is inverse dynamics, with none forward dynamics; with the base's
six columns passive and the arms' active it is (28) with (26), whose M_a − M_apᵀM_p⁻¹M_ap is never formed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.errors import PolybodyError
from polybody.formulations.operators.sweeps import State, composite_mass_matrix, inverse, state
from polybody.late import dataclass
from polybody.mechanism.forces import joint_passive_forces
from polybody.mechanism.groups import Group
from polybody.mechanism.mechanism import GROUND, Mechanism


@dataclass(frozen=True, eq=False)
class Articulation:
    """What the inward sweep leaves at a joint: passive columns, D⁻¹, G, D⁻¹ε, and P⁺, z⁺ that the parent feels.

    At a group the columns are those of its slots, and G, P⁺ and z⁺ are at the base it stands on.
    """

    passive: list[int]  # columns of this joint
    G: Array
    D_inverse: Array
    rest: Array  # D⁻¹ ε
    P_plus: Array
    z_plus: Array
    P: Array
    z: Array


def _inverse(matrix: Array, *, domain: Domain) -> Array:
    if matrix.shape[0] == 1:
        return np.array([[domain.const(1) / matrix[0, 0]]], dtype=matrix.dtype)
    return domain.solve(matrix, domain.eye(matrix.shape[0]))


def articulate(
    Phi: Array, P: Array, z: Array, shift: Array, tau: Array, A: Array, passive: list[int], name: str, domain: Domain
) -> Articulation:
    """One joint of the inward sweep: `shift` is ζ', `tau` the passive force less A_pa a_a, A the armature A_pp."""
    moved = P @ shift
    if not passive:
        none = domain.zeros(6, 0)
        return Articulation(passive, none, domain.zeros(0, 0), domain.zeros(0), P, z + moved, P, z)
    columns = Phi[:, passive]
    U = P @ columns
    D = columns.T @ U + A
    check_inertia(D, name, domain)
    D_inverse = _inverse(D, domain=domain)
    G = U @ D_inverse
    epsilon = tau - columns.T @ (moved + z)
    P_plus = np.empty((6, 6), dtype=P.dtype)
    for i in range(6):
        for j in range(i, 6):
            P_plus[i, j] = P_plus[j, i] = P[i, j] - G[i] @ U[j]
    return Articulation(passive, G, D_inverse, D_inverse @ epsilon, P_plus, z + moved + G @ epsilon, P, z)


def _articulate_group(
    whole: SuperJoint,
    known: list[int],
    free: list[int],
    a: Array,
    tau: Array,
    A: Array,
    name: str,
    domain: Domain,
) -> Articulation:
    """A group in the inward sweep: the known accelerations `a` become bias, the free slots are eliminated."""
    e, z = whole.e, whole.z
    if known:
        e, z = e + whole.D[:, known] @ a, z + whole.F[:, known] @ a
    if not free:
        none = domain.zeros(6, 0)
        return Articulation(free, none, domain.zeros(0, 0), domain.zeros(0), whole.P, z, whole.P, z)
    F, D = whole.F[:, free], whole.D[np.ix_(free, free)] + A
    check_inertia(D, name, domain)
    D_inverse = _inverse(D, domain=domain)
    G, epsilon = F @ D_inverse, tau - e[free]
    P_plus = np.empty((6, 6), dtype=D.dtype)
    for i in range(6):
        for j in range(i, 6):
            P_plus[i, j] = P_plus[j, i] = whole.P[i, j] - G[i] @ F[j]
    return Articulation(free, G, D_inverse, D_inverse @ epsilon, P_plus, z + G @ epsilon, whole.P, z)


def check_inertia(D: Array, name: str, domain: Domain) -> None:
    """A joint along which nothing beyond has inertia cannot be given a force."""
    singular = domain.is_zero(D[0, 0])
    if domain is FLOAT and not singular:
        values = np.linalg.eigvalsh(D)
        singular = values[0] <= 1e-14 * max(values[-1], 0.0)
    if singular:
        raise PolybodyError(
            f"the mass matrix is singular at joint {name!r}: nothing beyond it has inertia along its motion; "
            "give its body mass and inertia, the joint an armature, or make the joint active"
        )


@dataclass(frozen=True, eq=False)
class SuperJoint:
    """A group of joints as one joint on its base A, at A's origin.

    With u the accelerations of the slots and α = V̇_A, what the group exerts on its slots and what A feels of it are

        D u + Fᵀα + e       and       P α + F u + z.
    """

    D: Array
    F: Array
    e: Array
    P: Array
    z: Array


def super_joint(at: State, group: Group, P: list[Array], z: list[Array]) -> SuperJoint:
    """The group with everything beyond it eliminated; `P` and `z` are those of its links."""
    mechanism, domain, size = at.mechanism, at.domain, len(group.slots)
    place = {slot: k for k, slot in enumerate(group.slots)}
    D, e = domain.zeros(size, size), domain.zeros(size)
    inertia = {i: P[i] for i in group.joints} | {group.base: domain.zeros(6, 6)}
    columns = {i: domain.zeros(6, size) for i in inertia}
    bias = {i: z[i] for i in group.joints} | {group.base: domain.zeros(6)}
    for i in reversed(group.joints):
        joint, step = mechanism.joints[i], at.across[i]
        own = [place[k] for k in range(joint.v.start, joint.v.stop)]
        bias[i] = bias[i] + inertia[i] @ at.zeta[i]
        e = e + columns[i].T @ at.zeta[i]  # the joints beyond are carried along
        e[own] = e[own] + step.Phi.T @ bias[i]
        below, needed = step.Phi.T @ columns[i], inertia[i] @ step.Phi
        D[own, :] = D[own, :] + below
        D[:, own] = D[:, own] + below.T
        D[np.ix_(own, own)] = D[np.ix_(own, own)] + step.Phi.T @ needed
        columns[i][:, own] = columns[i][:, own] + needed
        inertia[joint.parent] = inertia[joint.parent] + step.pull_inertia(inertia[i])
        columns[joint.parent] = columns[joint.parent] + step.pull_columns(columns[i])
        bias[joint.parent] = bias[joint.parent] + step.pull(bias[i])
    return SuperJoint(D, columns[group.base], e, inertia[group.base], bias[group.base])


def inward(at: State, given: Array, a: Array, tau: Array) -> dict[Group, Articulation]:
    """Articulated inertias and wrenches from the tips to the ground; `given` marks columns whose a is known."""
    mechanism, domain = at.mechanism, at.domain
    P, z = list(at.M), list(at.b)
    A = domain.array(mechanism.armature)
    result: dict[Group, Articulation] = {}
    for group in reversed(mechanism.groups):
        slots = list(group.slots)
        known = [k for k, slot in enumerate(slots) if given[slot]]
        free = [k for k, slot in enumerate(slots) if not given[slot]]
        force, block = tau[slots][free], A[np.ix_(slots, slots)]
        if known and free:
            force = force - block[np.ix_(free, known)] @ a[slots][known]
        armature = block[np.ix_(free, free)]
        if not group.alone:
            name = " or ".join(dict.fromkeys(mechanism.owner(slot).name for slot in slots))
            result[group] = part = _articulate_group(
                super_joint(at, group, P, z), known, free, a[slots][known], force, armature, name, domain
            )
            if group.base != GROUND:
                P[group.base] = P[group.base] + part.P_plus
                z[group.base] = z[group.base] + part.z_plus
            continue
        i = group.first
        Phi, shift = at.across[i].Phi, at.zeta[i]
        if known:
            shift = shift + Phi[:, known] @ a[slots][known]
        result[group] = part = articulate(
            Phi, P[i], z[i], shift, force, armature, free, mechanism.joints[i].name, domain
        )
        if group.base != GROUND:
            P[group.base] = P[group.base] + at.across[i].pull_inertia(part.P_plus)
            z[group.base] = z[group.base] + at.across[i].pull(part.z_plus)
    return result


def outward(
    at: State, parts: dict[Group, Articulation], given: Array, a: Array, start: Array
) -> tuple[Array, list[Array]]:
    """(accelerations of all columns, V̇ of all links) once the ground's acceleration is known."""
    mechanism, domain = at.mechanism, at.domain
    full = domain.zeros(mechanism.nv)
    V_dot: list[Array] = [start] * len(mechanism.joints)

    def before(body: int) -> Array:
        return start if body == GROUND else V_dot[body]

    for group in mechanism.groups:
        part, slots = parts[group], list(group.slots)
        alpha = before(group.base)
        if group.alone:
            alpha = at.across[group.first].carry(alpha)
        for slot in slots:
            if given[slot]:
                full[slot] = a[slot]
        if part.passive:
            full[[slots[k] for k in part.passive]] = part.rest - part.G.T @ alpha
        for i in group.joints:
            joint = mechanism.joints[i]
            carried = alpha if group.alone else at.across[i].carry(before(joint.parent))
            V_dot[i] = carried + at.zeta[i] + at.across[i].Phi @ full[joint.v]
    return full, V_dot


def hybrid_dynamics(
    mechanism: Mechanism,
    q: Array,
    v: Array,
    given: Any,
    a: Array,
    tau: Array,
    wrenches: Array | None = None,
    *,
    domain: Domain = FLOAT,
) -> tuple[Array, Array]:
    """(a, tau) of all columns: where `given` is true a is taken and tau follows, elsewhere the other way round."""
    given = np.asarray(given, dtype=bool)
    if given.all():
        return a, inverse_dynamics(mechanism, q, v, a, wrenches, domain=domain)
    at = state(mechanism, q, v, wrenches, domain=domain)
    springs = joint_passive_forces(mechanism, q, v, domain=domain)
    full, _ = outward(at, inward(at, given, a, tau + springs), given, a, at.ground)
    if not given.any():
        return full, tau
    needed = inverse(at, full) + domain.array(mechanism.armature) @ full - springs
    result = np.array([needed[k] if given[k] else tau[k] for k in range(mechanism.nv)], dtype=needed.dtype)
    return full, result


def inverse_dynamics(
    mechanism: Mechanism, q: Array, v: Array, a: Array, wrenches: Array | None = None, *, domain: Domain = FLOAT
) -> Array:
    """tau = M a + C v + g − passive − Σ Jᵀ w, by (11), (15), (19)."""
    tau = inverse(state(mechanism, q, v, wrenches, domain=domain), a)
    if mechanism.armature.any():
        tau = tau + domain.array(mechanism.armature) @ a
    return tau - joint_passive_forces(mechanism, q, v, domain=domain)


def forward_dynamics(
    mechanism: Mechanism, q: Array, v: Array, tau: Array, wrenches: Array | None = None, *, domain: Domain = FLOAT
) -> Array:
    """a = M⁻¹ (tau + passive + Σ Jᵀ w − C v − g): every column passive."""
    given = np.zeros(mechanism.nv, dtype=bool)
    return hybrid_dynamics(mechanism, q, v, given, domain.zeros(mechanism.nv), tau, wrenches, domain=domain)[0]


def mass_matrix(mechanism: Mechanism, q: Array, *, domain: Domain = FLOAT) -> Array:
    """Φᵀ Xᵀ M_q X Φ, armature included."""
    return composite_mass_matrix(mechanism, q, domain=domain)


def bias_forces(mechanism: Mechanism, q: Array, v: Array, *, domain: Domain = FLOAT) -> Array:
    """C v + gravity: Φᵀ Xᵀ (M_q V̇ + b) of the motion with a = 0."""
    return inverse(state(mechanism, q, v, domain=domain, springs=False), None)


__all__ = [
    "Articulation",
    "articulate",
    "bias_forces",
    "check_inertia",
    "forward_dynamics",
    "hybrid_dynamics",
    "inverse_dynamics",
    "inward",
    "mass_matrix",
    "outward",
]
