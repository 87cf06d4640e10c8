"""The linearised state-space model of a mechanism about a state or along a trajectory (Freeman (2-241)-(2-252)).

The state is [δ; v; i]: δ the displacement in tangent space (q = integrate(q₀, δ)), v the velocity, i the currents of
motors with inductance. About a nominal motion (q₀, v₀, tau₀),

    δ̇  = F11 δ + δv                               F11 = −ad_v: δ̇^k = δv^k − Σ c^k_mn v^m δ^n
    δv̇ = F21 δ + F22 δv + F23 δi + G2 δu          F21 = ∂a/∂φ, F22 = ∂a/∂v, F23 = ∂a/∂tau Eᵀ K_t
    δi̇ = −L⁻¹ K_e E δv − L⁻¹ R δi + L⁻¹ δV

c are the structure constants of the velocity directions: the paper's F11 = 0 holds only where q̇ = v; body-fixed
quasi-velocities of spherical, floating and planar joints need −ad_v. A motor without inductance is the limit L → 0:
i = R⁻¹(V − K_e E v) is no state, and its back-EMF joins F22. Torque inputs are the active columns only.

Loads. Wrenches w on frames with coefficients G^u, H^u enter twice: held at their nominal value they turn the joints'
loads as the mechanism moves, and a disturbance δw acts as an input,

    K = ∂(G^uᵀ w)/∂φ = wᵀ • H^uᵀ, in F21 as M⁻¹ K          (2-208), `nominal_load`
    δv̇ += M⁻¹ G^uᵀ δw = E δw                               (2-227), `E` and `disturbances`

With loops δ and δv are those of independent coordinates u, m of them; joints follow by δφ = G δ, δv_φ = G δv + V δ (see
`quantities.constrained`), so that F11 are the rows u of −ad_v G, and a motor's back-EMF feels δ as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from polybody.errors import InputError, PolybodyError
from polybody.formulations.influence.incidence import structure_constants
from polybody.interrupts import interruptible
from polybody.late import dataclass
from polybody.mechanism.columns import actuated, state_text, velocity_names
from polybody.model.arguments import finite, float_array, require_model, state_array
from polybody.model.batches import batch_shape
from polybody.model.dispatch import answered_by
from polybody.model.model import Model
from polybody.model.wrenches import Wrenches

Array = np.ndarray

#: the six numbers of a frame's displacement, rotations first
DISPLACEMENT = ("rx", "ry", "rz", "x", "y", "z")
#: and of a wrench on it
WRENCH = ("mx", "my", "mz", "fx", "fy", "fz")
#: states that are linearised at once
AT_ONCE = 4096


@dataclass(frozen=True, eq=False)
class StateSpace:
    """ẋ = A x + B u + E w, y = C x + D u, in continuous time; arrays may have leading dimensions, one model per state.

    w are disturbances: wrenches on frames beside the nominal ones (Freeman (2-227)), none unless asked for.
    `nominal_load` (m×m) is K of the nominal wrenches (2-208), already part of A; zero without wrenches.
    """

    A: Array
    B: Array
    C: Array
    D: Array
    states: tuple[str, ...]  # names of x
    inputs: tuple[str, ...]  # names of u
    outputs: tuple[str, ...]  # names of y
    E: Array
    disturbances: tuple[str, ...]
    nominal_load: Array

    def poles(self) -> Array:
        """Eigenvalues of A."""
        return np.linalg.eigvals(self.A)

    def to_control(self, *, disturbances: bool = False) -> Any:
        """The same system for the python-control package (extra `control`), with the names of its signals.

        With `disturbances` they are inputs too, after the others.
        """
        try:
            import control
        except ImportError:
            raise PolybodyError("python-control is not installed; pip install polybody[control]") from None
        if self.A.ndim != 2:
            raise InputError(f"to_control needs one state-space model, this holds a batch of {self.A.shape[:-2]}")
        B, D, inputs = self.B, self.D, list(self.inputs)
        if disturbances:
            B, inputs = np.concatenate([B, self.E], axis=1), inputs + list(self.disturbances)
            D = np.concatenate([D, np.zeros((len(D), self.E.shape[1]))], axis=1)
        return control.ss(
            self.A, B, self.C, D, states=list(self.states), inputs=inputs, outputs=list(self.outputs)
        )


@dataclass(frozen=True, eq=False)
class Tangent:
    """Accelerations about a motion in coordinates that are some velocities: names and indices in v, δφ = G δ,
    δv_φ = G δv + V δ, and the derivatives of all accelerations by δ, δv and tau."""

    names: tuple[str, ...]
    columns: tuple[int, ...]
    G: Array
    V: Array
    da_dq: Array
    da_dv: Array
    da_dtau: Array


@answered_by("linearized")
@interruptible
def linearize(
    model: Model, q: ArrayLike, v: ArrayLike, tau: ArrayLike | None = None, *, inputs: str = "torque",
    outputs: Sequence[str] | None = None, independent: Sequence[str] | None = None, wrenches: Wrenches | None = None,
    disturbances: Sequence[str] = (), parameters: ArrayLike | None = None,
) -> StateSpace:  # fmt: skip
    """Linearise a model about (q, v) under tau: continuous A, B, C, D in tangent space.

    Leading dimensions of the arguments return one linear model per state. States are q_… (displacements in tangent
    space), v_… and, with inputs="voltage", the currents i_… of motors with inductance. tau=None uses the joint forces
    that give zero acceleration. `inputs` is "torque", one per active coordinate, or "voltage", one per motor, followed
    by torques of active coordinates without a motor. `outputs` names frames whose displacement [rotation; translation]
    in world axes is measured; None measures every state. `wrenches` on frames stay constant in world axes.
    `disturbances` names frames on which further wrenches may act: six inputs each, matrix `E`, also with loops and
    motors.

    With loops the states are those of the `independent` coordinates (default `model.constraints.independent`), the
    dependent ones follow, and tau=None uses forces at active joints that give the independent coordinates zero
    acceleration. `parameters`, (k,) or (..., k), are values of the parameters of `model.with_parameters`; their leading
    dimensions broadcast with those of q.
    """
    _check_inputs(inputs)
    require_model("linearize", model)
    q, v = finite("q", state_array("q", q, model.nq)), finite("v", state_array("v", v, model.nv))
    for frame, wrench in (wrenches or {}).items():
        finite(f"wrenches[{frame!r}]", state_array(f"wrenches[{frame!r}]", wrench, 6))
    _once("disturbances", disturbances)
    _once("outputs", outputs or ())
    values = None if parameters is None else model.parameters.checked(parameters)
    if values is not None and inputs == "voltage":  # motors' numbers may be among the parameters
        on = list(wrenches or {})
        forces = [] if tau is None else [state_array("tau", tau, model.nv)]
        loads = [float_array(f"wrenches[{frame!r}]", (wrenches or {})[frame]) for frame in on]

        def one(q: Array, v: Array, values: Array, *more: Array) -> StateSpace:
            own, felt = model.parameters.at(values), dict(zip(on, more[len(forces) :], strict=True))
            return linearize(
                own, q, v, *more[: len(forces)], inputs=inputs, outputs=outputs, independent=independent,
                wrenches=felt or None, disturbances=disturbances,
            )  # fmt: skip

        return _stacked(one, [q, v, values, *forces, *loads])
    given = [q, v] if tau is None else [q, v, finite("tau", state_array("tau", tau, model.nv))]
    frames = list(wrenches or {})
    last = len(given)
    given += [state_array(f"wrenches[{frame!r}]", (wrenches or {})[frame], 6) for frame in frames]
    given += [] if values is None else [values]
    if values is not None and not np.prod(batch_shape(given), dtype=int):
        raise InputError(f"no states to linearise about: their leading dimensions are {batch_shape(given)}")

    def some(*arrays: Array) -> StateSpace:
        loads = dict(zip(frames, arrays[last:], strict=False))
        own = None if values is None else arrays[-1]
        return _at_once(model, *arrays[:last], inputs=inputs, outputs=outputs, independent=independent,
                        wrenches=loads or None, disturbances=disturbances, parameters=own)  # fmt: skip

    try:
        return _in_pieces(some, given)
    except PolybodyError:
        some(*given)  # asked of all, so that its error counts the batch's states
        raise


def _at_once(
    model: Model, q: Array, v: Array, tau: Array | None = None, *, inputs: str, outputs: Sequence[str] | None,
    independent: Sequence[str] | None, wrenches: Wrenches | None, disturbances: Sequence[str],
    parameters: Array | None = None,
) -> StateSpace:  # fmt: skip
    """`linearize` of checked states; parameters of each state with torques as inputs."""
    columns = model.constraints.indices(independent or model.constraints.independent)
    if tau is None:
        model.engine.require_closed(q, v, parameters)
        u_dot, none = v[..., list(columns)], np.zeros(len(columns))
        _, still = model.constraints.joint_motion(q, u_dot, none, independent=independent, parameters=parameters)
        tau = model.inverse_dynamics(q, v, still, wrenches=wrenches, parameters=parameters)
    da_dq, da_dv, da_dtau, G, V = model.constraints.motion_derivatives(
        q, v, tau, wrenches=wrenches, independent=independent, parameters=parameters
    )
    _require_determined(da_dq, da_dv, da_dtau)
    names = velocity_names(model.mechanism)
    tangent = Tangent(tuple(names[k] for k in columns), columns, G, V, da_dq, da_dv, da_dtau)
    made = state_space(model, q, v, tangent, inputs=inputs, outputs=outputs, disturbances=disturbances,
                       parameters=parameters)  # fmt: skip
    return replace(made, nominal_load=made.nominal_load + nominal_load(model, q, wrenches, independent, parameters))


def nominal_load(
    model: Model, q: ArrayLike, wrenches: Wrenches | None, independent: Sequence[str] | None = None,
    parameters: Array | None = None,
) -> Array:  # fmt: skip
    """K = ∂(Gᵀw)/∂u of wrenches that stay constant in world axes, (..., m, m), by (2-208)."""
    chosen = (independent or model.constraints.independent) if len(model.constraints) else None
    m = model.nv if chosen is None else len(model.constraints.indices(chosen))
    K: Any = np.zeros((m, m))
    for frame, wrench in (wrenches or {}).items():
        H = model.coefficients.influence(q, frame, 2, independent=chosen, parameters=parameters).H
        assert H is not None, "of order 2"
        w = state_array(f"wrenches[{frame!r}]", wrench, 6)
        K = K + np.einsum("...i,...inm->...mn", w, H)  # (2-207): ∂T_m/∂φ_n = w · h_nm
    return K


def state_space(
    model: Model, q: Array, v: Array, tangent: Tangent, *, inputs: str = "torque",
    outputs: Sequence[str] | None = None, disturbances: Sequence[str] = (), parameters: Array | None = None,
) -> StateSpace:
    """The state-space model from derivatives of the accelerations in some coordinates; its nominal load is zero."""
    _check_inputs(inputs)
    m, u = model.mechanism, list(tangent.columns)
    F11 = -(np.einsum("kmn,...m->...kn", structure_constants(m)[u], v) @ tangent.G)
    F11 = np.broadcast_to(F11, (*tangent.da_dq.shape[:-2], len(u), len(u)))
    if inputs == "torque":
        A, B, currents, names = *_mechanical(m, F11, tangent), [], _torque_names(m, actuated(m))
    else:
        A, B, currents, names = _with_motors(m, F11, tangent)
    coordinates = tangent.names
    states = [f"q_{n}" for n in coordinates] + [f"v_{n}" for n in coordinates] + [f"i_{n}" for n in currents]
    C, measured = _outputs(model, q, tangent, states, outputs, parameters)
    C = np.broadcast_to(C, (*A.shape[:-2], *C.shape[-2:]))
    D = np.zeros((*A.shape[:-2], C.shape[-2], B.shape[-1]))
    E, acting = _disturbed(model, q, tangent, A, disturbances, parameters)
    still = np.zeros((*A.shape[:-2], len(u), len(u)))
    return StateSpace(A, B, C, D, tuple(states), tuple(names), tuple(measured), E, acting, still)


def _disturbed(
    model: Model, q: Array, x: Tangent, A: Array, frames: Sequence[str], parameters: Array | None
) -> tuple[Array, tuple[str, ...]]:
    """(E, names): wrenches on frames as inputs, with the joint forces Jᵀ w (2-227)."""
    frames, n = [frames] if isinstance(frames, str) else list(frames), len(x.columns)
    E = np.zeros((*A.shape[:-1], 6 * len(frames)))
    for k, frame in enumerate(frames):
        back = np.swapaxes(model.jacobian(q, frame, parameters=parameters), -1, -2)
        E[..., n : 2 * n, 6 * k : 6 * k + 6] = x.da_dtau[..., list(x.columns), :] @ back
    return E, tuple(f"{frame}_{part}" for frame in frames for part in WRENCH)


def _stacked(one: Callable[..., StateSpace], arrays: Sequence[Array]) -> StateSpace:
    """One state-space model for each state of a batch, put together."""
    lead = batch_shape(arrays)
    if not lead:
        return one(*arrays)
    wide = [np.broadcast_to(x, (*lead, x.shape[-1])) for x in arrays]
    if not np.prod(lead, dtype=int):
        raise InputError(f"no states to linearise about: their leading dimensions are {lead}")
    found = []
    for index in np.ndindex(lead):
        try:
            found.append(one(*(x[index] for x in wide)))
        except PolybodyError as error:
            error.args = (f"{error}{state_text(index)}", *error.args[1:])
            raise
    arrays_of = [key for key, value in vars(found[0]).items() if isinstance(value, np.ndarray)]
    whole = {k: np.array([getattr(x, k) for x in found]) for k in arrays_of}
    return replace(found[0], **{k: value.reshape(*lead, *value.shape[1:]) for k, value in whole.items()})


def _require_determined(*derivatives: Array) -> None:
    """An error where accelerations have no derivatives: of a state whose mass matrix is singular."""
    bad = [np.argwhere(~np.isfinite(x).all(axis=(-2, -1))) for x in derivatives]
    first = next((x[0] for x in bad if len(x)), None)
    if first is not None:
        raise PolybodyError(
            f"accelerations are not determined{state_text(first)}: some motion there has no inertia (the mass matrix "
            "is singular), so there is no linear model"
        )


def _in_pieces(some: Callable[..., StateSpace], arrays: Sequence[Array]) -> StateSpace:
    """some(*arrays), a few thousand states at a time: each step of it, which no interrupt ends, is a short one."""
    lead = batch_shape(arrays)
    count = int(np.prod(lead, dtype=int))
    if count <= AT_ONCE:
        return some(*arrays)
    flat = [np.broadcast_to(x, (*lead, x.shape[-1])).reshape(count, x.shape[-1]) if x.ndim > 1 else x for x in arrays]
    whole: dict[str, Array] = {}
    made: Any = None
    for k in range(0, count, AT_ONCE):
        part = slice(k, min(k + AT_ONCE, count))
        made = some(*(x[part] if x.ndim > 1 else x for x in flat))
        for key, value in vars(made).items():
            if not isinstance(value, np.ndarray):
                continue
            if value.strides[0] == 0 and value.ndim == 3:  # the same for all states
                whole.setdefault(key, np.broadcast_to(value[0], (count, *value.shape[1:])))
                continue
            if key not in whole:
                whole[key] = np.zeros((count, *value.shape[1:]))
            if value.any():  # zeros are there already, and of pages that were never written
                whole[key][part] = value
    return replace(made, **{key: value.reshape(*lead, *value.shape[1:]) for key, value in whole.items()})


def _once(name: str, frames: Sequence[str] | str) -> None:
    frames = [frames] if isinstance(frames, str) else list(frames)
    twice = [frame for frame in frames if frames.count(frame) > 1]
    if twice:
        raise InputError(f"{name} name frame {twice[0]!r} twice")


def _check_inputs(inputs: str) -> None:
    if inputs not in ("torque", "voltage"):
        raise InputError(f"inputs is {inputs!r}, expected 'torque' or 'voltage'")


def _torque_names(mechanism: Any, indices: Array) -> list[str]:
    names = velocity_names(mechanism)
    return [f"tau_{names[k]}" for k in indices]


def _blocks(rows: list[list[Array]]) -> Array:
    """A matrix of blocks, with leading dimensions."""
    return np.concatenate([np.concatenate(row, axis=-1) for row in rows], axis=-2)


def _mechanical(m: Any, F11: Array, x: Tangent) -> tuple[Array, Array]:
    u = list(x.columns)
    eye = np.broadcast_to(np.eye(len(u)), F11.shape)
    A = _blocks([[F11, eye], [x.da_dq[..., u, :], x.da_dv[..., u, :]]])
    columns = x.da_dtau[..., u, :][..., actuated(m)]
    return A, np.concatenate([np.zeros_like(columns), columns], axis=-2)


def _with_motors(m: Any, F11: Array, x: Tangent) -> tuple[Array, Array, list[str], list[str]]:
    """A, B, names of currents that are states, names of inputs: voltages, then torques of motorless active joints."""
    motors = m.motors
    if not len(motors):
        raise InputError(f"{m.name!r} has no motors, so it has no voltage inputs; use inputs='torque' or add motors")
    lead, u = x.da_dq.shape[:-2], list(x.columns)
    da_dtau = x.da_dtau[..., u, :]

    def wide(matrix: Array) -> Array:
        return np.broadcast_to(matrix, (*lead, *matrix.shape))

    slow, instant = motors.inductance > 0, motors.inductance == 0
    T, Ke, R, L = motors.torques, motors.voltages, motors.resistance, motors.inductance
    # the limit L → 0: the current follows at once
    drag = da_dtau @ (T[:, instant] @ (Ke[instant] / R[instant, None]))
    da_dq, da_dv = x.da_dq[..., u, :] - drag @ x.V, x.da_dv[..., u, :] - drag @ x.G
    per_volt = np.zeros((m.nv, len(motors)))
    per_volt[:, instant] = T[:, instant] / R[instant]
    F23 = da_dtau @ T[:, slow]
    emf, F33 = -Ke[slow] / L[slow, None], -np.diag(R[slow] / L[slow])
    G31 = np.zeros((int(slow.sum()), len(motors)))
    G31[:, slow] = np.diag(1 / L[slow])
    free = np.array([k for k in actuated(m) if k not in set(motors.driven)], dtype=int)
    eye, n = wide(np.eye(len(u))), len(u)
    k = int(slow.sum())
    A = _blocks([
        [F11, eye, wide(np.zeros((n, k)))],
        [da_dq, da_dv, F23],
        [emf @ x.V, emf @ x.G, wide(F33)],
    ])
    B = _blocks([
        [wide(np.zeros((n, len(motors) + len(free))))],
        [da_dtau @ per_volt, da_dtau[..., free]],
        [wide(G31), wide(np.zeros((k, len(free))))],
    ])
    currents = [name for name, state in zip(motors.names, slow, strict=True) if state]
    return A, B, currents, [f"V_{name}" for name in motors.names] + _torque_names(m, free)


def _outputs(
    model: Model, q: Array, x: Tangent, states: list[str], frames: Sequence[str] | None, parameters: Array | None
) -> tuple[Array, list[str]]:
    """C and the outputs' names: all states, or displacements of frames [rotation; translation] in world axes."""
    if frames is None:
        return np.eye(len(states)), states
    if isinstance(frames, str):
        frames = [frames]
    rows = np.concatenate([model.jacobian(q, name, parameters=parameters) for name in frames], axis=-2) @ x.G
    C = np.zeros((*rows.shape[:-1], len(states)))
    C[..., : rows.shape[-1]] = rows
    return C, [f"{frame}_{part}" for frame in frames for part in DISPLACEMENT]


__all__ = ["StateSpace", "Tangent", "linearize", "nominal_load", "state_space"]
