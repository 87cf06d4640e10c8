"""Whether a state honours its grasp: how far grips are apart, and how fast they come apart.

Grip j is open by the motion that leads from its end effector to its place on the object, in the end effector's axes:
the rotation vector's first-order part ½ vee(R − Rᵀ) of R = R_eᵀR_g, and p = R_eᵀ(p_g − p_e). Newton's step from it is
exact at the root, which is all that projecting needs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.formulations.operators.named import frame_crossing
from polybody.formulations.operators.sweeps import causal, state
from polybody.grasping.grips import Holding, closure_matrix
from polybody.grasping.nearest import nearest_fixed
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


def strains(grasp: Holding, q: Array, v: Array, apart: Array, *, domain: Domain = FLOAT) -> Array:
    """m×4: squares of how far each grip is open (2 sin(angle/2), distance), of how fast it opens, of `apart` (m×6)."""
    gap, versine = openings(grasp, q, domain=domain), misalignment(grasp, q, domain=domain)
    at = state(grasp.mechanism, q, v, domain=domain, springs=False)
    result, quarter = domain.zeros(grasp.m, 4), domain.const(1) / domain.const(4)
    for j, grip in enumerate(grasp.grips):
        tip = frame_crossing(grip.tip, domain=domain).carry(at.V[grip.tip.body])
        speed = tip - frame_crossing(grip.hold, domain=domain).carry(at.V[grasp.object])
        turn = gap[j, :3] @ gap[j, :3] + versine[j] * versine[j] * quarter  # sin² + (1 − cos)² = 4 sin²(angle/2)
        result[j] = turn, gap[j, 3:] @ gap[j, 3:], speed @ speed, apart[j] @ apart[j]
    return result


def way_back(grasp: Holding, q: Array, *, domain: Domain) -> tuple[Array, Array]:
    """(the least step that closes the grips to first order, [Σ gap², growth]), by the rows `grasp.closing`."""
    gap = openings(grasp, q, domain=domain).ravel()
    A = closure_matrix(grasp.mechanism, q, grasp.grips, grasp.object, domain=domain)
    step, growth = nearest_fixed(A, gap, domain.zeros(grasp.mechanism.nv), grasp.closing, domain)
    return step, np.array([gap @ gap, growth], dtype=domain.dtype)


def least_step(A: Array, gap: Array) -> Array:
    """The same step by pseudo-inverses, (..., nv), whatever the rank of A (..., 6m, nv)."""
    return (np.linalg.pinv(A, rcond=1e-9) @ gap[..., None])[..., 0]


def close(
    q: Array,
    look: Callable[[Array], tuple[Array, Array]],
    move: Callable[[Array, Array], Array],
    tolerance: float = 1e-13,
    steps: int = 50,
) -> tuple[Array, Array]:
    """(configurations (k, nq) near q in which the grips meet, what is left open (k,)), by Gauss and Newton.

    `look(q)` gives what is open and the step that closes it, `move(q, step)` goes along the manifold. All states go
    together; those that are closed rest.
    """
    q, left, going = q.copy(), np.full(len(q), np.inf), np.arange(len(q))
    for _ in range(steps):
        size, step = look(q[going])
        rounding = (size < 1e-11) & (size > 0.3 * left[going])
        left[going] = size
        ahead = ~((size < tolerance) | rounding)
        going, step = going[ahead], step[ahead]
        if not len(going):
            break
        longest = np.abs(step).max(axis=-1, keepdims=True)
        q[going] = move(q[going], step / np.maximum(longest, 1.0))
    return q, left


def closed_configuration(grasp: Holding, q: Array) -> tuple[Array, float]:
    """(one configuration near q in which the grips meet, what is left open)."""
    m = grasp.mechanism

    def look(q: Array) -> tuple[Array, Array]:
        gap = openings(grasp, q[0]).ravel()
        A = closure_matrix(m, q[0], grasp.grips, grasp.object)
        return np.array([np.linalg.norm(gap)]), least_step(A, gap)[None]

    closed, left = close(q[None], look, lambda q, d: integrate(m, q[0], d[0])[None])
    return closed[0], float(left[0])


__all__ = [
    "close",
    "closed_configuration",
    "closure_terms",
    "least_step",
    "misalignment",
    "openings",
    "strains",
    "way_back",
]
