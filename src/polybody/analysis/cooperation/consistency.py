"""Whether a state honours its grasp: how far grips are apart, and how fast they come apart.

Grip j is open by the motion that leads from its end effector to its place on the object, in the end effector's axes:
the rotation vector's first-order part ½ vee(R − Rᵀ) of R = R_eᵀR_g, and p = R_eᵀ(p_g − p_e). Newton's step from it is
exact at the root, which is all that projecting needs.
"""

from __future__ import annotations

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.analysis.cooperation.grips import Holding, closure_matrix
from polybody.formulations.operators.named import frame_crossing
from polybody.formulations.operators.sweeps import causal, state
from polybody.mechanism.kinematics import body_poses, frame_pose, integrate


def openings(grasp: Holding, q: Array, *, domain: Domain = FLOAT) -> Array:
    """m×6: [rotation; shift] from each end effector to its place on the object, in the end effector's axes."""
    poses = body_poses(grasp.mechanism, q, domain=domain)
    half = domain.const(1) / domain.const(2)
    result = domain.zeros(grasp.m, 6)
    for j, grip in enumerate(grasp.grips):
        (Re, pe), (Rg, pg) = (frame_pose(frame, poses, domain=domain) for frame in (grip.tip, grip.hold))
        R = Re.T @ Rg
        turn = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]], dtype=R.dtype) * half
        result[j, :3] = turn
        result[j, 3:] = Re.T @ (pg - pe)
    return result


def misalignment(grasp: Holding, q: Array, *, domain: Domain = FLOAT) -> Array:
    """m numbers 3 − tr(R_eᵀR_g) = 2(1 − cos angle): a half turn, whose vee vanishes, still counts as open."""
    poses = body_poses(grasp.mechanism, q, domain=domain)
    result = domain.zeros(grasp.m)
    for j, grip in enumerate(grasp.grips):
        (Re, _), (Rg, _) = (frame_pose(frame, poses, domain=domain) for frame in (grip.tip, grip.hold))
        result[j] = domain.const(3) - sum(Re[:, k] @ Rg[:, k] for k in range(3))
    return result


def closure_terms(grasp: Holding, q: Array, v: Array, *, domain: Domain = FLOAT) -> tuple[Array, Array]:
    """(A, γ): grips stay together when A a = γ = −Ȧv."""
    m = grasp.mechanism
    at = state(m, q, v, domain=domain, springs=False)
    c = causal(m, at.across, at.zeta)
    gamma = domain.zeros(6 * grasp.m)
    for j, grip in enumerate(grasp.grips):
        tip = frame_crossing(grip.tip, domain=domain).carry(c[grip.tip.body])
        gamma[6 * j : 6 * j + 6] = frame_crossing(grip.hold, domain=domain).carry(c[grasp.object]) - tip
    return closure_matrix(m, q, grasp.grips, grasp.object, domain=domain), gamma


def closed_configuration(grasp: Holding, q: Array, tolerance: float = 1e-13, steps: int = 50) -> tuple[Array, float]:
    """(nearest configuration by Gauss-Newton in which the grips meet, what is left open)."""
    left = np.inf
    for _ in range(steps):
        gap = openings(grasp, q).ravel()
        left = float(np.abs(gap).max())
        if left < tolerance:
            break
        A = closure_matrix(grasp.mechanism, q, grasp.grips, grasp.object)
        move = np.linalg.pinv(A, rcond=1e-9) @ gap
        q = integrate(grasp.mechanism, q, move * min(1.0, 1.0 / max(np.abs(move).max(), 1e-300)))
    return q, left


__all__ = ["closed_configuration", "closure_terms", "misalignment", "openings"]
