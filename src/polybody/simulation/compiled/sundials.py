"""Calls of SUNDIALS for `cvodes` and `idas` whose right side is a graph: steps that a compiled loop goes over.

A call gives states at the wanted times and at Chebyshev's points between them (`integrators.pieces`), without any
Python on its way; where the polynomials between do not follow the motion, another call from the same state gives more.
The loop (`kernels.stepping_given`) goes over all of them at once: joints and loops are put back,
rates recorded, events located in the polynomial through the points of an interval and decided there. After an event a
new call begins. Where the graph is not to be believed, or a call fails, the method takes some intervals with its
functions called back in Python, which also says what was wrong.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.interrupts import passed_on
from polybody.model.plans import SWITCH
from polybody.simulation.bridge import first_ahead
from polybody.simulation.compiled.believing import GIVEN
from polybody.simulation.compiled.chunk import Chunk
from polybody.simulation.compiled.field import Acting
from polybody.simulation.compiled.holding import Holding
from polybody.simulation.compiled.rolled import MOST_STRAIGHT
from polybody.simulation.compiled.sundials_graphs import Balance, Rates, Residuals, Solvers, kept
from polybody.simulation.failures import NotCompiled
from polybody.simulation.integrators import Integrator, Options, Step
from polybody.simulation.integrators.idas import idas_options, resting_alone
from polybody.simulation.integrators.pieces import PARTS, resolved, subdivided
from polybody.simulation.integrators.sundials import CHUNK, LOOP_CHUNK, ahead, horizon, wanted_times
from polybody.simulation.moments import moment
from polybody.simulation.problem import Problem

if TYPE_CHECKING:
    from polybody.kernels.stepping import Loop

Array = np.ndarray
Answer = Callable[[float, Array], tuple[Array, Array, Array, Array] | None]
#: wanted times of the first call: a restart costs the solver its history, and an event what comes after it
FIRST_CHUNK, FIRST_WATCHED = 64, 16
FEW, MANY = 2_000, 10_000  # steps of a call: shorter ones grow, longer ones shrink, whatever the clock says


class Sundials:
    """A problem with `cvodes` or `idas` as graphs; what cannot be is said by `NotCompiled`."""

    def __init__(self, problem: Problem, method: Integrator, options: Options, possible: Holding) -> None:
        self.problem, self.method, self.options, self.model = problem, method, options, problem.model
        if self.model.nv > MOST_STRAIGHT:
            raise NotCompiled(f"graphs of more than {MOST_STRAIGHT} velocities are too long for {method.name}")
        self._possible, self._solvers = possible, dict[Any, Solvers]()
        self._length, self._times, self._limit = 0, np.zeros(0), 0
        self._before: tuple[float, Array] = (np.nan, np.zeros(0))
        self._told: dict[str, Any] = {}  # what SUNDIALS reports of the last call,
        self._end = np.nan  # how far that went,
        self._evaluations, self._inner = 0, 0  # and evaluations and steps of all calls from the same state
        self._starts, self._left_out = np.zeros(0), np.zeros(0)  # of the pieces that the loop was given

    def forget(self) -> None:
        """Solvers hold much memory."""
        self._solvers = {}

    def begin(self, t: float, y: Array, end: float, fresh: bool, watched: bool) -> None:
        """Steps from (t, y) on are asked for next; `fresh` after an event."""
        if fresh:
            self._length = max(1, self._length // 4)  # half of what the last call had, which may have doubled it
        self._length = self._length or (FIRST_WATCHED if watched else FIRST_CHUNK)
        self._times, self._before = wanted_times(t, end, self.options), (t, y)
        self._limit = len(self._times)

    def _following(self, t: float, end: float) -> Array:
        """Wanted times after t, up to the end."""
        times = self._times = self._times[np.searchsorted(self._times, t + moment(t, 1e-12), "right") :]
        if not len(times) or times[-1] > end:
            return np.append(times[times < end], end)
        return times

    def across(self, t: float, y: Array, end: float) -> Step | None:
        """A step across a singular configuration of loops that comes soon."""
        if not self.problem.loops:
            return None
        step = ahead(self.problem, self._before, t, y, float(self._following(t, end)[0]), end, self.options)
        if step is not None:
            self._before = t, y
        return step

    def steps(
        self, loop: Loop, acting: Acting, t: float, y: Array, end: float, pieces: float, answer: Answer
    ) -> Array | None:
        """Times of steps from (t, y) on, given to the loop by their nodes; None where there are none to be had.

        `answer` is the field at one state.
        """
        following, acting = self._following(t, end), self._held(acting)
        while True:
            grid = self._grid(t, following, pieces)
            found = self._call(acting, t, y, grid, answer)
            if found is not None or self._limit == 1:
                break
            self._limit = max(1, min(self._length, self._limit) // 16)
        self._limit = len(self._times)
        if found is None or not len(found):
            return None
        grid, self._left_out = grid[: len(found)], np.zeros(len(found))
        if self.options.inside:
            again = lambda finer: self._states(acting, t, y, finer, answer, whole=True)  # noqa: E731
            grid, found, self._left_out = resolved(again, t, y, grid, found, self.options)
        count, size = len(found), self.problem.size
        nodes = loop.room("dense", max(count, self._length) + 1, PARTS, loop.parts.padded)
        nodes[:count, :, :size], nodes[:count, :, size] = found, subdivided(t, grid)
        self._before = (t, y) if count == 1 else (float(grid[-2]), found[-2, -1])
        times = np.concatenate([[t], grid])
        self._starts = times[:-1]
        return times

    def counted(self, chunk: Chunk) -> Chunk:
        """The chunk with what SUNDIALS did for it; steps beyond an event, which are void, are no steps of the run."""
        told, self._told = self._told, {}
        if not told:
            return chunk
        begun, reached = chunk.rows.t[0], chunk.rows.t[-1]
        taken = int(np.ceil(told["nsteps"] * (reached - begun) / (self._end - begun)))
        inner = max(0, taken - len(chunk) + len(chunk.switches))
        evaluations, void = chunk.evaluations + self._evaluations, max(0, self._inner - taken)
        self._evaluations, self._inner = 0, 0
        left_out = float(self._left_out[self._starts < reached].max(initial=0.0))
        return replace(
            chunk, rejected=int(told["netfails"]), evaluations=evaluations, inner=inner, void=void, left_out=left_out
        )

    # Calls.

    def _grid(self, t: float, times: Array, pieces: float) -> Array:
        """The wanted times of the next call."""
        most = min(self._length, self._limit, LOOP_CHUNK if self.problem.loops else CHUNK)
        if np.isfinite(pieces):
            most = min(most, int(np.searchsorted(times, t + pieces, "right")))
        return times[: max(1, most)]

    def _call(self, acting: Acting, t: float, y: Array, grid: Array, answer: Answer) -> Array | None:
        """States at the nodes of the intervals that are good, (n, PARTS, size); None where the solver gave up."""
        problem, within = self.problem, self._states(acting, t, y, grid, answer)
        if within is None:
            return None
        self._paced(len(grid), int(self._told["nsteps"]))
        if problem.loops:
            ends, last = within[:, -1], len(grid) - 1
            good = first_ahead(problem, ends, lambda k: horizon(problem, grid[k], ends[k], grid[min(k + 1, last)]))
            within = within[:good]
        return within

    def _states(
        self, acting: Acting, t: float, y: Array, grid: Array, answer: Answer, whole: bool = False
    ) -> Array | None:
        """The same by one call, whatever comes after; None too where not all are good and the `whole` is wanted."""
        said, fine = io.StringIO(), subdivided(t, grid).ravel()
        # CasADi's wrappers lose interrupts wherever they convert arrays: before the solver's call too
        ready = passed_on(lambda: self._ready(acting, t, y, answer))
        if ready is None:
            return None
        solvers, acting, start, chosen = ready
        try:
            with contextlib.redirect_stderr(said):  # what SUNDIALS reports
                found = passed_on(lambda: solvers(t, y, fine, acting.constants, self._limits, start, chosen))
        except RuntimeError as error:
            if "KeyboardInterrupt" in f"{said.getvalue()}{error}":  # of a program's own handler
                raise KeyboardInterrupt from None
            return None
        if not np.isfinite(found[0]).all():
            return None
        states, doubts, told = found
        self._inner += int(told["nsteps"])
        self._evaluations += sum(int(n) for name, n in told.items() if name in ("n_call_daeF", "n_call_jacF"))
        doubted = doubts.reshape(len(grid), PARTS)[:, -1] != 0  # of no number too
        if whole and doubted.any():
            return None
        self._told, self._end = told, float(grid[-1])
        good = int(np.argmax(doubted)) if doubted.any() else len(grid)
        return states.reshape(len(grid), PARTS, -1)[:good]

    def _ready(
        self, acting: Acting, t: float, y: Array, answer: Answer
    ) -> tuple[Solvers, Acting, dict[str, Any], dict[str, Any]] | None:
        """(solvers of the equations, what acts in them, first values, options of a start); None where the first state
        is not to be believed."""
        problem, name = self.problem, self.method.name
        signals = acting.law.signals.rows.tobytes() + acting.law.signals.breaks.tobytes()
        start: dict[str, Any] = {}
        chosen: dict[str, Any] = {}
        if name == "idas":
            q, v = problem.split(y)
            rows = problem.motion.independent_rows(q) if problem.loops else []
            resting, known = resting_alone(problem, rows, q), answer(t, y)
            if known is None:
                return None
            acting = self._without_held(acting)
            key = self._key(acting, "residuals", *rows, "at rest", *resting)
            balance = kept(self._key(acting, "balance", *rows), lambda: Balance(acting, rows))
            graph = kept(key, lambda: Residuals(balance, resting))
            x, row = np.append(y, t), acting.law.signals.row(t)
            z, sizes = graph.start(x, acting.constants, row, v, known[1])
            start, chosen = {"z0": z}, idas_options(problem, known[0][:-1], sizes, self.options)
        else:
            key = self._key(acting, "rates")
            graph = kept(key, lambda: Rates(acting))
        made = (key, signals)
        if made not in self._solvers:
            self._solvers[made] = Solvers(name, graph.equations(acting), self.options)
        return self._solvers[made], acting, start, chosen

    def _held(self, acting: Acting) -> Acting:
        """What acts, with text for joints that are held only while some are."""
        problem, holding = self.problem, acting.holding
        frozen = problem.stops is not None and bool(problem.stops.held)
        if holding.frozen is frozen or not (holding.frozen or self._possible.slots):
            return acting
        return self._held_as(acting, replace(self._possible, frozen=frozen))

    def _without_held(self, acting: Acting) -> Acting:
        """The same while no joint is held: idas has equations of their own for these."""
        return self._held_as(acting, replace(acting.holding, frozen=False)) if acting.holding.frozen else acting

    def _held_as(self, acting: Acting, holding: Holding) -> Acting:
        if not holding.frozen and not holding.rubs:
            return replace(acting, holding=Holding(), held=np.zeros(0))
        return replace(acting, holding=holding, held=holding.numbers(self.problem.stops, self.problem.friction))

    def _key(self, acting: Acting, *more: Any) -> tuple[Any, ...]:
        return (f"{acting.key}:{self.model.engine.constraints.source.digest}", *more)

    def _paced(self, count: int, steps: int) -> None:
        if steps < FEW and count == self._length:
            self._length = min(2 * self._length, CHUNK)
        elif steps > MANY:
            self._length = max(1, count // 2)

    @property
    def _limits(self) -> tuple[float, float]:
        """Growth and narrow up to which an elimination is believed."""
        if not self.problem.loops:
            return SWITCH, np.inf
        rank = max(self.problem.motion._rank, 1)
        return float(SWITCH * rank), float(GIVEN * rank)


__all__ = ["Sundials"]
