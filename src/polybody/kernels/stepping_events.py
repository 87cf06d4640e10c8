"""Machine code that finds where watched functions cross zero, in the language of `native`.

After a step its watched functions are looked at, at `LOOKS` points, by the step's interpolant. Where one has changed
its sign between two of them, its root is found by Chandrupatla's method (inverse quadratic interpolation where three
points support it, else bisection; Adv. Eng. Software 28 (1997) 145), to 1e-14 s + 4e-16 t. The earliest root ends the
loop: the state there, put back on the manifold, stands in the row behind the step's own end, with its answer, and the
word `crossed` of each function that reaches zero there is 1.

A function that crosses zero and comes back between two looks is seen by its extremum (`stepping_extrema`), which is
looked at as well. Three looks show it: where another function has crossed zero between the first two of them, the third
is looked at too, as the extremum may have been sooner.

A step that starts where something has just been dealt with (`fresh`) has functions that are zero there up to rounding:
their signs are read a moment later, 1e-9 s (1 + t) or a millionth of the step, at most a tenth of it.
"""

from __future__ import annotations

LOOK = """
def _look(job, x, out):
    call(word(job + WATCH_AT), x, word(job + CONSTANTS), _row(job, x), out, word(job + WATCH_WITH))
    return 0
"""

WATCHING = """
def _look_inside(job, x0, f0, x1, f1, h: float, theta: float, out):
    at = x1
    if theta < 1.0:
        at = word(job + STAGE)
        _inside(job, x0, f0, x1, f1, h, theta, at)
    return _look(job, at, out)

def _crosses(b: float, a: float, way):
    if b < 0.0 and a >= 0.0 and (way & 1) == 1:
        return 1
    if b > 0.0 and a <= 0.0 and (way & 2) == 2:
        return 1
    return 0

def _zero(job, x0, f0, x1, f1, h: float, which, low: float, high: float, result):  # of one function, Chandrupatla
    trial = word(job + TRIAL)
    a = high
    fa = number(word(job + AFTER) + which)
    b = low
    fb = number(word(job + BEFORE) + which)
    c = b
    fc = fb
    tol = (1e-14 + 4e-16 * size(number(x1 + T))) / h
    s = 0.5
    going = 1
    count = 0
    if fa == 0.0:
        going = 0
    while going == 1:
        x = a + s * (b - a)
        _look_inside(job, x0, f0, x1, f1, h, x, trial)
        f = number(trial + which)
        if (f < 0.0 and fa < 0.0) or (f > 0.0 and fa > 0.0):
            c = a
            fc = fa
        else:
            c = b
            fc = fb
            b = a
            fb = fa
        a = x
        fa = f
        near = tol / size(b - a)
        count += 1
        if fa == 0.0 or near > 1.0 or count == 100:
            going = 0
        xi = (a - b) / (c - b)
        phi = (fa - fb) / (fc - fb)
        s = 0.5
        if phi * phi < xi and (1.0 - phi) * (1.0 - phi) < 1.0 - xi:
            s = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
        s = least(1.0 - 0.5 * near, most(0.5 * near, s))
    if size(fb) < size(fa):
        a = b
    put(result, a)
    return 0

def _located(job, x0, f0, x1, f1, h: float, low: float, high: float):
    before = word(job + BEFORE)
    after = word(job + AFTER)
    crossed = word(job + CROSSED_AT)
    found = job + LOCATED
    first = 2.0
    for i in range(WATCHED):
        way = word(word(job + DIRECTIONS) + 8 * i)
        at = 2.0
        if _crosses(number(before + 8 * i), number(after + 8 * i), way) == 1:
            _zero(job, x0, f0, x1, f1, h, 8 * i, low, high, found)
            at = number(found)
        put(crossed + 8 * i, at)
        first = least(first, at)
    late = size(number(x0 + T) + first * h)
    same = 1e-12 * (1.0 + least(late, LONG)) + SPACINGS * late
    for i in range(WATCHED):
        together = 0
        if (number(crossed + 8 * i) - first) * h <= same:
            together = 1
        put(crossed + 8 * i, together)
    put(found, first)
    return 0

def _crossed_by(job, x0, f0, x1, f1, h: float, low: float, high: float):  # between `before` and `after`
    before = word(job + BEFORE)
    after = word(job + AFTER)
    for i in range(WATCHED):
        b = number(before + 8 * i)
        a = number(after + 8 * i)
        if b * a <= 0.0 and _crosses(b, a, word(word(job + DIRECTIONS) + 8 * i)) == 1:
            _located(job, x0, f0, x1, f1, h, low, high)
            return CROSSED
    return 0

def _sooner(job, x0, f0, x1, f1, h: float, low: float, high: float, since: float):  # than what was located between
    before = word(job + BEFORE)
    after = word(job + AFTER)
    earlier = word(job + EARLIER)
    located = number(job + LOCATED)
    _copy(earlier, before, WATCHED)
    _copy(before, after, WATCHED)
    _look_inside(job, x0, f0, x1, f1, h, high + PART, after)
    _beyond(job, x0, f0, x1, f1, h, low, high, high + PART, since)
    at = number(job + LOCATED)
    put(job + LOCATED, located)
    if at < located:
        _copy(before, earlier, WATCHED)
        _look_inside(job, x0, f0, x1, f1, h, at, after)
        if _crossed_by(job, x0, f0, x1, f1, h, low, at) == 0:
            _copy(before, after, WATCHED)
            _look_inside(job, x0, f0, x1, f1, h, high, after)
            _crossed_by(job, x0, f0, x1, f1, h, at, high)
    return CROSSED

def _crossed(job, x0, f0, x1, f1, h: float):
    before = word(job + BEFORE)
    after = word(job + AFTER)
    earlier = word(job + EARLIER)  # values at the look before the last, at `first`
    low = 0.0
    since = 0.0  # where extrema count from; 2: there are no three looks in a row
    if word(job + FRESH) == 1:
        put(job + FRESH, 0)
        late = size(number(x0 + T))
        moment = most(1e-9 * (1.0 + least(late, LONG)) + SPACINGS * late, 1e-6 * h)
        low = least(moment, 0.1 * h) / h
        _look_inside(job, x0, f0, x1, f1, h, low, before)
        since = PART  # before it, functions are still as near to zero as they were
    found = 0
    high = 0.0
    first = low
    for m in range(LOOKS):
        if found == 0:
            high = high + PART
            _look_inside(job, x0, f0, x1, f1, h, high, after)
            at = 2.0
            if m > 0 and since < 2.0:
                _beyond(job, x0, f0, x1, f1, h, first, low, high, since)
                at = number(job + LOCATED)
            if at > 1.0:
                found = _crossed_by(job, x0, f0, x1, f1, h, low, high)
                if m > 0:
                    since = 0.0
                if found == CROSSED and m + 1 < LOOKS:
                    found = _sooner(job, x0, f0, x1, f1, h, low, high, since)
            else:
                middle = low
                low = first
                _copy(before, earlier, WATCHED)
                for k in range(3):  # to the extremum, to the look behind it, to the last
                    if found == 0 and at > low:
                        _look_inside(job, x0, f0, x1, f1, h, at, after)
                        found = _crossed_by(job, x0, f0, x1, f1, h, low, at)
                        if found == 0:
                            _copy(before, after, WATCHED)
                            low = at
                    at = high
                    if k == 0 and middle > low:
                        at = middle
                since = 2.0
            if found == 0:
                _copy(earlier, before, WATCHED)
                _copy(before, after, WATCHED)
                first = low
                low = high
    return found

def _ended(job, x0, f0, x1, f1, h: float):  # the state at the crossing, behind the step's end
    theta = number(job + LOCATED)
    x = x1 + X
    f = f1 + F
    if theta >= 1.0:
        _copy(x, x1, N)
        _copy(f, f1, S)
    else:
        _inside(job, x0, f0, x1, f1, h, theta, x)
        put(x + T, number(x0 + T) + theta * h)
        if _returned(job, x) != 0:
            return TURNED
        if _evaluate(job, x, f) != 0:
            return TURNED
        if _finite(f, NX) == 0:
            return TURNED
    status = _sampled(job, x0, f0, x1, f1, h, x, f)
    if status != 0:
        return status
    return CROSSED
"""

__all__ = ["LOOK", "WATCHING"]
