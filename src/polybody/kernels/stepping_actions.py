"""Machine code for states that jump where a watched function has crossed zero, in the language of `native`.

    actions(x, constants) -> [positions; velocities] after each of them, one behind the other

Each is a function of the state at the crossing; where several have crossed at one time they act one after the other, in
the order in which they are watched. The work among the numbers of a state grows by what they add to its energy. Jumps
that are not finite, or that leave constraints by more than `OFF`, are not made here: whoever gave them is told outside.
Velocities that were held, and whose positions jump by more than `AT`, are free to move from then on.
"""

from __future__ import annotations

OFF = 1e-8  # of constraints, and of velocities relative to the fastest
AT = 1e-9

JUMPING = """
def _jumped_by(job, y, which):
    jumps = word(job + SWITCH_MEMORY) + SW_JUMPS
    call(word(job + ACTIONS_AT), y, word(job + CONSTANTS), jumps, word(job + ACTIONS_WITH))
    jump = jumps + 8 * (NQ + NV) * which
    if _finite(jump, NQ + NV) == 0:
        return CANNOT
    _copy(y, jump, NQ + NV)
    return _closed(job, y)
"""

OPEN = """
def _closed(job, y):
    return 0
"""

CLOSED = """
def _closed(job, y):
    spare = word(job + SPARE)
    _ask_back(job, y)
    if not number(word(job + TOLD)) < OFF:
        return CANNOT
    fastest = 1.0
    for i in range(NV):
        fastest = most(size(number(y + NQ8 + 8 * i)), fastest)
    for i in range(NV):
        if not size(number(spare + NQ8 + 8 * i) - number(y + NQ8 + 8 * i)) < OFF * fastest:
            return CANNOT
    return _settled(job, y)
"""

#: nothing is held while a state is brought back to constraints
CLOSED_WHILE_HELD = CLOSED.replace("_closed", "_is_closed") + """
def _closed(job, y):
    m = word(job + SWITCH_MEMORY)
    c = word(job + CONSTANTS)
    _copy(m + SW_SAVED, c + FREE_AT, SW_SLOTS)
    for i in range(SW_SLOTS):
        put(c + FREE_AT + 8 * i, 1.0)
    status = _is_closed(job, y)
    _copy(c + FREE_AT, m + SW_SAVED, SW_SLOTS)
    return status
"""

#: where something may be held: `stepping_decisions` goes on from there
LEAVING = """
def _acted_on(job, y, which):
    m = word(job + SWITCH_MEMORY)
    c = word(job + CONSTANTS)
    old = m + SW_OLD - WAY_AT
    words = word(job + SWITCH_WORDS)
    given = word(job + SWITCH_NUMBERS)
    if _jumped_by(job, y, which) != 0:
        return CANNOT
    for i in range(SW_SLOTS):
        gone = size(number(y + word(words + WORDS_SLOTS + 16 * i)) - number(c + PLACE_AT + 8 * i))
        if number(c + FREE_AT + 8 * i) == 0.0 and gone > AT:
            put(c + FREE_AT + 8 * i, 1.0)
            put(old + FREE_AT + 8 * i, 1.0)
            put(m + SW_MOVED + 8 * i, 1)
            for k in range(SW_STOPS):
                if word(words + 24 * k + 16) == i:
                    put(old + PRESSED_AT + 8 * k, 0.0)
                    put(old + OPEN_AT + 8 * k, 1.0)
    for k in range(SW_STOPS):  # those that stayed with others
        gone = size(number(y + word(words + 24 * k)) - number(given + 16 * k + 8))
        if number(old + FREE_AT + 8 * word(words + 24 * k + 16)) == 1.0 and gone > AT:
            put(old + OPEN_AT + 8 * k, 1.0)
    return 0
"""

STAYING = """
def _acted_on(job, y, which):
    return 0
"""

#: where nothing can be held, in the place of `stepping_switches.NOTING`
ALONE = """
def _whole_energy(job, y, out):
    call(word(job + ENERGY_AT), y, word(job + CONSTANTS), y + NQ8, out, word(job + ENERGY_WITH))
    return 0

def _all_acted(job, y):
    m = word(job + SWITCH_MEMORY)
    _whole_energy(job, y, m + SW_SUM)
    for i in range(WATCHED):
        if word(word(job + CROSSED_AT) + 8 * i) != 0:
            if word(word(job + SWITCH_WORDS) + WORDS_WATCHED + 16 * i) == 6:
                if _jumped_by(job, y, word(word(job + SWITCH_WORDS) + WORDS_WATCHED + 16 * i + 8)) != 0:
                    return CANNOT
    _whole_energy(job, y, m + SW_SUM + 8)
    put(y + T - 8, number(y + T - 8) + number(m + SW_SUM + 8) - number(m + SW_SUM))
    if _evaluate(job, y, m + SW_ANSWER) != 0:
        return CANNOT
    if _finite(m + SW_ANSWER, NX) == 0:
        return CANNOT
    return 0

def _switched(job, x, f):
    if _known(job) == 0:
        return CROSSED
    m = word(job + SWITCH_MEMORY)
    _copy(m + SW_STATE, x + X, N)
    if _all_acted(job, m + SW_STATE) != 0:
        return CROSSED
    _line(job, x)
    _moved_on(job, x, f, m + SW_STATE, m + SW_ANSWER)
    return _begun_anew(job, x + X)
"""


def acting(actions: bool, holds: bool, loops: bool) -> str:
    """The text, before that of `stepping_decisions` where something may be held."""
    if not actions:
        return STAYING if holds else ""
    closed = OPEN if not loops else CLOSED_WHILE_HELD if holds else CLOSED
    return closed + JUMPING + (LEAVING if holds else ALONE)


__all__ = ["AT", "OFF", "acting"]
