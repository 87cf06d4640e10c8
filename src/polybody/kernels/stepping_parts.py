"""The functions that the loops of `stepping` call, each by itself: compiled, or interpreted until it is.

A part is machine code (inputs…, outputs…, context) of addresses, the context beginning with libm's table. A part
whose code is on no disk yet is answered by the interpreter of tapes (`interpret`) behind a small function of the same
signature, while the optimised code is made in the background: both compute the same numbers, so that a loop may change
from one to the other between two of its calls. Behind libm's table such a part's context holds what the interpreter
reads (instructions, constants), its address, and scratch memory, which every loop has for itself. The interpreter is
that of batches, its lanes given the same state: LLVM need not make another one first.
"""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca
import numpy as np

from polybody.errors import InputError
from polybody.interrupts import passed_on
from polybody.kernels import background, interpret, machine, programs, tape
from polybody.kernels.code import Code
from polybody.kernels.emit import emit_nodes, support_text
from polybody.kernels.locks import Lock, begun, tracing
from polybody.kernels.operations import LIBM
from polybody.kernels.programs import Made, Program, compiled, digest, encoded, interpreter, is_kept, kept, soon
from polybody.kernels.rows import in_blocks
from polybody.kernels.target import Target
from polybody.late import dataclass, field

Array = np.ndarray
#: what the loop calls them with: numbers of inputs (from memory), and of results
PORTS = {"field": (3, 2), "leap": (5, 1), "middle": (5, 2), "ends": (5, 3), "balance": (5, 1),
         "end": (5, 1), "slopes": (3, 1), "unit": (2, 2),
         "back": (2, 2), "watch": (3, 1), "tick": (4, 2), "field_before": (3, 1), "field_after": (4, 2),
         "watch_before": (3, 1), "watch_after": (4, 1), "loose_before": (3, 1), "loose_after": (4, 2),
         "balance_before": (5, 1), "balance_after": (6, 1), "end_before": (5, 1), "end_after": (6, 1),
         "solve_before": (3, 1), "solve_after": (4, 1), "energy_before": (3, 1), "energy_after": (4, 1),
         "solve": (3, 1), "energy": (3, 1), "loose": (3, 2), "loose_watch": (3, 1),
         "inertia": (2, 1), "bearing": (4, 3), "actions": (2, 1)}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Compiled:
    """Machine code of one function of the loop."""

    loaded: machine.Loaded
    entry: str

    interpreted = False

    @property
    def address(self) -> int:
        return self.loaded.addresses[self.entry]

    def context(self) -> Array:
        return machine.libm_table()


@dataclass(frozen=True, eq=False)
class Interpreted:
    """A tape, for as long as it is not compiled."""

    code: interpret.Instructions
    program: Program
    address: int  # of the function that hands it over to the interpreter
    lanes: int  # of the interpreter

    interpreted = True

    def context(self) -> Array:
        """Of one loop: whoever runs beside it has scratch memory of its own."""
        memory = np.zeros((self.code.places + 2) * self.lanes)
        given = self.code.context(machine.libm_table())
        context = _Context(np.concatenate([given, np.array([self.program.body, memory.ctypes.data], dtype=np.uint64)]))
        context.memory = memory
        return context


class _Context(np.ndarray):
    """An array that keeps the memory alive to which it points."""

    memory: Array

    def __new__(cls, values: Array) -> _Context:
        return values.view(cls)


Part = Compiled | Interpreted
_PARTS: dict[str, Part] = {}
MOST_PARTS = 256
_lock = Lock()
_compiled: list[str] = []  # titles of parts that have taken the place of interpreted ones


def compiled_so_far() -> int:
    """How many parts have been compiled in the background: loops look for them only when there are more."""
    return len(_compiled)


def part(key: str, name: str, entry: str, make: Callable[[], ca.Function | tape.Tape], target: Target) -> Part:
    """The part of this key: of this process, from disk, interpreted, or compiled."""
    title = digest("part", key, target, [entry])
    with background.building(), tracing, _lock:
        found = _PARTS.get(title)
        if found is None:
            while len(_PARTS) >= MOST_PARTS:
                _PARTS.pop(next(iter(_PARTS)))
            found = _PARTS[title] = _made(title, name, entry, make, target)
        return found


def is_known(key: str, entry: str, target: Target) -> bool:
    """Whether the part is there, in this process or on disk."""
    title = digest("part", key, target, [entry])
    return title in _PARTS or is_kept(title)


def _made(title: str, name: str, entry: str, make: Callable[[], ca.Function | tape.Tape], target: Target) -> Part:
    tier = background.tier()
    if tier == "optimised" or is_kept(title):
        code = kept(title, name, lambda: Made(part_text(entry, _tape(entry, make()), target), target))[0]
        return Compiled(machine.Loaded(code, [entry]), entry)
    traced = passed_on(lambda: _tape(entry, make()))

    def later(between: Callable[[], None]) -> None:
        between()
        made = Made(part_text(entry, traced, target), target)
        between()
        code = compiled(title, name, made, between)[0]
        ready = Compiled(machine.Loaded(code, [entry]), entry)
        with _lock:
            _PARTS[title] = ready
            _compiled.append(title)

    if tier != "fast":
        background.submit(name, later)
    wide = target.with_lanes(target.register)
    code = encoded(traced, wide)
    with _making:
        shim = _shims(wide).addresses[f"shim{sum(PORTS[entry])}"]
    return Interpreted(code, interpreter(wide), shim, wide.lanes)


def loop_code(title: str, name: str, make: Callable[[], Made]) -> machine.Loaded:
    """The loop itself, of which `advance` is called."""
    with background.building(), _looping:
        if title not in _LOOPS:
            while len(_LOOPS) >= MOST_PARTS:
                _LOOPS.pop(next(iter(_LOOPS)))
            _LOOPS[title] = soon(title, name, make, ["advance"])
        return _LOOPS[title]


def loop_ahead(title: str, name: str, make: Callable[[], Made]) -> None:
    """Begin to make the loop, beside whoever traces its parts."""
    if title not in _LOOPS and background.tier() == "auto":
        begun(lambda: loop_code(title, name, make))


_LOOPS: dict[str, machine.Loaded] = {}
_looping = Lock()  # not that of the parts, which are traced meanwhile
_SHIMS: dict[Target, machine.Loaded] = {}


def prepare(target: Target) -> None:
    """Begin to make the code that interpreted parts need, beside whoever traces the first of them, and what batches
    need that look at a run's results."""
    wide = target.with_lanes(target.register)

    def shims() -> None:
        with _making:
            _shims(wide)

    programs.prepare(wide, shims)


_making = Lock()


def _shims(target: Target) -> machine.Loaded:
    """Functions of so many addresses and a context, which give the interpreter the addresses as rows."""
    if target not in _SHIMS:
        counts = sorted({sum(ports) for ports in PORTS.values()})
        names = [f"shim{count}" for count in counts]
        title = digest("shims", "", target, names)
        _SHIMS[target] = soon(title, "shims", lambda: Made(_shims_text(counts, target), target), names)
    return _SHIMS[target]


def _shims_text(counts: list[int], target: Target) -> str:
    """Every address for each of the interpreter's lanes, and a call of it."""
    rows, zeros = f"<{target.lanes} x i64>", f"<{target.lanes} x i32> zeroinitializer"
    texts = [f'target triple = "{target.triple}"']
    for count in counts:
        names = [f"a{k}" for k in range(count)]
        lines = [f"define i64 @shim{count}({', '.join(f'i64 %{name}' for name in [*names, 'context'])}) {{",
                 f"  %rows = alloca i64, i64 {count * target.lanes}, align 64"]  # fmt: skip
        for k, name in enumerate(names):
            lines += [
                f"  %{name}_one = insertelement {rows} poison, i64 %{name}, i32 0",
                f"  %{name}_all = shufflevector {rows} %{name}_one, {rows} poison, {zeros}",
                f"  %{name}_at = getelementptr i64, ptr %rows, i64 {k * target.lanes}",
                f"  store {rows} %{name}_all, ptr %{name}_at, align 8",
            ]
        lines.append("  %at = inttoptr i64 %context to ptr")
        for name, place in (("body", len(LIBM) + 2), ("memory", len(LIBM) + 3)):
            lines += [f"  %{name}_at = getelementptr ptr, ptr %at, i64 {place}",
                      f"  %{name} = load ptr, ptr %{name}_at"]  # fmt: skip
        lines += ["  call void %body(ptr %rows, ptr %at, ptr %memory)", "  ret i64 0", "}"]
        texts += lines
    return "\n".join(texts)


def _tape(entry: str, function: ca.Function | tape.Tape) -> tape.Tape:
    traced = tape.prepared(function)
    found = len(traced.input_sizes), len(traced.outputs)
    if found != PORTS[entry]:
        raise InputError(f"{entry} takes {found[0]} columns and gives {found[1]}; expected {PORTS[entry]}")
    return traced


@dataclass
class _Memory:
    """Ports of a function of addresses: inputs and outputs lie one number behind the other."""

    values: dict[tuple[int, int], str] = field(default_factory=dict)

    def read(self, code: Code, argument: int, element: int) -> str:
        if (argument, element) not in self.values:
            self.values[argument, element] = code.load(f"%in{argument}", element)
        return self.values[argument, element]

    def write(self, code: Code, output: int, element: int, value: str) -> None:
        code.store(value, f"%out{output}", element)


def part_text(name: str, traced: tape.Tape, target: Target) -> str:
    """The module of one part: a tape as a function (inputs…, outputs…, libm) of addresses, as integers."""
    code = Code(target)
    emit_nodes(code, traced, _Memory())
    inputs, outputs = PORTS[name]
    names = [*(f"in{k}" for k in range(inputs)), *(f"out{k}" for k in range(outputs)), "libm"]
    head = f"define i64 @{name}({', '.join(f'i64 %a_{n}' for n in names)}) {code.attributes()} {{"
    pointers = [f"  %{n} = inttoptr i64 %a_{n} to ptr" for n in names]
    pointers.append("  %rows = inttoptr i64 %a_in0 to ptr")
    function = "\n".join([head, "entry:", *code.allocas, *pointers, *in_blocks(code.lines), "  ret i64 0", "}"])
    return "\n".join([f'target triple = "{target.triple}"', function, support_text(target)])


__all__ = [
    "PORTS", "Compiled", "Interpreted", "Part", "compiled_so_far", "is_known", "loop_ahead", "loop_code", "part",
    "part_text", "prepare",
]  # fmt: skip
