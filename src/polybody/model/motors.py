"""Motors in motion: nominal currents and voltages of a trajectory, and the motor-driven mechanism as states.

With E, K_t, K_e, R, L of `mechanism.motors` (rotors and bearings are part of the mechanism's own dynamics):

    i  = (Eᵀ K_t)⁻¹ tau(q, v, a)                                                                           (2-238)
    i̇  = (Eᵀ K_t)⁻¹ (∂tau/∂a ȧ + ∂tau/∂v a + ∂tau/∂φ v)                             (2-239), as corrected
    V  = L i̇ + R i + K_e E v                                                                               (2-240)

and, forwards, a = FD(q, v, Eᵀ K_t i + tau), L i̇ = V − R i − K_e E v. A motor with L = 0 has no state: its current is
(V − K_e E v)/R at every moment. `simulate(model, …, voltages=…)` integrates the whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from polybody.errors import InputError
from polybody.late import dataclass
from polybody.model.arguments import state_array
from polybody.model.sets import each_set

if TYPE_CHECKING:
    from polybody.model.model import Model

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class MotorInputs:
    """Motor currents and voltages of a motion.

    `unmet`, (..., nv), is the joint force on velocities that no motor drives.
    """

    currents: Array
    voltages: Array
    unmet: Array


class ModelMotors:
    """Currents and voltages of a model's motors."""

    def __init__(self, model: Model) -> None:
        self._model, self._motors = model, model.mechanism.motors

    def __len__(self) -> int:
        return len(self._motors)

    @property
    def names(self) -> list[str]:
        """Names of the motors, in the order of currents and voltages."""
        return list(self._motors.names)

    @each_set
    def inputs(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, jerk: ArrayLike | None = None, *,
        parameters: ArrayLike | None = None,
    ) -> MotorInputs:  # fmt: skip
        """Currents and voltages (..., motors) of a motion; `jerk` = da/dt is required if a motor has inductance."""
        motors, nv = self._some(), self._model.nv
        q, v, a = self._model._q(q), state_array("v", v, nv), state_array("a", a, nv)
        if jerk is None and motors.inductance.any():
            named = [n for n, x in zip(motors.names, motors.inductance, strict=True) if x]
            raise InputError(
                f"motors {', '.join(named)} have inductance: their voltages need the trajectory's jerk, da/dt"
            )
        tau = self._model.inverse_dynamics(q, v, a)
        T = motors.torques[motors.driven]
        currents = np.linalg.solve(T, tau[..., motors.driven, None])[..., 0]
        rate: Any = 0.0
        if jerk is not None:
            third = state_array("jerk", jerk, nv)
            dq, dv, da = self._model.inverse_dynamics_derivatives(q, v, a)
            u = list(self._model.engine.independent)  # the coordinates that the others follow
            tau_dot = _times(dq, v[..., u]) + _times(dv, a[..., u]) + _times(da, third[..., u])
            rate = np.linalg.solve(T, tau_dot[..., motors.driven, None])[..., 0]
        voltages = motors.inductance * rate + motors.resistance * currents + v @ motors.voltages.T
        unmet = tau.copy()
        unmet[..., motors.driven] = 0.0
        return MotorInputs(currents, voltages, unmet)

    @each_set
    def dynamics(
        self, q: ArrayLike, v: ArrayLike, currents: ArrayLike, voltages: ArrayLike, tau: ArrayLike | None = None, *,
        parameters: ArrayLike | None = None,
    ) -> tuple[Array, Array]:  # fmt: skip
        """(a, di/dt) of the motor-driven mechanism; `tau` are joint forces in addition to those of the motors.

        Currents of motors without inductance are not states: their rate is zero.
        """
        motors, count, nv = self._some(), len(self._motors), self._model.nv
        q, v = self._model._q(q), state_array("v", v, nv)
        V = state_array("voltages", voltages, count)
        i = self.full_currents(v, state_array("currents", currents, count), V)
        applied = i @ motors.torques.T
        a = self._model.forward_dynamics(q, v, applied if tau is None else applied + state_array("tau", tau, nv))
        slow = motors.inductance > 0
        net = V - motors.resistance * i - v @ motors.voltages.T
        return a, np.where(slow, net / np.where(slow, motors.inductance, 1.0), 0.0)

    @each_set
    def full_currents(
        self, v: Array, currents: Array, voltages: Array, *, parameters: ArrayLike | None = None
    ) -> Array:
        """Currents of all motors; those of motors without inductance follow from voltage and speed."""
        motors = self._some()
        instant = motors.inductance == 0
        result = np.array(currents, dtype=float)
        if instant.any():
            emf = v @ motors.voltages.T
            result[..., instant] = ((voltages - emf) / np.where(instant, motors.resistance, 1.0))[..., instant]
        return result

    def _some(self) -> Any:
        if not len(self._motors):
            raise InputError(f"{self._model.name!r} has no motors; give it some with Builder.motor or in its file")
        return self._motors


def _times(matrix: Array, vector: Array) -> Array:
    return (matrix @ vector[..., None])[..., 0]


__all__ = ["ModelMotors", "MotorInputs"]
