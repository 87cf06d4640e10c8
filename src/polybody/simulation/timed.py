"""Forces that depend on the time, and how closely adaptive methods look at them.

A mechanism at rest has no error that would keep steps short: whatever pushes it for a moment lies between two stages of
a step that has grown to a second, and the run ends at rest, with its energy in balance. Of a function of the time
nothing is known, so it is looked at often: no two neighbouring stages are further apart than the usual spacing of
recorded states, 0.01 s. Stages of dop853 are up to 0.27 of a step apart, those of radau 0.49, multistep methods look
once per step. What is known of a table is where it bends: steps end there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.simulation.controllers import kinds_of

Array = np.ndarray
#: lengths of steps, in looks; of other methods one
LOOKS = {"dop853": 3.7, "radau": 2.0}
#: bends of a table up to which steps end at each; of longer tables they look once per row
MOST_BENDS = 200


def longest_step(controller: Any, method: str, spacing: float) -> float:
    """How long steps of a method may be that look at forces of the time once per `spacing`."""
    times = _table_times(controller)
    if len(times) > MOST_BENDS:
        spacing = min(spacing, float(np.median(np.diff(times))))
    return LOOKS.get(method, 1.0) * spacing


def bends(controller: Any, start: float, end: float) -> Array:
    """Times between start and end at which a table of forces bends, (n,); none of a long one."""
    times = _table_times(controller)
    inside = times[(times > start) & (times < end)]
    return inside if len(times) <= MOST_BENDS else np.zeros(0)


def _table_times(controller: Any) -> Array:
    """Of a table, also within others: an observer and a resolution pass on what it gives, a computer holds it."""
    kinds = kinds_of(controller)
    if "DisturbanceObserver" in kinds or "Quantised" in kinds:
        return _table_times(controller.law)
    times = controller.times if "Given" in kinds else None
    return np.zeros(0) if times is None else times


__all__ = ["bends", "longest_step"]
