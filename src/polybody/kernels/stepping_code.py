"""Machine code that advances a state by many steps in one call: the loops of `stepping`, in the language of `native`.

The state is x = [y; t], t the time and the last of its numbers, so that stages have their times without being told. A
row of *states* is x, padded; a row of *answers* is what the field says at x: ẋ, padded, then numbers that are only
recorded, then two that tell whether it may be believed. `job` is an array of words in the order of `JOB`.

    fixed      steps between given times: by a tableau, or by a step function of its own
    adaptive   an embedded pair of orders 8(5, 3) with SciPy's control of the step (Hairer's DOP853)

Each step is followed by the way back to the manifold (`_returned`) and by a look at the watched functions at `LOOKS`
points inside it, by the step's interpolant. A loop ends early and says why:

    CANNOT   the step from the last good state is somebody else's: numbers that are not finite, a field not to be
             believed, steps too small
    CROSSED  a watched function has changed its sign within the last step
    TURNED   the last step has passed a singular configuration of constraints
    FULL     the next step has more samples than there is room for
"""

from __future__ import annotations

CANNOT, CROSSED, TURNED, FULL = 1, 2, 3, 4
LOOKS = 4

JOB = (
    "steps", "done", "states", "answers", "constants", "libm", "pow", "times", "breaks", "table", "rows", "hint",
    "evaluations", "rejected", "directions", "before", "after", "samples", "next", "count", "room", "sample_states",
    "sample_answers", "dense", "dense_wanted", "stages", "stage", "spare", "nought", "told", "turns", "has_turns",
    "tableau", "h", "end", "until", "max_step", "rtol", "atol", "off_manifold", "off_loops", "first", "grown", "lost",
    "growth", "narrow", "mended", "still", "off_unit", "turned",
    "field_at", "leap_at", "unit_at", "back_at", "watch_at", "middle_at", "ends_at", "speed", "last_speed", "has_speed",
    "right", "matrix",
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

def _ask(job, x, out):
    put(job + EVALUATIONS, word(job + EVALUATIONS) + 1)
    call(word(job + FIELD_AT), x, word(job + CONSTANTS), _row(job, x), out, out + X, word(job + LIBM))
    return 0
"""

EVALUATE = """
def _evaluate(job, x, out):
    return _ask(job, x, out)
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
    return 0

def _ask_back(job, x):
    call(word(job + BACK_AT), x, word(job + CONSTANTS), word(job + SPARE), word(job + TOLD), word(job + LIBM))
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
    call(word(job + UNIT_AT), x, spare, told, word(job + LIBM))
    _copy(x, spare, NQ + NV)
    put(job + OFF_UNIT, number(told))
    return 0
"""

WATCHING = """
def _look(job, x, out):
    call(word(job + WATCH_AT), x, word(job + CONSTANTS), _row(job, x), out, word(job + LIBM))
    return 0

def _crossed(job, x0, f0, x1, f1, h: float):
    stage = word(job + STAGE)
    before = word(job + BEFORE)
    after = word(job + AFTER)
    found = 0
    theta = 0.0
    for m in range(LOOKS):
        theta = theta + PART
        at = x1
        if m + 1 < LOOKS:
            _inside(job, x0, f0, x1, f1, h, theta, stage)
            at = stage
        _look(job, at, after)
        for i in range(WATCHED):
            b = number(before + 8 * i)
            a = number(after + 8 * i)
            way = word(word(job + DIRECTIONS) + 8 * i)
            if b < 0.0 and a >= 0.0 and (way & 1) == 1:
                found = CROSSED
            if b > 0.0 and a <= 0.0 and (way & 2) == 2:
                found = CROSSED
            put(before + 8 * i, a)
    return found
"""

SAMPLES = """
def _sampled(job, x0, f0, x1, f1, h: float):  # states at the wanted times of a step
    t1 = number(x1 + T)
    slack = 1e-13 * (1.0 + size(t1))
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
            _copy(row, x1, N)
            _copy(answer, f1, S)
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

BY_TABLEAU = """
def _stepped(job, x, f, new, h: float):
    K = word(job + STAGES)
    tableau = word(job + TABLEAU)
    stage = word(job + STAGE)
    _copy(K, f, N)
    for s in range(1, STAGE_COUNT):
        combine(stage, x, h, K, tableau + 8 * STAGE_COUNT * s, s)
        if _evaluate(job, stage, K + F * s) != 0:
            return CANNOT
    combine(new, x, h, K, tableau + 8 * STAGE_COUNT * STAGE_COUNT, STAGE_COUNT)
    return 0
"""

BY_FUNCTION = """
def _stepped(job, x, f, new, h: float):
    put(job + H, h)
    call(word(job + LEAP_AT), x, f, job + H, word(job + CONSTANTS), _row(job, x), new, word(job + LIBM))
    return 0
"""

#: an implicit step: middle(x, u, h, …) -> residual, its Jacobian in u; ends(x, u, h, …) -> x, M v, M at the end
IMPLICIT = """
def _solved(A, b, n):  # A x = b by elimination with pivots, in place
    for k in range(n):
        best = size(number(A + 8 * (k * n + k)))
        pivot = k
        for i in range(k + 1, n):
            entry = size(number(A + 8 * (i * n + k)))
            if entry > best:
                best = entry
                pivot = i
        if not best > 0.0:
            return CANNOT
        if pivot != k:
            for j in range(k, n):
                upper = number(A + 8 * (k * n + j))
                put(A + 8 * (k * n + j), number(A + 8 * (pivot * n + j)))
                put(A + 8 * (pivot * n + j), upper)
            first = number(b + 8 * k)
            put(b + 8 * k, number(b + 8 * pivot))
            put(b + 8 * pivot, first)
        inverse = 1.0 / number(A + 8 * (k * n + k))
        for i in range(k + 1, n):
            factor = number(A + 8 * (i * n + k)) * inverse
            for j in range(k + 1, n):
                at = A + 8 * (i * n + j)
                put(at, number(at) - factor * number(A + 8 * (k * n + j)))
            put(b + 8 * i, number(b + 8 * i) - factor * number(b + 8 * k))
    i = n
    while i > 0:
        i -= 1
        total = number(b + 8 * i)
        for j in range(i + 1, n):
            total = total - number(A + 8 * (i * n + j)) * number(b + 8 * j)
        put(b + 8 * i, total / number(A + 8 * (i * n + i)))
    return 0

def _stepped(job, x, f, new, h: float):
    u = word(job + SPEED)
    last = word(job + LAST_SPEED)
    r = word(job + RIGHT)
    A = word(job + MATRIX)
    stage = word(job + STAGE)
    put(job + H, h)
    if word(job + HAS_SPEED) == 1:  # the last two middles tell the next
        for i in range(NV):
            now = number(u + 8 * i)
            put(u + 8 * i, 2.0 * now - number(last + 8 * i))
            put(last + 8 * i, now)
    else:
        _copy(u, x + NQ8, NV)
        _copy(last, u, NV)
        put(job + HAS_SPEED, 1)
    _copy(stage, x, N)
    put(stage + T, number(x + T) + 0.5 * h)
    row = _row(job, stage)
    count = 0
    going = 1
    while going == 1:
        put(job + EVALUATIONS, word(job + EVALUATIONS) + 1)
        call(word(job + MIDDLE_AT), x, u, job + H, word(job + CONSTANTS), row, r, A, word(job + LIBM))
        if _solved(A, r, NV) != 0:
            return CANNOT
        worst = 0.0
        fastest = 1.0
        for i in range(NV):
            change = number(r + 8 * i)
            put(u + 8 * i, number(u + 8 * i) - change)
            worst = most(size(change), worst)
            fastest = most(size(number(u + 8 * i)), fastest)
        if worst <= 1e-9 * fastest:
            going = 0
        count += 1
        if count > 25 or not _finite(u, NV) == 1:
            return CANNOT
    call(word(job + ENDS_AT), x, u, job + H, word(job + CONSTANTS), row, new, r, A, word(job + LIBM))
    if _solved(A, r, NV) != 0:
        return CANNOT
    _copy(new + NQ8, r, NV)
    return 0
"""

FIXED = """
def advance(job):
    x = word(job + STATES)
    f = word(job + ANSWERS)
    times = word(job + TIMES)
    steps = word(job + STEPS)
    k = 0
    put(job + DONE, 0)
    status = _begin(job, x, f)
    while k < steps and status == 0:
        new = x + X
        answer = f + F
        h = number(times + 8 * k + 8) - number(times + 8 * k)
        status = _stepped(job, x, f, new, h)
        if status == 0:
            put(new + T, number(times + 8 * k + 8))
            if _finite(new, NX) == 0:
                status = CANNOT
        if status == 0:
            status = _returned(job, new)
        if status == 0:
            _noted(job)
            status = _evaluate(job, new, answer)
        if status == 0 and _finite(answer, NX) == 0:
            status = CANNOT
        if status == 0:
            status = _seen(job, x, f, new, answer, h)
            if status == 0 or status == CROSSED or status == TURNED:
                k += 1
                put(job + DONE, k)
            x = new
            f = answer
    return status
"""

ADAPTIVE = """
def _tried(job, x, f, new, h: float):  # the twelve stages of a try, and the rate at its end
    K = word(job + STAGES)
    tableau = word(job + TABLEAU)
    stage = word(job + STAGE)
    for s in range(1, STAGE_COUNT):
        combine(stage, x, h, K, tableau + 8 * COLUMNS * s, s)
        if _evaluate(job, stage, K + F * s) != 0:
            return CANNOT
    combine(new, x, h, K, tableau + 8 * COLUMNS * STAGE_COUNT, STAGE_COUNT)
    return 0

def _error(job, x, new, h: float, result):  # the pair's error norm, to be below 1
    K = word(job + STAGES)
    estimates = word(job + TABLEAU) + 8 * COLUMNS * (STAGE_COUNT + EXTRA + 1)
    fifth = word(job + STAGE)
    third = word(job + SPARE)
    combine(fifth, word(job + NOUGHT), 1.0, K, estimates, STAGE_COUNT + 1)
    combine(third, word(job + NOUGHT), 1.0, K, estimates + 8 * COLUMNS, STAGE_COUNT + 1)
    a = 0.0
    b = 0.0
    for i in range(CONTROLLED):
        scale = number(job + ATOL) + number(job + RTOL) * most(size(number(x + 8 * i)), size(number(new + 8 * i)))
        e5 = number(fifth + 8 * i) / scale
        e3 = number(third + 8 * i) / scale
        a = a + e5 * e5
        b = b + e3 * e3
    norm = 0.0
    if not a + b == 0.0:
        norm = h * a / root((a + 0.01 * b) * ENTRIES)
    put(result, norm)
    return 0

def _densified(job, x, f, new, answer, h: float):  # three stages more, and the interpolant's seven rows
    K = word(job + STAGES)
    tableau = word(job + TABLEAU)
    stage = word(job + STAGE)
    for s in range(EXTRA):
        used = STAGE_COUNT + 1 + s
        combine(stage, x, h, K, tableau + 8 * COLUMNS * used, used)
        if _evaluate(job, stage, K + F * used) != 0:
            return CANNOT
    rows = word(job + DENSE) + word(job + DONE) * DENSE_ROW
    mix(rows, new, 1.0, x, 0.0 - 1.0, x, 0.0, x, 0.0)
    mix(rows + X, rows, 0.0 - 1.0, f, h, x, 0.0, x, 0.0)
    mix(rows + 2 * X, rows, 2.0, f, 0.0 - h, answer, 0.0 - h, x, 0.0)
    for r in range(4):
        d = tableau + 8 * COLUMNS * (STAGE_COUNT + EXTRA + 3 + r)
        combine(rows + X * (3 + r), word(job + NOUGHT), h, K, d, STAGE_COUNT + 1 + EXTRA)
    return 0

def advance(job):
    x = word(job + STATES)
    f = word(job + ANSWERS)
    steps = word(job + STEPS)
    K = word(job + STAGES)
    end = number(job + END)
    norm_at = job + FIRST
    k = 0
    put(job + DONE, 0)
    status = _begin(job, x, f)
    until = number(job + UNTIL)
    while k < steps and status == 0 and number(x + T) < until:
        new = x + X
        answer = f + F
        _copy(K, f, N)
        t = number(x + T)
        tiny = 2.3e-15 * size(t) + 1e-300
        h = most(least(number(job + H), number(job + MAX_STEP)), tiny)
        t1 = t
        rejected = 0
        accepted = 0
        while accepted == 0 and status == 0:
            t1 = t + h
            if h < tiny:
                status = CANNOT
            if t1 > end:
                t1 = end
            h = t1 - t
            if status == 0:
                status = _tried(job, x, f, new, h)
            if status == 0:
                put(new + T, t1)
                status = _evaluate(job, new, K + F * STAGE_COUNT)
            if status == 0:
                _error(job, x, new, h, norm_at)
                norm = number(norm_at)
                if norm < 1.0:
                    factor = 10.0
                    if norm > 0.0:
                        factor = least(10.0, 0.9 * power(word(job + POW), norm, 0.0 - 0.125))
                    if rejected > 0:
                        factor = least(1.0, factor)
                    put(job + H, h * factor)
                    accepted = 1
                else:
                    h = h * most(0.9 * power(word(job + POW), norm, 0.0 - 0.125), 0.2)
                    rejected += 1
        if status == 0 and _finite(new, NX) == 0:
            status = CANNOT
        if status == 0:
            status = _moved(job, K, f, new, answer)
        if status == 0 and _finite(answer, NX) == 0:
            status = CANNOT
        if status == 0:
            wanted = word(job + DENSE_WANTED)
            if word(job + NEXT) < word(job + COUNT):
                if number(word(job + SAMPLES) + 8 * word(job + NEXT)) < t1:
                    wanted = 1
            if wanted == 1:
                status = _densified(job, x, f, new, answer, h)
        if status == 0:
            status = _seen(job, x, f, new, answer, h)
            if status == 0 or status == CROSSED or status == TURNED:
                k += 1
                put(job + REJECTED, word(job + REJECTED) + rejected)
                put(job + DONE, k)
            x = new
            f = answer
    return status
"""

#: what is done with the state that a try of the adaptive method ends at
STAYED = """
def _moved(job, K, f, new, answer):
    _copy(answer, K + F * STAGE_COUNT, S)
    return 0
"""
MOVED = """
def _moved(job, K, f, new, answer):
    status = _returned(job, new)
    _noted(job)
    if status == 0:
        status = _evaluate(job, new, answer)
    return status
"""
#: with loops: a step over which pivots' rows shrink by a third of their length heads for a singular configuration
AHEAD = """
def _moved(job, K, f, new, answer):
    status = _returned(job, new)
    _noted(job)
    if status == 0:
        status = _evaluate(job, new, answer)
    if status == 0 and number(answer + TOLD_AT + 8) > 2.0 * number(f + TOLD_AT + 8):
        status = CANNOT
    return status
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
        lines.append("    if _crossed(job, x0, f0, x1, f1, h) != 0:\n        return CROSSED")
    lines.append("    status = _sampled(job, x0, f0, x1, f1, h)\n    if status != 0:\n        return status")
    return "\n".join([*begin, "    return status", "", *lines, "    return turned", ""])


__all__ = ["CANNOT", "CROSSED", "FULL", "JOB", "LOOKS", "TURNED", "returned", "seen"]
