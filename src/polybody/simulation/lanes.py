"""Runs of one machine with many sets of parameters, side by side in the lanes of one kernel.

Equal steps without events need nothing of Python between them: the step of `simulate`, made of the same field
(`compiled.field`), is iterated for all sets at once (`kernels.iterate`), with the sets' numbers as constants of their
lanes. That holds for rk4 and semi-implicit Euler, trees, controllers that are expressions, and states that are wanted
at ends of steps. A lane that comes near a joint limit, or whose numbers run away, is made again by itself, where that
can be looked at. Trajectories, with the models they belong to and their audits, are made when they are asked for.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from polybody.errors import warn
from polybody.kernels import background
from polybody.mechanism.columns import state_text
from polybody.model.tracing import compiled
from polybody.names import counted
from polybody.properties import cached_property
from polybody.simulation.audit import allowed_energy, energy_balance
from polybody.simulation.compiled.field import unit
from polybody.simulation.controllers.sampling import is_sampling
from polybody.simulation.extremes import extremes
from polybody.simulation.kept import Kept, Rows
from polybody.simulation.moments import moment
from polybody.simulation.outcome import trajectory_of
from polybody.simulation.problem import RUNAWAY
from polybody.simulation.run import Run
from polybody.simulation.stops import AT

Array = np.ndarray
METHODS = ("rk4", "semi-implicit")
#: steps of all lanes together up to which no step is compiled for those of rk4
FEW = 4_000
#: numbers of one batch: states of all its steps are in memory at once
MOST = 4_000_000


class Lanes:
    """Runs like `run` with steps at times `steps`, of which `kept` are recorded, as a sequence of trajectories.

    `alone(k)` makes run k by itself, `again(k)` the `Run` and the options that it would have.
    """

    def __init__(
        self, run: Run, steps: Array, kept: Array, alone: Callable[[int], Any], again: Callable[[int], tuple[Run, Any]]
    ) -> None:
        self.run, self.steps, self.kept, self.alone, self.again = run, steps, kept, alone, again
        self.made: dict[int, Any] = {}
        self.done = 0

    # Steps.

    def advance(self, y0: Array, values: Array) -> None:
        """All lanes from states y0 (n, size) with parameters (n, k), in batches; an interrupt leaves those done."""
        acting, count, n = self.run.compiled.acting, len(self.steps) - 1, len(y0)
        self.values = values
        self.constants = np.broadcast_to(acting.constants, (n, len(acting.constants))).copy()
        end = self.constants.shape[1] - 1
        self.constants[:, end - values.shape[1] : end] = values
        table = np.column_stack([self.steps[:-1], np.diff(self.steps)]).ravel()
        singular = ~self.run.problem.model.engine.tree.well_conditioned(values)
        few = background.tier() != "optimised" and n * count <= FEW and self.run.method.name == "rk4"
        kernel = self._by_field if few else self._kernel(count)
        each = max(1, MOST // (count * acting.size))
        self.states = np.empty((n, len(self.kept), acting.size))
        try:
            for a in range(0, n, each):
                part = slice(a, min(n, a + each))
                whole = np.concatenate([y0[part, None], kernel(y0[part], self.constants[part], table)], axis=1)
                self.states[part] = whole[:, self.kept]
                for k in np.flatnonzero(self._doubtful(whole) | singular[part]):
                    self.made[a + int(k)] = self.alone(a + int(k))
                self.done = part.stop
        except KeyboardInterrupt:
            if not self.done:
                raise
            self.made = {k: run for k, run in self.made.items() if k < self.done}
            warn(f"interrupted: the first {self.done} of {n} runs are returned")
        self._record()

    def _kernel(self, count: int) -> Any:
        run = self.run
        acting, engine = run.compiled.acting, run.problem.model.engine
        sizes = (acting.size, len(acting.constants), 2)
        name = f"runs {run.method.name} {acting.key}"
        return engine.iterate(name, sizes, count, self._step, True)

    def _by_field(self, y: Array, c: Array, table: Array) -> Array:
        """The same steps (n, steps, size) by the field alone, which the record needs anyway: to trace and read a step
        of four fields takes as long as some thousand of them."""
        acting, mechanism = self.run.compiled.acting, self.run.compiled.acting.model.mechanism
        row, count = acting.law.signals.row(0.0), len(table) // 2
        turned = [slice(j.q.stop - 4, j.q.stop) for j in mechanism.independent_joints if j.nq != j.nv]
        states = np.empty((len(y), count, acting.size))

        def rate(y: Array, t: float) -> Array:
            x = np.concatenate([y, np.full((len(y), 1), t)], axis=1)
            return self._field(x, c, row)[0][:, : acting.size]

        for step, (t, h) in enumerate(table.reshape(-1, 2).tolist()):
            k1 = rate(y, t)
            k2 = rate(y + h / 2 * k1, t + h / 2)
            k3 = rate(y + h / 2 * k2, t + h / 2)
            k4 = rate(y + h * k3, t + h)
            y = states[:, step] = y + h / 6 * (k1 + 2 * (k2 + k3) + k4)
            for part in turned if acting.curved else ():  # `unit`
                y[:, part] /= np.sqrt(np.einsum("ni,ni->n", y[:, part], y[:, part]))[:, None]
        return states

    def _step(self) -> Any:
        """casadi.Function (y, c, [t, h]) -> y after one step."""
        import casadi

        from polybody.algebra.domains import domain

        acting, name = self.run.compiled.acting, self.run.method.name
        y, c = casadi.SX.sym("y", acting.size), casadi.SX.sym("c", len(acting.constants))
        when, row = casadi.SX.sym("u", 2), casadi.SX(acting.law.signals.row(0.0))
        t, h = when[0], when[1]
        field = acting.text("field")
        rate = lambda y, t: field.call([casadi.vertcat(y, t), c, row])[0]  # noqa: E731
        if name == "rk4":
            k1 = rate(y, t)[: acting.size]
            k2 = rate(y + h / 2 * k1, t + h / 2)[: acting.size]
            k3 = rate(y + h / 2 * k2, t + h / 2)[: acting.size]
            k4 = rate(y + h * k3, t + h)[: acting.size]
            new = y + h / 6 * (k1 + 2 * (k2 + k3) + k4)
        else:
            x = casadi.vertcat(y, t)
            new = acting.text("leap").call([x, rate(y, t), h, c, row])[0][: acting.size]
        if acting.curved:
            graph: Any = domain("casadi")
            nq = acting.model.nq
            straight = graph.column(unit(acting.model.mechanism, graph.scalars(new[:nq]), graph))
            new = casadi.vertcat(straight, new[nq:])
        return casadi.Function("step", [y, c, when], [casadi.densify(new)])

    def _doubtful(self, whole: Array) -> Array:
        """Lanes that must be looked at: near limits, or out of all bounds."""
        nq, nv = self.run.problem.nq, self.run.problem.nv
        q, v = whole[..., :nq], whole[..., nq : nq + nv]
        bad = ~(np.isfinite(whole).all(axis=(1, 2)) & (np.abs(v).max(axis=(1, 2), initial=0.0) < RUNAWAY))
        if self.run.switches.limits != "ignore":
            dt = float(np.max(np.diff(self.steps)))
            for stop in self.run.switches.stops.all:
                excess = stop.side * (q[..., stop.q] - stop.limit) + np.abs(v[..., stop.v]) * dt
                bad |= (excess >= -AT).any(axis=1)
        return bad

    # What is recorded.

    def _record(self) -> None:
        acting, problem = self.run.compiled.acting, self.run.problem
        n, nv, t = self.done, problem.nv, self.steps[self.kept]
        times = np.broadcast_to(t[None, :, None], (n, len(t), 1))
        x = np.concatenate([self.states[:n], times], axis=-1)
        rate, told = self._field(x, self.constants[:n, None], acting.law.signals.row(0.0))
        self.t, self.a, self.tau = t, rate[..., problem.nq : problem.nq + nv], told[..., :nv]
        self._warn_of_energy()

    @cached_property
    def _field(self) -> Any:
        """(x, c, row) -> (rate, what is recorded)."""
        acting = self.run.compiled.acting
        inputs = [("x", acting.size + 1), ("c", len(acting.constants)), ("row", acting.law.signals.rows.shape[1])]
        results = [("rate", (acting.size + 1,)), ("told", (acting.recorded + 2,))]
        key = f"{acting.key}:{self.run.problem.model.engine.tree.source.digest}"
        return compiled("simulate rate", inputs, results, lambda: acting.function("field"), key)

    def _warn_of_energy(self) -> None:
        """Say which runs' energy is off, as each run would by itself."""
        run, problem = self.run, self.run.problem
        q, v, work = np.split(self.states[: self.done], [problem.nq, problem.nq + problem.nv], axis=-1)
        kinetic, potential = problem.model.energy(q, v, parameters=self.values[: self.done, None])
        allowed = allowed_energy(False, run.options.rtol, run.options.atol, len(self.steps) - 1)
        found = [energy_balance(extremes(*x))[1] for x in zip(work, kinetic, potential, strict=True)]
        off = [k for k, x in enumerate(found) if x is not None and x > allowed and k not in self.made]
        if off:
            worst = max(found[k] for k in off)
            warn(
                f"the energy balance of {counted(len(off), 'run')} is off by up to {worst:.2g} of what was exchanged, "
                f"where {allowed:.2g} was allowed (first{state_text((off[0],))}): use smaller steps, or look for a "
                "controller that is not continuous"
            )

    # As a sequence of trajectories.

    def __len__(self) -> int:
        return self.done

    def __getitem__(self, k: int) -> Any:
        k = range(self.done)[k]
        if k not in self.made:
            run, said = self.again(k)
            run.record, run.steps, run.path = Kept(), len(self.steps) - 1, "compiled lanes"
            none = np.zeros((len(self.t), 0))
            run.record.many(Rows(self.t, self.states[k], self.a[k], self.tau[k], none))
            run.problem.evaluations = (4 if run.method.name == "rk4" else 1) * run.steps
            self.made[k] = trajectory_of(run, said, None, time.perf_counter())
        return self.made[k]

    def stacked(self, name: str) -> Array | None:
        """q, v, a, tau or work of all runs, (n, times, …); None where some have other times."""
        if any(not np.array_equal(run.t, self.t) for run in self.made.values()):
            return None
        nq, nv = self.run.problem.nq, self.run.problem.nv
        parts = {"q": self.states[..., :nq], "v": self.states[..., nq : nq + nv], "a": self.a, "tau": self.tau,
                 "work": self.states[..., -1]}  # fmt: skip
        found = parts[name][: self.done].copy()
        for k, run in self.made.items():
            found[k] = getattr(run, name)
        return found


def can_run(run: Run) -> bool:
    """Whether runs like this one go side by side."""
    problem, made = run.problem, run.compiled
    if made is None or run.method.name not in METHODS or run.pieces is not None or run.progress is not None:
        return False
    if problem.loops or problem.friction is not None or problem.circuits.closed or run.switches.events:
        return False
    if is_sampling(problem.controller) or run.compiled.acting.law.doubtful or run.most is not None:
        return False
    return len(made.acting.law.signals.breaks) <= 1 and len(made.acting.parameters) > 0


def step_times(run: Run) -> tuple[Array, Array] | None:
    """(times of all steps, which of them are kept), or None where states are wanted inside steps."""
    start, end, dt = run.start, run.end, run.options.dt
    count = max(1, int(np.ceil((end - start) / dt * (1 - 1e-12))))
    times = start + dt * np.arange(count + 1)
    times[-1] = end
    if run.kept is None:
        return times, np.arange(count + 1)
    places = np.clip(np.round((run.kept - start) / dt).astype(int), 0, count)
    if run.kept[0] > start or np.abs(times[places] - run.kept).max() > moment(end):
        return None
    return times, places


__all__ = ["Lanes", "can_run", "step_times"]
