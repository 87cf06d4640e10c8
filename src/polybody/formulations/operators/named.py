"""The coefficients of the unified model by name: (28), (37)-(48). The operators they represent: `structure`.

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
from polybody.late import dataclass
from polybody.mechanism.forces import joint_passive_forces
from polybody.mechanism.mechanism import GROUND, BodyFrame, Mechanism


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


def stack_rows(k: int) -> slice:
    """The six rows of link or end effector k in a stack."""
    return slice(6 * k, 6 * k + 6)


def tip_jacobian(mechanism: Mechanism, across: list[Crossing], tips: tuple[BodyFrame, ...], *, domain: Domain) -> Array:
    """6m×nv: V^e = J v, each end effector in its own axes."""
    J = domain.zeros(6 * len(tips), mechanism.nv)
    for k, frame in enumerate(tips):
        # Columns of X(tip, i)ᵀ, carried inwards link by link as wrenches are.
        rows = frame_crossing(frame, domain=domain).pull_columns(domain.eye(6))
        i = frame.body
        while i != GROUND:
            own = mechanism.joints[i].v
            J[stack_rows(k), own] = J[stack_rows(k), own] + (across[i].Phi.T @ rows).T
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
    "coefficients",
    "frame_crossing",
    "reduced",
    "stack_rows",
    "tip_jacobian",
    "whole",
]
