"""The vector fields of the quasi-velocities and their brackets, (38)-(39).

    q̇ = V(q) p,    V = [v_1 … v_m]                                                                          (39)
    [v_i, v_j] = (∂v_j/∂q) v_i − (∂v_i/∂q) v_j = Σ_k c^k_ij v_k                                              (38)

V is block diagonal over the joints, and within a joint over its simple stages (25): fields of different stages
commute. Within a stage with map matrix 𝓗 the motion is X⁻¹Ẋ = 𝓗 β, so each field is left-invariant and the bracket of
two fields is the bracket of their columns in se(3):

    𝓗 c_ij = ad(h_i) h_j,

solved for c by the left inverse of 𝓗. `field_brackets` takes (38) at its word instead, differentiating V by jets; it
knows nothing of se(3), and serves as the check.
"""

from __future__ import annotations

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.algebra.jets import JetDomain
from polybody.algebra.spatial import bracket_matrix
from polybody.mechanism.joints import JointModel, MapJoint, ReversedJoint
from polybody.mechanism.mechanism import Mechanism


def stage_maps(model: JointModel) -> list[tuple[slice, Array]]:
    """The simple stages of a joint: where each sits in v, and its constant map 𝓗 (6×r)."""
    if isinstance(model, ReversedJoint):  # q and v, hence V(q), are those of the joint as it was given
        return stage_maps(model.joint)
    if isinstance(model, MapJoint):
        return [(stage, model.map.H[:, stage]) for stage in model.map.stage_slices()]
    assert model.constant_map is not None, f"joint kind {model.kind} has neither stages nor a constant map"
    return [(slice(0, model.nv), model.constant_map)]


def joint_structure_constants(model: JointModel, *, domain: Domain = FLOAT) -> Array:
    """c[k, i, j] = c^k_ij of one joint, nv×nv×nv."""
    c = domain.zeros(model.nv, model.nv, model.nv)
    if model.rates_are_velocities:  # V = 1: constant fields commute; the columns' rounding must not say otherwise
        return c
    for stage, H in stage_maps(model):
        H = domain.array(H)
        for i in range(H.shape[1]):
            others = bracket_matrix(H[:, i], domain=domain) @ H
            if all(domain.is_zero(x) for x in others.ravel()):
                continue
            c[stage, stage.start + i, stage] = domain.solve(H.T @ H, H.T @ others)
    return c


def structure_constants(mechanism: Mechanism, *, domain: Domain = FLOAT) -> Array:
    """c[k, i, j] = c^k_ij of (38) for the whole mechanism."""
    c = domain.zeros(mechanism.nv, mechanism.nv, mechanism.nv)
    for joint in mechanism.independent_joints:
        c[joint.v, joint.v, joint.v] = joint_structure_constants(joint.model, domain=domain)
    return c


def kinematic_matrix(mechanism: Mechanism, q: Array, *, domain: Domain = FLOAT) -> Array:
    """V(q) of (39), nq×nv: q̇ = V p."""
    V = domain.zeros(mechanism.nq, mechanism.nv)
    for joint in mechanism.independent_joints:
        for k in range(joint.nv):
            V[joint.q, joint.v.start + k] = joint.model.rate(q[joint.q], unit(joint.nv, k, domain), domain=domain)
    return V


def field_brackets(mechanism: Mechanism, q: Array, *, domain: Domain = FLOAT) -> Array:
    """X[j] = [[v_j, v_1] … [v_j, v_m]], nq×nv each: (38) and (41) by jets of V."""
    jets = JetDomain(domain)
    V = kinematic_matrix(mechanism, q, domain=domain)
    slopes = [jets.rates(kinematic_matrix(mechanism, jets.lift(q, V[:, j]), domain=jets)) for j in range(mechanism.nv)]
    X = domain.zeros(mechanism.nv, mechanism.nq, mechanism.nv)
    for j in range(mechanism.nv):
        for i in range(mechanism.nv):
            X[j, :, i] = slopes[j][:, i] - slopes[i][:, j]
    return X


def unit(n: int, k: int, domain: Domain) -> Array:
    """The k-th unit vector of length n."""
    e = domain.zeros(n)
    e[k] = domain.const(1)
    return e


def transport(c: Array, p: Array, momentum: Array, *, domain: Domain = FLOAT) -> Array:
    """Σ_ij c^i_jk p_j π_i for every k: the quasi-velocity term of (40), with π = ∂L̃/∂p."""
    return np.array([_double(c[:, :, k], p, momentum, domain) for k in range(len(p))], dtype=domain.dtype)


def _double(c: Array, p: Array, momentum: Array, domain: Domain) -> object:
    total = domain.const(0)
    for i, j in np.ndindex(c.shape):
        if not domain.is_zero(c[i, j]):
            total = total + c[i, j] * p[j] * momentum[i]
    return total


__all__ = [
    "field_brackets",
    "joint_structure_constants",
    "kinematic_matrix",
    "stage_maps",
    "structure_constants",
    "transport",
    "unit",
]
