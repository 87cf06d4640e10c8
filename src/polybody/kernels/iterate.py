"""A step function iterated many times in one call: the state stays in lanes, nothing returns to Python in between.

    x_{k+1} = step(x_k, p, u_k),     k = 0 … steps − 1

x is the state, p what stays the same, u_k a row of a table. Any of p and u may be absent. The kernel's arguments are x
(..., nx), p (..., np) and u (..., steps·nu), a table flattened row by row; its result is the last state (..., nx) or,
with `every`, all states after each step (..., steps, nx).

The body is a loop around the step's straight-line code. x and p are kept as vectors on the stack; u_k is read, and x_k
written, by the same transposition as in `rows`, at an offset that grows from step to step. The first step and the last
are read from the context, so that one compilation serves every length, and many steps can be made in several rounds,
between which Python handles signals: a later round begins with the state that the one before it left in the result.

Until that is compiled, in the background, an interpreted kernel of one step (`kernel.interpreted`) takes a batch of
states from step to step: see `Stepwise`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import casadi as ca
import numpy as np

from polybody.errors import InputError
from polybody.interrupts import passed_on
from polybody.kernels import background, machine, tape
from polybody.kernels.code import Code
from polybody.kernels.emit import emit_nodes
from polybody.kernels.kernel import FIRST_TOUCH, NANOSECONDS, TURN, Kernel, interpreted
from polybody.kernels.locks import Lock, tracing
from polybody.kernels.operations import LIBM
from polybody.kernels.programs import Made, Program, compiled, digest, known, prepare, program, remember
from polybody.kernels.rows import RowPorts, module_text
from polybody.kernels.target import Target, host


def build(
    name: str,
    sizes: tuple[int, int, int],
    steps: int,
    trace: Callable[[], ca.Function | tape.Tape],
    key: bytes | str,
    *,
    every: bool = True,
    dtype: Any = np.float64,
    lanes: int | None = None,
    target: Target | None = None,
) -> Kernel | Stepwise:
    """`sizes` are (nx, np, nu). `trace()` gives the SX function of the step: columns x[, p][, u] to one column x."""
    chosen = (target or host()).with_dtype(dtype).with_lanes(lanes)
    nx, n_constant, n_table = sizes
    if steps < 1:
        raise InputError(f"{name}: {steps} steps; expected at least 1")

    def read() -> tape.Tape:
        traced = tape.prepared(trace())
        expected = [nx, *(n for n in (n_constant, n_table) if n)]
        if traced.input_sizes != expected or [len(o) for o in traced.outputs] != [nx]:
            raise InputError(
                f"{name}: the step takes {traced.input_sizes} and gives {[len(o) for o in traced.outputs]} numbers; "
                f"expected {expected} and [{nx}]"
            )
        return traced

    def made(traced: tape.Tape) -> Made:
        facts = {"nodes": traced.operations(), "work": traced.work()}
        return Made(body_text(traced, sizes, every, chosen), chosen, facts)

    title = digest("iterate", key, chosen, [name, *sizes, every])

    def whole(count: int) -> Kernel:
        return _kernel(name, sizes, count, program(title, name, lambda: made(read())), every, chosen)

    if background.tier() == "optimised" or (title not in _waiting and known(title)):
        return whole(steps)
    with background.building(), tracing, _lock:
        step = _waiting.get(title)
        if step is None:
            prepare(chosen)
            traced = passed_on(read)
            step = interpreted(name, _inputs(sizes, 1), [("x", (nx,))], traced, chosen)

            def job(between: Callable[[], None]) -> None:
                between()
                remember_long(title, Program(*compiled(title, name, made(traced), between)))
                _waiting.pop(title, None)

            _waiting[title] = step
            if background.tier() == "auto":
                background.submit(name, job)
    return Stepwise(step, sizes, steps, every, lambda: None if title in _waiting else whole)


#: steps that are interpreted until they are compiled, by title
_waiting: dict[str, Kernel] = {}
_lock = Lock()


def remember_long(title: str, made: Program) -> None:
    """For as long as the process lives: between two rollouts nobody else may hold it."""
    _kept.append(remember(title, made))


_kept: list[Program] = []


class Stepwise:
    """The kernel before it is compiled: states go from step to step in Python, a whole batch at a time."""

    def __init__(
        self, step: Kernel, sizes: tuple[int, int, int], steps: int, every: bool,
        ready: Callable[[], Callable[[int], Kernel] | None],
    ) -> None:  # fmt: skip
        """`ready()` makes kernels of so many steps, once it can."""
        self.step, self.sizes, self.steps, self.every, self.ready = step, sizes, steps, every, ready

    def __call__(self, x: Any, *others: Any) -> np.ndarray:
        nx, n_constant, n_table = self.sizes
        given = [np.asarray(value, dtype=self.step.dtype) for value in (x, *others)]
        x, constant = given[0], given[1 : 1 + bool(n_constant)]
        lead = np.broadcast_shapes(*(value.shape[:-1] for value in given))
        table = given[-1].reshape(*given[-1].shape[:-1], self.steps, n_table) if n_table else None
        kept = np.empty((*lead, self.steps, nx), self.step.dtype) if self.every else None
        for k in range(self.steps):
            make = self.ready() if k else None
            if make is not None:  # compiled meanwhile: the rest at once
                rest = [] if table is None else [np.ascontiguousarray(table[..., k:, :]).reshape(*table.shape[:-2], -1)]
                x = make(self.steps - k)(x, *constant, *rest)
                if kept is None:
                    return x
                kept[..., k:, :] = x
                return kept
            x = self.step(x, *constant, *([] if table is None else [np.ascontiguousarray(table[..., k, :])]))
            if kept is not None:
                kept[..., k, :] = x
        return np.broadcast_to(x, (*lead, nx)).copy() if kept is None else kept


def _inputs(sizes: tuple[int, int, int], steps: int) -> list[tuple[str, int]]:
    nx, n_constant, n_table = sizes
    return [("x", nx), *([("p", n_constant)] if n_constant else []), *([("u", steps * n_table)] if n_table else [])]


def _kernel(
    name: str, sizes: tuple[int, int, int], steps: int, loaded: Program, every: bool, chosen: Target
) -> Kernel:
    nx = sizes[0]
    one = (max(1, loaded.facts["work"]) * NANOSECONDS + FIRST_TOUCH * nx * every) * chosen.lanes
    rounds = range(0, steps, max(1, min(steps, int(TURN / one))))
    contexts = [
        np.concatenate([machine.libm_table(), np.array([k, min(k + rounds.step, steps)], dtype=np.uint64)])
        for k in rounds
    ]
    result = (steps, nx) if every else (nx,)
    nodes, work = loaded.facts["nodes"] * steps, loaded.facts["work"] * steps
    return Kernel(
        name, _inputs(sizes, steps), [("x", result)], loaded, chosen, nodes=nodes, work=work, contexts=contexts
    )


class _Offset(RowPorts):
    """Rows that begin some bytes further on at each step."""

    def __init__(self, input_sizes: Sequence[int], output_sizes: Sequence[int], target: Target, offset: str) -> None:
        super().__init__(input_sizes, output_sizes, target)
        self.offset = offset

    def _row(self, code: Code, port: int, lane: int) -> str:
        return code.step(super()._row(code, port, lane), self.offset)


class _Begin(RowPorts):
    """The state to begin with: the argument, or in later rounds what stands in the result."""

    scope = ""  # the result is read, so nothing is promised about what is not written

    def _row(self, code: Code, port: int, lane: int) -> str:
        row = super()._row(code, port, lane)
        if port:
            return row
        result = super()._row(code, self.first_output, lane)
        before = code.step(result, "%before")
        return code.add(f"select i1 %first_round, ptr {row}, ptr {before}")


class _StepPorts:
    """The step's inputs: x and p from the stack, u from its table; its output goes to a second copy of x."""

    def __init__(self, kept: dict[int, str], table: RowPorts, new: str) -> None:
        self.kept, self.table, self.new = kept, table, new
        self.values: dict[tuple[int, int], str] = {}

    def read(self, code: Code, argument: int, element: int) -> str:
        if argument not in self.kept:
            return self.table.read(code, argument, element)
        if (argument, element) not in self.values:
            self.values[argument, element] = code.load(self.kept[argument], element)
        return self.values[argument, element]

    def write(self, code: Code, output: int, element: int, value: str) -> None:
        code.store(value, self.new, element)


def body_text(traced: tape.Tape, sizes: tuple[int, int, int], every: bool, target: Target) -> str:
    """The module of an iterated kernel: its function is `body`."""
    nx, n_constant, n_table = sizes
    code = Code(target)
    widths = [nx, *(n for n in (n_constant, n_table) if n)]
    kept = {k: code.buffer(width) for k, width in enumerate(widths[: 1 + bool(n_constant)])}
    new = code.buffer(nx)
    code.do(f"%begin = load i64, ptr {code.step('%libm', len(LIBM), 'i64')}")
    code.do(f"%steps = load i64, ptr {code.step('%libm', len(LIBM) + 1, 'i64')}")
    code.do("%first_round = icmp eq i64 %begin, 0")
    code.do("%last_done = add i64 %begin, -1")
    code.do(f"%before = mul i64 %last_done, {code.size * nx if every else 0}")
    first = _Begin(widths, [nx], target)
    for argument, buffer in kept.items():
        for element in range(widths[argument]):
            code.store(first.read(code, argument, element), buffer, element)
    code.do("br label %step")
    code.label("step")
    code.do("%k = phi i64 [%begin, %entry], [%following, %step]")
    code.do(f"%read = mul i64 %k, {code.size * n_table}")
    code.do(f"%write = mul i64 %k, {code.size * nx}")
    table = _Offset(widths, [nx], target, "%read")
    emit_nodes(code, traced, _StepPorts(kept, table, new))
    results = _Offset(widths, [nx], target, "%write")
    for element in range(nx):
        value = code.load(new, element)
        code.store(value, kept[0], element)
        if every:
            results.write(code, 0, element, value)
    code.do("%following = add i64 %k, 1")
    code.do("%more = icmp slt i64 %following, %steps")
    code.do("br i1 %more, label %step, label %done")
    code.label("done")
    if not every:
        last = RowPorts(widths, [nx], target)
        for element in range(nx):
            last.write(code, 0, element, code.load(kept[0], element))
    return module_text(code, target)


__all__ = ["Stepwise", "body_text", "build"]
