"""A tape run as it is: the fast tier, which answers at once while optimised code is still being compiled.

One machine-code loop serves every tape. It reads instructions of five 32-bit words, (operation, result, a, b, c), and
computes each on `lanes` states side by side; operands are vectors in scratch memory, given by their offsets in bytes,
and a place is used again once its value is no longer needed. It is a body like any other (`rows`): whatever calls
compiled kernels calls it alike. Where the instructions are stands behind libm's table in the context.

It computes what compiled code computes, by the same instructions in the same rounding (`tape.fused`, `operations`,
`sincos`), so nobody can tell from the numbers which tier answered. A state costs about ten times as much.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from polybody.kernels.code import Code
from polybody.kernels.emit import filled, same_texts, support_text
from polybody.kernels.operations import LIBM, OPERATIONS, SINCOS, SLOT
from polybody.kernels.tape import CONST, FROM, INPUT, MINUS, PLUS, Tape, fused, reachable
from polybody.kernels.target import Target

WORDS = 5  # of an instruction
SLOWER = 10  # than compiled code, about

_PLAIN = [op for op, operation in OPERATIONS.items() if operation.llvm]
_FUSED = (PLUS, MINUS, FROM)
_OTHERS = ("end", "input", "output", "const", SINCOS, "map1", "map2")
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


class _Encoder:
    """Instructions of a tape, with the place of every value."""

    def __init__(self, tape: Tape, target: Target) -> None:
        self.tape, self.lanes, self.size = tape, target.lanes, target.size
        self.bytes = target.lanes * target.size
        self.words: list[int] = []
        self.constants: dict[str, int] = {}
        self.numbers: list[float] = []
        self.place: dict[int, int] = {}
        self.free: list[int] = []
        self.count = 0

    def new(self) -> int:
        """A place, in bytes."""
        if self.free:
            return self.free.pop()
        self.count += 1
        return (self.count - 1) * self.bytes

    def put(self, key: int | str, result: int, a: int = 0, b: int = 0, c: int = 0) -> None:
        self.words += (NUMBER[key], result, a, b, c)

    def run(self) -> Instructions:
        tape, place = self.tape, self.place
        needed = reachable(tape)
        last: dict[int, int] = {}
        for n in needed:
            for a in tape.arguments(n):
                last[a] = n
        sinks: dict[int, list[tuple[int, int]]] = {}
        for j, nodes in enumerate(tape.outputs):
            for i, node in enumerate(nodes):
                sinks.setdefault(node, []).append((j, i))
        partners = _partners(tape, needed)
        for n in needed:
            if n not in place:
                self.node(n, partners)
            for j, i in sinks.get(n, ()):
                self.put("output", place[n], (len(tape.input_sizes) + j) * self.lanes, i * self.size)
            if n not in last:
                self.free.append(place[n])
            for a in set(tape.arguments(n)):
                if last[a] == n:
                    self.free.append(place[a])
        self.put("end", 0)
        return Instructions(np.array(self.words, np.int32), np.array(self.numbers or [0.0]), self.count)

    def node(self, n: int, partners: dict[int, int]) -> None:
        op, left, right = self.tape.nodes[n]
        result = self.place[n] = self.new()
        if op == CONST:
            self.put("const", result, self.constant(left))
            return
        if op == INPUT:
            self.put("input", result, int(left) * self.lanes, int(right) * self.size)
            return
        given = [self.place[a] for a in self.tape.arguments(n)]
        exponent = self.tape.small_power(int(right)) if op in (ca.OP_POW, ca.OP_CONSTPOW) else None
        if n in self.tape.products:
            self.put(self.tape.products[n][0], result, *given)
        elif exponent is not None:
            self.power(result, given[0], exponent)
        elif OPERATIONS[op].libm == SINCOS:
            other = partners.get(n)
            beside = self.new()
            if other is None:
                self.free.append(beside)
            else:
                self.place[other] = beside
            sine, cosine = (result, beside) if op == ca.OP_SIN else (beside, result)
            self.put(SINCOS, sine, given[0], cosine)
        elif OPERATIONS[op].libm:
            self.put(f"map{len(given)}", result, given[0], given[-1], 8 * SLOT[OPERATIONS[op].libm])
        else:
            self.put(op, result, *given)

    def constant(self, value: float) -> int:
        """Where a number stands in the table, in bytes."""
        key = float(value).hex()
        if key not in self.constants:
            self.constants[key] = 8 * len(self.numbers)
            self.numbers.append(float(value))
        return self.constants[key]

    def power(self, result: int, x: int, exponent: float) -> None:
        """As `emit` does it: a root, or products from the left."""
        if exponent == 0.5:
            self.put(ca.OP_SQRT, result, x)
        elif exponent == 0:
            self.put("const", result, self.constant(1.0))
        elif exponent == 1:
            self.put(ca.OP_FMIN, result, x, x)
        else:
            self.put(ca.OP_MUL, result, x, x)
            for _ in range(int(exponent) - 2):
                self.put(ca.OP_MUL, result, result, x)


def _partners(tape: Tape, needed: list[int]) -> dict[int, int]:
    """The sine of a cosine and the cosine of a sine, of those that come first."""
    found: dict[int, int] = {}
    partners: dict[int, int] = {}
    for n in needed:
        op, a, _ = tape.nodes[n]
        if op in (ca.OP_SIN, ca.OP_COS):
            if int(a) in found:
                partners[found[int(a)]] = n
            else:
                found[int(a)] = n
    return partners


def encode(tape: Tape, target: Target) -> Instructions:
    """The instructions of a tape for this processor."""
    return _Encoder(fused(tape) if target.fma else tape, target).run()


def text(target: Target) -> str:
    """The module of the loop: its function is `body`."""
    code = Code(target)
    for k, name in enumerate(("words", "constants")):
        code.do(f"%{name} = load ptr, ptr {code.step('%libm', len(LIBM) + k, 'ptr')}")
    code.do("%raw = ptrtoint ptr %memory to i64")
    code.do(f"%up = add i64 %raw, {code.bytes - 1}")
    code.do(f"%down = and i64 %up, {-code.bytes}")
    code.do("%scratch = inttoptr i64 %down to ptr")
    code.do("br label %next")
    code.label("next")
    code.do(f"%at = phi ptr [%words, %entry], {', '.join(f'[%after, %do{k}]' for k in NUMBER.values())}")
    code.do(f"%after = getelementptr i32, ptr %at, i64 {WORDS}")
    for k, name in enumerate(("op", "result", "a", "b", "c")):
        code.do(f"%{name}_word = load i32, ptr {code.step('%at', k, 'i32')}")
        code.do(f"%{name} = sext i32 %{name}_word to i64")
    code.do("%into = getelementptr i8, ptr %scratch, i64 %result")
    targets = " ".join(f"i32 {k}, label %do{k}" for k in NUMBER.values())
    code.do(f"switch i32 %op_word, label %stop [{targets}]")
    for key, k in NUMBER.items():
        code.label(f"do{k}")
        _instruction(code, key)
        code.do("br label %stop" if key == "end" else "br label %next")
    code.label("stop")
    lines = "\n".join(code.lines).replace(f"[%after, %do{NUMBER['end']}], ", "")
    code.lines = lines.splitlines()
    head = f"define void @body(ptr noalias %rows, ptr noalias %libm, ptr noalias %memory) {code.attributes()}"
    return "\n".join([f'target triple = "{target.triple}"', code.function(head), support_text(target)])


def _vector(code: Code, operand: str) -> str:
    return code.add(f"load {code.v}, ptr {code.step('%scratch', operand)}, align {code.bytes}")


def _instruction(code: Code, key: int | str) -> None:
    """What one instruction does."""
    if isinstance(key, int):
        code.do(f"store {code.v} {_operation(code, key)}, ptr %into, align {code.bytes}")
    elif key in _FUSED:
        if not code.target.fma:
            return
        value = code.fused(key, *(_vector(code, operand) for operand in ("%a", "%b", "%c")))
        code.do(f"store {code.v} {value}, ptr %into, align {code.bytes}")
    elif key == "const":
        value = code.add(f"load double, ptr {code.step('%constants', '%a')}")
        if code.number == "float":
            value = code.add(f"fptrunc double {value} to float")
        for lane in range(code.target.lanes):
            code.do(f"store {code.number} {value}, ptr {code.step('%into', lane, code.number)}")
    elif key in ("input", "output"):
        for lane in range(code.target.lanes):
            _transfer(code, lane, key == "input")
    elif key == SINCOS:
        x, cosine = code.step("%scratch", "%a"), code.step("%scratch", "%b")
        code.do(f"call void @sincos_map(ptr {x}, ptr %into, ptr {cosine}, i64 1, ptr %libm)")
    elif key in ("map1", "map2"):
        function = code.add(f"load ptr, ptr {code.step('%libm', '%c')}")
        given = [code.step("%scratch", operand) for operand in ("%a", "%b")[: int(key[-1])]]
        memory = ", ".join(f"ptr {x}" for x in (*given, "%into"))
        code.do(f"call void @{key}(ptr {function}, {memory}, i64 {code.target.lanes})")


def _transfer(code: Code, lane: int, reads: bool) -> None:
    """A number of one state, from or to its row: `a` counts rows before the port's, `b` is the place in the row."""
    cell = code.step(code.step("%rows", "%a", "ptr"), lane, "ptr")
    outside = code.step(code.add(f"load ptr, ptr {cell}"), "%b")
    inside = code.step("%into", lane, code.number)
    source, sink = (outside, inside) if reads else (inside, outside)
    value = code.add(f"load {code.number}, ptr {source}, align {code.size}")
    code.do(f"store {code.number} {value}, ptr {sink}, align {code.size}")


def _operation(code: Code, op: int) -> str:
    """An operation of the table on vectors in memory; truths are the numbers 1 and 0."""
    same = same_texts(code)
    loaded: dict[str, str] = {}

    def operand(key: str) -> str:
        if key not in loaded:
            if key in "ab":
                loaded[key] = _vector(code, f"%{key}")
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
