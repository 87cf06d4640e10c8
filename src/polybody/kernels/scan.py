"""Recursions over a tree as rolled kernels: code for each kind of node once, time and memory proportional to n.

Nodes 0 … n − 1 have a parent before them (−1 is the root). Each node owns a *record* of named fields, kept between
passes. A pass visits the nodes outwards (parents first) or inwards (children first); at each it evaluates the step
function of the node's kind:

    step(constants…, inputs…, own fields…, parent's fields…) -> (own fields written…, added to the parent…, outputs…)

The root has a record too: it starts as `root` says (zero otherwise), is read as the parent of −1's children, and
collects what they add. A field that no pass writes before it is read or added to starts at zero. A field's width is the
most any kind needs; a step may read or write a shorter beginning of it. `slices` says where each node's part of an
input or output begins; its length is what the kind's step takes or gives.

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
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from polybody.errors import InputError
from polybody.kernels import machine, scan_code, tape
from polybody.kernels.kernel import Kernel, Made, Ports, Shapes, digest, program
from polybody.kernels.target import Target, host

OUTWARD, INWARD = "outward", "inward"
Step = Callable[[Any], ca.Function]  # of a kind, whatever the caller takes for one


@dataclass(frozen=True)
class Pass:
    """One visit to every node. `step(kind)` gives the CasADi SX function of a kind."""

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
    """A rolled kernel. `key` names everything the step functions depend on (the tables are not part of the code)."""
    chosen = (target or host()).with_dtype(dtype).with_lanes(lanes)
    _check(name, inputs, outputs, scan)
    kinds = sorted(set(scan.kinds), key=repr)
    plan = _plan(scan, [n for n, _ in inputs], [n for n, _ in outputs])

    def make() -> Made:
        steps = _trace(scan, plan, kinds)
        widths = [[[*t.input_sizes], [len(o) for o in t.outputs]] for row in steps for t in row]
        costs = [[(t.operations(), t.work()) for t in row] for row in steps]
        return Made(scan_code.text(plan, steps, chosen), chosen, {"costs": costs, "widths": widths})

    title = digest("scan", key, chosen, [kinds, plan.describe()])
    loaded = program(title, name, make)
    facts = loaded.facts
    sizes_in, sizes_out = [s for _, s in inputs], [math.prod(s) for _, s in outputs]
    _check_slices(name, scan, plan, kinds, facts["widths"], sizes_in, sizes_out)
    context, scratch, alive = _tables(scan, plan, kinds, sizes_in, sizes_out, chosen)
    counts = [sum(k == kind for k in scan.kinds) for kind in kinds]
    nodes, work = (sum(c[k] * n for row in facts["costs"] for c, n in zip(row, counts, strict=True)) for k in range(2))
    kept = {"scratch": scratch, "contexts": [context], "alive": alive}
    return Kernel(name, inputs, outputs, loaded, chosen, nodes=nodes, work=work, **kept)


def _check(name: str, inputs: Ports, outputs: Shapes, scan: Scan) -> None:
    n = len(scan.parents)
    if len(scan.kinds) != n:
        raise InputError(f"{name}: {len(scan.kinds)} kinds for {n} nodes")
    for i, p in enumerate(scan.parents):
        if not -1 <= p < i:
            raise InputError(f"{name}: node {i} has parent {p}; wanted -1 (the root) or a node before it")
    for label, table in scan.constants.items():
        if np.ndim(table) != 2 or len(table) != n:
            raise InputError(f"{name}: constants {label!r} have shape {np.shape(table)}; wanted ({n}, width)")
    given, wanted = {label for label, _ in inputs}, {label for label, _ in outputs}
    known = {
        "constants": set(scan.constants), "inputs": given & set(scan.slices), "outputs": wanted & set(scan.slices),
        "own": set(scan.fields), "parent": set(scan.fields), "writes": set(scan.fields), "adds": set(scan.fields),
    }  # fmt: skip
    for one in scan.passes:
        if one.direction not in (OUTWARD, INWARD):
            raise InputError(f"{name}: pass {one.name!r} has direction {one.direction!r}; wanted 'outward' or 'inward'")
        for role, names in known.items():
            for label in getattr(one, role):
                if label not in names:
                    raise InputError(f"{name}: pass {one.name!r} names {label!r} in {role}; known are {sorted(names)}")
        if one.adds and one.direction == OUTWARD:
            raise InputError(f"{name}: pass {one.name!r} adds to parents, so it must go inward")
    for label, chosen in scan.root_outputs.items():
        if label not in wanted or chosen not in scan.fields:
            raise InputError(f"{name}: root_outputs has {label!r}: {chosen!r}; wanted an output and a field")
    for label, vector in scan.root.items():
        if label not in scan.fields or len(vector) != scan.fields[label]:
            raise InputError(f"{name}: root has {label!r} of {len(vector)} numbers; wanted a field, of its width")


def _plan(scan: Scan, inputs: list[str], outputs: list[str]) -> scan_code.Plan:
    """Where everything is within a record, a row of constants, and a row of slices."""
    places, width = {}, 0
    for label, size in scan.fields.items():
        places[label] = width
        width += size
    constants, total = {}, 0
    for label, table in scan.constants.items():
        constants[label] = total
        total += np.shape(table)[1]
    touched: set[str] = set()
    zeroed = []
    for one in scan.passes:  # what is read or added to before it is written starts at zero
        zeroed += [f for f in (*one.own, *one.adds) if f not in touched]
        touched.update(one.own, one.adds, one.writes)
    return scan_code.Plan(
        record=width,
        fields=places,
        widths=dict(scan.fields),
        constants=constants,
        constant_row=total,
        inputs=inputs,
        outputs=outputs,
        zeroed=sorted(set(zeroed), key=list(scan.fields).index),
        root_outputs=dict(scan.root_outputs),
        passes=[
            scan_code.Visit(
                one.name, one.direction == INWARD, tuple(one.constants), tuple(one.inputs), tuple(one.own),
                tuple(one.parent), tuple(one.writes), tuple(one.adds), tuple(one.outputs),
            )
            for one in scan.passes
        ],
    )  # fmt: skip


def _trace(scan: Scan, plan: scan_code.Plan, kinds: Sequence[Hashable]) -> list[list[tape.Tape]]:
    """Tapes of every pass and kind."""
    steps = []
    for one in scan.passes:
        row = []
        for kind in kinds:
            traced = tape.from_function(one.step(kind))
            roles_in = (*one.constants, *one.inputs, *one.own, *one.parent)
            roles_out = (*one.writes, *one.adds, *one.outputs)
            if len(traced.input_sizes) != len(roles_in) or len(traced.outputs) != len(roles_out):
                raise InputError(
                    f"pass {one.name!r}, kind {kind!r}: the step takes {len(traced.input_sizes)} and gives "
                    f"{len(traced.outputs)} columns; wanted {roles_in} and {roles_out}"
                )
            fixed = {label: np.shape(table)[1] for label, table in scan.constants.items()}
            sizes = [*zip(roles_in, traced.input_sizes, strict=True)]
            sizes += zip(roles_out, (len(o) for o in traced.outputs), strict=True)
            for label, size in sizes:
                limit = fixed.get(label, scan.fields.get(label))
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
    for p, one in enumerate(plan.passes):
        before = len(one.constants)
        after = len(one.writes) + len(one.adds)
        for k, kind in enumerate(kinds):
            read, written = widths[p * len(kinds) + k]
            parts = [*zip(one.inputs, read[before:], strict=False), *zip(one.outputs, written[after:], strict=False)]
            nodes = [i for i, own in enumerate(scan.kinds) if own == kind]
            for label, width in parts:
                for i in nodes:
                    start = scan.slices[label][i]
                    if not 0 <= start <= sizes[label] - width:
                        raise InputError(
                            f"{name}: node {i} has {label}[{start}:{start + width}]; {label} has {sizes[label]} numbers"
                        )
    for label, chosen in plan.root_outputs.items():
        if plan.widths[chosen] != sizes[label]:
            raise InputError(f"{name}: output {label} has {sizes[label]} numbers, field {chosen} {plan.widths[chosen]}")


def _tables(
    scan: Scan,
    plan: scan_code.Plan,
    kinds: Sequence[Hashable],
    sizes_in: list[int],
    sizes_out: list[int],
    target: Target,
) -> tuple[np.ndarray, int, tuple[np.ndarray, ...]]:
    """(context for the machine code, bytes of scratch, what must stay alive)."""
    n, vector = len(scan.parents), target.size * target.lanes
    regions, position = [], (n + 1) * plan.record * vector
    for size in (*sizes_in, *sizes_out):
        regions.append(position)
        position += size * vector
    parents = np.array(scan.parents, dtype=np.int64)
    order = {kind: k for k, kind in enumerate(kinds)}
    sorts = np.array([order[kind] for kind in scan.kinds], dtype=np.int64)
    rows = np.hstack([np.zeros((n, 0)), *(np.asarray(t, dtype=np.float64) for t in scan.constants.values())])
    rows = np.ascontiguousarray(rows, dtype=target.dtype)
    starts = np.zeros((n, len(regions)), dtype=np.int64)
    for p, label in enumerate(plan.inputs + plan.outputs):
        if label in scan.slices:
            starts[:, p] = regions[p] + vector * np.asarray(scan.slices[label], dtype=np.int64)
    initial = np.zeros(plan.record + 1, dtype=target.dtype)
    for label, values in scan.root.items():
        initial[plan.fields[label] : plan.fields[label] + plan.widths[label]] = values
    facts = [n, *(a.ctypes.data for a in (parents, sorts, rows, starts, initial)), *regions, *sizes_in, *sizes_out]
    context = np.concatenate([machine.libm_table(), np.array(facts, dtype=np.uint64)])
    return context, position + vector, (parents, sorts, rows, starts, initial)
