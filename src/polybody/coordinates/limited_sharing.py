"""Actuator forces within limits, least in a norm of choice (Freeman's load sharing (4-76)-(4-90), with inequalities).

A motion fixes AᵀT_a = F, with A the actuators' rates per motion that passes and F = Zᵀ ID(q, v, a) what it takes (Z as
in inverse dynamics with loops). Where actuators are more than the mobility, forces are chosen:

    p = 2   least Σ (w T)², the rule of `inverse_dynamics`, within limits
    p = 1   least Σ |w T|: as few actuators work as can
    p = ∞   least max |w T|: the work is spread as evenly as it can be
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from polybody.coordinates.programs import Program, check_norm, solve
from polybody.errors import InputError
from polybody.mechanism.saturation import drive_limits, force_bounds
from polybody.model.arguments import as_model, float_array, state_array
from polybody.model.model import Model
from polybody.model.sets import each_set

Array = np.ndarray
#: what actuators leave of a motion, over the largest force, is nothing
MET = 1e-7


@each_set
def actuator_forces(
    model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, norm: Any = 2, limits: Any = "drives",
    weights: ArrayLike | None = None, wrenches: Mapping[str, Any] | None = None, parameters: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Forces tau, (..., nv), of the active joints for a motion, of least `norm` (1, 2 or "inf") within limits.

    `limits` is "drives" (the model's effort, power and velocity limits at v, as in `pb.simulate`), "effort" (those
    alone), None, numbers (one, or one per actuator, for both signs), or a pair (low, high). `weights` is the cost of
    each actuator's force. A batch is solved as one program. If the limits are infeasible, `LimitsError` reports by what
    factor they would have to grow, and at which state. `model` may be a grasp. `parameters`, (k,) or (..., k), are
    values of the parameters of `model.with_parameters`.
    """
    model = as_model("actuator_forces", model)
    q, v, a = model._q(q), state_array("v", v, model.nv), state_array("a", a, model.nv)
    model.engine.require_closed(q, v)
    model.engine.require_acceleration(q, v, a)
    lead = np.broadcast_shapes(q.shape[:-1], v.shape[:-1], a.shape[:-1])
    whole = (model.tree if len(model.constraints) else model).inverse_dynamics(q, v, a, wrenches=wrenches)
    needed = np.broadcast_to(whole, (*lead, model.nv)).reshape(-1, model.nv)
    states = np.broadcast_to(q, (*lead, model.nq)).reshape(-1, model.nq)
    active = np.flatnonzero(model.actuation.active)
    low, high = force_limits(model, limits, np.broadcast_to(v, (*lead, model.nv)).reshape(-1, model.nv))
    w = np.ones(len(active)) if weights is None else model.actuation._weights(weights)
    Z = _motions(model, states)
    A, F = Z[:, active], np.einsum("snm,sn->sm", Z, needed)
    program = Program(
        np.broadcast_to(np.eye(len(active)), (len(states), len(active), len(active))),
        np.zeros((len(states), len(active))), np.swapaxes(A, -1, -2), F, low, high, w,
    )  # fmt: skip
    tau = np.zeros((len(states), model.nv))
    tau[:, active] = least_forces(program, check_norm(norm))
    return tau.reshape(*lead, model.nv)


def _motions(model: Model, states: Array) -> Array:
    """Z (s, nv, m), orthonormal."""
    if not len(model.constraints):
        return np.broadcast_to(np.eye(model.nv), (len(states), model.nv, model.nv))
    rows = model.constraints.jacobian(states)
    rank = model.nv - len(model.constraints.independent)
    vh = np.linalg.svd(rows)[2]
    return np.swapaxes(vh, -1, -2)[..., rank:]


def least_forces(program: Program, norm: float) -> Array:
    """Closed forms where they are within limits, programs elsewhere."""
    if norm != 2:
        return solve(program, norm)
    inverse = 1 / program.weights
    back = np.linalg.pinv(program.E * inverse, rcond=1e-12)
    found = inverse * np.einsum("snr,sr->sn", back, program.e)
    left = np.abs(np.einsum("srn,sn->sr", program.E, found) - program.e).max(axis=-1, initial=0.0)
    scale = 1e-3 + np.abs(program.e).max(axis=-1, initial=0.0)
    unmet = left > MET * scale
    outside = unmet | ((found < program.low - 1e-12) | (found > program.high + 1e-12)).any(axis=-1)
    if outside.any():
        found[outside] = solve(program.part(outside), norm, np.flatnonzero(outside))
    return found


def force_limits(model: Model, limits: Any, v: Array) -> tuple[Array, Array]:
    """(low, high) of the active coordinates, (n,), or (s, n) where they depend on the speeds v (s, nv)."""
    active = np.flatnonzero(model.actuation.active)
    count = len(active)
    if limits is None:
        return np.full(count, -np.inf), np.full(count, np.inf)
    if isinstance(limits, str):
        if limits == "drives":
            bounds = force_bounds(drive_limits(model.mechanism), v)
            return bounds[0][..., active], bounds[1][..., active]
        if limits != "effort":
            raise InputError(f"limits is {limits!r}, expected 'drives', 'effort', None, numbers or a pair (low, high)")
        most = model.joint_limits()["effort"][active]
        return -most, most
    if isinstance(limits, tuple) and len(limits) == 2:
        low, high = (_per_actuator(x, count) for x in limits)
    else:
        high = _per_actuator(limits, count)
        low = -high
    if (low > high).any() or np.isnan(low).any() or np.isnan(high).any():
        raise InputError("limits: a lower one is above the upper one, or is not a number")
    return low.copy(), high.copy()


def _per_actuator(value: Any, count: int) -> Array:
    array = float_array("limits", value)
    if array.shape not in ((), (count,)):
        raise InputError(f"limits have shape {array.shape}, expected one number or {count}, one per actuator")
    return np.broadcast_to(array, (count,))


__all__ = ["actuator_forces", "force_limits", "least_forces"]
