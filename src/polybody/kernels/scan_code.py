"""LLVM text of a tree scan: one function for each pass and kind, and the loops around them.

Scratch memory holds vectors of `lanes` numbers: the records (the root's first, then one a node), then every input and
output transposed, element by element. The context the body is given is the table of libm's functions followed by n, the
addresses of the tables (parents, kinds, constants, slices, the root's beginning), and for each port where its region
begins and how many elements it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from polybody.kernels.code import Code
from polybody.kernels.emit import emit_nodes, support_text
from polybody.kernels.operations import LIBM
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
        if source[0] == "constant":
            return code.spread("%constants", self.plan.constants[source[1]] + element)
        return code.load(*self._place(code, source, element))

    def _place(self, code: Code, at: tuple[str, str], element: int) -> tuple[str, int]:
        """(beginning, number of the vector from there)"""
        role, label = at
        if role != "port":
            return "%own" if role == "own" else "%parent", self.plan.fields[label] + element
        if label not in self.starts:
            start = code.fetch("i64", "%slices", self.plan.ports.index(label))
            self.starts[label] = code.step("%scratch", start)
        return self.starts[label], element

    def write(self, code: Code, output: int, element: int, value: str) -> None:
        if self.sinks[output] in self.waiting_fields:
            self.waiting.append((self.sinks[output], element, value))
        else:
            self._store(code, self.sinks[output], element, value)

    def _store(self, code: Code, sink: tuple[str, str], element: int, value: str) -> None:
        place = self._place(code, sink, element)
        if sink[0] == "add":
            value = code.op("fadd contract", code.load(*place), value)
        code.store(value, *place)

    def finish(self, code: Code) -> None:
        for sink, element, value in self.waiting:
            self._store(code, sink, element, value)


def _step_text(name: str, plan: Plan, visit: Visit, tape: Tape, target: Target) -> str:
    code = Code(target)
    ports = _StepPorts(plan, visit)
    emit_nodes(code, tape, ports)
    ports.finish(code)
    return code.function(
        f"define internal void @{name}(ptr noalias %own, ptr noalias %parent, ptr noalias %constants,\n"
        f"    ptr noalias %slices, ptr %scratch, ptr %libm) {code.attributes()} noinline"
    )


def text(plan: Plan, steps: Sequence[Sequence[Tape]], target: Target) -> str:
    """The module; its function is `body`."""
    parts = [f'target triple = "{target.triple}"']
    for p, (visit, row) in enumerate(zip(plan.passes, steps, strict=True)):
        parts += [_step_text(f"step_{p}_{k}", plan, visit, tape, target) for k, tape in enumerate(row)]
    parts += [_transpose_text(target, inward=True), _transpose_text(target, inward=False)]
    parts += [_body_text(plan, len(steps[0]) if steps else 1, target), support_text(target)]
    return "\n".join(parts)


def _body_text(plan: Plan, kinds: int, target: Target) -> str:
    code = Code(target)
    count = len(plan.ports)
    # Vectors are aligned to their size; the caller gives one vector more than is needed.
    code.do("%where = ptrtoint ptr %memory to i64")
    code.do(f"%up = add i64 %where, {code.bytes - 1}")
    code.do(f"%down = and i64 %up, {-code.bytes}")
    code.do("%scratch = inttoptr i64 %down to ptr")

    def fact(index: int, kind: str = "i64") -> str:
        return code.fetch(kind, "%libm", index)

    def region(port: int) -> str:
        return code.step("%scratch", fact(REGIONS + port))

    def rows(port: int) -> str:
        return code.step("%rows", port * target.lanes, "ptr")

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
    return code.function(
        f"define void @body(ptr noalias %rows, ptr noalias %libm, ptr noalias %memory) {code.attributes()}"
    )


def _begin_records(code: Code, plan: Plan, n: str, initial: str) -> None:
    """The root's record, and zero where a field is read before it is written."""
    for e in range(plan.record):
        code.store(code.spread(initial, e), "%scratch", e)
    if not plan.zeroed:
        return
    with_loop = _Loop(code, n, inward=False)
    own = code.step("%scratch", with_loop.record(plan, with_loop.index))
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
        code.label(self.head)
        self.index = code.add(f"load i64, ptr {self.cell}")
        more = code.add(f"icmp sge i64 {self.index}, 0" if inward else f"icmp slt i64 {self.index}, {n}")
        code.do(f"br i1 {more}, label %{self.body}, label %{self.end}")
        code.label(self.body)

    def record(self, plan: Plan, node: str) -> str:
        """Bytes from the beginning of scratch to a node's record."""
        after_root = self.code.add(f"add i64 {node}, 1")
        return self.code.add(f"mul i64 {after_root}, {plan.record * self.code.bytes}")

    def close(self) -> None:
        code = self.code
        following = code.add(f"add i64 {self.index}, {-1 if self.inward else 1}")
        code.do(f"store i64 {following}, ptr {self.cell}")
        code.do(f"br label %{self.head}")
        code.label(self.end)


def _loop(code: Code, plan: Plan, number: int, inward: bool, kinds: int, n: str, tables: dict[str, str]) -> None:
    """One pass: find the node's rows of the tables, and call the step of its kind."""
    loop = _Loop(code, n, inward)
    i = loop.index

    def entry(table: str) -> str:
        return code.fetch("i64", tables[table], i)

    parent = entry("parents")
    own_record = code.step("%scratch", loop.record(plan, i))
    parent_record = code.step("%scratch", loop.record(plan, parent))
    constants = code.step(tables["constants"], i, f"[{plan.constant_row} x {code.number}]")
    slices = code.step(tables["slices"], i, f"[{len(plan.ports)} x i64]")
    arguments = f"ptr {own_record}, ptr {parent_record}, ptr {constants}, ptr {slices}, ptr %scratch, ptr %libm"
    kind = entry("kinds")
    labels = [code.name()[1:] for _ in range(kinds)]
    done = code.name()[1:]
    cases = " ".join(f"i64 {k}, label %{label}" for k, label in enumerate(labels[1:], start=1))
    code.do(f"switch i64 {kind}, label %{labels[0]} [{cases}]")
    for k, label in enumerate(labels):
        code.label(label)
        code.do(f"call void @step_{number}_{k}({arguments})")
        code.do(f"br label %{done}")
    code.label(done)
    loop.close()


def _transpose_text(target: Target, *, inward: bool) -> str:
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
        for piece, (at, by) in zip(shuffle_transpose(code, pieces, group), sinks, strict=True):
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
