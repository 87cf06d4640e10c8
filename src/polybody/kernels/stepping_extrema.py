"""Machine code that finds where watched functions cross zero and come back between two looks, in the language of
`native`.

A joint that sticks for a moment slides at both looks around it. Three looks p₁ < p₂ < p₃ with values q₁, q₂, q₃ of one
sign, taken as positive, say where that may be: their parabola has its vertex within them,

    0 < B = q₁ − 2q₂ + q₃,    |q₃ − q₁| < 2B,    at the height q₂ − (q₃ − q₁)²/8B                               (1)

(looks at equal distances), which is below half of the least of them. From there on the function itself is asked at
vertices of parabolas through the three points nearest to its extremum, until one lies beyond zero, or until parabolas
come no lower. A function that only touches zero, up to rounding (`TOUCHED` of q₁ + q₃), has not crossed it. Where (1)
does not hold nothing is asked: functions far from zero cost a comparison per look.
"""

from __future__ import annotations

PARABOLAS = 8  # at most, of an extremum
TOUCHED = 1e-12

EXTREMA = """
def _extremum(job, x0, f0, x1, f1, h: float, which, way: float, p1: float, p2: float, p3: float):
    trial = word(job + TRIAL)
    q1 = way * number(word(job + EARLIER) + which)
    q2 = way * number(word(job + BEFORE) + which)
    q3 = way * number(word(job + AFTER) + which)
    rounding = TOUCHED * (q1 + q3)
    found = 2.0
    count = 0
    while count < PARABOLAS:
        count += 1
        slope = (q2 - q1) / (p2 - p1)
        bend = ((q3 - q2) / (p3 - p2) - slope) / (p3 - p1)
        x = 0.5 * (p1 + p2) - 0.5 * slope / bend
        value = q1 + slope * (x - p1) + bend * (x - p1) * (x - p2)
        slack = 1e-6 * (p3 - p1)
        if bend > 0.0 and x > p1 + slack and x < p3 - slack and size(x - p2) > slack and value < 0.9 * q2:
            _look_inside(job, x0, f0, x1, f1, h, x, trial)
            q = way * number(trial + which)
            if q < 0.0 - rounding:
                found = x
                count = PARABOLAS
            elif x < p2:
                if q < q2:
                    p3 = p2
                    q3 = q2
                    p2 = x
                    q2 = q
                else:
                    p1 = x
                    q1 = q
            else:
                if q < q2:
                    p1 = p2
                    q1 = q2
                    p2 = x
                    q2 = q
                else:
                    p3 = x
                    q3 = q
        else:
            count = PARABOLAS
    put(job + LOCATED, found)
    return 0

def _beyond(job, x0, f0, x1, f1, h: float, p1: float, p2: float, p3: float, since: float):
    first = 2.0  # of extrema beyond zero, from `since` on
    earlier = word(job + EARLIER)
    before = word(job + BEFORE)
    after = word(job + AFTER)
    for i in range(WATCHED):
        q1 = number(earlier + 8 * i)
        q2 = number(before + 8 * i)
        q3 = number(after + 8 * i)
        if 3.0 * size(q2) < size(q1 + q3):  # what the rest implies, at once
            way = 1.0
            if q2 < 0.0:
                way = 0.0 - 1.0
            nearest = least(way * q2, least(way * q1, way * q3))
            bend = way * (q1 - 2.0 * q2 + q3)
            tilt = q3 - q1
            if nearest > 0.0 and size(tilt) < 2.0 * bend and (way * q2 - 0.5 * nearest) * 8.0 * bend < tilt * tilt:
                _extremum(job, x0, f0, x1, f1, h, 8 * i, way, p1, p2, p3)
                if number(job + LOCATED) >= since:
                    first = least(first, number(job + LOCATED))
    put(job + LOCATED, first)
    return 0
"""

__all__ = ["EXTREMA", "PARABOLAS", "TOUCHED"]
