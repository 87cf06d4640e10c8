"""Motors in motion: nominal currents and voltages of a trajectory, and the motor-driven mechanism as states.

With E, K_t, K_e, R, L of `mechanism.motors` (rotors and bearings are part of the mechanism's own dynamics):

    i  = (Eᵀ K_t)⁻¹ tau(q, v, a)                                                                           (2-238)
    i̇  = (Eᵀ K_t)⁻¹ (∂tau/∂a ȧ + ∂tau/∂v a + ∂tau/∂φ v)                             (2-239), as corrected
    V  = L i̇ + R i + K_e E v                                                                               (2-240)

and, forwards, a = FD(q, v, Eᵀ K_t i + tau), L i̇ = V − R i − K_e E v. A motor with L = 0 has no state: its current is
(V − K_e E v)/R at every moment. `simulate(model, …, voltages=…)` integrates the whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polybody.errors import InputError
from polybody.mechanism.columns import Answering

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class MotorInputs:
    """What the motors need for a motion; `unmet` is the joint force on velocities that no motor drives, (..., nv)."""

    currents: Array
    voltages: Array
    unmet: Array


def _motors(model: Answering) -> Any:
    motors = model.mechanism.motors
    if not len(motors):
        raise InputError(f"{model.mechanism.name!r} has no motors; give it some with Builder.motor or in its file")
    return motors


def motor_inputs(model: Answering, q: Array, v: Array, a: Array, jerk: Array | None = None) -> MotorInputs:
    """Nominal currents and voltages of a motion, (..., motors); `jerk` is da/dt, needed where there is inductance."""
    motors = _motors(model)
    if jerk is None and motors.inductance.any():
        named = [n for n, x in zip(motors.names, motors.inductance, strict=True) if x]
        raise InputError(f"motors {', '.join(named)} have inductance: their voltages need the trajectory's jerk, da/dt")
    tau = model.inverse_dynamics(q, v, a)
    T = motors.torques[motors.driven]
    currents = np.linalg.solve(T, tau[..., motors.driven, None])[..., 0]
    rate: Any = 0.0
    if jerk is not None:
        dq, dv, da = model.inverse_dynamics_derivatives(q, v, a)
        u = list(model.independent_columns)  # with loops, the coordinates that the others follow
        tau_dot = _times(dq, v[..., u]) + _times(dv, a[..., u]) + _times(da, jerk[..., u])
        rate = np.linalg.solve(T, tau_dot[..., motors.driven, None])[..., 0]
    voltages = motors.inductance * rate + motors.resistance * currents + v @ motors.voltages.T
    unmet = tau.copy()
    unmet[..., motors.driven] = 0.0
    return MotorInputs(currents, voltages, unmet)


def _times(matrix: Array, vector: Array) -> Array:
    return (matrix @ vector[..., None])[..., 0]


def full_currents(model: Answering, v: Array, currents: Array, voltages: Array) -> Array:
    """Currents of all motors: those of motors without inductance follow from voltage and speed."""
    motors = _motors(model)
    instant = motors.inductance == 0
    result = np.array(currents, dtype=float)
    if instant.any():
        emf = v @ motors.voltages.T
        result[..., instant] = ((voltages - emf) / np.where(instant, motors.resistance, 1.0))[..., instant]
    return result


def motor_dynamics(
    model: Answering, q: Array, v: Array, currents: Array, voltages: Array, tau: Array | None = None
) -> tuple[Array, Array]:
    """(a, di/dt) of the motor-driven mechanism; `tau` are joint forces beside the motors'.

    Currents of motors without inductance are ignored as states: their rate is zero.
    """
    motors = _motors(model)
    i = full_currents(model, v, currents, voltages)
    applied = i @ motors.torques.T
    a = model.forward_dynamics(q, v, applied if tau is None else applied + tau)
    slow = motors.inductance > 0
    net = voltages - motors.resistance * i - v @ motors.voltages.T
    return a, np.where(slow, net / np.where(slow, motors.inductance, 1.0), 0.0)


__all__ = ["MotorInputs", "full_currents", "motor_dynamics", "motor_inputs"]
