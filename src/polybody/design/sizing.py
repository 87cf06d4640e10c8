"""Choosing actuators: what a motion takes of them, and what load they bear.

Over a motion of T seconds each active coordinate has

    peak |τ|, rms τ = √(1/T ∫τ² dt), peak and rms speed, peak power |τ v|, energy ∫ max(τv, 0) dt put in and taken back

The inertia that it drives is I = M_aa of the machine seen from the actuators (A⁻ᵀ M A⁻¹ where there are as many as the
mobility), without reflected rotors; the gear that gives a motor of rotor inertia J most acceleration for its torque
reflects as much as it drives, n = √(I/J).

Inverse dynamics is linear in a payload's mass: τ = τ₀ + m τ₁. So the largest payload within effort limits along a
motion is the least of (±limit − τ₀)/τ₁ over times and actuators, exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from polybody.design.task import Task, held_by_others, unit_direction
from polybody.errors import InputError
from polybody.late import dataclass
from polybody.model.arguments import float_array

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Sizing:
    """Actuator requirements of a motion; arrays have one entry per active coordinate, in the order of `names`.

    `effort` and `speed` are the limits used (inf where there is none), `utilisation` peak torque over its limit.
    `inertia` is (least, greatest) over the motion, `gear` the best ratio, NaN without a motor.
    """

    names: tuple[str, ...]
    t: Array  # (n,), s
    tau: Array  # (n, names), N·m or N
    v: Array  # (n, names), rad/s or m/s
    peak_torque: Array  # largest |tau|
    rms_torque: Array  # root mean square over the motion
    peak_speed: Array  # largest |v|
    rms_speed: Array  # root mean square over the motion
    peak_power: Array  # largest tau v, W
    mean_power: Array  # over the motion, W
    energy_in: Array  # J, while tau v is positive
    energy_back: Array  # J, while tau v is negative
    effort: Array
    speed: Array
    inertia: tuple[Array, Array]
    reflected: Array  # inertia of motor and gear at the joint
    gear: Array

    @property
    def utilisation(self) -> Array:
        """Peak torque over effort limit."""
        return self.peak_torque / self.effort

    @property
    def speed_utilisation(self) -> Array:
        """Peak speed over velocity limit."""
        return self.peak_speed / self.speed

    @property
    def enough(self) -> bool:
        """Whether every actuator stays within its effort and velocity limits."""
        return bool((self.utilisation <= 1).all() and (self.speed_utilisation <= 1).all())

    @property
    def inertia_ratio(self) -> Array:
        """Largest driven inertia over reflected rotor inertia; infinite without a rotor."""
        with np.errstate(divide="ignore"):
            return self.inertia[1] / self.reflected

    def __str__(self) -> str:
        heads = ("peak", "rms", "speed", "power W", "energy J", "inertia", "of limit")
        rows = [f"{'actuator':20} " + " ".join(f"{head:>10}" for head in heads)]
        for k, name in enumerate(self.names):
            used = f"{100 * self.utilisation[k]:.0f}%" if np.isfinite(self.effort[k]) else "no limit"
            numbers = (self.peak_torque[k], self.rms_torque[k], self.peak_speed[k], self.peak_power[k],
                       self.energy_in[k], self.inertia[1][k])  # fmt: skip
            rows.append(f"{name:20} " + " ".join(f"{x:10.4g}" for x in numbers) + f" {used:>10}")
            if np.isfinite(self.gear[k]):
                rows[-1] += f"  best gear {self.gear[k]:.4g}"
        rows.append("torques in N m (forces in N), speeds in rad/s (m/s), inertias driven in kg m² (kg)")
        return "\n".join(rows)


def motion_of(task: Task, motion: Any, times: Any, wrenches: Any) -> tuple[Array, Array, Array, Array, Array]:
    """(t, q, v, a, tau) of a run, or of a path at `times` with the forces that follow it."""
    model = task.model
    if all(hasattr(motion, name) for name in ("t", "q", "v", "a", "tau")):
        return tuple(np.asarray(getattr(motion, name)) for name in ("t", "q", "v", "a", "tau"))  # type: ignore[return-value]
    if not callable(motion):
        raise InputError(f"motion is a {type(motion).__name__}, expected a path of pb.paths or a run of pb.simulate")
    path: Any = motion
    if times is None:
        first = float(getattr(path, "start", 0.0))
        times = np.linspace(first, first + path.duration, 501)
    t = float_array("times", times)
    if t.ndim != 1 or len(t) < 2 or (np.diff(t) <= 0).any():
        raise InputError("times must be at least two increasing numbers")
    q, v, a = path(t)
    tau = model.inverse_dynamics(q, v, a, wrenches=wrenches)
    held_by_others(task, tau, "this motion")
    return t, q, v, a, tau


def sizing(
    task: Task, motion: Any, times: Any, wrenches: Mapping[str, Any] | None, effort: Any, speed: Any
) -> Sizing:
    """What the motion takes."""
    model, active = task.model, task.active
    t, q, v, _, tau = motion_of(task, motion, times, wrenches)
    tau, rates = tau[:, active], v[:, active]
    limits = model.joint_limits()
    most = limits["effort"][active] if effort is None else _limit("effort", effort, len(active))
    fastest = limits["velocity"][active] if speed is None else _limit("speed", speed, len(active))
    power = tau * rates
    duration = float(t[-1] - t[0])
    if duration <= 0:
        raise InputError("a motion needs at least two increasing times")

    def mean(values: Array) -> Array:
        return np.trapezoid(values, t, axis=0) / duration

    load = driven_inertia(task, q)
    reflected, gear = _gears(task, load)
    return Sizing(
        tuple(model.actuation.names), t, tau, rates, np.abs(tau).max(axis=0), np.sqrt(mean(tau**2)),
        np.abs(rates).max(axis=0), np.sqrt(mean(rates**2)), np.abs(power).max(axis=0), mean(np.abs(power)),
        duration * mean(np.maximum(power, 0)), duration * mean(np.maximum(-power, 0)), most, fastest,
        (load.min(axis=0), load.max(axis=0)), reflected, gear,
    )  # fmt: skip


def driven_inertia(task: Task, q: Array) -> Array:
    """(n, actuators): the inertia that each actuator drives while the others do not turn, without rotors."""
    model = task.model
    rotors = model.mechanism.motors.reflected_inertia.dense if len(model.mechanism.motors) else 0.0
    tree = model.tree if len(model.constraints) else model
    M = tree.mass_matrix(q) - rotors
    maps = task.maps(q)
    seen = np.linalg.pinv(maps.A, rcond=1e-9)
    whole = np.swapaxes(seen, -1, -2) @ np.swapaxes(maps.Z, -1, -2) @ M @ maps.Z @ seen
    return np.diagonal(whole, axis1=-2, axis2=-1)


def _gears(task: Task, load: Array) -> tuple[Array, Array]:
    """(reflected rotor inertias, best gears) per active coordinate."""
    motors, active = task.model.mechanism.motors, task.active
    reflected, gear = np.zeros(len(active)), np.full(len(active), np.nan)
    mean = load.mean(axis=0)
    for k in range(len(motors)):
        (place,) = np.flatnonzero(active == motors.driven[k])
        reflected[place] = motors.rotor_inertia[k] * motors.speeds[k, motors.driven[k]] ** 2
        if motors.rotor_inertia[k] > 0:
            gear[place] = np.sqrt(max(mean[place], 0.0) / motors.rotor_inertia[k])
    return reflected, gear


def _limit(name: str, value: Any, count: int) -> Array:
    array = float_array(name, value)
    if array.shape not in ((), (count,)) or not (array > 0).all():
        raise InputError(f"{name} is {value!r}, expected one positive number or {count}, one per actuator")
    return np.broadcast_to(array, (count,)).copy()


@dataclass(frozen=True)
class Capacity:
    """Largest load, and the actuator and time or state that limit it."""

    value: float  # kg of a payload, N of a force
    actuator: str | None
    at: float  # time, or index of the state

    def __float__(self) -> float:
        return self.value


def payload_capacity(task: Task, motion: Any, times: Any, effort: Any) -> Capacity:
    """The largest point mass at the frame, kg, with which the motion stays within effort limits."""
    model, active = task.model, task.active
    limits = model.joint_limits()["effort"][active] if effort is None else _limit("effort", effort, len(active))
    if isinstance(motion, np.ndarray | list | tuple):
        q = np.atleast_2d(model._q(motion))
        t, v = np.arange(len(q), dtype=float), np.zeros((len(q), model.nv))
        a = v
    else:
        t, q, v, a, _ = motion_of(task, motion, times, None)
    tau = model.inverse_dynamics(q, v, a)
    bare = tau[:, active]
    if a is v:
        held_by_others(task, tau, "the payload at rest")
    one = model.with_payload(task.frame, 1.0).inverse_dynamics(q, v, a)[:, active] - bare
    return _largest(bare, one, limits, model.actuation.names, t)


def force_capacity(task: Task, q: Array, direction: Any, effort: Any) -> Capacity:
    """The largest force, N, that the frame exerts along a direction (world axes) at rest within effort limits."""
    model, active = task.model, task.active
    n = unit_direction(direction)
    limits = model.joint_limits()["effort"][active] if effort is None else _limit("effort", effort, len(active))
    still = np.zeros(model.nv)
    q = model._q(q)
    wrench = np.concatenate([np.zeros(3), n])
    tau = model.inverse_dynamics(q, still, still)
    # the frame exerts n on what it touches, which pushes back
    back = model.inverse_dynamics(q, still, still, wrenches={task.frame: -wrench})
    held_by_others(task, np.stack([tau, back]), "the force at rest")
    hold = tau[active]
    one = back[active] - hold
    return _largest(hold[None], one[None], limits, model.actuation.names, np.zeros(1))


def _largest(bare: Array, one: Array, limits: Array, names: list[str], t: Array) -> Capacity:
    """The largest x ≥ 0 with |bare + x one| ≤ limits; 0 where it is broken at x = 0."""
    scale = np.abs(one).max(initial=0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(np.abs(one) > 1e-12 * max(scale, 1e-300), (limits - np.sign(one) * bare) / np.abs(one), np.inf)
    room = np.where(np.abs(bare) > limits, -np.inf, room)
    k, j = np.unravel_index(int(np.argmin(room)), room.shape)
    value = float(max(room[k, j], 0.0))
    return Capacity(value, names[j] if np.isfinite(room[k, j]) or value == 0 else None, float(t[k]))


__all__ = ["Capacity", "Sizing", "driven_inertia", "force_capacity", "motion_of", "payload_capacity", "sizing"]
