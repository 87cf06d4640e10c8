"""LLVM text of a tree scan: one function for each pass and kind, and the loops around them.

Scratch memory holds vectors of `lanes` numbers: the records (the root's first, then one a node), then every input and
output transposed, element by element (those inputs whose sines steps want are followed by their sines and cosines,
computed all at once), then what walkers carry. The context the body is given is the table of libm's functions followed
by the addresses of the tables (parents, kinds, constants, slices, the root's beginning, partners, walkers, places of
the records, who is first to reach fields that begin as zero), the number of walkers, where their fields are, where
alternating fields are, how many nodes have records; for each port where its region begins, how many elements it has and
how many begin as zero; for each label its stride and its step from walker to walker; for each pass its first and last
node.

Fields that begin as zero and that only one inward pass uses do so where it reaches them: the records of a long chain do
not fit the caches, and one way less through them takes a tenth of the time of forward dynamics. In a chain without
branches such fields are in no record at all. They *alternate* between two places, for a node needs only what the one
beyond it gave: it is stored, not added to zero. So do fields that one outward pass hands from node to node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import casadi as ca

from polybody.kernels.code import Code
from polybody.kernels.emit import emit_nodes, support_text
from polybody.kernels.operations import LIBM
from polybody.kernels.shuffles import transpose_text
from polybody.kernels.tape import INPUT, Tape
from polybody.kernels.target import Target
from polybody.late import dataclass

FIRST = len(LIBM)
PARENTS, KINDS, CONSTANTS, SLICES, INITIAL, PARTNERS, WALKERS, RECORDS, FIRSTS = range(FIRST, FIRST + 9)
WALKER_COUNT, TRAVELLER, ALTERNATING, KEPT, REGIONS = range(FIRST + 9, FIRST + 14)


@dataclass(frozen=True)
class Visit:
    """What one pass reads and writes, by name."""

    name: str
    direction: str
    constants: tuple[str, ...]
    inputs: tuple[str, ...]
    own: tuple[str, ...]
    parent: tuple[str, ...]
    writes: tuple[str, ...]
    adds: tuple[str, ...]
    outputs: tuple[str, ...]
    partner: tuple[str, ...] = ()
    partner_adds: tuple[str, ...] = ()
    totals: tuple[str, ...] = ()
    carried: tuple[str, ...] = ()
    begin: tuple[tuple[str, str], ...] = ()

    @property
    def walks(self) -> bool:
        return self.direction == "rootward"

    @property
    def paired(self) -> bool:
        return bool(self.partner or self.partner_adds)

    def alternates(self, plan: Plan) -> bool:
        """Whether some of its fields are in no record."""
        return any(label in plan.alternating for label in (*self.adds, *self.writes))


@dataclass(frozen=True)
class Plan:
    """The layout that the code depends on; counts are in numbers, not bytes."""

    record: int
    fields: dict[str, int]
    begins: list[list[str]]  # fields of each pass that no earlier pass needs
    late: list[list[str]]  # those that begin as zero not before the pass, but where it first reaches them
    widths: dict[str, int]
    constants: dict[str, int]
    constant_row: int
    inputs: list[str]
    outputs: list[str]
    zeroed: list[str]
    root_outputs: dict[str, str]
    labels: list[str]  # of inputs, outputs and views: a column of slices each
    shared: list[str]
    strided: list[str]
    carried: dict[str, int]
    carried_widths: dict[str, int]
    alternating: dict[str, int]  # fields of a chain that are in no record, and where they are in their place
    passes: list[Visit]

    @property
    def ports(self) -> list[str]:
        return self.inputs + self.outputs

    @property
    def alternating_width(self) -> int:
        """Of each of the two places."""
        return sum(self.widths[label] for label in self.alternating)

    def initial(self, label: str) -> int:
        """Where a field begins in the table of the root's first values."""
        labels = list(self.widths)
        return sum(self.widths[other] for other in labels[: labels.index(label)])

    # where facts are in the context
    def size(self, port: int) -> int:
        return REGIONS + len(self.ports) + port

    def blank(self, port: int) -> int:
        return REGIONS + 2 * len(self.ports) + port

    def stride(self, label: str) -> int:
        return REGIONS + 3 * len(self.ports) + self.labels.index(label)

    def walk(self, label: str) -> int:
        return self.stride(label) + len(self.labels)

    def range(self, visit: int) -> int:
        return REGIONS + 3 * len(self.ports) + 2 * len(self.labels) + 2 * visit

    def describe(self) -> str:
        return repr(self)


#: The record that each role's fields are in, within a step.
RECORD_OF = {
    "own": "%own", "parent": "%parent", "add": "%parent", "partner": "%partner", "partner add": "%partner",
    "total": "%scratch", "carried": "%parent",
}  # fmt: skip
BESIDE = {"own": "%own_beside", "add": "%parent_beside", "parent": "%parent_beside"}  # of fields that alternate
PORTS = ("port", "shared port")
ADDING = ("add", "partner add", "total", "shared port")


@dataclass(frozen=True)
class Layout:
    """Where the fields are that only a kind's own steps use, and how long its record is."""

    fields: dict[str, int]
    record: int


class _StepPorts:
    """Ports of one step: constants are numbers spread over the lanes, all else is vectors in scratch memory."""

    def __init__(self, plan: Plan, layout: Layout, visit: Visit, turned: Mapping[str, int]) -> None:
        self.plan, self.visit, self.turned_labels = plan, visit, turned
        self.fields = plan.fields | layout.fields
        self.sources = _roles(
            ("constant", visit.constants), ("port", visit.inputs), ("own", visit.own), ("parent", visit.parent),
            ("partner", visit.partner), ("carried", visit.carried),
        )  # fmt: skip
        self.sinks = _roles(
            ("own", visit.writes), ("add", visit.adds), ("partner add", visit.partner_adds), ("total", visit.totals),
            ("carried", visit.carried),
        )  # fmt: skip
        self.sinks += [("shared port" if label in plan.shared else "port", label) for label in visit.outputs]
        # A field that is read and written must be read as it was: such writes wait for the end.
        read = {label for role, label in self.sources if role in ("parent", "partner")}
        self.waiting_fields = set(self.sources) & set(self.sinks)
        self.waiting_fields |= {(role, label) for role, label in self.sinks if role in ADDING and label in read}
        self.waiting: list[tuple[tuple[str, str], int, str]] = []
        self.values: dict[tuple[int, int], str] = {}
        self.starts: dict[str, str] = {}
        self.strides: dict[str, str] = {}

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
        if role in PORTS:
            return self._part(code, label, element)
        if label in self.plan.alternating:
            return BESIDE[role], self.plan.alternating[label] + element
        fields = self.plan.carried if role == "carried" else self.fields
        return RECORD_OF[role], fields[label] + element

    def _part(self, code: Code, label: str, element: int) -> tuple[str, int]:
        """An element of the node's part of an input or output."""
        if label not in self.starts:
            start = code.fetch("i64", "%slices", self.plan.labels.index(label))
            if self.visit.walks:
                further = code.add(f"mul i64 %walker, {_fact(code, self.plan.walk(label))}")
                start = code.add(f"add i64 {start}, {further}")
            self.starts[label] = code.step("%scratch", start)
        if label not in self.plan.strided:
            return self.starts[label], element
        if label not in self.strides:
            self.strides[label] = _fact(code, self.plan.stride(label))
        return code.step(self.starts[label], code.add(f"mul i64 {self.strides[label]}, {element}")), 0

    def turned(self, code: Code, argument: int, element: int) -> tuple[tuple[str, int], tuple[str, int]] | None:
        """Where the sine and the cosine of an input's element are, if they are computed beforehand."""
        role, label = self.sources[argument]
        if role != "port" or label not in self.turned_labels:
            return None
        base, index = self._part(code, label, element)
        size = _fact(code, self.plan.size(self.turned_labels[label]))
        sines = code.step(base, code.add(f"mul i64 {size}, {code.bytes}"))
        return (sines, index), (code.step(sines, code.add(f"mul i64 {size}, {code.bytes}")), index)

    def write(self, code: Code, output: int, element: int, value: str) -> None:
        if self.sinks[output] in self.waiting_fields:
            self.waiting.append((self.sinks[output], element, value))
        else:
            self._store(code, self.sinks[output], element, value)

    def _store(self, code: Code, sink: tuple[str, str], element: int, value: str) -> None:
        place = self._place(code, sink, element)
        if sink[0] in ADDING and sink[1] not in self.plan.alternating:
            value = code.op("fadd", code.load(*place), value)
        code.store(value, *place)

    def finish(self, code: Code) -> None:
        for sink, element, value in self.waiting:
            self._store(code, sink, element, value)


def _roles(*groups: tuple[str, Sequence[str]]) -> list[tuple[str, str]]:
    return [(role, label) for role, labels in groups for label in labels]


def _fact(code: Code, index: int, kind: str = "i64") -> str:
    """An entry of the context."""
    return code.fetch(kind, "%libm", index)


def _step_text(
    name: str, plan: Plan, layout: Layout, visit: Visit, tape: Tape, target: Target, turned: Mapping[str, int]
) -> str:
    code = Code(target, name)
    ports = _StepPorts(plan, layout, visit, turned)
    emit_nodes(code, tape, ports)
    ports.finish(code)
    # A partner may be the parent itself, so the records are told apart only where there is none.
    apart = "" if visit.paired else "noalias "
    more = (", ptr %partner" if visit.paired else "") + (", i64 %walker" if visit.walks else "")
    if visit.alternates(plan):
        more += "".join(f", ptr noalias {name}" for name in dict.fromkeys(BESIDE.values()))
    return code.function(
        f"define internal void @{name}(ptr noalias %own, ptr {apart}%parent, ptr noalias %constants,\n"
        f"    ptr noalias %slices, ptr %scratch, ptr %libm{more}) {code.attributes()} noinline"
    )


def turned_labels(plan: Plan, steps: Sequence[Sequence[Tape | None]]) -> set[str]:
    """The inputs of whose elements some step wants sines or cosines."""
    found = set()
    for visit, row in zip(plan.passes, steps, strict=True):
        first = len(visit.constants)
        for tape in row:
            for op, a, _ in tape.nodes if tape else ():
                if op in (ca.OP_SIN, ca.OP_COS) and tape is not None and tape.nodes[int(a)][0] == INPUT:
                    k = int(tape.nodes[int(a)][1]) - first
                    if 0 <= k < len(visit.inputs):
                        found.add(visit.inputs[k])
    return found


def text(
    plan: Plan, layouts: Sequence[Layout], steps: Sequence[Sequence[Tape | None]], target: Target,
    turned: Mapping[str, int],
) -> str:  # fmt: skip
    """The module; its function is `body`. `turned`: the input that each label of `turned_labels` is a part of."""
    parts = [f'target triple = "{target.triple}"']
    for p, (visit, row) in enumerate(zip(plan.passes, steps, strict=True)):
        for k, tape in enumerate(row):
            if tape is not None:
                parts.append(_step_text(f"step_{p}_{k}", plan, layouts[k], visit, tape, target, turned))
    visited = [[tape is not None for tape in row] for row in steps]
    parts += [transpose_text(target, inward=True), transpose_text(target, inward=False), _zero_text(target)]
    parts += [_body_text(plan, visited, target, sorted(set(turned.values()))), support_text(target)]
    return "\n".join(parts)


def _zero_text(target: Target) -> str:
    """`zero(region, n)`: n vectors of zeros."""
    code = Code(target)
    loop = _Loop(code, "0", "%n", inward=False)
    code.store("zeroinitializer", code.step("%region", loop.index, code.v), 0)
    loop.close()
    return code.function(f"define internal void @zero(ptr noalias %region, i64 %n) {code.attributes()} noinline")


def _body_text(plan: Plan, visited: Sequence[Sequence[bool]], target: Target, turned: Sequence[int]) -> str:
    code = Code(target)
    count = len(plan.ports)
    # Vectors are aligned to their size; the caller gives one vector more than is needed.
    code.do("%where = ptrtoint ptr %memory to i64")
    code.do(f"%up = add i64 %where, {code.bytes - 1}")
    code.do(f"%down = and i64 %up, {-code.bytes}")
    code.do("%scratch = inttoptr i64 %down to ptr")

    def region(port: int) -> str:
        return code.step("%scratch", _fact(code, REGIONS + port))

    def rows(port: int) -> str:
        return code.step("%rows", port * target.lanes, "ptr")

    named = (("parents", PARENTS), ("kinds", KINDS), ("constants", CONSTANTS), ("slices", SLICES),
             ("partners", PARTNERS), ("walkers", WALKERS), ("records", RECORDS), ("firsts", FIRSTS))  # fmt: skip
    tables = {name: _fact(code, at, "ptr") for name, at in named}
    for p in range(len(plan.inputs)):
        code.do(f"call void @lanes_in(ptr {rows(p)}, ptr {region(p)}, i64 {_fact(code, plan.size(p))})")
        if p in turned:
            size, angles = _fact(code, plan.size(p)), region(p)
            sines = code.step(angles, code.add(f"mul i64 {size}, {code.bytes}"))
            cosines = code.step(sines, code.add(f"mul i64 {size}, {code.bytes}"))
            code.do(f"call void @sincos_map(ptr {angles}, ptr {sines}, ptr {cosines}, i64 {size}, ptr %libm)")
    for p in range(len(plan.inputs), count):
        code.do(f"call void @zero(ptr {region(p)}, i64 {_fact(code, plan.blank(p))})")
    for p, visit in enumerate(plan.passes):
        _begin_records(code, plan, plan.begins[p], plan.late[p], tables["records"])
        _begin_alternating(code, plan, visit)
        if visit.walks:
            _walks(code, plan, p, visit, visited[p], tables)
        else:
            _loop(code, plan, p, visit, visited[p], tables)
    for label, chosen in plan.root_outputs.items():
        target_region = region(plan.ports.index(label))
        for e in range(plan.widths[chosen]):
            code.store(code.load("%scratch", plan.fields[chosen] + e), target_region, e)
    for p in range(len(plan.inputs), count):
        code.do(f"call void @lanes_out(ptr {rows(p)}, ptr {region(p)}, i64 {_fact(code, plan.size(p))})")
    return code.function(
        f"define void @body(ptr noalias %rows, ptr noalias %libm, ptr noalias %memory) {code.attributes()}"
    )


def _begin_records(code: Code, plan: Plan, labels: Sequence[str], late: Sequence[str], records: str) -> None:
    """The root's fields as they begin, and zero where a field is read before it is written."""
    if labels:
        initial = _fact(code, INITIAL, "ptr")
    for label in labels:
        for e in range(plan.widths[label]):
            code.store(code.spread(initial, plan.initial(label) + e), "%scratch", plan.fields[label] + e)
    zeroed = [label for label in labels if label in plan.zeroed and label not in late]
    if not zeroed:
        return
    loop = _Loop(code, "0", _fact(code, KEPT), inward=False)
    _zero_fields(code, plan, zeroed, _record(code, records, loop.index))
    loop.close()


def _begin_alternating(code: Code, plan: Plan, visit: Visit) -> None:
    """The root's values of fields that are handed outwards."""
    handed = [label for label in visit.writes if label in plan.alternating]
    if handed:
        initial, place = _fact(code, INITIAL, "ptr"), _beside(code, plan, "0", 1)
    for label in handed:
        for e in range(plan.widths[label]):
            code.store(code.spread(initial, plan.initial(label) + e), place, plan.alternating[label] + e)


def _zero_fields(code: Code, plan: Plan, labels: Sequence[str], record: str) -> None:
    places = plan.fields | plan.alternating
    for label in labels:
        for e in range(plan.widths[label]):
            code.store("zeroinitializer", record, places[label] + e)


def _begin_late(code: Code, plan: Plan, number: int, firsts: str, records: Sequence[str]) -> None:
    """Zero in those of a node's and its parent's records that no node has reached yet (`scan.first_to_reach`)."""
    for bit, record in enumerate(records, 2 * number):
        mine = code.add(f"and i64 {firsts}, {1 << bit}")
        is_first = code.add(f"icmp ne i64 {mine}, 0")
        begin, go_on = code.name()[1:], code.name()[1:]
        code.do(f"br i1 {is_first}, label %{begin}, label %{go_on}")
        code.label(begin)
        _zero_fields(code, plan, plan.late[number], record)
        code.do(f"br label %{go_on}")
        code.label(go_on)


def _record(code: Code, records: str, node: str) -> str:
    """The address of a node's record; −1 is the root."""
    return code.step("%scratch", code.fetch("i64", records, code.add(f"add i64 {node}, 1")))


def _beside(code: Code, plan: Plan, node: str, away: int) -> str:
    """The place of alternating fields of a node, or of its neighbour."""
    parity = code.add(f"and i64 {code.add(f'add i64 {node}, {away}')}, 1")
    further = code.add(f"mul i64 {parity}, {plan.alternating_width * code.bytes}")
    return code.step(code.step("%scratch", _fact(code, ALTERNATING)), further)


class _Loop:
    """A loop over the numbers first … last − 1 in the function being written; `index` is the number."""

    def __init__(self, code: Code, first: str, last: str, inward: bool) -> None:
        self.code, self.inward = code, inward
        self.cell = code.name()
        code.allocas.append(f"  {self.cell} = alloca i64, align 8")
        start = code.add(f"add i64 {last}, -1") if inward else first
        code.do(f"store i64 {start}, ptr {self.cell}")
        self.head, self.body, self.end = (code.name()[1:] for _ in range(3))
        code.do(f"br label %{self.head}")
        code.label(self.head)
        self.index = code.add(f"load i64, ptr {self.cell}")
        more = code.add(f"icmp sge i64 {self.index}, {first}" if inward else f"icmp slt i64 {self.index}, {last}")
        code.do(f"br i1 {more}, label %{self.body}, label %{self.end}")
        code.label(self.body)

    def close(self) -> None:
        following = self.code.add(f"add i64 {self.index}, {-1 if self.inward else 1}")
        self.go_on(following)

    def go_on(self, following: str) -> None:
        """End the loop's body; the next number is `following`."""
        code = self.code
        code.do(f"store i64 {following}, ptr {self.cell}")
        code.do(f"br label %{self.head}")
        code.label(self.end)


def _loop(code: Code, plan: Plan, number: int, visit: Visit, visited: Sequence[bool], tables: dict[str, str]) -> None:
    """One pass over the nodes of its range."""
    first, last = _fact(code, plan.range(number)), _fact(code, plan.range(number) + 1)
    loop = _Loop(code, first, last, inward=visit.direction == "inward")
    parent = _record(code, tables["records"], code.fetch("i64", tables["parents"], loop.index))
    more = ""
    if visit.paired:
        partner = code.fetch("i64", tables["partners"], loop.index)
        more = f", ptr {_record(code, tables['records'], partner)}"
    if visit.alternates(plan):
        beside = [_beside(code, plan, loop.index, k) for k in range(2)]
        more += "".join(f", ptr {place}" for place in beside)
        if plan.late[number]:
            _begin_late(code, plan, number, code.fetch("i64", tables["firsts"], loop.index), beside[:1])
    elif plan.late[number]:
        own = _record(code, tables["records"], loop.index)
        _begin_late(code, plan, number, code.fetch("i64", tables["firsts"], loop.index), (own, parent))
    _visit(code, plan, number, visited, tables, loop.index, parent, more)
    loop.close()


def _walks(code: Code, plan: Plan, number: int, visit: Visit, visited: Sequence[bool], tables: dict[str, str]) -> None:
    """Every walker from its node to the root: fields begin as columns of the node's own."""
    walker = _Loop(code, "0", _fact(code, WALKER_COUNT), inward=False)
    row = code.step(tables["walkers"], walker.index, "[3 x i64]")
    node, column, place = (code.fetch("i64", row, k) for k in range(3))
    traveller = code.step("%scratch", _fact(code, TRAVELLER))
    own = _record(code, tables["records"], node)
    for label, source in visit.begin:
        width = plan.carried_widths[label]
        skipped = code.add(f"mul i64 {column}, {width * code.bytes}")
        start = code.step(code.step(own, plan.fields[source] * code.bytes), skipped)
        for e in range(width):
            code.store(code.load(start, e), traveller, plan.carried[label] + e)
    above = code.add(f"add i64 {node}, 1")
    way = _Loop(code, "0", above, inward=True)
    _visit(code, plan, number, visited, tables, way.index, traveller, f", i64 {place}")
    way.go_on(code.fetch("i64", tables["parents"], way.index))
    walker.close()


def _visit(
    code: Code,
    plan: Plan,
    number: int,
    visited: Sequence[bool],
    tables: dict[str, str],
    node: str,
    parent: str,
    more: str,
) -> None:
    """Find the node's rows of the tables, and call the step of its kind."""
    constants = code.step(tables["constants"], node, f"[{plan.constant_row} x {code.number}]")
    slices = code.step(tables["slices"], node, f"[{len(plan.labels)} x i64]")
    own = _record(code, tables["records"], node)
    arguments = f"ptr {own}, ptr {parent}, ptr {constants}, ptr {slices}, ptr %scratch, ptr %libm{more}"
    kind = code.fetch("i64", tables["kinds"], node)
    done = code.name()[1:]
    labels = {k: code.name()[1:] for k, taken in enumerate(visited) if taken}
    cases = " ".join(f"i64 {k}, label %{label}" for k, label in labels.items())
    code.do(f"switch i64 {kind}, label %{done} [{cases}]")
    for k, label in labels.items():
        code.label(label)
        code.do(f"call void @step_{number}_{k}({arguments})")
        code.do(f"br label %{done}")
    code.label(done)
