"""What a run reports of effort, power and velocity limits: which joint, which limit, how long.

`efforts` of `pb.simulate`: "saturate" bounds what the controller asks for (`mechanism.saturation`), "report" lets it
pass and reports how long it was above, "ignore" does neither, which the run's options record.
"""

from __future__ import annotations

import numpy as np

from polybody.errors import InputError
from polybody.late import dataclass
from polybody.mechanism.mechanism import Mechanism
from polybody.mechanism.saturation import FALL, DriveLimits

Array = np.ndarray
EFFORTS = ("saturate", "report", "ignore")


@dataclass(frozen=True)
class Saturation:
    """One drive at one of its limits: `seconds` of the run (of the states that were kept), and when it began."""

    joint: str
    limit: str  # "effort", "power" or "velocity"
    seconds: float
    first: float
    bounded: bool  # False where the limit was passed


def chosen_efforts(efforts: str | None, limits: str) -> str:
    """The word given, or the one that goes with what joint limits do."""
    word = {"ignore": "ignore", "report": "report"}.get(limits, "saturate") if efforts is None else efforts
    if word not in EFFORTS:
        raise InputError(f"efforts is {efforts!r}; expected one of {', '.join(EFFORTS)}")
    return word


def saturations(
    mechanism: Mechanism, limits: DriveLimits, t: Array, v: Array, tau: Array, *, bounded: bool
) -> tuple[Saturation, ...]:
    """Every limit that a drive was at (or, where nothing bounded it, above)."""
    if len(t) < 2 or not limits.any:
        return ()
    weights = np.zeros(len(t))
    weights[:-1] += np.diff(t) / 2
    weights[1:] += np.diff(t) / 2
    driving, slack = tau * v > 0, 1 - 1e-9
    at = {
        "effort": np.abs(tau) >= limits.effort * slack,
        "power": driving & (tau * v >= limits.power * slack),
        "velocity": (np.abs(v) >= limits.velocity * ((1 - FALL) if bounded else 1.0)) & (driving if bounded else True),
    }
    found = []
    for limit, rows in at.items():
        for k in np.flatnonzero(rows.any(axis=0)):
            times = rows[:, k]
            name = mechanism.owner(int(k)).name
            found.append(Saturation(name, limit, float(weights[times].sum()), float(t[times][0]), bounded))
    return tuple(found)


__all__ = ["EFFORTS", "Saturation", "chosen_efforts", "saturations"]
