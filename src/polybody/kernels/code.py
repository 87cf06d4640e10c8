"""The text of an LLVM function while it is written: names for results, vectors of the target's numbers."""

from __future__ import annotations

import struct

from polybody.kernels.tape import FROM, MINUS
from polybody.kernels.target import Target


def literal(value: float, target: Target) -> str:
    """A number as LLVM writes it exactly: by the bits of a double, also where it is a float."""
    if target.number == "float" and abs(value) < float("inf"):
        value = float(target.dtype.type(value))
    return f"0x{struct.unpack('>Q', struct.pack('>d', value))[0]:016X}"


class Code:
    """A function body being written. Methods that write an instruction return the name of its result.

    `prefix`: with which the names of its constants begin, where a module has several functions with some.
    """

    def __init__(self, target: Target, prefix: str = "constant") -> None:
        self.prefix = prefix
        n = target.lanes
        self.target, self.number, self.size = target, target.number, target.size
        self.v, self.i, self.mask = f"<{n} x {self.number}>", f"<{n} x i{8 * self.size}>", f"<{n} x i1>"
        self.suffix = f"v{n}f{8 * self.size}"  # of intrinsics on vectors
        self.bytes = self.size * n
        self.lines: list[str] = []
        self.allocas: list[str] = []
        self.constants: dict[str, str] = {}
        self.count = 0

    def name(self) -> str:
        self.count += 1
        return f"%n{self.count}"

    def add(self, right: str) -> str:
        name = self.name()
        self.lines.append(f"  {name} = {right}")
        return name

    def do(self, line: str) -> None:
        self.lines.append("  " + line)

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    def op(self, word: str, a: str, b: str) -> str:
        return self.add(f"{word} {self.v} {a}, {b}")

    def iop(self, word: str, a: str, b: str) -> str:
        return self.add(f"{word} {self.i} {a}, {b}")

    def const(self, value: float) -> str:
        if str(value) == "0.0":
            return "zeroinitializer"
        return "<" + ", ".join([f"{self.number} {literal(value, self.target)}"] * self.target.lanes) + ">"

    def constant(self, value: float) -> str:
        """The same as an operand that instructions can take from memory (`constants_text`).

        AVX has no instruction that computes with one number of memory in every lane, so that LLVM would load it by an
        instruction of its own: a tenth of all in a humanoid's inverse dynamics.
        """
        n, width = self.target.lanes, min(self.target.lanes, self.target.register)
        if not self.target.folds_whole_vectors or str(value) == "0.0" or n < 4:
            return self.const(value)
        bits = literal(value, self.target)
        name = f"@{self.prefix}_{bits[2:]}"
        self.constants[name] = bits
        found = self.add(f"load <{width} x {self.number}>, ptr {name}, align 32, !invariant.load !{{}}")
        if width == n:
            return found
        picks = ", ".join(f"i32 {k % width}" for k in range(n))
        small = f"<{width} x {self.number}>"
        return self.add(f"shufflevector {small} {found}, {small} poison, <{n} x i32> <{picks}>")

    def iconst(self, value: int) -> str:
        return "<" + ", ".join([f"i{8 * self.size} {value}"] * self.target.lanes) + ">"

    def mul_add(self, a: str, b: str, c: str) -> str:
        """a b + c, fused where the processor can."""
        if self.target.fma:
            return self.add(f"call {self.v} @llvm.fma.{self.suffix}({self.v} {a}, {self.v} {b}, {self.v} {c})")
        return self.op("fadd", self.op("fmul", a, b), c)

    def fused(self, kind: str, a: str, b: str, c: str) -> str:
        """a b + c, a b − c or c − a b in one rounding (`tape.fused`), on a processor that can."""
        if kind == FROM:
            a = self.add(f"fneg {self.v} {a}")
        elif kind == MINUS:
            c = self.add(f"fneg {self.v} {c}")
        return self.mul_add(a, b, c)

    def step(self, base: str, offset: int | str, unit: str = "i8") -> str:
        """An address so many units further on."""
        return base if offset == 0 else self.add(f"getelementptr {unit}, ptr {base}, i64 {offset}")

    def fetch(self, kind: str, base: str, index: int | str) -> str:
        """An entry of a table."""
        return self.add(f"load {kind}, ptr {self.step(base, index, kind)}")

    def spread(self, base: str, index: int) -> str:
        """A number of a table, in every lane."""
        first = self.add(f"insertelement {self.v} poison, {self.number} {self.fetch(self.number, base, index)}, i32 0")
        zeros = f"<{self.target.lanes} x i32> zeroinitializer"
        return self.add(f"shufflevector {self.v} {first}, {self.v} poison, {zeros}")

    def buffer(self, vectors: int) -> str:
        """Memory of the stack frame for so many vectors."""
        name = self.name()
        self.allocas.append(f"  {name} = alloca [{vectors} x {self.v}], align 64")
        return name

    def load(self, base: str, index: int) -> str:
        return self.add(f"load {self.v}, ptr {self.step(base, index * self.bytes)}, align {self.bytes}")

    def store(self, value: str, base: str, index: int) -> None:
        self.do(f"store {self.v} {value}, ptr {self.step(base, index * self.bytes)}, align {self.bytes}")

    def constants_text(self) -> list[str]:
        """The globals that `constant` names. They are not called constant, for LLVM would load a single number."""
        width = min(self.target.lanes, self.target.register)
        kind = f"<{width} x {self.number}>"
        return [
            f"{name} = internal global {kind} <{', '.join([f'{self.number} {bits}'] * width)}>, align 32"
            for name, bits in self.constants.items()
        ]

    def attributes(self) -> str:
        """Of functions: their vectors stay whole, and those that do not fit the registers lie within cache lines.

        A vector that crosses lines is written and read back several times as slowly: a fifth of the time of a long
        chain's forward dynamics.
        """
        width = 8 * self.bytes
        aligned = ' "stackrealign"' if self.bytes > 16 else ""
        return f'nounwind{aligned} "min-legal-vector-width"="{width}" "prefer-vector-width"="{width}"'

    def function(self, head: str, tail: tuple[str, ...] = ()) -> str:
        """The text of a function, whose body this is, and of its constants."""
        body = [f"{head} {{", "entry:", *self.allocas, *self.lines, *tail, "  ret void", "}"]
        return "\n".join([*self.constants_text(), *body])
