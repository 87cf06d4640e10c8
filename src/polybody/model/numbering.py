"""Nodes of an expression graph as nodes of tapes: what kernels read.

Several tapes with the same inputs (the field of a motion, and the functions that are watched beside it) have most of
their nodes in common. These are numbered once: a later tape adds what is new and leaves out what it does not need.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.algebra.graph import DIV, LEAF, SQ, Node, operands

if TYPE_CHECKING:
    from polybody.kernels.tape import Builder, Tape


class Numbering:
    """Numbers of nodes in tapes whose inputs are these columns.

    `known` are pairs of columns: symbols that are read, and the elements of the inputs that they are.
    """

    def __init__(self, columns: Sequence[Any], known: Sequence[tuple[Any, Any]]) -> None:
        from polybody.kernels.tape import INPUT, Builder

        self._columns, self._build, self._place = list(columns), Builder(), dict[int, int]()
        self._table: tuple[np.ndarray, np.ndarray] | None = None  # of the nodes of all tapes so far
        node = self._build.node
        self._given = [[node(INPUT, k, i) for i in range(column.shape[0])] for k, column in enumerate(columns)]
        self._inputs = {
            element.element_hash(): number
            for column, numbers in zip(columns, self._given, strict=True)
            for element, number in zip(column.elements(), numbers, strict=True)
        }
        for symbols, elements in known:
            same = zip(symbols.elements(), elements.elements(), strict=True)
            self._inputs |= {symbol.element_hash(): self._inputs[element.element_hash()] for symbol, element in same}

    def tape(self, results: Sequence[Any], of_inputs: Callable[[Any], Any]) -> Tape:
        """The tape of arrays of nodes; `of_inputs` writes a CasADi expression without symbols that are known."""
        from polybody.kernels.tape import CONST, Tape, pruned

        flat = [np.asarray(x, dtype=object).ravel().tolist() for x in results]
        place, node, is_first = self._place, self._build.node, not self._place
        order = operands((y for array in flat for y in array), stop=place)  # as traced: `schedule` may keep that order
        order = order if is_first else [x for x in order if x.serial not in place]
        self._leaves([x for x in order if x.op is LEAF], of_inputs)
        self._number(order)
        outputs = [[place[y.serial] if type(y) is Node else node(CONST, float(y)) for y in array] for array in flat]
        sizes = [column.shape[0] for column in self._columns]
        found = Tape(list(self._build.nodes), outputs, sizes, _table=self._grown())
        return found if is_first else pruned(found)

    def _grown(self) -> tuple[np.ndarray, np.ndarray]:
        """All nodes as arrays: those of an earlier tape have theirs."""
        from polybody.kernels.tape import table_of

        known = [] if self._table is None else [self._table]
        rest = table_of(self._build.nodes[sum(len(op) for op, _ in known) :])
        op, given = zip(*known, rest, strict=True)
        self._table = np.concatenate(op), np.concatenate(given)
        return self._table

    def _leaves(self, leaves: list[Node], of_inputs: Callable[[Any], Any]) -> None:
        """Leaves are inputs, or expressions of CasADi."""
        import casadi

        from polybody.kernels.tape import inlined

        place, inputs = self._place, self._inputs
        place |= {x.serial: inputs.get(x.sx.element_hash(), -1) for x in leaves}
        texts = [x for x in leaves if place[x.serial] < 0]
        if texts:
            column = of_inputs(casadi.densify(casadi.vertcat(*(x.sx for x in texts))))
            own = inlined(self._build, casadi.Function("leaves", self._columns, [column]), self._given)[0]
            place |= {x.serial: number for x, number in zip(texts, own, strict=True)}

    def _number(self, order: list[Node]) -> None:
        """Operations, operands first. Equal ones get one number, as `Builder.node` gives it, in its place."""
        import casadi

        from polybody.kernels.tape import COMMUTATIVE

        build, place, numbers = self._build, self._place, _Numbers(self._build)
        known, nodes, kind = build.numbers, build.nodes, Node
        look, append = known.get, nodes.append
        divisors = Counter([x.b.serial for x in order if x.op is DIV])
        found = {op: getattr(casadi, op) for op in {x.op for x in order} if op is not LEAF}
        codes = {op: (code, code in COMMUTATIVE) for op, code in found.items()}  # whether operands may change places
        codes[SQ] = casadi.OP_MUL, True
        for x in order:
            op = x.op
            if op is LEAF:
                continue
            a, b = x.a, x.b
            code, either = codes[op]
            one = place[a.serial] if type(a) is kind else numbers[a]
            if b is None:
                key = (code, one, one if op is SQ else 0)
            else:
                other = place[b.serial] if type(b) is kind else numbers[b]
                if op is DIV and divisors[b.serial] > 1:  # as `kernels.tape.divided_once` would have it
                    place[x.serial] = build.node(casadi.OP_MUL, one, build.node(casadi.OP_INV, other))
                    continue
                key = (code, other, one) if either and one > other else (code, one, other)
            number = look(key)
            if number is None:
                number = known[key] = len(nodes)
                append(key)
            place[x.serial] = number


class _Numbers(dict[float, int]):
    """Nodes of constants; those that compare equal without being the same, or not even to themselves, are looked up."""

    def __init__(self, build: Builder) -> None:
        super().__init__()
        self._build = build

    def __missing__(self, value: float) -> int:
        from polybody.kernels.tape import CONST

        number = self._build.node(CONST, value)
        if value:  # 0.0 equals −0.0
            self[value] = number
        return number


__all__ = ["Numbering"]
