"""A run under way: from a problem and a first state to a trajectory.

The driver asks the integrator for steps, looks inside each for events, keeps the requested states, and restarts
the integrator where an event changed the state. Whatever ends a run early, what was computed is kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from polybody.errors import InputError, warn
from polybody.model.tree_engine import sparing
from polybody.names import counted
from polybody.simulation.compiled.chunk import Chunk
from polybody.simulation.controllers.sampling import is_sampling
from polybody.simulation.events import crosses, first_crossing
from polybody.simulation.failures import BlowUp, NotCompiled, SimulationError, call_user
from polybody.simulation.integrators import Integrator, Options, Step
from polybody.simulation.kept import Kept
from polybody.simulation.loop_batches import returned
from polybody.simulation.moments import moment
from polybody.simulation.outcome import trajectory_of
from polybody.simulation.problem import RUNAWAY, Problem
from polybody.simulation.switches import Switches, is_of_load
from polybody.simulation.trajectory import INTERRUPTED, Pieces, Trajectory

Array = np.ndarray
#: steps over which it is seen that the rest would take far too many
WINDOW = 1_000
FAR_TOO_MANY = 5  # times the bound
IN_VAIN = 20  # steps beyond events that count as one: some events close together are no chatter
#: changes between sticking and sliding within one fixed step after which it is given up
MOST_CHANGES = 100
#: how often progress is told of, at least, in a run by compiled code
PROGRESS = 200


class Run:
    """One run under way."""

    def __init__(
        self,
        problem: Problem,
        method: Integrator,
        options: Options,
        kept: Array | None,
        switches: Switches,
        dense: bool,
        most: int | None,
        progress: Callable[[float], None] | None,
    ) -> None:
        self.problem, self.method, self.options, self.kept = problem, method, options, kept
        self.switches, self.most, self.progress = switches, most, progress
        self.window, self.shrinks = (0, -np.inf), False  # all steps and time at the last look at their number
        self.pieces = Pieces() if dense else None
        self.record = Kept()
        self._first: tuple[float, Array] | None = None  # the first state, where compiled code is to record it
        self.next = 0
        self.compiled: Any = None
        self.path = "python"
        self.steps, self.void, self.rejected, self.off_manifold = 0, 0, 0, 0.0  # void: steps in vain
        self.rejected_known, self.left_out = True, 0.0
        self.start, self.end = 0.0, 0.0
        #: who is told of every step and every event (`recording`), and times at which steps must end for it
        self.watcher: Any = None
        self.marks: Array = np.zeros(0)
        self.bends: Array = np.zeros(0)  # of forces, where steps end too
        self._due = -np.inf  # the controller's next instant
        self._renewed = False  # since the last steps

    def compile(self, wanted: bool | None) -> None:
        """Have steps taken by compiled code, where that can be."""
        if wanted is False:
            self.path, self.problem.compilable = "python: asked for", False
            return
        from polybody.simulation.compiled.engine import Compiled

        try:
            with self._sparing():
                self.compiled = Compiled(self.problem, self.method, self.options)
            self.path = "compiled"
        except NotCompiled as reason:
            self.path = f"python: {reason}"
            if wanted:
                raise InputError(f"compiled=True, but {reason}") from None

    def _sparing(self) -> AbstractContextManager[None]:
        """For what is asked for at a few states only: no kernel is traced for it."""
        return nullcontext() if self.problem.loops else sparing()

    def renew(self) -> None:
        """What acts may have other numbers now: a user's code was called, which may change a target, a gain, a list."""
        if self.compiled is None:
            return
        self._renewed = True
        try:
            self.compiled.renew()
        except NotCompiled as reason:
            self._due = self.compiled.due if self._ticks else self._due
            self.compiled.give_back()
            self.compiled, self.path = None, f"python from t = {self.reached:.9g} s on: {reason}"

    def _tell_progress(self, t: float) -> None:
        if self.progress is not None:
            call_user("the progress function", t, self.progress, t)
            if self.problem.driven_from_outside or self.switches.events:  # else nothing acts that could be another
                self.renew()

    def to_end(self, start: float, y: Array, end: float, said: dict[str, Any]) -> Trajectory:
        clock = time.perf_counter()
        stopped: str | None = None
        self.start, self.reached, self.last, self.end = start, start, y, end
        try:
            self.switches.require_events(start, y)
            stopped = self.advance(start, y, end)
            self.switches.require_events(self.reached, self.last)
        except BlowUp as reason:
            stopped = self._blown_up(str(reason))
        except KeyboardInterrupt:
            stopped = f"{INTERRUPTED} t = {self.reached:.9g} s"
        except BaseException as error:  # sys.exit() in a user's function too
            self._carry(error, said, clock)
            raise
        if stopped is not None:
            self._keep(self.reached, self.last)
            if not self.switches.ended_on_purpose:
                warn(f"the run stopped early: {stopped}")
        if self.compiled is not None:
            self.compiled.give_back()
        trajectory = trajectory_of(self, said, stopped, clock)
        doubts = [text for text in trajectory.audit.doubts if not text.startswith("the run stopped early")]
        if doubts:
            warn("; ".join(doubts))
        return trajectory

    def _carry(self, error: BaseException, said: dict[str, Any], clock: float) -> None:
        """Give the error what was computed before it as `trajectory`; nothing that fails here hides the error."""
        if isinstance(error, SimulationError) and error.time is None:
            error.time = self.reached
        try:
            self._keep_asked_first()
            if not len(self.record):
                return
            setattr(error, "trajectory", trajectory_of(self, said, str(error), clock))  # noqa: B010  of any exception
        except Exception as failure:
            error.add_note(f"the {counted(len(self.record), 'state')} before it could not be saved: {failure}")

    def advance(self, t: float, y: Array, end: float) -> str | None:
        """Integrate to the end; what ended the run before, if something did."""
        self.problem.until = end
        with self._sparing():
            until = self._sampled(t, y, end)  # first: joints at rest are settled under its forces
        compiled, told = self.compiled, None
        if compiled is not None and not self.problem.loops:
            told = partial(compiled.states.foretold, self.switches.functions())
        with self._sparing(), self.problem.telling(told):
            settled = self.switches.settle(t, y)
        if compiled is not None:
            compiled.decisions.allowed = self._decides
            compiled.begin(self.switches.functions())
            compiled.ask_with(self._compiled_readers)
        self._keep_first(t, y, settled)
        y = settled
        if self.watcher is not None:
            self.watcher.begun(self, t, y)
        fresh = False
        while t < end:
            self._renewed = False
            for step in self._stretch(t, y, _next(self.bends, t, end) if self._ticks else until, fresh):
                if isinstance(step, Chunk):
                    self._accept_chunk(step)
                    t, y, fresh = self.reached, self.last, bool(step.switches) and step.switches[-1].row == len(step)
                    if not step.crossed and (step.switches or self._renewed):
                        break  # other functions are watched now, or other numbers act
                    if not step.crossed:
                        continue
                    y, halt = self._act(self.compiled.crossed(step, self.switches.functions()), t, y)
                    if halt is not None:
                        return halt
                    fresh = True
                    break
                crossing = self._look(step, fresh)
                fresh = False
                if crossing is None:
                    self._accept(step, step.t1)
                    t, y = step.t1, step.y1
                    if self._renewed:
                        break
                    continue
                t, which, dense = crossing
                at = step.y1 if t >= step.t1 else self.problem.project(dense(t))
                self._accept(step, t)
                y, halt = self._act(which, t, at)
                if halt is not None:
                    return halt
                fresh = True
                break
            else:
                if t >= end if self._ticks else until >= end:
                    return None
            self._heed()
            until = min(end, self.compiled.due) if self._ticks else until
            if until <= t < end:
                before = self._held_loads(t, y)
                until = self._sampled(t, y, end)
                loose = [k for k, x in self._held_loads(t, y).items() if crosses(before.get(k, x), x, 1)]
                if loose:  # forces have jumped beyond what held a joint
                    y, _ = self._act(loose, t, y)
                    fresh = True
        return None

    def _act(self, which: list[int], t: float, y: Array) -> tuple[Array, str | None]:
        """(the state after what happens, why the run ends there or None)."""
        before, functions = y, self.switches.functions() if self.watcher is not None else []
        compiled, own = self.compiled, self.problem.loops or self.switches.calls(which)
        told = None if compiled is None or own else compiled.states.told
        with self._sparing(), self.problem.telling(told):
            y, halt = self.switches.act(which, t, y)
        self.reached, self.last = t, y
        if halt is None and self.switches.calls(which):
            self.renew()
        if self.watcher is not None:
            self.watcher.event(self, t, before, y, [functions[k][0] for k in which])
        if halt is None:
            self._refuse_chatter(t)
        return y, halt

    def _stretch(self, t: float, y: Array, end: float, fresh: bool) -> Iterator[Step | Chunk]:
        """Steps until an event changes what happens: single ones, and chunks of many."""
        if self.compiled is None:
            yield from self.method.steps(self.problem, t, y, end, self.options)
            return
        self._bounded()
        functions = self.switches.functions()
        wanted = lambda: None if self.kept is None else self.kept[self.next :]  # noqa: E731
        self.compiled.decisions.allowed = self._decides
        yield from self.compiled.stretch(t, y, end, functions, fresh, wanted, self.pieces is not None)

    def _held_loads(self, t: float, y: Array) -> dict[int, float]:
        """{function that is watched: value} of those that tell when held joints break loose."""
        stops = self.problem.stops
        if stops is None or not stops.held or not is_sampling(self.problem.controller):
            return {}
        watched = enumerate(self.switches.functions())
        return {k: function(t, y) for k, (function, _) in watched if is_of_load(function)}

    def _sampled(self, t: float, y: Array, end: float) -> float:
        """Tell the controller the state at an instant of its own; the time of the next one, or the end."""
        controller = self.problem.controller
        end = _next(self.bends, t, _next(self.marks, t, end))
        if not is_sampling(controller):
            return end
        due = self.compiled.due if self._ticks and self._due > -np.inf else self._due
        if t >= due:  # a stepper may go on between two
            call_user("the controller", t, controller.sample, t, *self.problem.split(y))
            due = self._due = controller.next_sample(t)
            if self.compiled is not None:
                self.compiled.sampled(t)
                if not self.compiled.holds(self._compiled_readers):
                    self.renew()
            if self.watcher is not None:
                self.watcher.sampled(t, y)
        return min(end, due)

    def _heed(self) -> None:
        """What acts is read anew where a controller, asked by compiled code, has changed what its functions read."""
        if self.compiled is not None and self.compiled.is_stale():
            self.renew()

    @property
    def _compiled_readers(self) -> list[Any]:
        """Functions of the user that a controller may change while it samples."""
        return [*(event.function for event in self.switches.events), *self.problem.wrenches.values()]

    @property
    def _ticks(self) -> bool:
        """Whether compiled code deals with the controller's instants; who watches the run wants to see each."""
        seen = self.watcher is not None or len(self.marks) > 0
        return self.compiled is not None and self.compiled.instants is not None and not seen

    @property
    def _decides(self) -> bool:
        """Whether compiled code may decide at events; who watches the run wants to see each."""
        return self.switches.plain and self.watcher is None and not len(self.marks)

    def _bounded(self) -> None:
        """Tell compiled code how far it may go before it comes back."""
        if self.progress is not None:
            self.compiled.pieces = (self.end - self.start) / PROGRESS
        if self.most is not None:
            self.compiled.most = self.most - self.steps

    def _look(self, step: Step, fresh: bool) -> tuple[float, list[int], Any] | None:
        functions = self.switches.functions()
        if not functions:
            return None
        dense = step.dense()
        step.dense = lambda: dense
        with nullcontext() if self.problem.stops is None else self.problem.stops.looking():
            found = first_crossing(step, dense, functions, fresh)
        return None if found is None else (*found, dense)

    def _accept(self, step: Step, until: float) -> None:
        """Count a step and keep what is requested of it, up to a time within it."""
        self._keep_asked_first()
        self.steps += step.count
        if step.rejected is None:
            self.rejected_known = False
        else:
            self.rejected += step.rejected
        self.off_manifold = max(self.off_manifold, step.off_manifold)
        self.left_out = max(self.left_out, step.left_out)
        if self.pieces is not None:
            self.pieces.add(step.t0, until, step.dense())
        if self.kept is None:
            if until >= step.t1:
                self._keep(step.t1, step.y1)
            else:
                self._keep(until, self.problem.project(step.dense()(until)))
        else:
            self._keep_inside(step, until, self.kept)
        look = self.problem.watch_anew if step.watched else self.problem.watch
        look(step.y1)
        self.reached, self.last = until, step.y1
        if self.watcher is not None:
            inside = until < step.t1
            last = self.problem.project(step.dense()(until)) if inside else step.y1
            self.watcher.steps(self, np.array([step.t0, until]), np.array([step.y0, last]), inside)
        nq = self.problem.nq
        self._guard(_are_bounded(self.last[nq : nq + self.problem.nv]))
        self._tell_progress(until)

    def _accept_chunk(self, chunk: Chunk) -> None:
        """The same for many steps at once."""
        problem, nq = self.problem, self.problem.nq
        y, count = chunk.rows.y, len(chunk)
        speeds = y[1:, nq : nq + problem.nv]
        bounded = _are_small(y) or _are_bounded(speeds)
        if not bounded:
            count = int(np.argmax(np.abs(speeds).max(axis=1) > RUNAWAY)) + 1
        switches = [x for x in chunk.switches if x.row <= count]
        self.steps += count - len(switches) + chunk.inner
        self.void += chunk.void
        self.rejected += chunk.rejected
        self.off_manifold = max(self.off_manifold, chunk.off_manifold)
        self.left_out = max(self.left_out, chunk.left_out)
        problem.evaluations += chunk.evaluations
        problem.singular += chunk.singular
        problem.off_loops = max(problem.off_loops, chunk.off_loops)
        if self.pieces is not None:
            for k in sorted(set(range(count)) - {x.row - 1 for x in switches}):
                self.pieces.add(float(chunk.rows.t[k]), float(chunk.rows.t[k + 1]), chunk.interpolant(k))
        self.reached, self.last = float(chunk.rows.t[count]), chunk.rows.y[count]
        if self.watcher is not None:
            inside = chunk.whole is not None and count == len(chunk)
            self.watcher.steps(self, chunk.rows.t[: count + 1], chunk.rows.y[: count + 1], inside)
        if self._first is not None:
            self._first = None
            self.record.many(chunk.rows[:1])
        samples = chunk.samples_until(self.reached)
        if samples is None:
            rows = chunk.rows[1 : count + 1]
            later = np.diff(chunk.rows.t[: count + 1]) > 0.0  # not so: a crossing where its step began, or a switch
            self.record.many(rows if later.all() else rows[later])
        else:
            self.record.many(samples)
            self.next += len(samples)
        problem.watch_anew(self.last)
        for event in switches:
            self.switches.happened(event)
            self._refuse_chatter(event.time)
        self._guard(bounded)
        self._bounded()
        self._tell_progress(self.reached)

    def _guard(self, bounded: bool) -> None:
        """Raise where speeds or the number of steps grow out of all bounds."""
        if not bounded:
            raise BlowUp(f"speeds have grown beyond {RUNAWAY:g}")
        taken = self.steps + self.void // IN_VAIN
        if self.most is None or taken - self.window[0] < min(WINDOW, self.most):
            return
        rate = (taken - self.window[0]) / max(self.reached - self.window[1], 1e-300)
        self.window = (taken, self.reached)
        foreseen = taken + rate * (self.end - self.reached)
        shrinking, self.shrinks = self.shrinks, foreseen > FAR_TOO_MANY * self.most
        # Twice in a row: at a pole the method itself soon finds its steps too small.
        if self.steps >= self.most or (shrinking and self.shrinks):
            reason = f"{self.steps} steps were taken, of at most {self.most} (max_steps)"
            if self.steps < self.most:
                reason = f"steps have shrunk to {1 / rate:.2g} s, and {foreseen:.2g} would be needed"
            raise SimulationError(self._state_text(reason), self.reached)

    def _refuse_chatter(self, t: float) -> None:
        """Raise where joints stick and slide without end within one fixed step: the step is then not the motion's."""
        changes, dt = self.switches.changes, self.options.dt
        if self.method.adaptive or len(changes) < MOST_CHANGES or t - changes[-MOST_CHANGES] >= dt:
            return
        reason = f"joints came to rest or began to slide {MOST_CHANGES} times within one step of {dt:g} s"
        advice = "forces change faster than such steps can follow: a smaller dt, dop853 or radau may help"
        raise SimulationError(self._state_text(f"{reason}; {advice}"), t)

    def _state_text(self, reason: str) -> str:
        """What a run that cannot go on says: why, and its last state."""
        model, (q, v) = self.problem.model, self.problem.split(self.last)
        wild = sorted(model.mechanism.joints, key=lambda j: -float(np.abs(v[j.v]).max(initial=0.0)))
        shown = "; ".join(f"{j.name}: q = {_short(q[j.q])}, v = {_short(v[j.v])}" for j in wild[:6])
        more = f"; and {counted(len(wild) - 6, 'slower joint')}" if len(wild) > 6 else ""
        return f"the run was aborted at t = {self.reached:.9g} s: {reason}. Last state: {shown}{more}"

    def _keep_inside(self, step: Step, until: float, kept: Array) -> None:
        """The states at the wanted times of a step, put back on its manifold all at once."""
        slack, problem = moment(until), self.problem
        times = kept[self.next : int(np.searchsorted(kept, until + slack, "right"))].tolist()
        inside = [t for t in times if t < step.t1 - slack]
        if inside:
            dense = step.dense()
            states, off = returned(problem, np.array([dense(t) for t in inside]))
            problem.off_loops = max(problem.off_loops, off)
            self._keep_many(inside, states)
        for t in times[len(inside) :]:
            self._keep(t, step.y1)
        self.next += len(times)

    def _keep_many(self, times: list[float], states: Array) -> None:
        """States within one step, in the order of time."""
        self._keep_asked_first()
        found = None if self.compiled is None else self.compiled.states.recorded_rows(np.array(times), states)
        if found is None or times[0] <= self.record.last:
            for t, y in zip(times, states, strict=True):
                self._keep(t, y)
            return
        rows, believed = found
        bounds = [0, *(np.flatnonzero(believed[1:] != believed[:-1]) + 1).tolist(), len(times)]
        for first, end in pairwise(bounds):
            if believed[first]:
                self.record.many(rows[first:end])
            else:
                for k in range(first, end):
                    self._keep_by_python(times[k], states[k])

    def _keep_first(self, t: float, y: Array, settled: Array) -> None:
        if self.kept is not None and self.kept[0] > t:
            return
        self.next = 0 if self.kept is None else 1
        self._first = t, y
        called = self.compiled is None or self.compiled.acting.law.held  # whose errors come here, with nothing recorded
        if called or self.watcher is not None or settled is not y:
            self._keep_asked_first()  # else it is the first row of the first chunk

    def _keep_asked_first(self) -> None:
        """Record the first state, where no chunk has."""
        if self._first is not None:
            first, self._first = self._first, None
            self._keep(*first)

    def _keep(self, t: float, y: Array) -> None:
        self._keep_asked_first()
        if t <= self.record.last:
            return
        found = None if self.compiled is None else self.compiled.states.recorded(t, y)
        if found is not None:
            self.record.one(t, y, *found[1:])
        else:
            self._keep_by_python(t, y)

    def _keep_by_python(self, t: float, y: Array) -> None:
        q, v = self.problem.split(y)
        stored = self.problem.currents(y)
        a = self.problem.accelerate(q, v, *self.problem.drive(t, q, v, stored))
        tau = self.problem.commanded(t, q, v, stored)
        currents = np.zeros(0)
        if self.problem.circuits.closed:
            currents = self.problem.circuits.currents(t, q, v, self.problem.currents(y))[0]
        self.record.one(t, y, a, tau, currents)

    def _blown_up(self, reason: str) -> str:
        """Name the joint whose speed or acceleration has left the others behind."""
        problem, model = self.problem, self.problem.model
        q, v = problem.split(self.last)
        with np.errstate(all="ignore"):
            tau, loads = problem.drive(self.reached, q, v, problem.currents(self.last))
            a = problem.free_acceleration(q, v, tau, loads)
        wild = np.where(np.isfinite(a), np.abs(a), np.inf) + np.abs(v)
        k = int(np.argmax(wild))
        joint = model.mechanism.owner(k)
        return (
            f"the run diverged after t = {self.reached:.9g} s ({reason}); joint {joint.name!r} is the fastest: "
            f"v = {v[k]:.4g}, a = {a[k]:.4g}"
        )


def _next(times: Array, t: float, end: float) -> float:
    """The first of growing times after t, or the end if that comes before."""
    k = int(times.searchsorted(t, "right"))
    return end if k == len(times) else min(end, float(times[k]))


def _are_small(y: Array) -> bool:
    """Whether all numbers of states together are below that bound: mostly, and sooner seen than by looking at each."""
    flat = y.ravel()
    return bool(flat.dot(flat) < RUNAWAY * RUNAWAY)


def _are_bounded(speeds: Array) -> bool:
    """Whether none is larger than any speed of a mechanism."""
    return not (np.maximum.reduce(speeds, axis=None) > RUNAWAY or np.minimum.reduce(speeds, axis=None) < -RUNAWAY)


def _short(values: Array) -> str:
    return f"{values[0]:.6g}" if len(values) == 1 else "[" + ", ".join(f"{x:.4g}" for x in values) + "]"


__all__ = ["Run"]
