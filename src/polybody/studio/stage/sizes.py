"""Round numbers for scales."""

from __future__ import annotations

import math


def round_down(x: float) -> float:
    """1, 2 or 5 times a power of ten, at most x."""
    if not (x > 0 and math.isfinite(x)):
        return 1.0
    power = 10.0 ** math.floor(math.log10(x))
    part = x / power
    return power * (5 if part >= 5 else 2 if part >= 2 else 1)


__all__ = ["round_down"]
