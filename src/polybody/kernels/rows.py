"""Rows of states to lanes and back: the transposition at both ends of a straight-line kernel.

A compiled body has the signature `void body(ptr *rows, ptr *libm, ptr scratch)`. `rows` holds, for each argument and
then for each output, `lanes` addresses: where lane l finds (or puts) its row of numbers; after them one address each,
where the rows of the next block begin if they follow these (`next_lines`). Lanes may share a row: a
broadcast argument has one row for all, and the last block of a batch repeats its last state, so that nothing outside
the arrays is read or written and no second body for remainders exists.

Columns go in groups of `width` ≤ 4 (of few results in single precision 8): one load of `width` neighbouring numbers
from each row. Vector r of the group is made of rows r, r + width, r + 2 width, …, so that log₂(width) rounds of
shuffles, each of whole vectors, transpose all squares of them at once and leave the lanes in order. A last, incomplete
group overlaps the one before it instead of reading past the row.

Straight-line kernels read and write rows that follow each other (`WholeRows`): an argument's columns are put into
memory by one function at the beginning (`whole_rows`), an output has one address and its rows of a block follow each
other (`runtime_code.block` sees to the last block of a batch). That saves loading an address for each load and store,
and it is known where the next results will go: their cache lines are asked for while others are computed
(`next_lines`), and a batch that does not fit the caches waits for memory half as long.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from polybody.kernels import whole_rows
from polybody.kernels.code import Code
from polybody.kernels.emit import support_text
from polybody.kernels.frame import Frame
from polybody.kernels.shuffles import concatenated, groups, piece_of, shuffle_transpose
from polybody.kernels.target import Target

LINE = 64  # bytes of a cache line
FEW = 128  # results: as few wait for seven neighbours, in single precision, without driving others out of registers
BETWEEN = "ptr noalias %rows, ptr noalias %libm, ptr noalias %scratch"  # what a body is given
FRAMED = f"{BETWEEN}, ptr noalias %frame"
BLOCK = 500  # lines of straight-line code that LLVM gets at once


class RowPorts:
    """Inputs and outputs as rows of the caller's arrays."""

    scope = ", !alias.scope !3"  # what is read is never written

    def __init__(self, input_sizes: Sequence[int], output_sizes: Sequence[int], target: Target) -> None:
        self.lanes = target.lanes
        self.sizes = [*input_sizes, *output_sizes]
        self.first_output = len(input_sizes)
        most = 32 // target.size if sum(output_sizes) < FEW else 4
        self.groups = [groups(size, self.lanes) for size in input_sizes]
        self.groups += [groups(size, self.lanes, most) for size in output_sizes]
        self.values: dict[tuple[int, int], str] = {}
        self.waiting: dict[tuple[int, int], dict[int, str | int]] = {}  # values, or where they are set aside
        self.frame: Frame | None = None

    def _row(self, code: Code, port: int, lane: int) -> str:
        place = code.step("%rows", port * self.lanes + lane, "ptr")
        return code.add(f"load ptr, ptr {place}, !invariant.load !1")

    def read(self, code: Code, argument: int, element: int) -> str:
        if (argument, element) not in self.values:
            width, starts = self.groups[argument]
            start = starts[min(element // width, len(starts) - 1)]
            for k, value in enumerate(self._load_group(code, argument, start, width)):
                self.values.setdefault((argument, start + k), value)
        return self.values[argument, element]

    def _load_group(self, code: Code, argument: int, start: int, width: int) -> list[str]:
        small = f"<{width} x {code.number}>"
        mixed = []
        for first in range(width):
            pieces = []
            for lane in range(first, self.lanes, width):
                row = self._row(code, argument, lane)
                place = code.step(row, start, code.number)
                pieces.append(code.add(f"load {small}, ptr {place}, align {code.size}{self.scope}"))
            mixed.append(concatenated(code, pieces, width))
        return shuffle_transpose(code, mixed, width, self.lanes)

    def write(self, code: Code, output: int, element: int, value: str) -> None:
        port = self.first_output + output
        width, _ = self.groups[port]
        for start in self.starts(port, element):
            group = self.waiting.setdefault((port, start), {})
            group[element - start] = value
            if len(group) == width:
                self._store_group(code, port, start, [self._back(code, group[k]) for k in range(width)], width)
                del self.waiting[port, start]

    def starts(self, port: int, element: int) -> list[int]:
        """First columns of the groups that an element is in: the last group may overlap the one before it."""
        width, starts = self.groups[port]
        last = len(starts) - 1
        return [starts[k] for k in {min(element // width, last), last} if starts[k] <= element < starts[k] + width]

    def set_aside(self, code: Code, frame: Frame) -> None:
        """A function ends: keep what waits for its neighbours, forget the names of everything else."""
        self.frame, self.values = frame, {}
        for group in self.waiting.values():
            for k, value in group.items():
                if isinstance(value, str):
                    group[k] = slot = frame.lend()
                    code.store(value, "%frame", slot)

    def _back(self, code: Code, value: str | int) -> str:
        if isinstance(value, str):
            return value
        assert self.frame is not None
        self.frame.give_back(value)
        return code.load("%frame", value)

    def _store_group(self, code: Code, port: int, start: int, columns: list[str], width: int) -> None:
        small = f"<{width} x {code.number}>"
        for first, mixed in enumerate(shuffle_transpose(code, columns, width, self.lanes)):
            for lane in range(first, self.lanes, width):
                piece = piece_of(code, mixed, lane - first, width)
                place = code.step(self._row(code, port, lane), start, code.number)
                code.do(f"store {small} {piece}, ptr {place}, align {code.size}, !noalias !3")


class WholeRows(RowPorts):
    """The same with arguments that are columns in memory from the beginning on."""

    in_memory = True
    used: Sequence[Collection[int]] = ()  # columns of each argument

    def settle(self, code: Code, frame: Frame | None, used: Sequence[Collection[int]]) -> None:
        """Say where the columns are: in the frame of all functions, or in that of the only one."""
        self.used = used
        count = sum(self.sizes[: self.first_output])
        self.begin, self.base = (0, code.buffer(count)) if frame is None else (frame.row(count), "%frame")
        self.firsts = [self.begin + sum(self.sizes[:port]) for port in range(self.first_output)]

    def turn(self, code: Code) -> None:
        """Call the functions that put them there."""
        for port, first in enumerate(self.firsts):
            if self.used[port]:
                row, to = code.step("%rows", port * self.lanes, "ptr"), code.step(self.base, first * code.bytes)
                code.do(f"call void @lanes{port}(ptr {row}, ptr {to})")

    def place(self, code: Code, argument: int, element: int) -> str:
        """Where the vectors of an argument from this element on are."""
        return code.step(self.base, (self.firsts[argument] + element) * code.bytes)

    def turning_text(self, target: Target) -> str:
        return whole_rows.lanes_text(self.sizes[: self.first_output], self.used, target)

    def read(self, code: Code, argument: int, element: int) -> str:
        return code.load(self.base, self.firsts[argument] + element)


class DenseRows(WholeRows):
    """The same with outputs whose rows follow each other."""

    def __init__(self, input_sizes: Sequence[int], output_sizes: Sequence[int], target: Target) -> None:
        super().__init__(input_sizes, output_sizes, target)
        for port, size in enumerate(output_sizes, self.first_output):
            if size and whole_rows.is_whole(size, target):
                self.groups[port] = size, [0]
        self.bases: dict[int, str] = {}

    def _row(self, code: Code, port: int, lane: int) -> str:
        if port < self.first_output:
            return super()._row(code, port, lane)
        if port not in self.bases:
            self.bases[port] = super()._row(code, port, 0)
        return code.step(self.bases[port], lane * self.sizes[port], code.number)

    def set_aside(self, code: Code, frame: Frame) -> None:
        super().set_aside(code, frame)
        self.bases = {}

    def _store_group(self, code: Code, port: int, start: int, columns: list[str], width: int) -> None:
        if width == self.sizes[port] and whole_rows.is_whole(width, code.target):
            whole_rows.write(code, columns, self._row(code, port, 0))
        else:
            super()._store_group(code, port, start, columns, width)


def is_dense(output_sizes: Sequence[int]) -> bool:
    """Whether a straight-line kernel with these outputs writes them dense."""
    return sum(output_sizes) > 0


def in_blocks(lines: Sequence[str], between: Sequence[str] = ()) -> list[str]:
    """Straight-line code cut into blocks of `BLOCK` lines: LLVM's time grows faster than a block's length.

    A block goes on to the next one unless there are no rows, which never happens; LLVM cannot know, and keeps the cuts.
    The lines of `between` are spread over the blocks.
    """
    if len(lines) <= 2 * BLOCK or any(line.endswith(":") for line in lines):
        return spread(lines, between)
    result = ["  %has_rows = icmp ne ptr %rows, null"]
    cuts = range(0, len(lines), BLOCK)
    for n, k in enumerate(cuts):
        if k:
            result += [f"  br i1 %has_rows, label %block{k}, label %done", f"block{k}:"]
        lo, hi = (len(between) * at // len(cuts) for at in (n, n + 1))
        result += [*between[lo:hi], *lines[k : k + BLOCK]]
    return [*result, "  br label %done", "done:"]


def spread(lines: Sequence[str], more: Sequence[str]) -> list[str]:
    """Lines with others put evenly between them."""
    result, done = list[str](), 0
    for k, line in enumerate(lines):
        due = len(more) * k // len(lines)
        result += [*more[done:due], line]
        done = due
    return [*result, *more[done:]]


def next_lines(sizes: Sequence[int], first_output: int, asked: int, target: Target) -> list[str]:
    """Requests for the cache lines of the next block of the first `asked` ports, one a line.

    The rows of a block are read and written side by side, which is no order that processors foresee. Asked for all at
    once they are more than a core can wait for, so that they are spread over the code: a G1's inverse dynamics on
    batches that do not fit the caches was a fifth faster, its forward dynamics too (Zen 4, 8 lanes). Asked for where
    others are written, results come in bursts as well: of a Panda's derivatives 228 ns per state instead of 203, where
    computing takes 187 (Zen 3).
    """
    requests = []
    for port, size in enumerate(sizes[:asked]):
        is_output = int(port >= first_output)
        for k in range(0, size * target.lanes * target.size, LINE):
            name = f"%next{port}_{k}"
            requests.append(
                f"  {name}a = getelementptr ptr, ptr %rows, i64 {len(sizes) * target.lanes + port}\n"
                f"  {name}b = load ptr, ptr {name}a, !invariant.load !1\n"
                f"  {name}c = getelementptr i8, ptr {name}b, i64 {k}\n"
                f"  call void @llvm.prefetch.p0(ptr {name}c, i32 {is_output}, i32 3, i32 1)"
            )
    return requests


def module_text(
    code: Code, target: Target, name: str = "body", parameters: str = BETWEEN, more: str = "",
    between: Sequence[str] = (),
) -> str:  # fmt: skip
    """The module whose function holds the code written so far, between rows and scratch; `more` is put beside it.

    `between`: lines to be spread over the code.
    """
    head = f"define void @{name}({parameters}) {code.attributes()}"
    code.lines = in_blocks(code.lines, between)
    return "\n".join(
        [
            f'target triple = "{target.triple}"',
            code.function(head),
            more,
            support_text(target, mapped=any("call void @" in line for line in code.lines)),
            "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)",
            "!1 = !{}",
            "!5 = !{i32 1}",
            '!2 = distinct !{!2, !"rows"}',
            '!4 = distinct !{!4, !2, !"inputs"}',
            "!3 = !{!4}",
        ]
    )
