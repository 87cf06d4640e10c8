"""LLVM text of a tree scan: one function for each pass and kind, and the loops around them.

Scratch memory holds vectors of `lanes` numbers: the records (the root's first, then one a node), then every input and
output transposed, element by element. The context the body is given is the table of libm's functions followed by n, the
addresses of the tables (parents, kinds, constants, slices, the root's beginning), and for each port where its region
begins and how many elements it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from polybody.kernels.emit import LIBM, Code, emit_nodes, support_text
from polybody.kernels.rows import shuffle_transpose
from polybody.kernels.tape import Tape
from polybody.kernels.target import Target

N, PARENTS, KINDS, CONSTANTS, SLICES, INITIAL = range(len(LIBM), len(LIBM) + 6)
REGIONS = INITIAL + 1  # one a port, then one size a port


@dataclass(frozen=True)
class Visit:
    """What one pass reads and writes, by name."""

    name: str
    inward: bool
    constants: tuple[str, ...]
    inputs: tuple[str, ...]
    own: tuple[str, ...]
    parent: tuple[str, ...]
    writes: tuple[str, ...]
    adds: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """The layout that the code depends on; counts are in numbers, not bytes."""

    record: int
    fields: dict[str, int]
    widths: dict[str, int]
    constants: dict[str, int]
    constant_row: int
    inputs: list[str]
    outputs: list[str]
    zeroed: list[str]
    root_outputs: dict[str, str]
    passes: list[Visit]

    @property
    def ports(self) -> list[str]:
        return self.inputs + self.outputs

    def describe(self) -> str:
        return repr(self)


class _StepPorts:
    """Ports of one step: constants are numbers spread over the lanes, all else is vectors in scratch memory."""

    def __init__(self, plan: Plan, visit: Visit) -> None:
        self.plan = plan
        constants = [("constant", c) for c in visit.constants]
        inputs = [("port", c) for c in visit.inputs]
        own = [("own", c) for c in visit.own]
        parent = [("parent", c) for c in visit.parent]
        self.sources = [*constants, *inputs, *own, *parent]
        writes = [("own", c) for c in visit.writes]
        adds = [("add", c) for c in visit.adds]
        outputs = [("port", c) for c in visit.outputs]
        self.sinks = [*writes, *adds, *outputs]
        # A field that is read and written must be read as it was: such writes wait for the end.
        read_back = {("add", label) for _, label in parent} | set(self.sources)
        self.waiting_fields = read_back & set(self.sinks)
        self.waiting: list[tuple[tuple[str, str], int, str]] = []
        self.values: dict[tuple[int, int], str] = {}
        self.starts: dict[str, str] = {}

    def read(self, code: Code, argument: int, element: int) -> str:
        if (argument, element) not in self.values:
            self.values[argument, element] = self._load(code, self.sources[argument], element)
        return self.values[argument, element]

    def _load(self, code: Code, source: tuple[str, str], element: int) -> str:
        if source[0] != "constant":
            return code.add(f"load {code.v}, ptr {self._place(code, source, element)}, align {code.bytes}")
        offset = 8 * (self.plan.constants[source[1]] + element)
        place = code.add(f"getelementptr i8, ptr %constants, i64 {offset}")
        number = code.add(f"load double, ptr {place}")
        first = code.add(f"insertelement {code.v} poison, double {number}, i32 0")
        zeros = f"<{code.target.lanes} x i32> zeroinitializer"
        return code.add(f"shufflevector {code.v} {first}, {code.v} poison, {zeros}")

    def _place(self, code: Code, at: tuple[str, str], element: int) -> str:
        role, label = at
        if role == "port":
            if label not in self.starts:
                cell = code.add(f"getelementptr i64, ptr %slices, i64 {self.plan.ports.index(label)}")
                start = code.add(f"load i64, ptr {cell}")
                self.starts[label] = code.add(f"getelementptr i8, ptr %scratch, i64 {start}")
            return code.at(self.starts[label], element)
        record = "%own" if role == "own" else "%parent"
        return code.at(record, self.plan.fields[label] + element)

    def write(self, code: Code, output: int, element: int, value: str) -> None:
        if self.sinks[output] in self.waiting_fields:
            self.waiting.append((self.sinks[output], element, value))
        else:
            self._store(code, self.sinks[output], element, value)

    def _store(self, code: Code, sink: tuple[str, str], element: int, value: str) -> None:
        place = self._place(code, sink, element)
        if sink[0] == "add":
            before = code.add(f"load {code.v}, ptr {place}, align {code.bytes}")
            value = code.add(f"fadd contract {code.v} {before}, {value}")
        code.do(f"store {code.v} {value}, ptr {place}, align {code.bytes}")

    def finish(self, code: Code) -> None:
        for sink, element, value in self.waiting:
            self._store(code, sink, element, value)


def _step_text(name: str, plan: Plan, visit: Visit, tape: Tape, target: Target, attributes: str) -> str:
    code = Code(target)
    ports = _StepPorts(plan, visit)
    emit_nodes(code, tape, ports)
    ports.finish(code)
    head = (
        f"define internal void @{name}(ptr noalias %own, ptr noalias %parent, ptr noalias %constants,\n"
        f"    ptr noalias %slices, ptr %scratch, ptr %libm) {attributes} {{"
    )
    return "\n".join([head, "entry:", *code.allocas, *code.lines, "  ret void", "}"])


def text(plan: Plan, steps: Sequence[Sequence[Tape]], target: Target) -> str:
    """The module; its function is `body`."""
    width = 64 * target.lanes
    attributes = f'nounwind "min-legal-vector-width"="{width}" "prefer-vector-width"="{width}"'
    parts = [f'target triple = "{target.triple}"']
    for p, (visit, row) in enumerate(zip(plan.passes, steps, strict=True)):
        for k, tape in enumerate(row):
            parts.append(_step_text(f"step_{p}_{k}", plan, visit, tape, target, attributes + " noinline"))
    parts.append(_transpose_text(target, attributes, inward=True))
    parts.append(_transpose_text(target, attributes, inward=False))
    parts.append(_body_text(plan, len(steps[0]) if steps else 1, target, attributes))
    parts.append(support_text(target))
    return "\n".join(parts)


def _body_text(plan: Plan, kinds: int, target: Target, attributes: str) -> str:
    code = Code(target)
    lanes, vector = target.lanes, 8 * target.lanes
    count = len(plan.ports)

    def fact(index: int, kind: str = "i64") -> str:
        place = code.add(f"getelementptr i64, ptr %libm, i64 {index}")
        return code.add(f"load {kind}, ptr {place}")

    def region(port: int) -> str:
        return code.add(f"getelementptr i8, ptr %scratch, i64 {fact(REGIONS + port)}")

    def rows(port: int) -> str:
        return code.add(f"getelementptr ptr, ptr %rows, i64 {port * lanes}")

    n = fact(N)
    tables = {name: fact(at, "ptr") for name, at in
              (("parents", PARENTS), ("kinds", KINDS), ("constants", CONSTANTS), ("slices", SLICES))}  # fmt: skip
    for p in range(len(plan.inputs)):
        code.do(f"call void @lanes_in(ptr {rows(p)}, ptr {region(p)}, i64 {fact(REGIONS + count + p)})")
    _begin_records(code, plan, n, fact(INITIAL, "ptr"))
    for p, visit in enumerate(plan.passes):
        _loop(code, plan, p, visit.inward, kinds, n, tables)
    for label, chosen in plan.root_outputs.items():
        target_region = region(plan.ports.index(label))
        for e in range(plan.widths[chosen]):
            code.store(code.load("%scratch", plan.fields[chosen] + e), target_region, e)
    for p in range(len(plan.inputs), count):
        code.do(f"call void @lanes_out(ptr {rows(p)}, ptr {region(p)}, i64 {fact(REGIONS + count + p)})")
    head = f"define void @body(ptr noalias %rows, ptr noalias %libm, ptr noalias %memory) {attributes} {{"
    # Vectors are aligned to their size; the caller gives one vector more than is needed.
    align = [
        "  %where = ptrtoint ptr %memory to i64",
        f"  %up = add i64 %where, {vector - 1}",
        f"  %down = and i64 %up, {-vector}",
        "  %scratch = inttoptr i64 %down to ptr",
    ]
    return "\n".join([head, "entry:", *code.allocas, *align, *code.lines, "  ret void", "}"])


def _begin_records(code: Code, plan: Plan, n: str, initial: str) -> None:
    """The root's record, and zero where a field is read before it is written."""
    for e in range(plan.record):
        place = code.add(f"getelementptr double, ptr {initial}, i64 {e}")
        number = code.add(f"load double, ptr {place}")
        first = code.add(f"insertelement {code.v} poison, double {number}, i32 0")
        spread = f"<{code.target.lanes} x i32> zeroinitializer"
        code.store(code.add(f"shufflevector {code.v} {first}, {code.v} poison, {spread}"), "%scratch", e)
    if not plan.zeroed:
        return
    with_loop = _Loop(code, n, inward=False)
    own = code.add(f"getelementptr i8, ptr %scratch, i64 {with_loop.record(plan, with_loop.index)}")
    for label in plan.zeroed:
        for e in range(plan.widths[label]):
            code.store("zeroinitializer", own, plan.fields[label] + e)
    with_loop.close()


class _Loop:
    """A loop over the nodes in the function being written; `index` is the node."""

    def __init__(self, code: Code, n: str, inward: bool) -> None:
        self.code, self.n, self.inward = code, n, inward
        self.cell = code.name()
        code.allocas.append(f"  {self.cell} = alloca i64, align 8")
        start = code.add(f"add i64 {n}, -1") if inward else "0"
        code.do(f"store i64 {start}, ptr {self.cell}")
        self.head, self.body, self.end = (code.name()[1:] for _ in range(3))
        code.do(f"br label %{self.head}")
        code.lines.append(f"{self.head}:")
        self.index = code.add(f"load i64, ptr {self.cell}")
        more = code.add(f"icmp sge i64 {self.index}, 0" if inward else f"icmp slt i64 {self.index}, {n}")
        code.do(f"br i1 {more}, label %{self.body}, label %{self.end}")
        code.lines.append(f"{self.body}:")

    def record(self, plan: Plan, node: str) -> str:
        """Bytes from the beginning of scratch to a node's record."""
        after_root = self.code.add(f"add i64 {node}, 1")
        return self.code.add(f"mul i64 {after_root}, {plan.record * self.code.bytes}")

    def close(self) -> None:
        code = self.code
        following = code.add(f"add i64 {self.index}, {-1 if self.inward else 1}")
        code.do(f"store i64 {following}, ptr {self.cell}")
        code.do(f"br label %{self.head}")
        code.lines.append(f"{self.end}:")


def _loop(code: Code, plan: Plan, number: int, inward: bool, kinds: int, n: str, tables: dict[str, str]) -> None:
    """One pass: find the node's rows of the tables, and call the step of its kind."""
    loop = _Loop(code, n, inward)
    i = loop.index

    def entry(table: str) -> str:
        return code.add(f"load i64, ptr {code.add(f'getelementptr i64, ptr {tables[table]}, i64 {i}')}")

    parent = entry("parents")
    own_record = code.add(f"getelementptr i8, ptr %scratch, i64 {loop.record(plan, i)}")
    parent_record = code.add(f"getelementptr i8, ptr %scratch, i64 {loop.record(plan, parent)}")
    constants = code.add(f"getelementptr [{plan.constant_row} x double], ptr {tables['constants']}, i64 {i}")
    slices = code.add(f"getelementptr [{len(plan.ports)} x i64], ptr {tables['slices']}, i64 {i}")
    arguments = f"ptr {own_record}, ptr {parent_record}, ptr {constants}, ptr {slices}, ptr %scratch, ptr %libm"
    kind = entry("kinds")
    labels = [code.name()[1:] for _ in range(kinds)]
    done = code.name()[1:]
    cases = " ".join(f"i64 {k}, label %{label}" for k, label in enumerate(labels[1:], start=1))
    code.do(f"switch i64 {kind}, label %{labels[0]} [{cases}]")
    for k, label in enumerate(labels):
        code.lines.append(f"{label}:")
        code.do(f"call void @step_{number}_{k}({arguments})")
        code.do(f"br label %{done}")
    code.lines.append(f"{done}:")
    loop.close()


def _transpose_text(target: Target, attributes: str, *, inward: bool) -> str:
    """`lanes_in(rows, region, n)` and `lanes_out`: columns in groups of up to four, the rest number by number."""
    lanes = target.lanes
    group = min(lanes, 4)
    small = f"<{group} x double>"
    code = Code(target)
    code.lines = []
    columns_at = code.add(f"mul i64 %k, {8 * lanes}")
    if inward:
        squares = []
        for first in range(0, lanes, group):
            pieces = []
            for lane in range(first, first + group):
                place = code.add(f"getelementptr double, ptr %row{lane}, i64 %k")
                pieces.append(code.add(f"load {small}, ptr {place}, align 8"))
            squares.append(shuffle_transpose(code, pieces, group))
    for s, first in enumerate(range(0, lanes, group)):
        cells = []
        for c in range(group):
            offset = code.add(f"add i64 {columns_at}, {8 * (lanes * c + first)}")
            cells.append(code.add(f"getelementptr i8, ptr %region, i64 {offset}"))
        if inward:
            for c, cell in enumerate(cells):
                code.do(f"store {small} {squares[s][c]}, ptr {cell}, align {8 * group}")
        else:
            pieces = [code.add(f"load {small}, ptr {cell}, align {8 * group}") for cell in cells]
            for lane, piece in enumerate(shuffle_transpose(code, pieces, group), start=first):
                place = code.add(f"getelementptr double, ptr %row{lane}, i64 %k")
                code.do(f"store {small} {piece}, ptr {place}, align 8")
    fast = "\n".join(code.lines)
    code.lines = []
    left_at = code.add(f"mul i64 %j, {8 * lanes}")
    for lane in range(lanes):
        place = code.add(f"getelementptr double, ptr %row{lane}, i64 %j")
        offset = code.add(f"add i64 {left_at}, {8 * lane}")
        cell = code.add(f"getelementptr i8, ptr %region, i64 {offset}")
        source, sink = (place, cell) if inward else (cell, place)
        number = code.add(f"load double, ptr {source}, align 8")
        code.do(f"store double {number}, ptr {sink}, align 8")
    slow = "\n".join(code.lines)
    addresses = "\n".join(
        f"  %cell{l} = getelementptr ptr, ptr %rows, i64 {l}\n  %row{l} = load ptr, ptr %cell{l}" for l in range(lanes)
    )
    name = "lanes_in" if inward else "lanes_out"
    return f"""
define internal void @{name}(ptr noalias %rows, ptr noalias %region, i64 %n) {attributes} noinline {{
entry:
{addresses}
  br label %head
head:
  %k = phi i64 [0, %entry], [%kn, %fast]
  %kn = add i64 %k, {group}
  %fits = icmp sle i64 %kn, %n
  br i1 %fits, label %fast, label %rest
fast:
{fast}
  br label %head
rest:
  %j = phi i64 [%k, %head], [%jn, %slow]
  %left = icmp slt i64 %j, %n
  br i1 %left, label %slow, label %done
slow:
{slow}
  %jn = add i64 %j, 1
  br label %rest
done:
  ret void
}}
"""
