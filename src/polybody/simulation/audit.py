"""How far a run can be trusted: balances that hold for every motion, whatever computed it.

Energy: kinetic + potential − work is constant; its error is relative to what was exchanged. Momentum: where nothing but
gravity acts from outside (every joint on the ground is floating, or planar, and free), the angular momentum about the
mass centre is constant and the linear one grows by m g t. Quaternions: how far from unit length a step left
them before they were put back. States within steps: what the polynomials of `integrators.pieces` leave out of them.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from polybody.late import dataclass, field
from polybody.mechanism.compliant_stops import compliant
from polybody.mechanism.mechanism import GROUND
from polybody.model.model import Model
from polybody.properties import cached_property
from polybody.simulation.extremes import Extremes
from polybody.simulation.integrators.pieces import ROUGH
from polybody.simulation.saturation import Saturation
from polybody.simulation.stops import AT, REST, Stops

Array = np.ndarray
LIMIT_TOLERANCE = 1e-6  # m or rad
LOOP_TOLERANCE = 1e-6
INSIDE_TOLERANCE = 1e-6  # of the largest value
TIME_TOLERANCE = 1e-5  # m or rad that joints move between two neighbouring times
ROUNDING = 1e-13  # of energies, over many terms
SHORT = 1000  # states of a run whose momentum is looked at when it is asked for
FIXED_STEP_TOLERANCE = 1e-3  # relative: fixed steps were asked for without saying how good they must be


@dataclass(frozen=True)
class Audit:
    """`None` for what does not apply or is not known. `trusted` is False where there are `doubts`: a balance worse than
    allowed, a limit or a loop that was not kept, states within steps that are not known well enough for events or dense
    output, a run that ended early."""

    method: str
    steps: int
    rejected: int | None
    evaluations: int
    energy_error: float
    energy_error_relative: float
    energy_allowed_relative: float
    momentum_note: str
    quaternion_error: float | None
    seconds: float
    trusted: bool = True
    doubts: tuple[str, ...] = ()
    limit_excess: float | None = None  # how far a joint went beyond a limit that should have stopped it, m or rad
    loop_error: float | None = None  # the largest residual of loops among the states kept, m or rad
    loop_drift: float | None = None  # and before a step was mended
    singular_evaluations: int = 0  # near singular configurations of loops
    singular_passages: int = 0  # steps that passed one
    path: str = "python"  # how steps were taken: "compiled", or "python" and why
    saturation: tuple[Saturation, ...] = ()  # drives that were at their limits, and how long
    inside_error: float = 0.0  # of states within steps of cvodes and idas that were needed, of the largest
    time_error: float = 0.0  # how far the fastest joint moves between two neighbouring numbers of time, m or rad
    momentum: KeptMomentum | None = field(default=None, compare=False)  # where it must be kept

    @property
    def momentum_error_relative(self) -> float | None:
        """Of short runs it is computed where it is first asked for: nothing is doubted because of it."""
        return None if self.momentum is None else self.momentum.error

    def as_dict(self) -> dict[str, Any]:
        told = dataclasses.asdict(dataclasses.replace(self, momentum=None))
        del told["momentum"]
        return {**told, "momentum_error_relative": self.momentum_error_relative}

    def __repr__(self) -> str:
        return f"Audit({', '.join(f'{name}={value!r}' for name, value in self.as_dict().items())})"


def energy_balance(run: Extremes) -> tuple[float, float]:
    """(largest error, its ratio to the largest energy that was exchanged); where nothing was, rounding is no error."""
    most_w, most_k, most_p, most = run.most[-4:]
    least_w, least_k, least_p, least = run.least[-4:]
    first = run.first[-1]
    error = max(most - first, first - least)
    scale = max(most_k, most_p - least_p, most_w - least_w)
    rounding = ROUNDING * (max(most_k, -least_k) + max(most_p, -least_p) + max(most_w, -least_w))
    if error <= rounding and scale <= 1e3 * rounding:
        return error, 0.0
    return error, error / scale if scale else np.inf


def stays(run: Extremes, nq: int, nv: int) -> bool:
    """Whether a run only rests: what limits give way by before they hold (1e-11 rad or m) exchanges no energy that
    errors could be compared with."""
    most, least, first = run.most, run.least, run.first
    slow = all(least[k] >= -REST and most[k] <= REST for k in range(nq, nq + nv))
    return slow and all(most[k] - first[k] <= AT and first[k] - least[k] <= AT for k in range(nq))


def momentum_applies(model: Model, acted: Callable[[], bool]) -> str:
    """Empty when momentum must be kept, at least in a plane, else why it need not be."""
    m = model.mechanism
    if kept_directions(m) is None or m.contacts or any(GROUND in (s.body_a, s.body_b) for s in m.springs):
        return "the ground acts on the mechanism, so its momentum changes"
    if m.constrained and any(GROUND in (c.a.body, c.b.body) for c in m.closures):
        return "loops hold the mechanism to the ground, so its momentum changes"
    if acted():
        return "external wrenches or forces on the base act, so momentum changes"
    if m.armature.any():
        return "armature has inertia but no momentum of its own in the world"
    return ""


@lru_cache(maxsize=32)
def kept_directions(mechanism: Any) -> tuple[Array, Array] | None:
    """Projectors on the directions in which the ground exerts no moment and no force; None where it always does.

    Floating bases: all directions. A planar base: moments about its normal, forces in its plane.
    """
    angular, linear = np.eye(3), np.eye(3)
    for joint in mechanism.joints:
        if joint.parent != GROUND:
            continue
        held = joint.stiffness.any() or joint.damping.any() or joint.friction is not None or compliant(joint.limits)
        if joint.kind not in ("floating", "planar") or held:
            return None
        if joint.kind == "planar":
            normal = joint.rotation @ joint.model.velocity_map(joint.model.neutral())[:3, 0]
            about = np.outer(normal, normal)
            if not np.allclose(angular, np.eye(3)) and not np.allclose(angular, about):
                return None
            angular, linear = about, np.eye(3) - about
    return angular, linear


class KeptMomentum:
    """The error of the momentum along a motion of a model that must keep it (`balance`).

    Its kernel is another one to trace, a quarter of the time of a humanoid's first run. Of a short run the states are
    kept (copies: results are the user's to change) until somebody asks for the `error`.
    """

    def __init__(self, look: Callable[[], float]) -> None:
        self._look = look

    @cached_property
    def error(self) -> float:
        return self._look()

    def __getstate__(self) -> dict[str, Any]:
        return {"error": self.error}  # whoever unpickles it need not compute


def kept_momentum(model: Model, t: Array, q: Array, v: Array) -> tuple[KeptMomentum, tuple[Array, Array]]:
    """The momentum's error, and kinetic and potential energy, by one kernel where the run is long."""
    if len(t) <= SHORT:
        states = t.copy(), q.copy(), v.copy()
        return KeptMomentum(lambda: _looked_at(model, *states)[0]), model.energy(q, v)
    error, energies = _looked_at(model, t, q, v)
    return KeptMomentum(lambda: error), energies


def _looked_at(model: Model, t: Array, q: Array, v: Array) -> tuple[float, tuple[Array, Array]]:
    roots = [k for j in model.mechanism.joints if j.parent == GROUND for k in range(j.v.start, j.v.stop)]
    turns = np.eye(model.nv)[roots]
    states = np.concatenate([q, *(np.repeat(q[k : k + 1], len(turns), axis=0) for k in (0, len(q) - 1))])
    found = model.compute(states, np.concatenate([v, turns, turns]), quantities=["energy", "momentum"])
    kinetic, potential = (part[: len(q)] for part in found["energy"])
    momentum, turned = np.split(found["momentum"], [len(q)])
    return balance(model, t, momentum, turned, 2 * float(np.max(kinetic))), (kinetic, potential)


def balance(model: Model, t: Array, momentum: Array, turned: Array, energy: float) -> float:
    """Largest error of angular and linear momentum, each relative to the largest that so much energy could hold.

    Of all motions with kinetic energy T the momentum is at most √(2 m T), about the mass centre √(2 I T): scales that
    do not vanish where the parts' momenta cancel. `energy` is 2 T, `turned` has momenta of unit speeds of the base.
    """
    m, projectors = model.mechanism, kept_directions(model.mechanism)
    assert projectors is not None
    mass = sum(body.mass for body in m.bodies)
    fallen = np.outer(t - t[0], mass * model.gravity)
    inertia = float(np.abs(turned[:, :3]).max(initial=0.0))
    worst = 0.0
    for part, gained, kept, size in (
        (momentum[:, :3], np.zeros(3), projectors[0], inertia),
        (momentum[:, 3:], fallen, projectors[1], mass),
    ):
        drift = float(np.max(np.abs((part - gained - part[0]) @ kept), initial=0.0))
        scale = max(float(np.max(np.abs(part), initial=0.0)), np.sqrt(size * energy))
        worst = max(worst, drift / scale if scale > 0 else drift)
    return float(worst)


def allowed_energy(adaptive: bool, rtol: float, atol: float, steps: int) -> float:
    """Relative error that the tolerances allow: each step its own, all in the same direction, and a factor of ten."""
    return 10 * (rtol + atol) * max(steps, 10) if adaptive else FIXED_STEP_TOLERANCE


def time_error(latest: float, run: Extremes, nq: int, nv: int) -> float:
    """How far the fastest of the velocities goes between the last time and the number after it."""
    fastest = max((max(run.most[k], -run.least[k]) for k in range(nq, nq + nv)), default=0.0)
    return fastest * math.ulp(latest)


def limit_excess(stops: Stops, run: Extremes) -> tuple[float, str]:
    """(how far beyond a limit a kept state is, at most, of which joint); a start beyond its limit does not count."""
    worst, where = 0.0, ""
    for stop in () if stops.are_inside(run.most, run.least, 0.0) else stops.all:
        most = stop.excess(run.most if stop.side > 0 else run.least)
        if most > max(worst, stop.excess(run.first) + 1e-9):
            worst, where = most, stop.name
    return worst, where


def doubts_about(audit: Audit, stopped: str | None, passed: str, rtol: float) -> tuple[str, ...]:
    """Why a run is not to be trusted; `stopped` where it ended early, `passed` names a limit that did not stop."""
    allowed_inside = max(ROUGH * rtol, INSIDE_TOLERANCE)
    doubts: list[str] = []
    if not audit.energy_error_relative <= max(audit.energy_allowed_relative, 1e-12):
        doubts.append(
            f"the energy balance is off by {audit.energy_error_relative:.2g} of what was exchanged, where "
            f"{audit.energy_allowed_relative:.2g} was allowed ({audit.method}): use tighter tolerances or smaller "
            "steps, or look for a controller that is not continuous"
        )
    if audit.limit_excess is not None and audit.limit_excess > LIMIT_TOLERANCE:
        doubts.append(f"{passed} was passed by {audit.limit_excess:.3g}")
    if audit.loop_error is not None and not audit.loop_error <= LOOP_TOLERANCE:
        doubts.append(f"loops are open by {audit.loop_error:.3g}")
    if audit.inside_error > allowed_inside:
        doubts.append(
            f"states within steps, where events are looked for, are off by up to {audit.inside_error:.2g} of the "
            f"largest, where {allowed_inside:.2g} was allowed ({audit.method}): bound the step by max_step"
        )
    if audit.time_error > TIME_TOLERANCE:
        doubts.append(
            f"times so late are not resolved: between two neighbouring numbers joints move by {audit.time_error:.2g}; "
            "take a smaller start, and add the rest to the times of the result"
        )
    if stopped is not None:
        doubts.append(f"the run stopped early: {stopped}")
    return tuple(doubts)


__all__ = [
    "Audit", "allowed_energy", "doubts_about", "energy_balance", "kept_momentum", "limit_excess", "momentum_applies",
    "stays", "time_error",
]
