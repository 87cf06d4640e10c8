"""Runs by `cvodes` and `idas` whose right side is a graph: stretches of states at the wanted times, many per call.

A call of SUNDIALS gives states at the wanted times and at Chebyshev's points between them (`integrators.sundials`).
What is looked at then goes over all of them at once: joints and loops put back, events, rates that are recorded,
singular configurations ahead. Where an event is near, an interval is given as a step of its own, inside which the run
locates it; where the graph is not to be believed, or a call fails, the method takes some intervals with its functions
called back in Python, which also says what was wrong.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from types import SimpleNamespace
from typing import Any

import numpy as np

from polybody.interrupts import passed_on
from polybody.late import dataclass
from polybody.model.plans import SWITCH
from polybody.simulation.bridge import first_ahead
from polybody.simulation.compiled.chunk import Chunk
from polybody.simulation.compiled.field import Acting, require_compilable
from polybody.simulation.compiled.given import acting_of, possible_holding
from polybody.simulation.compiled.rolled import MOST_STRAIGHT
from polybody.simulation.compiled.sundials_graphs import Rates, Residuals, Solvers, field_of, kept
from polybody.simulation.compiled.watch import Watch, label_of, watch_of
from polybody.simulation.events import LOOKS
from polybody.simulation.failures import NotCompiled
from polybody.simulation.integrators import Integrator, Options, Step
from polybody.simulation.integrators.base import Interpolant
from polybody.simulation.integrators.idas import idas_options, resting_alone
from polybody.simulation.integrators.sundials import (
    CHUNK,
    LOOP_CHUNK,
    PARTS,
    ahead,
    chebyshev,
    horizon,
    subdivided,
    through,
    wanted_times,
)
from polybody.simulation.kept import Rows
from polybody.simulation.loop_batches import returned, turned_over
from polybody.simulation.problem import Problem

Array = np.ndarray
#: wanted times of the first call: a restart costs the solver its history, and an event what comes after it
FIRST_CHUNK, FIRST_WATCHED = 64, 16
SHORTEST_WATCHED = 8
FEW, MANY = 2_000, 10_000  # steps of a call: shorter ones grow, longer ones shrink, whatever the clock says
PATIENCE = 4  # wanted times with functions called back, where the graph failed
#: (size/row)² for each pivot up to which elimination is believed at states that are off the loops by the tolerances
BELIEVED = 1e2


@dataclass(frozen=True, eq=False)
class Intervals(Chunk):
    """Intervals between wanted times, with a polynomial through the solver's states in each; `dense` are those."""

    def interpolant(self, k: int) -> Interpolant:
        assert self.dense is not None
        return through(float(self.rows.t[k]), float(self.rows.t[k + 1]), self.dense[k])


class Sundials:
    """A problem with `cvodes` or `idas` as graphs; what cannot be is said by `NotCompiled`."""

    instants = None
    due = np.inf

    def __init__(self, problem: Problem, method: Integrator, options: Options) -> None:
        self.problem, self.method, self.options, self.model = problem, method, options, problem.model
        if self.model.nv > MOST_STRAIGHT:
            raise NotCompiled(f"graphs of more than {MOST_STRAIGHT} velocities are too long for {method.name}")
        require_compilable(self.model, method.name)
        self._possible = possible_holding(problem)
        if self._possible.bearing and method.name == "idas":
            raise NotCompiled("friction by load is called in Python by idas")
        self._plain = acting_of(problem)
        self.decisions = SimpleNamespace(allowed=False)  # events are decided in Python
        self.pieces, self.most = np.inf, 0
        self.length = 0
        self._remembered = False
        self._solvers: dict[Any, Solvers] = {}
        self._watches: dict[Any, Watch] = {}
        self._event_texts: dict[Any, Any] = {}  # of users
        self.acting = self._plain

    # What a run asks of whoever takes its steps (`engine.Compiled`).

    def renew(self) -> None:
        self._plain = acting_of(self.problem)

    def give_back(self) -> None:
        self._solvers = {}

    def foresee(self, functions: list[tuple[Any, int]]) -> None:
        """Nothing is made ahead."""

    def begin(self, functions: list[tuple[Any, int]]) -> None:
        """Nothing is made ahead."""

    def sampled(self, t: float) -> None:
        self._remembered = True

    def is_regular(self, t: float, y: Array) -> bool:
        if not (self.problem.loops or self._plain.doubtful):
            return True
        if self.problem.loops and not self._has_plan:
            self.problem.motion._plan_ready(self.problem.split(y)[0])
        self._hold(t, y)
        return self._believes(self._fields(np.array([t]), y[None])[1])[0]

    def recorded(self, t: float, y: Array) -> tuple[Array, Array, Array, Array] | None:
        """(ẏ, a, tau, all currents); None where Python is to be asked."""
        if self.problem.loops and not self._has_plan:
            return None
        self._hold(t, y)
        rates, told = self._fields(np.array([t]), y[None])
        if not (self._believes(told)[0] and np.isfinite(rates).all()):
            return None
        rows = self._rows(np.array([t]), y[None], rates, told)
        return rates[0], rows.a[0], rows.tau[0], rows.currents[0]

    @staticmethod
    def crossed(chunk: Chunk, functions: list[tuple[Any, int]]) -> list[int]:
        """No chunk ends at a crossing."""
        return []

    def stretch(
        self, t: float, y: Array, end: float, functions: list[tuple[Any, int]], fresh: bool,
        samples: Callable[[], Array | None], dense: bool,
    ) -> Iterator[Step | Chunk]:
        """Steps and chunks from (t, y), as `engine.Compiled.stretch` gives them."""
        problem, by_hand = self.problem, 0
        if fresh:
            self.length = max(SHORTEST_WATCHED, self.length // 2)
        self.length = self.length or (FIRST_WATCHED if functions else FIRST_CHUNK)
        times, before = wanted_times(t, end, self.options), (t, y)
        limit = len(times)
        while len(times):
            if problem.loops:
                across = ahead(problem, before, t, y, times[0], end, self.options)
                if across is not None:
                    yield across
                    before, (t, y), fresh = (t, y), (across.t1, across.y1), False
                    times = times[times > t + 1e-12 * (1 + abs(t))]
                    continue
            if by_hand or (problem.loops and not self._has_plan):
                for step in islice(self.method.steps(problem, t, y, end, self.options), max(by_hand, 1)):
                    yield step
                    before, (t, y), fresh = (t, y), (step.t1, step.y1), False
                times, by_hand = times[times > t + 1e-12 * (1 + abs(t))], 0
                continue
            self._hold(t, y)
            found = self._call(t, y, self._grid(t, times, limit))
            if found is None:
                by_hand, limit = (PATIENCE, len(times)) if limit == 1 else (0, max(1, min(self.length, limit) // 16))
                continue
            chunk, good = found
            yield from self._parts(chunk, good, functions, fresh, samples())
            if good:
                before = float(chunk.rows.t[good - 1]), chunk.rows.y[good - 1]
                t, y, times, fresh = float(chunk.rows.t[good]), chunk.rows.y[good].copy(), times[good:], False
            by_hand, limit = 0 if good else PATIENCE, len(times)

    # Calls.

    @property
    def _has_plan(self) -> bool:
        return self.model.engine.is_compiled and self.model.engine.plans.is_made  # type: ignore[attr-defined]

    def _grid(self, t: float, times: Array, limit: int) -> Array:
        """The wanted times of the next call."""
        most = min(self.length, limit, LOOP_CHUNK if self.problem.loops else CHUNK)
        if np.isfinite(self.pieces):
            most = min(most, int(np.searchsorted(times, t + self.pieces, "right")))
        return times[: max(1, most)]

    def _call(self, t: float, y: Array, grid: Array) -> tuple[Intervals, int] | None:
        """(intervals, how many of them are good), or None where the solver gave up."""
        problem, said = self.problem, io.StringIO()
        try:
            with contextlib.redirect_stderr(said):  # what SUNDIALS reports
                states, doubts, told = self._solve(t, y, subdivided(t, grid).ravel())
        except RuntimeError as error:
            if "KeyboardInterrupt" in f"{said.getvalue()}{error}":  # of a program's own handler
                raise KeyboardInterrupt from None
            return None
        if not np.isfinite(states).all():
            return None
        within = states.reshape(len(grid), PARTS, -1)
        doubts = doubts.reshape(len(grid), PARTS)[:, -1]
        good = int(np.argmax(doubts != 0)) if (doubts != 0).any() else len(grid)  # of no number too
        raw = within[:good, -1]
        off = max((problem.off_manifold(one) for one in raw), default=0.0) if problem.curved else 0.0
        new, off_loops = returned(problem, raw)
        at = np.concatenate([[t], grid[:good]])
        Y = np.concatenate([y[None], new])
        rates, beside = self._fields(at, Y)
        believed = self._believes(beside) & np.isfinite(rates).all(axis=1)
        if not believed[1:].all():
            good = int(np.argmin(believed[1:]))
        rows = self._rows(at, Y, rates, beside)
        nodes = np.concatenate([Y[:-1, None], within[: len(new), :-1], new[:, None]], axis=1)
        steps = int(told["nsteps"])
        chunk = Intervals(
            rows[: good + 1], rates[: good + 1], None, int(told["netfails"]), off, off_loops,
            _evaluations(told), nodes[:good], inner=max(0, steps - good),
        )  # fmt: skip
        self._paced(len(grid), steps)
        if problem.loops:
            good = min(good, first_ahead(problem, Y[1 : good + 1], lambda k: horizon(problem, at[k + 1], Y[k + 1],
                                         grid[min(k + 1, len(grid) - 1)])))  # fmt: skip
        return chunk, good

    def _solve(self, t: float, y: Array, fine: Array) -> tuple[Array, Array, dict[str, Any]]:
        acting, problem, name = self.acting, self.problem, self.method.name
        signals = acting.law.signals.rows.tobytes() + acting.law.signals.breaks.tobytes()
        start: dict[str, Any] = {}
        chosen: dict[str, Any] = {}
        if name == "idas":
            q, v = problem.split(y)
            rows = problem.motion.independent_rows(q) if problem.loops else []
            resting = resting_alone(problem, rows, q)
            rates = self._fields(np.array([t]), y[None])[0][0]
            acting = self._without_held(acting)
            key = self._key(acting, "residuals", *rows, "at rest", *resting)
            graph = kept(key, lambda: Residuals(acting, rows, resting))
            x, row, a = np.append(y, t), acting.law.signals.row(t), rates[problem.nq : problem.nq + problem.nv]
            z, sizes = graph.start(x, acting.constants, row, v, a)
            start, chosen = {"z0": z}, idas_options(problem, rates[:-1], sizes, self.options)
        else:
            key = self._key(acting, "rates")
            graph = kept(key, lambda: Rates(acting))
        known = (key, signals)
        if known not in self._solvers:
            self._solvers[known] = Solvers(name, graph.equations(acting), self.options)
        return self._solvers[known](t, y, fine, acting.constants, self._limits, start, chosen)

    def _without_held(self, acting: Acting) -> Acting:
        """The same while no joint is held: idas has equations of their own for these."""
        if not acting.holding.frozen:
            return acting
        holding = replace(acting.holding, frozen=False)
        numbers = holding.numbers(self.problem.stops, self.problem.friction)
        return replace(acting, holding=holding, held=numbers)

    def _key(self, acting: Acting, *more: Any) -> tuple[Any, ...]:
        return (f"{acting.key}:{self.model.engine.constraints.source.digest}", *more)

    def _paced(self, count: int, steps: int) -> None:
        if steps < FEW and count == self.length:
            self.length = min(2 * self.length, CHUNK)
        elif steps > MANY:
            self.length = max(1, count // 2)

    # What acts now.

    def _hold(self, t: float, y: Array) -> None:
        """Take the numbers of what acts: joints that are held, forces of computers, the plan of elimination."""
        problem, acting = self.problem, self._plain
        law = acting.law
        if law.held:
            law = replace(law, constants=problem.torque(t, *problem.split(y)))
        elif law.memory is not None and self._remembered:
            count = len(law.constants) - law.memory.size
            law = replace(law, constants=np.concatenate([law.constants[:count], law.memory.take()]))
        frozen = problem.stops is not None and bool(problem.stops.held)
        holding = replace(self._possible, frozen=frozen) if frozen or self._possible.rubs else acting.holding
        numbers = holding.numbers(problem.stops, problem.friction) if frozen or self._possible.rubs else acting.held
        plan = problem.motion.plans.free(None) if problem.loops and self._has_plan else None
        self.acting = replace(acting, law=law, holding=holding, held=numbers, plan=plan)

    @property
    def _limits(self) -> tuple[float, float]:
        """Growth and narrow up to which an elimination is believed."""
        if not self.problem.loops:
            return SWITCH, np.inf
        rank = max(self.problem.motion._rank, 1)
        return float(SWITCH * rank), float(BELIEVED * rank)

    def _believes(self, told: Array) -> Array:
        """(n,) whether the field may be believed."""
        count, limits = self.acting.recorded, self._limits
        return (told[:, count] < limits[0]) & (told[:, count + 1] < limits[1])

    # Many states at once.

    def _fields(self, t: Array, Y: Array) -> tuple[Array, Array]:
        """(rates, what is recorded) at states."""
        acting = self.acting
        field = self._field(acting)
        self.problem.evaluations += len(t)
        rates, told = passed_on(lambda: [np.asarray(x).T for x in field(*self._columns(t, Y))])
        return rates[:, :-1], told

    def _field(self, acting: Acting) -> Any:
        if self.method.name == "cvodes":
            return kept(self._key(acting, "rates"), lambda: Rates(acting)).field
        return kept(self._key(acting, "field"), lambda: field_of(acting))

    def _columns(self, t: Array, Y: Array) -> tuple[Array, Array, Array]:
        signals = self.acting.law.signals
        rows = np.array([signals.row(one) for one in t]).T
        return np.column_stack([Y, t]).T, self.acting.constants, rows

    def _rows(self, t: Array, Y: Array, rates: Array, told: Array) -> Rows:
        nq, nv, count = self.problem.nq, self.problem.nv, self.acting.recorded
        return Rows(t, Y, rates[:, nq : nq + nv], told[:, :nv], told[:, nv:count])

    def _parts(
        self, chunk: Intervals, good: int, functions: list[tuple[Any, int]], fresh: bool, samples: Array | None
    ) -> Iterator[Step | Chunk]:
        """The intervals, those by themselves that somebody must look into."""
        t, alone = chunk.rows.t, self._alone(chunk, good, functions)
        slack = 1e-12 * (1 + abs(t[0]))
        late = samples is not None and len(samples) > 0 and samples[0] <= t[0] + slack
        alone[:1] |= (fresh and bool(functions)) or late
        k, first = 0, True
        while k < good:
            last = k + 1
            if alone[k]:
                step = chunk.step(k, chunk.rejected if first else 0)
                step.count = chunk.inner + 1 if first else 1
                yield step
            else:
                last = int(k + np.argmax(alone[k:good])) if alone[k:good].any() else good
                yield self._cut(chunk, k, last, first, samples)
            k, first = last, False

    def _cut(self, chunk: Intervals, k: int, last: int, first: bool, samples: Array | None) -> Chunk:
        """Intervals k to last; what was counted goes with the first part."""
        rows, within = chunk.rows[k : last + 1], None
        if samples is not None:
            known = set(samples.tolist())  # `np.isin` would import `numpy.ma`: 20 ms of a first answer
            wanted = np.array([t in known for t in rows.t.tolist()], dtype=bool)
            wanted[0] = False
            within = rows[wanted]
        inner = chunk.inner if first else 0
        told = (chunk.rejected, chunk.off_manifold, chunk.off_loops, chunk.evaluations) if first else (0, 0.0, 0.0, 0)
        assert chunk.dense is not None
        return Intervals(rows, chunk.rates[k : last + 1], within, *told, chunk.dense[k:last], inner=inner)

    def _alone(self, chunk: Intervals, good: int, functions: list[tuple[Any, int]]) -> Array:
        """Intervals in which a function changes its sign, or rows of the loops do."""
        found = np.zeros(good, dtype=bool)
        if self.problem.loops:
            found |= turned_over(self.problem, chunk.rows.y[: good + 1])
        if not functions or not good:
            return found
        watch = self._watch(functions)
        if watch.called:
            return np.ones(good, dtype=bool)
        values = self._watched(watch, chunk, good)  # (good, LOOKS + 1, count)
        before, after = values[:, :-1], values[:, 1:]
        ways = np.array(watch.directions)
        up, down = (before < 0) & (after >= 0) & (ways >= 0), (before > 0) & (after <= 0) & (ways <= 0)
        return found | (up | down | ~np.isfinite(after)).any(axis=(1, 2))

    def _watched(self, watch: Watch, chunk: Intervals, good: int) -> Array:
        """Values of what is watched where `events.first_crossing` would look."""
        assert chunk.dense is not None
        weights, t = _looks(), chunk.rows.t
        inside = np.einsum("jm,kmi->kji", weights, chunk.dense[:good])
        at = t[:good, None] + (t[1 : good + 1] - t[:good])[:, None] * (np.arange(LOOKS + 1) / LOOKS)
        acting = self.acting
        made = kept(self._key(acting, "watch", watch.key), lambda: _function(acting._watch(watch)))
        values = passed_on(lambda: np.asarray(made(*self._columns(at.ravel(), inside.reshape(at.size, -1)))).T)
        return values.reshape(*at.shape, -1)

    def _watch(self, functions: list[tuple[Any, int]]) -> Watch:
        holding = self.acting.holding
        key = (holding.key, *((label_of(one), getattr(one, "level", 0.0)) for one, _ in functions))
        if key not in self._watches:
            self._watches[key] = watch_of(functions, holding, self._event_texts)
        return self._watches[key]


def _function(made: Any) -> Any:
    return getattr(made, "function", made)


def _evaluations(told: dict[str, Any]) -> int:
    """Of right sides and Jacobians."""
    return sum(int(count) for name, count in told.items() if name in ("n_call_daeF", "n_call_jacF"))


def _looks() -> Array:
    """(LOOKS + 1, PARTS + 1): values at equal distances of the polynomial through Chebyshev's points."""
    points, weights = chebyshev()
    away = np.arange(LOOKS + 1)[:, None] / LOOKS - points
    exact = np.abs(away) < 1e-15
    shares = weights / np.where(exact, 1.0, away)
    shares /= shares.sum(axis=1, keepdims=True)
    hit = exact.any(axis=1)
    shares[hit] = exact[hit]
    return shares


__all__ = ["Sundials"]
