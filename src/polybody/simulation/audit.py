"""How far a run can be trusted: balances that hold for every motion, whatever computed it.

Energy: kinetic + potential − work is constant. Momentum: where nothing but gravity acts from outside (every joint on
the ground is floating and free), the angular momentum about the mass centre is constant and the linear one grows by
m g t. Both errors are relative to the largest the run had of each. Quaternions: how far from unit length a step left
them before they were put back.
"""

from __future__ import annotations

import dataclasses
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from polybody.errors import PolybodyWarning
from polybody.mechanism.mechanism import GROUND

Array = np.ndarray
FIXED_STEP_TOLERANCE = 1e-3  # relative: fixed steps were asked for without saying how good they must be


@dataclass(frozen=True)
class Audit:
    """`None` for what does not apply or is not known. `trusted` is False where a balance is worse than allowed."""

    method: str
    steps: int
    rejected: int | None
    evaluations: int
    energy_error: float
    energy_error_relative: float
    energy_allowed_relative: float
    momentum_error_relative: float | None
    momentum_note: str
    quaternion_error: float | None
    seconds: float
    trusted: bool = True
    loop_error: float | None = None  # the largest residual of loops among the states kept, m or rad
    loop_drift: float | None = None  # and before a step was mended
    singular_evaluations: int = 0  # near singular configurations of loops
    singular_passages: int = 0  # steps that passed one

    def as_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def energy_balance(kinetic: Array, potential: Array, work: Array) -> tuple[float, float]:
    """(largest error, its ratio to the largest energy that was exchanged)."""
    total = kinetic + potential - work
    error = float(np.max(np.abs(total - total[0]), initial=0.0))
    scale = max(float(np.max(kinetic)), float(np.ptp(potential)), float(np.ptp(work)))
    if scale == 0.0:
        return error, 0.0 if error == 0.0 else np.inf
    return error, error / scale


def momentum_applies(model: Any, acted: bool) -> str:
    """Empty when momentum must be kept, else why it need not be."""
    m = model.mechanism
    roots = [j for j in m.joints if j.parent == GROUND]
    if any(j.kind != "floating" or j.stiffness.any() or j.damping.any() for j in roots) or any(
        GROUND in (s.body_a, s.body_b) for s in m.springs
    ):
        return "the ground acts on the mechanism, so its momentum changes"
    if m.constrained and any(GROUND in (c.a.body, c.b.body) for c in m.closures):
        return "loops hold the mechanism to the ground, so its momentum changes"
    if acted:
        return "external wrenches or forces on the base act, so momentum changes"
    if m.armature.any():
        return "armature has inertia but no momentum of its own in the world"
    return ""


def momentum_balance(model: Any, t: Array, q: Array, v: Array) -> float:
    """Largest error of angular and linear momentum, each relative to its largest size."""
    momentum = model.momentum(q, v)
    mass = sum(body.mass for body in model.mechanism.bodies)
    fallen = np.outer(t - t[0], mass * model.gravity)
    worst = 0.0
    for part, gained in ((momentum[:, :3], np.zeros(3)), (momentum[:, 3:], fallen)):
        drift = float(np.max(np.abs(part - gained - part[0]), initial=0.0))
        scale = float(np.max(np.abs(part), initial=0.0))
        # A body that hardly turns or flies has no scale of its own: compare with its energy's.
        worst = max(worst, drift / scale if scale > 1e-9 else drift)
    return worst


def allowed_energy(adaptive: bool, rtol: float, atol: float, steps: int) -> float:
    """Relative error that the tolerances allow: each step its own, all in the same direction, and a factor of ten."""
    return 10 * (rtol + atol) * max(steps, 10) if adaptive else FIXED_STEP_TOLERANCE


def warn_untrusted(audit: Audit) -> None:
    warnings.warn(
        f"the energy balance is off by {audit.energy_error_relative:.2g} of what was exchanged, where "
        f"{audit.energy_allowed_relative:.2g} was allowed ({audit.method}): use tighter tolerances or smaller steps, "
        "or look for a controller that is not continuous",
        PolybodyWarning,
        stacklevel=4,
    )


__all__ = ["Audit", "allowed_energy", "energy_balance", "momentum_applies", "momentum_balance", "warn_untrusted"]
