"""Joint limits as stops.

A joint that reaches a limit with the speed v_j hits it: an impulse on that joint alone turns its speed into −e v_j (e
the restitution), and changes all others through the mass matrix,

    v⁺ = v⁻ + M⁻¹ E_S λ,     λ = (E_Sᵀ M⁻¹ E_S)⁻¹ (wanted − v_S⁻),

S the joints at their stops. A joint whose rebound is slower than `REST` stays: while the stop has to push, a force on
it keeps its acceleration zero, the same λ with accelerations instead of speeds. It leaves when the stop would pull.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray
REST = 1e-3  # rad/s or m/s


@dataclass(frozen=True)
class Stop:
    """One limit of one number of q (and of v): `side` is +1 for the upper, −1 for the lower."""

    joint: str
    q: int
    v: int
    side: int
    limit: float

    def excess(self, y: Array) -> float:
        """Positive beyond the limit."""
        return self.side * (float(y[self.q]) - self.limit)

    @property
    def name(self) -> str:
        return f"{self.joint} {'upper' if self.side > 0 else 'lower'} limit"


class Stops:
    """All finite limits of a model, and which joints rest at one."""

    def __init__(self, model: Any, restitution: float) -> None:
        self.model = model
        self.restitution = restitution
        self.all = finite_limits(model)
        self.held: dict[int, Stop] = {}  # by index of v

    def _inverse(self, q: Array) -> Array:
        if self.model.mechanism.constrained:
            return self.model.motion_inertia(q)
        return np.linalg.inv(self.model.mass_matrix(q))

    def reaction(self, q: Array, a: Array) -> tuple[Array, Array]:
        """(change of a, joint force) by which the held joints do not accelerate."""
        held = list(self.held)
        columns = self._inverse(q)[:, held]
        push = np.linalg.solve(columns[held], -a[held])
        force = np.zeros_like(a)
        force[held] = push
        return columns @ push, force

    def pull(self, stop: Stop) -> Callable[[Any, float, Array], float]:
        """How much the stop would have to pull its joint towards itself: crosses zero upwards when it is left."""

        def function(problem: Any, t: float, y: Array) -> float:
            q, v = problem.split(y)
            tau, loads = problem.drive(t, q, v, problem.currents(y))
            force = self.reaction(q, problem.free_acceleration(q, v, tau, loads))[1]
            return stop.side * float(force[stop.v])

        return function

    def impact(self, stop: Stop, q: Array, v: Array) -> tuple[Array, float]:
        """(speeds after the hit, impulse); the joint is held if it barely rebounds."""
        speed = float(v[stop.v])
        rebound = -self.restitution * speed
        resting = abs(rebound) < REST
        struck = [*(k for k in self.held if k != stop.v), stop.v]
        wanted = np.zeros(len(struck))
        wanted[-1] = 0.0 if resting else rebound
        columns = self._inverse(q)[:, struck]
        impulse = np.linalg.solve(columns[struck], wanted - v[struck])
        after = v + columns @ impulse
        after[struck] = wanted
        if resting:
            self.held[stop.v] = stop
        return after, float(impulse[-1])

    def release(self, stop: Stop) -> None:
        self.held.pop(stop.v, None)

    def pinned(self, y: Array) -> Array:
        """y with held joints exactly at their limits and at rest."""
        y = y.copy()
        for index, stop in self.held.items():
            y[stop.q] = stop.limit
            y[self.model.nq + index] = 0.0
        return y


def finite_limits(model: Any) -> list[Stop]:
    """Every finite limit of joints whose q and v correspond number by number."""
    stops = []
    for joint in model.mechanism.independent_joints:
        if not joint.model.rates_are_velocities:
            continue
        for k in range(joint.nv):
            place = (joint.q.start + k, joint.v.start + k)
            for side, limit in ((-1, joint.limits.lower[k]), (1, joint.limits.upper[k])):
                if np.isfinite(limit):
                    stops.append(Stop(joint.name, *place, side, float(limit)))
    return stops


__all__ = ["REST", "Stop", "Stops", "finite_limits"]
