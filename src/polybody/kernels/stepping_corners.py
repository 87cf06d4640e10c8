"""Machine code that shortens refused tries to where the field has a corner, in the language of `native`.

A field may be continuous with a rate of change that is not: drives have such corners where the size of an entry x_i of
the state reaches a level L. No formula of order 8 holds across one: errors fall with the square of a step there, and
lengths that are chosen by an order of 8 creep up to it, by some twenty tries. Where a try of length h from x with rate
ẋ ended at x′ on the other side of a level it is tried again as long as a parabola needs to get there,

    x_i + s θ + b θ² = ±L,    s = h ẋ_i,    θ = 2 d/(s ± √(s² + 4 b d)),    d = ±L − x_i,

with the sign of d before the root, as that is how the level is crossed. First the parabola ends at x′, b = x′_i − x_i −
s; but it has passed the corner. So b is taken once more from what came before: b = h (ẋ_i(c) − ẋ_i)/(2 c) with the rate
at the last stage c < θ, or 0 without any. The least θ of all levels counts, unless it is below 1e-6: the state is there
already, and something else is the reason. Something else is also where the error has not fallen to a quarter since a
try was shortened last.

A step that ends at a corner says nothing about the next one, which is tried as long as the one that was refused would
have been tried again without corners. What is accepted is decided by the error estimate as ever.
`simulation.integrators.corners` is the same in Python.

The table `corners` has a row (8 i, L) for each of `corner_count` levels.
"""

from __future__ import annotations

NEAREST = 1e-6
FALLEN = 0.25  # of the error before

CORNERS = """
def _parabola(left: float, slope: float, bend: float, result):  # where it has come as far as `left`; 0 where nowhere
    under = slope * slope + 4.0 * bend * left
    part = 0.0
    if under >= 0.0:
        steep = root(under)
        if left < 0.0:
            steep = 0.0 - steep
        part = 2.0 * left / (slope + steep)
    put(result, part)
    return 0

def _corner(job, x, new, h: float):  # the part of a try up to its first corner, 1 without any
    corners = word(job + CORNERS)
    K = word(job + STAGES)
    result = job + CORNER
    first = 1.0
    for k in range(word(job + CORNER_COUNT)):
        place = word(corners + 16 * k)
        level = number(corners + 16 * k + 8)
        begun = number(x + place)
        ended = number(new + place)
        if (size(begun) - level) * (size(ended) - level) < 0.0:
            if begun + ended < 0.0:
                level = 0.0 - level
            rate = number(K + place)
            _parabola(level - begun, h * rate, ended - begun - h * rate, result)
            part = number(result)
            last = 0.0
            bend = 0.0
            for s in range(1, STAGE_COUNT):
                c = 0.0
                for j in range(s):
                    c = c + number(word(job + TABLEAU) + 8 * (COLUMNS * s + j))
                if c < part and c > last:
                    last = c
                    bend = 0.5 * h * (number(K + F * s + place) - rate) / c
            _parabola(level - begun, h * rate, bend, result)
            if number(result) > last and number(result) < 1.0:
                part = number(result)
            if part > NEAREST and part < first:
                first = part
    put(result, first)
    return 0
"""

#: words of the job
JOB_WORDS = ("corners", "corner_count", "corner")

__all__ = ["CORNERS", "FALLEN", "JOB_WORDS", "NEAREST"]
