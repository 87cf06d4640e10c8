"""Steps of a problem by compiled code, in chunks, with the Python path for what it cannot do.

`stretch` stands where a method's own generator of steps stood: it gives chunks of many steps, and single steps where
something is to be looked at (a function has crossed zero) or where the compiled code gave up (near singular
configurations of loops, numbers that are not finite): those are taken by the method itself, in Python. Steps of
`cvodes` and `idas` are taken by SUNDIALS (`sundials`); the loop goes over them, and decides at events as over its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.kernels import background
from polybody.kernels.idle import Idle
from polybody.kernels.stepping import LOOPS, Loop, Method, Parts, ahead, build, is_at_hand
from polybody.kernels.stepping_code import CANNOT, CROSSED, FULL, TURNED
from polybody.kernels.stepping_gauss import Gauss
from polybody.kernels.stepping_switches import Switching
from polybody.model.model import Model
from polybody.model.plans import SWITCH
from polybody.simulation.compiled import rolled
from polybody.simulation.compiled.asking import Asking, asking_of
from polybody.simulation.compiled.believing import Believing
from polybody.simulation.compiled.bridging import Bridging
from polybody.simulation.compiled.chunk import Chunk, rows_of
from polybody.simulation.compiled.field import Acting, require_compilable
from polybody.simulation.compiled.given import acting_of, possible_holding
from polybody.simulation.compiled.grids import grid, grid_through
from polybody.simulation.compiled.holding import Holding
from polybody.simulation.compiled.instants import Ahead
from polybody.simulation.compiled.states import States
from polybody.simulation.compiled.switching import Decisions
from polybody.simulation.compiled.tracing import still_holds
from polybody.simulation.compiled.watch import NOTHING, Watch, label_of, watch_of
from polybody.simulation.constrained_motion import LOST, MENDED, NEAR
from polybody.simulation.failures import NotCompiled
from polybody.simulation.integrators import Integrator, Options, Step
from polybody.simulation.integrators.corners import corners_of
from polybody.simulation.integrators.tableaux import GIVEN, TABLEAUX
from polybody.simulation.problem import Problem

if TYPE_CHECKING:
    from polybody.kernels.stepping_rolled import Between
    from polybody.simulation.compiled.sundials import Sundials

Array = np.ndarray
#: methods that have loops
METHODS = (*TABLEAUX, *GIVEN, "semi-implicit", "midpoint")
#: parts of methods without a tableau
OWN = {"semi-implicit": ["leap"], "midpoint": ["middle", "ends"]}
OWN_OF_MANY = ["balance", "end"]  # of the midpoint rule, for more velocities than MOST_EXACT
FIRST_CHUNK, LONGEST_CHUNK = 64, 4096  # steps
MORE_ROWS = 4  # than steps: the first, and at the last time a crossing, an instant and a crossing there
QUICK, SLOW = 0.004, 0.016  # seconds of a chunk: shorter ones grow, longer ones shrink
#: velocities up to which radau has the exact Jacobian of its field. Of a G1 it has 200,000 operations: a run takes as
#: long by differences, and its first steps need not wait for 2 s of tracing
MOST_EXACT = 12
PATIENCE_AT_STOPS = 256  # steps of a joint at rest before its motion there is compiled,
PATIENT = 0.03  # and seconds that they may take
PATIENCE = 4  # steps by the method itself where compiled code gave up
HORIZON = 8.0  # such steps, within which it tries to cross a singular configuration of loops by one
_BEGUN: set[tuple[str, str]] = set()  # (method, model) of which `begin` was told
MOST_BEGUN = 1024


class Compiled:
    """A problem with one method, compiled as it stands: what cannot be is said by `NotCompiled`."""

    def __init__(self, problem: Problem, method: Integrator, options: Options) -> None:
        if method.name not in METHODS:
            raise NotCompiled(f"the method {method.name!r} takes its steps in Python")
        self.problem, self.method, self.options = problem, method, options
        self.model: Model = problem.model
        require_compilable(self.model, method.name)
        given = method.name in GIVEN
        self._possible, self._believing = possible_holding(problem), Believing(problem, method.adaptive, given)
        self._source: Sundials | None = None
        if given:
            from polybody.simulation.compiled.sundials import Sundials

            self._source = Sundials(problem, method, options, self._possible)
        bears = problem.friction is not None and problem.friction.loaded
        self._rolled = rolled.is_rolled(self.model, bears)
        self._asking: Asking | None = None
        self.acting = self._acts()
        self._asking = asking_of(problem, self.acting.law) if self._source is None else None
        if self._asking is not None:
            self.acting = self._acts()
        problem.calls = self.acting.law.held
        made = (GIVEN if given else TABLEAUX).get(method.name)
        self.tableau: Method | None = None if made is None else made()
        self._loops: dict[tuple[Any, ...], Loop] = {}
        self._taken: list[tuple[Idle[Any], Any, Any]] = []  # what the next run may have
        self._watches: dict[Any, Watch] = {}
        self._event_texts: dict[Any, Any] = {}  # of users
        self._by_held: dict[bool, Acting] = {}  # what acts while joints are held, and while none is
        self.states = States(self)
        self.instants = None if self.acting.law.memory is None else Ahead(problem.controller, self.acting.law.memory)
        large = self.model.nv > rolled.MOST_STRAIGHT
        slow = large and method.name in ("radau", "midpoint")  # factors of large matrices
        self.length = 1 if slow else FIRST_CHUNK  # who interrupts a run waits for a chunk
        self._was_frozen = problem.friction is not None or given  # whoever rubs will stick
        self._stays_frozen = False  # the field of held joints is the run's, also where none is
        self.pieces = np.inf  # seconds of motion after which a chunk must end
        self.most = LONGEST_CHUNK  # steps that may still be taken
        self.called = False  # user's functions are called in Python
        self.decisions = Decisions(problem, self._possible)
        problem.collocated = Bridging(self) if problem.loops else None
        self._going = (np.nan, 0)  # when equal steps began, and how many were taken since

    @property
    def due(self) -> float:
        """The next instant at which the controller is to be told the state, where steps do not end there anyway."""
        return np.inf if self.instants is None or not self.instants.begun else self.instants.due

    def renew(self) -> None:
        """Take the numbers of what acts anew, and the functions of users: what they read may be another."""
        self.acting, self._by_held = self._acts(), {}
        self._watches, self._event_texts = {}, {}
        self.decisions.renew()
        if self.instants is not None:
            self.instants.memory = self.acting.law.memory
            self._remember()
        self._hold()

    def _acts(self) -> Acting:
        """What acts now."""
        acting = acting_of(self.problem)
        if self._asking is not None and acting.law.held:
            acting = replace(acting, law=replace(acting.law, memory=self._asking.memory))
        return replace(acting, rolled=True) if self._rolled else acting

    def give_back(self) -> None:
        """Let the next run have what this one has made ready."""
        taken, self._taken, self._loops = self._taken, [], {}
        self.problem.collocated = None
        self.states.forget()
        for idle, key, thing in taken:
            if thing.cleared() is not None:
                idle.give(key, thing)
        if self._source is not None:
            self._source.forget()
        if self._asking is not None:
            self._asking.forget()

    # Loops.

    def loop(self, watch: Watch, switching: Switching | None = None, across: Gauss | None = None) -> Loop:
        """The loop for what acts now, with what it decides at events; for steps `across` by that method."""
        if self.problem.loops:
            self._follow_plan()
        acting = self.acting
        name, tableau = (self.method.name, self.tableau) if across is None else ("bridge", across)
        key = name, acting.key, watch.key, self.decisions.key(switching)
        if key not in self._loops:
            self._loops[key] = self._built(name, tableau, acting, watch, switching)
        loop, signals = self._loops[key], acting.law.signals
        loop.fill("constants", acting.constants)
        loop.array("breaks", np.ascontiguousarray(signals.breaks))
        loop.array("table", np.ascontiguousarray(signals.rows))
        loop.set(rows=len(signals.breaks))
        if switching is not None:
            held = self.problem.stops.held if self.problem.stops is not None else {}
            loop.set(switched=0, loose=int(not held))
        return loop

    def _follow_plan(self) -> None:
        plan = self._plan()
        if self.acting.plan is not plan:
            self.acting = replace(self.acting, plan=plan)

    def _plan(self) -> Any:
        engine: Any = self.model.engine
        if not engine.is_compiled or not engine.plans.is_made:
            raise NotCompiled("the loops have no plan of elimination")
        return self.problem.motion.plans.free(None)

    def _parts(self, acting: Acting, watch: Watch, switching: Switching | None = None) -> Parts:
        names = ["field", *self.decisions.parts(switching)]
        names += OWN_OF_MANY if self._is_balanced else OWN.get(self.method.name, [])
        names += ["slopes"] if self._has_slopes else []
        names += ["unit"] if acting.curved or (acting.holding.frozen and acting.plan is None) else []
        names += ["back"] if acting.plan is not None else []
        names += ["watch"] if watch.count else []
        names += ["tick"] if acting.law.memory is not None else []
        m = self.model.mechanism
        memory = acting.law.memory
        made = self._made_of(acting)
        own = {"watch": watch.key, "loose_watch": watch.key, "actions": self.decisions.key(switching)}
        return Parts(
            size=acting.size, nq=m.nq, nv=m.nv, recorded=acting.recorded,
            make=lambda name: self.decisions.text(acting) if name == "actions" else acting.function(name, watch),
            keys={name: f"{made} {own[name]}" if name in own else made for name in names},
            row=acting.law.signals.rows.shape[1], watched=watch.count,
            between=_between(acting),
            pivots=len(acting.plan.pivots) if acting.plan else 0, doubtful=acting.doubtful,
            memory=(0, 0) if memory is None else (len(acting.law.constants) - memory.size, memory.size),
            instant=0 if memory is None else memory.width, asks=self._asking is not None, switching=switching,
        )  # fmt: skip

    def _made_of(self, acting: Acting) -> str:
        """What distinguishes the parts of a loop from those of others."""
        return f"{acting.key}:{self.model.engine.constraints.source.digest}"

    @property
    def _is_balanced(self) -> bool:
        """Whether steps of the midpoint rule take differences of their equations instead of their exact Jacobian."""
        return self.method.name == "midpoint" and self.model.nv > MOST_EXACT

    @property
    def _has_slopes(self) -> bool:
        """Whether implicit steps have the exact Jacobian; else they take differences of the field."""
        return self.method.name == "radau" and not self.problem.loops and self.model.nv <= MOST_EXACT

    def foresee(self, functions: list[tuple[Any, int]]) -> None:
        """Let the code of the loop be made that a run with loops has where no joint rests from the start, while its
        field is traced to look at the first state."""
        if (self.method.name, self.model.engine.constraints.source.digest) not in _BEGUN:
            self._make_ahead(functions)

    def begin(self, functions: list[tuple[Any, int]]) -> None:
        """Let the loop's own code be made while the first field of a model is traced.

        Joints that rest from the start are worth code of their own: their field is recorded first of all.
        """
        self._hold()
        self._was_frozen = self._was_frozen or bool(self.acting.holding.frozen)
        key = self.method.name, self.model.engine.constraints.source.digest
        if key in _BEGUN:
            return
        if len(_BEGUN) >= MOST_BEGUN:
            _BEGUN.clear()
        _BEGUN.add(key)
        self._make_ahead(functions)

    def freeze(self, functions: list[tuple[Any, int]]) -> bool:
        """Have the field that knows of held joints serve, also where none comes to be held, unless that of free ones is
        there: one of them is traced, not both. False where joints cannot be held, or where the last digits of a run,
        in which the two differ, must not tell what was compiled before."""
        if self._rolled or not self._possible.slots or background.is_repeatable():
            return False
        loose = is_at_hand(self._parts(self._held_acting(replace(self._possible, frozen=False)), NOTHING))
        self._stays_frozen = True
        self.begin(functions)
        self._stays_frozen = not loose
        return True

    def _make_ahead(self, functions: list[tuple[Any, int]]) -> None:
        if self.problem.loops:
            self._follow_plan()
        watch = self._watch(functions)
        table = self.decisions.now(self.acting, watch, functions)
        ahead(f"simulate {self.method.name}", self._parts(self.acting, watch, table), self.tableau)

    def _built(
        self, name: str, tableau: Method | None, acting: Acting, watch: Watch, switching: Switching | None
    ) -> Loop:
        key = name, self._made_of(acting), watch.key, self.decisions.key(switching)
        loop = LOOPS.take(key)
        if loop is None:
            parts = self._parts(acting, watch, switching)
            loop = build(f"simulate {name}", parts, tableau)
        acting.forget()
        self._taken.append((LOOPS, key, loop))
        if switching is not None:
            loop.decide(switching, self.options.dt)
        loop.array("directions", watch.codes)
        corners = corners_of(acting.drives, self.model.nq) if name == "dop853" else None
        if corners is not None:
            loop.array("corners", corners.table)
        loop.set(corner_count=0 if corners is None else len(corners.places))  # the loop may have served another run
        loop.set(growth=SWITCH, newton_tol=max(2.2e-15 / self.options.rtol, min(0.03, self.options.rtol**0.5)))
        if acting.plan is not None:
            rank = max(self.problem.motion._rank, 1)
            growth, narrow = self._believing.limits()
            loop.set(growth=growth, narrow=narrow, mended=float(MENDED * rank))
            loop.set(grown=float(SWITCH**2 * rank), lost=float(LOST * rank), near=float(NEAR * rank))
        return loop

    def _hold_sampled(self, t: float, y: Array) -> None:
        """Forces that a computer holds until its next instant are constants of the field."""
        if self.acting.law.held:
            forces = self.problem.torque(t, *self.problem.split(y))
            if self._asking is not None:
                self._asking.forces = forces
            self.acting = self.acting.renumbered(law=replace(self.acting.law, constants=forces))

    # Instants of controllers.

    def sampled(self, t: float) -> None:
        """The controller has been told the state at t."""
        if self.instants is not None:
            self.instants.passed(t)
            self._remember()

    def ask_with(self, functions: Sequence[Any]) -> None:
        """These functions of the user are compiled: whoever is asked at instants may change what they read."""
        if self._asking is not None:
            self._asking.holds = lambda: self.holds(functions)

    def is_stale(self) -> bool:
        """Whether that has happened since this was asked last."""
        asking = self._asking
        found = asking is not None and asking.is_stale
        if asking is not None:
            asking.is_stale = False
        return found

    @staticmethod
    def holds(functions: Iterable[Any]) -> bool:
        """Whether those of a user's functions that were compiled still read what they did."""
        return all(map(still_holds, functions))

    def _remember(self) -> None:
        """What the controller remembers, as numbers of the field."""
        law, instants = self.acting.law, self.instants
        if instants is not None and instants.begun:
            count = len(law.constants) - law.memory.size
            constants = np.concatenate([law.constants[:count], law.memory.take()])
            self.acting = self.acting.renumbered(law=replace(law, constants=constants))

    # Steps.

    def stretch(
        self, t: float, y: Array, end: float, functions: list[tuple[Any, int]], fresh: bool,
        samples: Callable[[], Array | None], dense: bool,
    ) -> Iterator[Step | Chunk]:
        """Steps and chunks from (t, y); `samples()` are the times at which states are still wanted, None for every
        step."""
        if self._asking is not None:
            self._asking.raise_kept()  # who left the last steps early has not heard of it
        if fresh:
            self.decisions.expect(lambda: self._decides(functions))
        self._hold()
        self._hold_sampled(t, y)
        self._forget()
        if self._source is not None:
            self._source.begin(t, y, end, fresh, bool(functions))
        watch = self._watch(functions)
        self.called = self.called or watch.called
        switching = self.decisions.now(self.acting, watch, functions)
        first = self._next if self._ended == t else self._first_step(t, end)
        by_hand = 1 if fresh and watch.called and self._source is None else 0
        if self.acting.holding.frozen and not self._was_frozen:  # whoever rests for a moment only is not worth code
            by_hand = PATIENCE_AT_STOPS if not is_at_hand(self._parts(self.acting, watch)) else by_hand
            self._was_frozen = True
        # Chunks end when their seconds are over; the times of steps do not depend on it.
        begun, taken = self._going if self._ended == t and not fresh and self._going[1] else (t, 0)
        self._going = (np.nan, 0)
        while t < end:
            if t >= self.due:  # compiled code has not dealt with it: the run does
                return
            if by_hand:
                for step in self._own_steps(t, y, min(end, self.due), first, by_hand):
                    yield step
                    t, y, first = step.t1, step.y1, step.t1 - step.t0
                by_hand, begun, taken, fresh = 0, t, 0, False
                self._forget()
                continue
            across = None if self._source is None else self._source.across(t, y, end)
            if across is not None:
                yield across
                t, y, fresh = across.t1, across.y1, False
                continue
            loop = self.loop(watch, switching)
            if self.problem.loops and self._source is None:
                self._believing.ask_again(loop, t, y, end, first)
            loop.refresh()
            loop.set(fresh=int(fresh))
            stops, horizon = self._stops(loop, end, watch.called or self._source is not None)
            times = None if self.method.adaptive else self._times(begun, taken, stops, horizon)
            if self._source is not None:
                times = self._source.steps(loop, self.acting, t, y, horizon, self.pieces, self.states.closed_answer)
                if times is None:
                    by_hand = PATIENCE
                    continue
            crossing = watch.labels if not watch.called else None
            status, chunk = self._chunk(loop, t, y, horizon, first, samples(), dense or watch.called, times, crossing)
            if chunk is not None and switching is not None:
                chunk = self.decisions.read(loop, chunk, watch, self.acting.holding)
            if chunk is not None and self._source is not None:
                chunk = self._source.counted(chunk)
            struck = self._struck(loop, chunk)
            count = len(chunk) if chunk is not None else 0
            if chunk is not None and count:
                t, y, fresh = float(chunk.rows.t[-1]), chunk.rows.y[-1].copy(), False
                first = self._next = loop.number("h")
                self._ended, taken = t, taken + count
                anew = max(struck, chunk.switches[-1].row if chunk.switches else 0)
                if anew:
                    begun, taken = float(chunk.rows.t[anew]), count - anew
                if not chunk.crossed:  # who breaks off here goes on with the same equal steps
                    self._going = begun, taken
                if watch.called:
                    yield from (chunk.step(k) for k in range(count))
                elif status == TURNED:
                    if count > 1:
                        yield self._cut(chunk, count - 1)
                    yield replace(chunk.step(count - 1), watched=not loop.word("turned"))
                else:
                    yield chunk
                self._going = (np.nan, 0)
            if self._asking is not None:
                self._asking.raise_kept()
                if self._asking.is_stale:
                    return
            tried = first if self.method.adaptive else self.options.dt
            bars = status == CANNOT and not (
                self.acting.plan is not None and self._believing.can_go_on(loop, count, t, y, end - t, tried)
            )
            one = self.acting.plan is not None and not self.method.adaptive  # loops have crossed what barred them
            by_hand = (1 if one else PATIENCE) if bars else 0

    def _decides(self, functions: list[tuple[Any, int]]) -> bool:
        """Whether the code of loops that decide at events is there."""
        acting = self._held_acting(replace(self._possible, frozen=True))
        watch = watch_of(functions, acting.holding, self._event_texts)
        table = self.decisions.table(acting, watch, functions)
        return table is not None and is_at_hand(self._parts(acting, watch, table))

    def _forget(self) -> None:
        """Implicit steps know nothing of those before."""
        for known in self._loops.values():
            known.set(has_speed=0, warm=0)

    def _watch(self, functions: list[tuple[Any, int]]) -> Watch:
        """What is looked at now: few sets of functions come again and again."""
        holding, notes = self.acting.holding, self.model._notes
        if not functions and not holding.key:
            return NOTHING
        kept = notes.get("watched")
        if kept is not None and kept[0] is functions and not holding.key:
            return kept[1]  # limits with nothing held, as in the last run of this model
        key = (holding.frozen, *((label_of(function), getattr(function, "level", 0.0)) for function, _ in functions))
        if key not in self._watches:
            self._watches[key] = watch_of(functions, holding, self._event_texts)
            stops = self.problem.stops
            if stops is not None and functions is stops.functions and not holding.key:
                notes["watched"] = functions, self._watches[key]
        return self._watches[key]

    @staticmethod
    def crossed(chunk: Chunk, functions: list[tuple[Any, int]]) -> list[int]:
        """Which of the functions have crossed zero at its end."""
        return [k for k, (function, _) in enumerate(functions) if label_of(function) in chunk.crossed]

    def _cut(self, chunk: Chunk, count: int) -> Chunk:
        """Its first steps, with the samples that they hold."""
        rows = chunk.rows[: count + 1]
        return replace(chunk, rows=rows, samples=chunk.samples_until(float(rows.t[-1])))

    def _first_step(self, t: float, end: float) -> float:
        """Seconds; 0 where the loop is to find it."""
        if not self.method.adaptive:
            return self.options.dt
        return 0.0 if self.options.first_step is None else min(self.options.first_step, end - t)

    def _own_steps(self, t: float, y: Array, end: float, first: float, count: int) -> Iterator[Step]:
        options = self.options
        if self.method.adaptive:
            options = replace(options, first_step=min(first, end - t) or None, horizon=HORIZON)
        begun = time.perf_counter()
        for step, _ in zip(self.method.steps(self.problem, t, y, end, options), range(count), strict=False):
            yield step
            if step.across:  # what comes behind it is for compiled code again
                return
            late = count > PATIENCE and time.perf_counter() - begun > PATIENT
            if late and not background.is_repeatable():  # studies must not depend on the clock
                return

    def _chunk(
        self, loop: Loop, t: float, y: Array, end: float, first: float, samples: Array | None, dense: bool,
        times: Array | None, crossing: tuple[Any, ...] | None,
    ) -> tuple[int, Chunk | None]:  # fmt: skip
        """(why it ended, the steps that were taken); up to a crossing where its functions have labels."""
        parts, options, adaptive = loop.parts, self.options, self.method.adaptive
        length, until = self._most_steps, min(end, t + self.pieces, self._believing.until)
        if times is not None:
            length = len(times) - 1
            loop.array("times", times)
        room = length + MORE_ROWS
        states, answers = loop.room("states", room, parts.padded), loop.room("answers", room, parts.answer)
        states[0, : parts.size], states[0, parts.size] = y, t
        self._sampled(loop, samples, length)
        if self.instants is not None:
            loop.room("begins", room, parts.answer)
        if adaptive:
            loop.room("dense", length + 1, self._dense_rows, parts.padded)
            loop.set(dense_wanted=int(dense or parts.watched > 0))
        loop.set(
            steps=length, evaluations=0, rejected=0, nearby=0, off_manifold=0.0, off_loops=0.0, h=float(first),
            end=float(end), until=float(until), max_step=float(min(self._max_step, self._believing.longest)),
            rtol=float(options.rtol), atol=float(options.atol),
        )  # fmt: skip
        clock = time.perf_counter()
        status = loop.run() if self._asking is None else self._asking.run(loop)
        if status == FULL:
            self._room *= 4
        done = loop.word("done")
        if done == length:
            self._paced(time.perf_counter() - clock)
        if not done:
            return status, None
        taken = None
        if samples is not None:
            kept = loop.word("next")
            taken = rows_of(parts, loop.held("sample_states")[:kept].copy(), loop.held("sample_answers")[:kept].copy())
        crossed, whole = frozenset(), None
        if status == CROSSED and crossing is not None:
            crossed = frozenset(label for label, yes in zip(crossing, loop.flags("crossed"), strict=False) if yes)
            own = slice(parts.size)
            whole = float(states[done, parts.size]), states[done, own].copy(), answers[done, own].copy()
            states[done], answers[done] = states[done + 1], answers[done + 1]
        states, answers = states[: done + 1].copy(), answers[: done + 1].copy()  # the loop writes there again
        rates = answers[:, : parts.size]
        chunk = Chunk(
            rows_of(parts, states, answers), rates, taken,
            loop.word("rejected"), loop.number("off_manifold"), loop.number("off_loops"), loop.word("evaluations"),
            loop.held("dense")[:done, :, : parts.size].copy() if adaptive and (dense or status == TURNED) else None,
            rates if self.instants is None else rates.copy(), crossed, whole,
            singular=self._believing.near(loop, done) if loop.word("nearby") else 0,
        )  # fmt: skip
        return status, chunk

    @property
    def _max_step(self) -> float:
        longest, free, calm = self.options.max_step, self.options.steady_step, self.options.calm_steps
        if calm is not None and self.acting.is_calm:
            longest, free = calm
        return longest if free is None or not self.acting.law.steady else free

    @property
    def _dense_rows(self) -> int:
        return 0 if self.tableau is None else self.tableau.dense_rows

    @property
    def _most_steps(self) -> int:
        return max(1, min(self.length, self.most))

    def _times(self, begun: float, taken: int, stops: Array, end: float) -> Array:
        """Times of the next equal steps, after those taken since `begun`; they begin anew at each of the stops."""
        dt = self.options.dt
        most = int(min(self._most_steps, max(1.0, self.pieces / dt)))
        return grid(begun, end, dt, most, taken) if not len(stops) else grid_through(begun, stops, end, dt, most, taken)

    def _stops(self, loop: Loop, end: float, called: bool) -> tuple[Array, float]:
        """(instants that the next chunk deals with, where it ends at the latest)."""
        if self.instants is None:
            return np.zeros(0), end
        if called:  # whatever is seen within a step may end it there: the controller must not be ahead
            loop.set(tick_count=0, tick_next=0)
            return np.zeros(0), min(end, self.due)
        times, told, horizon = self.instants.next(end, self._most_steps)
        loop.array("tick_times", times)
        loop.array("tick_told", told)
        loop.room("memories", len(times) + 1, loop.parts.memory[1])
        loop.room("tick_rows", len(times) + 1)
        loop.set(tick_count=len(times), tick_next=0)
        if self._asking is not None:
            self._asking.attach(loop)
        return times, horizon

    def _struck(self, loop: Loop, chunk: Chunk | None) -> int:
        """Tell the controller of the instants that a chunk has dealt with; the row of the last, 0 without any."""
        count = 0 if self.instants is None else loop.word("tick_next")
        if not count or chunk is None:
            return 0
        times, told = loop.held("tick_times")[:count], loop.held("tick_told")[:count]
        self.acting.law.memory.give(times, told, loop.held("memories")[:count])
        self.sampled(float(times[-1]))
        rows = loop.flags("tick_rows")[:count]
        chunk.begins[rows] = loop.held("begins")[rows, : loop.parts.size]
        return int(rows[-1])

    def _hold(self) -> None:
        """Tell the field which joints are held now."""
        problem, stops = self.problem, self.problem.stops
        frozen = self._stays_frozen or self.decisions.holding or (stops is not None and bool(stops.held))
        if not frozen and not self._possible.rubs and not self.acting.holding.frozen:
            return
        if self.acting.holding.frozen is not frozen or not self.acting.holding.slots:
            if frozen not in self._by_held or self._by_held[frozen].plan is not self.acting.plan:
                self._by_held[frozen] = self._held_acting(replace(self._possible, frozen=frozen))
            now = self.acting
            self.acting = self._by_held[frozen].renumbered(law=now.law, wrenches=now.wrenches)
        numbers = self.acting.holding.numbers(stops, problem.friction)
        if not np.array_equal(numbers, self.acting.held):
            self.acting = self.acting.renumbered(held=numbers)

    def _held_acting(self, holding: Holding) -> Acting:
        made = replace(self.acting, holding=holding, held=np.zeros(holding.size))
        assert made.key  # written once, for all that are renumbered
        return made

    _room = 1024
    _ended, _next = np.nan, 0.0  # where a stretch ended, and the step that would come next

    def _sampled(self, loop: Loop, samples: Array | None, length: int) -> None:
        count = 0 if samples is None else len(samples)
        room = min(count, max(self._room, length))
        if samples is not None:
            loop.array("samples", np.ascontiguousarray(samples))
            loop.room("sample_states", room, loop.parts.padded)
            loop.room("sample_answers", room, loop.parts.answer)
        loop.set(next=0, count=count, room=room)

    def _paced(self, seconds: float) -> None:
        if seconds < QUICK:
            self.length = min(2 * self.length, LONGEST_CHUNK)
        elif seconds > SLOW:
            self.length = max(1, self.length // 2)


def _between(acting: Acting) -> dict[str, Callable[[], Between]]:
    """The kernels of long chains that run between the tapes of parts."""
    if not acting.rolled:
        return {}
    from polybody.simulation.compiled import rolled_middle

    return rolled.parts(acting) | rolled_middle.parts(acting)


__all__ = ["METHODS", "Compiled"]
