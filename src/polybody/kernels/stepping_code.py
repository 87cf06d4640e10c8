"""Machine code that advances a state by many steps in one call: the loops of `stepping`, in the language of `native`.

The state is x = [y; t], t the time and the last of its numbers, so that stages have their times without an argument. A
row of *states* is x, padded; a row of *answers* is what the field says at x: ẋ, padded, then numbers that are only
recorded, then two that report whether it may be believed. `job` is an array of words in the order of `JOB`.

The loops themselves are in `stepping_methods`; here is what they have in common.

Each step is followed by the way back to the manifold (`_returned`) and by a look at the watched functions
(`stepping_events`). A loop ends early and says why:

    CANNOT   the step from the last good state is somebody else's: numbers that are not finite, a field not to be
             believed, steps too small
    CROSSED  a watched function has crossed zero within the last step: the state there is behind that step's end
    TURNED   the last step has passed a singular configuration of constraints, or its crossing is somebody else's
    FULL     the next step has more samples than there is room for
    STOPPED  whoever was asked at an instant wants to be asked before the next step (`stepping_instants`)
"""

from __future__ import annotations

from polybody.kernels import stepping_corners as corners
from polybody.kernels import stepping_switches as switches

CANNOT, CROSSED, TURNED, FULL, STOPPED = 1, 2, 3, 4, 5
#: of times that are one moment, as `simulation.moments` explains: seconds, and a part of the time
LONG, SPACINGS = 1e3, 5e-16
LOOKS = 4

JOB = (
    "steps", "done", "states", "answers", "constants", "pow", "times", "breaks", "table", "rows", "hint",
    "evaluations", "rejected", "directions", "before", "after", "samples", "next", "count", "room", "sample_states",
    "sample_answers", "dense", "dense_wanted", "stages", "stage", "spare", "nought", "told", "turns", "has_turns",
    "tableau", "h", "end", "until", "max_step", "rtol", "atol", "off_manifold", "off_loops", "first", "grown", "lost",
    "growth", "narrow", "mended", "still", "off_unit", "turned",
    "field_at", "leap_at", "unit_at", "back_at", "watch_at", "middle_at", "ends_at", "field_with",
    "balance_at", "end_at", "balance_with", "end_with",
    "leap_with", "unit_with", "back_with", "watch_with", "middle_with", "ends_with", "speed", "last_speed", "has_speed",
    "right", "matrix", "goal", "tick_at", "tick_with", "tick_times", "tick_told", "tick_count",
    "tick_next", "tick_rows", "tick_stop", "memories", "begins", "struck", "fresh", "located", "trial", "earlier",
    "crossed",
    "slopes_at", "slopes_with", "implicit", "warm", "current", "factor_h", "h_old", "error_old", "rate", "newton_tol",
    "pivoted", "taken", "tries", "safe", "error_now", "iterated", "rounded", "near", "nearby",
    *corners.JOB_WORDS, *switches.JOB_WORDS,
)  # fmt: skip

COMMON = """
def _copy(to, source, count):
    for i in range(count):
        put(to + 8 * i, number(source + 8 * i))

def _finite(x, count):
    total = 0.0
    for i in range(count):
        total = total + (number(x + 8 * i) - number(x + 8 * i))
    if total == 0.0:
        return 1
    return 0

def _row(job, x):  # of the table of signals, the one of this time
    rows = word(job + ROWS)
    if rows == 0:
        return 0
    t = number(x + T)
    breaks = word(job + BREAKS)
    k = word(job + HINT)
    while k > 0 and t < number(breaks + 8 * k):
        k -= 1
    while k + 1 < rows and t >= number(breaks + 8 * k + 8):
        k += 1
    put(job + HINT, k)
    return word(job + TABLE) + ROW * k
"""

ASK = """
def _ask(job, x, out):
    put(job + EVALUATIONS, word(job + EVALUATIONS) + 1)
    call(word(job + FIELD_AT), x, word(job + CONSTANTS), _row(job, x), out, out + X, word(job + FIELD_WITH))
    return 0
"""

EVALUATE = """
def _evaluate(job, x, out):
    return _ask(job, x, out)
"""

EVALUATE_WITH_DOUBTS = """
def _evaluate(job, x, out):
    _ask(job, x, out)
    if not number(out + TOLD_AT) < number(job + GROWTH):
        return CANNOT
    return 0
"""

EVALUATE_WITH_LOOPS = """
def _evaluate(job, x, out):
    _ask(job, x, out)
    if not number(out + TOLD_AT) < number(job + GROWTH) or not number(out + TOLD_AT + 8) < number(job + NARROW):
        return CANNOT
    if number(out + TOLD_AT + 8) > number(job + MENDED):  # off the constraints, errors grow: back to them first
        mended = word(job + STILL)
        _copy(mended, x, N)
        if _settled(job, mended) != 0:
            return CANNOT
        _ask(job, mended, out)
        if not number(out + TOLD_AT) < number(job + GROWTH) or not number(out + TOLD_AT + 8) < number(job + NARROW):
            return CANNOT
        if number(out + TOLD_AT + 8) > number(job + NEAR):
            put(job + NEARBY, word(job + NEARBY) + 1)
    return 0

def _ask_back(job, x):
    call(word(job + BACK_AT), x, word(job + CONSTANTS), word(job + SPARE), word(job + TOLD), word(job + BACK_WITH))
    return 0

def _settled(job, x):  # Newton's way back to the constraints, at position and velocity level
    spare = word(job + SPARE)
    told = word(job + TOLD)
    size = 1e300
    count = 0
    going = 1
    while going == 1:
        _ask_back(job, x)
        now = number(told)
        if not number(told + 8) < number(job + GROWN) or not number(told + 16) < number(job + LOST):
            return CANNOT
        if count == 0:
            put(job + FIRST, now)
        if now < KEPT or (now < NEARLY and now > 0.3 * size):
            going = 0
        elif now < SQUARED:  # Newton squares it, and velocities feel of it what is far below their own error
            _copy(x, spare, NQ)
            going = 0
        else:
            if count == 4:
                return CANNOT
            _copy(x, spare, NQ)
            size = now
            count += 1
    _copy(x + NQ8, spare + NQ8, NV)
    return 0

def _turned(job):
    told = word(job + TOLD) + 24
    turns = word(job + TURNS)
    found = 0
    if word(job + HAS_TURNS) == 1:
        for k in range(PIVOTS):
            a = number(told + 8 * k)
            b = number(turns + 8 * k)
            c = number(told + 8 * (PIVOTS + k))
            d = number(turns + 8 * (PIVOTS + k))
            near = least(least(size(a), size(b)), least(size(c), size(d)))
            if near > CLEAR and a * b < 0.0 and c * d < 0.0:
                found = 1
    _copy(turns, told, 2 * PIVOTS)
    put(job + HAS_TURNS, 1)
    return found
"""

UNIT = """
def _unit(job, x):
    told = word(job + TOLD)
    spare = word(job + SPARE)
    call(word(job + UNIT_AT), x, word(job + CONSTANTS), spare, told, word(job + UNIT_WITH))
    _copy(x, spare, NQ + NV)
    put(job + OFF_UNIT, number(told))
    return 0
"""

SAMPLES = """
def _sampled(job, x0, f0, x1, f1, h: float, last, told):  # states at the wanted times of a step, up to its `last`
    t1 = number(last + T)
    slack = 1e-13 * (1.0 + least(size(t1), LONG)) + SPACINGS * size(t1)
    samples = word(job + SAMPLES)
    k = word(job + NEXT)
    count = word(job + COUNT)
    while k < count and number(samples + 8 * k) <= t1 + slack:
        if k >= word(job + ROOM):
            return FULL
        at = number(samples + 8 * k)
        row = word(job + SAMPLE_STATES) + X * k
        answer = word(job + SAMPLE_ANSWERS) + F * k
        if at >= t1 - slack:
            _copy(row, last, N)
            _copy(answer, told, S)
            put(row + T, at)
        else:
            _inside(job, x0, f0, x1, f1, h, (at - number(x0 + T)) / h, row)
            put(row + T, at)
            if _returned(job, row) != 0:
                return CANNOT
            if _evaluate(job, row, answer) != 0:
                return CANNOT
        k += 1
    put(job + NEXT, k)
    return 0
"""

HERMITE = """
def _inside(job, x0, f0, x1, f1, h: float, s: float, out):  # the cubic through both ends with their rates
    u = 1.0 - s
    mix(out, x0, (1.0 + 2.0 * s) * u * u, x1, s * s * (3.0 - 2.0 * s), f0, h * s * u * u, f1, 0.0 - h * s * s * u)
"""

INTERPOLANT = """
def _inside(job, x0, f0, x1, f1, h: float, s: float, out):
    interpolate(out, x0, word(job + DENSE) + word(job + DONE) * DENSE_ROW, s)
"""

def returned(curved: bool, loops: bool) -> str:
    """The way back to the manifold after a step, and what is noted of how far it was."""
    body = ["def _returned(job, x):"]
    noted = ["def _noted(job):"]
    if curved:
        body.append("    _unit(job, x)")
        noted.append("    put(job + OFF_MANIFOLD, most(number(job + OFF_UNIT), number(job + OFF_MANIFOLD)))")
    if loops:
        body.append("    if _settled(job, x) != 0:\n        return CANNOT")
        noted.append("    put(job + OFF_LOOPS, most(number(job + FIRST), number(job + OFF_LOOPS)))")
        noted.append("    put(job + TURNED_AT, _turned(job))")  # `told` is that of the state gone back to
    return "\n".join([*(UNIT.splitlines() if curved else []), *body, "    return 0", "", *noted, "    return 0", ""])


def seen(watched: bool, loops: bool) -> str:
    """What is looked at after a step: crossings, then samples, then turns of constraint rows."""
    begin = ["def _begin(job, x, f):", "    status = _evaluate(job, x, f)"]
    lines = ["def _seen(job, x0, f0, x1, f1, h: float):", "    turned = 0"]
    if loops:
        begin.append("    put(job + HAS_TURNS, 0)")
        begin.append("    _ask_back(job, x)\n    _turned(job)")
        lines.append("    if word(job + TURNED_AT) == 1:\n        turned = TURNED")
    if watched:
        begin.append("    _look(job, x, word(job + BEFORE))")
        lines.append("    if _crossed(job, x0, f0, x1, f1, h) != 0:")
        lines.append("        if turned != 0:\n            return turned")
        lines.append("        return _ended(job, x0, f0, x1, f1, h)")
    lines.append("    status = _sampled(job, x0, f0, x1, f1, h, x1, f1)\n    if status != 0:\n        return status")
    return "\n".join([*begin, "    return status", "", *lines, "    return turned", ""])


__all__ = ["CANNOT", "CROSSED", "FULL", "JOB", "LOOKS", "STOPPED", "TURNED", "returned", "seen"]
