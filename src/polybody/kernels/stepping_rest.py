"""Machine code that finds what is held where velocities are at rest, in the language of `native`.

Forces of stops and of rubs minimise (1) of `stepping_decisions` at rest. Levels of rubs that depend on loads are those
of what is held: found again, with what is held, until they stay (`simulation.switches`). With constraints the state is
brought back to them and to the places of what is held (`back`), and rows may depend on each other.
"""

from __future__ import annotations

PRESSING = """
def _urged(job, y):  # accelerations with nothing held, into SW_ANSWER; levels of rubs under what is held, SW_BORNE
    m = word(job + SWITCH_MEMORY)
    if SW_BEARING == 0:
        put(job + LOOSE, 1)
        _copy(m + SW_BORNE, word(job + SWITCH_NUMBERS) + NUMBERS_LEVELS, SW_RUBS_COUNT)
        return _evaluate(job, y, m + SW_ANSWER)
    call(word(job + BEARING_AT), y, word(job + CONSTANTS), _row(job, y), m + SW_EXTRA, m + SW_ANSWER + NQ8,
         m + SW_BORNE, m + SW_TOLD, word(job + BEARING_WITH))
    put(job + EVALUATIONS, word(job + EVALUATIONS) + 1)
    if not number(m + SW_TOLD) < number(job + GROWTH):
        return CANNOT
    if SW_LOOPS == 1:
        if not number(m + SW_TOLD + 8) < least(number(job + NARROW), number(job + MENDED)):
            return CANNOT
    return 0

def _is_same(stop, rub):  # slot
    if word(stop + 16) == word(rub + 16):
        return 1
    return 0

def _stays(job, slot, place: float):
    put(word(job + CONSTANTS) + FREE_AT + 8 * slot, 0.0)
    put(word(job + CONSTANTS) + PLACE_AT + 8 * slot, place)
    return 0

def _let_go(job):  # nothing is held
    c = word(job + CONSTANTS)
    for i in range(SW_SLOTS):
        put(c + FREE_AT + 8 * i, 1.0)
        put(c + PLACE_AT + 8 * i, 0.0)
    for i in range(SW_STOPS):
        put(c + PRESSED_AT + 8 * i, 0.0)
        put(word(job + SWITCH_MEMORY) + SW_IMPLIED + 8 * i, 0)
    return 0

def _pressed_row(job, y, k, largest: float):  # whether row k of (1) is held; 1 if so
    m = word(job + SWITCH_MEMORY)
    c = word(job + CONSTANTS)
    words = word(job + SWITCH_WORDS)
    given = word(job + SWITCH_NUMBERS)
    who = word(m + SW_WHO + 8 * k)
    force = number(m + SW_FOUND + 8 * k)
    if who < SW_STOPS:
        if force > 1e-12 * most(largest, 1e-300):
            put(c + PRESSED_AT + 8 * who, 1.0)
            _stays(job, word(words + 24 * who + 16), number(given + 16 * who + 8))
            return 1
        return 0
    r = who - SW_STOPS
    slot = word(words + WORDS_RUBS + 24 * r + 16)
    if size(force) < number(m + SW_LEVELS + 8 * r) * (1.0 - 1e-9):
        place = number(y + word(words + WORDS_RUBS + 24 * r))
        if word(m + SW_RUBS + 8 * r) == 2:  # it stuck before
            place = number(m + SW_OLD + PLACE_AT - WAY_AT + 8 * slot)
        _stays(job, slot, place)
        return 1
    for i in range(SW_STOPS):
        here = _is_same(words + 24 * i, words + WORDS_RUBS + 24 * r)
        if word(m + SW_RESTS + 8 * i) == 1 and here == 1 and number(given + 16 * i) * force < 0.0:
            put(c + PRESSED_AT + 8 * i, 1.0)
            _stays(job, slot, number(given + 16 * i + 8))
            return 1
    put(m + SW_EXTRA + 8 * r, force)
    return 0

def _rows_at_rest(job):  # of stops, then of rubs; SW_MOST + 1: too many of them
    m = word(job + SWITCH_MEMORY)
    words = word(job + SWITCH_WORDS)
    given = word(job + SWITCH_NUMBERS)
    n = 0
    for i in range(SW_STOPS):
        if word(m + SW_RESTS + 8 * i) == 1:
            alone = 1
            for r in range(SW_RUBS_COUNT):
                if word(m + SW_RUBS + 8 * r) != 0 and _is_same(words + 24 * i, words + WORDS_RUBS + 24 * r) == 1:
                    alone = 0
            if alone == 1:
                n = _added(m, n, word(words + 24 * i + 8), 0.0 - number(given + 16 * i), i, 0.0, 1e300)
    for r in range(SW_RUBS_COUNT):
        if word(m + SW_RUBS + 8 * r) != 0:
            level = number(m + SW_LEVELS + 8 * r)
            low = 0.0 - level
            high = level
            for i in range(SW_STOPS):
                if word(m + SW_RESTS + 8 * i) == 1 and _is_same(words + 24 * i, words + WORDS_RUBS + 24 * r) == 1:
                    if number(given + 16 * i) > 0.0:
                        low = 0.0 - 1e300
                    else:
                        high = 1e300
            if not high > low:
                return SW_MOST + 1
            n = _added(m, n, word(words + WORDS_RUBS + 24 * r + 8), 1.0, SW_STOPS + r, low, high)
    return n

def _follows(m, n, k):  # with constraints: 1 where row k, which is not held, depends on those that are (SW_NEXT = 1)
    A = m + SW_PART
    count = 0
    soft = 0.0
    for j in range(n):
        if number(m + SW_NEXT + 8 * j) > 0.0:
            put(m + SW_PICK + 8 * count, j)
            soft = most(1e-11 * number(m + SW_S + 8 * (j * n + j)), soft)
            count += 1
    if count == 0:
        return 0
    for i in range(count):
        row = word(m + SW_PICK + 8 * i)
        put(m + SW_RIGHT + 8 * i, number(m + SW_S + 8 * (row * n + k)))
        for j in range(count):
            put(A + 8 * (i * count + j), number(m + SW_S + 8 * (row * n + word(m + SW_PICK + 8 * j))))
        put(A + 8 * (i * count + i), number(A + 8 * (i * count + i)) + soft)
    if _factored(A, m + SW_PIV, count) != 0:
        return 0
    _divided(A, m + SW_PIV, count, m + SW_RIGHT)
    left = number(m + SW_S + 8 * (k * n + k))
    for i in range(count):
        left = left - number(m + SW_RIGHT + 8 * i) * number(m + SW_S + 8 * (word(m + SW_PICK + 8 * i) * n + k))
    if left <= 1e-9 * number(m + SW_S + 8 * (k * n + k)):
        return 1
    return 0

def _implied_stops(job, n):  # with constraints: at rest there because of what is held, though nothing presses
    m = word(job + SWITCH_MEMORY)
    rubs = 0
    for k in range(n):
        if word(m + SW_WHO + 8 * k) >= SW_STOPS:
            rubs += 1
    for k in range(n):
        if rubs == 0 and number(m + SW_NEXT + 8 * k) == 0.0:
            put(m + SW_IMPLIED + 8 * word(m + SW_WHO + 8 * k), _follows(m, n, k))
    return 0

def _still_rubs(job):  # with constraints: those that are not held, and cannot slide because others are
    m = word(job + SWITCH_MEMORY)
    c = word(job + CONSTANTS)
    words = word(job + SWITCH_WORDS)
    n = 0
    for i in range(SW_SLOTS):
        if number(c + FREE_AT + 8 * i) == 0.0:
            put(m + SW_NEXT + 8 * n, 1.0)
            n = _added(m, n, word(words + WORDS_SLOTS + 16 * i + 8), 1.0, i, 0.0, 0.0)
    for r in range(SW_RUBS_COUNT):
        slot = word(words + WORDS_RUBS + 24 * r + 16)
        if number(c + FREE_AT + 8 * slot) == 1.0 and n <= SW_MOST:
            n = _added(m, n, word(words + WORDS_RUBS + 24 * r + 8), 1.0, slot, 0.0, 0.0)
            if n <= SW_MOST:
                put(m + SW_NEXT + 8 * (n - 1), 0.0)
    if n > SW_MOST:
        return CANNOT
    _squared(m, n)
    for k in range(n):
        if number(m + SW_NEXT + 8 * k) == 0.0:
            if _follows(m, n, k) == 1:
                put(c + PLACE_AT + 8 * word(m + SW_WHO + 8 * k), 1.0)
    return 0

def _pressed_all(job, y):  # forces at rest by the present levels, and what they hold; how many, or CANNOT's negative
    m = word(job + SWITCH_MEMORY)
    n = _rows_at_rest(job)
    if n > SW_MOST:
        return 0 - CANNOT
    _squared(m, n)
    _along(m, n, m + SW_ANSWER + NQ8, 1.0)
    largest = 0.0
    for i in range(NV):
        largest = most(size(number(m + SW_ANSWER + NQ8 + 8 * i)), largest)
    for k in range(n):  # in free fall nothing presses
        if word(m + SW_WHO + 8 * k) < SW_STOPS and size(number(m + SW_G + 8 * k)) <= 1e-12 * largest:
            put(m + SW_G + 8 * k, 0.0)
    if _between(m, n) != 0:
        return 0 - CANNOT
    largest = 0.0
    for k in range(n):
        if word(m + SW_WHO + 8 * k) < SW_STOPS:
            largest = most(number(m + SW_FOUND + 8 * k), largest)
    _let_go(job)
    for r in range(SW_RUBS_COUNT):
        put(m + SW_EXTRA + 8 * r, 0.0)
    held = 0
    for k in range(n):
        put(m + SW_NEXT + 8 * k, 0.0)
        if _pressed_row(job, y, k, largest) == 1:
            put(m + SW_NEXT + 8 * k, 1.0)
            held += 1
    if SW_LOOPS == 1 and held > 0 and held < n:
        _implied_stops(job, n)
    return held

def _is_settled(m):  # levels stay; where no rub is at rest, accelerations do
    change = 0.0
    count = 0
    for r in range(SW_RUBS_COUNT):
        if word(m + SW_RUBS + 8 * r) != 0:
            level = number(m + SW_BORNE + 8 * r)
            change = most(size(level - number(m + SW_LEVELS + 8 * r)) / (1e-300 + level), change)
            count += 1
    if count == 0:
        for i in range(NV):
            change = most(size(number(m + SW_ANSWER + NQ8 + 8 * i) - number(m + SW_AGAIN + 8 * i)), change)
    if change <= 1e-10 and count > 0:
        return 1
    if change == 0.0:
        return 1
    return 0

def _found_at_rest(job, y):  # what is held by levels that are those of what is held; how many, or negative
    m = word(job + SWITCH_MEMORY)
    held = 0 - CANNOT
    for tries in range(30):
        if _urged(job, y) != 0:
            return 0 - CANNOT
        if tries == 0:
            if _inertial(job, y) != 0:
                return 0 - CANNOT
        if tries > 0 and _is_settled(m) == 1:
            return held
        _copy(m + SW_LEVELS, m + SW_BORNE, SW_RUBS_COUNT)
        _copy(m + SW_AGAIN, m + SW_ANSWER + NQ8, NV)
        held = _pressed_all(job, y)
        if held < 0 or SW_BEARING == 0:
            return held
    return held

def _placed(job, y):  # at their places and at rest
    c = word(job + CONSTANTS)
    words = word(job + SWITCH_WORDS)
    for i in range(SW_SLOTS):
        if number(c + FREE_AT + 8 * i) == 0.0:
            put(y + word(words + WORDS_SLOTS + 16 * i), number(c + PLACE_AT + 8 * i))
            put(y + NQ8 + word(words + WORDS_SLOTS + 16 * i + 8), 0.0)
    return 0

def _press_all(job, y):  # what is held from now on, and the state with it
    m = word(job + SWITCH_MEMORY)
    c = word(job + CONSTANTS)
    words = word(job + SWITCH_WORDS)
    v = y + NQ8
    _copy(m + SW_START, v, NV)
    for r in range(SW_RUBS_COUNT):
        put(m + SW_EXTRA + 8 * r, 0.0)
        if word(m + SW_RUBS + 8 * r) != 0:
            put(v + word(words + WORDS_RUBS + 24 * r + 8), 0.0)
            put(c + WAY_AT + 8 * r, 0.0)
    held = _found_at_rest(job, y)
    if held < 0:
        return CANNOT
    for r in range(SW_RUBS_COUNT):
        if number(m + SW_EXTRA + 8 * r) > 0.0:
            put(c + WAY_AT + 8 * r, 0.0 - 1.0)
        if number(m + SW_EXTRA + 8 * r) < 0.0:
            put(c + WAY_AT + 8 * r, 1.0)
    if held == 0:
        _copy(v, m + SW_START, NV)
        return 0
    moves = 0
    for i in range(SW_SLOTS):
        if number(c + FREE_AT + 8 * i) == 0.0:
            if not number(v + word(words + WORDS_SLOTS + 16 * i + 8)) == 0.0:
                moves = 1
    if moves == 1:
        n = _of_held(job, v)
        if n > SW_MOST:
            return CANNOT
        _moved_by(m, n, v)
    if SW_LOOPS == 1 and SW_RUBS_COUNT > 0:
        if _still_rubs(job) != 0:
            return CANNOT
    put(job + LOOSE, 0)
    BACK_TO_THEM
    _placed(job, y)
    return 0
"""

#: with constraints: to the places of what is held, and to the constraints
BACK = """if _settled(job, y) != 0:
        return CANNOT
    put(job + OFF_LOOPS, most(number(job + FIRST), number(job + OFF_LOOPS)))"""


def pressing(loops: bool) -> str:
    """The text, with constraints or without."""
    return PRESSING.replace("BACK_TO_THEM", BACK if loops else "put(job + LOOSE, 0)")


__all__ = ["pressing"]
