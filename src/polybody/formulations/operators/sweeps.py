"""The operators X, Xᵀ, X_b and X_bᵀ applied, never formed: one sweep outwards, one sweep inwards, O(n).

X is block lower triangular (causal): X u accumulates from the ground to the tips. Xᵀ is anticausal: Xᵀ f accumulates
from the tips to the ground. Here the base is a link like the others, moved by its own joint, so that X of all links
holds X_b in its first block column; `named` takes it apart as the paper does.

Gravity enters as an acceleration of the ground: V̇_0 = [0; −g], and every V̇ below is then V̇_i − [0; R_iᵀg].
"""

from __future__ import annotations

import numpy as np

from polybody.algebra.domains import Array, Domain
from polybody.algebra.spatial import bracket
from polybody.formulations.operators.links import Crossing, bias_wrench, crossings, link_inertias
from polybody.late import dataclass
from polybody.mechanism.forces import spring_wrenches
from polybody.mechanism.kinematics import body_poses, body_twists
from polybody.mechanism.mechanism import GROUND, Mechanism


@dataclass(frozen=True, eq=False)
class State:
    """A mechanism at (q, v): what every algorithm here starts from. Lists run over the links."""

    mechanism: Mechanism
    across: list[Crossing]
    M: list[Array]
    V: list[Array]
    zeta: list[Array]  # the part of V̇_i that comes from velocities
    b: list[Array]  # bias wrench less what acts on the link from outside
    ground: Array  # V̇ of the ground: [0; −g]
    domain: Domain


def ground_acceleration(gravity: Array, *, domain: Domain) -> Array:
    return np.concatenate([domain.zeros(3), -domain.array(gravity)])


def causal(mechanism: Mechanism, across: list[Crossing], own: list[Array], start: Array | None = None) -> list[Array]:
    """X u + X_b u_0: u_i carried outwards; `start` belongs to the ground."""
    result: list[Array] = []
    for joint, step, u in zip(mechanism.joints, across, own, strict=True):
        before = start if joint.parent == GROUND else result[joint.parent]
        result.append(u if before is None else u + step.carry(before))
    return result


def anticausal(mechanism: Mechanism, across: list[Crossing], wrenches: list[Array]) -> list[Array]:
    """Xᵀ f: wrenches gathered inwards; entry i is what joint i transmits."""
    total = list(wrenches)
    for joint in reversed(mechanism.joints):
        if joint.parent != GROUND:
            total[joint.parent] = total[joint.parent] + across[joint.index].pull(total[joint.index])
    return total


def project(mechanism: Mechanism, across: list[Crossing], transmitted: list[Array], *, domain: Domain) -> Array:
    """Φᵀ f; where joints share a slot, their forces add up."""
    tau = domain.zeros(mechanism.nv)
    for joint, step, f in zip(mechanism.joints, across, transmitted, strict=True):
        tau[joint.v] = tau[joint.v] + step.Phi.T @ f
    return tau


def applied_wrenches(
    mechanism: Mechanism, q: Array, v: Array, wrenches: Array | None, *, domain: Domain
) -> list[Array] | None:
    """External wrenches (world axes) and point springs on each link, in link axes; None where nothing acts."""
    if wrenches is None and not mechanism.sprung:
        return None
    poses = body_poses(mechanism, q, domain=domain)
    total = [domain.zeros(6) if wrenches is None else wrenches[i] for i in range(len(poses))]
    if mechanism.sprung:
        twists = body_twists(mechanism, q, v, domain=domain)
        for i, w in enumerate(spring_wrenches(mechanism, poses, twists, domain=domain)):
            total[i] = total[i] if w is None else total[i] + w
    return [np.concatenate([R.T @ w[:3], R.T @ w[3:]]) for (R, _), w in zip(poses, total, strict=True)]


def state(
    mechanism: Mechanism,
    q: Array,
    v: Array,
    wrenches: Array | None = None,
    *,
    domain: Domain,
    springs: bool = True,
) -> State:
    """Velocities (11), velocity products and bias wrenches at (q, v); without `springs` no point spring acts."""
    across = crossings(mechanism, q, domain=domain)
    M = link_inertias(mechanism, domain=domain)
    own = [step.Phi @ v[joint.v] for joint, step in zip(mechanism.joints, across, strict=True)]
    V = causal(mechanism, across, own)
    zeta = []
    for joint, u, twist in zip(mechanism.joints, own, V, strict=True):
        rate = joint.model.velocity_map_rate(q[joint.q], v[joint.v], domain=domain) @ v[joint.v]
        zeta.append(rate if joint.parent == GROUND else rate + bracket(twist, u))
    b = [bias_wrench(twist, inertia) for twist, inertia in zip(V, M, strict=True)]
    outside = applied_wrenches(mechanism, q, v, wrenches, domain=domain) if springs else None
    if outside is not None:
        b = [own_b - w for own_b, w in zip(b, outside, strict=True)]
    ground = ground_acceleration(mechanism.gravity, domain=domain)
    return State(mechanism, across, M, V, zeta, b, ground, domain)


def inverse(at: State, a: Array | None) -> Array:
    """Φᵀ Xᵀ (M_q V̇ + b): joint forces of a motion, without armature and joint springs (19)."""
    mechanism, across = at.mechanism, at.across
    own = list(at.zeta)
    if a is not None:
        own = [z + step.Phi @ a[j.v] for j, step, z in zip(mechanism.joints, across, own, strict=True)]
    V_dot = causal(mechanism, across, own, at.ground)
    needed = [M @ rate + b for M, rate, b in zip(at.M, V_dot, at.b, strict=True)]
    return project(mechanism, across, anticausal(mechanism, across, needed), domain=at.domain)


def composite_mass_matrix(mechanism: Mechanism, q: Array, *, domain: Domain) -> Array:
    """Φᵀ Xᵀ M_q X Φ + armature: composite inertias inwards, then each joint's wrench carried to its supports."""
    across = crossings(mechanism, q, domain=domain)
    composite = link_inertias(mechanism, domain=domain)
    M = domain.array(mechanism.armature)
    for joint in reversed(mechanism.joints):
        i = joint.index
        F = composite[i] @ across[i].Phi
        M[joint.v, joint.v] = M[joint.v, joint.v] + across[i].Phi.T @ F
        if joint.parent != GROUND:
            composite[joint.parent] = composite[joint.parent] + across[i].pull_inertia(composite[i])
        while mechanism.joints[i].parent != GROUND:
            F = across[i].pull_columns(F)
            i = mechanism.joints[i].parent
            above = mechanism.joints[i].v
            block = across[i].Phi.T @ F
            M[above, joint.v] = M[above, joint.v] + block
            M[joint.v, above] = M[joint.v, above] + block.T
    return M


__all__ = [
    "State",
    "anticausal",
    "applied_wrenches",
    "causal",
    "composite_mass_matrix",
    "ground_acceleration",
    "inverse",
    "project",
    "state",
]
