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
(users' functions without text, redundant rows) is left as it was, and the loop ends: CROSSED.
"""

from __future__ import annotations

SWITCHING = """
def _acted(job, y):  # what the crossings say by themselves
    m = word(job + SWITCH_MEMORY)
    words = word(job + SWITCH_WORDS)
    slips = 0
    for i in range(WATCHED):
        if word(word(job + CROSSED_AT) + 8 * i) != 0:
            kind = word(words + WORDS_WATCHED + 16 * i)
            which = word(words + WORDS_WATCHED + 16 * i + 8)
            if kind == 1:
                put(m + SW_REACHED + 8 * which, 1)
            if kind == 2:
                put(m + SW_LEAVING + 8 * which, 1)
                put(word(job + CONSTANTS) + FREE_AT + 8 * word(words + 24 * which + 16), 1.0)
            if kind == 3:
                put(m + SW_HALTED + 8 * which, 1)
                put(y + NQ8 + word(words + WORDS_RUBS + 24 * which + 8), 0.0)
            if kind == 4:
                put(m + SW_SLIPPED + 8 * which, 1)
                slips += 1
            if kind == 6:
                if _acted_on(job, y, which) != 0:
                    return CANNOT
    if slips > 0:
        for r in range(SW_RUBS_COUNT):
            if word(m + SW_SLIPPED + 8 * r) == 1 and _slips(job, y, r) != 0:
                return CANNOT
    return 0

def _slips(job, y, r):  # a rub that was too weak: it goes against what held it
    m = word(job + SWITCH_MEMORY)
    c = word(job + CONSTANTS)
    slot = word(word(job + SWITCH_WORDS) + WORDS_RUBS + 24 * r + 16)
    for i in range(SW_RUBS_COUNT):
        put(m + SW_EXTRA + 8 * i, 0.0)
    if _urged(job, y) != 0:
        return CANNOT
    if _inertial(job, y) != 0:
        return CANNOT
    n = _of_held(job, m + SW_ANSWER + NQ8)
    if n > SW_MOST:
        return CANNOT
    put(c + WAY_AT + 8 * r, 0.0)
    for k in range(n):
        if word(m + SW_WHO + 8 * k) == slot:
            if number(m + SW_FOUND + 8 * k) > 0.0:
                put(c + WAY_AT + 8 * r, 0.0 - 1.0)
            if number(m + SW_FOUND + 8 * k) < 0.0:
                put(c + WAY_AT + 8 * r, 1.0)
    put(c + FREE_AT + 8 * slot, 1.0)
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
            n = _added(m, n, word(words + 24 * i + 8), 0.0 - number(given + 16 * i), i, 0.0, 1e300)
    if n > SW_MOST:
        return CANNOT
    if _put_at_stops(job, y) != 0:
        return CANNOT
    if _inertial(job, y) != 0:
        return CANNOT
    _squared(m, n)
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
    return 0

def _near_stops(job, y):  # 1 where one of those that are at their stops runs into it
    m = word(job + SWITCH_MEMORY)
    words = word(job + SWITCH_WORDS)
    given = word(job + SWITCH_NUMBERS)
    hitting = 0
    for i in range(SW_STOPS):
        excess = number(given + 16 * i) * (number(y + word(words + 24 * i)) - number(given + 16 * i + 8))
        pressed = number(m + SW_OLD + PRESSED_AT - WAY_AT + 8 * i)
        if number(m + SW_OLD + FREE_AT - WAY_AT + 8 * word(words + 24 * i + 16)) == 1.0:
            pressed = 1.0 - most(number(m + SW_OLD + OPEN_AT - WAY_AT + 8 * i), 0.0)  # 1: it stayed with others
            if pressed < 1.0:
                pressed = 0.0
        if word(m + SW_REACHED + 8 * i) == 1 or excess >= 0.0 - 1e-9 or pressed > 0.0:
            put(m + SW_NEAR + 8 * i, 1)
            if number(given + 16 * i) * number(y + NQ8 + word(words + 24 * i + 8)) > 0.0:
                hitting = 1
    return hitting

def _resting_stops(job, y):  # how many of those near their stops are at rest there, or negative
    m = word(job + SWITCH_MEMORY)
    c = word(job + CONSTANTS)
    words = word(job + SWITCH_WORDS)
    given = word(job + SWITCH_NUMBERS)
    v = y + NQ8
    fastest = 0.0
    for i in range(NV):
        fastest = most(size(number(v + 8 * i)), fastest)
    count = 0
    slow = 0
    for i in range(SW_STOPS):
        if word(m + SW_NEAR + 8 * i) == 1 and word(m + SW_LEAVING + 8 * i) == 0:
            speed = number(given + 16 * i) * number(v + word(words + 24 * i + 8))
            if size(speed) <= 1e-9 * (1.0 + fastest):
                put(m + SW_RESTS + 8 * i, 1)
                count += 1
            elif speed < 0.0 and speed > 0.0 - 1e-3:  # it may be back at once
                slow += 1
    if slow > 0:
        for r in range(SW_RUBS_COUNT):
            put(m + SW_EXTRA + 8 * r, 0.0)
        if _urged(job, y) != 0:
            return 0 - CANNOT
        for i in range(SW_STOPS):
            if word(m + SW_NEAR + 8 * i) == 1 and word(m + SW_LEAVING + 8 * i) == 0 and word(m + SW_RESTS + 8 * i) == 0:
                at = word(words + 24 * i + 8)
                speed = number(given + 16 * i) * number(v + at)
                pull = 2e-8 * number(given + 16 * i) * number(m + SW_ANSWER + NQ8 + at)
                if speed < 0.0 and speed > 0.0 - 1e-3 and speed * speed < pull:
                    put(m + SW_RESTS + 8 * i, 1)
                    count += 1
    for i in range(SW_STOPS):  # at the moment of slipping, the way a joint slips decides about its stop
        if word(m + SW_RESTS + 8 * i) == 1:
            for r in range(SW_RUBS_COUNT):
                if word(m + SW_SLIPPED + 8 * r) != 0 and _is_same(words + 24 * i, words + WORDS_RUBS + 24 * r) == 1:
                    if number(given + 16 * i) * number(c + WAY_AT + 8 * r) < 0.0:
                        put(m + SW_RESTS + 8 * i, 0)
                        count -= 1
                    else:
                        put(m + SW_SLIPPED + 8 * r, 0)
    return count

def _resting_rubs(job, y):  # how many are at rest; the others rub against the way they move
    m = word(job + SWITCH_MEMORY)
    c = word(job + CONSTANTS)
    words = word(job + SWITCH_WORDS)
    still = 1e-8
    if SW_LOOPS == 1:
        for r in range(SW_RUBS_COUNT):
            if word(m + SW_HALTED + 8 * r) == 1:
                still = 1e-6
    count = 0
    for r in range(SW_RUBS_COUNT):
        slot = word(words + WORDS_RUBS + 24 * r + 16)
        stuck = 0
        if number(c + FREE_AT + 8 * slot) == 0.0:
            stuck = 1
        for i in range(SW_STOPS):
            if word(words + 24 * i + 16) == slot and number(m + SW_OLD + PRESSED_AT - WAY_AT + 8 * i) > 0.0:
                stuck = 0
        if word(m + SW_SLIPPED + 8 * r) == 0:
            speed = number(y + NQ8 + word(words + WORDS_RUBS + 24 * r + 8))
            if word(m + SW_HALTED + 8 * r) == 1 or size(speed) <= still:
                put(m + SW_RUBS + 8 * r, 1 + stuck)
                count += 1
            else:
                put(m + SW_THROWN + 8 * r, stuck)
                put(c + WAY_AT + 8 * r, 1.0)
                if speed < 0.0:
                    put(c + WAY_AT + 8 * r, 0.0 - 1.0)
    return count

def _lingering(job, y):  # joints that linger are said to run into their stops a little beyond them
    c = word(job + CONSTANTS)
    words = word(job + SWITCH_WORDS)
    given = word(job + SWITCH_NUMBERS)
    for i in range(SW_STOPS):
        excess = number(given + 16 * i) * (number(y + word(words + 24 * i)) - number(given + 16 * i + 8))
        speed = number(given + 16 * i) * number(y + NQ8 + word(words + 24 * i + 8))
        open = 1.0
        if excess >= 0.0 - 1e-9 and excess <= 1e-9 and speed > 0.0 - 1e-3 and speed <= 1e-8:
            open = 1.0 - 2e-9
            if 2.0 * excess < 1e-10:
                open = 1.0 - 1e-10
            if 2.0 * excess < 1e-11:
                open = 1.0 - 1e-11
        if number(c + FREE_AT + 8 * word(words + 24 * i + 16)) == 0.0:
            open = 0.0
        if word(word(job + SWITCH_MEMORY) + SW_IMPLIED + 8 * i) == 1:
            open = 0.0
        put(c + OPEN_AT + 8 * i, open)
    return 0

def _decided(job, y):  # everything that happens at this time
    m = word(job + SWITCH_MEMORY)
    if _inertial(job, y) != 0:
        return CANNOT
    _energy(m, y + NQ8, m + SW_SUM)
    if _acted(job, y) != 0:
        return CANNOT
    if _near_stops(job, y) == 1 and _hit_all(job, y) != 0:
        return CANNOT
    count = _resting_stops(job, y)
    if count < 0:
        return CANNOT
    count = count + _resting_rubs(job, y)
    _let_go(job)
    put(job + LOOSE, 1)
    if count > 0 and _press_all(job, y) != 0:
        return CANNOT
    if _inertial(job, y) != 0:
        return CANNOT
    _energy(m, y + NQ8, m + SW_SUM + 8)
    put(y + T - 8, number(y + T - 8) + number(m + SW_SUM + 8) - number(m + SW_SUM))
    return _lingering(job, y)

def _switched(job, x, f):  # x is the end of the step that was cut; the state at the crossing is behind it
    m = word(job + SWITCH_MEMORY)
    c = word(job + CONSTANTS)
    if _known(job) == 0:
        return CROSSED
    y = m + SW_STATE
    loose = word(job + LOOSE)
    _copy(y, x + X, N)
    _copy(m + SW_OLD, c + WAY_AT, SW_HELD)
    _copy(m + SW_KEPT, c + WAY_AT, SW_HELD)
    for i in range(SW_FLAGS):
        put(m + SW_REACHED + 8 * i, 0)
    status = _decided(job, y)
    if status == 0:
        status = _evaluate(job, y, m + SW_ANSWER)
    if status == 0 and _finite(m + SW_ANSWER, NX) == 0:
        status = CANNOT
    if status != 0:
        _copy(c + WAY_AT, m + SW_KEPT, SW_HELD)
        put(job + LOOSE, loose)
        return CROSSED
    line = _line(job, x)
    _copy(line, c + WAY_AT, SW_HELD)
    _copy(line + 8 * SW_HELD, m + SW_HIT, 2 * SW_STOPS)
    for r in range(SW_RUBS_COUNT):
        put(line + 8 * (SW_HELD + 2 * SW_STOPS + r), word(m + SW_THROWN + 8 * r))
    for i in range(SW_SLOTS):
        put(line + 8 * (SW_HELD + 2 * SW_STOPS + SW_RUBS_COUNT + i), word(m + SW_MOVED + 8 * i))
    _moved_on(job, x, f, y, m + SW_ANSWER)
    return _begun_anew(job, x + X)
"""

#: exactly to their stops those that are near: a little beyond them, their return would not be seen
PUT = """
def _put_at_stops(job, y):
    words = word(job + SWITCH_WORDS)
    for i in range(SW_STOPS):
        if word(word(job + SWITCH_MEMORY) + SW_NEAR + 8 * i) == 1:
            put(y + word(words + 24 * i), number(word(job + SWITCH_NUMBERS) + 16 * i + 8))
    return 0
"""

PUT_WITH_CONSTRAINTS = """
def _put_at_stops(job, y):
    m = word(job + SWITCH_MEMORY)
    c = word(job + CONSTANTS)
    _copy(m + SW_START, y + NQ8, NV)
    _copy(m + SW_SAVED, c + FREE_AT, 2 * SW_SLOTS)
    for i in range(SW_SLOTS):
        put(c + FREE_AT + 8 * i, 1.0)
    for i in range(SW_STOPS):
        if word(m + SW_NEAR + 8 * i) == 1:
            slot = word(word(job + SWITCH_WORDS) + 24 * i + 16)
            _stays(job, slot, number(word(job + SWITCH_NUMBERS) + 16 * i + 8))
    status = _settled(job, y)
    _copy(y + NQ8, m + SW_START, NV)
    for i in range(SW_SLOTS):
        put(c + FREE_AT + 8 * i, 1.0)
    if status == 0:
        status = _settled(job, y)
    _copy(c + FREE_AT, m + SW_SAVED, 2 * SW_SLOTS)
    return status
"""


def switching(loops: bool) -> str:
    """The text, with constraints or without."""
    return (PUT_WITH_CONSTRAINTS if loops else PUT) + SWITCHING


__all__ = ["switching"]
