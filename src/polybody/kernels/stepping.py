"""A state advanced by many steps in one call of machine code: the loops of `stepping_code` around compiled tapes.

    ẋ = field(x, constants, row),    x = [y; t]

x is a state and, last, its time; `constants` stay the same in a run, `row` is the row of a table of signals that holds
at that time. Beside ẋ the field gives numbers that are recorded with it, and two that report whether it may be believed
(`Parts.told`). Around it come, each a CasADi function and each but the field optional,

    leap(x, answer, h, constants, row) -> x          a step by a formula of its own instead of a tableau
    middle(x, u, h, constants, row) -> r, ∂r/∂u      the equations of an implicit step in a velocity u, solved by Newton
    ends(x, u, h, constants, row) -> x, p, M         and its end, whose velocity is M⁻¹ p
    unit(x, constants) -> x, [how far off]           the state with unit quaternions, held joints at their places
    back(x, constants) -> x, [‖φ‖, growth, narrow, …]  one Newton step back to constraints; velocities back to them too
    slopes(x, constants, row) -> ∂ẏ/∂y               row by row, without the last of y, for implicit methods
    watch(x, constants, row) -> values               functions whose crossings of zero end the loop
    tick(x, constants, row, told) -> memory, doubt   what of the constants changes at given times (`stepping_instants`)
    loose, loose_watch                               field and watch while nothing is held (`stepping_switches`)
    inertia(x, constants) -> M, (G, GᵀMG), [U]       row by row, for what happens at crossings there; with constraints
                                                     G, the motions that pass; U is the potential energy
    solve, energy                                    in its place, of long chains (`stepping_recursions`)
    bearing(x, constants, row, forces) -> a, levels, told   accelerations with nothing held, and levels of rubs that
                                                     depend on loads, under forces beside those that hold
    actions(x, constants) -> [q; v], …               states after the jumps at crossings (`stepping_actions`), with
                                                     `energy` where nothing can be held

Nothing is vectorised over states: there is one. Each of these is compiled by itself (`stepping_parts`: interpreted
until it is), under a key of its own, and called by its address: a method with twelve stages takes no more code than one
with four, and another method, or other functions to watch, take no new field.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np

from polybody.kernels import background, machine, native, stepping_parts
from polybody.kernels import stepping_actions as actions
from polybody.kernels import stepping_bounds as bounds
from polybody.kernels import stepping_code as code_of
from polybody.kernels import stepping_corners as corners
from polybody.kernels import stepping_decisions as decisions
from polybody.kernels import stepping_events as events
from polybody.kernels import stepping_extrema as extrema
from polybody.kernels import stepping_factors as factors
from polybody.kernels import stepping_gauss as gauss
from polybody.kernels import stepping_given as given
from polybody.kernels import stepping_instants as instants
from polybody.kernels import stepping_methods as methods
from polybody.kernels import stepping_radau as radau
from polybody.kernels import stepping_recursions as recursions
from polybody.kernels import stepping_rest as rest
from polybody.kernels import stepping_switches as switches
from polybody.kernels.idle import Idle
from polybody.kernels.operations import LIBM
from polybody.kernels.programs import Made, digest
from polybody.kernels.stepping_code import CANNOT, CROSSED, FULL, JOB, LOOKS, STOPPED, TURNED
from polybody.kernels.stepping_gauss import Gauss
from polybody.kernels.stepping_given import Nodes
from polybody.kernels.stepping_parts import Part, is_known, loop_ahead, loop_code, part
from polybody.kernels.stepping_radau import Collocation
from polybody.kernels.stepping_rolled import Between, Rolled, rolled_part
from polybody.kernels.stepping_switches import Switching
from polybody.kernels.tape import Tape
from polybody.kernels.target import Target, host
from polybody.late import dataclass, field
from polybody.properties import cached_property

Array = np.ndarray
PAD = 4  # numbers: rows are whole vectors
MOST_KEPT = 4 * 2**20  # bytes of working memory that wait for the next run
KEPT, SQUARED, NEARLY, CLEAR = 1e-15, 1e-12, 1e-11, 0.05
MANY = 40  # velocities from which a matrix of differences is worth some more iterations
PLACE = {name: k for k, name in enumerate(JOB)}
LOOP_CALL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
TICK_CALL = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 7)
FIELD_CALL = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 6)
ORDER = ("field", "leap", "middle", "ends", "balance", "end", "slopes", "unit", "back", "watch", "tick", "loose",
         "loose_watch", "inertia", "bearing", "solve", "energy", "actions")  # fmt: skip


@dataclass(frozen=True)
class Tableau:
    """An explicit method as data: A, b; embedded pairs with rows for dense output and errors (of orders 8(5, 3))."""

    A: Array
    b: Array
    extra: Array | None = None
    errors: Array | None = None
    dense: Array | None = None

    dense_rows = 7

    @property
    def stages(self) -> int:
        return len(self.b)

    @property
    def adaptive(self) -> bool:
        return self.errors is not None

    @cached_property
    def rows(self) -> Array:
        """The table that the loop reads."""
        if self.extra is None or self.errors is None or self.dense is None:
            return np.concatenate([self.A, self.b[None]])
        columns = self.dense.shape[1]
        blocks = [self.A, self.b[None], self.extra, self.errors, self.dense]
        return np.concatenate([np.pad(block, ((0, 0), (0, columns - block.shape[1]))) for block in blocks])


Method = Tableau | Collocation | Nodes | Gauss


@dataclass(frozen=True)
class Parts:
    """The functions around a state, made when they are needed: nothing is traced that is in the cache."""

    size: int  # of y
    nq: int  # its first numbers, and the next nv, are what `back` changes
    nv: int
    recorded: int  # numbers beside ẋ
    make: Callable[[str], ca.Function | Tape]
    keys: Mapping[str, str]  # {part: what tells it from others}; the field is one of them
    row: int = 0  # numbers in a row of signals
    watched: int = 0
    pivots: int = 0
    memory: tuple[int, int] = (0, 0)  # (first, count) of the constants that `tick` changes
    instant: int = 0  # numbers told of an instant
    asks: bool = False  # `tick` is no text: whoever runs the loop says which function (`Loop.ask`)
    between: Mapping[str, Callable[[], Between]] = field(default_factory=dict)  # of parts that run kernels
    doubtful: bool = False  # the field tells whether it may be believed, without constraints too
    switching: Switching | None = None  # what happens at crossings, where the loop deals with it

    @cached_property
    def padded(self) -> int:
        return -(-(self.size + 1) // PAD) * PAD

    @cached_property
    def told(self) -> int:
        """Where growth and narrow are in an answer; they are there where there are constraints."""
        return self.padded + self.recorded

    @cached_property
    def answer(self) -> int:
        return self.padded + -(-(self.recorded + 2) // PAD) * PAD


class Loop:
    """Compiled code of one field and one method, with its working memory; one run at a time."""

    def __init__(
        self, parts: Parts, tableau: Method | None, loaded: machine.Loaded,
        functions: Callable[[], Mapping[str, Part | Rolled]],
    ) -> None:  # fmt: skip
        """`functions()` are the parts as they are now: interpreted at first, compiled later."""
        self.parts, self.tableau = parts, tableau
        self._alive, self._functions = loaded, functions
        self._call = LOOP_CALL(loaded.addresses["advance"])
        self.job = np.zeros(len(JOB), dtype=np.int64)
        #: the job's words, and the same as numbers: one at a time they are set and read faster so
        self._words, self._floats = self.job.data, self.job.view(np.float64).data
        self._at = self.job.ctypes.data
        self._lasting = np.zeros(len(JOB), dtype=np.int64)  # 1: addresses, which a new run takes over
        self._kept: dict[str, Array] = {}
        self._bytes = 0  # of them
        self._taken: dict[str, Part | Rolled] = {}
        self.interpreted = True  # some part is still to be compiled
        self._seen = -1  # how many parts had been compiled when they were last asked for
        self.refresh()
        n, stages = parts.padded, 16
        scratch = (
            ("stages", stages * parts.answer), ("stage", n), ("spare", n), ("nought", n), ("still", n),
            ("told", 3 + 2 * parts.pivots + PAD), ("turns", 2 * parts.pivots + PAD),
            ("before", parts.watched + PAD), ("after", parts.watched + PAD), ("trial", parts.watched + PAD),
            ("earlier", parts.watched + PAD),
            ("crossed", parts.watched + PAD), ("speed", parts.nv), ("right", parts.nv),
            ("last_speed", parts.nv), ("matrix", parts.nv**2 if {"middle", "balance"} & parts.keys.keys() else 1),
            ("pivoted", parts.nv),
        )
        if isinstance(tableau, Collocation):
            scratch = (*scratch, ("implicit", radau.layout(parts.size, n)["END_OF"] // 8))
        switching = parts.switching
        if switching is not None:
            memory = switching.layout(parts.nq, parts.nv, n, parts.answer)["SW_END"] // 8
            line = switching.line(parts.watched)
            scratch = (*scratch, ("switch_memory", memory), ("switch_log", line * switches.MOST_SWITCHES))
        places = np.cumsum([0, *(size for _, size in scratch)])
        self._scratch = np.zeros(places[-1])  # one block: what is made with every run must be made quickly
        first = self._scratch.ctypes.data
        for (name, size), at in zip(scratch, places.tolist(), strict=False):
            self._kept[name] = self._scratch[at : at + size]
            self._point(name, first + 8 * at)
        self._bytes += self._scratch.nbytes
        self._point("pow", int(machine.libm_table()[LIBM.index("pow")]))
        if tableau is not None:
            self.array("tableau", np.ascontiguousarray(tableau.rows))

    def refresh(self) -> None:
        """Take parts that have been compiled since; a call under way is not interrupted."""
        if not self.interpreted or self._seen == stepping_parts.compiled_so_far():
            return
        self._seen = stepping_parts.compiled_so_far()
        for name, now in self._functions().items():
            if self._taken.get(name) is not now:
                self._taken[name] = now
                self._point(f"{name}_at", now.address)
                self.array(f"{name}_with", now.context())
        self.interpreted = any(taken.interpreted for taken in self._taken.values())

    def array(self, name: str, values: Array) -> None:
        """Give the job an array, which is kept alive."""
        before = self._kept.get(name)
        if before is values:
            return
        self._bytes += values.nbytes - (0 if before is None else before.nbytes)
        self._kept[name] = values
        self._point(name, _address(values))

    def _point(self, name: str, address: int) -> None:
        place = PLACE[name]
        self._words[place], self._lasting[place] = address, 1

    def cleared(self) -> Loop | None:
        """As if it were new, for another run; None where it is better made anew than kept."""
        if self.interpreted or self._bytes > MOST_KEPT:
            return None
        self.job *= self._lasting
        self._scratch.fill(0.0)
        if self.parts.make is not _made_already:
            self.parts = replace(self.parts, make=_made_already, between={})  # whoever traced it may go
            self._functions = dict
        return self

    def room(self, name: str, *shape: int) -> Array:
        """An array of at least so many rows, the one that is there where it is large enough."""
        kept = self._kept.get(name)
        if kept is None or kept.ndim != len(shape) or len(kept) < shape[0]:
            self.array(name, np.zeros(shape))
        return self._kept[name]

    def fill(self, name: str, values: Array) -> None:
        """Give the job a copy of an array, in the place of the last one where it has that shape."""
        kept = self._kept.get(name)
        if kept is None or kept.shape != values.shape:
            self.array(name, values.copy())
        else:
            kept[...] = values

    def held(self, name: str) -> Array:
        return self._kept[name]

    def set(self, **values: float) -> None:
        """Set words (integers) and numbers (floats) of the job."""
        for name, value in values.items():
            target: Any = self._floats if isinstance(value, float) else self._words
            target[PLACE[name]] = value

    def word(self, name: str) -> int:
        return self._words[PLACE[name]]

    def number(self, name: str) -> float:
        return self._floats[PLACE[name]]

    def flags(self, name: str) -> Array:
        """An array of words."""
        return self._kept[name].view(np.int64)

    def ask(self, function: Any) -> None:
        """Give the job the function (`TICK_CALL`) that is asked at instants; whoever runs the loop keeps it alive."""
        self._words[PLACE["tick_at"]] = ctypes.cast(function, ctypes.c_void_p).value or 0

    def decide(self, switching: Switching, stride: float) -> None:
        """Give the job what it decides by at crossings; `stride` is the length of equal steps."""
        self.array("switch_words", switching.words)
        self.array("switch_numbers", switching.numbers)
        self.room("wholes", switches.MOST_SWITCHES, self.parts.padded)
        self.room("whole_rates", switches.MOST_SWITCHES, self.parts.padded)
        self.set(restitution=switching.restitution, switch_most=switches.MOST_SWITCHES, stride=stride)

    def run(self) -> int:
        """Advance; 0, or why it ended early (`stepping_code`)."""
        return int(self._call(self._at))


class Field:
    """The field of parts alone, at given states."""

    def __init__(self, name: str, parts: Parts, *, target: Target | None = None) -> None:
        chosen = (target or host()).with_lanes(1)
        self.parts, self._part = parts, part_of(parts, name, "field", chosen)
        self._call = FIELD_CALL(self._part.address)
        self._context = self._part.context()

    def cleared(self) -> Field | None:
        """For another run; None where its code is still to be compiled."""
        if self._part.interpreted:
            return None
        if self.parts.make is not _made_already:
            self.parts = replace(self.parts, make=_made_already, between={})  # whoever traced it may go
        return self

    def __call__(self, x: Array, constants: Array, row: Array) -> tuple[Array, Array]:
        """(ẋ, numbers recorded beside it and the two that report whether they may be believed) of states x (n, …), each
        with its row of signals (n, …)."""
        n, sizes = len(x), (self.parts.size + 1, self.parts.recorded + 2)
        x, constants, row = (np.ascontiguousarray(values, dtype=float) for values in (x, constants, row))
        rate, told = (np.zeros((n, size)) for size in sizes)
        places = [(_address(a), a.strides[0] if a.ndim == 2 else 0) for a in (x, constants, row, rate, told)]
        places.append((_address(self._context), 0))
        for k in range(n):
            self._call(*[address + k * stride for address, stride in places])
        return rate, told


def _address(values: Array) -> int:
    """Where it begins. `values.ctypes.data` takes four times as long."""
    if values.size and values.flags.writeable:
        return ctypes.addressof(ctypes.c_char.from_buffer(values.data))
    return values.ctypes.data


def _made_already(name: str) -> Tape:
    raise RuntimeError(f"{name} has been compiled")


def prepare() -> None:
    """Begin to make the code that the first run of a process needs, beside whoever traces its field."""
    if not _prepared:
        wanted = background.tier() == "auto"
        _prepared.append(True)
        if wanted:
            stepping_parts.prepare(host())


_prepared: list[bool] = []  # with every run this is asked for


def build(name: str, parts: Parts, tableau: Method | None, *, target: Target | None = None) -> Loop:
    """The loop of a field by a tableau, or by the field's own `leap` where there is none."""
    chosen = (target or host()).with_lanes(1)
    loop = loop_code(*_loop(name, parts, tableau, chosen))
    names = [part for part in ORDER if part in parts.keys and not (part == "tick" and parts.asks)]

    def functions() -> dict[str, Part | Rolled]:
        return {entry: part_of(parts, name, entry, chosen) for entry in names}

    return Loop(parts, tableau, loop, functions)


def ahead(name: str, parts: Parts, tableau: Method | None) -> None:
    """Begin to make the loop's own code while its parts are traced, for `build`."""
    loop_ahead(*_loop(name, parts, tableau, host().with_lanes(1)))


def _loop(name: str, parts: Parts, tableau: Method | None, chosen: Target) -> tuple[str, str, Callable[[], Made]]:
    """What `loop_code` needs."""
    names = [part for part in ORDER if part in parts.keys]
    facts = [name, parts.size, parts.nq, parts.nv, parts.recorded, names, parts.row, parts.watched, parts.pivots]
    facts += [parts.doubtful, parts.memory, parts.instant]
    facts += [0, False] if tableau is None else [tableau.stages, tableau.adaptive]
    facts += [type(tableau).__name__, 0 if tableau is None else tableau.dense_rows]
    facts += [None if parts.switching is None else parts.switching.facts]

    title = digest("stepping", "", chosen, facts)
    return title, name, lambda: Made(module_text(parts, tableau, chosen), chosen)


def part_of(parts: Parts, name: str, entry: str, target: Target) -> Part | Rolled:
    """A part as it is now: of this process, from disk, interpreted, or compiled."""
    key, title = parts.keys[entry], f"{name} {entry}"
    if entry in parts.between:
        return rolled_part(key, title, entry, parts.make, parts.between[entry](), target)
    return part(key, title, entry, lambda: parts.make(entry), target)


def is_at_hand(parts: Parts, *, target: Target | None = None) -> bool:
    """Whether all its functions are known: nothing would have to be traced."""
    chosen = (target or host()).with_lanes(1)
    tapes = {
        entry: (f"{entry}_before", f"{entry}_after") if entry in parts.between else (entry,)
        for entry in parts.keys
        if not (entry == "tick" and parts.asks)
    }
    return all(is_known(parts.keys[entry], tape, chosen) for entry, own in tapes.items() for tape in own)


def module_text(parts: Parts, tableau: Method | None, target: Target) -> str:
    """The module whose function `advance` is the loop."""
    loops, curved, watched = (part in parts.keys for part in ("back", "unit", "watch"))
    adaptive, implicit = tableau is not None and tableau.adaptive, isinstance(tableau, Collocation)
    taken = isinstance(tableau, Nodes)  # by somebody else
    between = given.INTERPOLANT if taken else code_of.HERMITE
    holds = parts.switching is not None and parts.switching.slots > 0
    factored = implicit or holds or "middle" in parts.keys or "balance" in parts.keys
    pieces = [
        code_of.COMMON,
        factors.FACTORS if factored else "",
        switches.EITHER if holds else code_of.ASK + (events.LOOK if watched else ""),
        code_of.EVALUATE_WITH_LOOPS if loops else code_of.EVALUATE_WITH_DOUBTS if parts.doubtful else code_of.EVALUATE,
        code_of.returned(curved, loops),
        between if not adaptive else radau.INTERPOLANT if implicit else code_of.INTERPOLANT,
        events.WATCHING + extrema.EXTREMA if watched else "",
        code_of.SAMPLES,
        code_of.seen(watched, loops),
        (instants.JUMPING if watched else instants.STEADY) if "tick" in parts.keys else "",
        instants.TICKING if "tick" in parts.keys else instants.NEVER,
    ]
    if adaptive:
        pieces += [methods.AHEAD if loops else methods.MOVED if curved else methods.STAYED]
        pieces += [methods.FIRST_STEP]
        slopes = radau.BY_PART if "slopes" in parts.keys else radau.BY_DIFFERENCES
        own = [factors.COMPLEX_FACTORS, slopes, radau.RADAU]
        pieces += [*(own if implicit else [corners.CORNERS, methods.ADAPTIVE]), methods.ADVANCE]
    else:
        own = methods.IMPLICIT if "middle" in parts.keys else methods.BY_FUNCTION
        own = methods.BALANCED if "balance" in parts.keys else given.STEPPED if taken else own
        by_table = gauss.STEPPED if isinstance(tableau, Gauss) else methods.BY_TABLEAU
        pieces += [own if tableau is None or taken else by_table, methods.FIXED]
    if parts.switching is None:
        pieces += [switches.WITHOUT]
    else:
        inertias = recursions.RECURSIONS if "solve" in parts.keys else bounds.MATRICES
        acts = parts.switching.actions > 0
        own = [bounds.BOUNDED, inertias, bounds.ROWS, rest.pressing(loops), decisions.switching(loops)]
        pieces += [switches.NOTED, switches.ANEW_WITH_LOOPS if loops else switches.ANEW]
        pieces += [actions.acting(acts, holds, loops), *(own if holds else [] if acts else [switches.NOTING])]
        pieces += [] if adaptive else [given.SPREAD if taken else switches.SPREAD]
    loop = native.translate("\n".join(pieces), _numbers(parts, tableau))
    return "\n".join(
        [
            f'target triple = "{target.triple}"', _vectors_text(parts, target), loop, native.DECLARED,
        ]
    )  # fmt: skip


def _numbers(parts: Parts, tableau: Method | None) -> dict[str, float]:
    """The numbers that the loop's text names."""
    numbers: dict[str, float] = {name.upper(): 8 * k for name, k in PLACE.items()}
    n, stages = parts.padded, 0 if tableau is None else tableau.stages
    looks = tableau.looks if isinstance(tableau, Nodes) else LOOKS
    if isinstance(tableau, Collocation):
        numbers |= tableau.numbers | radau.layout(parts.size, n)
        numbers |= {"MOST_NEWTON": float(radau.MOST_NEWTON), "MOST_DOUBTS": radau.MOST_DOUBTS}
    numbers |= gauss.NUMBERS if isinstance(tableau, Gauss) else {}
    numbers |= {"TURNED_AT": numbers["TURNED"], "CROSSED_AT": numbers["CROSSED"]}
    if parts.switching is not None:
        numbers |= parts.switching.layout(parts.nq, parts.nv, n, parts.answer)
        numbers |= {"SW_LINE": 8 * parts.switching.line(parts.watched), "OFF": actions.OFF, "AT": actions.AT}
    return numbers | {
        "CANNOT": CANNOT, "CROSSED": CROSSED, "TURNED": TURNED, "FULL": FULL, "STOPPED": STOPPED,
        "N": n, "X": 8 * n, "F": 8 * parts.answer,
        "S": parts.answer, "T": 8 * parts.size, "NX": parts.size + 1, "TOLD_AT": 8 * parts.told, "ROW": 8 * parts.row,
        "NQ": parts.nq, "NQ8": 8 * parts.nq, "NV": parts.nv, "PIVOTS": parts.pivots, "WATCHED": parts.watched,
        "STAGE_COUNT": stages, "COLUMNS": stages + 4, "EXTRA": 3, "CONTROLLED": parts.size - 1,
        "ENTRIES": float(parts.size), "DENSE_ROW": 8 * n * (0 if tableau is None else tableau.dense_rows),
        "LOOKS": looks, "PART": 1.0 / looks, "PARABOLAS": extrema.PARABOLAS, "TOUCHED": extrema.TOUCHED,
        "FIRST_POWER": 1 / 4 if isinstance(tableau, Collocation) else 1 / 8,
        "SLUGGISH": 0.2 if parts.nv <= MANY else 0.4,
        "KEPT": KEPT, "NEARLY": NEARLY, "SQUARED": SQUARED, "CLEAR": CLEAR,
        "FALLEN": corners.FALLEN, "NEAREST": corners.NEAREST, "LONG": code_of.LONG, "SPACINGS": code_of.SPACINGS,
        "NODE_COUNT": 0 if tableau is None else tableau.dense_rows + 1,
        "MEMORY_AT": 8 * parts.memory[0], "MEMORY": parts.memory[1], "INSTANT": parts.instant,
    }  # fmt: skip


def _vectors_text(parts: Parts, target: Target) -> str:
    """Sums of vectors as long as a state: `combine` y + h Σ aⱼ Kⱼ, `mix` of four, `interpolate` by seven rows."""
    n, v = parts.padded, "<4 x double>"

    def plus(to: str, a: str, b: str, c: str) -> str:
        """a b + c, in one rounding where the processor has it: never left to the compiler, whose levels differ."""
        if target.fma:
            return f"  %{to} = call {v} @llvm.fma.v4f64({v} {a}, {v} {b}, {v} {c})\n"
        return f"  %{to}_ab = fmul {v} {a}, {b}\n  %{to} = fadd {v} %{to}_ab, {c}\n"

    spread = lambda name, to: (  # noqa: E731
        f"  %{to}0 = insertelement {v} poison, double {name}, i32 0\n"
        f"  %{to} = shufflevector {v} %{to}0, {v} poison, <4 x i32> zeroinitializer\n"
    )

    def at(base: str, offset: str, to: str) -> str:
        return f"  %{to}_a = add i64 {base}, {offset}\n  %{to}_p = inttoptr i64 %{to}_a to ptr\n"

    def load(base: str, offset: str, to: str) -> str:
        return at(base, offset, to) + f"  %{to} = load {v}, ptr %{to}_p, align 8\n"

    combine = (
        "define internal i64 @combine(i64 %out, i64 %y, double %h, i64 %K, i64 %a, i64 %count) {\nentry:\n"
        + spread("%h", "hh")
        + f"  br label %outer\nouter:\n  %i = phi i64 [0, %entry], [%i1, %store]\n  br label %inner\n"
        "inner:\n  %j = phi i64 [0, %outer], [%j1, %inner]\n"
        f"  %sum = phi {v} [zeroinitializer, %outer], [%sum1, %inner]\n"
        f"  %row = mul i64 %j, {8 * parts.answer}\n  %off = add i64 %row, %i\n"
        + load("%K", "%off", "k")
        + "  %j8 = mul i64 %j, 8\n"
        + at("%a", "%j8", "c")
        + "  %c = load double, ptr %c_p\n"
        + spread("%c", "cc")
        + plus("sum1", "%k", "%cc", "%sum")
        + "  %j1 = add i64 %j, 1\n  %more = icmp slt i64 %j1, %count\n"
        "  br i1 %more, label %inner, label %store\nstore:\n"
        + load("%y", "%i", "base")
        + plus("new", "%sum1", "%hh", "%base")
        + at("%out", "%i", "o")
        + f"  store {v} %new, ptr %o_p, align 8\n  %i1 = add i64 %i, 32\n"
        f"  %again = icmp slt i64 %i1, {8 * n}\n  br i1 %again, label %outer, label %done\ndone:\n  ret i64 0\n}}\n"
    )
    letters = "abcd"
    mix = (
        "define internal i64 @mix(i64 %out, " + ", ".join(f"i64 %{x}, double %{x}c" for x in letters) + ") {\nentry:\n"
        + "".join(spread(f"%{x}c", f"{x}s") for x in letters)
        + "  br label %outer\nouter:\n  %i = phi i64 [0, %entry], [%i1, %outer]\n"
        + "".join(load(f"%{x}", "%i", f"{x}v") for x in letters)
        + f"  %sum0 = fmul {v} %av, %as\n"
        + "".join(plus(f"sum{k}", f"%{x}v", f"%{x}s", f"%sum{k - 1}") for k, x in enumerate(letters) if k)
        + at("%out", "%i", "o")
        + f"  store {v} %sum3, ptr %o_p, align 8\n  %i1 = add i64 %i, 32\n"
        f"  %again = icmp slt i64 %i1, {8 * n}\n  br i1 %again, label %outer, label %done\ndone:\n  ret i64 0\n}}\n"
    )
    horner = ""
    for k in range(7):
        before = "zeroinitializer" if k == 0 else f"%m{k - 1}"
        horner += load("%F", f"%i_{6 - k}", f"f{k}")
        horner += f"  %s{k} = fadd {v} {before}, %f{k}\n  %m{k} = fmul {v} %s{k}, %{'xs' if k % 2 == 0 else 'us'}\n"
    interpolate = (
        "define internal i64 @interpolate(i64 %out, i64 %y, i64 %F, double %x) {\nentry:\n"
        "  %u = fsub double 1.0, %x\n" + spread("%x", "xs") + spread("%u", "us")
        + "  br label %outer\nouter:\n  %i = phi i64 [0, %entry], [%i1, %outer]\n"
        + "".join(f"  %i_{k} = add i64 %i, {8 * n * k}\n" for k in range(7))
        + horner
        + load("%y", "%i", "base")
        + f"  %new = fadd {v} %m6, %base\n"
        + at("%out", "%i", "o")
        + f"  store {v} %new, ptr %o_p, align 8\n  %i1 = add i64 %i, 32\n"
        f"  %again = icmp slt i64 %i1, {8 * n}\n  br i1 %again, label %outer, label %done\ndone:\n  ret i64 0\n}}\n"
    )
    return combine + mix + interpolate + f"declare {v} @llvm.fma.v4f64({v}, {v}, {v})\n"


def directions(given: list[int]) -> Array:
    """Codes of the crossings that count: upwards 1, downwards 2, either way 3."""
    return np.array([{0: 3, 1: 1, -1: 2}[d] for d in given], dtype=np.int64)


#: of runs that are over
LOOPS: Idle[Loop] = Idle(32)
FIELDS: Idle[Field] = Idle(32)

__all__ = [
    "FIELDS", "LOOPS", "Field", "Loop", "Parts", "Tableau", "ahead", "build", "directions", "is_at_hand", "prepare",
]  # fmt: skip
