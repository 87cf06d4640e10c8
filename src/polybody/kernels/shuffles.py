"""Vectors shuffled: transposes of squares, and the loops that turn rows at any addresses into lanes and back."""

from __future__ import annotations

from collections.abc import Sequence

from polybody.kernels.code import Code
from polybody.kernels.target import Target


def groups(size: int, lanes: int, most: int = 4) -> tuple[int, list[int]]:
    """(width, first columns) of the groups that cover `size` columns."""
    width = 1
    while width * 2 <= min(size, lanes, most):
        width *= 2
    starts = list(range(0, size - width + 1, width))
    if starts and starts[-1] + width < size:
        starts.append(size - width)
    return width, starts


def pick(code: Code, a: str, b: str, length: int, picks: Sequence[int | None]) -> str:
    """Numbers of two vectors of so many; None where any will do."""
    mask = f"<{len(picks)} x i32> <" + ", ".join(f"i32 {'poison' if p is None else p}" for p in picks) + ">"
    t = f"<{length} x {code.number}>"
    return code.add(f"shufflevector {t} {a}, {t} {b}, {mask}")


def shuffle_transpose(code: Code, rows: list[str], width: int, lanes: int) -> list[str]:
    """The transposes of all squares in `width` vectors of so many lanes: rounds of two-by-two block exchanges.

    Square b is the numbers b·width … b·width + width − 1 of each vector.
    """
    half = 1
    while half < width:
        picked = list(rows)
        low = [(i - half + lanes) if i & half else i for i in range(lanes)]
        high = [(i + lanes) if i & half else i + half for i in range(lanes)]
        for i in range(width):
            if not i & half:
                picked[i] = pick(code, rows[i], rows[i + half], lanes, low)
                picked[i + half] = pick(code, rows[i], rows[i + half], lanes, high)
        rows = picked
        half *= 2
    return rows


def concatenated(code: Code, parts: list[str], width: int) -> str:
    """Vectors of so many numbers behind each other."""
    while len(parts) > 1:
        picks = range(2 * width)
        parts = [pick(code, parts[k], parts[k + 1], width, picks) for k in range(0, len(parts), 2)]
        width *= 2
    return parts[0]


def piece_of(code: Code, value: str, first: int, width: int) -> str:
    """So many neighbouring numbers of a vector."""
    lanes = code.target.lanes
    if width == lanes:
        return value
    return pick(code, value, value, lanes, range(first, first + width))


def transpose_text(target: Target, *, inward: bool) -> str:
    """`lanes_in(rows, region, n)` and `lanes_out`: columns in groups of up to four, the rest number by number."""
    lanes, size, number = target.lanes, target.size, target.number
    group = min(lanes, 4)
    small = f"<{group} x {number}>"
    code = Code(target)
    rows = [code.fetch("ptr", "%rows", lane) for lane in range(lanes)]
    beginning, code.lines = code.lines, []
    columns = code.step("%region", code.add(f"mul i64 %k, {code.bytes}"))
    for first in range(0, lanes, group):
        places = [(code.step(rows[lane], "%k", number), size) for lane in range(first, first + group)]
        cells = [(code.step(columns, size * (lanes * c + first)), size * group) for c in range(group)]
        sources, sinks = (places, cells) if inward else (cells, places)
        pieces = [code.add(f"load {small}, ptr {at}, align {by}") for at, by in sources]
        for piece, (at, by) in zip(shuffle_transpose(code, pieces, group, group), sinks, strict=True):
            code.do(f"store {small} {piece}, ptr {at}, align {by}")
    fast, code.lines = code.lines, []
    column = code.step("%region", code.add(f"mul i64 %j, {code.bytes}"))
    for lane in range(lanes):
        source, sink = code.step(rows[lane], "%j", number), code.step(column, lane, number)
        if not inward:
            source, sink = sink, source
        code.do(f"store {number} {code.add(f'load {number}, ptr {source}')}, ptr {sink}")
    slow, code.lines = code.lines, []
    name = "lanes_in" if inward else "lanes_out"
    newline = "\n"
    return f"""
define internal void @{name}(ptr noalias %rows, ptr noalias %region, i64 %n) {code.attributes()} noinline {{
entry:
{newline.join(beginning)}
  br label %head
head:
  %k = phi i64 [0, %entry], [%kn, %fast]
  %kn = add i64 %k, {group}
  %fits = icmp sle i64 %kn, %n
  br i1 %fits, label %fast, label %rest
fast:
{newline.join(fast)}
  br label %head
rest:
  %j = phi i64 [%k, %head], [%jn, %slow]
  %left = icmp slt i64 %j, %n
  br i1 %left, label %slow, label %done
slow:
{newline.join(slow)}
  %jn = add i64 %j, 1
  br label %rest
done:
  ret void
}}
"""


__all__ = ["concatenated", "groups", "pick", "piece_of", "shuffle_transpose", "transpose_text"]
