"""A part of a loop that has kernels do most of its work: what recursions over long chains are to `stepping`.

    before(inputs…) -> w;    each kernel takes parts of w to parts of w;    after(inputs…, w) -> outputs…

w are numbers of the part's own. `before` and `after` are parts like others, straight lines as long as the number of
joints demands; the kernels (of one lane) are rolled, so that neither their code nor the time to compile it grows. The
function that calls them one behind the other is the same for all. In the place of a kernel may be the solution of

    F A F x = F (f − g),    x_i = 0 where F_ii = 0

with a symmetric positive definite A, by LDLᵀ in its upper triangle, and F the diagonal of zeros and ones `free`.
"""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca
import numpy as np

from polybody.kernels import machine, native
from polybody.kernels.kernel import Kernel
from polybody.kernels.programs import Made, digest, kept
from polybody.kernels.stepping_parts import PORTS, Part, part
from polybody.kernels.tape import Tape
from polybody.kernels.target import Target
from polybody.late import dataclass

Array = np.ndarray
#: parts that may be of this kind; their tapes are {entry}_before and {entry}_after of `PORTS`
ENTRIES = ("field", "watch", "loose", "solve", "energy", "balance", "end")
#: words of a context: the two tapes with their contexts, w, the number of calls, and for each call four words
FIXED, EACH = 6, 4

SOURCE = """
def _calls(context):
    k = 0
    at = context + CALLS
    while k < word(context + COUNT):
        call(word(at), word(at + 8), word(at + 16), word(at + 24))
        at += EACH
        k += 1
    return 0

def dense(rows, context, scratch):  # A, f, g, free, x: addresses, 0 of what is not there
    n = word(context)
    A = word(rows)
    f = word(rows + 8)
    g = word(rows + 16)
    free = word(rows + 24)
    x = word(rows + 32)
    for i in range(n):
        right = number(f + 8 * i)
        if g != 0:
            right = right - number(g + 8 * i)
        put(x + 8 * i, right)
    if free != 0:
        for i in range(n):
            if number(free + 8 * i) == 0.0:
                put(x + 8 * i, 0.0)
                for j in range(n):
                    put(A + 8 * (i * n + j), 0.0)
                    put(A + 8 * (j * n + i), 0.0)
                put(A + 8 * (i * n + i), 1.0)
    for k in range(n):
        pivot = A + 8 * k * n
        inverse = 1.0 / number(pivot + 8 * k)
        for i in range(k + 1, n):
            factor = number(pivot + 8 * i) * inverse
            if not factor == 0.0:
                row = A + 8 * i * n
                at = 8 * (i - (i & 3))  # whole vectors: what is before the diagonal is not read again
                over = 8 * (n & 3)
                less(row + at, pivot + at, factor, 8 * n - over - at)
                for j in range(n - (n & 3), n):
                    put(row + 8 * j, number(row + 8 * j) - factor * number(pivot + 8 * j))
                put(x + 8 * i, number(x + 8 * i) - factor * number(x + 8 * k))
    i = n
    while i > 0:
        i -= 1
        total = number(x + 8 * i)
        row = A + 8 * i * n
        for j in range(i + 1, n):
            total = total - number(row + 8 * j) * number(x + 8 * j)
        put(x + 8 * i, total / number(row + 8 * i))
    return 0
"""


#: to ← to − factor · from, of so many bytes: whole vectors
LESS = """
define internal i64 @less(i64 %to, i64 %from, double %factor, i64 %bytes) {
entry:
  %one = insertelement <4 x double> poison, double %factor, i32 0
  %all = shufflevector <4 x double> %one, <4 x double> poison, <4 x i32> zeroinitializer
  br label %check
check:
  %i = phi i64 [0, %entry], [%next, %body]
  %more = icmp slt i64 %i, %bytes
  br i1 %more, label %body, label %done
body:
  %to_at = add i64 %to, %i
  %from_at = add i64 %from, %i
  %to_p = inttoptr i64 %to_at to ptr
  %from_p = inttoptr i64 %from_at to ptr
  %old = load <4 x double>, ptr %to_p, align 8
  %part = load <4 x double>, ptr %from_p, align 8
  %off = fmul <4 x double> %all, %part
  %new = fsub <4 x double> %old, %off
  store <4 x double> %new, ptr %to_p, align 8
  %next = add i64 %i, 32
  br label %check
done:
  ret i64 0
}
"""


@dataclass(frozen=True, eq=False)
class Call:
    """A kernel of one lane, and where in w each of its inputs and then of its outputs begins."""

    kernel: Kernel
    places: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Solve:
    """A solution x, n numbers, and where in w each of A, f, g, free and x begins; None for what is not there."""

    n: int
    places: tuple[int | None, ...]


@dataclass(frozen=True, eq=False)
class Between:
    """How many numbers w has, and the kernels in their order."""

    size: int
    calls: tuple[Call | Solve, ...]


@dataclass(frozen=True, eq=False)
class Rolled:
    """The part, for as long as its tapes are what they are now."""

    before: Part
    after: Part
    between: Between
    address: int
    dense: int  # address of what solves

    @property
    def interpreted(self) -> bool:
        return self.before.interpreted or self.after.interpreted

    def context(self) -> Array:
        """Of one loop: whoever runs beside it has numbers of its own."""
        w = np.zeros(self.between.size + 8)
        kept: list[object] = [w, self.before, self.after]
        words = []
        for tape in (self.before, self.after):
            own = tape.context()
            kept.append(own)
            words += [tape.address, own.ctypes.data]
        words += [w.ctypes.data, len(self.between.calls)]
        for call in self.between.calls:
            places = [0 if place is None else w.ctypes.data + 8 * place for place in call.places]
            rows = np.array(places, dtype=np.uint64)
            if isinstance(call, Solve):
                size = np.array([call.n], dtype=np.uint64)
                kept += [rows, size]
                words += [self.dense, rows.ctypes.data, size.ctypes.data, 0]
                continue
            form = call.kernel.form
            scratch = np.zeros(form.scratch_bytes // 8 + 16)
            kept += [form, rows, scratch]
            words += [form.program.body, rows.ctypes.data, form.first_context, scratch.ctypes.data]
        return _Context(np.array(words, dtype=np.uint64), kept)


class _Context(np.ndarray):
    """An array that keeps alive what it points to."""

    kept: list[object]

    def __new__(cls, words: Array, kept: list[object]) -> _Context:
        made = words.view(cls)
        made.kept = kept
        return made


def rolled_part(
    key: str, name: str, entry: str, make: Callable[[str], ca.Function | Tape], between: Between, target: Target
) -> Rolled:
    """The part of this key, whose tapes are traced by `make` where they are not known."""
    before, after = (
        part(key, f"{name} {side}", f"{entry}_{side}", lambda side=side: make(f"{entry}_{side}"), target)
        for side in ("before", "after")
    )
    addresses = _glue(target).addresses
    return Rolled(before, after, between, addresses[entry], addresses["dense"])


_GLUE: dict[Target, machine.Loaded] = {}


def _glue(target: Target) -> machine.Loaded:
    """The functions that call the tapes and the kernels."""
    if target not in _GLUE:
        names = (*ENTRIES, "dense")
        title = digest("rolled parts", SOURCE + LESS, target, list(names))
        _GLUE[target] = machine.Loaded(kept(title, "rolled parts", lambda: Made(_text(target), target))[0], names)
    return _GLUE[target]


def _text(target: Target) -> str:
    texts = [SOURCE]
    for entry in ENTRIES:
        inputs, outputs = ([f"{x}{k}" for k in range(n)] for x, n in zip("io", PORTS[entry], strict=True))
        texts.append(
            f"def {entry}({', '.join([*inputs, *outputs])}, context):\n"
            f"    w = word(context + W)\n"
            f"    call(word(context), {', '.join(inputs)}, w, word(context + 8))\n"
            f"    _calls(context)\n"
            f"    call(word(context + 16), {', '.join([*inputs, 'w', *outputs])}, word(context + 24))\n"
            f"    return 0\n"
        )
    numbers = {"CALLS": 8 * FIXED, "EACH": 8 * EACH, "W": 32, "COUNT": 40}
    return "\n".join([f'target triple = "{target.triple}"', LESS, native.translate("\n".join(texts), numbers)])


__all__ = ["ENTRIES", "Between", "Call", "Rolled", "Solve", "rolled_part"]
