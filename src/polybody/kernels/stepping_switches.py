"""Machine code for what happens where a watched function has crossed zero, in the language of `native`.

What happens is decided by `stepping_decisions`; here is how loops live with it.

A switch adds a row: after the state at the crossing comes the one that the motion goes on from, at the same time. The
end of the step that was cut there is kept in `wholes`, as interpolants need it, and a line of `switch_log` holds time,
row, which functions have crossed, the numbers afterwards, speeds and impulses of hits, rubs that were torn loose, and
slots that have jumped away from where they were held.
Where nothing can be held (no slots) there is nothing to decide: such crossings are only noted.
"""

from __future__ import annotations

import numpy as np

from polybody.late import dataclass

Array = np.ndarray
MOST_ROWS = 64  # velocities that stops and rubs act on at one time
MOST_SWITCHES = 64  # in one call
#: what a watched function tells: nothing that is known here, a stop reached or left, a rub at rest or too weak,
#: something that changes nothing by itself, or a jump of the state (`stepping_actions`)
UNKNOWN, REACHED, LEFT, RESTS, SLIPS, QUIET, ACTS = range(7)


@dataclass(frozen=True)
class Switching:
    """What may be held: counts, and tables of places in a state.

    `words`: (8 q, 8 v, slot) of each stop, (8 q, 8 v, slot) of each rub, (8 q, 8 v) of each slot, (kind, index) of each
    watched function. `numbers`: (side, limit) of each stop, then the level of each rub at rest.
    """

    first: int  # of the constants that tell what is held
    stops: int
    rubs: int
    slots: int
    restitution: float
    words: Array
    numbers: Array
    passing: int  # motions that constraints let pass; all velocities where there are none
    loops: bool = False  # there are constraints
    rolled: bool = False  # inertias are recursions: no matrices
    bearing: bool = False  # levels of rubs depend on loads: the part of that name tells them
    actions: int = 0  # jumps of the state that the part of that name tells

    @property
    def held(self) -> int:
        """Numbers that tell what is held."""
        return self.rubs + 2 * self.slots + 2 * self.stops

    @property
    def facts(self) -> tuple[int, ...]:
        """What the text depends on."""
        held = self.first, self.stops, self.rubs, self.slots, self.passing
        return *held, self.loops, self.bearing, self.rolled, self.actions

    def line(self, watched: int) -> int:
        """Numbers in a line of the log."""
        return 2 + watched + self.held + 2 * self.stops + self.rubs + self.slots

    def layout(self, nq: int, nv: int, state: int, answer: int) -> dict[str, int]:
        """Places in its memory, in bytes; SW_END is its size."""
        P, R, n = self.stops, self.rubs, min(MOST_ROWS, self.stops + self.rubs)
        n = max(n, min(MOST_ROWS, self.slots))
        jumps = self.actions * (nq + nv)
        if not self.slots:
            return _places({"STATE": state, "ANSWER": answer, "JUMPS": jumps, "SUM": 2}) | {"WORDS_WATCHED": 0}
        f, looped, dense = self.passing, int(self.loops), int(not self.rolled)
        sizes = {
            "OLD": self.held, "KEPT": self.held, "STATE": state, "ANSWER": answer, "START": nv,
            "MASS": dense * nv * nv, "MOTIONS": looped * nv * f, "STAR": looped * f * f, "POTENTIAL": 1,  # of `inertia`
            "JOB": 1, "ASKED": state,  # of `solve` and `energy`
            "FACTOR": dense * f * f, "PASSED": f, "PIVOTS": f, "LEVELS": R, "BORNE": R, "TOLD": 2, "EXTRA": R,
            "AGAIN": nv, "SAVED": 2 * self.slots,
            "REACHED": P, "LEAVING": P, "NEAR": P, "RESTS": P, "HALTED": R, "SLIPPED": R, "RUBS": R, "THROWN": R,
            "HIT": 2 * P, "MOVED": self.slots,
            "V": n, "SIGN": n, "WHO": n, "LOW": n, "HIGH": n, "G": n, "FOUND": n, "NEXT": n, "BOUND": n,
            "PICK": n, "RIGHT": n, "PIV": n, "PULL": n, "DIAGONAL": n, "IMPLIED": P, "COLUMNS": n * nv, "S": n * n,
            "PART": n * n, "SUM": 2, "JUMPS": jumps,
        }  # fmt: skip
        way = 8 * self.first
        free = way + 8 * R
        pressed = free + 16 * self.slots
        return _places(sizes) | {
            "SW_FLAGS": 4 * P + 4 * R + 2 * P + self.slots,
            "SW_MOST": n, "SW_STOPS": P, "SW_RUBS_COUNT": R, "SW_SLOTS": self.slots,
            "SW_HELD": self.held, "SW_LOOPS": looped, "SW_PASSING": f, "SW_BEARING": int(self.bearing),
            "WAY_AT": way, "FREE_AT": free, "PLACE_AT": free + 8 * self.slots, "PRESSED_AT": pressed,
            "OPEN_AT": pressed + 8 * P, "WORDS_RUBS": 24 * P, "WORDS_SLOTS": 24 * (P + R),
            "WORDS_WATCHED": 24 * (P + R) + 16 * self.slots, "NUMBERS_LEVELS": 16 * P,
        }  # fmt: skip


def _places(sizes: dict[str, int]) -> dict[str, int]:
    """In bytes, one behind the other."""
    ends = np.cumsum([0, *sizes.values()]).tolist()
    return {f"SW_{name}": 8 * at for name, at in zip([*sizes, "END"], ends, strict=True)}


#: in the place of `_ask` and `_look`
EITHER = """
def _ask(job, x, out):
    put(job + EVALUATIONS, word(job + EVALUATIONS) + 1)
    if word(job + LOOSE) == 1:
        call(word(job + LOOSE_AT), x, word(job + CONSTANTS), _row(job, x), out, out + X, word(job + LOOSE_WITH))
    else:
        call(word(job + FIELD_AT), x, word(job + CONSTANTS), _row(job, x), out, out + X, word(job + FIELD_WITH))
    return 0

def _look(job, x, out):
    if word(job + LOOSE) == 1:
        call(word(job + LOOSE_WATCH_AT), x, word(job + CONSTANTS), _row(job, x), out, word(job + LOOSE_WATCH_WITH))
    else:
        call(word(job + WATCH_AT), x, word(job + CONSTANTS), _row(job, x), out, word(job + WATCH_WITH))
    return 0
"""

#: what is kept of a switch, the state and the answer behind it standing in the rows after those of the crossing
NOTED = """
def _known(job):  # whether all that has crossed zero is known here, and there is room for it
    if word(job + SWITCHED) >= word(job + SWITCH_MOST):
        return 0
    for i in range(WATCHED):
        if word(word(job + CROSSED_AT) + 8 * i) != 0:
            if word(word(job + SWITCH_WORDS) + WORDS_WATCHED + 16 * i) == 0:
                return 0
    return 1

def _line(job, x):  # the line of the log, from behind what every line begins with
    line = word(job + SWITCH_LOG) + SW_LINE * word(job + SWITCHED)
    put(line, number(x + X + T))
    put(line + 8, word(job + DONE) + 1)
    for i in range(WATCHED):
        put(line + 16 + 8 * i, word(word(job + CROSSED_AT) + 8 * i))
    return line + 16 + 8 * WATCHED

def _moved_on(job, x, f, y, answer):  # the motion goes on from y
    done = word(job + SWITCHED)
    _copy(word(job + WHOLES) + X * done, x, N)
    _copy(word(job + WHOLE_RATES) + X * done, f, N)
    _copy(x, x + X, N)
    _copy(f, f + F, S)
    _copy(x + X, y, N)
    _copy(f + F, answer, S)
    _look(job, x + X, word(job + BEFORE))
    put(job + FRESH, 1)
    put(job + HAS_SPEED, 0)
    put(job + SWITCHED, done + 1)
    return 0
"""

#: where nothing can be held: crossings are noted, and the motion goes on from where it is
NOTING = """
def _switched(job, x, f):
    if _known(job) == 0:
        return CROSSED
    _line(job, x)
    _moved_on(job, x, f, x + X, f + F)
    return _begun_anew(job, x + X)
"""

#: signs of the constraints' rows are compared with those at the crossing from there on
ANEW_WITH_LOOPS = """
def _begun_anew(job, x):
    put(job + HAS_TURNS, 0)
    _ask_back(job, x)
    _turned(job)
    return 0
"""
ANEW = """
def _begun_anew(job, x):
    return 0
"""

WITHOUT = """
def _switched(job, x, f):
    return CROSSED

def _spread(job, k):
    return word(job + STEPS)
"""

#: fixed steps begin anew where something was switched, and at every instant after it
SPREAD = """
def _spread(job, k):
    times = word(job + TIMES)
    steps = word(job + STEPS)
    if k > steps:  # the last row
        return steps
    begun = number(word(job + STATES) + X * k + T)
    dt = number(job + STRIDE)
    end = number(job + END)
    if begun >= end:
        put(job + STEPS, k)
        return k
    put(times + 8 * k, begun)
    put(job + COMING, word(job + TICK_NEXT))
    count = 0.0
    last = 0.0 - 1.0
    j = k
    going = 1
    while j < steps and going == 1:
        if last < 0.0:
            _coming(job, begun, end)
            count = 0.0
            last = (number(job + GOAL) - begun) / dt * (1.0 - 1e-12)
        j += 1
        count = count + 1.0
        put(times + 8 * j, begun + dt * count)
        if count >= last:
            begun = number(job + GOAL)
            put(times + 8 * j, begun)
            last = 0.0 - 1.0
            if begun >= end:
                going = 0
    put(job + STEPS, j)
    return j
"""

#: words of the job that only switching needs
JOB_WORDS = (
    "loose", "loose_at", "loose_with", "loose_watch_at", "loose_watch_with", "inertia_at", "inertia_with", "bearing_at",
    "bearing_with", "solve_at", "solve_with", "energy_at", "energy_with", "actions_at", "actions_with",
    "switch_words", "switch_numbers", "switch_memory", "switch_log", "switched", "switch_most", "wholes", "whole_rates",
    "restitution", "stride", "coming",
)  # fmt: skip

__all__ = [
    "ACTS", "ANEW", "ANEW_WITH_LOOPS", "EITHER", "JOB_WORDS", "LEFT", "MOST_SWITCHES", "NOTED", "NOTING", "QUIET",
    "REACHED", "RESTS", "SLIPS", "SPREAD", "UNKNOWN", "WITHOUT", "Switching",
]  # fmt: skip
