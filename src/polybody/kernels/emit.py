"""From a tape to LLVM text: one SIMD instruction (or a few) a node, `lanes` states side by side.

`emit_nodes` writes the straight-line code of one tape between *ports*, which say where inputs come from and where
outputs go: rows of states in the caller's arrays (`rows`), or vectors in scratch memory (`scan`).

Multiplications and additions carry the `contract` flag alone: LLVM may fuse them, nothing else, so that NaN and
infinity go their way. `fmin` and `fmax` return NaN where an argument is NaN (C's would drop it): a wrong input must not
come out as a number.
"""

from __future__ import annotations

from typing import Protocol

import casadi as ca

from polybody.errors import InputError
from polybody.kernels import sincos
from polybody.kernels.tape import CONST, INPUT, SINCOS, Tape, Wave, schedule
from polybody.kernels.target import Target

# Functions called through a table of addresses, so that object code holds no external symbol. The order is the ABI.
LIBM = (
    "sin", "cos", "tan", "asin", "acos", "atan", "exp", "log", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
    "expm1", "log1p", "erf", "pow", "fmod", "remainder", "atan2", "hypot",
)  # fmt: skip
SLOT = {name: k for k, name in enumerate(LIBM)}
COMPARISONS = {ca.OP_LT: "olt", ca.OP_LE: "ole", ca.OP_EQ: "oeq", ca.OP_NE: "une"}
ARITHMETIC = {ca.OP_ADD: "fadd contract", ca.OP_SUB: "fsub contract", ca.OP_MUL: "fmul contract", ca.OP_DIV: "fdiv"}
INTRINSICS1 = {ca.OP_SQRT: "sqrt", ca.OP_FABS: "fabs", ca.OP_FLOOR: "floor", ca.OP_CEIL: "ceil"}


class Ports(Protocol):
    """Where a tape's inputs come from and its outputs go."""

    def read(self, code: Code, argument: int, element: int) -> str: ...

    def write(self, code: Code, output: int, element: int, value: str) -> None: ...


class Code:
    """A function body being written."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.v = f"<{target.lanes} x double>"
        self.mask = f"<{target.lanes} x i1>"
        self.bytes = 8 * target.lanes
        self.lines: list[str] = []
        self.allocas: list[str] = []
        self.count = 0

    def name(self) -> str:
        self.count += 1
        return f"%n{self.count}"

    def add(self, right: str) -> str:
        """One instruction with a result; its name."""
        name = self.name()
        self.lines.append(f"  {name} = {right}")
        return name

    def do(self, line: str) -> None:
        self.lines.append("  " + line)

    def const(self, value: float) -> str:
        return "zeroinitializer" if str(value) == "0.0" else sincos.splat(value, self.target.lanes)

    def buffer(self, vectors: int) -> str:
        """Memory of the stack frame for so many vectors."""
        name = self.name()
        self.allocas.append(f"  {name} = alloca [{vectors} x {self.v}], align 64")
        return name

    def at(self, base: str, index: int) -> str:
        """The address of one vector of a buffer."""
        return base if index == 0 else self.add(f"getelementptr i8, ptr {base}, i64 {index * self.bytes}")

    def load(self, base: str, index: int) -> str:
        return self.add(f"load {self.v}, ptr {self.at(base, index)}, align {self.bytes}")

    def store(self, value: str, base: str, index: int) -> None:
        self.do(f"store {self.v} {value}, ptr {self.at(base, index)}, align {self.bytes}")


class _Nodes:
    """Emits the nodes of one tape in their scheduled order."""

    def __init__(self, code: Code, tape: Tape, ports: Ports) -> None:
        self.code, self.tape, self.ports = code, tape, ports
        self.values: dict[int, str] = {}
        self.masks: dict[int, str] = {}
        self.places: dict[int, tuple[str, int]] = {}  # results of mapped functions, in memory
        self.sinks: dict[int, list[tuple[int, int]]] = {}
        for j, nodes in enumerate(tape.outputs):
            for i, node in enumerate(nodes):
                self.sinks.setdefault(node, []).append((j, i))

    def run(self) -> None:
        for step in schedule(self.tape):
            if isinstance(step, dict):
                self.wave(step)
                continue
            self.compute(step)
            self.deliver(step)
        for node in self.sinks:  # outputs that are inputs, constants or mapped results themselves
            if self.tape.nodes[node][0] < 0 or self.tape.mapped(node):
                self.deliver(node)

    def deliver(self, node: int) -> None:
        """Write a node to every output element that it is."""
        for output, element in self.sinks.get(node, ()):
            self.ports.write(self.code, output, element, self.value(node))

    def value(self, node: int) -> str:
        op, a, b = self.tape.nodes[node]
        if op == CONST:
            return self.code.const(a)
        if op == INPUT:
            return self.ports.read(self.code, int(a), int(b))
        if node in self.places:
            return self.code.load(*self.places[node])
        if node not in self.values:  # a comparison, so far only a mask
            one, zero = self.code.const(1.0), self.code.const(0.0)
            v = self.code.v
            self.values[node] = self.code.add(f"select {self.code.mask} {self.masks[node]}, {v} {one}, {v} {zero}")
        return self.values[node]

    def truth(self, node: int) -> str:
        """A number read as true or false."""
        if node not in self.masks:
            mask = self.code.add(f"fcmp une {self.code.v} {self.value(node)}, zeroinitializer")
            if self.tape.nodes[node][0] < 0:
                return mask
            self.masks[node] = mask
        return self.masks[node]

    def compute(self, node: int) -> None:
        op, left, right = self.tape.nodes[node]
        code, v, n = self.code, self.code.v, self.code.target.lanes
        a, b = int(left), int(right)
        if op in ARITHMETIC:
            self.values[node] = code.add(f"{ARITHMETIC[op]} {v} {self.value(a)}, {self.value(b)}")
        elif op == ca.OP_NEG:
            self.values[node] = code.add(f"fneg {v} {self.value(a)}")
        elif op == ca.OP_TWICE:
            x = self.value(a)
            self.values[node] = code.add(f"fadd contract {v} {x}, {x}")
        elif op == ca.OP_INV:
            self.values[node] = code.add(f"fdiv {v} {code.const(1.0)}, {self.value(a)}")
        elif op in INTRINSICS1:
            self.values[node] = code.add(f"call {v} @llvm.{INTRINSICS1[op]}.v{n}f64({v} {self.value(a)})")
        elif op in COMPARISONS:
            self.masks[node] = code.add(f"fcmp {COMPARISONS[op]} {v} {self.value(a)}, {self.value(b)}")
        elif op == ca.OP_NOT:
            self.masks[node] = code.add(f"fcmp oeq {v} {self.value(a)}, zeroinitializer")
        elif op in (ca.OP_AND, ca.OP_OR):
            word = "and" if op == ca.OP_AND else "or"
            self.masks[node] = code.add(f"{word} {code.mask} {self.truth(a)}, {self.truth(b)}")
        elif op == ca.OP_IF_ELSE_ZERO:
            taken = self.value(b)
            self.values[node] = code.add(f"select {code.mask} {self.truth(a)}, {v} {taken}, {v} zeroinitializer")
        elif op in (ca.OP_FMIN, ca.OP_FMAX):
            self.values[node] = self.extremum("olt" if op == ca.OP_FMIN else "ogt", self.value(a), self.value(b))
        elif op == ca.OP_COPYSIGN:
            x, y = self.value(a), self.value(b)
            self.values[node] = code.add(f"call {v} @llvm.copysign.v{n}f64({v} {x}, {v} {y})")
        elif op == ca.OP_SIGN:
            self.values[node] = self.sign(self.value(a))
        elif op in (ca.OP_POW, ca.OP_CONSTPOW):
            self.values[node] = self.power(self.value(a), self.tape.small_power(b))
        else:
            raise InputError(f"CasADi operation {op} is not one a kernel can compile")

    def extremum(self, order: str, a: str, b: str) -> str:
        code, v = self.code, self.code.v
        first = code.add(f"fcmp {order} {v} {a}, {b}")
        best = code.add(f"select {code.mask} {first}, {v} {a}, {v} {b}")
        unordered = code.add(f"fcmp uno {v} {a}, {b}")
        return code.add(f"select {code.mask} {unordered}, {v} {code.const(float('nan'))}, {v} {best}")

    def sign(self, x: str) -> str:
        """−1, 1, or x itself where x is zero or NaN."""
        code, v, n = self.code, self.code.v, self.code.target.lanes
        unit = code.add(f"call {v} @llvm.copysign.v{n}f64({v} {code.const(1.0)}, {v} {x})")
        decided = code.add(f"fcmp one {v} {x}, zeroinitializer")
        return code.add(f"select {code.mask} {decided}, {v} {unit}, {v} {x}")

    def power(self, x: str, exponent: float | None) -> str:
        code, v, n = self.code, self.code.v, self.code.target.lanes
        if exponent == 0.5:
            return code.add(f"call {v} @llvm.sqrt.v{n}f64({v} {x})")
        if exponent == 0:
            return code.const(1.0)
        result = x
        for _ in range(int(exponent or 1) - 1):
            result = code.add(f"fmul {v} {result}, {x}")
        return result

    def wave(self, wave: Wave) -> None:
        for name, calls in wave.items():
            columns = [self.code.buffer(len(calls)) for _ in range(len(next(iter(calls))))]
            for k, arguments in enumerate(calls):
                for column, node in zip(columns, arguments, strict=True):
                    self.code.store(self.value(node), column, k)
            if name == SINCOS:
                self.call_sincos(columns[0], calls)
            else:
                self.call_libm(name, columns, calls)

    def call_sincos(self, arguments: str, calls: dict[tuple[int, ...], list[int]]) -> None:
        sines, cosines = self.code.buffer(len(calls)), self.code.buffer(len(calls))
        self.code.do(f"call void @sincos_map(ptr {arguments}, ptr {sines}, ptr {cosines}, i64 {len(calls)}, ptr %libm)")
        for k, results in enumerate(calls.values()):
            for node in results:
                self.places[node] = (sines if self.tape.nodes[node][0] == ca.OP_SIN else cosines, k)

    def call_libm(self, name: str, columns: list[str], calls: dict[tuple[int, ...], list[int]]) -> None:
        code = self.code
        results = code.buffer(len(calls))
        slot = code.add(f"getelementptr ptr, ptr %libm, i64 {SLOT[name]}")
        function = code.add(f"load ptr, ptr {slot}")
        memory = ", ".join(f"ptr {c}" for c in (*columns, results))
        code.do(f"call void @map{len(columns)}(ptr {function}, {memory}, i64 {len(calls) * code.target.lanes})")
        for k, nodes in enumerate(calls.values()):
            for node in nodes:
                self.places[node] = (results, k)


def emit_nodes(code: Code, tape: Tape, ports: Ports) -> None:
    """Write the straight-line code of a tape."""
    _Nodes(code, tape, ports).run()


def support_text(target: Target) -> str:
    """What every module needs beside its functions: the mapped loops and the intrinsics."""
    n = target.lanes
    v = f"<{n} x double>"
    declared = [f"declare {v} @llvm.{name}.v{n}f64({v})" for name in ("sqrt", "fabs", "floor", "ceil")]
    declared.append(f"declare {v} @llvm.copysign.v{n}f64({v}, {v})")
    declared.append(f"declare {v} @llvm.fma.v{n}f64({v}, {v}, {v})")
    return (
        "\n".join(declared)
        + _map_text(1)
        + _map_text(2)
        + sincos.loop_text(target, SLOT["sin"], SLOT["cos"])
        + sincos.MODULE_TAIL
    )


def _map_text(arity: int) -> str:
    """`@mapN(f, x…, y, n)`: y_i = f(x_i…) for n numbers, one at a time."""
    parameters = ", ".join(f"ptr %x{k}" for k in range(arity))
    loads = "".join(
        f"  %p{k} = getelementptr double, ptr %x{k}, i64 %i\n  %a{k} = load double, ptr %p{k}\n" for k in range(arity)
    )
    arguments = ", ".join(f"double %a{k}" for k in range(arity))
    return f"""
define internal void @map{arity}(ptr %f, {parameters}, ptr %y, i64 %n) noinline {{
entry:
  br label %head
head:
  %i = phi i64 [0, %entry], [%next, %head]
{loads}  %r = call double %f({arguments})
  %py = getelementptr double, ptr %y, i64 %i
  store double %r, ptr %py
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %head, label %done
done:
  ret void
}}
"""
