"""`pb.simulate(network, …)`: one run from start to end, through switches, events and changes of the choice of states.

A condition that becomes positive inside a step is located in it by its interpolant, and sharpened by integration to
that place; there the part enters its other mode (`motion.Motion.settle`). Where the choice of states has become poor
after a step (`structure.Pivots`), other variables become the states and the run goes on.
"""

from __future__ import annotations

import math
import time as clock
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.errors import InputError, warn
from polybody.garbage import uncollected
from polybody.interrupts import LATER, passed_on
from polybody.kernels.locks import tracing
from polybody.networks.joint_laws import beyond_drives
from polybody.networks.models import doubtful_loops
from polybody.networks.motion import Motion
from polybody.networks.stepping import ADAPTIVE, METHODS, Advance, steps
from polybody.networks.system import System
from polybody.networks.trajectory import NetworkAudit, NetworkTrajectory
from polybody.simulation.arguments import number, positive, sample_times
from polybody.simulation.audit import TIME_TOLERANCE
from polybody.simulation.events import Event, Happening
from polybody.simulation.failures import BlowUp, SimulationError, call_user
from polybody.simulation.integrators.base import Options
from polybody.simulation.moments import moment
from polybody.simulation.roots import crossing
from polybody.simulation.trajectory import INTERRUPTED

if TYPE_CHECKING:
    from polybody.networks.network import Network

Array = np.ndarray
LOOKS = 4  # points of a step at which conditions are looked at
MOST_SWITCHES = 100_000
MOST_STEPS = 5_000_000


def simulate_network(
    net: Network,
    duration: float,
    initial: Mapping[str, Any] | None = None,
    *,
    inputs: Mapping[str, Any] | None = None,
    method: str = "dop853",
    dt: float = 1e-3,
    rtol: float = 1e-9,
    atol: float = 1e-11,
    max_step: float = np.inf,
    first_step: float | None = None,
    sample: float | None = None,
    times: Any = None,
    start: float = 0.0,
    events: Sequence[Event] = (),
    limits: str = "stop",
    restitution: float = 0.0,
    friction: str = "stick",
    max_steps: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> NetworkTrajectory:
    """The motion of a network from `initial` values of variables (zero, or a part's own start, where not given).

    `inputs` replaces values of sources: {"supply.voltage": number, "24*sin(10*time)", or a function of t}. `method`:
    dop853, radau (stiff), rk4 (fixed steps `dt`), idas (the equations as they stand). An event's function takes
    (t, values by name); its action may return {state: value}. Joints of models hit their limits (`limits` "stop", with
    `restitution`; or "ignore") and stick by dry friction (`friction` "stick"; or "smooth", `forward_dynamics`' law).
    """
    if method not in METHODS:
        raise InputError(f"no integration method {method!r} for networks; available: {', '.join(METHODS)}")
    duration, begin = positive("duration", duration), number("start", start)
    initial = {**net.initial, **(initial or {})}
    laws = (limits, friction)
    with tracing, uncollected():
        motion = passed_on(lambda: Motion(net, inputs, frozenset(initial), laws=laws))
    motion.restitution = number("restitution", restitution)
    if not 0 <= motion.restitution <= 1:
        raise InputError(f"restitution is {restitution!r}; expected a number from 0 to 1")
    end = begin + duration
    kept = sample_times(begin, end, sample, times, method in ADAPTIVE, 8)
    options = Options(
        dt=positive("dt", dt), rtol=positive("rtol", rtol), atol=positive("atol", atol),
        max_step=positive("max_step", max_step, infinite=True),
        first_step=None if first_step is None else positive("first_step", first_step),
        times=() if kept is None else tuple(kept),
    )  # fmt: skip
    most = MOST_STEPS if max_steps is None else int(positive("max_steps", max_steps))
    run = _Run(motion, method, options, kept, tuple(events), most, progress)
    run.reporting = limits != "ignore"
    return run.to_end(begin, end, initial)


class _Run:
    """One run under way."""

    def __init__(self, motion: Motion, method: str, options: Options, kept: Array | None, events: tuple[Event, ...],
                 most: int, progress: Callable[[float], None] | None) -> None:
        self.motion, self.method, self.options, self.kept = motion, method, options, kept
        self.events, self.most, self.progress = events, most, progress
        self.times: list[float] = []
        self.rows: list[tuple[System, Array, float]] = []  # system, s, W
        self.happenings: list[Happening] = []
        self.next = self.count = self.switches = self.reselections = 0

    def to_end(self, t: float, end: float, initial: dict[str, Any]) -> NetworkTrajectory:
        began = clock.perf_counter()
        with uncollected():
            system, y = passed_on(lambda: self.motion.start(t, initial))
        stopped = None
        if self.kept is None or self.kept[0] <= t:
            self._keep(t, system, y)
            self.next = 1
        try:
            # CasADi is called all along: functions of numbers, new modes, IDAS' solvers
            stopped = passed_on(lambda: self._advance(t, system, y, end), LATER)
        except BlowUp as reason:
            stopped = f"the run diverged after t = {self.reached:.9g} s ({reason})"
        except KeyboardInterrupt:
            stopped = f"{INTERRUPTED} t = {self.reached:.9g} s"
        except SimulationError as error:
            error.trajectory = self._trajectory(str(error), began)  # pyright: ignore[reportAttributeAccessIssue]
            raise
        if stopped and not self.on_purpose:
            warn(f"the run stopped early: {stopped}")
        run = self._trajectory(stopped, began)
        doubts = [text for text in run.audit.doubts if not text.startswith("the run stopped")]
        if doubts:
            warn("; ".join(doubts))
        if self.reporting and (beyond := beyond_drives(self.motion.components, run)):
            warn(f"drives are beyond what models state: {'; '.join(beyond)}; a network's parts are not bounded by it")
        return run

    on_purpose = False
    reporting = True
    reached = 0.0

    def _advance(self, t: float, system: System, y: Array, end: float) -> str | None:
        self.reached = t
        while t < end:
            for step in steps(self.method, system, t, y, end, self.options):
                self.count += step.count
                if self.count > self.most:
                    raise SimulationError(f"{self.count} steps were taken, of at most {self.most} (max_steps)", t)
                found = self._crossing(system, step)
                if found is None:
                    self._accept(system, step, step.t1)
                    t, y = step.t1, step.y1
                    other = self.motion.reselected(t, system, y) if system.movable else None
                    if other is None:
                        continue
                    system, y = other
                    self.reselections += 1
                    break
                t, which, at = self._sharpened(system, step, *found)
                self._accept(system, step, t)
                self.switches += 1
                if self.switches > MOST_SWITCHES:
                    raise SimulationError(f"more than {MOST_SWITCHES} switches by t = {t:.9g} s", t)
                system, y, halt = self._act(system, t, at, which)
                if halt is not None:
                    self._keep(t, system, y)
                    return halt
                break
            else:
                return None
        return None

    def _watch(self, system: System, t: float, y: Array) -> Array:
        told = system.watch(t, y)
        if self.events:
            values = system.values(t, y)
            more = [call_user(f"event {e.name!r}", t, e.function, t, values) for e in self.events]
            told = np.concatenate([told, np.array(more, dtype=float)])
        return told

    def _crossing(self, system: System, step: Advance) -> tuple[float, int] | None:
        """(time, which) of the first condition that becomes positive, or event that crosses zero, inside a step."""
        modes = len(system.conditions)
        if not modes and not self.events:
            return None
        dense = step.dense()
        step.dense = lambda: dense
        marks = np.linspace(step.t0, step.t1, LOOKS + 1)
        states = [step.y0, *(dense(s) for s in marks[1:-1]), step.y1]
        looks = np.array([self._watch(system, s, y) for s, y in zip(marks, states, strict=True)])
        least = 1e-12 * (1 + np.abs(looks).max(axis=0))
        found: list[tuple[float, int]] = []
        for which in range(looks.shape[1]):
            x = looks[:, which]
            for k in range(1, LOOKS + 1):
                if which < modes:
                    hit = x[k] > least[which] and x[k] >= x[k - 1]
                else:
                    direction = self.events[which - modes].direction
                    hit = (direction >= 0 and x[k - 1] < 0 <= x[k]) or (direction <= 0 and x[k - 1] > 0 >= x[k])
                if hit:
                    found.append((self._root(system, which, float(marks[k - 1]), float(marks[k]), dense, step), which))
                    break
        return min(found) if found else None

    def _root(self, system: System, which: int, low: float, high: float, dense: Any, step: Advance) -> float:
        def value(t: float) -> float:
            y = step.y0 if t <= step.t0 else step.y1 if t >= step.t1 else dense(t)
            return float(self._watch(system, t, y)[which])

        a, b = value(low), value(high)
        if which < len(system.conditions) and a >= 0:
            return low
        if a == 0.0 or (a > 0) == (b > 0):
            return high
        return crossing(value, low, high, 1e-14 + 4e-16 * abs(high))

    def _sharpened(self, system: System, step: Advance, t: float, which: int) -> tuple[float, int, Array]:
        """(time, which, state) of a crossing found on the interpolant, integrated there and corrected by secants."""
        def exact(s: float) -> Array:
            last = step.y0
            for part in steps(self.method, system, step.t0, step.y0, s, replace(self.options, times=())):
                last = part.y1
            return last

        if t <= step.t0:
            return self._beyond(system, step, t, which, step.y0, exact)
        if t >= step.t1:
            return t, which, step.y1
        slope = step.dense()

        h = 1e-3 * (step.t1 - step.t0)
        a, b = (float(self._watch(system, s, slope(s))[which]) for s in (t - h / 2, t + h / 2))
        y = exact(t)
        for _ in range(4):
            told = float(self._watch(system, t, y)[which])
            if a == b or abs(told * h / (b - a)) < 1e-14 * (1 + abs(t)):
                break
            t = min(max(t - told * h / (b - a), step.t0 + 1e-3 * h), step.t1)
            y = exact(t)
        return self._beyond(system, step, t, which, y, exact)

    def _beyond(
        self, system: System, step: Advance, t: float, which: int, y: Array, exact: Callable[[float], Array]
    ) -> tuple[float, int, Array]:
        """A crossing moved to where a condition to leave a mode holds: just before it, the mode entered would be left
        at once (a diode's current of +1e-13 A is a forward voltage where it blocks)."""
        ahead = 1e-15 * (1 + abs(t))
        while which < len(system.conditions) and t < step.t1 and not self._watch(system, t, y)[which] > 0:
            t = min(t + ahead, step.t1)
            y, ahead = exact(t), 4 * ahead
        return float(t), which, y

    def _act(self, system: System, t: float, y: Array, which: int) -> tuple[System, Array, str | None]:
        values = system.values(t, y)
        if which < len(system.conditions):
            force = [system.conditions[which]]
            system, y = self.motion.settle(t, system, values, None, self.happenings, float(y[-1]), force)
            return system, y, None
        event = self.events[which - len(system.conditions)]
        self.happenings.append(Happening(t, event.name))
        if event.action is not None:
            changed = call_user(f"the action of event {event.name!r}", t, event.action, t, values)
            if changed is not None:
                unknown = [name for name in changed if name not in system.states]
                if unknown:
                    raise InputError(f"event {event.name!r} sets {unknown[0]!r}; states are {', '.join(system.states)}")
                energy = system.observation(t, y)[-1]
                told = {**values, **changed}
                y = np.array([*(told[name] for name in system.states), y[-1]])
                y[-1] += energy - system.observation(t, y)[-1]  # what the action took out of what is stored
                system, y = self.motion.settle(t, system, dict(zip(system.states, y[:-1], strict=True)), {},
                                               self.happenings, float(y[-1]))
        self.on_purpose = self.on_purpose or event.terminal
        return system, y, f"event {event.name!r} at t = {t:.9g} s" if event.terminal else None

    def _accept(self, system: System, step: Advance, until: float) -> None:
        if self.kept is None:
            self._keep(until, system, step.y1 if until >= step.t1 else system.project(step.dense()(until)))
        else:
            dense, slack = None, moment(until)
            while self.next < len(self.kept) and self.kept[self.next] <= until + slack:
                s = float(self.kept[self.next])
                if s >= step.t1 - slack:
                    y = step.y1
                else:
                    dense = dense or step.dense()
                    y = system.project(dense(s))
                self._keep(s, system, y)
                self.next += 1
        self.reached = until
        if self.progress is not None:
            call_user("the progress function", until, self.progress, until)

    def _keep(self, t: float, system: System, y: Array) -> None:
        if self.times and t <= self.times[-1]:
            return
        self.rows.append((system, system.argument(t, y), float(y[-1])))
        self.times.append(t)

    def _trajectory(self, stopped: str | None, began: float) -> NetworkTrajectory:
        first = self.rows[0][0] if self.rows else next(iter(self.motion.systems.values()))
        n = len(self.times)
        values = np.empty((n, len(first.observed) + 1))
        k = 0
        while k < n:  # stretches of one system are read in one call
            last = k
            while last < n and self.rows[last][0] is self.rows[k][0]:
                last += 1
            columns = np.column_stack([s for _, s, _ in self.rows[k:last]])
            values[k:last] = np.asarray(self.rows[k][0].observe(columns)).T
            k = last
        work = np.array([w for *_, w in self.rows[:n]])
        energy = values[:, -1]
        total = energy + work
        error = float(np.abs(total - total[0]).max(initial=0.0)) if n else 0.0
        moved = float(max(np.abs(energy).max(), np.ptp(work), self._exchanged(first, values), 1e-300)) if n else 1.0
        relative = error / moved if error > 1e-300 else 0.0
        doubts = ()
        if stopped and not self.on_purpose:
            doubts += (f"the run stopped early: {stopped}",)
        if relative > max(1e-6, 1e4 * self.options.rtol) and self.method in ADAPTIVE:
            doubts += (f"energy over all domains is off by {relative:.1e} of what is stored or was moved",)
        columns = dict(zip(first.observed, values.T, strict=False))
        doubts += tuple(doubtful_loops(self.motion.components, self.motion.inputs, columns))
        late = self._time_error()
        if late > TIME_TOLERANCE:
            doubts += (
                f"times so late are not resolved: between two neighbouring numbers states change by {late:.2g} of "
                "their largest value; take a smaller start, and add the rest to the times of the result",
            )
        evaluations = sum(system.evaluations for system in self.motion.systems.values())
        index = max(system.equations.reduced.index for system in self.motion.systems.values())
        audit = NetworkAudit(self.method, self.count, evaluations, self.switches, index, error, relative,
                             clock.perf_counter() - began, not doubts, doubts, self.reselections, late)
        return NetworkTrajectory(self.motion.net, np.array(self.times), tuple(first.observed), values[:, :-1],
                                 tuple(first.states), energy, work, audit, first.assembly.domains(),
                                 first.assembly.units(), self.happenings, stopped)

    def _time_error(self) -> float:
        """How far a state goes between two neighbouring times at the end, as a part of its largest value. Values far
        below both tolerances count as those at which they meet."""
        spacing = math.ulp(max(map(abs, self.times), default=0.0))
        least, worst = self.options.atol / self.options.rtol, 0.0
        for system in {id(system): system for system, *_ in self.rows}.values():
            columns = np.column_stack([s for own, s, _ in self.rows if own is system])
            rates, states = system.rates(columns)[: system.n], columns[: system.n]
            largest = np.maximum(np.abs(states).max(axis=1, initial=0.0), least)
            worst = max(worst, float((np.abs(rates).max(axis=1, initial=0.0) / largest).max(initial=0.0)) * spacing)
        return worst

    def _exchanged(self, system: System, values: Array) -> float:
        """Energy through all ports, whatever its direction: what errors are relative to where nothing is stored."""
        column = {name: k for k, name in enumerate(system.observed)}
        power = np.zeros(len(self.times))
        for port in system.assembly.graph.ports.values():
            if port.domain.name != "signal":
                across, through = (column[f"{port.name}.{x}"] for x in (port.domain.across, port.domain.through))
                power += np.abs(values[:, across] * values[:, through])
        return float(np.diff(self.times) @ (power[1:] + power[:-1])) / 2


__all__ = ["simulate_network"]
