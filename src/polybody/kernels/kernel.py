"""A compiled function of arrays: `kernel(*arrays)` on any batch of states.

`build` compiles a straight-line kernel from a CasADi function; `scan.build` compiles a rolled one. A straight-line
kernel is interpreted at first (`interpret`) and compiled in the background, unless $POLYBODY_TIER is "optimised". All
give a `Kernel`, whose call is, in this order of cost:

1. `Kernel.call`, a builtin: a single state of plain float64 arrays never enters Python code;
2. anything else comes to `Kernel.batch`: arguments checked, broadcast by strides, shared among threads, GIL released.
"""

from __future__ import annotations

import math
import threading
import time
from array import array
from collections.abc import Callable, Sequence
from typing import Any

import casadi as ca
import numpy as np

from polybody.errors import InputError
from polybody.interrupts import passed_on, stop_here
from polybody.kernels import arrays, background, bodies, interpret, machine, memory, pool, programs, rows, runtime, tape
from polybody.kernels.factored import Factored
from polybody.kernels.locks import Lock, tracing
from polybody.kernels.programs import (
    Made,
    Program,
    compiled,
    digest,
    encoded,
    interpreter,
    known,
    remember,
    runtime_of,
)
from polybody.kernels.runtime_code import DIRECT, STAGED
from polybody.kernels.table_rows import can_stream, is_long
from polybody.kernels.target import Target, host
from polybody.kernels.units import first_off_unit
from polybody.properties import cached_property

NANOSECONDS = 0.06  # of one float64 addition of a state, one thread: measured; to decide about threads and turns only
WORTH_A_THREAD = 50e3  # nanoseconds of work below which another thread costs more than it brings

SMALL_BODY = {8: 560, 4: 520}  # operations, by the bytes of a number: twice the lanes pay below, and
FEW_RESULTS = {8: 128, 4: 40}  # up to so many results
TURN = 10e6  # nanoseconds of work, as estimated, after which Python may handle signals
FIRST_TOUCH = 5.0  # nanoseconds a number of results in memory that the system must still provide
TURN_SECONDS = 0.02, 0.06  # measured: shorter turns grow, longer ones shrink; memory touched first can take ten times

STREAMED_FROM = 12 << 20  # bytes of results: more than caches keep for who reads them next; measured on Zen 4
#: nanoseconds of computing a byte of results: memory takes so much longer to be written by way of the caches (12 GB/s
#: and 21 past them on Zen 3, 16 and 42 on Zen 4), and what is computed meanwhile costs nothing
STAGED_BELOW = 0.036

REMEMBERED = 64  # shapes of batches whose strides and division among threads are known

MANY = 64  # states from which on more side by side pay that single calls would have to wait for

_adopting = Lock()

Ports = Sequence[tuple[str, int]]
Shapes = Sequence[tuple[str, tuple[int, ...]]]


class Form:
    """How a kernel runs in one tier: a body, and what it is called with. Whoever calls takes one and keeps to it."""

    def __init__(
        self, sizes: Sequence[int], shapes: Sequence[Sequence[int]], program: Program, target: Target, *, nodes: int,
        work: int, scratch: int = 0, dense: bool = False, contexts: Sequence[np.ndarray] = (), alive: object = None,
    ) -> None:  # fmt: skip
        self.program, self.lanes, self.nodes, self.dense = program, target.lanes, nodes, dense
        self.nanoseconds = work * NANOSECONDS * target.size / 8  # of a state
        self.addressed = len(sizes) + (0 if dense else len(shapes))
        self.row_bytes = [target.size * n for n in (*sizes, *(math.prod(shape) for shape in shapes))]
        self.result_bytes = sum(self.row_bytes[len(sizes) :])
        self.result_numbers = self.result_bytes // target.size
        self.streams = dense and is_long([math.prod(s) for s in shapes]) and can_stream(target)
        self.scratch_bytes = scratch + (target.lanes * self.result_bytes if dense else 0)
        self.scratch_bytes += -self.scratch_bytes % 64
        self.contexts = list(contexts) or [machine.libm_table()]
        self.first_context = self.contexts[0].ctypes.data
        self.runtime = runtime_of(target)
        self.run = runtime.TOGETHER_TYPE(self.runtime.addresses["together"])
        self.alive = (program, self.contexts, alive)
        self._shares: dict[tuple[int, int], tuple[int, int, int]] = {}

    def share(self, states: int, threads: int) -> tuple[int, int, int]:
        """(threads that pay for so many states, states of a turn, states that a thread takes at a time)."""
        found = self._shares.get((states, threads))
        if found is None:
            cost = self.nanoseconds / len(self.contexts)
            worth = int(states * cost / WORTH_A_THREAD)
            workers = max(1, min(threads, worth, -(-states // self.lanes))) if worth > 1 else 1
            written = FIRST_TOUCH * self.result_numbers / len(self.contexts)
            turn = min(states, max(1, int(TURN / (self.lanes * (cost + written) + 1))) * workers * self.lanes)
            found = workers, turn, pool.piece(turn, self.lanes, workers)
            if len(self._shares) >= REMEMBERED:
                self._shares.clear()
            self._shares[states, threads] = found
        return found


class Kernel:
    """A compiled function. `inputs` are (name, size) pairs, `outputs` (name, shape) pairs, row-major."""

    def __init__(
        self,
        name: str,
        inputs: Ports,
        outputs: Shapes,
        program: Program,
        target: Target,
        *,
        nodes: int,
        work: int,
        scratch: int = 0,
        dense: bool = False,
        contexts: Sequence[np.ndarray] = (),
        alive: object = None,
    ) -> None:
        """`nodes`: operations a state; `work`: their time in additions; `scratch`: bytes a block needs.

        `contexts`: what bodies read beside their arrays, libm's table first; a batch is run once with each, in order.

        `dense`: the body puts the results of a block behind each other (`rows.DenseRows`), not at given addresses.
        """
        self.name = name
        self.inputs = tuple((str(n), int(s)) for n, s in inputs)
        self.outputs = tuple((str(n), tuple(int(k) for k in shape)) for n, shape in outputs)
        self.dtype = target.dtype
        self._sizes = [size for _, size in self.inputs]
        self._shapes = [shape for _, shape in self.outputs]
        self._result_steps = [target.size * math.prod(shape) for shape in self._shapes]
        self._form = Form(
            self._sizes, self._shapes, program, target, nodes=nodes, work=work, scratch=scratch, dense=dense,
            contexts=contexts, alive=alive,
        )  # fmt: skip
        self._row_bytes = self._form.row_bytes
        self._address = runtime.make_address(self._form.runtime)
        self._memory = threading.local()
        self._known: dict[tuple[tuple[int, ...], ...], tuple[int, list[tuple[int, ...]], list[int]]] = {}
        self._earlier: list[object] = []
        self._units: Sequence[tuple[int, int]] = ()
        self._wide: Form | Callable[[], Form] | None = None
        self.call: Callable[..., Any] = self.fast(self.batch, name)

    @property
    def nodes(self) -> int:
        """Operations of a state."""
        return self._form.nodes

    @property
    def form(self) -> Form:
        """How it runs now; whoever calls its body by address keeps it."""
        return self._form

    @property
    def lanes(self) -> int:
        """States that are computed side by side."""
        return self._form.lanes

    def guard(self, units: Sequence[tuple[int, int]]) -> None:
        """Let single calls be computed without Python code only where the quaternions at these places are unit.

        `units` are (input, first of its four elements).
        """
        if tuple(units) != tuple(self._units):
            self._units = tuple(units)
            self.adopt(self._form)

    def adopt(self, form: Form) -> None:
        """Run in another tier from the next call on; calls under way end in theirs, whose memory stays."""
        with _adopting:
            self._earlier.append((self._form, self.__dict__.get("lone")))
            lone = self.__dict__.get("lone")
            if lone is not None:
                made = self._lone(form)
                self._earlier.append(made)
                lone.plan[:] = made.plan  # in one go, and never while machine code reads it: both have the GIL
            self._form = form

    def widen(self, make: Callable[[], Form]) -> None:
        """Let batches of many states run in the form that `make()` compiles, when the first of them comes."""
        self._wide = make

    def _of_many(self, form: Form, states: int) -> Form:
        """The form for so many states: the wide one as soon as it is there."""
        wide = self._wide
        if wide is None or states < MANY:
            return form
        if isinstance(wide, Form):
            return wide
        if background.tier() == "optimised":
            self._wide = made = wide()
            return made
        self._wide = None  # whoever comes meanwhile has the narrow one
        if background.tier() == "auto":
            background.submit(self.name, lambda _: setattr(self, "_wide", wide()))
        return form

    def __call__(self, *values: Any, out: Any = None, check: bool = False) -> Any:
        """Evaluate; see `batch`."""
        if out is None and not check:
            return self.call(*values)
        return self.batch(*values, out=out, check=check)

    def fast(self, fallback: Callable[..., Any], name: str | None = None, doc: str = "") -> Callable[..., Any]:
        """A builtin that computes a lone plain state itself and passes any other call to `fallback`, unchanged."""
        if self.lone is None:
            return fallback
        return runtime.make_builtin(self._form.runtime, self.lone, fallback, name or self.name, doc)

    @cached_property
    def _single(self) -> Callable[..., Any]:
        """What computes a lone plain state, and answers None to any other call."""
        return self.fast(_no_answer)

    @cached_property
    def lone(self) -> runtime.Lone | None:
        """What single calls go by without Python code (see `methods`); None where that cannot be done."""
        if "lone" not in self._form.runtime.addresses or len(self._form.contexts) > 1:
            return None
        return self._lone(self._form)

    def _lone(self, form: Form) -> runtime.Lone:
        return runtime.make_lone(
            alone=form.runtime.addresses["alone"],
            body=form.program.body,
            scratch=np.empty(form.scratch_bytes // 8 + 8),
            input_sizes=self._sizes,
            output_shapes=self._shapes,
            context=form.contexts[0],
            alive=(form.alive, form.runtime),
            dense=form.dense,
            dtype=self.dtype,
            units=self._units,
            limit=max(1, int(2 * WORTH_A_THREAD / max(NANOSECONDS, form.nanoseconds))),
        )

    def batch(self, *values: Any, out: Any = None, check: bool = False) -> Any:
        """Evaluate on arrays (..., size): leading dimensions broadcast; one array or a tuple (..., *shape) comes back.

        `out` takes the results in place; `check` rejects arguments that are not finite.
        """
        form = self._form
        if not check:
            answer = self._plain_batch(form, values, out)
            if answer is not None:
                return answer
        if len(values) != len(self.inputs):
            wanted = ", ".join(f"{n} (..., {s})" for n, s in self.inputs)
            raise InputError(f"{self.name} got {len(values)} arguments; expected {len(self.inputs)}: {wanted}")
        labels = [n for n, _ in self.inputs]
        given = [arrays.as_argument(v, n, s) for v, (n, s) in zip(values, self.inputs, strict=True)]
        batch = arrays.batch_shape(given, labels)
        if check:
            arrays.refuse_non_finite(given, labels)
        results = self._results(batch, out)
        if math.prod(batch):
            self._evaluate(form, batch, given, results)
        if out is not None:
            return out
        # As NumPy does: a lone number comes back as a scalar, not as an array without dimensions.
        returned = tuple(r[()] if r.ndim == 0 else r for r in results)
        return returned[0] if len(returned) == 1 else returned

    def plain(self, values: Sequence[Any], out: Any = None) -> Any:
        """`batch` of plain arrays whose quaternions are unit (`guard`), in a few microseconds; None of any other."""
        if out is None and values[0].ndim == 1 and (found := self._single(*values)) is not None:
            return found
        return self._plain_batch(self._form, values, out, self._units)

    def _plain_batch(self, form: Form, values: Sequence[Any], out: Any, units: Sequence[tuple[int, int]] = ()) -> Any:
        """The usual batch (contiguous, of the kernel's dtype, one leading shape) with no detours; else None."""
        given = arrays.plain_shapes(values, self.dtype)
        known = self._known.get(given) if given else None
        if known is None and (given is None or (known := self._learn(given)) is None):
            return None
        states, shapes, steps = known
        for port, element in units:
            if first_off_unit(values[port], element) >= 0:
                return None
        address = self._address
        addresses = [address(a) for a in values]
        if out is None:
            results = [memory.empty(shape, self.dtype) for shape in shapes]
            addresses += [address(a) for a in results]
        else:
            results = list(out) if isinstance(out, tuple) else [out]
            if not arrays.plain_results(results, shapes, self.dtype):
                return None
            addresses += [address(a) for a in results]
            if arrays.touching(addresses, [a.nbytes for a in (*values, *results)], len(values)):
                return None
        self._launch(form, [states], steps, addresses)
        if out is not None:
            return out
        return results[0] if len(results) == 1 else tuple(results)

    def _learn(self, given: tuple[tuple[int, ...], ...]) -> tuple[int, list[tuple[int, ...]], list[int]] | None:
        """(states, shapes of the results, strides) of plain arguments of these shapes; None if they do not fit."""
        leading = arrays.plain_leading(given, self._sizes)
        if not leading or (states := math.prod(leading)) == 0:
            return None
        steps = [row if len(shape) > 1 else 0 for shape, row in zip(given, self._row_bytes, strict=False)]
        if len(self._known) >= REMEMBERED:
            self._known.clear()
        known = states, [leading + shape for shape in self._shapes], steps + self._result_steps
        self._known[given] = known
        return known

    def _results(self, batch: tuple[int, ...], out: Any) -> list[np.ndarray]:
        if out is None:
            return [memory.empty(batch + shape, self.dtype) for _, shape in self.outputs]
        given = out if isinstance(out, tuple | list) else (out,)
        if len(given) != len(self.outputs):
            raise InputError(f"out holds {len(given)} arrays; {self.name} has {len(self.outputs)} results")
        labels = ["out" if len(given) == 1 else f"out[{j}] ({n})" for j, (n, _) in enumerate(self.outputs)]
        return [
            arrays.as_output(value, label, batch + shape)
            for value, label, (_, shape) in zip(given, labels, self.outputs, strict=True)
        ]

    def _evaluate(self, form: Form, batch: tuple[int, ...], given: list[np.ndarray], results: list[np.ndarray]) -> None:
        """Convert what the body cannot use as it is, in pieces if that is much, and run."""
        leading = len(batch)
        convert = [not arrays.plain(a, a.ndim - 1, self.dtype) for a in given]
        shared = arrays.overlap(results, given)
        inner = 0 if form.dense else leading  # dense results leave no gaps between states either
        stage = [s or not arrays.plain(r, inner, self.dtype) for r, s in zip(results, shared, strict=True)]
        if any(shared) and any(convert + stage):
            # Pieces written early could be read late: take the arguments aside first.
            given = [a.copy() if any(np.may_share_memory(a, r) for r in results) else a for a in given]
        cost = sum(a.nbytes for a, c in zip(given, convert, strict=True) if c)
        cost += sum(r.nbytes for r, s in zip(results, stage, strict=True) if s)
        if cost > arrays.PIECE and max(batch) > 1:
            axis, parts = arrays.pieces(batch, cost)
            for part in parts:
                less = (*batch[:axis], part.stop - part.start, *batch[axis + 1 :])
                some = [arrays.cut(a, leading, 1, axis, part) for a in given]
                into = [
                    arrays.cut(r, leading, len(shape), axis, part)
                    for r, (_, shape) in zip(results, self.outputs, strict=True)
                ]
                self._evaluate(form, less, some, into)
            return
        sources = [np.ascontiguousarray(a, dtype=self.dtype) if c else a for a, c in zip(given, convert, strict=True)]
        targets = [np.empty(r.shape, self.dtype) if s else r for r, s in zip(results, stage, strict=True)]
        self._execute(form, batch, sources, targets)
        for r, t, staged in zip(results, targets, stage, strict=True):
            if staged:
                np.copyto(r, t, casting="same_kind")

    def _execute(
        self, form: Form, batch: tuple[int, ...], sources: list[np.ndarray], targets: list[np.ndarray]
    ) -> None:
        """Hand strides and addresses to the machine code."""
        steps = [arrays.batch_strides(a, batch, 1) for a in sources]
        steps += [arrays.batch_strides(t, batch, len(s)) for t, (_, s) in zip(targets, self.outputs, strict=True)]
        extents, kept = arrays.collapse(batch, steps)
        strides = [step for steps in kept for step in steps]
        self._launch(form, extents, strides, [self._address(a) for a in (*sources, *targets)])

    def _launch(self, form: Form, extents: list[int], strides: list[int], addresses: list[int]) -> None:
        """Run over these extents, with their strides port by port, by as many threads as pay.

        It is done in turns, for signals' sake.
        """
        states = math.prod(extents)
        if self._wide is not None:
            form = self._of_many(form, states)
        background.wake()
        workers, turn, piece = form.share(states, pool.thread_count())
        least = workers * form.lanes
        job = array(
            "q",
            [
                0, 0, piece, turn, form.program.body, form.first_context,
                self._scratch(form, workers), form.scratch_bytes, form.addressed, len(addresses), len(extents),
                self._streamed(form, states, addresses[len(self.inputs) :]) if form.dense else 0,
                *extents, *addresses, *strides, *form.row_bytes,
            ],
        )  # fmt: skip
        start, helpers, system = job.buffer_info()[0], workers - 1, pool.starter()
        for context in form.contexts:
            done = 0
            while done < states:
                if done or turn < states or context is not form.contexts[0]:
                    piece = pool.piece(turn, form.lanes, workers)
                    job[:6] = array(
                        "q", [done, 0, piece, min(done + turn, states), form.program.body, self._address(context)]
                    )
                stop_here()
                begun = time.perf_counter()
                form.run(start, helpers, *system)
                elapsed = time.perf_counter() - begun
                done += turn
                if elapsed < TURN_SECONDS[0]:
                    turn *= 2
                elif elapsed > TURN_SECONDS[1]:
                    turn = max(least, turn // (2 * least) * least)

    def _streamed(self, form: Form, states: int, addresses: list[int]) -> int:
        """How results go past the caches (`runtime_code`); 0 if they do not.

        They do where they are more than fits these, at places where that can be done; by a copy of each block only
        where writing takes longer than computing (poses, but not derivatives).
        """
        if states * form.result_bytes < STREAMED_FROM:
            return 0
        width = form.lanes * self.dtype.itemsize
        if width % 32 or any(address % (64 if width % 64 == 0 else 32) for address in addresses):
            return 0
        if form.streams:
            return DIRECT
        return STAGED if form.nanoseconds < STAGED_BELOW * form.result_bytes else 0

    def _scratch(self, form: Form, workers: int) -> int:
        """Working memory for bodies that need some: this thread's, with room for its helpers."""
        if not form.scratch_bytes:
            return 0
        memory = getattr(self._memory, "array", None)
        if memory is None or memory.nbytes < workers * form.scratch_bytes + 64:
            memory = self._memory.array = np.empty(workers * form.scratch_bytes // 8 + 16)
        return self._address(memory)

    def __repr__(self) -> str:
        arguments = ", ".join(f"{n}[{s}]" for n, s in self.inputs)
        results = ", ".join(f"{n}{list(s)}" for n, s in self.outputs)
        return f"<Kernel {self.name}({arguments}) -> {results}; {self.nodes} operations, {self.lanes} lanes>"


def prepare(dtype: Any = np.float64, target: Target | None = None) -> None:
    """Begin to make the code that the first kernel of a process needs, while that is being traced."""
    if background.tier() != "optimised":
        programs.prepare((target or host()).with_dtype(dtype))


def build(
    name: str,
    inputs: Ports,
    outputs: Shapes,
    trace: Callable[[], ca.Function | tape.Tape | Factored],
    key: bytes | str,
    *,
    dtype: Any = np.float64,
    lanes: int | None = None,
    target: Target | None = None,
) -> Kernel:
    """A straight-line kernel.

    `trace()` is called only if the code is not known yet. It returns a CasADi SX function with one dense column for
    each of `inputs` (name, size) and one for each of `outputs` (name, shape), the latter flattened row-major, or a tape
    of such, or a `Factored` one whose products the outputs are. `key` names all that it depends on. `dtype`
    is that of numbers inside and out: float64 or float32. `lanes` suits the processor and the size unless given.
    """
    chosen = (target or host()).with_dtype(dtype).with_lanes(lanes)
    title = _title(name, inputs, outputs, key, chosen, lanes)
    sizes, shapes = [s for _, s in inputs], [s for _, s in outputs]

    def form_facts(loaded: Program) -> tuple[Target, dict[str, Any]]:
        dense = rows.is_dense([math.prod(shape) for shape in shapes])
        facts = {key: loaded.facts[key] for key in ("nodes", "work")}
        return chosen.with_lanes(loaded.facts["lanes"]), {**facts, "dense": dense}

    with background.building(), tracing:
        found = known(title)
        if found is not None:
            final, facts = form_facts(found)
            return Kernel(name, inputs, outputs, found, final, **facts)
        prepare(dtype, target)
        traced = passed_on(lambda: _prepared(trace()))
        _check_sizes(name, traced, sizes, [math.prod(s) for s in shapes])
        nodes, results = traced.operations(), sum(traced.result_sizes)
        width = chosen.lanes if lanes else _best_lanes(chosen, nodes, results)
        final, facts = chosen.with_lanes(width), {"nodes": nodes, "work": traced.work(), "lanes": width}
        how = background.tier()
        if how == "optimised":
            made = Made(list(bodies.body_texts(traced, final)), final, facts)
            found = remember(title, Program(*compiled(title, name, made)))
            final, facts = form_facts(found)
            kernel = Kernel(name, inputs, outputs, found, final, **facts)
            if how == "auto":  # with the code around it that is optimised by then
                background.submit(name, lambda _: kernel.adopt(Form(sizes, shapes, found, final, **facts)))
            return kernel
    kernel = interpreted(name, inputs, outputs, traced, chosen)

    def job(between: Callable[[], None]) -> None:
        between()
        ready = known(title)
        if ready is None:
            texts = []
            for text in bodies.body_texts(traced, final):
                between()
                texts.append(text)
            made = Made(texts, final, {"nodes": nodes, "work": traced.work(), "lanes": width})
            ready = remember(title, Program(*compiled(title, name, made, between)))
        target, facts = form_facts(ready)
        kernel.adopt(Form(sizes, shapes, ready, target, **facts))

    if how == "auto":
        background.submit(name, job)
    return kernel


def _no_answer(*_: Any) -> None:
    return None


def is_on_disk(name: str, inputs: Ports, outputs: Shapes, key: bytes | str) -> bool:
    """Whether `build` would find it compiled."""
    return programs.is_kept(_title(name, inputs, outputs, key, host(), None))


def _title(name: str, inputs: Ports, outputs: Shapes, key: bytes | str, target: Target, lanes: int | None) -> str:
    return digest("straight", key, target, [name, *inputs, *outputs, "given" if lanes else "best"])


def interpreted(
    name: str, inputs: Ports, outputs: Shapes, traced: tape.Tape | Factored, target: Target
) -> Kernel:
    """The kernel in the fast tier."""
    code = encoded(traced, target)
    return Kernel(
        name, inputs, outputs, interpreter(target), target, nodes=traced.operations(),
        work=interpret.SLOWER * traced.work(), scratch=(code.places + 1) * target.lanes * target.size,
        contexts=[code.context(machine.libm_table())], alive=code,
    )  # fmt: skip


def _best_lanes(target: Target, nodes: int, results: int) -> int:
    """Small bodies wait for results more than they need registers: two a value are 5 to 15 % faster on AVX.

    Larger ones lose: a Panda's inverse dynamics (768 operations) in single precision 16.4 ns with one, 22.0 with two
    (Zen 3). So do those that turn many results of single precision, which wait for each other in groups of eight: mass
    matrix and Jacobian of a Panda without fingers (49 and 42 results) 16.5 and 12.4 ns with one, 18.6 and 13.2 with
    two; but a UR5's (36) 10.6 and 9.9, 10.3 and 9.6. Its forward dynamics (540 operations) in single precision takes
    14.6 with one, as `schedule` computes those side by side, and 16.1 with two.
    """
    small = nodes <= SMALL_BODY[target.size] and results <= FEW_RESULTS[target.size]
    return 2 * target.lanes if target.lanes * target.size == 32 and small else target.lanes


def _prepared(traced: ca.Function | tape.Tape | Factored) -> tape.Tape | Factored:
    return traced.prepared() if isinstance(traced, Factored) else tape.prepared(traced)


def _check_sizes(name: str, traced: tape.Tape | Factored, sizes_in: list[int], sizes_out: list[int]) -> None:
    found_in, found_out = list(traced.input_sizes), traced.result_sizes
    if found_in != sizes_in or found_out != sizes_out:
        raise InputError(
            f"the function traced for {name} has input sizes {found_in} and output sizes {found_out}; "
            f"expected {sizes_in} and {sizes_out}"
        )
