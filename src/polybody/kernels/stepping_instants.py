"""Machine code for instants at which constants of the field change by themselves, in the language of `native`.

Some of a field's constants may be the memory of what drives it. At given times, where steps end,

    tick(x, constants, row, told) -> memory, [whether it may be believed]

says what they are from then on; `told` is the row of a table that belongs to the instant. The memory after each is
kept, and so is the rate with it, from which the next step starts: the rate of the row before is that of its end.
"""

from __future__ import annotations

TICKING = """
def _bounded(job, end: float):  # where the next step must end at the latest
    put(job + GOAL, end)
    i = word(job + TICK_NEXT)
    if i < word(job + TICK_COUNT):
        put(job + GOAL, least(end, number(word(job + TICK_TIMES) + 8 * i)))
    return 0

def _ticked(job, x, f, k):  # the rate from which step k starts; 0: somebody else must go on
    i = word(job + TICK_NEXT)
    if i >= word(job + TICK_COUNT):
        return f
    if number(x + T) < number(word(job + TICK_TIMES) + 8 * i):
        return f
    memory = word(job + MEMORIES) + 8 * MEMORY * i
    told = word(job + TICK_TOLD) + 8 * INSTANT * i
    call(word(job + TICK_AT), x, word(job + CONSTANTS), _row(job, x), told, memory, job + GOAL, word(job + TICK_WITH))
    if not number(job + GOAL) < number(job + GROWTH) or _finite(memory, MEMORY) == 0:
        return 0
    _copy(word(job + CONSTANTS) + MEMORY_AT, memory, MEMORY)
    put(job + TICK_NEXT, i + 1)
    rate = word(job + BEGINS) + F * k
    if _evaluate(job, x, rate) != 0:
        return 0
    _looked(job, x)
    return rate
"""

NEVER = """
def _bounded(job, end: float):
    put(job + GOAL, end)
    return 0

def _ticked(job, x, f, k):
    return f
"""


def looked(watched: bool) -> str:
    """What is watched is looked at anew, where forces may have jumped."""
    look = "    _look(job, x, word(job + BEFORE))\n" if watched else ""
    return f"def _looked(job, x):\n{look}    return 0\n"


__all__ = ["NEVER", "TICKING", "looked"]
