"""Results of a long kernel written by a loop: the straight line only puts each number where the loop finds it.

Turning lanes into rows (`rows`) takes some thirty instructions for four results of a block. A humanoid's mass matrix
has 1,225 results, its derivatives 3,675: written one after the other that is more code than the mathematics, and code
of this size is bounded by fetching it. Here every different result is stored once, as a vector, and one loop reads the
vectors by a table and writes the rows: zeros and the mirrored half of a symmetric matrix are entries of the table.

Results that do not fit the caches are written past them by other loops, where the runtime asks for it in the second
address of an output (`runtime_code`). Processors do that fast for whole, aligned vectors only, and rows do not begin at
such: with w numbers in a vector, row l of a block begins s_l = l·count mod w numbers after one. With T_c the c-th
square, w numbers of the lanes, turned, the vectors of row l are

    last s_l numbers of T_{c−1}[l], first w − s_l numbers of T_c[l]          c = 1, 2, …

one shuffle more for each. What lies at the end of a row and the begin of the next is put together beside the loops.
Measured on Zen 4 for a G1's mass matrix: 600 ns per state when a block's results were copied, 355 so, of which 129
compute; in single precision 198 and 62.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from polybody.kernels.code import Code
from polybody.kernels.frame import Frame
from polybody.kernels.rows import WholeRows
from polybody.kernels.shuffles import concatenated, groups, pick, shuffle_transpose
from polybody.kernels.tape import Tape
from polybody.kernels.target import Target

WIDE = 32  # bytes of a row that the loop writes at once
SIDE = 4  # rows that are written past the caches side by side
FROM = 512  # results of a state: fewer are written as they come


def is_long(output_sizes: Sequence[int]) -> bool:
    """Whether so many results are written by a loop."""
    return sum(output_sizes) >= FROM


def can_stream(target: Target) -> bool:
    """Whether the loop can write past the caches: vectors are whole cache lines, or halves."""
    return target.lanes * target.size % 32 == 0 and target.lanes > 2


def _streamed_at_once(target: Target) -> int:
    """Numbers of a row: what a register holds, half a cache line or a whole one."""
    return min(target.lanes, target.register)


class TableRows(WholeRows):
    """Outputs whose rows follow each other, written at the end."""

    def __init__(
        self, input_sizes: Sequence[int], tables: Sequence[Sequence[int]], count: int, target: Target
    ) -> None:
        """`tables`: for each result the places of its numbers among `count` vectors."""
        super().__init__(input_sizes, [len(table) for table in tables], target)
        self.tables, self.count, self.target = tables, count, target
        self.stored: set[int] = set()
        self.results, self.first = "%frame", 0

    @classmethod
    def of(cls, tape: Tape, target: Target) -> TableRows:
        """Every different output has one place."""
        slot: dict[int, int] = {}
        for nodes in tape.outputs:
            for node in nodes:
                slot.setdefault(node, len(slot))
        return cls(tape.input_sizes, [[slot[node] for node in nodes] for nodes in tape.outputs], len(slot), target)

    def settle(self, code: Code, frame: Frame | None, used: Sequence[Collection[int]]) -> None:
        """Say where the vectors are: in the frame of all functions, or in that of the only one."""
        super().settle(code, frame, used)
        if frame is None:
            self.results = code.buffer(self.count)
        else:
            self.first = frame.row(self.count)

    def write(self, code: Code, output: int, element: int, value: str) -> None:
        for slot in self.places(output, element):
            if slot not in self.stored:
                self.stored.add(slot)
                code.store(value, self.results, self.first + slot)

    def places(self, output: int, element: int) -> Sequence[int]:
        """Where an output of the tape is put."""
        return (self.tables[output][element],)

    def before(self, code: Code, result: int, source: str) -> None:
        """What must be done before a result is written."""

    def finish(self, code: Code) -> None:
        """Call the loop for every output."""
        source = code.step(self.results, self.first * code.bytes)
        for k, slots in enumerate(self.tables):
            port = self.first_output + k
            if slots:
                self.before(code, k, source)
                sink = self._row(code, port, 0)
                past = code.fetch("i64", "%rows", port * self.lanes + 1) if can_stream(self.target) else "0"
                code.do(f"call void @write{k}(ptr {source}, ptr {sink}, i64 {past})")

    def text(self) -> str:
        """The loops and their tables: for each group its first column and the places of its vectors, in bytes."""
        parts = []
        for k, slots in enumerate(self.tables):
            if not slots:
                continue
            width, starts = groups(len(slots), 64, WIDE // self.target.size)
            entries, row = self._entries(slots, width, starts), len(slots) * self.target.size
            parts += [table_text(f"table{k}", entries), _loop_text(self.target, k, width, len(starts), row)]
            streamed = can_stream(self.target) and len(slots) >= 2 * self.lanes
            if streamed:
                places = [slot * self.target.size * self.lanes for slot in slots]
                places += places[:1] * (-len(places) % _streamed_at_once(self.target))  # a whole last square
                parts += [table_text(f"squares{k}", places), _stream_text(self.target, k, len(slots))]
            parts.append(_choice_text(k, streamed))
        return "\n".join(parts)

    def _entries(self, slots: Sequence[int], width: int, starts: Sequence[int]) -> list[int]:
        size, vector = self.target.size, self.target.size * self.lanes
        entries: list[int] = []
        for start in starts:
            entries += [start * size, *(slot * vector for slot in slots[start : start + width])]
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


def table_text(name: str, entries: Sequence[int]) -> str:
    numbers = ", ".join(f"i32 {n}" for n in entries)
    return f"@{name} = internal constant [{len(entries)} x i32] [{numbers}], align 64"


def _head(name: str, code: Code) -> str:
    return f"define internal void @{name}(ptr noalias %from, ptr noalias %to) noinline {code.attributes()}"


def _turned(code: Code, places: Sequence[str], lanes: Sequence[int]) -> list[str]:
    """Vectors at these places, turned: for each of some lanes a vector of its numbers.

    `code` has as many lanes as there are places. Four neighbouring lanes (two of doubles), 16 bytes, of every number
    are loaded so that numbers that will be neighbours are in the same parts of different vectors: what is left to do
    are transposes within parts, the cheapest shuffles, half as many as for whole vectors.
    """
    count, q = len(places), min(16 // code.size, len(lanes), len(places))
    kind, aligned = f"<{q} x {code.number}>", f"align {q * code.size}"
    turned = []
    for first in lanes[::q]:
        parts = [code.add(f"load {kind}, ptr {code.step(place, first * code.size)}, {aligned}") for place in places]
        turned += shuffle_transpose(code, [concatenated(code, parts[j::q], q) for j in range(q)], q, count)
    return turned


def _square(code: Code, table: str, index: str, lanes: Sequence[int]) -> list[str]:
    """T_c of some lanes: pieces of their rows."""
    width = code.target.lanes
    row = code.step(table, code.add(f"mul i64 {index}, {width}"), "i32")
    return _turned(code, [_place(code, row, j) for j in range(width)], lanes)


def _place(code: Code, row: str, j: int) -> str:
    return code.step("%from", code.add(f"sext i32 {code.fetch('i32', row, j)} to i64"))


def _put_past(code: Code, value: str, place: str) -> None:
    code.do(f"store {code.v} {value}, ptr {place}, align {code.bytes}, !nontemporal !5")


def _stream_text(target: Target, k: int, count: int) -> str:
    """The loops past the caches, for rows of `count` numbers; `to` is the address of a vector."""
    width, table = _streamed_at_once(target), f"@squares{k}"
    code = Code(replace(target, lanes=width))
    shifts, before_loop = [lane * count % width for lane in range(target.lanes + 1)], "entry"
    for first in range(0, target.lanes, SIDE):
        lanes = range(first, min(first + SIDE, target.lanes))
        begin = _square(code, table, "0", lanes)
        for lane, value in zip(lanes, begin, strict=True):
            if not shifts[lane]:
                _put_past(code, value, code.step("%to", lane * count * code.size))
        head, done, i, following = f"head{first}", f"done{first}", f"%i{first}", f"%next{first}"
        code.do(f"br label %{head}")
        code.label(head)
        code.do(f"{i} = phi i64 [1, %{before_loop}], [{following}, %{head}]")
        before, at = [code.name() for _ in lanes], len(code.lines)
        now = _square(code, table, i, lanes)
        code.lines[at:at] = [
            f"  {name} = phi {code.v} [{start}, %{before_loop}], [{new}, %{head}]"
            for name, start, new in zip(before, begin, now, strict=True)
        ]
        sink = code.step("%to", code.add(f"mul i64 {i}, {code.bytes}"))
        for lane, earlier, new in zip(lanes, before, now, strict=True):
            picks = range(width - shifts[lane], 2 * width - shifts[lane])
            place = code.step(sink, (lane * count - shifts[lane]) * code.size)
            _put_past(code, pick(code, earlier, new, width, picks), place)
        code.do(f"{following} = add i64 {i}, 1")
        more = code.add(f"icmp slt i64 {following}, {count // width}")
        code.do(f"br i1 {more}, label %{head}, label %{done}")
        code.label(done)
        before_loop = done
    _put_ends(code, table, count, shifts)
    return code.function(_head(f"stream{k}", code))


def _put_ends(code: Code, table: str, count: int, shifts: Sequence[int]) -> None:
    """What the loops leave: after their last vector of each row, up to the first that they wrote of the next.

    These numbers are those of the last whole square's piece of the row, the numbers after it, and the first piece of
    the next row, one behind the other. (Put together in memory instead they would have to wait for all writing before.)
    """
    width, lanes = code.target.lanes, range(len(shifts) - 1)
    squares, rest = divmod(count, width)
    after = _square(code, table, str(squares), lanes) if rest else [""] * len(lanes)
    begin, last = (_square(code, table, str(index), lanes) for index in (0, squares - 1))
    for lane in lanes:
        row = [(last[lane], j) for j in range(width)] + [(after[lane], j) for j in range(rest)]
        if lane + 1 < len(lanes):
            row += [(begin[lane + 1], j) for j in range(-shifts[lane + 1] % width)]
        for start in range(width - shifts[lane], len(row), width):
            place = code.step("%to", (lane * count + (squares - 1) * width + start) * code.size)
            _put_past(code, _gathered(code, row[start : start + width]), place)


def _gathered(code: Code, numbers: Sequence[tuple[str, int]]) -> str:
    """A vector of numbers (vector, place) of several vectors."""
    value, *others = dict.fromkeys(name for name, _ in numbers)
    width = code.target.lanes
    picks = [j if name == value else None for name, j in numbers]
    if not others and picks != list(range(width)):
        return pick(code, value, value, width, picks)
    for other in others:
        picks = [width + j if name == other else k for (name, j), k in zip(numbers, picks, strict=True)]
        value = pick(code, value, other, width, picks)
        picks = [None if k is None else lane for lane, k in enumerate(picks)]
    return value


def _loop_text(target: Target, k: int, width: int, count: int, size: int) -> str:
    code = Code(replace(target, lanes=width))
    code.do("br label %head")
    code.label("head")
    code.do("%i = phi i64 [0, %entry], [%next, %head]")
    first = code.add(f"mul i64 %i, {width + 1}")
    row = code.step(f"@table{k}", first, "i32")
    sink = code.step("%to", code.add(f"sext i32 {code.fetch('i32', row, 0)} to i64"))
    places = [_place(code, row, j) for j in range(1, width + 1)]
    for lane, piece in enumerate(_turned(code, places, range(target.lanes))):
        code.do(f"store {code.v} {piece}, ptr {code.step(sink, lane * size)}, align {code.size}")
    code.do("%next = add i64 %i, 1")
    code.do(f"%more = icmp slt i64 %next, {count}")
    code.do("br i1 %more, label %head, label %done")
    code.label("done")
    return code.function(_head(f"rows{k}", Code(target)))


__all__ = ["TableRows", "can_stream", "is_long", "table_text"]
