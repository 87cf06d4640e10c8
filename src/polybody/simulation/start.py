"""`simulate`: from what a user says of a run, checked, to the run and its trajectory."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from polybody.errors import InputError
from polybody.garbage import uncollected
from polybody.interrupts import passed_on
from polybody.mechanism.saturation import drive_limits
from polybody.model.arguments import as_model
from polybody.model.dispatch import answered_by
from polybody.model.model import Model
from polybody.simulation import timed
from polybody.simulation.arguments import (
    lone_state,
    number,
    positive,
    refuse_many,
    require_motion,
    sample_times,
    usual_spacing,
    whole,
)
from polybody.simulation.events import Event, longest_step
from polybody.simulation.friction import DryFriction, has_dry_friction
from polybody.simulation.integrators import Options, method_named
from polybody.simulation.integrators.tableaux import GIVEN
from polybody.simulation.problem import Controller, Problem
from polybody.simulation.run import Run
from polybody.simulation.runs import each_run
from polybody.simulation.saturation import chosen_efforts
from polybody.simulation.switches import Switches
from polybody.simulation.trajectory import Trajectory

Array = np.ndarray
FRICTION = ("stick", "smooth")
LIMITS = ("stop", "halt", "report", "ignore")
#: steps of adaptive methods after which something is wrong: at least, and for each second
MOST_STEPS = 200_000
MOST_A_SECOND = 5_000
#: what rounding leaves of a tolerance: below it steps shrink and nothing is gained
LEAST_RTOL = 100 * 2.0**-52
#: methods that write the dynamics themselves, without loops
WITHOUT_LOOPS = ("midpoint",)


@answered_by("simulated")
@each_run
def simulate(
    model: Model,
    duration: float,
    q0: Any = None,
    v0: Any = None,
    controller: Controller | None = None,
    *,
    wrenches: Mapping[str, Any] | None = None,
    voltages: Any = None,
    currents0: Any = None,
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
    efforts: str | None = None,
    friction: str = "stick",
    dense: bool = False,
    max_steps: int | None = None,
    progress: Callable[[float], None] | None = None,
    compiled: bool | None = None,
    parameters: Any = None,
) -> Trajectory:
    """Simulate the motion of a model from (q0, v0), by default neutral and at rest, for `duration` seconds.

    `controller(t, q, v)` returns joint forces (nv numbers). `wrenches` maps a frame name to a wrench [moment; force] on
    its body, at the frame's origin, in world axes, or to a function of time that returns one. `voltages` (numbers, or a
    function of (t, q, v)) drive the model's motors, whose currents become states with initial values `currents0` (one
    per motor, default zero); without voltages the circuits are open.

    `method` is dop853 (adaptive, order 8), radau or cvodes (stiff), idas (stiff; integrates the equations with loops
    directly, without elimination), or rk4, semi-implicit or midpoint (fixed steps `dt`; midpoint is implicit, its
    energy error stays bounded, and it does not support loops). Adaptive methods record a state every `sample` seconds
    (or at `times`); fixed-step methods record every step by default. `dense=True` keeps interpolants for
    `Trajectory.at`.

    `limits` sets the effect of joint limits: "stop" (joints hit them, with `restitution`), "halt" (the run ends there),
    "report" (crossings are only recorded) or "ignore". `progress` is called with the time reached.

    If everything that acts can be compiled (docs/howto/simulate.md), steps are taken in machine code, many per call;
    `run.audit.path` reports this, or the reason why not. `compiled=False` takes every step in Python, `compiled=True`
    raises an error if that would be necessary. Both give the same motion to the accuracy of the method.

    `efforts` sets the effect of effort, power and velocity limits on the controller's output: "saturate" bounds it,
    "report" only records violations, "ignore" does neither; by default it follows `limits`. `run.audit.saturation`
    reports which joint was at which limit and for how long. `friction` is "stick" for true sticking, or "smooth" for
    the regularised law of the kernels.

    A run that needs more than `max_steps` steps (200 000, or 5000 per second; for fixed steps their number) raises an
    error that shows its last state. Errors carry the states computed before them in `trajectory`.

    `parameters`, (k,), are values of the parameters of `model.with_parameters`. With (..., k) there is one run per set:
    q0 and v0 broadcast with the sets, and the result is a `Runs`, whose elements are trajectories and whose q, v, a and
    tau are (..., n, nv). The same compiled steps serve all sets; rk4 and semi-implicit runs of trees without events go
    side by side in the lanes of one kernel.
    """
    run, y, end, said = prepared(
        model, duration, q0, v0, controller, wrenches=wrenches, voltages=voltages, currents0=currents0, method=method,
        dt=dt, rtol=rtol, atol=atol, max_step=max_step, first_step=first_step, sample=sample, times=times, start=start,
        events=events, limits=limits, restitution=restitution, efforts=efforts, friction=friction, dense=dense,
        max_steps=max_steps, progress=progress, compiled=compiled, parameters=parameters,
    )  # fmt: skip
    return run.to_end(run.start, y, end, said)


def prepared(
    model: Model, duration: float, q0: Any, v0: Any, controller: Controller | None, *, wrenches: Any = None,
    voltages: Any = None, currents0: Any = None, method: str = "dop853", dt: float = 1e-3, rtol: float = 1e-9,
    atol: float = 1e-11, max_step: float = np.inf, first_step: float | None = None, sample: float | None = None,
    times: Any = None, start: float = 0.0, events: Sequence[Event] = (), limits: str = "stop", restitution: float = 0.0,
    efforts: str | None = None, friction: str = "stick", dense: bool = False, max_steps: int | None = None,
    progress: Callable[[float], None] | None = None, compiled: bool | None = None, parameters: Any = None,
    varied: bool = False,
) -> tuple[Run, Array, float, dict[str, Any]]:  # fmt: skip
    """(the run that `simulate` makes of its arguments, its first state, its end, its options); `varied` where the
    problem's parameters must stay variables."""
    origin = model = model if isinstance(model, Model) else as_model("simulate", model)
    if parameters is not None:
        model = model.parameters.at(parameters)
    given = model
    if not varied and model.engine.source.variation is not None:
        from polybody.simulation.compiled.own_numbers import has_recursions, numbers_of

        if has_recursions(model):
            origin = model = numbers_of(model)
    chosen = method_named(method)
    duration, start = positive("duration", duration), number("start", start)
    q, v = lone_state(model, q0, v0)
    require_motion(model)
    if limits not in LIMITS:
        raise InputError(f"limits is {limits!r}; expected one of {', '.join(LIMITS)}")
    if not 0 <= number("restitution", restitution) <= 1:
        raise InputError(f"restitution is {restitution!r}; expected a number from 0 to 1")
    if controller is not None and not callable(controller):
        raise InputError(f"controller is a {type(controller).__name__}; expected a function of (t, q, v)")
    end = start + duration
    size = 1 + model.nq + 3 * model.nv
    kept = sample_times(start, end, sample, times, chosen.adaptive, size)
    if kept is None:
        refuse_many(duration / positive("dt", dt), size, f"steps of {dt:g} s")
    options = Options(
        dt=positive("dt", dt),
        rtol=max(positive("rtol", rtol), LEAST_RTOL),
        atol=positive("atol", atol),
        max_step=positive("max_step", max_step, infinite=True),
        first_step=None if first_step is None else positive("first_step", first_step),
        times=() if kept is None else tuple(kept.tolist()),
    )
    if model.mechanism.constrained and method in WITHOUT_LOOPS:
        raise InputError(f"method {method!r} is for models without loops; with loops take dop853, radau, cvodes, idas, "
                         "rk4 or semi-implicit")
    word = chosen_efforts(efforts, limits)
    if friction not in FRICTION:
        raise InputError(f"friction is {friction!r}; expected one of {', '.join(FRICTION)}")
    sticking = DryFriction(model, origin) if friction == "stick" and has_dry_friction(model) else None
    problem = Problem(model if sticking is None else sticking.smooth, controller, wrenches, voltages)
    problem.whole, problem.given, problem.friction, problem.efforts = model, given, sticking, word
    drives = drive_limits(model.mechanism)
    problem.drives = drives if controller is not None and word == "saturate" and drives.any else None
    if compiled is not False:
        from polybody.kernels import stepping

        stepping.prepare()
    of_trees = () if problem.loops else (problem.model,)  # dry friction changes no pivot
    for asked in of_trees or (model, problem.model):  # what cannot be simulated says so here
        asked.engine.require_dynamics(q, v)
    said = {
        "method": method, "duration": duration, "start": start, "limits": limits, "restitution": restitution,
        "efforts": word, **({"friction": friction} if has_dry_friction(model) else {}),
        **({"rtol": options.rtol, "atol": options.atol} if chosen.adaptive else {"dt": options.dt}),
    }  # fmt: skip
    most = None
    if max_steps is not None:
        most = whole("max_steps", max_steps)
    elif chosen.adaptive:
        most = int(max(MOST_STEPS, MOST_A_SECOND * duration))
    switches = Switches(problem, events, limits, restitution)
    looks = sticking is not None or bool(switches.functions())

    def spaced(changing: bool) -> Options:
        """With the longest steps that what acts allows; `changing` where loads may depend on the time."""
        found = options
        # Of steps of SUNDIALS less is known in between: they stay short under any controller.
        loads = changing or (problem.driven_from_outside and method in GIVEN)
        if kept is not None and (events or (looks and (loads or problem.has_timed_law))):
            bound = min(found.max_step, longest_step(usual_spacing(duration), kept))
            found = replace(found, max_step=bound, steady_step=bound if events or loads else found.max_step)
        if problem.has_timed_law or changing:
            bound = min(found.max_step, timed.longest_step(controller, method, usual_spacing(duration)))
            free = found.max_step if found.steady_step is None else found.steady_step
            found = replace(found, max_step=bound, steady_step=min(free, bound) if changing else free)
        return found

    if chosen.adaptive:
        calm = spaced(problem.has_timed_drives)
        options = replace(spaced(problem.has_timed_loads), calm_steps=(calm.max_step, calm.steady_step))
    options = replace(options, inside=dense or bool(switches.functions()))
    run = Run(problem, chosen, options, kept, switches, dense, most, progress)
    run.bends = timed.bends(controller, start, end) if chosen.adaptive else run.bends
    with uncollected():
        if problem.driven or events:  # users' functions are traced
            passed_on(functools.partial(run.compile, compiled))
        else:
            run.compile(compiled)
    if run.compiled is not None and problem.loops:
        run.compiled.foresee(switches.functions())
    y = problem.state(q, v, problem.circuits.start(currents0))
    if run.compiled is None or not run.compiled.states.is_regular(start, y):
        # A singular state is reported, or refused. Without loops that does not depend on friction, and the run's own
        # code, without dry friction, is wanted anyway.
        (model if problem.loops else problem.model).forward_dynamics(q, v, np.zeros(model.nv))
    run.start, run.end = start, end
    return run, y, end, said


__all__ = ["FRICTION", "LIMITS", "WITHOUT_LOOPS", "prepared", "simulate"]
