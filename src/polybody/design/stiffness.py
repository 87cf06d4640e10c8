"""Stiffness, deflection under load, natural frequencies and modes of a machine that its actuators hold.

Actuators hold with τ_a = τ₀ − K_a δq_a − D_a q̇_a. About the posture they hold against gravity, springs and wrenches,
in independent coordinates u (q̇_a = G_a u̇, x = J_u u),

    K = K* + G_aᵀ K_a G_a,     K* = ∂(gravity − springs − Jᵀw)/∂u, from the linear model: A₂₁ = −M⁻¹ K*
    C = J_u K⁻¹ J_uᵀ           compliance of the frame: δx = C δw
    K φ = ω² M φ               modes
    s = eig [0 1; −M⁻¹K  −M⁻¹D]   poles with dampers

K* holds what a load adds (Freeman (2-208)): a machine may buckle, and then some ω² is negative.

Passive coordinates of a tree must be in equilibrium: nothing holds them. A free base that nothing but gravity pulls
falls with all its bodies at one acceleration (Gauss's least constraint is zero: aᵀMa = Σ m g²), and what is felt in it
is a machine without gravity: its linear model is that one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from polybody.design.task import ROWS, Task
from polybody.errors import InputError, PolybodyError
from polybody.late import dataclass
from polybody.linearization import linearize
from polybody.mechanism.columns import velocity_names
from polybody.model.arguments import float_array, state_array
from polybody.model.model import Model

Array = np.ndarray
#: forces below this part of the largest are none
STILL = 1e-7


@dataclass(frozen=True, eq=False)
class Stiffness:
    """The stiffness K (m, m) over `coordinates` and the resulting compliance (6, 6) of the frame, world axes."""

    task: Task  # the frame and the rows of its motion
    q: Array  # configuration
    coordinates: tuple[str, ...]
    matrix: Array  # K
    compliance: Array
    wrenches: dict[str, Array]  # on frames at q, world axes

    @property
    def stable(self) -> bool:
        """Whether the configuration is stable against every small displacement."""
        return bool(np.linalg.eigvalsh((self.matrix + self.matrix.T) / 2)[0] > 0)

    @property
    def frame(self) -> Array:
        """The frame's own stiffness, the inverse of the compliance of the rows that count."""
        rows = list(self.task.rows)
        return np.linalg.pinv(self.compliance[np.ix_(rows, rows)], rcond=1e-12, hermitian=True)

    def deflection(self, wrench: Any) -> Array:
        """[rotation; translation] of the frame under a further wrench on it, world axes, to first order."""
        return self.compliance @ state_array("wrench", wrench, 6)

    def principal(self) -> tuple[Array, Array]:
        """(stiffnesses, axes) of the frame's origin against forces, N/m, softest first; world axes in columns."""
        values, axes = np.linalg.eigh((self.compliance + self.compliance.T)[3:, 3:] / 2)
        with np.errstate(divide="ignore"):
            return 1 / values[::-1], axes[:, ::-1]

    def __str__(self) -> str:
        hard, _ = self.principal()
        shown = ", ".join(f"{x:.4g}" for x in hard)
        state = "" if self.stable else "; NOT stable: it buckles"
        return f"stiffness of {self.task.frame!r} against forces, softest first: {shown} N/m{state}"


@dataclass(frozen=True, eq=False)
class Modes:
    """Natural frequencies (m,) in Hz, lowest first, and shapes (m, nv); NaN frequencies where it buckles.

    `frame` (m, 6) is the frame's displacement in each mode, `poles` (2m,) are those with dampers.
    """

    task: Task  # the frame and the rows of its motion
    q: Array  # configuration
    frequencies: Array
    shapes: Array
    frame: Array
    poles: Array

    @property
    def free(self) -> int:
        """How many motions nothing holds: modes of frequency zero, six of a free base."""
        return int((self.frequencies == 0).sum())

    @property
    def damping_ratios(self) -> Array:
        """−Re s/|s| of the poles, sorted by |s|, (2m,)."""
        poles = self.poles[np.argsort(np.abs(self.poles), kind="stable")]
        with np.errstate(divide="ignore", invalid="ignore"):
            return -np.real(poles) / np.abs(poles)

    def motion(self, mode: int, amplitude: float = 0.1, frames: int = 40) -> Array:
        """Configurations (frames, nq) of one period of a mode; its largest joint displacement is `amplitude`."""
        if not 0 <= mode < len(self.frequencies):
            raise InputError(f"mode is {mode}; there are modes 0 to {len(self.frequencies) - 1}")
        model, shape = self.task.model, self.shapes[mode]
        phase = np.sin(2 * np.pi * np.arange(frames) / frames)[:, None]
        moved = model.integrate(self.q, amplitude * phase * shape / np.abs(shape).max())
        return model.constraints.assemble_dependent(moved) if len(model.constraints) else moved

    def __str__(self) -> str:
        return "natural frequencies: " + ", ".join(f"{x:.4g}" for x in self.frequencies) + " Hz"


def stiffness(task: Task, q: Array, joint_stiffness: Any, wrenches: Mapping[str, Any] | None) -> Stiffness:
    """The machine's stiffness at an assembled configuration that its actuators hold."""
    K, _, _, G = _held(task, q, joint_stiffness, 0.0, wrenches)
    J = task.model.jacobian(q, task.frame) @ G
    values = np.linalg.svd(K, compute_uv=False)
    if values[-1] <= 1e-14 * max(values[0], 1e-300):
        raise PolybodyError(
            "the stiffness is singular at this configuration: give every holding actuator a stiffness, and "
            "passive joints springs; a free base has none against forces"
        )
    compliance = J @ np.linalg.solve(K, J.T)
    loads = {frame: np.asarray(w, dtype=float) for frame, w in (wrenches or {}).items()}
    return Stiffness(task, q, tuple(_coordinates(task.model)), K, compliance, loads)


def modes(
    task: Task, q: Array, joint_stiffness: Any, joint_damping: Any, wrenches: Mapping[str, Any] | None
) -> Modes:
    """Natural frequencies and mode shapes at an assembled configuration."""
    from scipy.linalg import eigh

    K, D, M, G = _held(task, q, joint_stiffness, joint_damping, wrenches)
    values, shapes = eigh((K + K.T) / 2, (M + M.T) / 2)
    slack = 1e-9 * max(float(np.abs(values).max(initial=0.0)), 1e-300)
    squares = np.where(np.abs(values) <= slack, 0.0, values)
    with np.errstate(invalid="ignore"):
        frequencies = np.where(squares >= 0, np.sqrt(np.maximum(squares, 0.0)), np.nan) / (2 * np.pi)
    order = np.argsort(squares)
    J = task.model.jacobian(q, task.frame) @ G
    m = len(M)
    A = np.block([[np.zeros((m, m)), np.eye(m)], [-np.linalg.solve(M, K), -np.linalg.solve(M, D)]])
    return Modes(
        task, q, frequencies[order], (G @ shapes).T[order], (J @ shapes).T[order], np.linalg.eigvals(A)
    )


def _held(
    task: Task, q: Array, joint_stiffness: Any, joint_damping: Any, wrenches: Mapping[str, Any] | None
) -> tuple[Array, Array, Array, Array]:
    """(K, D, M, G) in independent coordinates."""
    model = task.model
    q = model._q(q)
    if q.ndim != 1:
        raise InputError(f"q has shape {q.shape}, expected one configuration, ({model.nq},)")
    Ka, Da = (_per_actuator(n, x, task) for n, x in (("stiffness", joint_stiffness), ("damping", joint_damping)))
    model = _as_felt(task, q, wrenches)
    linear = linearize(model, q, np.zeros(model.nv), wrenches=wrenches)
    M = model.mass_matrix(q)
    m = len(M)
    G = model.constraints.joint_influence(q, 1).G if len(model.constraints) else np.eye(model.nv)
    Ga = G[task.active]
    K = -M @ linear.A[m:, :m] + Ga.T @ (Ka[:, None] * Ga)
    D = -M @ linear.A[m:, m:] + Ga.T @ (Da[:, None] * Ga)
    return K, D, M, G


def _as_felt(task: Task, q: Array, wrenches: Mapping[str, Any] | None) -> Model:
    """The model that stays at q: itself, or without gravity where it falls freely."""
    model = task.model
    passive = np.flatnonzero(~model.actuation.active)
    if not len(passive):
        return model
    tree, still = model.tree if len(model.constraints) else model, np.zeros(model.nv)
    weight = tree.gravity_forces(q)
    needed = tree.inverse_dynamics(q, still, still, wrenches=wrenches)
    others = needed - weight  # against springs and wrenches
    none = STILL * (1 + float(np.abs(needed).max()))
    if not len(model.constraints) and np.abs(needed[passive]).max() <= none:
        return model
    fall = model.forward_dynamics(q, still, others, wrenches=wrenches)
    freely = sum(body.mass for body in model.mechanism.bodies) * float(np.dot(model.gravity, model.gravity))
    if freely > 0 and np.abs(others[passive]).max() <= none and abs(freely + fall @ weight) <= STILL * freely:
        return model.with_gravity((0.0, 0.0, 0.0))
    if len(model.constraints):
        return model  # its actuators hold it, or inverse dynamics says why not
    worst = int(passive[np.argmax(np.abs(needed[passive]))])
    raise InputError(
        f"{velocity_names(model.mechanism)[worst]!r} is passive and not in equilibrium at this configuration: it would "
        f"need {needed[worst]:.4g}. Give a configuration at which it rests, or lock it (model.lock)"
    )


def _per_actuator(name: str, value: Any, task: Task) -> Array:
    array, count = float_array(name, value), len(task.active)
    if array.shape not in ((), (count,)) or not np.isfinite(array).all() or (array < 0).any():
        raise InputError(f"{name} is {value!r}, expected one finite number, not negative, or {count}, one per actuator")
    return np.broadcast_to(array, (count,)).copy()


def _coordinates(model: Model) -> list[str]:
    names = velocity_names(model.mechanism)
    return [names[k] for k in model.constraints.indices(model.constraints.independent)]


__all__ = ["ROWS", "Modes", "Stiffness", "modes", "stiffness"]
