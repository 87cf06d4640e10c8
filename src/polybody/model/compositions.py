"""Quantities of trees that are composed of others where a kernel of their own would be too long, or is not worth it.

    M⁻¹, Λ⁻¹ = J M⁻¹ Jᵀ        columns by "mass_solve", O(n) each
    da = −M⁻¹ dtau              of derivatives of inverse dynamics
    dtau                        one directional derivative for each degree of freedom, as a batch
    J v, J a + J̇ v              of a frame
    Y                           of a large robot: its entries that are not zero, put in their places

`COMPOSED` says which, and on which trees; all others have kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.late import dataclass
from polybody.model.engine import Request
from polybody.quantities import frames, regressors
from polybody.quantities.quantity import Quantity
from polybody.quantities.table import QUANTITIES

if TYPE_CHECKING:
    from polybody.model.tree_engine import TreeEngine

Array = np.ndarray

#: Degrees of freedom up to which derivatives of forward dynamics are straight-line code where the dynamics is rolled.
STRAIGHT_DERIVATIVES_UP_TO = 16
#: Entries of Y above which most are zeros that straight-line code need not write.
WHOLE_REGRESSOR_UP_TO = 2000


@dataclass(frozen=True)
class Composition:
    """How a quantity is composed, and on which trees."""

    answer: Callable[[TreeEngine, Request], Any]
    applies: Callable[[TreeEngine], bool]


def composition(engine: TreeEngine, asked: Quantity) -> Composition | None:
    """What composes a quantity on a tree; None where a kernel answers."""
    found = COMPOSED.get(asked.name.partition(":")[0])
    return found if found is not None and found.applies(engine) else None


def _ask(
    engine: TreeEngine, request: Request, asked: str | Quantity, *arrays: Array, wrenches: Array | None = None
) -> Any:
    """Another quantity at the states of a request, with its parameters."""
    wanted = QUANTITIES[asked] if isinstance(asked, str) else asked
    return engine.answer(Request(wanted, arrays, wrenches, parameters=request.parameters))


def _frame_and_axes(request: Request) -> tuple[str, str]:
    frame, _, axes = request.quantity.name.partition(":")[2].rpartition(":")
    return frame, axes


def _turned(matrix: Array) -> Array:
    return np.swapaxes(matrix, -1, -2)


# Dynamics.


def solve_mass(engine: TreeEngine, request: Request, q: Array, rows: Array) -> Array:
    """M(q)⁻¹ times every row of rows (..., k, nv)."""
    kernel = engine.rolled("mass_solve")
    if kernel is None:
        return _turned(np.linalg.solve(_ask(engine, request, "mass_matrix", q), _turned(rows)))
    return kernel(q[..., None, :], rows)


def _inverse_mass_matrix(engine: TreeEngine, request: Request) -> Array:
    return solve_mass(engine, request, request.arrays[0], np.eye(engine.mechanism.nv))


def _task_space_inertia(engine: TreeEngine, request: Request) -> Array:
    (q,), frame = request.arrays, request.quantity.name.partition(":")[2]
    J = _ask(engine, request, frames.jacobian(engine.mechanism, frame), q)
    return np.linalg.inv(J @ _turned(solve_mass(engine, request, q, J)))


def _forward_dynamics(engine: TreeEngine, request: Request) -> Array:
    """Where many joints are one pivot: M⁻¹ (tau − ID(q, v, 0))."""
    q, v, tau = request.arrays
    force = tau - _ask(engine, request, "inverse_dynamics", q, v, np.zeros_like(v), wrenches=request.wrenches)
    return solve_mass(engine, request, q, force[..., None, :])[..., 0, :]


def _constraint_loads(engine: TreeEngine, request: Request) -> tuple[Array, Array]:
    a = _ask(engine, request, "forward_dynamics", *request.arrays, wrenches=request.wrenches)
    return a, np.zeros((*a.shape[:-1], 0))


def _implicit_residual(engine: TreeEngine, request: Request) -> tuple[Array, Array]:
    q, v, a, tau, _ = request.arrays
    balance = _ask(engine, request, "inverse_dynamics", q, v, a) - tau
    return balance, np.zeros((*balance.shape[:-1], 0))


def _augmented_system(engine: TreeEngine, request: Request) -> tuple[Array, Array]:
    q, v, tau = request.arrays
    right = tau - _ask(engine, request, "inverse_dynamics", q, v, np.zeros_like(v))
    M = _ask(engine, request, "mass_matrix", q)
    return np.broadcast_to(M, (*right.shape[:-1], *M.shape[-2:])), right


# Derivatives.


def _inverse_dynamics_derivatives(engine: TreeEngine, request: Request) -> tuple[Array, Array, Array]:
    loads = () if request.wrenches is None else (request.wrenches[..., None, :],)
    kernel = engine.rolled(f"inverse_directional{'_wrenches' if loads else ''}")
    assert kernel is not None
    unit, none = np.eye(engine.mechanism.nv), np.zeros(engine.mechanism.nv)
    q, v, a = (x[..., None, :] for x in request.arrays)
    dq, dv = (_turned(kernel(q, x, v, y, a, none, *loads)) for x, y in ((unit, none), (none, unit)))
    return dq, dv, np.broadcast_to(_ask(engine, request, "mass_matrix", request.arrays[0]), dq.shape)


def _forward_dynamics_derivatives(engine: TreeEngine, request: Request) -> tuple[Array, Array, Array]:
    q, v, tau = request.arrays
    a = _ask(engine, request, "forward_dynamics", q, v, tau, wrenches=request.wrenches)
    dq, dv, M = _ask(engine, request, "inverse_dynamics_derivatives", q, v, a, wrenches=request.wrenches)
    if engine.is_long and engine.mechanism.separable:
        da_dq, da_dv = (_turned(-solve_mass(engine, request, q, _turned(x))) for x in (dq, dv))
        return da_dq, da_dv, np.broadcast_to(_inverse_mass_matrix(engine, request), dq.shape)
    inverse = np.linalg.inv(M)
    negative = -inverse
    return negative @ dq, negative @ dv, np.broadcast_to(inverse, dq.shape)


def _motion_derivatives(engine: TreeEngine, request: Request) -> tuple[Array, ...]:
    dq, dv, dtau = _ask(engine, request, "forward_dynamics_derivatives", *request.arrays, wrenches=request.wrenches)
    return dq, dv, dtau, np.broadcast_to(np.eye(engine.mechanism.nv), dq.shape), np.zeros_like(dq)


# Frames.


def _relative_pose(engine: TreeEngine, request: Request) -> Array:
    """S⁻¹ T; frames' names may have colons themselves."""
    words, known = request.quantity.name.split(":")[1:], engine.mechanism.frame_index
    pairs = [(":".join(words[:k]), ":".join(words[k:])) for k in range(1, len(words))]
    names = next(pair for pair in pairs if all(name in known for name in pair))
    T, S = (_ask(engine, request, frames.pose(engine.mechanism, name), *request.arrays) for name in names)
    R, result = _turned(S[..., :3, :3]), np.zeros_like(T)
    result[..., :3, :3] = R @ T[..., :3, :3]
    result[..., :3, 3:] = R @ (T[..., :3, 3:] - S[..., :3, 3:])
    result[..., 3, 3] = 1.0
    return result


def _frame_velocity(engine: TreeEngine, request: Request) -> Array:
    frame, axes = _frame_and_axes(request)
    q, v = request.arrays
    return (_ask(engine, request, frames.jacobian(engine.mechanism, frame, axes), q) @ v[..., None])[..., 0]


def _frame_acceleration(engine: TreeEngine, request: Request) -> Array:
    m, (frame, axes), (q, v, a) = engine.mechanism, _frame_and_axes(request), request.arrays
    J = _ask(engine, request, frames.jacobian(m, frame), q)
    rate = _ask(engine, request, frames.jacobian_rate(m, frame), q, v)
    found = J @ a[..., None] + rate @ v[..., None]
    if axes == "frame":
        R = _turned(_ask(engine, request, frames.pose(m, frame), q)[..., :3, :3])
        found = np.concatenate([R @ found[..., :3, :], R @ found[..., 3:, :]], axis=-2)
    return found[..., 0]


def _regressor(engine: TreeEngine, request: Request) -> Array:
    terms = request.quantity.name.partition(":")[2]
    asked = regressors.regressor_nonzeros(engine.mechanism, terms)
    rows, columns = regressors.structure(engine.mechanism, regressors.ordered_terms(terms))
    found = _ask(engine, request, asked, *request.arrays)
    (_, shape), *_ = engine.results(request.quantity)
    result = np.zeros((*found.shape[:-1], shape[0] * shape[1]))
    result[..., rows * shape[1] + columns] = found
    return result.reshape(*found.shape[:-1], *shape)


def _always(engine: TreeEngine) -> bool:
    return True


def _long(engine: TreeEngine) -> bool:
    return engine.is_long


COMPOSED: dict[str, Composition] = {
    "forward_dynamics": Composition(_forward_dynamics, lambda engine: engine.is_long and engine.has_large_group),
    "inverse_mass_matrix": Composition(_inverse_mass_matrix, _long),
    "task_space_inertia": Composition(_task_space_inertia, _long),
    "constraint_loads": Composition(_constraint_loads, _long),
    "implicit_residual": Composition(_implicit_residual, _long),
    "augmented_system": Composition(_augmented_system, _long),
    "inverse_dynamics_derivatives": Composition(_inverse_dynamics_derivatives, lambda engine: engine.is_rolled),
    "forward_dynamics_derivatives": Composition(
        _forward_dynamics_derivatives,
        lambda engine: engine.is_rolled and engine.mechanism.nv > STRAIGHT_DERIVATIVES_UP_TO,
    ),
    "motion_derivatives": Composition(_motion_derivatives, _always),
    "regressor": Composition(
        _regressor, lambda engine: 10 * len(engine.mechanism.bodies) * engine.mechanism.nv > WHOLE_REGRESSOR_UP_TO
    ),
    "relative_pose": Composition(_relative_pose, _long),
    "frame_velocity": Composition(_frame_velocity, _long),
    "frame_acceleration": Composition(_frame_acceleration, _long),
}

__all__ = ["COMPOSED", "Composition", "composition", "solve_mass"]
