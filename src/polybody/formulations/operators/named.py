"""The paper's operators by name, for reading: X, X_b, Φ, B, D, and the coefficients of (28), (37)-(48).

Links beyond the base are stacked in the order of the mechanism; twists and wrenches are in link axes at the link's
origin, those of end effectors in the end effector's own axes at its own origin.

    V  = X Φ v_q + X_b V_b,      V_b = Φ_b v_b,     V^e = B V = J_a v_a + J_p v_p       (11), (14), (A4)
    V̇  = X Φ v̇_q + X_b V̇_b + c,  c = ẊΦ v_q + Ẋ_b V_b (+ XΦ̇ v_q where a joint map varies)     (15)
    b  = V* M_q V − M_q [0; Rᵀg]       the wrench for V̇ = 0, the weight included         (16), corrected
    C_a, C_p = rows of Φᵀ Xᵀ (b + M_q c) (+ b_b on the base)                             ERRATA
    [M_p M_ap; M_apᵀ M_a]              the mass matrix by passive and active columns      (A2)
    J_D = M_p⁻¹ M_ap                   disturbance Jacobian, v̇_p = −J_D v̇_a + …          (37), corrected, (38)
    M  = M_a − M_apᵀ J_D               generalised inertia                                (28)
    J  = J_a − J_p J_D                 generalised Jacobian                               (41)
    C  = C_a − J_Dᵀ C_p,   T̂ = T_a − J_Dᵀ T_p                                             (28)
    H  = J M⁻¹ Jᵀ + J_p M_p⁻¹ J_pᵀ     acceleration of the end effectors by unit loads     (48), corrected

M_ap is passive × active as in the main text (Appendix A transposes it); J_a and J_p are 6m × columns as in Appendix A
(the main text's are their transposes). T is tau plus what springs and dampers exert, so T_p of a flexible base is (C5).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.formulations.operators.links import Crossing
from polybody.formulations.operators.split import Split
from polybody.formulations.operators.sweeps import (
    anticausal,
    applied_wrenches,
    composite_mass_matrix,
    inverse,
    project,
    state,
)
from polybody.mechanism.forces import joint_passive_forces
from polybody.mechanism.kinematics import body_poses
from polybody.mechanism.mechanism import GROUND, BodyFrame, Mechanism


@dataclass(frozen=True, eq=False)
class Structure:
    """The operators as matrices; n links beyond the base, m end effectors, d columns that move the links."""

    X: Array  # 6n×6n
    X_b: Array  # 6n×6
    Phi: Array  # 6n×d
    Phi_b: Array  # 6×(columns of the base), 6×0 for a fixed base
    B: Array  # 6m×6n
    D: Array  # 6n×6m
    M_q: Array  # 6n×6n
    M_b: Array  # 6×6; zeros for a fixed base, whose inertia plays no part
    V: Array  # 6n
    V_b: Array  # 6
    c: Array  # 6n, ẊΦv + Ẋ_b V_b
    b: Array  # 6n
    b_b: Array  # 6


@dataclass(frozen=True, eq=False)
class Coefficients:
    """The coefficients of (28) and of (37)-(48); a active, p passive columns, m end effectors."""

    M_a: Array
    M_ap: Array  # passive × active
    M_p: Array
    J_a: Array  # 6m × active
    J_p: Array  # 6m × passive
    C_a: Array
    C_p: Array
    T_a: Array
    T_p: Array
    T_hat: Array
    M: Array
    J: Array
    J_D: Array
    C: Array
    H: Array


def frame_crossing(frame: BodyFrame, *, domain: Domain = FLOAT) -> Crossing:
    """X from a link to a frame fixed to it."""
    return Crossing(domain.array(frame.rotation), domain.array(frame.position), domain.zeros(6, 0), domain)


def _rows(k: int) -> slice:
    return slice(6 * k, 6 * k + 6)


def structure(mechanism: Mechanism, q: Array, v: Array, chosen: Split, *, domain: Domain = FLOAT) -> Structure:
    """All operators of (11)-(19) as matrices."""
    links, columns = chosen.links(mechanism), chosen.link_columns(mechanism)
    row, n, m = {i: k for k, i in enumerate(links)}, len(links), len(chosen.tips)
    at = state(mechanism, q, v, domain=domain, springs=False)
    X, X_b = domain.eye(6 * n), domain.zeros(6 * n, 6)
    Phi, B, M_q = domain.zeros(6 * n, len(columns)), domain.zeros(6 * m, 6 * n), domain.zeros(6 * n, 6 * n)
    c = domain.zeros(6 * n)
    for i in links:
        joint, k = mechanism.joints[i], row[i]
        step = at.across[i].matrix()
        if joint.parent in row:
            above = row[joint.parent]
            X[_rows(k), : 6 * k] = step @ X[_rows(above), : 6 * k]
            X_b[_rows(k)] = step @ X_b[_rows(above)]
            c[_rows(k)] = at.zeta[i] + step @ c[_rows(above)]
        else:
            c[_rows(k)] = at.zeta[i]
            if joint.parent == chosen.base:  # a link that stands on the ground beside the base does not follow it
                X_b[_rows(k)] = step
        first = columns.index(joint.v.start) if joint.nv else 0
        Phi[_rows(k), first : first + joint.nv] = at.across[i].Phi
        M_q[_rows(k), _rows(k)] = at.M[i]
    if chosen.base != GROUND:
        c = c + X_b @ at.zeta[chosen.base]
    for j, frame in enumerate(chosen.tips):
        B[_rows(j), _rows(row[frame.body])] = frame_crossing(frame, domain=domain).matrix()
    weighed = _with_weight(mechanism, q, at.b, at.M, domain)
    fixed = chosen.base == GROUND
    return Structure(
        X=X,
        X_b=X_b,
        Phi=Phi,
        Phi_b=domain.zeros(6, 0) if fixed else at.across[chosen.base].Phi,
        B=B,
        D=B.T,
        M_q=M_q,
        M_b=domain.zeros(6, 6) if fixed else at.M[chosen.base],
        V=_stacked([at.V[i] for i in links], domain),
        V_b=domain.zeros(6) if fixed else at.V[chosen.base],
        c=c,
        b=_stacked([weighed[i] for i in links], domain),
        b_b=domain.zeros(6) if fixed else weighed[chosen.base],
    )


def _stacked(parts: list[Array], domain: Domain) -> Array:
    return np.concatenate(parts) if parts else domain.zeros(0)


def _with_weight(mechanism: Mechanism, q: Array, b: list[Array], M: list[Array], domain: Domain) -> list[Array]:
    g = domain.array(mechanism.gravity)
    poses = body_poses(mechanism, q, domain=domain)
    return [own - inertia[:, 3:] @ (R.T @ g) for own, inertia, (R, _) in zip(b, M, poses, strict=True)]


def tip_jacobian(mechanism: Mechanism, across: list[Crossing], tips: tuple[BodyFrame, ...], *, domain: Domain) -> Array:
    """6m×nv: V^e = J v, each end effector in its own axes."""
    J = domain.zeros(6 * len(tips), mechanism.nv)
    for k, frame in enumerate(tips):
        # Columns of X(tip, i)ᵀ, carried inwards link by link as wrenches are.
        rows = frame_crossing(frame, domain=domain).pull_columns(domain.eye(6))
        i = frame.body
        while i != GROUND:
            J[_rows(k), mechanism.joints[i].v] = (across[i].Phi.T @ rows).T
            rows = across[i].pull_columns(rows)
            i = mechanism.joints[i].parent
    return J


def whole(
    mechanism: Mechanism, q: Array, v: Array, tau: Array, tips: tuple[BodyFrame, ...], *, domain: Domain = FLOAT
) -> tuple[Array, Array, Array, Array]:
    """(mass matrix, bias forces, T = tau + springs and dampers, J of the tips) of all columns, by sweeps."""
    at = state(mechanism, q, v, domain=domain, springs=False)
    T = tau + joint_passive_forces(mechanism, q, v, domain=domain)
    pulled = applied_wrenches(mechanism, q, v, None, domain=domain)
    if pulled is not None:
        T = T + project(mechanism, at.across, anticausal(mechanism, at.across, pulled), domain=domain)
    J = tip_jacobian(mechanism, at.across, tips, domain=domain)
    return composite_mass_matrix(mechanism, q, domain=domain), inverse(at, None), T, J


def coefficients(
    mechanism: Mechanism, q: Array, v: Array, tau: Array, chosen: Split, *, domain: Domain = FLOAT
) -> Coefficients:
    """The coefficients of (28), (38), (41), (48); of the operators none is formed."""
    return reduced(*whole(mechanism, q, v, tau, chosen.tips, domain=domain), chosen, domain=domain)


def _transposed(A: Array) -> Array:
    return np.swapaxes(A, -1, -2)


def _applied(A: Array, x: Array) -> Array:
    return (A @ x[..., None])[..., 0]


def reduced(M: Array, bias: Array, T: Array, J: Array, chosen: Split, *, domain: Domain = FLOAT) -> Coefficients:
    """The coefficients from those of all columns; arrays of numbers may have leading batch dimensions."""
    a, p = chosen.active, chosen.passive
    M_a, M_ap, M_p = M[..., a[:, None], a], M[..., p[:, None], a], M[..., p[:, None], p]
    J_a, J_p, C_a, C_p, T_a, T_p = J[..., a], J[..., p], bias[..., a], bias[..., p], T[..., a], T[..., p]
    J_D = domain.solve(M_p, M_ap) if M_ap.size else M_ap
    across = _transposed(J_D)
    M_hat, J_hat = M_a - _transposed(M_ap) @ J_D, J_a - J_p @ J_D
    H = domain.zeros(*J.shape[:-1], J.shape[-2])
    for inertia, jacobian in ((M_hat, J_hat), (M_p, J_p)):
        if jacobian.size:
            H = H + jacobian @ domain.solve(inertia, _transposed(jacobian))
    C, T_hat = C_a - _applied(across, C_p), T_a - _applied(across, T_p)
    return Coefficients(M_a, M_ap, M_p, J_a, J_p, C_a, C_p, T_a, T_p, T_hat, M_hat, J_hat, J_D, C, H)


__all__ = [
    "Coefficients",
    "Structure",
    "coefficients",
    "frame_crossing",
    "reduced",
    "structure",
    "tip_jacobian",
    "whole",
]
