"""How a motion depends on parameters of the model: forward sensitivities along the steps of a run.

With x = [q; v; currents] and z what the controller remembers, a run is a chain of steps x ← Φ(x, z, p), of instants
z ← U(x, z) of the controller and of events, and so is S = ∂x/∂p:

    S ← Φ_x S + Φ_z S_z + Φ_p      (`step_derivatives`),      S_z ← U_x S + U_z S_z,      events by `saltation`.

No differences are taken: S is the derivative of the steps that were taken to rounding, and that of the motion to the
order of the method. Steps of dop853 are as long as tolerances allow, and the derivative of its interpolant answers
wanted times between. Its error estimates, which are linear in the rates, are asked about S as well: a motion at rest
has no error, and steps so long that S would grow without bound. Where they are too long for S, steps end at the wanted
times, as those of the other methods do. S_0 = 0 on a tree; with loops the dependent numbers of x_0 follow the geometry
(`linearization.derivative`).

Controllers enter as text: those of `pb.controllers`, and functions that are expressions of (t, q, v). The machine
varies, its controller does not: a controller that computes with a model knows the numbers that this model had when the
controller was made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from polybody.errors import InputError
from polybody.interrupts import interruptible
from polybody.mechanism.kinematics import rate
from polybody.model.arguments import as_model
from polybody.model.model import Model
from polybody.simulation.arguments import positive, usual_spacing
from polybody.simulation.controllers import Given
from polybody.simulation.events import Event, longest_step
from polybody.simulation.failures import BlowUp, NotCompiled
from polybody.simulation.loop_slopes import are_described
from polybody.simulation.recording import Crossing, Instant, Record, Stretch
from polybody.simulation.run import Run
from polybody.simulation.saltation import Saltation, names_of
from polybody.simulation.stage_control import control_of
from polybody.simulation.start import prepared
from polybody.simulation.steady import is_steady
from polybody.simulation.step_derivatives import Instants, StepDerivatives, nearly
from polybody.simulation.trajectory import Trajectory

Array = np.ndarray
#: how far a run and the same run made again may be apart, over 1 + |q|: else something that acted was not given
SAME = 1e-3
#: methods that have no steps of their own to differentiate, and the one that takes their place
STEPPED = {"cvodes": "radau", "idas": "radau"}
#: errors of S that steps may have by their own estimates, over rtol: else wanted times divide them
ALLOWED = 10.0
#: steps whose derivatives are in memory at once
WINDOW = 2048


class EventTime(NamedTuple):
    """When an event happened, what it was, and how its time depends on the parameters, t_p (k,): NaN where joints leave
    their stops or begin to slide."""

    t: float
    names: tuple[str, ...]
    t_p: Array


class Sensitivities(NamedTuple):
    """Times t (n,), the motion q (n, nq), v (n, nv), and its derivatives q_p (n, nq, k), v_p (n, nv, k); names (k,).

    `events` lists the times of events and their derivatives.
    """

    t: Array
    q: Array
    v: Array
    q_p: Array
    v_p: Array
    names: tuple[str, ...]
    events: tuple[EventTime, ...] = ()


@interruptible
def sensitivities(
    run: Trajectory | Model,
    controller: Any = None,
    *,
    q0: Any = None,
    v0: Any = None,
    duration: float | None = None,
    sample: float | None = None,
    parameters: Any = None,
    wrenches: Mapping[str, Any] | None = None,
    voltages: Any = None,
    currents0: Any = None,
    events: Sequence[Event] = (),
    method: str | None = None,
    dt: float | None = None,
    **options: Any,
) -> Sensitivities:
    """Sensitivities ∂q/∂p and ∂v/∂p along a motion, with p the parameters of `model.with_parameters`.

    `run` is a run of `pb.simulate(variant, …, parameters=…)`, whose initial state, times, parameters and options are
    used; or a model, with the arguments that `pb.simulate` takes (`q0`, `v0`, `duration`, `sample`, `parameters`,
    `limits`, `restitution`, `friction`, `efforts`, `rtol`, …). What acted on the run is not kept with it: give its
    `controller`, `wrenches`, `voltages` and `events` again, and q0 and v0 if its `times` do not contain the start.
    `controller` is None, constant joint forces (nv,), controllers of `pb.controllers` (along any path, in frames,
    sampled, with a memory), a function of (t, q, v) that is an expression of NumPy, or a casadi.Function; others raise
    an error with the reason. Models that controllers compute
    with keep the values they have.

    The run is made again by `method` (by default its own, radau for cvodes and idas; "rk4" if only `dt` is given), and
    its steps are differentiated exactly; impacts, sticking and events by saltation. Steps end at the wanted times, or
    (dop853) the interpolant is differentiated there. `events` of the result has the derivatives of their times.
    """
    if isinstance(run, Trajectory):
        given = {"duration": duration, "sample": sample, "parameters": parameters}
        model, asked, times = _of_run(run, controller, wrenches, voltages, q0, v0, given)
    else:
        model, asked, times = _of_model(run, q0, v0, duration, sample, parameters)
    if not len(model.parameters):
        raise InputError("the model has no parameters; make the run with model.with_parameters(…)")
    asked |= {"method": "rk4"} if dt is not None and method is None and "dt" not in asked else {}
    asked |= {key: x for key, x in {"method": method, "dt": dt}.items() if x is not None} | options
    if asked.get("method") in STEPPED:
        asked |= {"method": STEPPED[asked["method"]], "rtol": max(asked.get("rtol", 0.0), 1e-9)}
    if controller is not None and not callable(controller):
        controller = Given(model, controller)
    try:
        control = control_of(model, controller)
        acting = {"wrenches": wrenches, "voltages": voltages, "currents0": currents0, "events": events}
        first = asked.pop("duration"), asked.pop("q0"), asked.pop("v0")
        acts = (controller, voltages, *(wrenches or {}).values())
        if model.mechanism.paced or any(callable(x) and not is_steady(x) for x in acts):
            # A machine at rest would step over pulses.
            asked["max_step"] = min(asked.get("max_step", np.inf), longest_step(usual_spacing(first[0]), times))
        for long in (True, False):  # steps as long as tolerances allow; where these would be too long for S, shorter
            made, y, end, _ = prepared(model, *first, controller, times=times[-1:], varied=True, **acting, **asked)
            of = StepDerivatives(made.problem, control, made.method.name)
            record = _recorded(made, y, end, times, long and of.interpolates)
            chain = Chain(of, made, record, times)
            found = chain.followed(_start(model, y))
            if chain.error <= ALLOWED * made.options.rtol:
                break
    except NotCompiled as reason:
        raise InputError(f"the run cannot be differentiated: {reason}") from None
    if isinstance(run, Trajectory):
        if len(times) > len(run.t):  # the run does not keep its start
            found = found._replace(**{name: getattr(found, name)[1:] for name in ("t", "q", "v", "q_p", "v_p")})
        _require_same(run, found)
    return found


def _of_run(
    run: Trajectory, controller: Any, wrenches: Any, voltages: Any, q0: Any, v0: Any, given: dict[str, Any]
) -> tuple[Model, dict[str, Any], Array]:
    """(model, options, times) of a run; its first state must be that of its start, or be given."""
    known = [name for name, value in given.items() if value is not None]
    if known:
        raise InputError(f"{', '.join(known)} of a run are its own; to choose them give the model instead of the run")
    if controller is None and voltages is None and np.any(run.tau):
        raise InputError("the run was driven: give its controller, sensitivities(run, controller)")
    if len(run.t) < 2:
        raise InputError("the run has one state only")
    start, times = run.options["start"], run.t
    if times[0] > start:
        if q0 is None or v0 is None:
            raise InputError(
                f"the run keeps no state of its start, t = {start:g} s: its first is that of t = {times[0]:g} s; give "
                "q0 and v0, or make the run with times that contain the start"
            )
        return run.model, {**run.options, "q0": q0, "v0": v0}, np.concatenate([[start], times])
    if q0 is not None or v0 is not None:
        raise InputError("q0 and v0 of a run are its own; to choose them give the model instead of the run")
    return run.model, {**run.options, "q0": run.q[0], "v0": run.v[0]}, times


def _of_model(
    given: Any, q0: Any, v0: Any, duration: float | None, sample: float | None, parameters: Any
) -> tuple[Model, dict[str, Any], Array]:
    model = as_model("sensitivities", given)
    if duration is None:
        raise InputError("sensitivities of a model need a duration; those of a run have the run's")
    if not len(model.parameters):
        raise InputError("the model has no parameters; see model.with_parameters(…)")
    length = positive("duration", duration)
    count = max(1, round(length / positive("sample", sample if sample is not None else length / 100)))
    if parameters is not None:
        values = model.parameters.checked(parameters)
        if values.ndim != 1:
            raise InputError(f"sensitivities take one set of parameters, got shape {values.shape}")
        model = model.parameters.at(values)
    return model, {"duration": length, "q0": q0, "v0": v0}, np.linspace(0.0, length, count + 1)


def _recorded(run: Run, y: Array, end: float, times: Array, long: bool) -> Record:
    """Every step of the run, made now; unless `long`, with steps that end at the wanted times."""
    record = Record()
    run.watcher, run.marks = record, times[:0] if long else times
    try:
        run.reached, run.last = run.start, y
        run.advance(run.start, y, end)
    except BlowUp as reason:
        raise InputError(f"the run ends at t = {run.reached:.9g} s: {reason}") from None
    return record


def _start(model: Model, y: Array) -> Array:
    """S_0, (nq + nv, k)."""
    nq, nv = model.nq, model.nv
    if not model.mechanism.constrained or are_described(model):
        return np.zeros((nq + nv, len(model.parameters)))
    from polybody.linearization.derivative import followers_of

    q, v = y[:nq], y[nq : nq + nv]
    q_p, v_p, _ = followers_of(model, q, v, None, model.parameters.nominal)
    numbers = np.column_stack([rate(model.mechanism, q, e) for e in np.eye(nv)])
    return np.concatenate([numbers @ q_p, v_p])  # type: ignore[list-item]


class Chain:
    """S along the parts of a run."""

    def __init__(self, of: StepDerivatives, run: Run, record: Record, times: Array) -> None:
        self.of, self.record, self.times, self.run = of, record, times, run
        self.salted = Saltation(of, run.switches.stops)
        self.error = 0.0  # the largest estimate for S over steps with wanted times inside, relative
        options, p = run.options, of.problem.model.parameters.nominal
        self.least = options.atol / options.rtol / np.maximum(1.0, np.abs(p))  # as atol is for states

    def followed(self, start: Array) -> Sensitivities:
        of, problem = self.of, self.of.problem
        n, nq, nv, k = of.n, problem.nq, problem.nv, of.k
        self.S, self.S_z, self.happened = np.zeros((n, k)), np.zeros((of.m, k)), list[EventTime]()
        self.S[: nq + nv] = start
        self.rows = [(float(self.times[0]), self.record.start[:n], self.S)]
        parts, z = self.record.parts, self._remembered()
        first = 0
        while first < len(parts):  # windows of some thousand steps
            last, steps = first, 0
            while last < len(parts) and steps < WINDOW:
                part = parts[last]
                steps += len(part.t) - 1 if isinstance(part, Stretch) else 0
                last += 1
            self._follow(parts[first:last], z[first:last])
            first = last
        if not all(np.isfinite(S).all() for _, _, S in self.rows):
            raise InputError("the motion or its derivatives are not finite; take smaller steps")
        Y, S = np.array([y for _, y, _ in self.rows]), np.array([S for _, _, S in self.rows])
        return Sensitivities(
            np.array([t for t, _, _ in self.rows]), Y[:, :nq], Y[:, nq : nq + nv], S[:, :nq], S[:, nq : nq + nv],
            tuple(problem.whole.parameters.names), tuple(self.happened),
        )

    def _remembered(self) -> list[tuple[Array, Array]]:
        """(z, ∂z/∂[q, v, z before]) in, or after, each part of the record."""
        z, slopes, found, count = np.zeros(self.of.m), np.zeros((0, 0)), [], 0
        times = np.array([part.t for part in self.record.parts if isinstance(part, Instant)])
        instants = Instants(self.of, times, self.run.start) if len(times) else None
        for part in self.record.parts:
            if isinstance(part, Instant) and instants is not None:
                z, slopes = instants(count, part.y, z)
                count += 1
            found.append((z, slopes))
        return found

    def _follow(self, parts: list[Any], z: list[tuple[Array, Array]]) -> None:
        of = self.of
        steps = [j for j, part in enumerate(parts) if isinstance(part, Stretch)]
        found = of.derivatives([parts[j] for j in steps], [z[j][0] for j in steps], self.times)
        steps_of = dict(zip(steps, found, strict=True))
        states = of.problem.nq + of.problem.nv
        for j, part in enumerate(parts):
            if isinstance(part, Instant):
                by = z[j][1]
                self.S_z = by[:, :states] @ self.S[:states] + by[:, states:] @ self.S_z
            elif isinstance(part, Crossing):
                self.S, shift = self.salted(part, self.S, z[j][0])
                self.happened.append(EventTime(part.t, names_of(part), shift))
                if self.rows[-1][0] == part.t:
                    self.rows[-1] = (part.t, part.after[: of.n], self.S)
            else:
                for step, t, y in zip(steps_of[j], part.t[1:], part.y[1:], strict=True):
                    self.rows += [(look.t, look.x, look.carried(self.S, self.S_z)) for look in step.looks]
                    after = step.carried(self.S, self.S_z)
                    if step.looks:
                        self.error = max(self.error, step.error(self.S, self.S_z, after, self.least))
                    self.S = after
                    if self._is_wanted(float(t), len(self.rows)):
                        self.rows.append((float(t), y[: of.n], self.S))

    def _is_wanted(self, t: float, count: int) -> bool:
        return count < len(self.times) and abs(t - self.times[count]) <= nearly(t)


def _require_same(run: Trajectory, found: Sensitivities) -> None:
    """The run made again is the run: what was not given again would change it."""
    count = min(len(run.t), len(found.t))
    off = np.abs(run.q[:count] - found.q[:count]).max(axis=1) / (1 + np.abs(run.q[:count]).max())
    if not (off <= SAME).all():
        k = int(np.argmax(~(off <= SAME)))
        raise InputError(
            f"made again, the run is {off[k]:.3g} away at t = {run.t[k]:.6g} s: give the controller, wrenches, "
            "voltages and events that it was made with; or it is not determined to that accuracy (take smaller steps)"
        )


__all__ = ["EventTime", "Sensitivities", "sensitivities"]
