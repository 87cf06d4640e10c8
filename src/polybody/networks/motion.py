"""A network in motion: from start values to a trajectory, through its modes.

Between switches the equations are those of one combination of modes (`system`). A condition that becomes positive
inside a step is located in it by its interpolant; there the part enters its other mode, and further parts follow until
no condition holds. States go on from their values: a mode that would make one jump is refused by name.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.errors import InputError, warn
from polybody.names import nearest
from polybody.networks.assembly import Assembly, Modes
from polybody.networks.component import Component, PartComponent
from polybody.networks.models import ModelComponent, flat_components
from polybody.networks.reduction import semiexplicit
from polybody.networks.stepping import ADAPTIVE, METHODS, Advance, steps
from polybody.networks.system import System
from polybody.networks.trajectory import NetworkAudit, NetworkTrajectory
from polybody.simulation.arguments import number, positive, sample_times
from polybody.simulation.events import Event, Happening
from polybody.simulation.failures import BlowUp, SimulationError, call_user
from polybody.simulation.integrators.base import Options

if TYPE_CHECKING:
    from polybody.networks.network import Network

Array = np.ndarray
LOOKS = 4  # points of a step at which conditions are looked at
SWITCHES = 60  # parts that may change their mode at one time
MOST_SWITCHES = 100_000
MOST_STEPS = 5_000_000
JUMP = 1e-6  # relative: what a state may change by at a switch


class Motion:
    """The systems of a network by its modes, made when they are first entered."""

    def __init__(
        self, net: Network, inputs: Mapping[str, Any] | None = None, started: frozenset[str] = frozenset(),
        components: Sequence[Component] | None = None,
    ) -> None:  # fmt: skip
        """`components` are the network's own where not given."""
        self.net = net
        self.components = flat_components(net) if components is None else list(components)
        if not self.components:
            raise InputError(f"network {net.name!r} has no parts that move")
        self.inputs = input_values(self.components, inputs or {})
        self.started = started
        self.systems: dict[tuple[tuple[str, str], ...], System] = {}
        if components is not None:
            return
        # Components do not change: systems made before serve again while the network has the same ones.
        key = (tuple(self.components), started, tuple((name, x) for name, x in self.inputs.items()))
        if net.kept_systems is None or net.kept_systems[0] != key:
            net.kept_systems = (key, {})
        self.systems = net.kept_systems[1]
        for system in self.systems.values():
            system.evaluations = 0

    def first_modes(self) -> Modes:
        return {part.name: mode for part in self.components
                if isinstance(part, PartComponent) and (mode := part.part.first_mode()) is not None}

    def system(self, modes: Modes) -> System:
        key = tuple(modes.items())
        if key not in self.systems:
            made = semiexplicit(Assembly(self.components, dict(modes), self.started))
            if made.coupled_models:  # inertias ride rigidly on their joints
                self.components = [
                    part.inverted() if isinstance(part, ModelComponent) and part.name in made.coupled_models else part
                    for part in self.components
                ]
                made = semiexplicit(Assembly(self.components, dict(modes), self.started))
            self.systems[key] = System(made, self.inputs)
        return self.systems[key]

    def start(self, t: float, initial: Mapping[str, Any]) -> tuple[System, Array]:
        """The first system and state, in modes that agree with it."""
        given = {name: number(f"the start of {name!r}", x) for name, x in initial.items()}
        system = self.system(self.first_modes())
        known = {*system.observed, *(system.assembly.key_name(key) for key in system.equations.reduced.symbols)}
        for name in given:
            if name not in known:
                raise InputError(f"initial: there is no variable {name!r}{nearest(name, known)}")
        values = {**dict(zip(system.assembly.names, system.assembly.starts, strict=True)), **given}
        for part in self.components:  # a loop that is not closed at its neutral configuration is closed near it
            for names, function in getattr(part, "projections", ()):
                for name, x in zip(names, function(np.array([values.get(n, 0.0) for n in names])), strict=True):
                    if name not in given:
                        values[name] = float(x)
        if any(name not in system.states for name in given):
            values |= self._states_for(t, system, values, given)
        return self.settle(t, system, values, given)

    @staticmethod
    def _states_for(
        t: float, system: System, values: Mapping[str, float], given: Mapping[str, float]
    ) -> dict[str, float]:
        """Values of states, as near to `values` as can be, that give other variables the values they shall have."""
        y = np.array([*(values.get(name, 0.0) for name in system.states), 0.0])
        free = [k for k, name in enumerate(system.states) if name not in given]
        wanted = np.array(list(given.values()))

        def told(y: Array) -> Array:
            found = system.values(t, y)
            return np.array([found[name] for name in given])

        for _ in range(8):
            off = wanted - told(y)
            if np.abs(off).max(initial=0.0) <= 1e-12 * (1 + np.abs(wanted).max(initial=0.0)) or not free:
                break
            columns = []
            for k in free:
                step = 1e-6 * (1 + abs(y[k]))
                ahead, behind = y.copy(), y.copy()
                ahead[k], behind[k] = y[k] + step, y[k] - step
                columns.append((told(ahead) - told(behind)) / (2 * step))
            y[free] += np.linalg.lstsq(np.column_stack(columns), off, rcond=1e-9)[0]
        return dict(zip(system.states, y[:-1].tolist(), strict=True))

    def settle(
        self, t: float, system: System, values: Mapping[str, float], given: Mapping[str, float] | None = None,
        happenings: list[Happening] | None = None, work: float = 0.0, force: Sequence[tuple[str, str]] = (),
    ) -> tuple[System, Array]:  # fmt: skip
        """The system and state from values of variables, in modes whose conditions to leave do not hold."""
        modes = dict(system.modes)
        pending = list(force)
        for _ in range(SWITCHES):
            for part, mode in pending:
                if happenings is not None:
                    happenings.append(Happening(t, part, f"{modes[part]} → {mode}"))
                modes[part] = mode
            system = self.system(modes)
            y = np.array([*(values.get(name, 0.0) for name in system.states), work])
            y = system.project(y)
            told = system.watch(t, y)
            scale = 1e-9 * (1 + np.abs(told))
            found = [c for c, x, s in zip(system.conditions, told, scale, strict=True) if x > s]
            if not found:
                self._refuse_jumps(t, system, y, values, given)
                return system, y
            pending = [found[0]]
        names = ", ".join(sorted({part for part, _ in found}))
        raise SimulationError(f"the modes of {names} are inconsistent at t = {t:.9g} s: each switch undoes the last", t)

    def _refuse_jumps(
        self, t: float, system: System, y: Array, before: Mapping[str, float], given: Mapping[str, float] | None
    ) -> None:
        after = system.values(t, y)
        if given is not None:
            for name, wanted in given.items():
                if abs(after[name] - wanted) > 1e-8 * (1 + abs(wanted)):
                    raise InputError(f"initial: {name!r} cannot be {wanted:g}: it follows from others and is "
                                     f"{after[name]:.9g}; states are {', '.join(system.states)}")
            return
        for name in system.remembered:
            if name in before and abs(after[name] - before[name]) > JUMP * (1 + abs(before[name])):
                raise SimulationError(
                    f"at t = {t:.9g} s {name!r} would jump from {before[name]:.6g} to {after[name]:.6g} "
                    f"(modes {system.assembly.mode_text()}): an ideal part would need an impulse; give it resistance, "
                    "compliance or friction", t)


def input_values(components: Sequence[Component], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """{input: number, expression or function of time}, with what the caller says in place of the parts' own."""
    own = {name: said for part in components for name, said in part.inputs.items()}
    for name, said in inputs.items():
        if name not in own:
            raise InputError(f"inputs: there is no input {name!r}{nearest(name, own)}; available: "
                             f"{', '.join(own) or 'none'}")
        part = next(p for p in components if name in p.inputs)
        if isinstance(part, PartComponent):
            key = name.removeprefix(f"{part.name}.")
            own[name] = part.part.values(name, {**part.values, key: said})[key]
        else:
            own[name] = said
    return own


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
    max_steps: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> NetworkTrajectory:
    """The motion of a network from `initial` values of variables (zero, or a part's own start, where not given).

    `inputs` replaces values of sources: {"supply.voltage": number, "24*sin(10*time)", or a function of t}. `method`:
    dop853, radau (stiff), rk4 (fixed steps `dt`), idas (the equations as they stand). An event's function takes
    (t, values by name); its action may return {state: value}.
    """
    if method not in METHODS:
        raise InputError(f"no integration method {method!r} for networks; available: {', '.join(METHODS)}")
    duration, begin = positive("duration", duration), number("start", start)
    initial = {**net.initial, **(initial or {})}
    motion = Motion(net, inputs, frozenset(initial))
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
        self.next = self.count = self.switches = 0

    def to_end(self, t: float, end: float, initial: dict[str, Any]) -> NetworkTrajectory:
        began = clock.perf_counter()
        system, y = self.motion.start(t, initial)
        stopped = None
        self._keep(t, system, y)
        try:
            stopped = self._advance(t, system, y, end)
        except BlowUp as reason:
            stopped = f"the run diverged after t = {self.reached:.9g} s ({reason})"
        except KeyboardInterrupt:
            stopped = f"interrupted at t = {self.reached:.9g} s"
        except SimulationError as error:
            error.trajectory = self._trajectory(str(error), began)  # pyright: ignore[reportAttributeAccessIssue]
            raise
        if stopped and not self.on_purpose:
            warn(f"the run stopped early: {stopped}")
        run = self._trajectory(stopped, began)
        doubts = [text for text in run.audit.doubts if not text.startswith("the run stopped")]
        if doubts:
            warn("; ".join(doubts))
        return run

    on_purpose = False
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
                    continue
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
        from scipy.optimize import brentq

        def value(t: float) -> float:
            y = step.y0 if t <= step.t0 else step.y1 if t >= step.t1 else dense(t)
            return float(self._watch(system, t, y)[which])

        a, b = value(low), value(high)
        if which < len(system.conditions) and a >= 0:
            return low
        if a == 0.0 or (a > 0) == (b > 0):
            return high
        root: Any = brentq(value, low, high, xtol=1e-14 + 4e-16 * abs(high))
        return float(root)

    def _sharpened(self, system: System, step: Advance, t: float, which: int) -> tuple[float, int, Array]:
        """(time, which, state) of a crossing found on the interpolant, integrated there and corrected by secants."""
        if t <= step.t0:
            return t, which, step.y0
        if t >= step.t1:
            return t, which, step.y1
        slope = step.dense()

        def exact(s: float) -> Array:
            last = step.y0
            for part in steps(self.method, system, step.t0, step.y0, s, replace(self.options, times=())):
                last = part.y1
            return last

        h = 1e-3 * (step.t1 - step.t0)
        a, b = (float(self._watch(system, s, slope(s))[which]) for s in (t - h / 2, t + h / 2))
        y = exact(t)
        for _ in range(4):
            told = float(self._watch(system, t, y)[which])
            if a == b or abs(told * h / (b - a)) < 1e-14 * (1 + abs(t)):
                break
            t = min(max(t - told * h / (b - a), step.t0 + 1e-3 * h), step.t1)
            y = exact(t)
        return t, which, y

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
            dense, slack = None, 1e-13 * (1 + abs(until))
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
        if self.kept is not None and not self.times and self.kept[0] > t:
            return
        if self.times and t <= self.times[-1]:
            return
        if self.kept is not None and not self.times:
            self.next = 1
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
        moved = float(max(np.abs(energy).max(), np.ptp(work), 1e-300)) if n else 1.0
        relative = error / moved if error > 1e-300 else 0.0
        doubts = ()
        if stopped and not self.on_purpose:
            doubts += (f"the run stopped early: {stopped}",)
        if relative > max(1e-6, 1e4 * self.options.rtol) and self.method in ADAPTIVE:
            doubts += (f"energy over all domains is off by {relative:.1e} of what is stored or was moved",)
        evaluations = sum(system.evaluations for system in self.motion.systems.values())
        index = max(system.equations.reduced.index for system in self.motion.systems.values())
        audit = NetworkAudit(self.method, self.count, evaluations, self.switches, index, error, relative,
                             clock.perf_counter() - began, not doubts, doubts)
        return NetworkTrajectory(self.motion.net, np.array(self.times), tuple(first.observed), values[:, :-1],
                                 tuple(first.states), energy, work, audit, first.assembly.domains(),
                                 first.assembly.units(), self.happenings, stopped)


__all__ = ["Motion", "input_values", "simulate_network"]
