"""Results of a long kernel written by a loop: the straight line only puts each number where the loop finds it.

Turning lanes into rows (`rows`) takes some thirty instructions for four results of a block. A humanoid's mass matrix
has 1,225 results, its derivatives 3,675: written one after the other that is more code than the mathematics, and code
of this size is bounded by fetching it. Here every different result is stored once, as a vector, and one loop reads the
vectors by a table and writes the rows: zeros and the mirrored half of a symmetric matrix are entries of the table.

Results that do not fit the caches are written past them by another loop, where the runtime asks for it in the second
address of an output (`runtime_code`). Processors do that fast for whole, aligned vectors only, and rows do not begin at
such: row l of a block begins l·count mod lanes numbers after one. With T_c the c-th square of lanes × lanes numbers,
turned, and s_l that remainder, the vectors of row l are

    last s_l numbers of T_{c−1}[l], first lanes − s_l numbers of T_c[l]          c = 1, 2, …

one shuffle more for each. What lies at the end of a row and the begin of the next is put together in memory. Measured
on Zen 4 for a G1's mass matrix: 600 ns per state when a block's results were copied, 393 so, of which 148 compute.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from polybody.kernels.code import Code
from polybody.kernels.frame import Frame
from polybody.kernels.rows import WholeRows
from polybody.kernels.shuffles import piece_of, shuffle_transpose
from polybody.kernels.tape import Tape
from polybody.kernels.target import Target

FROM = 512  # results of a state: fewer are written as they come


def is_long(output_sizes: Sequence[int]) -> bool:
    """Whether so many results are written by a loop."""
    return sum(output_sizes) >= FROM


def can_stream(target: Target) -> bool:
    """Whether the loop can write past the caches: vectors are whole cache lines, or halves."""
    return target.lanes * target.size % 32 == 0 and target.lanes > 2


class TableRows(WholeRows):
    """Outputs whose rows follow each other, written at the end."""

    def __init__(self, tape: Tape, target: Target) -> None:
        sizes = [len(nodes) for nodes in tape.outputs]
        super().__init__(tape.input_sizes, sizes, target)
        self.outputs, self.target = tape.outputs, target
        self.slot: dict[int, int] = {}
        for nodes in tape.outputs:
            for node in nodes:
                self.slot.setdefault(node, len(self.slot))
        self.stored: set[int] = set()
        self.results, self.first = "%frame", 0

    def settle(self, code: Code, frame: Frame | None, used: Sequence[Collection[int]]) -> None:
        """Say where the vectors are: in the frame of all functions, or in that of the only one."""
        super().settle(code, frame, used)
        if frame is None:
            self.results = code.buffer(len(self.slot))
        else:
            self.first = frame.row(len(self.slot))

    def write(self, code: Code, output: int, element: int, value: str) -> None:
        slot = self.slot[self.outputs[output][element]]
        if slot not in self.stored:
            self.stored.add(slot)
            code.store(value, self.results, self.first + slot)

    def finish(self, code: Code) -> None:
        """Call the loop for every output."""
        source = code.step(self.results, self.first * code.bytes)
        for k, nodes in enumerate(self.outputs):
            port = self.first_output + k
            if nodes:
                sink = self._row(code, port, 0)
                past = code.fetch("i64", "%rows", port * self.lanes + 1) if can_stream(self.target) else "0"
                code.do(f"call void @write{k}(ptr {source}, ptr {sink}, i64 {past})")

    def text(self) -> str:
        """The loops and their tables: for each group its first column and the places of its vectors, in bytes."""
        parts = []
        for k, nodes in enumerate(self.outputs):
            width, starts = self.groups[self.first_output + k]
            if not nodes:
                continue
            entries, row = self._entries(nodes, width, starts), len(nodes) * self.target.size
            parts += [_table_text(f"table{k}", entries), _loop_text(self.target, k, width, len(starts), row)]
            streamed = can_stream(self.target) and len(nodes) >= 2 * self.lanes
            if streamed:
                places = [self.slot[node] * self.target.size * self.lanes for node in nodes]
                places += places[:1] * (-len(places) % self.lanes)  # a whole last square, of which the rest is not used
                parts += [_table_text(f"squares{k}", places), _stream_text(self.target, k, len(nodes))]
            parts.append(_choice_text(k, streamed))
        return "\n".join(parts)

    def _entries(self, nodes: Sequence[int], width: int, starts: Sequence[int]) -> list[int]:
        size, vector = self.target.size, self.target.size * self.lanes
        entries: list[int] = []
        for start in starts:
            entries += [start * size, *(self.slot[node] * vector for node in nodes[start : start + width])]
        return entries


def _choice_text(k: int, streamed: bool) -> str:
    """`@write`: calls the loop that results are written by, past the caches or not."""
    name = f"stream{k}" if streamed else f"rows{k}"
    return f"""
define internal void @write{k}(ptr noalias %from, ptr noalias %to, i64 %past) noinline {{
  %is_past = icmp ne i64 %past, 0
  br i1 %is_past, label %yes, label %no
yes:
  call void @{name}(ptr %from, ptr %to)
  ret void
no:
  call void @rows{k}(ptr %from, ptr %to)
  ret void
}}
"""


def _table_text(name: str, entries: Sequence[int]) -> str:
    numbers = ", ".join(f"i32 {n}" for n in entries)
    return f"@{name} = internal constant [{len(entries)} x i32] [{numbers}], align 64"


def _head(name: str, code: Code) -> str:
    return f"define internal void @{name}(ptr noalias %from, ptr noalias %to) noinline {code.attributes()}"


def _square(code: Code, table: str, index: str) -> list[str]:
    """T_c: a square of numbers, turned; its rows are pieces of rows of results."""
    lanes = code.target.lanes
    row = code.step(table, code.add(f"mul i64 {index}, {lanes}"), "i32")
    places = [code.add(f"sext i32 {code.fetch('i32', row, j)} to i64") for j in range(lanes)]
    vectors = [code.add(f"load {code.v}, ptr {code.step('%from', n)}, align {code.bytes}") for n in places]
    return shuffle_transpose(code, vectors, lanes, lanes)


def _put_past(code: Code, value: str, place: str) -> None:
    code.do(f"store {code.v} {value}, ptr {place}, align {code.bytes}, !nontemporal !5")


def _stream_text(target: Target, k: int, count: int) -> str:
    """The loop past the caches, for rows of `count` numbers; `to` is the address of a vector."""
    code, lanes, table = Code(target), target.lanes, f"@squares{k}"
    squares = count // lanes
    shifts = [lane * count % lanes for lane in range(lanes + 1)]
    first = _square(code, table, "0")
    for lane in (lane for lane in range(lanes) if not shifts[lane]):
        _put_past(code, first[lane], code.step("%to", lane * count * code.size))
    code.do("br label %head")
    code.label("head")
    code.do("%i = phi i64 [1, %entry], [%next, %head]")
    before, at = [code.name() for _ in range(lanes)], len(code.lines)
    now = _square(code, table, "%i")
    code.lines[at:at] = [
        f"  {name} = phi {code.v} [{start}, %entry], [{new}, %head]"
        for name, start, new in zip(before, first, now, strict=True)
    ]
    sink = code.step("%to", code.add(f"mul i64 %i, {code.bytes}"))
    for lane, shift in enumerate(shifts[:-1]):
        picks = ", ".join(f"i32 {lanes - shift + j}" for j in range(lanes))
        line = code.add(f"shufflevector {code.v} {before[lane]}, {code.v} {now[lane]}, <{lanes} x i32> <{picks}>")
        _put_past(code, line, code.step(sink, (lane * count - shift) * code.size))
    code.do("%next = add i64 %i, 1")
    code.do(f"%more = icmp slt i64 %next, {squares}")
    code.do("br i1 %more, label %head, label %done")
    code.label("done")
    _put_ends(code, table, count, shifts, now)
    return code.function(_head(f"stream{k}", code))


def _put_ends(code: Code, table: str, count: int, shifts: Sequence[int], last: Sequence[str]) -> None:
    """What the loop leaves: after its last vector of each row, up to the first that it wrote of the next.

    In memory: the last whole square's piece of the row, the numbers after it, the first piece of the next row.
    """
    lanes = code.target.lanes
    squares, rest = divmod(count, lanes)
    after = _square(code, table, str(squares)) if rest else []
    first = _square(code, table, "0")
    room, anywhere = code.buffer(3 * lanes), f"align {code.size}"
    for lane in range(lanes):
        spot, end = code.step(room, 3 * lane * code.bytes), lanes + rest
        code.do(f"store {code.v} {last[lane]}, ptr {spot}, {anywhere}")
        if rest:
            code.do(f"store {code.v} {after[lane]}, ptr {code.step(spot, code.bytes)}, {anywhere}")
        if lane + 1 < lanes:
            code.do(f"store {code.v} {first[lane + 1]}, ptr {code.step(spot, end * code.size)}, {anywhere}")
            end += -shifts[lane + 1] % lanes
        for start in range(lanes - shifts[lane], end, lanes):
            line = code.add(f"load {code.v}, ptr {code.step(spot, start * code.size)}, {anywhere}")
            _put_past(code, line, code.step("%to", (lane * count + (squares - 1) * lanes + start) * code.size))


def _loop_text(target: Target, k: int, width: int, count: int, size: int) -> str:
    code = Code(target)
    code.do("br label %head")
    code.label("head")
    code.do("%i = phi i64 [0, %entry], [%next, %head]")
    first = code.add(f"mul i64 %i, {width + 1}")
    row = code.step(f"@table{k}", first, "i32")
    numbers = [code.add(f"sext i32 {code.fetch('i32', row, j)} to i64") for j in range(width + 1)]
    vectors = [code.add(f"load {code.v}, ptr {code.step('%from', n)}, align {code.bytes}") for n in numbers[1:]]
    sink = code.step("%to", numbers[0])
    for j, mixed in enumerate(shuffle_transpose(code, vectors, width, target.lanes)):
        for lane in range(j, target.lanes, width):
            place = code.step(sink, lane * size)
            piece = piece_of(code, mixed, lane - j, width)
            code.do(f"store <{width} x {code.number}> {piece}, ptr {place}, align {code.size}")
    code.do("%next = add i64 %i, 1")
    code.do(f"%more = icmp slt i64 %next, {count}")
    code.do("br i1 %more, label %head, label %done")
    code.label("done")
    return code.function(_head(f"rows{k}", code))


__all__ = ["TableRows", "can_stream", "is_long"]
