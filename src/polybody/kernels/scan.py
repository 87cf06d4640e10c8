"""Recursions over a tree as rolled kernels: code for each kind of node once, time and memory proportional to n.

Nodes 0 … n − 1 have a parent before them (−1 is the root). Each node owns a *record* of named fields, kept between
passes. A pass visits the nodes outwards (parents first) or inwards (children first); at each it evaluates the step
function of the node's kind:

    step(constants…, inputs…, own fields…, parent's fields…, partner's fields…, carried…) ->
        (own fields written…, added to the parent…, added to the partner…, added to the root…, carried…, outputs…)

A kind whose step is None is not visited. The root has a record too: it starts as `root` says (zero otherwise), is read
as the parent of −1's children, and collects what they add and all `totals`. A node may have a *partner*, any other node
(or the root): what joins two nodes is a node itself, the child of one and the partner of the other. A field that no
pass writes before it is read or added to starts at zero. A field's width is the most any kind needs; a step may read or
write a shorter beginning of it. `slices` says where each node's part of an input or output begins; its length is what
the kind's step takes or gives (an output that was written may be read again). A `View` is another way to place parts of
the same array, such as columns of a matrix. Where parts of different nodes overlap, their labels are `shared`: what
steps give is added up there.

A pass that goes `ROOTWARD` fills matrices: every *walker* starts at a node and visits it and its ancestors, with
`carried` fields that each step reads and writes anew. They begin as a column of the fields that `begin` names of the
walker's node.

Machine code depends on the kinds and passes alone. n, parents, kinds and constants are tables it reads, so one
compilation serves chains of any length.

Example, sums of weights from the root to each node (outwards) and of each subtree (inwards):

    Scan(parents, kinds, constants={"w": w}, fields={"path": 1, "below": 1}, slices={"total": range(n)}, passes=[
        Pass("path", OUTWARD, step, constants=["w"], parent=["path"], writes=["path", "below"]),
        Pass("below", INWARD, fold, own=["below"], adds=["below"], outputs=["total"])])
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from polybody.errors import InputError
from polybody.kernels import machine, scan_code, tape
from polybody.kernels.kernel import Form, Kernel, Ports, Shapes
from polybody.kernels.programs import Made, Program, digest, program
from polybody.kernels.target import Target, host
from polybody.late import dataclass, field

OUTWARD, INWARD, ROOTWARD = "outward", "inward", "rootward"
Step = Callable[[Any], ca.Function | None]  # of a kind, whatever the caller takes for one


NEAR_BY = 2 << 20  # bytes of scratch memory; measured on Zen 4 with 1 MB of second cache


@dataclass(frozen=True)
class Pass:
    """One visit to every node. `step(kind)` gives the CasADi SX function of a kind, or None to leave its nodes out."""

    name: str
    direction: str
    step: Step
    constants: Sequence[str] = ()
    inputs: Sequence[str] = ()
    own: Sequence[str] = ()
    parent: Sequence[str] = ()
    writes: Sequence[str] = ()
    adds: Sequence[str] = ()
    outputs: Sequence[str] = ()
    partner: Sequence[str] = ()
    partner_adds: Sequence[str] = ()
    totals: Sequence[str] = ()
    carried: Sequence[str] = ()
    begin: Mapping[str, str] = field(default_factory=dict)  # carried field -> field of the walker's node

    @property
    def reads(self) -> tuple[str, ...]:
        """What the step takes, in order."""
        return (*self.constants, *self.inputs, *self.own, *self.parent, *self.partner, *self.carried)

    @property
    def gives(self) -> tuple[str, ...]:
        """What the step gives, in order."""
        return (*self.writes, *self.adds, *self.partner_adds, *self.totals, *self.carried, *self.outputs)


@dataclass(frozen=True)
class View:
    """Parts of an input or output: node i's begins at starts[i], its numbers are `stride` apart.

    Where walkers go, the part of a walker whose place is w is `walk`·w further on.
    """

    port: str
    starts: Sequence[int]
    stride: int = 1
    walk: int = 0


@dataclass(frozen=True)
class Scan:
    """A recursion over one tree."""

    parents: Sequence[int]
    kinds: Sequence[Hashable]
    constants: Mapping[str, np.ndarray]
    fields: Mapping[str, int]
    slices: Mapping[str, Sequence[int]]
    passes: Sequence[Pass]
    root: Mapping[str, Sequence[float]] = field(default_factory=dict)
    root_outputs: Mapping[str, str] = field(default_factory=dict)  # output -> field of the root's record
    partners: Sequence[int] = ()
    views: Mapping[str, View] = field(default_factory=dict)
    blank: Sequence[str] = ()  # outputs that no step fills completely: they begin as zero
    carried: Mapping[str, int] = field(default_factory=dict)  # widths
    walkers: Sequence[tuple[int, int, int]] = ()  # (node, column, place), in order
    shared: Sequence[str] = ()  # labels of blank outputs in which parts of nodes overlap
    results: Mapping[str, str] = field(default_factory=dict)  # output -> its name to callers, if an input has it too

    @property
    def placed(self) -> dict[str, View]:
        """Every label that steps may use for inputs and outputs."""
        return {label: View(label, starts) for label, starts in self.slices.items()} | dict(self.views)


def build(
    name: str,
    inputs: Ports,
    outputs: Shapes,
    scan: Scan,
    key: bytes | str,
    *,
    dtype: Any = np.float64,
    lanes: int | None = None,
    target: Target | None = None,
) -> Kernel:
    """A rolled kernel. `key` names everything the step functions depend on (the tables are not part of the code).

    A step needs what the one before it computed. With AVX, batches are computed two registers wide, so that the
    processor has something else to do meanwhile: inverse dynamics of a chain takes 7.1 instead of 9.4 ns per link.
    Where records are more than `NEAR_BY`, fetching them takes longer than that.
    """
    chosen = (target or host()).with_dtype(dtype).with_lanes(lanes)
    _check(name, inputs, outputs, scan)
    kinds = sorted(set(scan.kinds), key=repr)
    plan = _plan(scan, [n for n, _ in inputs], [n for n, _ in outputs], chosen.folds_whole_vectors)
    sizes_in, sizes_out = [s for _, s in inputs], [math.prod(s) for _, s in outputs]

    def made_for(final: Target) -> tuple[Program, dict[str, Any]]:
        title = digest("scan", key, final, [kinds, plan.describe()])
        loaded = program(title, name, lambda: _made(scan, plan, kinds, len(inputs), final))
        facts = loaded.facts
        _check_slices(name, scan, plan, kinds, facts["widths"], sizes_in, sizes_out)
        visited = [[bool(row[0] or row[1]) for row in facts["widths"][p * len(kinds) : (p + 1) * len(kinds)]]
                   for p in range(len(plan.passes))]  # fmt: skip
        layouts = _layouts(scan, plan, facts["widths"])
        turned = facts["turned"]
        context, scratch, alive = _tables(scan, plan, kinds, layouts, visited, sizes_in, sizes_out, final, turned)
        nodes, work = (_cost(scan, kinds, [[c[k] for c in row] for row in facts["costs"]]) for k in range(2))
        return loaded, {"nodes": nodes, "work": work, "scratch": scratch, "contexts": [context], "alive": alive}

    loaded, facts = made_for(chosen)
    named = [(scan.results.get(label, label), shape) for label, shape in outputs]
    kernel = Kernel(name, inputs, named, loaded, chosen, **facts)
    if lanes is None and chosen.folds_whole_vectors and 2 * facts["scratch"] <= NEAR_BY:
        wide = chosen.with_lanes(2 * chosen.lanes)

        def make() -> Form:
            loaded, facts = made_for(wide)
            return Form(sizes_in, [shape for _, shape in outputs], loaded, wide, **facts)

        kernel.widen(make)
    return kernel


def _made(scan: Scan, plan: scan_code.Plan, kinds: Sequence[Hashable], inputs: int, target: Target) -> Made:
    """The module, and what must be known of it beside its code."""
    steps = _trace(scan, plan, kinds)
    widths = [[[*t.input_sizes], [len(o) for o in t.outputs]] if t else [[], []] for row in steps for t in row]
    costs = [[(t.operations(), t.work()) if t else (0, 0) for t in row] for row in steps]
    placed = scan.placed
    turned = {x: plan.ports.index(placed[x].port) for x in sorted(scan_code.turned_labels(plan, steps))}
    turned = {x: port for x, port in turned.items() if port < inputs}  # outputs change on the way
    text = scan_code.text(plan, _layouts(scan, plan, widths), steps, target, turned)
    return Made(text, target, {"costs": costs, "widths": widths, "turned": sorted(set(turned.values()))})


def _cost(scan: Scan, kinds: Sequence[Hashable], costs: Sequence[Sequence[int]]) -> int:
    """Operations a state: a node is visited once a pass, and rootward once for every walker beyond it."""
    walkers = np.zeros(len(scan.parents), dtype=int)
    for node, _, _ in scan.walkers:
        walkers[node] += 1
    for i in reversed(range(len(scan.parents))):
        if scan.parents[i] >= 0:
            walkers[scan.parents[i]] += walkers[i]
    order = {kind: k for k, kind in enumerate(kinds)}
    sorts = np.array([order[kind] for kind in scan.kinds], dtype=int)
    total = 0
    for one, row in zip(scan.passes, costs, strict=True):
        visits = walkers if one.direction == ROOTWARD else np.ones(len(sorts), dtype=int)
        total += int(np.asarray(row)[sorts] @ visits) if len(sorts) else 0
    return total


def _check(name: str, inputs: Ports, outputs: Shapes, scan: Scan) -> None:
    n = len(scan.parents)
    if len(scan.kinds) != n:
        raise InputError(f"{name}: {len(scan.kinds)} kinds for {n} nodes")
    for i, p in enumerate(scan.parents):
        if not -1 <= p < i:
            raise InputError(f"{name}: node {i} has parent {p}; expected -1 (the root) or a node before it")
    for label, table in scan.constants.items():
        if np.ndim(table) != 2 or len(table) != n:
            raise InputError(f"{name}: constants {label!r} have shape {np.shape(table)}; expected ({n}, width)")
    given, wanted = {label for label, _ in inputs}, {label for label, _ in outputs}
    if scan.partners and (len(scan.partners) != n or not all(-1 <= p < n for p in scan.partners)):
        raise InputError(f"{name}: partners must be {n} nodes or -1 (the root), one for each node")
    placed, records = scan.placed, set(scan.fields)
    partnered = records if scan.partners else set()
    known = {
        "constants": set(scan.constants), "inputs": {x for x, view in placed.items() if view.port in given | wanted},
        "outputs": {x for x, view in placed.items() if view.port in wanted}, "own": records, "parent": records,
        "writes": records, "adds": records, "partner": partnered, "partner_adds": partnered, "totals": records,
        "carried": set(scan.carried),
    }  # fmt: skip
    for node, column, place in scan.walkers:
        if not 0 <= node < n or column < 0 or place < 0:
            wanted_numbers = f"expected a node of 0 to {n - 1}, a column and a place"
            raise InputError(f"{name}: walker ({node}, {column}, {place}); {wanted_numbers}")
    if again := given & wanted:
        raise InputError(f"{name}: {sorted(again)} are inputs and outputs; name the outputs in `results`")
    for label in scan.shared:
        if label not in placed or placed[label].port not in scan.blank:
            raise InputError(f"{name}: {label!r} is shared; expected a part of an output that begins as zero")
    for one in scan.passes:
        if one.direction not in (OUTWARD, INWARD, ROOTWARD):
            wanted_directions = "'outward', 'inward' or 'rootward'"
            raise InputError(f"{name}: pass {one.name!r} has direction {one.direction!r}; expected {wanted_directions}")
        _check_walk(name, scan, one)
        for role, names in known.items():
            for label in getattr(one, role):
                if label not in names:
                    raise InputError(f"{name}: pass {one.name!r} names {label!r} in {role}; known are {sorted(names)}")
        if one.adds and one.direction == OUTWARD:
            raise InputError(f"{name}: pass {one.name!r} adds to parents, so it must go inward")
        if again := set(one.totals) & {*one.own, *one.parent, *one.partner, *one.writes, *one.adds}:
            raise InputError(f"{name}: pass {one.name!r} has {sorted(again)} among its totals and among its fields")
    for label, chosen in scan.root_outputs.items():
        if label not in wanted or chosen not in scan.fields:
            raise InputError(f"{name}: root_outputs has {label!r}: {chosen!r}; expected an output and a field")
    for label, vector in scan.root.items():
        if label not in scan.fields or len(vector) != scan.fields[label]:
            raise InputError(f"{name}: root has {label!r} of {len(vector)} numbers; expected a field, of its width")


def _check_walk(name: str, scan: Scan, one: Pass) -> None:
    if one.direction != ROOTWARD:
        if one.carried:
            raise InputError(f"{name}: pass {one.name!r} carries {list(one.carried)}, so it must go rootward")
        return
    if one.parent or one.partner or one.adds or one.partner_adds or one.writes:
        raise InputError(
            f"{name}: pass {one.name!r} goes rootward: it reads own fields and writes what it carries only"
        )
    columns: dict[int, int] = {}
    for node, column, _ in scan.walkers:
        columns[node] = max(column + 1, columns.get(node, 0))
    for label in one.carried:
        source = one.begin.get(label, "")
        if max(columns.values(), default=0) * scan.carried[label] > scan.fields.get(source, -1):
            raise InputError(
                f"{name}: pass {one.name!r} begins {label!r} from {source!r}; expected a field with a column of "
                f"{scan.carried[label]} numbers for every walker of a node"
            )


def _plan(scan: Scan, inputs: list[str], outputs: list[str], handed: bool = True) -> scan_code.Plan:
    """Where everything is within a record, a row of constants, and a row of slices.

    `handed`: whether what an outward pass hands from node to node is in no record. With AVX inverse dynamics of 1,000
    links takes 6.4 so instead of 6.9 ns per link, with AVX-512 6.5 instead of 5.8.
    """
    constants, total = {}, 0
    for label, table in scan.constants.items():
        constants[label] = total
        total += np.shape(table)[1]
    touched: set[str] = set()
    zeroed = []
    for one in scan.passes:  # what is read or added to before it is written starts at zero
        zeroed += [f for f in (*one.own, *one.adds, *one.partner_adds) if f not in touched]
        touched.update(one.own, one.adds, one.partner_adds, one.writes)
    shared = {*zeroed, *scan.root, *scan.root_outputs.values()}
    for one in scan.passes:  # what others than the node's own steps reach must be at one place for all kinds
        shared.update(one.parent, one.adds, one.partner, one.partner_adds, one.totals, one.begin.values())
    lives = _lives(scan)
    late: list[list[str]] = []
    for p, one in enumerate(scan.passes):  # no other pass and no partner touches them
        among = one.adds if one.direction == INWARD and not (one.partner or one.partner_adds) else ()
        late.append([label for label in among if label in zeroed and lives[label] == (p, p)])
    alternating: dict[str, int] = {}
    for label in _alternating(scan, late, lives if handed else {}):
        alternating[label] = sum(scan.fields[other] for other in alternating)
    places: dict[str, int] = {}
    for label in scan.fields:
        if label in shared and label not in alternating:
            places[label] = _free_place(label, scan.fields[label], scan.fields, places, lives)
    carried, travelling = {}, 0
    for label, size in scan.carried.items():
        carried[label] = travelling
        travelling += size
    placed = {label: view for label, view in scan.placed.items() if view.port in (*inputs, *outputs)}
    return scan_code.Plan(
        record=max([0, *(place + scan.fields[label] for label, place in places.items())]),
        fields=places,
        begins=[[label for label in places if lives[label][0] == p] for p in range(len(scan.passes))],
        late=late,
        widths=dict(scan.fields),
        constants=constants,
        constant_row=total,
        inputs=inputs,
        outputs=outputs,
        zeroed=sorted(set(zeroed), key=list(scan.fields).index),
        root_outputs=dict(scan.root_outputs),
        labels=list(placed),
        shared=list(scan.shared),
        strided=[label for label, view in placed.items() if view.stride != 1],
        carried=carried,
        carried_widths=dict(scan.carried),
        alternating=alternating,
        passes=[
            scan_code.Visit(
                one.name, one.direction, tuple(one.constants), tuple(one.inputs), tuple(one.own), tuple(one.parent),
                tuple(one.writes), tuple(one.adds), tuple(one.outputs), tuple(one.partner), tuple(one.partner_adds),
                tuple(one.totals), tuple(one.carried), tuple(sorted(one.begin.items())),
            )
            for one in scan.passes
        ],
    )  # fmt: skip


def _alternating(scan: Scan, late: Sequence[Sequence[str]], lives: Mapping[str, tuple[int, int]]) -> list[str]:
    """Fields of a chain that need no record (`scan_code`): one pass alone hands them from node to neighbour.

    Outwards only those of which `lives` tells.
    """
    if any(parent != i - 1 for i, parent in enumerate(scan.parents)):
        return []
    found = []
    for p, one in enumerate(scan.passes):
        others = {*scan.root_outputs.values(), *one.totals, *one.begin.values(), *one.partner, *one.partner_adds}
        if one.direction == INWARD:
            others |= {*scan.root, *one.parent, *one.writes}
            found += [label for label in late[p] if label not in others]
        elif one.direction == OUTWARD:
            handed = [label for label in one.parent if label in one.writes and lives.get(label) == (p, p)]
            found += [label for label in handed if label not in {*others, *one.own}]
    return found


def _lives(scan: Scan) -> dict[str, tuple[int, int]]:
    """The first and the last pass that each field is needed in."""
    lives = {}
    for label in scan.fields:
        uses = [p for p, one in enumerate(scan.passes) if label in (*one.reads, *one.gives, *one.begin.values())]
        first = min(uses, default=0)
        lives[label] = (first, len(scan.passes) if label in scan.root_outputs.values() else max(uses, default=first))
    return lives


def _free_place(
    label: str, size: int, sizes: Mapping[str, int], places: Mapping[str, int], lives: Mapping[str, tuple[int, int]]
) -> int:
    """The first place of a record that no field needs during the passes that need this one."""
    first, last = lives[label]
    taken = sorted(
        (place, place + sizes[other])
        for other, place in places.items()
        if lives[other][0] <= last and lives[other][1] >= first
    )
    place = 0
    for start, end in taken:
        if place + size <= start:
            break
        place = max(place, end)
    return place


def _layouts(scan: Scan, plan: scan_code.Plan, widths: Sequence[Sequence[Sequence[int]]]) -> list[scan_code.Layout]:
    """For each kind, where the fields are that only its own steps read and write: as wide as it needs them."""
    count = len(widths) // max(1, len(scan.passes))
    lives, layouts = _lives(scan), []
    for k in range(count):
        needed: dict[str, int] = {}
        for p, one in enumerate(scan.passes):
            read, written = widths[p * count + k]
            before = len(one.constants) + len(one.inputs)
            used = [*zip(one.own, read[before:], strict=False), *zip(one.writes, written, strict=False)]
            for label, size in used:
                if label not in plan.fields and label not in plan.alternating:
                    needed[label] = max(size, needed.get(label, 0))
        places, sizes = dict(plan.fields), dict(scan.fields) | needed
        for label, size in needed.items():
            places[label] = _free_place(label, size, sizes, places, lives)
        end = max([0, *(place + sizes[label] for label, place in places.items())])
        layouts.append(scan_code.Layout({label: places[label] for label in needed}, end))
    return layouts


def _trace(scan: Scan, plan: scan_code.Plan, kinds: Sequence[Hashable]) -> list[list[tape.Tape | None]]:
    """Tapes of every pass and kind; None where a pass leaves the kind out."""
    steps = []
    for one in scan.passes:
        row: list[tape.Tape | None] = []
        roles_in, roles_out = one.reads, one.gives
        for kind in kinds:
            function = one.step(kind)
            if function is None:
                row.append(None)
                continue
            traced = tape.prepared(function)
            if len(traced.input_sizes) != len(roles_in) or len(traced.outputs) != len(roles_out):
                raise InputError(
                    f"pass {one.name!r}, kind {kind!r}: the step takes {len(traced.input_sizes)} and gives "
                    f"{len(traced.outputs)} columns; expected {roles_in} and {roles_out}"
                )
            fixed = {label: np.shape(table)[1] for label, table in scan.constants.items()}
            sizes = [*zip(roles_in, traced.input_sizes, strict=True)]
            sizes += zip(roles_out, (len(o) for o in traced.outputs), strict=True)
            for label, size in sizes:
                limit = fixed.get(label, scan.fields.get(label, scan.carried.get(label)))
                if limit is not None and size > limit:
                    raise InputError(f"pass {one.name!r}, kind {kind!r}: {label!r} has {size} numbers, at most {limit}")
            row.append(traced)
        steps.append(row)
    return steps


def _check_slices(
    name: str,
    scan: Scan,
    plan: scan_code.Plan,
    kinds: Sequence[Hashable],
    widths: Sequence[Sequence[Sequence[int]]],
    sizes_in: list[int],
    sizes_out: list[int],
) -> None:
    """Every slice must lie within its array: the machine code does not look."""
    sizes = dict(zip(plan.inputs + plan.outputs, sizes_in + sizes_out, strict=True))
    placed = scan.placed
    for p, one in enumerate(scan.passes):
        before = len(one.constants)
        after = len(one.gives) - len(one.outputs)
        last = max((place for _, _, place in scan.walkers), default=0) if one.direction == ROOTWARD else 0
        for k, kind in enumerate(kinds):
            read, written = widths[p * len(kinds) + k]
            parts = [*zip(one.inputs, read[before:], strict=False), *zip(one.outputs, written[after:], strict=False)]
            nodes = [i for i, own in enumerate(scan.kinds) if own == kind]
            for label, width in parts:
                view = placed[label]
                reach = max(0, (width - 1) * view.stride + 1 if width else 0) + last * view.walk
                for i in nodes:
                    start = view.starts[i]
                    if not 0 <= start <= sizes[view.port] - reach:
                        raise InputError(
                            f"{name}: node {i} has {label}[{start}:{start + reach}]; "
                            f"{view.port} has {sizes[view.port]} numbers"
                        )
    for label, chosen in plan.root_outputs.items():
        if plan.widths[chosen] != sizes[label]:
            raise InputError(f"{name}: output {label} has {sizes[label]} numbers, field {chosen} {plan.widths[chosen]}")


def _kept_records(scan: Scan, sorts: np.ndarray, visited: Sequence[Sequence[bool]]) -> int:
    """How many nodes, from the first, have records: the last ones need none if nothing is kept with or under them."""
    keeping = {k for one, row in zip(scan.passes, visited, strict=True) if one.own or one.writes
               for k, taken in enumerate(row) if taken}  # fmt: skip
    last = [i for i, k in enumerate(sorts) if k in keeping]
    return 1 + max([-1, *last, *scan.parents, *scan.partners, *(node for node, _, _ in scan.walkers)])


def first_to_reach(
    parents: Sequence[int], sorts: np.ndarray, visited: Sequence[Sequence[bool]], plan: scan_code.Plan
) -> np.ndarray:
    """For each node two bits a pass: whether its own record, and whether its parent's, is first reached by it.

    The root's is made before. Nodes go inwards, children before parents.
    """
    firsts = np.zeros(len(sorts), dtype=np.int64)
    for p, row in enumerate(visited):
        reached: set[int] = {-1}
        for i in reversed(range(len(sorts))) if plan.late[p] else ():
            if row[sorts[i]]:
                firsts[i] |= ((i not in reached) + 2 * (parents[i] not in reached)) << 2 * p
                reached |= {i, parents[i]}
    return firsts


def _tables(
    scan: Scan,
    plan: scan_code.Plan,
    kinds: Sequence[Hashable],
    layouts: Sequence[scan_code.Layout],
    visited: Sequence[Sequence[bool]],
    sizes_in: list[int],
    sizes_out: list[int],
    target: Target,
    turned: Sequence[int],
) -> tuple[np.ndarray, int, tuple[np.ndarray, ...]]:
    """(context for the machine code, bytes of scratch, what must stay alive)."""
    n, vector = len(scan.parents), target.size * target.lanes
    order = {kind: k for k, kind in enumerate(kinds)}
    sorts = np.array([order[kind] for kind in scan.kinds], dtype=np.int64)
    kept = _kept_records(scan, sorts, visited)
    lengths = [plan.record, *(layouts[k].record if i < kept else 0 for i, k in enumerate(sorts))]
    records = vector * np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    regions, position = [], int(records[-1])
    for port, size in enumerate((*sizes_in, *sizes_out)):
        regions.append(position)
        position += (3 if port in turned else 1) * size * vector
    traveller = position
    position += sum(plan.carried_widths.values()) * vector
    alternating = position
    position += 2 * plan.alternating_width * vector
    parents = np.array(scan.parents, dtype=np.int64)
    partners = np.array(scan.partners or [-1] * n, dtype=np.int64)
    rows = np.hstack([np.zeros((n, 0)), *(np.asarray(t, dtype=np.float64) for t in scan.constants.values())])
    rows = np.ascontiguousarray(rows, dtype=target.dtype)
    place = dict(zip(plan.ports, regions, strict=True))
    starts = np.zeros((n, len(plan.labels)), dtype=np.int64)
    placed = scan.placed
    views = [placed[label] for label in plan.labels]
    for p, view in enumerate(views):
        starts[:, p] = place[view.port] + vector * np.asarray(view.starts, dtype=np.int64)
    initial = np.zeros(sum(plan.widths.values()) + 1, dtype=target.dtype)
    for label, values in scan.root.items():
        initial[plan.initial(label) : plan.initial(label) + plan.widths[label]] = values
    walkers = np.array(scan.walkers, dtype=np.int64).reshape(-1, 3)
    firsts = first_to_reach(scan.parents, sorts, visited, plan)
    pointers = (parents, sorts, rows, starts, initial, partners, walkers, records, firsts)
    sizes = (*sizes_in, *sizes_out)
    blank = [size if port in scan.blank else 0 for port, size in zip(plan.ports, sizes, strict=True)]
    ranges: list[int] = []
    for row in visited:  # the nodes from the first to the last that a pass visits
        nodes = np.flatnonzero(np.asarray(row, dtype=bool)[sorts]) if n else np.zeros(0, dtype=int)
        ranges += [int(nodes[0]), int(nodes[-1]) + 1] if len(nodes) else [0, 0]
    facts = [
        *(a.ctypes.data for a in pointers), len(walkers), traveller, alternating, kept, *regions, *sizes, *blank,
        *(vector * view.stride for view in views), *(vector * view.walk for view in views), *ranges,
    ]  # fmt: skip
    context = np.concatenate([machine.libm_table(), np.array(facts, dtype=np.uint64)])
    return context, position + vector, pointers
