"""What a redundant machine does with its freedom: least torques, and criteria that its self-motion climbs.

Torques. Among accelerations with G φ̈ + φ̇ᵀHφ̇ = ü, I* φ̈ + bias = AᵀT those of least torques T (Hollerbach & Suh), A the
actuators' rates per own velocity φ̇ (of loops the independent ones; of a free base not all have an actuator):

    least ‖w (T − T_k)‖_p   with   G I*⁻¹Aᵀ T = ü − φ̇ᵀHφ̇ + G I*⁻¹ bias,   low ≤ T ≤ high

p = 2 without limits is a closed form; limits and other norms are programs (`programs`). Least torques at every moment
may not be least over a motion, and joint speeds may grow: with `damping` k torques are counted from those that slow
every motion, AᵀT_k = −k I* φ̇, so that a self-motion dies as e^(−kt).

Criteria. φ̇ = G⁻ᴿu̇ + k (1 − G⁻ᴿG) ∇h moves h uphill where u does not feel it, with exact gradients:

    manipulability   h = √det(J Jᵀ),   ∂h/∂φ_m = h tr((JJᵀ)⁻¹ (L_m J) Jᵀ),   L_m J from H
    limits           h = −½ Σ ((q − middle)/range)²
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.coordinates.arrays import apply, quadratic
from polybody.coordinates.limited_sharing import force_limits, least_forces
from polybody.coordinates.programs import Program, check_norm
from polybody.errors import InputError, PolybodyError
from polybody.model.arguments import positive, state_array
from polybody.names import counted

if TYPE_CHECKING:
    from polybody.coordinates.redundancy import Redundant

Array = np.ndarray
CRITERIA = ("manipulability", "limits")


def least_torques(
    machine: Redundant, q: Any, v: Any, u_ddot: Any, *, norm: Any = 2, limits: Any = None, weights: Any = None,
    damping: float = 0.0,
) -> tuple[Array, Array]:  # fmt: skip
    """(a, tau), each (..., nv): the accelerations with the wanted ü whose torques are least."""
    model, space = machine.model, machine.space
    q, v = model._q(q), state_array("v", v, model.nv)
    model.engine.require_closed(q, v)
    wanted = state_array("u_ddot", u_ddot, len(machine.names))
    lead = np.broadcast_shapes(q.shape[:-1], v.shape[:-1], wanted.shape[:-1])
    q, v, wanted = (np.broadcast_to(x, (*lead, x.shape[-1])).reshape(-1, x.shape[-1]) for x in (q, v, wanted))
    rate = 0.0 if damping == 0 else positive("damping", damping)
    active, w = np.flatnonzero(model.actuation.active), v[:, space.columns]
    cost = np.ones(len(active)) if weights is None else state_array("weights", weights, len(active))
    if cost.ndim != 1 or not (cost > 0).all():
        raise InputError(f"weights must be {counted(len(active), 'positive number')}, one per actuator")
    G, H = space.coefficients(q, machine.coordinates, 2)
    M, bias = space.mass_matrix(q), space.effort(q, w, np.zeros(w.shape[-1]))
    joints = space.joint_map(q)
    drives = np.swapaxes(joints[..., active, :], -1, -2)  # Aᵀ
    E = G @ np.linalg.solve(M, drives)
    e = wanted - quadratic(w, H, w) + apply(G, np.linalg.solve(M, bias[..., None])[..., 0])
    wish = apply(np.linalg.pinv(drives, rcond=1e-9), apply(M, -rate * w))  # torques that slow every motion
    low, high = force_limits(model, limits, v)
    one = np.broadcast_to(np.eye(len(active)), (len(q), len(active), len(active)))
    program = Program(one, np.zeros(wish.shape), E, e - apply(E, wish), low - wish, high - wish, cost)
    T = least_forces(program, check_norm(norm)) + wish
    a = space.acceleration(q, w, np.linalg.solve(M, (apply(drives, T) - bias)[..., None])[..., 0])
    tau = np.zeros((len(q), model.nv))
    tau[:, active] = T
    return a.reshape(*lead, -1), tau.reshape(*lead, -1)


def gradient(machine: Redundant, q: Any, criterion: Any) -> Array:
    """∇h (..., nv) of a criterion: "manipulability", "limits", or a function of q that returns it."""
    model = machine.model
    q = model._q(q)
    if callable(criterion):
        return state_array("the criterion's gradient", criterion(q), len(machine.space.names))
    if criterion == "manipulability":
        G, H = machine.space.coefficients(q, machine.coordinates, 2)
        values = np.linalg.svd(G, compute_uv=False)
        if (values[..., -1] <= 1e-9 * values[..., 0]).any():
            raise PolybodyError("manipulability is zero at a singular configuration and has no gradient there")
        inner = np.linalg.inv(G @ np.swapaxes(G, -1, -2))
        size = np.sqrt(1 / np.linalg.det(inner))
        return size[..., None] * np.einsum("...ij,...jmn,...in->...m", inner, H, G)
    if criterion == "limits":
        limits = model.joint_limits()
        low, high = limits["lower"], limits["upper"]
        bounded = np.isfinite(low) & np.isfinite(high)
        middle = np.where(bounded, (np.where(bounded, low, 0) + np.where(bounded, high, 0)) / 2, 0.0)
        span = np.where(bounded, np.where(bounded, high, 1) - np.where(bounded, low, 0), np.inf)
        place = model.difference(np.broadcast_to(model.neutral(), q.shape), q)
        return (-(place - middle) / span**2)[..., machine.space.columns]
    raise InputError(f"criterion is {criterion!r}, expected {', '.join(CRITERIA)}, or a function of q")


__all__ = ["CRITERIA", "gradient", "least_torques"]
