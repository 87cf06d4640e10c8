"""Where forces of drives have corners, and how refused tries of a step are shortened to them.

The force of a drive in the direction of its motion falls to zero over the last part of its velocity limit V
(`mechanism.saturation` (3)): its rate of change jumps where |v| = (1 − FALL) V and where |v| = V. `Corners.within` is
what `kernels.stepping_corners` says, in Python.
"""

from __future__ import annotations

import math

import numpy as np

from polybody.kernels.stepping_corners import NEAREST
from polybody.late import dataclass
from polybody.mechanism.saturation import FALL, DriveLimits

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Corners:
    """Entries of a state, and levels of their sizes at which rates of change jump."""

    places: Array
    levels: Array

    @property
    def table(self) -> Array:
        """As compiled loops read it: (8 place, level) of each, the first as a word."""
        rows = np.zeros((len(self.places), 2))
        rows.view(np.int64)[:, 0] = 8 * self.places
        rows[:, 1] = self.levels
        return rows

    def within(self, y: Array, after: Array, h: float, K: Array, c: Array) -> float:
        """The part of a try from y to `after` up to its first corner; 1 without any. K are the rates at stages c."""
        first = 1.0
        sizes = np.abs(y[self.places]), np.abs(after[self.places])
        for k in np.flatnonzero((sizes[0] - self.levels) * (sizes[1] - self.levels) < 0):
            place = self.places[k]
            begun, ended, rates = float(y[place]), float(after[place]), K[:, place]
            left, slope = math.copysign(self.levels[k], begun + ended) - begun, h * rates[0]
            part = _parabola(left, slope, ended - begun - slope)
            last = np.argmax(np.where(c < part, c, 0.0))
            bend = 0.5 * h * (rates[last] - rates[0]) / c[last] if last else 0.0
            again = _parabola(left, slope, bend)
            part = again if c[last] < again < 1 else part
            first = part if NEAREST < part < first else first
        return first


def _parabola(left: float, slope: float, bend: float) -> float:
    """Where it has come as far as `left`; 0 where nowhere."""
    under = slope * slope + 4 * bend * left
    return 2 * left / (slope + math.copysign(math.sqrt(under), left)) if under >= 0 else 0.0


def corners_of(drives: DriveLimits | None, nq: int) -> Corners | None:
    """Those of drives that are bounded, of states that begin with q and v; None without any."""
    bounded = [] if drives is None else np.flatnonzero(np.isfinite(drives.velocity))
    if drives is None or not len(bounded):
        return None
    V = drives.velocity[bounded]
    return Corners(nq + np.repeat(bounded, 2), np.column_stack([(1 - FALL) * V, V]).ravel())


__all__ = ["Corners", "corners_of"]
