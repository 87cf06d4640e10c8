"""Numbers of an expression graph, operation by operation in Python: for graphs that are read a few times only.

A kernel of a graph costs more than the graph itself: a tape, its encoding, code of LLVM to run it. Who asks for few
states (a state is checked, a place in general position is looked for) has the answer sooner this way: 0.1 µs an
operation for one state, 1 µs for hundreds of them side by side. Numbers are those of kernels up to rounding: nothing is
fused here.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polybody.algebra.graph import ADD, DIV, IF_ELSE_ZERO, LEAF, LT, MUL, NEG, NOT, SQ, SUB, Node, operands

Array = np.ndarray
Operation = Callable[[Any, Any], Any]

#: of two operands; those of one are given theirs twice
FLOATS: dict[str, Operation] = {
    ADD: operator.add, SUB: operator.sub, MUL: operator.mul, DIV: operator.truediv, SQ: operator.mul,
    NEG: lambda a, _: -a, LT: lambda a, b: float(a < b), NOT: lambda a, _: float(not a),
    IF_ELSE_ZERO: lambda a, b: b if a else 0.0, "OP_POW": math.pow, "OP_ATAN2": math.atan2,
    "OP_SIN": lambda a, _: math.sin(a), "OP_COS": lambda a, _: math.cos(a), "OP_SQRT": lambda a, _: math.sqrt(a),
    "OP_TANH": lambda a, _: math.tanh(a), "OP_EXP": lambda a, _: math.exp(a), "OP_LOG": lambda a, _: math.log(a),
}  # fmt: skip
ARRAYS: dict[str, Operation] = {
    **FLOATS, LT: lambda a, b: np.less(a, b).astype(float), NOT: lambda a, _: np.equal(a, 0).astype(float),
    IF_ELSE_ZERO: lambda a, b: np.where(np.equal(a, 0), 0.0, b), "OP_POW": np.power, "OP_ATAN2": np.arctan2,
    "OP_SIN": lambda a, _: np.sin(a), "OP_COS": lambda a, _: np.cos(a), "OP_SQRT": lambda a, _: np.sqrt(a),
    "OP_TANH": lambda a, _: np.tanh(a), "OP_EXP": lambda a, _: np.exp(a), "OP_LOG": lambda a, _: np.log(a),
}  # fmt: skip


class Evaluation:
    """Outputs of a graph as a function of arrays (..., size), one for each of its columns of inputs."""

    def __init__(
        self, place: Callable[[Node], int], count: int, outputs: Sequence[Array], shapes: Sequence[tuple[int, ...]]
    ) -> None:
        """`place` says where a leaf stands among the `count` inputs, behind each other; KeyError where it is none of
        them, or where an operation is unknown here."""
        self.shapes = list(shapes)
        self._room = [0.0] * count  # for inputs, constants and results
        self._steps: list[tuple[str, int, int, int]] = []  # operation, where its result stands, and its operands
        places, numbers, room = dict[int, int](), dict[float, int](), self._room

        def standing(x: Any) -> int:
            if type(x) is Node:
                return places[x.serial]
            value = float(x)
            found = numbers.get(value)
            if found is None or value == 0.0:  # 0.0 equals −0.0
                found = numbers[value] = len(room)
                room.append(value)
            return found

        flat = [x for array in outputs for x in np.asarray(array, dtype=object).ravel().tolist()]
        for x in operands(flat):
            if x.op is LEAF:
                places[x.serial] = place(x)
                continue
            a = standing(x.a)
            b = a if x.b is None else standing(x.b)
            places[x.serial] = len(room)
            self._steps.append((x.op, len(room), a, b))
            room.append(0.0)
        self._ends = [standing(x) for x in flat]
        self._floats = [(FLOATS[op], at, a, b) for op, at, a, b in self._steps]

    def __call__(self, *arrays: Array) -> tuple[Array, ...]:
        """One array (..., *shape) for each output."""
        lead = np.broadcast_shapes(*(a.shape[:-1] for a in arrays))
        if not lead:
            try:
                given = [x for a in arrays for x in np.asarray(a, dtype=float).tolist()]
                return self._split(np.array(self._one(given), dtype=float), lead)
            except (ArithmeticError, ValueError):  # what is NaN or infinite to arrays
                pass
        states = math.prod(lead)
        if not states:
            return tuple(np.empty((*lead, *shape)) for shape in self.shapes)
        wide = [np.broadcast_to(a, (*lead, a.shape[-1])).reshape(states, a.shape[-1]).T for a in arrays]
        with np.errstate(all="ignore"):
            found = self._many([np.ascontiguousarray(row, dtype=float) for a in wide for row in a])
        table = np.empty((len(found), states))
        for row, values in zip(table, found, strict=True):
            row[...] = values
        return self._split(np.ascontiguousarray(table.T).reshape(*lead, len(found)), lead)

    def _one(self, given: list[float]) -> list[float]:
        values = [*given, *self._room[len(given) :]]
        for apply, at, a, b in self._floats:
            values[at] = apply(values[a], values[b])
        return [values[at] for at in self._ends]

    def _many(self, given: list[Array]) -> list[Any]:
        values: list[Any] = [*given, *map(np.float64, self._room[len(given) :])]
        for op, at, a, b in self._steps:
            values[at] = ARRAYS[op](values[a], values[b])
        return [values[at] for at in self._ends]

    def _split(self, table: Array, lead: tuple[int, ...]) -> tuple[Array, ...]:
        ends = np.cumsum([math.prod(shape) for shape in self.shapes])
        return tuple(
            np.ascontiguousarray(table[..., end - math.prod(shape) : end]).reshape(*lead, *shape)
            for end, shape in zip(ends.tolist(), self.shapes, strict=True)
        )


__all__ = ["Evaluation"]
