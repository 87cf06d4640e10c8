"""A tape run as it is: the fast tier, which answers at once while optimised code is still being compiled.

One machine-code loop serves every tape. It reads runs of instructions of one operation, (operation, count) and for each
(result, a, b, c), all 32-bit words, and computes each on `lanes` states side by side; operands are vectors in scratch
memory, given by their offsets in bytes. To go from one operation to the next costs more than to compute it, as no
processor foresees which comes. So a tape is put in the order of *levels*, one more than the highest of the operands',
and within a level by operations: the field of a humanoid under a task law, 18,000 operations, takes 50 µs instead of
155 (Zen 3). Levels are found by machine code, too, beside the loop.
It is a body like any other (`rows`): whatever calls compiled kernels calls it alike. Where the instructions are stands
behind libm's table in the context.

It computes what compiled code computes, by the same instructions in the same rounding (`tape.fused`, `operations`,
`sincos`), so the numbers do not reveal which tier answered. A state costs about ten times as much.
"""

from __future__ import annotations

import ctypes

import casadi as ca
import numpy as np

from polybody.kernels.code import Code
from polybody.kernels.emit import filled, same_texts, support_text
from polybody.kernels.factored import Factored
from polybody.kernels.operations import LIBM, OPERATIONS, SINCOS, SLOT
from polybody.kernels.tape import CONST, FROM, INPUT, KINDS, LONG, Tape, is_one_of, needed_of, products
from polybody.kernels.target import Target
from polybody.late import dataclass

#: (operands (n, 3), n, levels (n + 1)); numbers of 64 bits
LEVELS_CALL = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_int64, ctypes.c_uint64)
WORDS = 4  # of an instruction in its run
HEAD = 2  # words before a run
SLOWER = 10  # than compiled code, about

#: operations that most tapes consist of, and how many instructions of them are read together: plain code, as LLVM makes
#: it without optimisations, keeps a loop's variables in memory
_USUAL = (ca.OP_ADD, ca.OP_SUB, ca.OP_MUL, *KINDS)
TOGETHER = 4
_PLAIN = [op for op, operation in OPERATIONS.items() if operation.llvm]
_FUSED = KINDS
#: "dot": result = −Σ x y over pairs of places (`Factored`), which stand behind the constants
_OTHERS = ("end", "input", "output", "const", SINCOS, "map1", "map2", "dot")
#: the number of each instruction: operations by CasADi's code, the rest by name
NUMBER: dict[int | str, int] = {key: k for k, key in enumerate([*_PLAIN, *_FUSED, *_OTHERS])}


@dataclass(frozen=True)
class Instructions:
    """A tape as the loop reads it; `places` vectors of scratch memory are needed."""

    words: np.ndarray  # int32
    constants: np.ndarray
    places: int

    def context(self, libm: np.ndarray) -> np.ndarray:
        """What the loop is given beside rows and scratch memory."""
        return np.concatenate([libm, np.array([self.words.ctypes.data, self.constants.ctypes.data], dtype=np.uint64)])


def encode(traced: Tape | Factored, target: Target, levels: int) -> Instructions:
    """Instructions of a tape for this processor; `levels` is the address of that function (`text`). Every value has a
    place of its own, in the order of the tape.

    Using places again would save memory and cost more time than the answers that are waited for.
    """
    tape = traced.tape if isinstance(traced, Factored) else traced
    op, given = tape.columns()
    codes = np.full(max(OPERATIONS) + 1, -1)
    for key in _PLAIN:
        codes[key] = NUMBER[key]
    kinds = codes[np.maximum(op, 0)]
    if target.fma:
        found, given = products(tape), given.copy()
        given[found.nodes] = found.given
        kinds[found.nodes] = np.array([NUMBER[kind] for kind in KINDS])[found.kinds]
    rows = needed_of(given, tape.asked())
    needed, ops = rows.tolist(), op[rows]
    bytes_, size = target.lanes * target.size, target.size
    place = np.zeros(len(op) + 1, dtype=np.int64)
    place[rows] = bytes_ * np.arange(len(rows))
    partners = _partners(tape, rows[is_one_of(ops, (ca.OP_SIN, ca.OP_COS))].tolist())
    spare = bytes_ * len(needed)  # for the sine or cosine that nobody wants
    numbers = Constants()
    words = np.zeros((len(needed), 1 + WORDS), dtype=np.int64)
    words[:, 0], words[:, 1], words[:, 2:] = kinds[rows], place[rows], place[given[rows]]
    more: list[tuple[float, tuple[int, ...]]] = []  # (after which row, instruction)
    dropped: set[int] = set()
    special = (ops < 0) | is_one_of(ops, LONG | {ca.OP_POW, ca.OP_CONSTPOW})
    for k in np.flatnonzero(special).tolist():
        n, result = needed[k], int(words[k, 1])
        code, left, right = tape.nodes[n]
        if code == CONST:
            words[k] = (NUMBER["const"], result, numbers.place(left), 0, 0)
        elif code == INPUT:
            words[k] = (NUMBER["input"], result, int(left) * target.lanes, int(right) * size, 0)
        elif tape.mapped(n) is None:  # a power of few factors
            some = _power(result, int(place[int(left)]), tape.small_power(int(right)), numbers)
            words[k] = some[0]
            more += [(k + (j + 1) / (len(some) + 1), row) for j, row in enumerate(some[1:])]
        elif OPERATIONS[code].libm == SINCOS:
            if n in dropped:
                words[k, 0] = -1
                continue
            other = partners.get(n)
            beside = spare if other is None else int(place[other])
            if other is not None:
                dropped.add(other)
            sine, cosine = (result, beside) if code == ca.OP_SIN else (beside, result)
            words[k] = (NUMBER[SINCOS], sine, place[int(left)], cosine, 0)
        else:
            arity, name = len(tape.arguments(n)), OPERATIONS[code].libm
            last = place[int(right)] if arity == 2 else place[int(left)]
            words[k] = (NUMBER[f"map{arity}"], result, place[int(left)], last, 8 * SLOT[name])
    order = np.arange(len(words), dtype=float)
    kept = words[:, 0] >= 0
    words, order = words[kept], order[kept]
    if more:
        order = np.concatenate([order, [at for at, _ in more]])
        first = np.argsort(order, kind="stable")
        words, order = np.concatenate([words, np.array([row for _, row in more])])[first], order[first]
    # What a power takes stays in its order, side by side: its products are of one operation.
    level = _levels(given, rows, levels)[order.astype(np.int64)]
    words = words[np.argsort(level * len(NUMBER) + words[:, 0], kind="stable")]
    outputs = [place[nodes] for nodes in tape.outputs]
    table, count, dots = np.array(numbers.values or [0.0]), len(needed) + 1, words[:0]
    if isinstance(traced, Factored):
        outputs, dots, pairs = _dots(traced, outputs, bytes_ * count, bytes_, 8 * len(table))
        table, count = np.concatenate([table, pairs]), count + len(dots)
    sizes = [len(nodes) for nodes in outputs]
    ends = np.zeros((sum(sizes) + 1, 1 + WORDS), dtype=np.int64)
    ends[:, 0] = NUMBER["output"]
    ends[-1, 0] = NUMBER["end"]
    ends[:-1, 1] = np.concatenate(outputs) if outputs else 0
    ends[:-1, 2] = np.repeat(len(tape.input_sizes) + np.arange(len(sizes)), sizes) * target.lanes
    ends[:-1, 3] = [i * size for count in sizes for i in range(count)]
    return Instructions(_runs(np.concatenate([words, dots, ends])), table, count)


def _dots(
    factored: Factored, tables: list[np.ndarray], first: int, step: int, behind: int
) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """(places of the results, instructions for the products, their pairs of places).

    `tables` are the places of A, B₁, …, C₁, …; results have places from `first` on. A pair is as long as a constant,
    and pairs begin so many bytes behind the first of these.
    """
    n = factored.order
    A, results, rows, pairs = tables[0].reshape(n, n), list[np.ndarray](), list[np.ndarray](), list[np.ndarray]()
    sums: list[tuple[int, ...]] = []
    for k, m in enumerate(factored.widths):
        B, table = tables[1 + k].reshape(n, m), np.zeros((n, m), dtype=np.int64)
        for j, support in enumerate(factored.supports(k)):
            own, count = np.empty((n, len(support), 2), dtype=np.int32), len(support)
            own[:, :, 0], own[:, :, 1] = A[:, support], B[support, j]
            some = np.zeros((n, 1 + WORDS), dtype=np.int64)
            some[:, 0], some[:, 3] = NUMBER["dot"], count
            some[:, 1], some[:, 2] = first + step * np.arange(n), behind + 8 * count * np.arange(n)
            table[:, j] = some[:, 1]
            first, behind = first + step * n, behind + 8 * count * n
            rows.append(some)
            pairs.append(own.ravel())
        for at in factored.added(k):
            more = int(tables[1 + len(factored.widths) + k][at])
            if not factored.supports(k)[at % m]:
                table.flat[at] = more
            else:
                sums.append((NUMBER[ca.OP_ADD], int(table.flat[at]), int(table.flat[at]), more, 0))
        results.append(table.ravel())
    instructions = np.concatenate([*rows, np.array(sums, dtype=np.int64).reshape(-1, 1 + WORDS)])
    return [*results, tables[0]], instructions, np.concatenate(pairs).view(np.float64)


def _levels(given: np.ndarray, rows: np.ndarray, address: int) -> np.ndarray:
    """Of each of the rows: one more than the highest of its operands'."""
    place = np.full(len(given) + 1, len(rows), dtype=np.int64)
    place[rows] = np.arange(len(rows))
    operands = np.ascontiguousarray(place[given[rows]])
    level = np.zeros(len(rows) + 1, dtype=np.int64)  # the last is that of no operand
    LEVELS_CALL(address)(operands.ctypes.data, len(rows), level.ctypes.data)
    return level[:-1]


def _runs(words: np.ndarray) -> np.ndarray:
    """Rows (operation, result, a, b, c) as runs."""
    begins = np.flatnonzero(np.diff(words[:, 0], prepend=-1))
    counts = np.diff(begins, append=len(words))
    run = np.repeat(np.arange(len(begins)), counts)
    found = np.zeros(WORDS * len(words) + HEAD * len(begins), dtype=np.int32)
    heads = WORDS * begins + HEAD * np.arange(len(begins))
    found[heads], found[heads + 1] = words[begins, 0], counts
    places = WORDS * np.arange(len(words)) + HEAD * (run + 1)
    for k in range(WORDS):
        found[places + k] = words[:, 1 + k]
    return found


class Constants:
    """Numbers, each once: `place` is where one stands in the table, in bytes."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}
        self.values: list[float] = []

    def place(self, value: float) -> int:
        key = float(value).hex()
        if key not in self.places:
            self.places[key] = 8 * len(self.values)
            self.values.append(float(value))
        return self.places[key]


def _power(result: int, x: int, exponent: float | None, numbers: Constants) -> list[tuple[int, ...]]:
    """As `emit` does it: a root, or products from the left."""
    assert exponent is not None
    if exponent == 0.5:
        return [(NUMBER[ca.OP_SQRT], result, x, 0, 0)]
    if exponent == 0:
        return [(NUMBER["const"], result, numbers.place(1.0), 0, 0)]
    if exponent == 1:
        return [(NUMBER[ca.OP_FMIN], result, x, x, 0)]
    first = (NUMBER[ca.OP_MUL], result, x, x, 0)
    return [first, *[(NUMBER[ca.OP_MUL], result, result, x, 0)] * (int(exponent) - 2)]


def _partners(tape: Tape, some: list[int]) -> dict[int, int]:
    """The cosine of a sine, and the sine of a cosine, where that comes first: of these nodes, which are such."""
    found: dict[int, int] = {}
    partners: dict[int, int] = {}
    for n in some:
        a = int(tape.nodes[n][1])
        if a in found:
            partners[found[a]] = n
        else:
            found[a] = n
    return partners


#: level[k] = 1 + the highest level of the operands of k
LEVELS = """
define void @levels(ptr %operands, i64 %count, ptr %level) {
entry:
  %none = icmp eq i64 %count, 0
  br i1 %none, label %done, label %each
each:
  %k = phi i64 [0, %entry], [%after, %each]
  %own = getelementptr [3 x i64], ptr %operands, i64 %k
  %at_b = getelementptr i64, ptr %own, i64 1
  %at_c = getelementptr i64, ptr %own, i64 2
  %a = load i64, ptr %own
  %b = load i64, ptr %at_b
  %c = load i64, ptr %at_c
  %to_a = getelementptr i64, ptr %level, i64 %a
  %to_b = getelementptr i64, ptr %level, i64 %b
  %to_c = getelementptr i64, ptr %level, i64 %c
  %of_a = load i64, ptr %to_a
  %of_b = load i64, ptr %to_b
  %of_c = load i64, ptr %to_c
  %is_b = icmp sgt i64 %of_b, %of_a
  %of_ab = select i1 %is_b, i64 %of_b, i64 %of_a
  %is_c = icmp sgt i64 %of_c, %of_ab
  %highest = select i1 %is_c, i64 %of_c, i64 %of_ab
  %above = add i64 %highest, 1
  %to_k = getelementptr i64, ptr %level, i64 %k
  store i64 %above, ptr %to_k
  %after = add i64 %k, 1
  %over = icmp eq i64 %after, %count
  br i1 %over, label %done, label %each
done:
  ret void
}
"""


def text(target: Target) -> str:
    """The module of the loop: its function is `body`. Beside it is `levels`."""
    code = Code(target)
    for k, name in enumerate(("words", "constants")):
        code.do(f"%{name} = load ptr, ptr {code.step('%libm', len(LIBM) + k, 'ptr')}")
    code.do("%raw = ptrtoint ptr %memory to i64")
    code.do(f"%up = add i64 %raw, {code.bytes - 1}")
    code.do(f"%down = and i64 %up, {-code.bytes}")
    code.do("%scratch = inttoptr i64 %down to ptr")
    code.do("br label %next")
    code.label("next")
    runs = [k for key, k in NUMBER.items() if key != "end"]
    ends = [f"[%after, %{'one' if key in _USUAL else 'do'}{k}]" for key, k in NUMBER.items() if key != "end"]
    code.do(f"%at = phi ptr [%words, %entry], {', '.join(ends)}")
    for k, name in enumerate(("op", "count")):
        code.do(f"%{name} = load i32, ptr {code.step('%at', k, 'i32')}")
    code.do(f"%first = getelementptr i32, ptr %at, i64 {HEAD}")
    code.do("%long = sext i32 %count to i64")
    code.do(f"%after = getelementptr [{WORDS} x i32], ptr %first, i64 %long")
    targets = " ".join(f"i32 {k}, label %do{k}" for k in runs)
    code.do(f"switch i32 %op, label %stop [{targets}]")
    for key, k in NUMBER.items():
        if key == "end":
            continue
        many = key in _USUAL
        code.label(f"do{k}")
        others = f", [%several{k}, %many{k}]" if many else ""
        code.do(f"%own{k} = phi ptr [%first, %next], [%then{k}, %{'one' if many else 'do'}{k}]{others}")
        if many:
            code.do(f"%several{k} = getelementptr i32, ptr %own{k}, i64 {WORDS * TOGETHER}")
            code.do(f"%enough{k} = icmp ult ptr %several{k}, %after")  # one is left for below
            code.do(f"br i1 %enough{k}, label %many{k}, label %one{k}")
            code.label(f"many{k}")
            for j in range(TOGETHER):
                _read(code, key, f"%own{k}", WORDS * j)
            code.do(f"br label %do{k}")
            code.label(f"one{k}")
        _read(code, key, f"%own{k}", 0)
        code.do(f"%then{k} = getelementptr i32, ptr %own{k}, i64 {WORDS}")
        code.do(f"%over{k} = icmp eq ptr %then{k}, %after")
        code.do(f"br i1 %over{k}, label %next, label %do{k}")
    code.label("stop")
    head = f"define void @body(ptr noalias %rows, ptr noalias %libm, ptr noalias %memory) {code.attributes()}"
    parts = [code.function(head), _dot_text(target), LEVELS, support_text(target)]
    return "\n".join([f'target triple = "{target.triple}"', *parts])


def _dot_text(target: Target) -> str:
    """`@dot(scratch, pairs, n, into)`: −Σ x y of n pairs of places, as `factored_rows` adds them."""
    code = Code(target)
    code.do("%none = icmp eq i64 %n, 0")
    code.do("br i1 %none, label %done, label %each")
    code.label("each")
    code.do("%k = phi i64 [0, %entry], [%next, %each]")
    sum_, at = code.name(), len(code.lines)
    pair = code.step("%pairs", "%k", "i64")
    x, y = (_vector(code, code.add(f"sext i32 {code.fetch('i32', pair, j)} to i64")) for j in range(2))
    new = code.fused(FROM, x, y, sum_)
    code.lines.insert(at, f"  {sum_} = phi {code.v} [zeroinitializer, %entry], [{new}, %each]")
    code.do("%next = add i64 %k, 1")
    code.do("%more = icmp slt i64 %next, %n")
    code.do("br i1 %more, label %each, label %done")
    code.label("done")
    code.do(f"%last = phi {code.v} [zeroinitializer, %entry], [{new}, %each]")
    code.do(f"store {code.v} %last, ptr %into, align {code.bytes}")
    parameters = "ptr %scratch, ptr %pairs, i64 %n, ptr %into"
    return code.function(f"define internal void @dot({parameters}) noinline {code.attributes()}")


def _read(code: Code, key: int | str, own: str, offset: int) -> None:
    """Do the instruction so many words behind `own`."""
    words = [code.add(f"load i32, ptr {code.step(own, offset + j, 'i32')}") for j in range(WORDS)]
    result, a, b, c = (code.add(f"sext i32 {word} to i64") for word in words)
    _instruction(code, key, code.step("%scratch", result), a, b, c)


def _vector(code: Code, operand: str) -> str:
    return code.add(f"load {code.v}, ptr {code.step('%scratch', operand)}, align {code.bytes}")


def _instruction(code: Code, key: int | str, into: str, a: str, b: str, c: str) -> None:
    """What one instruction does."""
    if isinstance(key, int):
        code.do(f"store {code.v} {_operation(code, key, a, b)}, ptr {into}, align {code.bytes}")
    elif key in _FUSED:
        if not code.target.fma:
            return
        value = code.fused(key, *(_vector(code, operand) for operand in (a, b, c)))
        code.do(f"store {code.v} {value}, ptr {into}, align {code.bytes}")
    elif key == "const":
        value = code.add(f"load double, ptr {code.step('%constants', a)}")
        if code.number == "float":
            value = code.add(f"fptrunc double {value} to float")
        for lane in range(code.target.lanes):
            code.do(f"store {code.number} {value}, ptr {code.step(into, lane, code.number)}")
    elif key in ("input", "output"):
        for lane in range(code.target.lanes):
            _transfer(code, lane, key == "input", into, a, b)
    elif key == SINCOS:
        x, cosine = code.step("%scratch", a), code.step("%scratch", b)
        code.do(f"call void @sincos_map(ptr {x}, ptr {into}, ptr {cosine}, i64 1, ptr %libm)")
    elif key == "dot":
        pairs = code.step("%constants", a)
        code.do(f"call void @dot(ptr %scratch, ptr {pairs}, i64 {b}, ptr {into})")
    elif key in ("map1", "map2"):
        function = code.add(f"load ptr, ptr {code.step('%libm', c)}")
        given = [code.step("%scratch", operand) for operand in (a, b)[: int(key[-1])]]
        memory = ", ".join(f"ptr {x}" for x in (*given, into))
        code.do(f"call void @{key}(ptr {function}, {memory}, i64 {code.target.lanes})")


def _transfer(code: Code, lane: int, reads: bool, into: str, a: str, b: str) -> None:
    """A number of one state, from or to its row: `a` counts rows before the port's, `b` is the place in the row."""
    cell = code.step(code.step("%rows", a, "ptr"), lane, "ptr")
    outside = code.step(code.add(f"load ptr, ptr {cell}"), b)
    inside = code.step(into, lane, code.number)
    source, sink = (outside, inside) if reads else (inside, outside)
    value = code.add(f"load {code.number}, ptr {source}, align {code.size}")
    code.do(f"store {code.number} {value}, ptr {sink}, align {code.size}")


def _operation(code: Code, op: int, a: str, b: str) -> str:
    """An operation of the table on vectors in memory; truths are the numbers 1 and 0."""
    same = same_texts(code)
    loaded: dict[str, str] = {}

    def operand(key: str) -> str:
        if key not in loaded:
            if key in "ab":
                loaded[key] = _vector(code, a if key == "a" else b)
            else:
                loaded[key] = code.add(f"fcmp une {code.v} {operand('ab'['pq'.index(key)])}, zeroinitializer")
        return loaded[key]

    results: list[str] = []
    for line in OPERATIONS[op].llvm:
        line = filled(line, same)
        used = {key: operand(key) for key in "abpq" if "{" + key + "}" in line}
        results.append(code.add(line.format(*results, **used)))
    if not OPERATIONS[op].is_truth:
        return results[-1]
    return code.add(f"select {code.mask} {results[-1]}, {code.v} {code.const(1.0)}, {code.v} zeroinitializer")


__all__ = ["SLOWER", "Instructions", "encode", "text"]
