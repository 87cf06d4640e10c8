"""Tapes that run other tapes: their nodes once more, with other numbers in the place of their inputs.

A step of Runge and Kutta runs the same field four times. Traced, its nodes are written once; the other three times are
copies of columns of numbers here. What of a tape depends only on inputs that are the same as in an earlier run of it is
not copied.

`schedule` may keep the order of a long tape. Copies of long tapes are in the order of their text (a G1's rollout takes
2.6 µs per step, 5.1 in the order below), those of short ones have each node shortly before its first use (a Panda's
takes 0.48 µs, in the order of the text 0.53 to 0.65): see there.
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np

from polybody.kernels.operations import COMMUTATIVE
from polybody.kernels.tape import CONST, INPUT, Tape, pruned

Nodes = list[int]
LONG = 2500  # operations: copies of shorter tapes have each node shortly before its first use


class Composition:
    """A tape in the making; `inputs[k][i]` is the node of element i of input k."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self._sizes = list(sizes)
        self._nodes: list[tuple[int, float, float]] = []
        self._known: dict[tuple[int, float, float], int] = {}
        self._runs: list[tuple[Tape, list[Nodes], np.ndarray]] = []
        self.inputs = [[self._node(INPUT, k, i) for i in range(size)] for k, size in enumerate(sizes)]

    def constant(self, value: float) -> int:
        return self._node(CONST, value, 0)

    def sum(self, a: int, b: int) -> int:
        return self._node(ca.OP_ADD, a, b)

    def product(self, a: int, b: int) -> int:
        return self._node(ca.OP_MUL, a, b)

    def _node(self, op: int, a: float, b: float) -> int:
        key = (op, b, a) if op in COMMUTATIVE and a > b else (op, a, b)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = len(self._nodes)
            self._nodes.append(key)
        return found

    def run(self, tape: Tape, arguments: list[Nodes]) -> list[Nodes]:
        """The nodes of a tape's outputs, given those of its inputs."""
        op, given = tape.columns()
        new = np.full(len(op) + 1, -1, dtype=np.int64)  # the last of arguments that are not there
        copied = op != INPUT
        earlier = next(((done, numbers) for other, done, numbers in self._runs if other is tape), None)
        if earlier is not None:
            same = [a == b for a, b in zip(earlier[0], arguments, strict=True)]
            copied &= _depending(tape, [k for k, one in enumerate(same) if not one])
            new = np.where(np.append(copied, False), new, earlier[1])
        inputs = np.flatnonzero(op == INPUT).tolist()
        new[inputs] = [arguments[int(k)][int(i)] for _, k, i in (tape.nodes[n] for n in inputs)]
        rows = np.flatnonzero(copied)
        if earlier is not None and len(rows) < LONG:
            order = np.array(_inwards(tape), dtype=np.int64)
            rows = order[copied[order]]
        new[rows] = len(self._nodes) + np.arange(len(rows))
        a, b = new[given[rows, 0]].tolist(), np.maximum(new[given[rows, 1]], 0).tolist()
        added = list(zip(op[rows].tolist(), a, b, strict=True))
        for at in np.flatnonzero(op[rows] == CONST).tolist():
            added[at] = tape.nodes[rows[at]]
        self._nodes += added
        self._runs.append((tape, arguments, new))
        return [new[np.array(own, dtype=np.int64)].tolist() for own in tape.outputs]

    def tape(self, outputs: list[Nodes]) -> Tape:
        """All that these outputs need."""
        return pruned(Tape(list(self._nodes), outputs, self._sizes))


def _inwards(tape: Tape) -> list[int]:
    """The nodes that outputs need, arguments before results, each shortly before its first use."""
    given = tape.columns()[1][:, :2].tolist()
    found: dict[int, None] = {}
    for root in (n for nodes in tape.outputs for n in nodes):
        stack = [root]
        while stack:
            a, b = given[stack[-1]]
            if a >= 0 and a not in found:
                stack.append(a)
            elif b >= 0 and b not in found:
                stack.append(b)
            else:
                found[stack.pop()] = None
    return list(found)


def _depending(tape: Tape, some: Sequence[int]) -> np.ndarray:
    """Which nodes depend on the inputs of these numbers."""
    chosen, found = set(some), []
    tell = found.append
    for (op, k, _), (a, b, _) in zip(tape.nodes, tape.columns()[1].tolist(), strict=True):
        if op < 0:
            tell(op == INPUT and k in chosen)
        else:
            tell(found[a] or (b >= 0 and found[b]))
    return np.array(found, dtype=bool)


__all__ = ["Composition"]
