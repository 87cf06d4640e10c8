"""Where a function of time crosses zero between two times, by interpolation inside a bracket that shrinks.

The function has opposite signs at both ends of [low, high]. Of the last three points (t_1 the newest, t_2 on the other
side of zero, t_3 the one before) the next one is that of the parabola t(f) through them, where it can be trusted
(Chandrupatla 1997): with ξ = (t_1 − t_2)/(t_3 − t_2) and φ = (f_1 − f_2)/(f_3 − f_2), where

    φ² < ξ   and   (1 − φ)² < 1 − ξ                                                                      (1)

as t(f) is monotonic between the three exactly then; elsewhere it is the middle. SciPy's function does as well, but half
a second of imports before it is much to ask of a run that meets its first event.
"""

from __future__ import annotations

from collections.abc import Callable

MOST = 200  # evaluations: halving alone needs some 60 from any bracket
ROUNDING = 8.9e-16  # relative


def crossing(function: Callable[[float], float], low: float, high: float, tolerance: float) -> float:
    """A time within `tolerance` and rounding of a zero of the function, whose signs at both ends differ."""
    t1, t2, f1, f2 = low, high, function(low), function(high)
    if f1 == 0.0 or f2 == 0.0:
        return low if f1 == 0.0 else high
    if (f1 > 0.0) == (f2 > 0.0):
        raise ValueError(f"the function is {f1} at {low} and {f2} at {high}: a bracket has opposite signs")
    part = 0.5  # of the way from t1 to t2
    for _ in range(MOST):
        t = t1 + part * (t2 - t1)
        f = function(t)
        if f == 0.0:
            return t
        if (f > 0.0) == (f1 > 0.0):
            t3, f3 = t1, f1
        else:
            t3, f3, t2, f2 = t2, f2, t1, f1
        t1, f1 = t, f
        best = t1 if abs(f1) <= abs(f2) else t2
        least = 0.5 * (tolerance + ROUNDING * abs(best)) / abs(t2 - t1) if t2 != t1 else 1.0
        if least > 0.5:
            return best
        xi, phi = (t1 - t2) / (t3 - t2), (f1 - f2) / (f3 - f2)
        part = 0.5
        if phi * phi < xi and (1.0 - phi) ** 2 < 1.0 - xi:  # (1)
            part = f1 / (f2 - f1) * f3 / (f2 - f3) + (t3 - t1) / (t2 - t1) * f1 / (f3 - f1) * f2 / (f3 - f2)
        part = min(max(part, least), 1.0 - least)
    return t1 if abs(f1) <= abs(f2) else t2


__all__ = ["crossing"]
