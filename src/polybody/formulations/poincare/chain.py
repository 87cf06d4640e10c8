"""Velocities, momenta and the chain inertia matrix, (44)-(52), for any tree.

Body k is moved by joint k from body j = parent(k); (R, r) is its pose there and H its joint map in its own frame. Its
velocity, in its own frame, at its origin:

    V(k) = φ(k, j) V(j) + H(k) β(k),      φ(k, j) [ω; v] = [Rᵀω; Rᵀ(v + ω × r)]                          (46)-(47)

(r from O_j to O_k includes the joint's own translation; the paper, whose joints only turn, leaves it out.) With M_o the
spatial inertia about O_k (48), a from O to the mass centre as the errata have it, ∂T/∂p and the chain inertia are

    𝓜 p = HᵀΦᵀ M Φ H p,      𝓜 = HᵀΦᵀ M Φ H                                                              (50)-(52)

𝓜 is evaluated from the tips inwards: ΦᵀMΦ has the composite inertia of the bodies outboard of k on its diagonal, and
φ carries it to the other blocks. Only the angles outboard of k enter, so symbols never have to cancel.

Derivatives along a quasi-velocity need no coordinates: by X⁻¹Ẋ = H β, moving along d turns (R, r) at the rate
(R[h_ω], R h_v) with h = H d, and H at its own rate. `moved_states` gives these as jets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.algebra.jets import BundleDomain, JetDomain
from polybody.algebra.rotations import cross, skew
from polybody.mechanism.kinematics import relative_pose
from polybody.mechanism.mechanism import GROUND, Mechanism, TreeBody


@dataclass(frozen=True, eq=False)
class JointState:
    """A joint at its configuration: pose (R, r) of its body in the parent's frame, and joint map H (6×nv)."""

    R: Array
    r: Array
    H: Array

    def outward(self, V: Array) -> Array:
        """φ(k, j) V: the parent's velocity as the body at O_k sees it, (46)."""
        return np.concatenate([self.R.T @ V[:3], self.R.T @ (V[3:] + cross(V[:3], self.r))])

    def inward(self, w: Array) -> Array:
        """φ(k, j)ᵀ w."""
        f = self.R @ w[3:]
        return np.concatenate([self.R @ w[:3] + cross(self.r, f), f])


@dataclass(frozen=True, eq=False)
class Composite:
    """Mass, first moment about O and inertia about O of one body or of several: the content of M_o, (48)."""

    mass: Any
    h: Array
    I: Array

    def times(self, V: Array) -> Array:
        """M_o V = [I ω + h × v; m v − h × ω]."""
        return np.concatenate([self.I @ V[:3] + cross(self.h, V[3:]), V[3:] * self.mass - cross(self.h, V[:3])])

    def carried(self, state: JointState, domain: Domain) -> Composite:
        """φᵀ M_o φ: the same bodies about the parent's origin, in its axes."""
        h = state.R @ self.h
        arm, moment = skew(state.r, domain=domain), skew(h, domain=domain)
        cross_terms = arm @ moment
        inertia = state.R @ self.I @ state.R.T - cross_terms - cross_terms.T - (arm @ arm) * self.mass
        return Composite(self.mass, h + state.r * self.mass, inertia)

    def joined(self, other: Composite) -> Composite:
        return Composite(self.mass + other.mass, self.h + other.h, self.I + other.I)


def body_composite(body: TreeBody, *, domain: Domain) -> Composite:
    """M_o of one body, (48)."""
    mass, com = domain.const(body.mass), domain.array(body.com)
    c = skew(com, domain=domain)
    return Composite(mass, com * mass, domain.array(body.inertia) - (c @ c) * mass)


def joint_states(mechanism: Mechanism, q: Array, *, domain: Domain = FLOAT) -> list[JointState]:
    """Every joint at q."""
    return [
        JointState(*relative_pose(j, q, domain=domain), j.model.velocity_map(q[j.q], domain=domain))
        for j in mechanism.joints
    ]


def moved_states(
    mechanism: Mechanism, q: Array, states: list[JointState], d: Array, *, domain: Domain = FLOAT
) -> list[JointState]:
    """The joints as jets along the tangent vector d (nv numbers)."""
    jets = JetDomain(domain)
    moved = []
    for joint, state in zip(mechanism.joints, states, strict=True):
        own = d[joint.v]
        if all(domain.is_zero(x) for x in own):
            moved.append(JointState(jets.lift(state.R), jets.lift(state.r), jets.lift(state.H)))
            continue
        h = state.H @ own
        turning, sliding = state.R @ skew(h[:3], domain=domain), state.R @ h[3:]
        rate = joint.model.velocity_map_rate(q[joint.q], own, domain=domain)
        moved.append(JointState(jets.lift(state.R, turning), jets.lift(state.r, sliding), jets.lift(state.H, rate)))
    return moved


def states_moved_by_each(
    mechanism: Mechanism, q: Array, states: list[JointState], *, domain: Domain = FLOAT
) -> tuple[BundleDomain, list[JointState]]:
    """The joints as jets along all nv unit vectors at once, and the domain of these."""
    n = mechanism.nv
    jets, moved = BundleDomain(domain, n), []
    for joint, state in zip(mechanism.joints, states, strict=True):
        turning, sliding, rate = domain.zeros(3, 3, n), domain.zeros(3, n), domain.zeros(*state.H.shape, n)
        for k in range(joint.nv):
            own, at = domain.eye(joint.nv)[k], joint.v.start + k
            h = state.H @ own
            turning[..., at], sliding[..., at] = state.R @ skew(h[:3], domain=domain), state.R @ h[3:]
            rate[..., at] = joint.model.velocity_map_rate(q[joint.q], own, domain=domain)
        moved.append(JointState(jets.lift(state.R, turning), jets.lift(state.r, sliding), jets.lift(state.H, rate)))
    return jets, moved


def velocities(mechanism: Mechanism, states: list[JointState], p: Array) -> list[Array]:
    """V(k) of every body, (47)."""
    result: list[Array] = []
    for joint, state in zip(mechanism.joints, states, strict=True):
        own = state.H @ p[joint.v]
        result.append(own if joint.parent == GROUND else state.outward(result[joint.parent]) + own)
    return result


def project_inward(mechanism: Mechanism, states: list[JointState], wrenches: list[Array], *, domain: Domain) -> Array:
    """HᵀΦᵀ w: wrenches on bodies, body axes at their origins, as forces on p."""
    total, result = list(wrenches), domain.zeros(mechanism.nv)
    for joint in reversed(mechanism.joints):
        k = joint.index
        result[joint.v] = result[joint.v] + states[k].H.T @ total[k]
        if joint.parent != GROUND:
            total[joint.parent] = total[joint.parent] + states[k].inward(total[k])
    return result


def quasi_momentum(mechanism: Mechanism, states: list[JointState], p: Array, *, domain: Domain = FLOAT) -> Array:
    """∂T/∂p = 𝓜 p of the bodies (rotors and armature apart), without forming 𝓜."""
    spatial = [
        body_composite(body, domain=domain).times(V)
        for body, V in zip(mechanism.bodies, velocities(mechanism, states, p), strict=True)
    ]
    return project_inward(mechanism, states, spatial, domain=domain)


def rigid_mass_matrix(mechanism: Mechanism, states: list[JointState], *, domain: Domain = FLOAT) -> Array:
    """𝓜 of (52b) for the bodies, rotors and armature apart."""
    M = domain.zeros(mechanism.nv, mechanism.nv)
    outboard = [body_composite(body, domain=domain) for body in mechanism.bodies]
    for joint in reversed(mechanism.joints):
        k = joint.index
        columns = [outboard[k].times(states[k].H[:, c]) for c in range(joint.nv)]
        for c, column in enumerate(columns):
            _fill(mechanism, states, M, joint.v.start + c, k, column)
        if joint.parent != GROUND:
            outboard[joint.parent] = outboard[joint.parent].joined(outboard[k].carried(states[k], domain))
    return M


def _fill(mechanism: Mechanism, states: list[JointState], M: Array, column: int, k: int, w: Array) -> None:
    """Add one column of 𝓜 at joint k and at every joint between it and the ground, and their mirror."""
    own = k
    while True:
        joint = mechanism.joints[k]
        entries = states[k].H.T @ w
        for row, value in zip(range(joint.v.start, joint.v.stop), entries, strict=True):
            if k == own and row > column:  # the other triangle of the joint's own block comes with its own columns
                continue
            M[row, column] = M[row, column] + value
            if k != own or row != column:  # joints that share a slot meet on its diagonal twice
                M[column, row] = M[column, row] + value
        if joint.parent == GROUND:
            return
        w, k = states[k].inward(w), joint.parent


def mass_matrix(mechanism: Mechanism, q: Array, *, domain: Domain = FLOAT) -> Array:
    """𝓜(q) of (52b), with armature and reflected rotors."""
    M = rigid_mass_matrix(mechanism, joint_states(mechanism, q, domain=domain), domain=domain)
    return M + domain.array(mechanism.armature) if mechanism.armature.any() else M


__all__ = [
    "Composite",
    "JointState",
    "body_composite",
    "joint_states",
    "mass_matrix",
    "moved_states",
    "project_inward",
    "quasi_momentum",
    "rigid_mass_matrix",
    "states_moved_by_each",
    "velocities",
]
