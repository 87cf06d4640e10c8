"""From a tape to LLVM text: one SIMD instruction (or a few) a node, `lanes` states side by side.

`emit_nodes` writes the straight-line code of one tape between *ports*, which say where inputs come from and where
outputs go: rows of states in the caller's arrays (`rows`), or vectors in scratch memory (`scan`). What an operation is
in LLVM's words stands in `operations`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Protocol

import casadi as ca

from polybody.kernels import sincos
from polybody.kernels.code import Code
from polybody.kernels.frame import Frame
from polybody.kernels.operations import OPERATIONS, SINCOS, SLOT
from polybody.kernels.schedule import schedule
from polybody.kernels.tape import CONST, INPUT, Tape, Wave, fused
from polybody.kernels.target import Target

Calls = dict[tuple[int, ...], list[int]]


class Ports(Protocol):
    """Where a tape's inputs come from and its outputs go. Those with `in_memory` read by a load, not remembered."""

    def read(self, code: Code, argument: int, element: int) -> str: ...

    def write(self, code: Code, output: int, element: int, value: str) -> None: ...


class Nodes:
    """Emits the nodes of one tape in their scheduled order."""

    def __init__(self, code: Code, tape: Tape, ports: Ports, frame: Frame | None = None) -> None:
        self.code, self.tape, self.ports, self.frame = code, tape, ports, frame
        self.values: dict[int, str] = {}
        self.truths: dict[int, str] = {}
        self.places: dict[int, tuple[str, int]] = {}  # results of mapped functions, in memory
        self.sinks: dict[int, list[tuple[int, int]]] = {}
        for j, nodes in enumerate(tape.outputs):
            for i, node in enumerate(nodes):
                self.sinks.setdefault(node, []).append((j, i))
        same = same_texts(code)
        self.texts = {op: [filled(line, same) for line in OPERATIONS[op].llvm] for op in OPERATIONS}

    def run(self, steps: Iterable[int | Wave]) -> None:
        for step in steps:
            if isinstance(step, dict):
                self.wave(step)
                continue
            self.compute(step)
            self.keep(step)
            self.deliver(step)

    def finish(self) -> None:
        """Write the outputs that are inputs, constants or mapped results themselves."""
        for node in self.sinks:
            if self.tape.nodes[node][0] < 0 or self.tape.mapped(node):
                self.deliver(node)

    def restart(self, code: Code) -> None:
        """Go on in another function: nothing but what the frame holds is at hand there."""
        self.code = code
        self.values, self.truths = {}, {}

    def deliver(self, node: int) -> None:
        """Write a node to every output element that it is."""
        for output, element in self.sinks.get(node, ()):
            self.ports.write(self.code, output, element, self.value(node))

    def keep(self, node: int) -> None:
        """Put a value where later functions find it, if they need it."""
        if self.frame is not None and node in self.frame.outlives and node not in self.frame.slots:
            self.code.store(self.value(node), "%frame", self.frame.slot(node))

    def value(self, node: int) -> str:
        op, a, b = self.tape.nodes[node]
        if op == CONST:
            return self.code.constant(a)
        if node in self.values:
            return self.values[node]
        if self.frame is not None and node in self.frame.slots:
            self.values[node] = self.code.load("%frame", self.frame.slots[node])
        elif op == INPUT and getattr(self.ports, "in_memory", False):
            return self.ports.read(self.code, int(a), int(b))
        elif op == INPUT:
            self.values[node] = self.ports.read(self.code, int(a), int(b))
            self.keep(node)
        elif node in self.places:
            return self.code.load(*self.places[node])
        else:  # a comparison, so far only a truth
            one, zero, v = self.code.const(1.0), self.code.const(0.0), self.code.v
            self.values[node] = self.code.add(f"select {self.code.mask} {self.truths[node]}, {v} {one}, {v} {zero}")
        return self.values[node]

    def truth(self, node: int) -> str:
        """A number read as true or false."""
        if node not in self.truths:
            truth = self.code.add(f"fcmp une {self.code.v} {self.value(node)}, zeroinitializer")
            if self.tape.nodes[node][0] < 0:
                return truth
            self.truths[node] = truth
        return self.truths[node]

    def compute(self, node: int) -> None:
        if node in self.tape.products:
            kind, *factors = self.tape.products[node]
            x, y, z = (self.value(n) for n in factors)
            self.values[node] = self.code.fused(kind, x, y, z)
            return
        op, left, right = self.tape.nodes[node]
        a, b = int(left), int(right)
        exponent = self.tape.small_power(b) if op in (ca.OP_POW, ca.OP_CONSTPOW) else None
        if exponent is not None:
            self.values[node] = self.power(self.value(a), exponent)
            return
        results: list[str] = []
        for text in self.texts[op]:
            given = {"a": a, "b": b, "p": a, "q": b}
            used = {
                key: self.value(at) if key in "ab" else self.truth(at)
                for key, at in given.items()
                if "{" + key + "}" in text
            }
            results.append(self.code.add(text.format(*results, **used)))
        (self.truths if OPERATIONS[op].is_truth else self.values)[node] = results[-1]

    def power(self, x: str, exponent: float) -> str:
        """A root, or products: their roundings are not contracted."""
        if exponent == 0.5:
            return self.code.add(self.texts[ca.OP_SQRT][0].format(a=x))
        if exponent == 0:
            return self.code.const(1.0)
        result = x
        for _ in range(int(exponent) - 1):
            result = self.code.op("fmul", result, x)
        return result

    def wave(self, wave: Wave) -> None:
        for name, calls in wave.items():
            calls = self.without_known(calls) if name == SINCOS else calls
            calls = dict(sorted(calls.items(), key=lambda call: self.read_before(call[0])))
            if not calls:
                continue
            columns = [self.column(nodes) for nodes in zip(*calls, strict=True)]
            if name == SINCOS:
                self.call_sincos(columns[0], calls)
            else:
                self.call_libm(name, columns, calls)

    def read_before(self, arguments: tuple[int, ...]) -> tuple[float, ...]:
        """An order of calls: inputs as they lie in memory, then all else as it comes."""
        op, port, element = self.tape.nodes[arguments[0]]
        return (0, port, element) if op == INPUT else (1,)

    def column(self, nodes: Sequence[int]) -> str:
        """Where vectors of these nodes lie one behind the other: where they are, or a copy."""
        find = getattr(self.ports, "place", None)
        op, a, first = self.tape.nodes[nodes[0]]
        if find and all(self.tape.nodes[n] == (INPUT, a, first + k) for k, n in enumerate(nodes)) and op == INPUT:
            return find(self.code, int(a), int(first))
        column = self.code.buffer(len(nodes))
        for k, node in enumerate(nodes):
            self.code.store(self.value(node), column, k)
        return column

    def without_known(self, calls: Calls) -> Calls:
        """The calls but those of inputs whose sines and cosines the ports have already."""
        find = getattr(self.ports, "turned", None)
        rest: Calls = {}
        for arguments, results in calls.items():
            op, a, b = self.tape.nodes[arguments[0]]
            found = find(self.code, int(a), int(b)) if find and op == INPUT else None
            if found is None:
                rest[arguments] = results
            else:
                self.places |= {n: found[self.tape.nodes[n][0] == ca.OP_COS] for n in results}
        return rest

    def room(self, count: int) -> tuple[str, int]:
        """Memory for so many vectors of results: of this function, or of the frame that all functions share."""
        return (self.code.buffer(count), 0) if self.frame is None else ("%frame", self.frame.row(count))

    def call_sincos(self, arguments: str, calls: Calls) -> None:
        sines, cosines = self.room(len(calls)), self.room(len(calls))
        where = ", ".join(f"ptr {self.code.step(base, first * self.code.bytes)}" for base, first in (sines, cosines))
        self.code.do(f"call void @sincos_map(ptr {arguments}, {where}, i64 {len(calls)}, ptr %libm)")
        for k, results in enumerate(calls.values()):
            for node in results:
                base, first = sines if self.tape.nodes[node][0] == ca.OP_SIN else cosines
                self.places[node] = (base, first + k)

    def call_libm(self, name: str, columns: list[str], calls: Calls) -> None:
        code = self.code
        base, first = self.room(len(calls))
        function = code.fetch("ptr", "%libm", SLOT[name])
        memory = ", ".join(f"ptr {c}" for c in (*columns, code.step(base, first * code.bytes)))
        code.do(f"call void @map{len(columns)}(ptr {function}, {memory}, i64 {len(calls) * code.target.lanes})")
        for k, nodes in enumerate(calls.values()):
            for node in nodes:
                self.places[node] = (base, first + k)


def same_texts(code: Code) -> dict[str, str]:
    """What the words of `operations` represent that do not depend on the arguments."""
    return {"{v}": code.v, "{m}": code.mask, "{s}": code.suffix, "{zero}": "zeroinitializer",
            "{one}": code.const(1.0), "{nan}": code.const(math.nan)}  # fmt: skip


def filled(line: str, same: dict[str, str]) -> str:
    """A line of `operations` with those words replaced."""
    for key, text in same.items():
        line = line.replace(key, text)
    return line


def emit_nodes(code: Code, tape: Tape, ports: Ports) -> None:
    """Write the straight-line code of a tape."""
    tape = fused(tape) if code.target.fma else tape
    nodes = Nodes(code, tape, ports)
    nodes.run(schedule(tape, code.target.held))
    nodes.finish()


def support_text(target: Target, mapped: bool = True) -> str:
    """What every module needs beside its functions: the intrinsics and, where it uses them, the mapped loops."""
    code = Code(target)
    arities = {"sqrt": 1, "fabs": 1, "floor": 1, "ceil": 1, "copysign": 2, "fma": 3}
    declared = [
        f"declare {code.v} @llvm.{name}.{code.suffix}({', '.join([code.v] * arity)})" for name, arity in arities.items()
    ]
    if not mapped:
        return "\n".join(declared)
    maps = _map_text(target, 1) + _map_text(target, 2)
    return "\n".join(declared) + maps + sincos.loop_text(target, SLOT["sin"], SLOT["cos"]) + sincos.MODULE_TAIL


def _map_text(target: Target, arity: int) -> str:
    """`@mapN(f, x…, y, n)`: y_i = f(x_i…) for n numbers, one at a time, by a function of doubles."""
    parameters = ", ".join(f"ptr %x{k}" for k in range(arity))
    number = target.number
    single = number == "float"
    loads = "".join(
        f"  %p{k} = getelementptr {number}, ptr %x{k}, i64 %i\n  %l{k} = load {number}, ptr %p{k}\n"
        + (f"  %a{k} = fpext float %l{k} to double\n" if single else "")
        for k in range(arity)
    )
    arguments = ", ".join(f"double %{'a' if single else 'l'}{k}" for k in range(arity))
    return f"""
define internal void @map{arity}(ptr %f, {parameters}, ptr %y, i64 %n) noinline {{
entry:
  br label %head
head:
  %i = phi i64 [0, %entry], [%next, %head]
{loads}  %{"d" if single else "r"} = call double %f({arguments})
{"  %r = fptrunc double %d to float" if single else ""}
  %py = getelementptr {number}, ptr %y, i64 %i
  store {number} %r, ptr %py
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %head, label %done
done:
  ret void
}}
"""
