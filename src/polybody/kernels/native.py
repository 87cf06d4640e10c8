"""A small language for the machine code around kernels' bodies: Python's syntax, 64-bit integers and doubles.

Addresses are integers too. There are assignments, `if`, `while`, `for i in range(…)`, `for i in unroll(n)` (written n
times, n known), `return`, the operators + - * // & and comparisons with `and`, `or`, `not`; of doubles + - * /, and no
mixture of the two. Parameters are integers unless they are marked `: float`; functions return integers. Upper-case
names are numbers that the translation is given. Memory and the world are reached by

    word(p)  half(p)  put(p, x)  put_half(p, x)     64 bits, or 32 (read with their sign), at address p
    number(p)                                       the double at address p; `put` writes doubles too
    root(x)  size(x)  power(f, x, y)                √x, |x|; f(x, y) by the C function at address f
    flow(p, q, n)                                   n bytes (32 or 64) from q to p, past the caches
    room(n)                                         n words of the stack frame
    least(a, b)  most(a, b)                         the smaller and the larger of two
    off_unit(p, n)                                  1 if the four numbers of n bytes each at p have squares whose sum
                                                    differs from 1 by more than 2e-6, else 0 (NaN does not differ)
    take(p, n)                                      adds n to the word at p, atomically; what was there
    call(f, …)  call_half(f, …)                     the C function at address f; its result is 64 bits, or 32
    address(f)                                      of a function of the same text

and functions of the same text are called by their names. `translate` gives LLVM text in static single assignment: a
variable that a branch or a loop changes becomes a phi where its paths meet.
"""

from __future__ import annotations

import ast
import struct
from collections.abc import Callable, Iterator, Mapping

OPERATORS = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.FloorDiv: "udiv", ast.BitAnd: "and"}
RELATIONS = {ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "slt", ast.LtE: "sle", ast.Gt: "sgt", ast.GtE: "sge"}
OF_DOUBLES = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul", ast.Div: "fdiv"}
ORDERED = {ast.Eq: "oeq", ast.NotEq: "une", ast.Lt: "olt", ast.LtE: "ole", ast.Gt: "ogt", ast.GtE: "oge"}
MODULE_TAIL = "\n!0 = !{i32 1}\n"
DECLARED = "declare double @llvm.sqrt.f64(double)\ndeclare double @llvm.fabs.f64(double)\n"
#: the function behind `off_unit`, for modules that use it
OFF_UNIT = """
define internal i64 @_off_unit(i64 %p, i64 %n) {
entry:
  %at = inttoptr i64 %p to ptr
  %is_double = icmp eq i64 %n, 8
  br i1 %is_double, label %double, label %single
double:
  %wide = load <4 x double>, ptr %at, align 8
  br label %both
single:
  %narrow = load <4 x float>, ptr %at, align 4
  %widened = fpext <4 x float> %narrow to <4 x double>
  br label %both
both:
  %x = phi <4 x double> [%wide, %double], [%widened, %single]
  %squares = fmul <4 x double> %x, %x
  %sum = call double @llvm.vector.reduce.fadd.v4f64(double -1.0, <4 x double> %squares)
  %far = call double @llvm.fabs.f64(double %sum)
  %off = fcmp ogt double %far, 2.0e-06
  %truth = zext i1 %off to i64
  ret i64 %truth
}
declare double @llvm.vector.reduce.fadd.v4f64(double, <4 x double>)
declare double @llvm.fabs.f64(double)
"""


class Double(str):
    """The name of a double; other names are those of integers."""

    __slots__ = ()


def kind_of(value: str) -> str:
    return "double" if isinstance(value, Double) else "i64"


def constant(value: float) -> str:
    """An integer, or a double by its bits."""
    if isinstance(value, float):
        return Double(f"0x{struct.unpack('>Q', struct.pack('>d', value))[0]:016X}")
    return str(value)


def like(value: str, name: str) -> str:
    """A name of the same type."""
    return Double(name) if isinstance(value, Double) else name


def translate(text: str, numbers: Mapping[str, float]) -> str:
    """LLVM text of the functions; those whose names begin with an underscore cannot be called from outside."""
    functions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    return "\n".join(_Function(node, numbers).text() for node in functions)


def _assigned(body: list[ast.stmt]) -> Iterator[str]:
    """Names of the variables that statements change."""
    for s in body:
        if isinstance(s, ast.Assign):
            yield s.targets[0].id  # type: ignore[attr-defined]
        elif isinstance(s, (ast.AugAssign, ast.For)):
            yield s.target.id  # type: ignore[union-attr]
        if isinstance(s, (ast.For, ast.While, ast.If)):
            yield from _assigned(s.body)
            yield from _assigned(s.orelse)


class _Function:
    def __init__(self, node: ast.FunctionDef, numbers: Mapping[str, float]) -> None:
        self.node, self.lines, self.count = node, list[str](), 0
        self.numbers = numbers
        self.values = {a.arg: Double(f"%{a.arg}") if a.annotation else f"%{a.arg}" for a in node.args.args}
        self.block, self.ended = "entry", False

    def text(self) -> str:
        parameters = ", ".join(f"{'double' if a.annotation else 'i64'} %{a.arg}" for a in self.node.args.args)
        scope = "internal " if self.node.name.startswith("_") else ""
        self.run(self.node.body)
        if not self.ended:
            self.lines.append("  ret i64 0")
        return "\n".join([f"define {scope}i64 @{self.node.name}({parameters}) {{", "entry:", *self.lines, "}\n"])

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def add(self, right: str) -> str:
        name = self.name()
        self.lines.append(f"  {name} = {right}")
        return name

    def begin(self, label: str) -> None:
        self.lines.append(f"{label[1:]}:")
        self.block, self.ended = label[1:], False

    def jump(self, label: str) -> None:
        if not self.ended:
            self.lines.append(f"  br label {label}")

    def run(self, body: list[ast.stmt]) -> None:
        for statement in body:
            getattr(self, f"do_{type(statement).__name__}")(statement)

    def do_Assign(self, s: ast.Assign) -> None:
        self.values[s.targets[0].id] = self.value(s.value)  # type: ignore[attr-defined]

    def do_AugAssign(self, s: ast.AugAssign) -> None:
        self.values[s.target.id] = self.value(ast.BinOp(ast.Name(s.target.id), s.op, s.value))  # type: ignore[union-attr]

    def do_Expr(self, s: ast.Expr) -> None:
        self.value(s.value)

    def do_Return(self, s: ast.Return) -> None:
        self.lines.append(f"  ret i64 {self.value(s.value) if s.value else 0}")
        self.ended = True

    def do_If(self, s: ast.If) -> None:
        yes, no, join = self.name(), self.name(), self.name()
        self.decide(s.test, yes, no)
        before, ends = dict(self.values), []
        for label, body in ((yes, s.body), (no, s.orelse)):
            self.values = dict(before)
            self.begin(label)
            self.run(body)
            if not self.ended:
                ends.append((self.block, self.values))
            self.jump(join)
        if not ends:
            return
        self.begin(join)
        self.values = {}
        for key in sorted(set.intersection(*(set(values) for _, values in ends))):
            self.values[key] = first = ends[0][1][key]
            if ends[-1][1][key] != first:
                found = sorted(f"[{values[key]}, %{block}]" for block, values in ends)
                self.values[key] = like(first, self.add(f"phi {kind_of(first)} {', '.join(found)}"))

    def do_While(self, s: ast.While) -> None:
        """Tested before the first round and after each: one jump a round. Tests with `and` or `or` go to one block."""
        body, end, out = self.name(), self.name(), self.name()
        changed = set(_assigned(s.body)) & set(self.values)
        start = dict(self.values)
        before = self.test(s.test, body, out)
        self.begin(body)
        phis = {}
        for key in sorted(changed):
            phis[key] = len(self.lines)
            self.values[key] = like(start[key], self.add(""))
        self.run(s.body)
        after = self.test(s.test, body, end)
        for key, at in phis.items():
            kind = kind_of(start[key])
            self.lines[at] += f"phi {kind} [{start[key]}, %{before}], [{self.values[key]}, %{after}]"
        left = self.values
        self.begin(end)
        self.jump(out)
        self.begin(out)
        self.values = dict(start)
        for key in sorted(changed):
            joined = f"phi {kind_of(start[key])} [{start[key]}, %{before}], [{left[key]}, {end}]"
            self.values[key] = like(start[key], self.add(joined))

    def test(self, test: ast.expr, yes: str, no: str) -> str:
        """As `decide`, but such that both labels are reached from one block; its name."""
        if not isinstance(test, ast.BoolOp):
            self.decide(test, yes, no)
            return self.block
        true, false, join = self.name(), self.name(), self.name()
        self.decide(test, true, false)
        for label in (true, false):
            self.begin(label)
            self.jump(join)
        self.begin(join)
        truth = self.add(f"phi i1 [true, {true}], [false, {false}]")
        self.lines.append(f"  br i1 {truth}, label {yes}, label {no}")
        return self.block

    def do_For(self, s: ast.For) -> None:
        variable, over = s.target.id, s.iter  # type: ignore[union-attr]
        assert isinstance(over, ast.Call)
        if over.func.id == "unroll":  # type: ignore[union-attr]
            for k in range(int(self.value(over.args[0]))):
                self.values[variable] = str(k)
                self.run(s.body)
            return
        first, last = (ast.Constant(0), *over.args)[-2:]
        self.values[variable] = self.value(first)
        one = ast.AugAssign(ast.Name(variable, ast.Store()), ast.Add(), ast.Constant(1))
        self.do_While(ast.While(ast.Compare(ast.Name(variable), [ast.Lt()], [last]), [*s.body, one], []))

    def decide(self, test: ast.expr, yes: str, no: str) -> None:
        """Jump to one of two labels; later parts of `and` and `or` are evaluated only if they matter."""
        if isinstance(test, ast.BoolOp):
            for part in test.values[:-1]:
                following = self.name()
                self.decide(part, *((following, no) if isinstance(test.op, ast.And) else (yes, following)))
                self.begin(following)
            self.decide(test.values[-1], yes, no)
        elif isinstance(test, ast.UnaryOp):
            self.decide(test.operand, no, yes)
        else:
            assert isinstance(test, ast.Compare)
            a, b = self.value(test.left), self.value(test.comparators[0])
            relation = type(test.ops[0])
            if isinstance(a, Double):
                truth = self.add(f"fcmp {ORDERED[relation]} double {a}, {b}")
            else:
                truth = self.add(f"icmp {RELATIONS[relation]} i64 {a}, {b}")
            self.lines.append(f"  br i1 {truth}, label {yes}, label {no}")

    def value(self, node: ast.expr) -> str:
        if isinstance(node, ast.Constant):
            return constant(node.value)  # type: ignore[arg-type]
        if isinstance(node, ast.Name):
            return self.values[node.id] if node.id in self.values else constant(self.numbers[node.id])
        if isinstance(node, ast.BinOp):
            a, b = self.value(node.left), self.value(node.right)
            if isinstance(a, Double):
                return Double(self.add(f"{OF_DOUBLES[type(node.op)]} double {a}, {b}"))
            return self.add(f"{OPERATORS[type(node.op)]} i64 {a}, {b}")
        assert isinstance(node, ast.Call)
        word = node.func.id  # type: ignore[union-attr]
        if word == "address":
            return self.add(f"ptrtoint ptr @{node.args[0].id} to i64")  # type: ignore[attr-defined]
        arguments = [self.value(a) for a in node.args]
        special: Callable[..., str] | None = getattr(self, f"do_{word}", None)
        if special:
            return special(*arguments)
        return self.add(f"call i64 @{word}({', '.join(f'{kind_of(a)} {a}' for a in arguments)})")

    def pointer(self, value: str) -> str:
        return self.add(f"inttoptr i64 {value} to ptr")

    def do_word(self, p: str) -> str:
        return self.add(f"load i64, ptr {self.pointer(p)}")

    def do_half(self, p: str) -> str:
        return self.add(f"sext i32 {self.add(f'load i32, ptr {self.pointer(p)}')} to i64")

    def do_put(self, p: str, x: str) -> str:
        self.lines.append(f"  store {kind_of(x)} {x}, ptr {self.pointer(p)}")
        return "0"

    def do_number(self, p: str) -> str:
        return Double(self.add(f"load double, ptr {self.pointer(p)}"))

    def do_root(self, x: str) -> str:
        return Double(self.add(f"call double @llvm.sqrt.f64(double {x})"))

    def do_size(self, x: str) -> str:
        return Double(self.add(f"call double @llvm.fabs.f64(double {x})"))

    def do_power(self, f: str, x: str, y: str) -> str:
        return Double(self.add(f"call double {self.pointer(f)}(double {x}, double {y})"))

    def do_put_half(self, p: str, x: str) -> str:
        self.lines.append(f"  store i32 {self.add(f'trunc i64 {x} to i32')}, ptr {self.pointer(p)}")
        return "0"

    def do_flow(self, p: str, q: str, n: str) -> str:
        kind = f"<{int(n) // 8} x double>"
        some = self.add(f"load {kind}, ptr {self.pointer(q)}, align 4")
        self.lines.append(f"  store {kind} {some}, ptr {self.pointer(p)}, align {n}, !nontemporal !0")
        return "0"

    def do_room(self, n: str) -> str:
        return self.add(f"ptrtoint ptr {self.add(f'alloca i64, i64 {n}, align 64')} to i64")

    def do_take(self, p: str, n: str) -> str:
        return self.add(f"atomicrmw add ptr {self.pointer(p)}, i64 {n} seq_cst")

    def do_least(self, a: str, b: str) -> str:
        return self.chosen(a, b, "lt")

    def do_most(self, a: str, b: str) -> str:
        return self.chosen(a, b, "gt")

    def chosen(self, a: str, b: str, order: str) -> str:
        kind = kind_of(a)
        test = self.add(f"{'fcmp o' if kind == 'double' else 'icmp s'}{order} {kind} {a}, {b}")
        return like(a, self.add(f"select i1 {test}, {kind} {a}, {kind} {b}"))

    def do_off_unit(self, p: str, n: str) -> str:
        return self.add(f"call i64 @_off_unit(i64 {p}, i64 {n})")

    def do_call(self, f: str, *arguments: str, kind: str = "i64") -> str:
        given = ", ".join(f"i64 {a}" for a in arguments)
        return self.add(f"call {kind} {self.pointer(f)}({given})")

    def do_call_half(self, *arguments: str) -> str:
        return self.add(f"sext i32 {self.do_call(*arguments, kind='i32')} to i64")
