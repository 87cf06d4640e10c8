"""Machine code for instants at which constants of the field change by themselves, in the language of `native`.

Some of a field's constants may be the memory of what drives it. At given times, where steps end,

    tick(x, constants, row, told) -> memory, [whether it may be believed]

says what they are from then on; `told` is the row of a table that belongs to the instant. The memory after each is
kept, its row (`tick_rows`), and the rate with it, from which the next step starts: the rate of the row itself is that
of the step's end. Watched functions that cross zero with the jump are dealt with as those that cross it within a step.

`tick` may be a function in Python (`Parts.asks`), which has the state there and writes the memory. Where it fails it
writes no doubt, and what stands there ends the loop; where it sets `tick_stop`, the loop ends after the instant.
"""

from __future__ import annotations

TICKING = """
def _bounded(job, end: float):  # where the next step must end at the latest
    put(job + GOAL, end)
    i = word(job + TICK_NEXT)
    if i < word(job + TICK_COUNT):
        put(job + GOAL, least(end, number(word(job + TICK_TIMES) + 8 * i)))
    return 0

def _coming(job, begun: float, end: float):  # the first instant after a time, or the end
    i = word(job + COMING)
    put(job + GOAL, end)
    going = 1
    while going == 1:
        going = 0
        if i < word(job + TICK_COUNT):
            if number(word(job + TICK_TIMES) + 8 * i) <= begun:
                i += 1
                going = 1
            else:
                put(job + GOAL, least(end, number(word(job + TICK_TIMES) + 8 * i)))
    put(job + COMING, i)
    return 0

def _ticked(job, x, f, k):  # the rate from which step k starts; 0: the loop ends, and `struck` says why
    put(job + STRUCK, STOPPED)
    if word(job + TICK_STOP) == 1:
        return 0
    put(job + STRUCK, CANNOT)
    i = word(job + TICK_NEXT)
    if i >= word(job + TICK_COUNT):
        return f
    if number(x + T) < number(word(job + TICK_TIMES) + 8 * i):
        return f
    memory = word(job + MEMORIES) + 8 * MEMORY * i
    told = word(job + TICK_TOLD) + 8 * INSTANT * i
    put(job + GOAL, number(job + GROWTH))
    call(word(job + TICK_AT), x, word(job + CONSTANTS), _row(job, x), told, memory, job + GOAL, word(job + TICK_WITH))
    if not number(job + GOAL) < number(job + GROWTH) or _finite(memory, MEMORY) == 0:
        return 0
    _copy(word(job + CONSTANTS) + MEMORY_AT, memory, MEMORY)
    put(word(job + TICK_ROWS) + 8 * i, k)
    put(job + TICK_NEXT, i + 1)
    rate = word(job + BEGINS) + F * k
    if _evaluate(job, x, rate) != 0:
        return 0
    if _jumped(job, x, k) != 0:
        put(job + STRUCK, CROSSED)
        return 0
    if word(job + TICK_STOP) == 1:
        put(job + STRUCK, STOPPED)
        return 0
    return rate
"""

NEVER = """
def _bounded(job, end: float):
    put(job + GOAL, end)
    return 0

def _coming(job, begun: float, end: float):
    put(job + GOAL, end)
    return 0

def _ticked(job, x, f, k):
    return f
"""


JUMPING = """
def _jumped(job, x, k):  # what is watched may cross zero at once, where forces jump: the state is where it is
    before = word(job + BEFORE)
    after = word(job + AFTER)
    crossed = word(job + CROSSED_AT)
    _look(job, x, after)
    found = 0
    for i in range(WATCHED):
        one = _crosses(number(before + 8 * i), number(after + 8 * i), word(word(job + DIRECTIONS) + 8 * i))
        put(crossed + 8 * i, one)
        found = found + one
    _copy(before, after, WATCHED)
    if found > 0:
        _copy(x + X, x, N)
        answer = word(job + ANSWERS) + F * k
        _copy(answer + F, answer, S)
    return found
"""

STEADY = """
def _jumped(job, x, k):
    return 0
"""


__all__ = ["JUMPING", "NEVER", "STEADY", "TICKING"]
