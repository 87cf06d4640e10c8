"""A compiled function of arrays: `kernel(*arrays)` on any batch of states.

`build` compiles a straight-line kernel from a CasADi function; `scan.build` compiles a rolled one. Both give a
`Kernel`, whose call is, in this order of cost:

1. `Kernel.call`, a builtin: a lone state of plain float64 arrays never enters Python code;
2. anything else comes to `Kernel.batch`: arguments checked, broadcast by strides, shared among threads, GIL released.
"""

from __future__ import annotations

import functools
import hashlib
import math
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from polybody.errors import InputError
from polybody.kernels import arrays, cache, machine, memory, pool, rows, runtime, tape
from polybody.kernels.locks import Lock
from polybody.kernels.target import Target, host

NANOSECONDS = 0.06  # of one addition of a state, one thread: measured; for decisions about threads and turns only
WORTH_A_THREAD = 50e3  # nanoseconds of work below which another thread costs more than it brings

SMALL_BODY, FEW_RESULTS = 560, 128  # operations, numbers; on Zen 3 twice the lanes pay below and spill above
TURN = 10e6  # nanoseconds of work, as estimated, after which Python may handle signals
FIRST_TOUCH = 5.0  # nanoseconds a number of results in memory that the system must still provide
TURN_SECONDS = 0.02, 0.06  # measured: shorter turns grow, longer ones shrink; memory touched first can take ten times

STREAMED_FROM = 24 << 20  # bytes of results: more than caches keep for who reads them next; measured on Zen 3

Ports = Sequence[tuple[str, int]]
Shapes = Sequence[tuple[str, tuple[int, ...]]]


class Program:
    """Loaded machine code of one body, shared by every kernel of the same key."""

    def __init__(self, code: bytes, facts: dict[str, Any]) -> None:
        self.loaded = machine.Loaded(code, ["body"])
        self.body = self.loaded.addresses["body"]
        self.facts = facts


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
        self._sizes = [size for _, size in self.inputs]
        self.dtype, size = target.dtype, target.size
        self._result_steps = [[size * math.prod(shape)] for _, shape in self.outputs]
        self.lanes = target.lanes
        self.nodes = nodes
        self.nanoseconds = work * NANOSECONDS  # of a state
        self._program = program
        self._dense = dense
        self._addressed = len(self.inputs) + (0 if dense else len(self.outputs))
        self._row_bytes = [*(size * n for n in self._sizes), *(steps[0] for steps in self._result_steps)]
        self._scratch_bytes = scratch + (target.lanes * sum(s[0] for s in self._result_steps) if dense else 0)
        self._scratch_bytes += -self._scratch_bytes % 64
        self._contexts = list(contexts) or [machine.libm_table()]
        self._first_context = self._contexts[0].ctypes.data
        self._alive = (program, self._contexts, alive)
        self._runtime = _runtime(target)
        self._run = runtime.TOGETHER_TYPE(self._runtime.addresses["together"])
        self._address = runtime.make_address(self._runtime)
        self._memory = threading.local()
        self.call: Callable[..., Any] = self.fast(self.batch, name)

    def __call__(self, *values: Any, out: Any = None, check: bool = False) -> Any:
        """Evaluate; see `batch`."""
        if out is None and not check:
            return self.call(*values)
        return self.batch(*values, out=out, check=check)

    def fast(self, fallback: Callable[..., Any], name: str | None = None, doc: str = "") -> Callable[..., Any]:
        """A builtin that computes a lone plain state itself and passes any other call to `fallback`, unchanged."""
        if self.lone is None:
            return fallback
        return runtime.make_builtin(self._runtime, self.lone, fallback, name or self.name, doc)

    @functools.cached_property
    def lone(self) -> runtime.Lone | None:
        """What lone calls go by without Python code (see `methods`); None where that cannot be done."""
        if "lone" not in self._runtime.addresses or len(self._contexts) > 1:
            return None
        return runtime.make_lone(
            alone=self._runtime.addresses["alone"],
            body=self._program.body,
            scratch=np.empty(self._scratch_bytes // 8 + 8),
            input_sizes=self._sizes,
            output_shapes=[shape for _, shape in self.outputs],
            context=self._contexts[0],
            alive=(self._alive, self._runtime),
            dense=self._dense,
            dtype=self.dtype,
            limit=max(1, int(2 * WORTH_A_THREAD / max(NANOSECONDS, self.nanoseconds))),
        )

    def batch(self, *values: Any, out: Any = None, check: bool = False) -> Any:
        """Evaluate on arrays (..., size): leading dimensions broadcast; one array or a tuple (..., *shape) comes back.

        `out` takes the results in place; `check` refuses arguments that are not finite.
        """
        if not check:
            answer = self._plain_batch(values, out)
            if answer is not None:
                return answer
        if len(values) != len(self.inputs):
            wanted = ", ".join(f"{n} (..., {s})" for n, s in self.inputs)
            raise InputError(f"{self.name} got {len(values)} arguments; wanted {len(self.inputs)}: {wanted}")
        labels = [n for n, _ in self.inputs]
        given = [arrays.as_argument(v, n, s) for v, (n, s) in zip(values, self.inputs, strict=True)]
        batch = arrays.batch_shape(given, labels)
        if check:
            arrays.refuse_non_finite(given, labels)
        results = self._results(batch, out)
        if math.prod(batch):
            self._evaluate(batch, given, results)
        if out is not None:
            return out
        # As NumPy does: a lone number comes back as a scalar, not as an array without dimensions.
        returned = tuple(r[()] if r.ndim == 0 else r for r in results)
        return returned[0] if len(returned) == 1 else returned

    def _plain_batch(self, values: tuple[Any, ...], out: Any) -> Any:
        """The usual batch (contiguous float64, one leading shape) with no detours; None if anything is unusual."""
        if len(values) != len(self.inputs):
            return None
        leading = arrays.plain_leading(values, self._sizes, self.dtype)
        if not leading or (states := math.prod(leading)) == 0:
            return None
        if out is None:
            results = [memory.empty(leading + shape, self.dtype) for _, shape in self.outputs]
        else:
            results = list(out) if isinstance(out, tuple) else [out]
            shapes = [leading + shape for _, shape in self.outputs]
            if not arrays.plain_results(results, shapes, self.dtype) or any(arrays.overlap(results, values)):
                return None
        steps = [[row if value.ndim > 1 else 0] for value, row in zip(values, self._row_bytes, strict=False)]
        self._launch([states], steps + self._result_steps, [*values, *results])
        if out is not None:
            return out
        return results[0] if len(results) == 1 else tuple(results)

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

    def _evaluate(self, batch: tuple[int, ...], given: list[np.ndarray], results: list[np.ndarray]) -> None:
        """Convert what the body cannot use as it is, in pieces if that is much, and run."""
        leading = len(batch)
        convert = [not arrays.plain(a, a.ndim - 1, self.dtype) for a in given]
        shared = arrays.overlap(results, given)
        inner = 0 if self._dense else leading  # dense results leave no gaps between states either
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
                self._evaluate(less, some, into)
            return
        sources = [np.ascontiguousarray(a, dtype=self.dtype) if c else a for a, c in zip(given, convert, strict=True)]
        targets = [np.empty(r.shape, self.dtype) if s else r for r, s in zip(results, stage, strict=True)]
        self._execute(batch, sources, targets)
        for r, t, staged in zip(results, targets, stage, strict=True):
            if staged:
                np.copyto(r, t, casting="same_kind")

    def _execute(self, batch: tuple[int, ...], sources: list[np.ndarray], targets: list[np.ndarray]) -> None:
        """Hand strides and addresses to the machine code."""
        steps = [arrays.batch_strides(a, batch, 1) for a in sources]
        steps += [arrays.batch_strides(t, batch, len(s)) for t, (_, s) in zip(targets, self.outputs, strict=True)]
        self._launch(*arrays.collapse(batch, steps), [*sources, *targets])

    def _launch(self, extents: list[int], kept: list[list[int]], ports: list[np.ndarray]) -> None:
        """Run over these extents, with strides `kept[port]`, by as many threads as pay; in turns, for signals' sake."""
        dims, states = len(extents), math.prod(extents)
        cost = self.nanoseconds / len(self._contexts)
        worth = int(states * cost / WORTH_A_THREAD)
        workers = max(1, min(pool.thread_count(), worth, -(-states // self.lanes))) if worth > 1 else 1
        least = workers * self.lanes
        written = sum(steps[0] for steps in self._result_steps) / self.dtype.itemsize / len(self._contexts)
        turn = min(states, max(1, int(TURN / (self.lanes * (cost + FIRST_TOUCH * written) + 1))) * least)
        addresses = [self._address(a) for a in ports]
        job = np.array(
            [
                0, 0, pool.piece(turn, self.lanes, workers), turn, self._program.body, self._first_context,
                self._scratch(workers), self._scratch_bytes, self._addressed, len(kept), dims,
                self._is_streamed(states, addresses[len(self.inputs) :]),
                *extents, *addresses, *(step for steps in kept for step in steps), *self._row_bytes,
            ],
            dtype=np.int64,
        )  # fmt: skip
        start, helpers, system = self._address(job), workers - 1, pool.starter()
        for context in self._contexts:
            done = 0
            while done < states:
                if done or turn < states or context is not self._contexts[0]:
                    piece = pool.piece(turn, self.lanes, workers)
                    job[:6] = done, 0, piece, min(done + turn, states), self._program.body, self._address(context)
                begun = time.perf_counter()
                self._run(start, helpers, *system)
                elapsed = time.perf_counter() - begun
                done += turn
                if elapsed < TURN_SECONDS[0]:
                    turn *= 2
                elif elapsed > TURN_SECONDS[1]:
                    turn = max(least, turn // (2 * least) * least)

    def _is_streamed(self, states: int, addresses: list[int]) -> bool:
        """Whether results go past the caches: more than fit these, at places where that can be done."""
        if not self._dense or states * sum(steps[0] for steps in self._result_steps) < STREAMED_FROM:
            return False
        return self.lanes * self.dtype.itemsize % 32 == 0 and not any(address % 32 for address in addresses)

    def _scratch(self, workers: int) -> int:
        """Working memory for bodies that need some: this thread's, with room for its helpers."""
        if not self._scratch_bytes:
            return 0
        memory = getattr(self._memory, "array", None)
        if memory is None or memory.nbytes < workers * self._scratch_bytes:
            memory = self._memory.array = np.empty(workers * self._scratch_bytes // 8 + 8)
        return self._address(memory)

    def __repr__(self) -> str:
        arguments = ", ".join(f"{n}[{s}]" for n, s in self.inputs)
        results = ", ".join(f"{n}{list(s)}" for n, s in self.outputs)
        return f"<Kernel {self.name}({arguments}) -> {results}; {self.nodes} operations, {self.lanes} lanes>"


_runtimes: dict[Target, machine.Loaded] = {}
_programs: weakref.WeakValueDictionary[str, Program] = weakref.WeakValueDictionary()
_lock = Lock()


def _runtime(target: Target) -> machine.Loaded:
    with _lock:
        if target not in _runtimes:
            names = ["together", "lone", "alone", "address_of"] if runtime.can_be_called_alone() else ["together"]
            title = digest("runtime", runtime.layout(), target, names)
            code, _ = kept(title, "runtime", lambda: Made(runtime.text(target), target))
            _runtimes[target] = machine.Loaded(code, names)
        return _runtimes[target]


@functools.cache
def _versions() -> tuple[str, ...]:
    """Of CasADi, and of this package: its own text, so that no change of it can meet an old trace."""
    h = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        h.update(path.read_bytes())
    return version("casadi"), h.hexdigest()


def digest(kind: str, key: bytes | str, target: Target, parts: Sequence[object]) -> str:
    """The name of a trace: a hash of everything that its text depends on, as far as the caller's key tells."""
    raw = key.encode() if isinstance(key, str) else bytes(key)
    facts = [kind, *_versions(), target.describe(), repr(list(parts))]
    h = hashlib.sha256("\0".join(facts).encode())
    h.update(b"\0" + raw)
    return h.hexdigest()


@dataclass(frozen=True)
class Made:
    """The text of a module, for which target it is, and what must be known of it beside its code."""

    text: str
    target: Target
    facts: dict[str, Any] = field(default_factory=dict)

    def digest(self) -> str:
        """The name of its code: the text holds the whole expression graph, constants to the last bit."""
        described = f"{version('llvmlite')}\0{self.target.describe()}\0{self.text}"
        return hashlib.sha256(described.encode()).hexdigest()


def program(title: str, name: str, make: Callable[[], Made]) -> Program:
    """The program of this digest: of this process, from disk, or made by `make()`."""
    with _lock:
        found = _programs.get(title)
        if found is None:
            found = _programs[title] = Program(*kept(title, name, make))
        return found


def kept(title: str, name: str, make: Callable[[], Made]) -> tuple[bytes, dict[str, Any]]:
    """(object code, facts): from disk by its title, or by its text, or compiled."""
    traced = cache.load(title, cache.TRACE)
    found = cache.load(traced[0]["code"]) if traced else None
    if traced and found:
        return found[1], traced[0]["facts"]
    made = make()
    where = made.digest()
    found = cache.load(where)
    code = found[1] if found else machine.assemble(made.text, made.target)
    if not found:
        cache.store(where, {"name": name}, code)
    cache.store(title, {"name": name, "code": where, "facts": made.facts}, b"", cache.TRACE)
    return code, made.facts


def build(
    name: str,
    inputs: Ports,
    outputs: Shapes,
    trace: Callable[[], ca.Function],
    key: bytes | str,
    *,
    dtype: Any = np.float64,
    lanes: int | None = None,
    target: Target | None = None,
) -> Kernel:
    """A straight-line kernel.

    `trace()` is called only if the code is not known yet. It returns a CasADi SX function with one dense column for
    each of `inputs` (name, size) and one for each of `outputs` (name, shape), the latter flattened row-major. `key`
    names everything the traced function depends on. `dtype` is that of numbers inside and out, float64 or float32.
    `lanes` suits the processor and the size unless given.
    """
    chosen = (target or host()).with_dtype(dtype).with_lanes(lanes)

    def make() -> Made:
        function = trace()
        _check_function(name, function, [s for _, s in inputs], [math.prod(s) for _, s in outputs])
        traced = tape.from_function(function)
        nodes = traced.operations()
        width = chosen.lanes if lanes else _best_lanes(chosen, nodes, sum(map(len, traced.outputs)))
        final = chosen.with_lanes(width)
        facts = {"nodes": nodes, "work": traced.work(), "lanes": width}
        return Made(rows.body_text(traced, final), final, facts)

    title = digest("straight", key, chosen, [name, *inputs, *outputs, "given" if lanes else "best"])
    loaded = program(title, name, make)
    final = chosen.with_lanes(loaded.facts["lanes"])
    dense = rows.is_dense([math.prod(shape) for _, shape in outputs])
    nodes, work = loaded.facts["nodes"], loaded.facts["work"]
    return Kernel(name, inputs, outputs, loaded, final, nodes=nodes, work=work, dense=dense)


def _best_lanes(target: Target, nodes: int, results: int) -> int:
    """Small bodies wait for results more than they need registers: on AVX, two registers a value are 10 % faster."""
    small = nodes <= SMALL_BODY and results <= FEW_RESULTS
    return 2 * target.lanes if target.lanes * target.size == 32 and small else target.lanes


def _check_function(name: str, function: ca.Function, sizes_in: list[int], sizes_out: list[int]) -> None:
    found_in = [function.numel_in(k) for k in range(function.n_in())]
    found_out = [function.numel_out(k) for k in range(function.n_out())]
    if found_in != sizes_in or found_out != sizes_out:
        raise InputError(
            f"the function traced for {name} has input sizes {found_in} and output sizes {found_out}; "
            f"wanted {sizes_in} and {sizes_out}"
        )
