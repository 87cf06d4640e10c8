"""What a redundant machine does with its freedom: least torques, and criteria that its self-motion climbs.

Torques. Among accelerations with G φ̈ + φ̇ᵀHφ̇ = ü the torques T = I* φ̈ + bias are least (Hollerbach & Suh):

    least ‖w T‖_p   with   G φ̈ = ü − φ̇ᵀHφ̇,   low ≤ T ≤ high

p = 2 without limits is a closed form; limits and other norms are programs (`programs`). Least torques at every moment
may not be least over a motion, and joint speeds may grow: `damping` takes −k φ̇ as the self-motion's own wish.

Criteria. φ̇ = G⁻ᴿu̇ + k (1 − G⁻ᴿG) ∇h moves h uphill where u does not feel it, with exact gradients:

    manipulability   h = √det(J Jᵀ),   ∂h/∂φ_m = h tr((JJᵀ)⁻¹ (L_m J) Jᵀ),   L_m J from H
    limits           h = −½ Σ ((q − middle)/range)²
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.coordinates.arrays import apply, quadratic
from polybody.coordinates.limited_sharing import force_limits
from polybody.coordinates.programs import Program, check_norm, solve
from polybody.errors import InputError
from polybody.model.arguments import state_array
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
    model = machine.model
    if len(model.constraints) or not model.actuation.active.all():
        raise InputError("least torques are those of trees whose joints are all active; with loops see actuator_forces")
    q, v = model._q(q), state_array("v", v, model.nv)
    wanted = state_array("u_ddot", u_ddot, len(machine.names))
    lead = np.broadcast_shapes(q.shape[:-1], v.shape[:-1], wanted.shape[:-1])
    q, v, wanted = (np.broadcast_to(x, (*lead, x.shape[-1])).reshape(-1, x.shape[-1]) for x in (q, v, wanted))
    G, H = machine.space.coefficients(q, machine.coordinates, 2)
    M, bias = model.mass_matrix(q), model.inverse_dynamics(q, v, np.zeros(model.nv))
    w = np.ones(model.nv) if weights is None else state_array("weights", weights, model.nv)
    if w.ndim != 1 or not (w > 0).all():
        raise InputError(f"weights must be {counted(model.nv, 'positive number')}")
    right = wanted - quadratic(v, H, v)
    wish = -damping * v
    low, high = force_limits(model, limits, v)
    # torques are counted from those of the wish, so that damping does not change what is least at rest
    start = bias + apply(M, wish)
    power = check_norm(norm)
    if power == 2 and not np.isfinite(low).any() and not np.isfinite(high).any():
        x = _closed(M, start, G, right - apply(G, wish), w)
    else:
        program = Program(M, start, G, right - apply(G, wish), low, high, w)
        x = solve(program, power)
    a = x + wish
    return a.reshape(*lead, -1), (bias + apply(M, a)).reshape(*lead, -1)


def _closed(M: Array, c: Array, E: Array, e: Array, w: Array) -> Array:
    """x with E x = e and the least ‖w(M x + c)‖, by the right inverse in the metric MᵀW²M."""
    metric = np.swapaxes(M, -1, -2) @ (w[:, None] ** 2 * M)
    free = -np.linalg.solve(M, c[..., None])[..., 0]  # where the torques would vanish
    back = np.linalg.solve(metric, np.swapaxes(E, -1, -2))
    gap = e - apply(E, free)
    return free + apply(back, np.linalg.solve(E @ back, gap[..., None])[..., 0])


def gradient(machine: Redundant, q: Any, criterion: Any) -> Array:
    """∇h (..., nv) of a criterion: "manipulability", "limits", or a function of q that returns it."""
    model = machine.model
    q = model._q(q)
    if callable(criterion):
        return state_array("the criterion's gradient", criterion(q), len(machine.space.names))
    if criterion == "manipulability":
        G, H = machine.space.coefficients(q, machine.coordinates, 2)
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
