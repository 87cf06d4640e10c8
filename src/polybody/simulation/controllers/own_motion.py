"""Forces of the actuators that give a task its acceleration, for trees, loops, grasps and free bases alike.

In the model's own coordinates u (all velocities of a tree, the independent ones of loops), with q̇_a = A u̇,

    M ü = Aᵀτ_a + …      so that      ẍ = J ü + drift = T τ_a + …,    T = J M⁻¹Aᵀ

Among the forces with ẍ = ẍ* those nearest to τ₀ in the actuators' inertia W = (A M⁻¹Aᵀ)⁺ are

    τ_a = τ₀ + W Tᵀ (T W Tᵀ)⁺ (ẍ* − ẍ(τ₀))

With every coordinate driven W = M, and this is Khatib's τ = τ₀ + JᵀΛ(ẍ* − ẍ(τ₀)): the part of τ₀ that the task does not
feel acts on the rest. With more actuators than motions the forces are the least. On a free base the base's own
acceleration is accounted for: actuators whose impulses change their rates by s change the task's rate by

    δẋ = J_g s,     J_g = J M⁻¹Aᵀ (A M⁻¹Aᵀ)⁺

which is the generalised Jacobian (Umetani & Yoshida); with every coordinate driven J_g A = J. Whether every coordinate
is driven, rank A = m, is asked in general position: grasps and linkages on free bases are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from polybody.model.model import Model

Array = np.ndarray
RANK = 1e-9
#: m, rad: states nearer to the loops are taken as they are
CLOSED = 1e-10


def own_columns(model: Model) -> list[int]:
    """Indices in v of the model's own coordinates."""
    return list(model.constraints.indices(model.constraints.independent))


def joint_map(model: Model, q: Array) -> Array:
    """G with v = G u̇, (nv, m)."""
    return model.constraints.joint_influence(q, 1).G if len(model.constraints) else np.eye(model.nv)


def fully_driven(model: Model, q: Array) -> bool:
    """Whether the active joints move every own coordinate, in general position near q."""
    if not len(model.constraints):
        return bool(model.actuation.active.all())
    if "fully driven" not in model._notes:
        A = joint_map(model, model._assembly.general_place(q))[model.actuation.active]
        model._notes["fully driven"] = int(np.linalg.matrix_rank(A, tol=RANK)) == A.shape[1]
    return model._notes["fully driven"]


def actuator_motion(model: Model, q: Array) -> tuple[Array, Array]:
    """(A, B): rates of the active joints A u̇, and changes B s of the own rates u̇ where actuators change theirs by s."""
    A = joint_map(model, q)[model.actuation.active]
    back = np.linalg.solve(model.mass_matrix(q), A.T)
    return A, back @ np.linalg.pinv(A @ back, rcond=RANK, hermitian=True)


def drift(model: Model, q: Array, v: Array) -> Array:
    """Accelerations of all joints where the own coordinates have none, (nv,)."""
    if not len(model.constraints):
        return np.zeros(model.nv)
    u = own_columns(model)
    return model.constraints.joint_motion(q, v[u], np.zeros(len(u)))[1]


def on_loops(model: Model, q: Array, v: Array) -> tuple[Array, Array]:
    """A state of an integrator's stage, which is off the loops by its error, with the dependent joints put right."""
    if not len(model.constraints):
        return q, v
    if np.abs(model.constraints.residual(q)).max(initial=0.0) > CLOSED:
        q = model.constraints.assemble_dependent(q)
    u = own_columns(model)
    return q, model.constraints.joint_motion(q, v[u], np.zeros(len(u)))[0]


def task_forces(
    model: Model, q: Array, v: Array, J: Array, J_drift: Array, wanted: Array, tau0: Array,
    wrenches: Mapping[str, Any] | None = None,
) -> Array:  # fmt: skip
    """tau (nv,) of the active joints with J a + J_drift = wanted, J (k, nv) and J_drift over all joints."""
    active, u = np.flatnonzero(model.actuation.active), own_columns(model)
    G = joint_map(model, q)
    A, J_u = G[active], J @ G
    M = model.mass_matrix(q)
    back = np.linalg.solve(M, A.T)
    tau0 = np.where(model.actuation.active, tau0, 0.0)
    a = model.forward_dynamics(q, v, tau0, wrenches=wrenches)
    T = J_u @ back
    W = np.linalg.pinv(A @ back, rcond=RANK, hermitian=True)
    gap = wanted - (J @ a + J_drift)
    WT = W @ T.T
    tau = tau0.copy()
    tau[active] += WT @ (np.linalg.pinv(T @ WT, rcond=RANK, hermitian=True) @ gap)
    assert len(u) == len(M)
    return tau


def steering(model: Model, q: Array, v: Array, a: Array) -> Array:
    """tau (nv,) of the active joints that gives the own coordinates accelerations a; where they do not drive all of
    them, the active joints' part of a, and the rest moves as it does.
    """
    wanted = model.constraints.joint_motion(q, v[own_columns(model)], a)[1] if len(model.constraints) else a
    if fully_driven(model, q):
        return model.inverse_dynamics(q, v, wanted)
    return np.where(model.actuation.active, model.actuation.hybrid_dynamics(q, v, wanted)[1], 0.0)


def slowing(model: Model, q: Array, v: Array, rate: float) -> Array:
    """tau (nv,) that lets all motion die as exp(−rate t): where a task's forces start from."""
    return steering(model, q, v, -rate * v[own_columns(model)])


__all__ = ["actuator_motion", "drift", "fully_driven", "joint_map", "on_loops", "own_columns", "slowing", "steering",
           "task_forces"]  # fmt: skip
