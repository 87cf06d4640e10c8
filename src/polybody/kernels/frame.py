"""Straight-line code cut into several functions: what must outlive a cut, and where it stays.

LLVM's time grows faster than the length of what it gets at once, and while it compiles, neither a fork nor the end of
the process nor another thread's kernel can go on. A long tape therefore becomes a row of functions, each a module of
its own. What one of them computes and a later one needs is kept in a *frame*, memory that all of them share; a slot of
it is used again when the last function that reads it is done.

Short functions are faster, too: LLVM gives every value that leaves a register a place of its own in the function's
stack frame, which for a humanoid is twice the first cache, where short functions use the same memory one after the
other. Measured on Zen 3, ns per state of a G1's inverse and forward dynamics: 241 and 598 in one function, 222 and 514
in pieces of 700. The shorter the pieces, the less is spilled within one; with the order of the text (`schedule`) the
derivatives of a UR5 take 95.5 in one function, 93 in pieces of 300, 88 in pieces of 200, those of a Panda without
fingers 181 in pieces of 600, 164 in pieces of 200; a G1's dynamics are the same in pieces of 200 to 600. A tape that
fits the first cache as it is loses by cuts (a Panda's forward dynamics 54 and 66).
"""

from __future__ import annotations

from collections.abc import Sequence

from polybody.kernels.tape import CONST, Tape, Wave, results_of

WHOLE = 1400  # operations, results counted several times: what stays one function
PIECE, LONG_PIECE = 220, 600  # of what is longer: as much in one function; likewise from `LONG` on
LONG = 10_000
OF_RESULT, OF_CALL = 6, 10  # operations that writing a result or calling a function counts as


class Frame:
    """The cuts of a tape's steps, and the slots of values that outlive one."""

    def __init__(self, tape: Tape, steps: Sequence[int | Wave]) -> None:
        self.parts = _parts(tape, steps)
        made: dict[int, int] = {}
        last: dict[int, int] = {}
        for part, some in enumerate(self.parts):
            for step in some:
                for node in _arguments(tape, step):
                    last[node] = part
                    made.setdefault(node, part)  # inputs are read where they are needed first
                for node in results_of(step):
                    made.setdefault(node, part)
        mapped = {n for some in self.parts for step in some if isinstance(step, dict) for n in results_of(step)}
        kept = (n for n in last if last[n] > made[n] and n not in mapped and tape.nodes[n][0] != CONST)
        self.outlives = {n: last[n] for n in kept}
        self.slots: dict[int, int] = {}
        self.size = 0
        self._free: list[int] = []
        self._ends: dict[int, list[int]] = {}

    def slot(self, node: int) -> int:
        """A slot for a value, from now on until the last function that needs it."""
        where = self.lend()
        self.slots[node] = where
        self._ends.setdefault(self.outlives[node], []).append(where)
        return where

    def lend(self) -> int:
        """A slot until it is given back."""
        return self._free.pop() if self._free else self.row(1)

    def give_back(self, slot: int) -> None:
        self._free.append(slot)

    def row(self, count: int) -> int:
        """So many slots behind each other, for good."""
        self.size += count
        return self.size - count

    def end(self, part: int) -> None:
        """That function is written: what it was the last to need may go."""
        self._free += self._ends.pop(part, [])


def _arguments(tape: Tape, step: int | Wave) -> list[int]:
    if isinstance(step, dict):
        return [n for calls in step.values() for arguments in calls for n in arguments]
    return list(tape.arguments(step))


def _parts(tape: Tape, steps: Sequence[int | Wave]) -> list[list[int | Wave]]:
    results = {n for nodes in tape.outputs for n in nodes}
    costs = [
        OF_CALL * len(results_of(step)) if isinstance(step, dict) else 1 + OF_RESULT * (step in results)
        for step in steps
    ]
    piece = PIECE if sum(costs) < LONG else LONG_PIECE
    count = -(-sum(costs) // piece) if sum(costs) > WHOLE else 1
    size, done = -(-sum(costs) // count) or 1, 0
    parts: list[list[int | Wave]] = [[] for _ in range(count)]
    for step, cost in zip(steps, costs, strict=True):
        parts[done // size].append(step)
        done += cost
    return [part for part in parts if part] or [[]]


__all__ = ["Frame"]
