"""Results of a long kernel written by a loop: the straight line only puts each number where the loop finds it.

Turning lanes into rows (`rows`) takes some thirty instructions for four results of a block. A humanoid's mass matrix
has 1,225 results, its derivatives 3,675: written one after the other that is more code than the mathematics, and code
of this size is bounded by fetching it. Here every different result is stored once, as a vector, and one loop reads the
vectors by a table and writes the rows: zeros and the mirrored half of a symmetric matrix are entries of the table.
"""

from __future__ import annotations

from collections.abc import Sequence

from polybody.kernels.code import Code
from polybody.kernels.frame import Frame
from polybody.kernels.rows import RowPorts, piece_of, shuffle_transpose
from polybody.kernels.tape import Tape
from polybody.kernels.target import Target

FROM = 512  # results of a state: fewer are written as they come


class TableRows(RowPorts):
    """Outputs whose rows follow each other, written at the end."""

    def __init__(self, tape: Tape, target: Target) -> None:
        sizes = [len(nodes) for nodes in tape.outputs]
        super().__init__(tape.input_sizes, sizes, target.lanes)
        self.outputs, self.target = tape.outputs, target
        self.slot: dict[int, int] = {}
        for nodes in tape.outputs:
            for node in nodes:
                self.slot.setdefault(node, len(self.slot))
        self.stored: set[int] = set()
        self.base, self.first = "%frame", 0

    def settle(self, code: Code, frame: Frame | None) -> None:
        """Say where the vectors are: in the frame of all functions, or in that of the only one."""
        if frame is None:
            self.base = code.buffer(len(self.slot))
        else:
            self.first = frame.row(len(self.slot))

    def write(self, code: Code, output: int, element: int, value: str) -> None:
        slot = self.slot[self.outputs[output][element]]
        if slot not in self.stored:
            self.stored.add(slot)
            code.store(value, self.base, self.first + slot)

    def finish(self, code: Code) -> None:
        """Call the loop for every output."""
        source = code.step(self.base, self.first * code.bytes)
        for k, nodes in enumerate(self.outputs):
            port = self.first_output + k
            if nodes:
                _, starts = self.groups[port]
                sink, row = self._row(code, port, 0), len(nodes) * code.size
                code.do(f"call void @write{k}(ptr {source}, ptr {sink}, ptr @table{k}, i64 {len(starts)}, i64 {row})")

    def text(self) -> str:
        """The loops and their tables: for each group its first column and the places of its vectors, in bytes."""
        parts = []
        for k, nodes in enumerate(self.outputs):
            width, starts = self.groups[self.first_output + k]
            if nodes:
                parts += [_table_text(k, self._entries(nodes, width, starts)), _loop_text(self.target, k, width)]
        return "\n".join(parts)

    def _entries(self, nodes: Sequence[int], width: int, starts: Sequence[int]) -> list[int]:
        size, vector = self.target.size, self.target.size * self.lanes
        entries: list[int] = []
        for start in starts:
            entries += [start * size, *(self.slot[node] * vector for node in nodes[start : start + width])]
        return entries


def _table_text(k: int, entries: Sequence[int]) -> str:
    numbers = ", ".join(f"i32 {n}" for n in entries)
    return f"@table{k} = internal constant [{len(entries)} x i32] [{numbers}], align 64"


def _loop_text(target: Target, k: int, width: int) -> str:
    code = Code(target)
    code.do("br label %head")
    code.label("head")
    code.do("%i = phi i64 [0, %entry], [%next, %head]")
    first = code.add(f"mul i64 %i, {width + 1}")
    row = code.step("%table", first, "i32")
    numbers = [code.add(f"sext i32 {code.fetch('i32', row, j)} to i64") for j in range(width + 1)]
    vectors = [code.add(f"load {code.v}, ptr {code.step('%from', n)}, align {code.bytes}") for n in numbers[1:]]
    sink = code.step("%to", numbers[0])
    for j, mixed in enumerate(shuffle_transpose(code, vectors, width, target.lanes)):
        for lane in range(j, target.lanes, width):
            place = code.step(sink, code.add(f"mul i64 %row, {lane}"))
            piece = piece_of(code, mixed, lane - j, width)
            code.do(f"store <{width} x {code.number}> {piece}, ptr {place}, align {code.size}")
    code.do("%next = add i64 %i, 1")
    code.do("%more = icmp slt i64 %next, %count")
    code.do("br i1 %more, label %head, label %done")
    code.label("done")
    parameters = "ptr noalias %from, ptr noalias %to, ptr noalias %table, i64 %count, i64 %row"
    return code.function(f"define internal void @write{k}({parameters}) noinline {code.attributes()}")


__all__ = ["FROM", "TableRows"]
