"""How far apart two times may be and still be one moment.

Times are numbers whose spacing grows with them: 1e-16 s near 1 s, 2.4e-7 s in seconds since 1970. Sums of steps and of
sample spacings differ by a few spacings. What counts as one moment is therefore

    width (1 + min(|t|, 1000 s)) + 5e-16 |t|

some spacings and no more, however late it is: a part of |t| like 1e-13 would be 0.2 ms in seconds since 1970, within
which a sample must not be taken for the end of a step. Compiled loops have the same numbers.
"""

from __future__ import annotations

from polybody.kernels.stepping_code import LONG, SPACINGS


def moment(t: float, width: float = 1e-13) -> float:
    """Seconds around t within which times are the same; `width` is that near zero."""
    return width * (1 + min(abs(t), LONG)) + SPACINGS * abs(t)


__all__ = ["moment"]
