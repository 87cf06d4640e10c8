"""Machine code that decides what happens where a watched function has crossed zero, in the language of `native`.

Some of the velocities v of a state may be held at zero: by a one-sided bound of their positions, `stops`, which push
only, or by `rubs`, forces up to a level in either direction. M is the inertia matrix, a the acceleration with nothing
held, N the rows of v concerned (signed so that stops push along them), S = N M⁻¹Nᵀ. Where stops are run into, impulses
λ, and where velocities are at rest, forces λ minimise

    ½ λᵀSλ + gᵀλ,   low ≤ λ ≤ high;   g = (1 + e) N v at an impact, N a at rest                                  (1)

(`simulation.stops`, `simulation.friction`: 0 and ∞ are the bounds of stops, ± their levels those of rubs). Velocities
that pushing stops or rubs within their levels hold do not accelerate; the others go on, and rub against the way they
move. `stepping_bounds` solves (1).

What is held stands among the constants of the field, [way; free; place; pressed; open], and is changed there. While
nothing is held the fields without holding, `loose` and `loose_watch`, are called instead. What cannot be decided here
(users' functions, redundant rows, slow rebounds that return at once) is left as it was, and the loop ends: CROSSED.
"""

from __future__ import annotations

SWITCHING = """
def _acted(job, y):  # what the crossings say by themselves; the sign of what held a rub that is too weak
    m = word(job + SWITCH_MEMORY)
    c = word(job + CONSTANTS)
    words = word(job + SWITCH_WORDS)
    slips = 0
    others = 0
    for i in range(WATCHED):
        if word(word(job + CROSSED_AT) + 8 * i) != 0:
            kind = word(words + WORDS_WATCHED + 16 * i)
            which = word(words + WORDS_WATCHED + 16 * i + 8)
            if kind == 1:
                put(m + SW_REACHED + 8 * which, 1)
            if kind == 2:
                put(m + SW_LEAVING + 8 * which, 1)
                others += 1
            if kind == 3:
                put(m + SW_HALTED + 8 * which, 1)
                put(y + NQ8 + word(words + WORDS_RUBS + 24 * which + 8), 0.0)
                others += 1
            if kind == 4:
                put(m + SW_SLIPPED + 8 * which, 1)
                slips += 1
    if slips == 0:
        return 0
    if slips > 1 or others > 0:
        return CANNOT
    put(job + LOOSE, 1)
    if _evaluate(job, y, m + SW_ANSWER) != 0:
        return CANNOT
    if _inertial(job, y) != 0:
        return CANNOT
    n = _of_held(job, m + SW_ANSWER + NQ8)
    if n > SW_MOST:
        return CANNOT
    for r in range(SW_RUBS_COUNT):
        if word(m + SW_SLIPPED + 8 * r) == 1:
            put(c + WAY_AT + 8 * r, 0.0)
            for k in range(n):
                if word(m + SW_WHO + 8 * k) == word(words + WORDS_RUBS + 24 * r + 16):
                    if number(m + SW_FOUND + 8 * k) > 0.0:
                        put(c + WAY_AT + 8 * r, 0.0 - 1.0)
                    if number(m + SW_FOUND + 8 * k) < 0.0:
                        put(c + WAY_AT + 8 * r, 1.0)
            if number(c + WAY_AT + 8 * r) == 0.0:
                return CANNOT
    return 0

def _hit_all(job, y):  # impacts, again while one throws others onto their stops
    m = word(job + SWITCH_MEMORY)
    words = word(job + SWITCH_WORDS)
    given = word(job + SWITCH_NUMBERS)
    v = y + NQ8
    n = 0
    fastest = 0.0
    for i in range(NV):
        fastest = most(size(number(v + 8 * i)), fastest)
    tiny = 1e-12 * (1.0 + fastest)
    for i in range(SW_STOPS):
        if word(m + SW_NEAR + 8 * i) == 1:
            place = y + word(words + 24 * i)
            if size(number(place) - number(given + 16 * i + 8)) > 1e-11:  # its potential energy would count
                return CANNOT
            put(place, number(given + 16 * i + 8))
            n = _added(m, n, word(words + 24 * i + 8), 0.0 - number(given + 16 * i), i, 0.0, 1e300)
    if n > SW_MOST:
        return CANNOT
    if _inertial(job, y) != 0:
        return CANNOT
    _squared(m, n)
    _energy(m, v, m + SW_SUM)
    for k in range(n):
        put(m + SW_HIT + 16 * word(m + SW_WHO + 8 * k), number(v + word(m + SW_V + 8 * k)))
    going = 1
    again = 0
    while going == 1:
        worst = 0.0
        for k in range(n):
            speed = number(m + SW_SIGN + 8 * k) * number(v + word(m + SW_V + 8 * k))
            worst = most(0.0 - speed, worst)
        if worst > tiny and again < 50:
            e = number(job + RESTITUTION)
            if e * worst < 1e-3 or again == 49:
                e = 0.0
            _along(m, n, v, 1.0 + e)
            if _between(m, n) != 0:
                return CANNOT
            _moved_by(m, n, v)
            for k in range(n):
                at = m + SW_HIT + 16 * word(m + SW_WHO + 8 * k) + 8
                put(at, number(at) + number(m + SW_FOUND + 8 * k))
            again += 1
        else:
            going = 0
    for k in range(n):
        at = v + word(m + SW_V + 8 * k)
        if size(number(at)) < tiny:
            put(at, 0.0)
    _energy(m, v, m + SW_SUM + 8)
    put(y + T - 8, number(y + T - 8) + number(m + SW_SUM + 8) - number(m + SW_SUM))
    return 0

def _is_same(stop, rub):  # slot
    if word(stop + 16) == word(rub + 16):
        return 1
    return 0

def _stays(job, slot, place: float):
    put(word(job + CONSTANTS) + FREE_AT + 8 * slot, 0.0)
    put(word(job + CONSTANTS) + PLACE_AT + 8 * slot, place)
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
    if size(force) < number(given + NUMBERS_LEVELS + 8 * r) * (1.0 - 1e-9):
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
    if force > 0.0:
        put(c + WAY_AT + 8 * r, 0.0 - 1.0)
    if force < 0.0:
        put(c + WAY_AT + 8 * r, 1.0)
    return 0

def _press_all(job, y):  # forces at rest, and what they hold
    m = word(job + SWITCH_MEMORY)
    c = word(job + CONSTANTS)
    words = word(job + SWITCH_WORDS)
    given = word(job + SWITCH_NUMBERS)
    v = y + NQ8
    _copy(m + SW_START, v, NV)
    for r in range(SW_RUBS_COUNT):
        if word(m + SW_RUBS + 8 * r) != 0:
            put(v + word(words + WORDS_RUBS + 24 * r + 8), 0.0)
            put(c + WAY_AT + 8 * r, 0.0)
    if _evaluate(job, y, m + SW_ANSWER) != 0:
        return CANNOT
    if _inertial(job, y) != 0:
        return CANNOT
    n = 0
    for i in range(SW_STOPS):
        if word(m + SW_RESTS + 8 * i) == 1:
            if size(number(y + word(words + 24 * i)) - number(given + 16 * i + 8)) > 1e-11:
                return CANNOT
            alone = 1
            for r in range(SW_RUBS_COUNT):
                if word(m + SW_RUBS + 8 * r) != 0 and _is_same(words + 24 * i, words + WORDS_RUBS + 24 * r) == 1:
                    alone = 0
            if alone == 1:
                n = _added(m, n, word(words + 24 * i + 8), 0.0 - number(given + 16 * i), i, 0.0, 1e300)
    for r in range(SW_RUBS_COUNT):
        if word(m + SW_RUBS + 8 * r) != 0:
            level = number(given + NUMBERS_LEVELS + 8 * r)
            low = 0.0 - level
            high = level
            for i in range(SW_STOPS):
                if word(m + SW_RESTS + 8 * i) == 1 and _is_same(words + 24 * i, words + WORDS_RUBS + 24 * r) == 1:
                    if number(given + 16 * i) > 0.0:
                        low = 0.0 - 1e300
                    else:
                        high = 1e300
            if not high > low:
                return CANNOT
            n = _added(m, n, word(words + WORDS_RUBS + 24 * r + 8), 1.0, SW_STOPS + r, low, high)
    if n > SW_MOST:
        return CANNOT
    _squared(m, n)
    _along(m, n, m + SW_ANSWER + NQ8, 1.0)
    largest = 0.0
    for i in range(NV):
        largest = most(size(number(m + SW_ANSWER + NQ8 + 8 * i)), largest)
    for k in range(n):  # in free fall nothing presses
        if word(m + SW_WHO + 8 * k) < SW_STOPS and size(number(m + SW_G + 8 * k)) <= 1e-12 * largest:
            put(m + SW_G + 8 * k, 0.0)
    if _between(m, n) != 0:
        return CANNOT
    largest = 0.0
    for k in range(n):
        if word(m + SW_WHO + 8 * k) < SW_STOPS:
            largest = most(number(m + SW_FOUND + 8 * k), largest)
    held = 0
    for k in range(n):
        held = held + _pressed_row(job, y, k, largest)
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
    for i in range(SW_SLOTS):
        if number(c + FREE_AT + 8 * i) == 0.0:
            put(y + word(words + WORDS_SLOTS + 16 * i), number(c + PLACE_AT + 8 * i))
            put(v + word(words + WORDS_SLOTS + 16 * i + 8), 0.0)
    _energy(m, m + SW_START, m + SW_SUM)
    _energy(m, v, m + SW_SUM + 8)
    put(y + T - 8, number(y + T - 8) + number(m + SW_SUM + 8) - number(m + SW_SUM))
    put(job + LOOSE, 0)
    return 0

def _decided(job, y):  # everything that happens at this time
    m = word(job + SWITCH_MEMORY)
    c = word(job + CONSTANTS)
    words = word(job + SWITCH_WORDS)
    given = word(job + SWITCH_NUMBERS)
    v = y + NQ8
    if _acted(job, y) != 0:
        return CANNOT
    hitting = 0
    for i in range(SW_STOPS):
        excess = number(given + 16 * i) * (number(y + word(words + 24 * i)) - number(given + 16 * i + 8))
        pressed = number(m + SW_OLD + PRESSED_AT - WAY_AT + 8 * i)
        if word(m + SW_REACHED + 8 * i) == 1 or excess >= 0.0 - 1e-9 or pressed > 0.0:
            put(m + SW_NEAR + 8 * i, 1)
            if number(given + 16 * i) * number(v + word(words + 24 * i + 8)) > 0.0:
                hitting = 1
    if hitting == 1:
        if _hit_all(job, y) != 0:
            return CANNOT
    fastest = 0.0
    for i in range(NV):
        fastest = most(size(number(v + 8 * i)), fastest)
    count = 0
    for i in range(SW_STOPS):
        if word(m + SW_NEAR + 8 * i) == 1 and word(m + SW_LEAVING + 8 * i) == 0:
            speed = number(given + 16 * i) * number(v + word(words + 24 * i + 8))
            if size(speed) <= 1e-9 * (1.0 + fastest):
                put(m + SW_RESTS + 8 * i, 1)
                count += 1
                for r in range(SW_RUBS_COUNT):  # which way the joint slips decides about its stop
                    if word(m + SW_SLIPPED + 8 * r) == 1 and _is_same(words + 24 * i, words + WORDS_RUBS + 24 * r) == 1:
                        return CANNOT
            elif speed < 0.0 and speed > 0.0 - 1e-3:  # it may be back at once
                return CANNOT
    for r in range(SW_RUBS_COUNT):
        slot = word(words + WORDS_RUBS + 24 * r + 16)
        stuck = 0
        if number(m + SW_OLD + FREE_AT - WAY_AT + 8 * slot) == 0.0:
            stuck = 1
        for i in range(SW_STOPS):
            if word(words + 24 * i + 16) == slot and number(m + SW_OLD + PRESSED_AT - WAY_AT + 8 * i) > 0.0:
                stuck = 0
        if word(m + SW_SLIPPED + 8 * r) == 0:
            speed = number(v + word(words + WORDS_RUBS + 24 * r + 8))
            if word(m + SW_HALTED + 8 * r) == 1 or size(speed) <= 1e-8:
                put(m + SW_RUBS + 8 * r, 1 + stuck)
                count += 1
            else:
                put(m + SW_THROWN + 8 * r, stuck)
                put(c + WAY_AT + 8 * r, 1.0)
                if speed < 0.0:
                    put(c + WAY_AT + 8 * r, 0.0 - 1.0)
    for i in range(SW_SLOTS):
        put(c + FREE_AT + 8 * i, 1.0)
        put(c + PLACE_AT + 8 * i, 0.0)
    for i in range(SW_STOPS):
        put(c + PRESSED_AT + 8 * i, 0.0)
    put(job + LOOSE, 1)
    if count > 0:
        if _press_all(job, y) != 0:
            return CANNOT
    for i in range(SW_STOPS):  # those that linger are said to run into their stops a little beyond them
        excess = number(given + 16 * i) * (number(y + word(words + 24 * i)) - number(given + 16 * i + 8))
        speed = number(given + 16 * i) * number(v + word(words + 24 * i + 8))
        open = 1.0
        if excess >= 0.0 - 1e-9 and excess <= 1e-9 and speed > 0.0 - 1e-3 and speed <= 1e-8:
            open = 1.0 - 2e-9
            if 2.0 * excess < 1e-10:
                open = 1.0 - 1e-10
            if 2.0 * excess < 1e-11:
                open = 1.0 - 1e-11
        if number(c + FREE_AT + 8 * word(words + 24 * i + 16)) == 0.0:
            open = 0.0
        put(c + OPEN_AT + 8 * i, open)
    return 0

def _switched(job, x, f):  # x is the end of the step that was cut; the state at the crossing is behind it
    m = word(job + SWITCH_MEMORY)
    c = word(job + CONSTANTS)
    if _known(job) == 0:
        return CROSSED
    y = m + SW_STATE
    loose = word(job + LOOSE)
    _copy(y, x + X, N)
    _copy(m + SW_OLD, c + WAY_AT, SW_HELD)
    for i in range(SW_FLAGS):
        put(m + SW_REACHED + 8 * i, 0)
    status = _decided(job, y)
    if status == 0:
        status = _evaluate(job, y, m + SW_ANSWER)
    if status == 0 and _finite(m + SW_ANSWER, NX) == 0:
        status = CANNOT
    if status != 0:
        _copy(c + WAY_AT, m + SW_OLD, SW_HELD)
        put(job + LOOSE, loose)
        return CROSSED
    line = _line(job, x)
    _copy(line, c + WAY_AT, SW_HELD)
    _copy(line + 8 * SW_HELD, m + SW_HIT, 2 * SW_STOPS)
    for r in range(SW_RUBS_COUNT):
        put(line + 8 * (SW_HELD + 2 * SW_STOPS + r), word(m + SW_THROWN + 8 * r))
    return _moved_on(job, x, f, y, m + SW_ANSWER)
"""

__all__ = ["SWITCHING"]
