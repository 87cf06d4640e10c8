"""Machine code of integration methods, in the language of `native`: how a step is taken, and the loops over steps.

    FIXED      steps between given times: by a tableau, by a formula of its own, or by Newton's iterations
    ADVANCE    adaptive steps, by a method of its own: `stepping_radau`, or
    ADAPTIVE   an embedded pair of orders 8(5, 3) with the step control of Hairer's DOP853

What they call, and what the words of a job are, is in `stepping_code`.
"""

from __future__ import annotations

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
    call(word(job + LEAP_AT), x, f, job + H, word(job + CONSTANTS), _row(job, x), new, word(job + LEAP_WITH))
    return 0
"""

#: an implicit step: middle(x, u, h, …) -> residual, its Jacobian in u; ends(x, u, h, …) -> x, M v, M at the end
IMPLICIT = """
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
        call(word(job + MIDDLE_AT), x, u, job + H, word(job + CONSTANTS), row, r, A, word(job + MIDDLE_WITH))
        if _factored(A, word(job + PIVOTED), NV) != 0:
            return CANNOT
        _divided(A, word(job + PIVOTED), NV, r)
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
    call(word(job + ENDS_AT), x, u, job + H, word(job + CONSTANTS), row, new, r, A, word(job + ENDS_WITH))
    if _factored(A, word(job + PIVOTED), NV) != 0:
        return CANNOT
    _divided(A, word(job + PIVOTED), NV, r)
    _copy(new + NQ8, r, NV)
    return 0
"""

#: the same where ∂r/∂u would be long: balance(x, u, h, …) -> residual, end(x, u, h, …) -> x at the end. The matrix is
#: one of differences, which change no result, and serves as long as corrections shrink fast by it: for many steps. From
#: where the last two middles lead the iterations may diverge: then they begin once more, at the velocity before. Of
#: long chains the rounding of M u, times M⁻¹, is what remains (1e-9 of 140 joints): where a matrix of the same step
#: does no better it is noted, and no matrix is made again for its sake
BALANCED = """
def _renewed(job, x, u, r, row):
    A = word(job + MATRIX)
    moved = word(job + STAGES)
    there = moved + F
    for j in range(NV):
        _copy(moved, u, NV)
        here = number(u + 8 * j)
        put(moved + 8 * j, here + 1.5e-8 * (1.0 + size(here)))
        step = number(moved + 8 * j) - here
        call(word(job + BALANCE_AT), x, moved, job + H, word(job + CONSTANTS), row, there, word(job + BALANCE_WITH))
        for i in range(NV):
            put(A + 8 * (i * NV + j), (number(there + 8 * i) - number(r + 8 * i)) / step)
    put(job + HAS_SPEED, 2)
    return _factored(A, word(job + PIVOTED), NV)

def _stepped(job, x, f, new, h: float):
    u = word(job + SPEED)
    last = word(job + LAST_SPEED)
    r = word(job + RIGHT)
    stage = word(job + STAGE)
    put(job + H, h)
    fresh = 0
    foreseen = 0
    if word(job + HAS_SPEED) > 0:  # the last two middles tell the next
        foreseen = 1
        for i in range(NV):
            now = number(u + 8 * i)
            put(u + 8 * i, 2.0 * now - number(last + 8 * i))
            put(last + 8 * i, now)
    else:
        _copy(u, x + NQ8, NV)
        _copy(last, u, NV)
        put(job + ROUNDED, 0.0)
    _copy(stage, x, N)
    put(stage + T, number(x + T) + 0.5 * h)
    row = _row(job, stage)
    count = 0
    before = 0.0
    going = 1
    while going == 1:
        put(job + EVALUATIONS, word(job + EVALUATIONS) + 1)
        call(word(job + BALANCE_AT), x, u, job + H, word(job + CONSTANTS), row, r, word(job + BALANCE_WITH))
        if not word(job + HAS_SPEED) == 2:
            if _renewed(job, x, u, r, row) != 0:
                put(job + HAS_SPEED, 0)
                return CANNOT
            fresh = 1
            before = 0.0
        _divided(word(job + MATRIX), word(job + PIVOTED), NV, r)
        worst = 0.0
        fastest = 1.0
        for i in range(NV):
            change = number(r + 8 * i)
            put(u + 8 * i, number(u + 8 * i) - change)
            worst = most(size(change), worst)
            fastest = most(size(number(u + 8 * i)), fastest)
        count += 1
        lost = 0
        if count > 40 or not _finite(u, NV) == 1:
            if foreseen == 0:
                put(job + HAS_SPEED, 0)
                return CANNOT
            lost = 1
        rate = 0.0
        if before > 0.0:
            rate = worst / before
        if lost == 1:
            _copy(u, x + NQ8, NV)
            put(job + HAS_SPEED, 1)
            foreseen = 0
            fresh = 0
            count = 0
            worst = 0.0
        elif worst <= 1e-13 * fastest:
            going = 0
        elif before > 0.0 and worst <= 1e-9 * fastest:
            if rate * worst <= 1e-13 * fastest:
                going = 0
            elif rate > 0.5:  # rounding, if a matrix of this step does no better; an old one may be what is slow
                if fresh == 1 or worst <= most(1e-11 * fastest, 2.0 * number(job + ROUNDED)):
                    going = 0
                else:
                    put(job + HAS_SPEED, 1)
                if fresh == 1:
                    put(job + ROUNDED, worst)
        elif rate > 0.5 and worst <= 2.0 * number(job + ROUNDED):
            going = 0
        elif fresh == 1 and count > 12 and rate > 0.5 and worst <= 1e-6 * fastest:
            put(job + ROUNDED, worst)
            going = 0
        elif rate > SLUGGISH and (fresh == 0 or count > 8):
            put(job + HAS_SPEED, 1)
        before = worst
    call(word(job + END_AT), x, u, job + H, word(job + CONSTANTS), row, new, word(job + END_WITH))
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
        answer = word(job + ANSWERS) + F * (k + 1)  # f may be elsewhere, after an instant
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
        more = 1
        while more == 1:  # what happens at this time: a crossing, an instant, and a crossing there
            more = 0
            if status == CROSSED:
                status = _switched(job, x, f)
                if status == 0:  # another row, at the same time
                    k += 1
                    put(job + DONE, k)
                    x = x + X
                    f = f + F
                    steps = _spread(job, k)
                    if word(job + SWITCHED) >= word(job + SWITCH_MOST):
                        steps = k
            if status == 0:
                f = _ticked(job, x, f, k)
                if f == 0:
                    status = word(job + STRUCK)
                    f = word(job + ANSWERS) + F * k
                    if status == CROSSED:
                        more = 1
    return status
"""

#: The first step of adaptive methods, where h = 0 asks for it, from two evaluations (Hairer, Nørsett & Wanner, Solving
#: Ordinary Differential Equations I, II.4). With norms relative to the tolerances, p the order of the error estimate,
#: h₀ is a hundredth of ‖y₀‖/‖f₀‖; f₁ is the rate after an Euler step by h₀, d₂ = ‖f₁ − f₀‖/h₀, and
#: h₁ = (0.01/max(‖f₀‖, d₂))^(1/(p + 1)),  h = min(100 h₀, h₁). FIRST_POWER is 1/(p + 1).
FIRST_STEP = """
def _norm(job, d, x, result):  # root mean square, relative to the tolerances
    total = 0.0
    for i in range(CONTROLLED):
        part = number(d + 8 * i) / (number(job + ATOL) + number(job + RTOL) * size(number(x + 8 * i)))
        total = total + part * part
    put(result, root(total / ENTRIES))
    return 0

def _first(job, x, f):
    result = job + FIRST
    stage = word(job + STAGE)
    later = word(job + STAGES) + F
    span = number(job + END) - number(x + T)
    _norm(job, x, x, result)
    long = number(result)
    _norm(job, f, x, result)
    speed = number(result)
    h = 1e-6
    if long >= 1e-5 and speed >= 1e-5:
        h = 0.01 * long / speed
    h = least(h, span)
    mix(stage, x, 1.0, f, h, x, 0.0, x, 0.0)
    if _evaluate(job, stage, later) != 0:
        return CANNOT
    mix(stage, later, 1.0, f, 0.0 - 1.0, x, 0.0, x, 0.0)
    _norm(job, stage, x, result)
    fastest = most(speed, number(result) / h)
    best = most(1e-6, 1e-3 * h)
    if fastest > 1e-15:
        best = power(word(job + POW), 0.01 / fastest, FIRST_POWER)
    put(job + H, least(least(100.0 * h, best), least(span, number(job + MAX_STEP))))
    return 0
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

def _warmed(job, x, f):
    return 0

def _attempted(job, x, f, new, end: float):  # tries until one is accepted
    K = word(job + STAGES)
    norm_at = job + FIRST
    status = 0
    _copy(K, f, N)
    t = number(x + T)
    tiny = 2.3e-15 * size(t) + 1e-300
    h = most(least(number(job + H), number(job + MAX_STEP)), tiny)
    rejected = 0
    accepted = 0
    asked = 0.0  # the next length, after a step to a corner
    limit = 1e300  # of errors that corners explain
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
                if asked > 0.0:
                    put(job + H, asked)
                accepted = 1
            else:
                factor = most(0.9 * power(word(job + POW), norm, 0.0 - 0.125), 0.2)
                _corner(job, x, new, h)
                part = number(job + CORNER)
                if part < 1.0 and norm < limit:
                    if asked == 0.0:
                        asked = h * factor
                    limit = FALLEN * norm
                    h = h * part
                else:
                    asked = 0.0
                    h = h * factor
                rejected += 1
    put(job + TAKEN, h)
    put(job + TRIES, rejected)
    return status

def _interpolated(job, x, f, new, answer):
    wanted = word(job + DENSE_WANTED)
    if word(job + NEXT) < word(job + COUNT):
        if number(word(job + SAMPLES) + 8 * word(job + NEXT)) < number(new + T):
            wanted = 1
    if wanted == 0:
        return 0
    return _densified(job, x, f, new, answer, number(job + TAKEN))

def _counted(job, x, new, answer, status):
    return status

def _renewed(job, x, f):
    return 0
"""

#: The loop of adaptive methods. A method brings `_warmed` (before the first step), `_attempted` (a step, whose length
#: and rejected tries it leaves in the job), `_interpolated` (its interpolant), `_counted` (after a step that counts:
#: the status from then on) and `_renewed` (where forces have changed at an instant).
ADVANCE = """
def advance(job):
    x = word(job + STATES)
    f = word(job + ANSWERS)
    steps = word(job + STEPS)
    end = number(job + END)
    k = 0
    put(job + DONE, 0)
    status = _begin(job, x, f)
    if status == 0 and number(job + H) == 0.0:
        status = _first(job, x, f)
    if status == 0:
        status = _warmed(job, x, f)
    until = number(job + UNTIL)
    while k < steps and status == 0 and number(x + T) < until:
        new = x + X
        answer = word(job + ANSWERS) + F * (k + 1)  # f may be elsewhere, after an instant
        _bounded(job, end)
        status = _attempted(job, x, f, new, number(job + GOAL))
        if status == 0 and _finite(new, NX) == 0:
            status = CANNOT
        if status == 0:
            status = _moved(job, word(job + STAGES), f, new, answer)
        if status == 0 and _finite(answer, NX) == 0:
            status = CANNOT
        if status == 0:
            status = _interpolated(job, x, f, new, answer)
        if status == 0:
            status = _seen(job, x, f, new, answer, number(job + TAKEN))
            if status == 0 or status == CROSSED or status == TURNED:
                status = _counted(job, x, new, answer, status)
                k += 1
                put(job + REJECTED, word(job + REJECTED) + word(job + TRIES))
                put(job + DONE, k)
            x = new
            f = answer
        more = 1
        while more == 1:  # what happens at this time: a crossing, an instant, and a crossing there
            more = 0
            if status == CROSSED:
                status = _switched(job, x, f)
                if status == 0:  # another row, at the same time
                    k += 1
                    put(job + DONE, k)
                    x = x + X
                    f = f + F
                    status = _renewed(job, x, f)
                    if word(job + SWITCHED) >= word(job + SWITCH_MOST):
                        steps = k
            if status == 0:
                before = f
                f = _ticked(job, x, f, k)
                if f == 0:
                    status = word(job + STRUCK)
                    f = before
                    if status == CROSSED:
                        more = 1
                elif f != before:  # other forces from here on
                    status = _renewed(job, x, f)
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

__all__ = [
    "ADAPTIVE", "ADVANCE", "AHEAD", "BY_FUNCTION", "BY_TABLEAU", "FIRST_STEP", "FIXED", "IMPLICIT", "MOVED", "STAYED",
]  # fmt: skip
