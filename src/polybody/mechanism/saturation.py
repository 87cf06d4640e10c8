"""What the drives of joints can give, over any domain: effort, power and speed bound what a controller asks for.

Of a joint force τ asked for at speed v, with F the effort limit, P the power limit and V the velocity limit,

    τ ← max(−F, min(F, τ))                                                                             (1)
    τ ← τ min(1, P/(τ v))                                where τ v > 0                                 (2)
    τ ← τ max(0, min(1, (V − |v|)/(0.05 V)))             where τ v > 0                                 (3)

A drive brakes at any speed with its full effort; what it gives in the direction of motion falls to zero over the last
twentieth of the velocity limit. Limits of zero say nothing: files write them where a number is required and none known.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.late import dataclass
from polybody.mechanism.mechanism import Mechanism

#: part of the velocity limit over which a drive's force falls to zero
FALL = 0.05


@dataclass(frozen=True, eq=False)
class DriveLimits:
    """F, V and P of every number of v; infinite where there is none."""

    effort: Array
    velocity: Array
    power: Array

    @property
    def any(self) -> bool:
        return bool(np.isfinite([self.effort, self.velocity, self.power]).any())


@lru_cache(maxsize=32)  # asked for with every run
def drive_limits(mechanism: Mechanism) -> DriveLimits:
    """Those of the joints' limits."""
    found = {key: np.full(mechanism.nv, np.inf) for key in ("effort", "velocity", "power")}
    for joint in mechanism.independent_joints:
        for key, values in found.items():
            given = getattr(joint.limits, key)
            if given is not None:
                values[joint.v] = np.where(np.asarray(given) > 0, given, np.inf)
    return DriveLimits(**found)


def saturated(limits: DriveLimits, tau: Array, v: Array, *, domain: Domain = FLOAT) -> Array:
    """(1) to (3) of joint forces that were asked for."""
    result, zero, one = tau.copy(), domain.const(0), domain.const(1)
    for k in range(len(result)) if domain is not FLOAT else _touched(limits, tau, v):
        force, F, P, V = result[k], limits.effort[k], limits.power[k], limits.velocity[k]
        if np.isfinite(F):
            most = domain.const(F)
            force = domain.where(domain.less(force, -most), -most, force)
            force = domain.where(domain.less(most, force), most, force)
        if np.isfinite(P):
            power, most = force * v[k], domain.const(P)
            over = domain.less(most, power)
            force = domain.where(over, force * (most / domain.where(over, power, one)), force)
        if np.isfinite(V):
            speed = domain.where(domain.less(v[k], zero), -v[k], v[k])
            left = (domain.const(V) - speed) / domain.const(FALL * V)
            left = domain.where(domain.less(left, zero), zero, domain.where(domain.less(one, left), one, left))
            force = domain.where(domain.less(zero, force * v[k]), force * left, force)
        result[k] = force
    return result


def _touched(limits: DriveLimits, tau: Array, v: Array) -> list[int]:
    """Where (1) to (3) may change numbers: of a robot that moves as it should, nowhere."""
    power, V = tau * v, limits.velocity
    with np.errstate(invalid="ignore"):
        fast = np.isfinite(V) & (power > 0) & ~(np.abs(v) <= (1 - 2 * FALL) * V)
    return np.flatnonzero(~(np.abs(tau) <= limits.effort) | ~(power <= limits.power) | fast).tolist()


def force_bounds(limits: DriveLimits, v: Array) -> tuple[Array, Array]:
    """(low, high) of what drives can give at speeds v (..., nv): the forces that (1) to (3) leave as they are."""
    speed = np.abs(v)
    with np.errstate(divide="ignore", invalid="ignore"):
        ahead = np.minimum(limits.effort, np.where(speed > 0, limits.power / speed, np.inf))
        left = np.where(np.isfinite(limits.velocity), (1 - speed / limits.velocity) / FALL, 1.0)
        ahead = np.where(left >= 1, ahead, np.where(left <= 0, 0.0, ahead * np.maximum(left, 0.0)))
    back = np.broadcast_to(limits.effort, ahead.shape)
    return np.where(v < 0, -ahead, -back), np.where(v > 0, ahead, back)


__all__ = ["DriveLimits", "drive_limits", "force_bounds", "saturated"]
