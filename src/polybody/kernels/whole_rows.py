"""Rows that follow each other turned into lanes, and lanes into such rows: whole vectors, no address for each row.

A block of rows of n numbers is n vectors in memory, in which number c of row l stands at place l n + c. Column c, the
vector of these over all l, is found in one of two ways:

*Groups* of four columns (or fewer): one load of each row, then log₂ 4 rounds of shuffles
(`shuffles.shuffle_transpose`). The last group overlaps the one before it where four does not divide n.

*Pairs* (single precision, n = 4k + 2, where the last group would be half wasted). A vector of 16-byte parts is filled
so that part i holds numbers of rows 4i … 4i + 3; neighbouring columns j, j + 1 of two rows are brought together by
one shuffle inside the parts, and two such are taken apart by one shuffle for each column.

(AVX-512's permutations of any numbers of two vectors, Σ (p − 1) a column over the prime factors p of n, are fewer
instructions, but took longer on Zen 4: gravity forces of a UR5 3.5 instead of 3.1 ns in single precision.)

Back from columns to rows is the same in reverse order. A straight-line kernel reads its arguments as columns from
memory, where `lanes_text`'s functions put those that it uses at its beginning. They look at the second address of an
argument: WHOLE stands there if the rows of the block follow each other from the first address on, SAME if all states
have the row there (a single state, or an argument without leading dimensions); else addresses are those of the rows.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from polybody.kernels.code import Code
from polybody.kernels.shuffles import concatenated, groups, pick, shuffle_transpose, transpose_text
from polybody.kernels.target import Target

WHOLE, SAME = 1, 2  # in place of an argument's second address: no array begins there
MOST = 16  # results that wait for each other to be written together


def _shuffle(code: Code, a: str, b: str, picks: Sequence[int | None]) -> str:
    return pick(code, a, b, code.target.lanes, picks)


def _pair_shuffles(code: Code, n: int) -> list[tuple[tuple[int, int], tuple[int, int], list[int]]]:
    """For each pair of columns, for rows (0, 1) and (2, 3) of every part: two vectors, and picks of both."""
    found = []
    for j in range(0, n, 2):
        for r in (0, 2):
            (a, i), (b, k) = divmod(r * n + j, 4), divmod((r + 1) * n + j, 4)
            found.append(((a, b), (j, r), [i, i + 1, 4 + k, 5 + k]))
    return found


def _in_parts(picks: Sequence[int], lanes: int) -> list[int]:
    """Picks of four numbers of two parts (4 to 7 are of the second) as those of all parts of two vectors."""
    return [part + p if p < 4 else lanes + part + p - 4 for part in range(0, lanes, 4) for p in picks]


def _pairs_apart(code: Code, vectors: Sequence[str]) -> list[str]:
    """The columns of vectors whose parts hold four rows each."""
    n, lanes = len(vectors), code.target.lanes
    halves = {
        place: _shuffle(code, vectors[a], vectors[b], _in_parts(picks, lanes))
        for (a, b), place, picks in _pair_shuffles(code, n)
    }
    columns = []
    for j in range(n):
        pair = halves[j - j % 2, 0], halves[j - j % 2, 2]
        columns.append(_shuffle(code, *pair, _in_parts([j % 2, 2 + j % 2, 4 + j % 2, 6 + j % 2], lanes)))
    return columns


def _pairs_together(code: Code, columns: Sequence[str]) -> list[str]:
    """The same in reverse: vectors whose parts hold four rows each."""
    n, lanes = len(columns), code.target.lanes
    pieces: dict[tuple[int, int], str] = {}  # (row of a part, first column) -> a vector that begins with that pair …
    for j in range(0, n, 2):
        for first, picks in ((0, [0, 4, 1, 5]), (2, [2, 6, 3, 7])):
            both = _shuffle(code, columns[j], columns[j + 1], _in_parts(picks, lanes))
            pieces[first, j] = pieces[first + 1, j] = both  # … or ends with it, of the row after
    vectors = []
    for k in range(n):
        (r, j), (s, i) = divmod(4 * k, n), divmod(4 * k + 2, n)
        low, high = 2 * (r % 2), 2 * (s % 2)
        picks = _in_parts([low, low + 1, 4 + high, 5 + high], lanes)
        vectors.append(_shuffle(code, pieces[r, j], pieces[s, i], picks))
    return vectors


def in_pairs(n: int, target: Target) -> bool:
    """Whether rows of n numbers are turned in pairs of columns."""
    return target.size == 4 and n % 4 == 2 and n > 2 and target.lanes % 4 == 0


def is_whole(n: int, target: Target) -> bool:
    """Whether n results are written together, once all are there."""
    return n <= MOST and in_pairs(n, target)


def write(code: Code, columns: Sequence[str], base: str) -> None:
    """Write columns of pairs as rows that follow each other from `base` on."""
    target, n = code.target, len(columns)
    width, small = min(target.lanes, target.register), f"<4 x {code.number}>"
    narrow = Code(replace(target, lanes=width))
    narrow.lines, narrow.count = code.lines, code.count
    for first in range(0, target.lanes, width):
        some = [_part(narrow, value, target.lanes, range(first, first + width)) for value in columns]
        for k, value in enumerate(_pairs_together(narrow, some)):
            for part in range(0, width, 4):
                piece = _part(narrow, value, width, range(part, part + 4))
                place = narrow.step(base, ((first + part) * n + 4 * k) * code.size)
                narrow.do(f"store {small} {piece}, ptr {place}, align {code.size}")
    code.count = narrow.count


def _part(code: Code, value: str, length: int, picks: Sequence[int]) -> str:
    return value if len(picks) == length else pick(code, value, "poison", length, picks)


def _columns(code: Code, n: int, base: str) -> list[str]:
    """The columns of rows of n numbers that follow each other from `base` on; as many rows as `code` has lanes."""
    lanes = code.target.lanes

    def load(length: int, first: int) -> str:
        place = code.step(base, first * code.size)
        return code.add(f"load <{length} x {code.number}>, ptr {place}, align {code.size}")

    if in_pairs(n, code.target):
        parts = range(0, lanes, 4)
        return _pairs_apart(
            code, [concatenated(code, [load(4, part * n + 4 * k) for part in parts], 4) for k in range(n)]
        )
    width, starts = groups(n, lanes)
    columns: list[str] = [""] * n
    for start in starts:
        mixed = [
            concatenated(code, [load(width, lane * n + start) for lane in range(r, lanes, width)], width)
            for r in range(width)
        ]
        found = shuffle_transpose(code, mixed, width, lanes)
        for k, value in enumerate(found, start):
            columns[k] = columns[k] or value  # of two groups the first: if nothing else is used of the last, it goes
    return columns


def lanes_text(sizes: Sequence[int], used: Sequence[Collection[int]], target: Target) -> str:
    """The functions `@lanesP(rows, to)`: columns of argument P, those that are used, each to its place from `to` on."""
    found = [transpose_text(target, inward=True)] if any(used) else []
    found += [_function_text(port, n, used[port], target) for port, n in enumerate(sizes) if used[port]]
    return "\n".join(found)


def _function_text(port: int, n: int, used: Collection[int], target: Target) -> str:
    lanes, width = target.lanes, min(target.lanes, target.register)
    code = Code(target)
    code.do(f"%mark = load i64, ptr {code.step('%rows', 1, 'ptr')}")
    code.do(f"switch i64 %mark, label %apart [i64 {WHOLE}, label %whole i64 {SAME}, label %same]")
    code.label("whole")
    code.do("%begin = load ptr, ptr %rows")
    narrow = Code(replace(target, lanes=width))
    narrow.lines, narrow.count = code.lines, code.count
    for first in range(0, lanes, width):
        columns = _columns(narrow, n, narrow.step("%begin", first * n * code.size))
        for k in sorted(used):
            place = narrow.step("%to", (k * lanes + first) * code.size)
            narrow.do(f"store {narrow.v} {columns[k]}, ptr {place}, align {narrow.bytes}")
    code.count = narrow.count
    code.do("ret void")
    code.label("same")
    code.do("%row = load ptr, ptr %rows")
    code.do("br label %head")
    code.label("head")
    code.do("%i = phi i64 [0, %same], [%next, %head]")
    number = code.fetch(code.number, "%row", "%i")
    one = code.add(f"insertelement {code.v} poison, {code.number} {number}, i32 0")
    all_lanes = code.add(f"shufflevector {code.v} {one}, {code.v} poison, <{lanes} x i32> zeroinitializer")
    code.do(f"store {code.v} {all_lanes}, ptr {code.step('%to', '%i', code.v)}, align {code.bytes}")
    code.do("%next = add i64 %i, 1")
    code.do(f"%more = icmp slt i64 %next, {n}")
    code.do("br i1 %more, label %head, label %done")
    code.label("apart")
    code.do(f"call void @lanes_in(ptr %rows, ptr %to, i64 {n})")
    code.do("br label %done")
    code.label("done")
    head = f"define internal void @lanes{port}(ptr noalias %rows, ptr noalias %to) noinline {code.attributes()}"
    return code.function(head)


__all__ = ["SAME", "WHOLE", "is_whole", "lanes_text", "write"]
