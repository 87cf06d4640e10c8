"""How a motion depends on parameters of the model: forward sensitivities by the traced step, exact for the steps taken.

With x_{k+1} = Φ(x_k, p) the step of `rollout` (its controller and the return to the loops included),

    S_{k+1} = Φ_x S_k + Φ_p,        S = ∂x/∂p,   x = [q; v],

which is one compiled function of [x; z; S], iterated like a rollout; z is what the controller remembers. S_0 = 0 on a
tree; with loops the dependent numbers of x_0 follow the geometry (`linearization.derivative`). No differences are
taken, so S is the derivative of the discrete motion to rounding, and that of the motion to the order of the method.

Controllers enter as text (`stepped_control`): those with a text of their own, and functions that are expressions of
(t, q, v). The machine varies, its controller does not: a controller that computes with a model knows the numbers that
this model had when the controller was made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from polybody.algebra.domains import domain
from polybody.errors import InputError
from polybody.interrupts import interruptible
from polybody.model.arguments import as_model, finite, state_array
from polybody.model.model import Model
from polybody.simulation.arguments import positive
from polybody.simulation.compiled.laws import NotCompiled
from polybody.simulation.loop_steps import LoopSteps
from polybody.simulation.rollout import Law, step_function
from polybody.simulation.stepped_control import Control, control_of, steps_of
from polybody.simulation.trajectory import Trajectory

Array = np.ndarray
METHODS = ("rk4", "semi-implicit")


class _Old(NamedTuple):
    """Times t (n,), the motion q (n, nq), v (n, nv), and its derivatives q_p (n, nq, k), v_p (n, nv, k); names (k,)."""

    t: Array
    q: Array
    v: Array
    q_p: Array
    v_p: Array
    names: tuple[str, ...]


@interruptible
def stepped_sensitivities(
    run: Trajectory | Model,
    controller: Any = None,
    *,
    q0: Any = None,
    v0: Any = None,
    duration: float | None = None,
    sample: float | None = None,
    parameters: Any = None,
    dt: float = 1e-3,
    method: str = "rk4",
) -> Any:
    """Sensitivities ∂q/∂p and ∂v/∂p along a motion, with p the parameters of `model.with_parameters`.

    `run` is a run of `pb.simulate(variant, …, parameters=…)`, whose initial state, times and parameters are used; or a
    model, with `q0`, `v0`, `duration`, `sample` and `parameters`. `controller` is that of the run: None, constant joint
    forces (nv,), controllers of `pb.controllers` (along any path, in frames, sampled, with a memory), a function of
    (t, q, v) that is an expression of NumPy, or a casadi.Function. Controllers that cannot be differentiated, such as
    quantised ones, raise an error. Models that controllers compute with keep the values they have. Steps
    are at most `dt`, by `method` "rk4" or "semi-implicit". Joint limits are not enforced.
    """
    if isinstance(run, Trajectory):
        model, values, q, v, times = _of_run(run, controller)
    else:
        model, values, q, v, times = _of_model(run, q0, v0, duration, sample, parameters)
    if not len(model.parameters):
        raise InputError("the model has no parameters; make the run with model.with_parameters(…)")
    if method not in METHODS:
        raise InputError(f"no method {method!r}; available: {', '.join(METHODS)}")
    each = steps_of(controller, times[0], times[1] - times[0], positive("dt", dt))
    h = float((times[-1] - times[0]) / (each * (len(times) - 1)))
    steps = each * (len(times) - 1)
    begins = times[0] + h * np.arange(steps)
    try:
        control = control_of(model, controller, begins, h)
    except NotCompiled as reason:
        raise InputError(f"the controller cannot be differentiated: {reason}") from None
    own = model.parameters.at(values)
    own.engine.require_closed(q, v)
    loops = LoopSteps(own, q) if model.mechanism.constrained else None
    start = _start(model, q, v, values, loops is not None, control.memory)
    kernel, table = _kernel(model, control, method, loops, steps, len(start)), np.column_stack([begins, control.rows])
    states = kernel(start, np.concatenate([[h], control.constants, values]), table.ravel())[each - 1 :: each]
    if not np.isfinite(states).all():
        raise InputError("the motion or its derivatives are not finite; take a smaller dt")
    whole = np.concatenate([start[None], states])
    n, k = model.nq + model.nv, len(model.parameters)
    S = whole[:, -(n + control.memory) * k :].reshape(len(whole), -1, k)
    from polybody.simulation.sensitivities import Sensitivities

    return Sensitivities(
        times, whole[:, : model.nq], whole[:, model.nq : n], S[:, : model.nq], S[:, model.nq : n],
        tuple(model.parameters.names),
    )  # fmt: skip


def _of_run(run: Trajectory, controller: Any) -> tuple[Model, Array, Array, Array, Array]:
    if controller is None and np.any(run.tau):
        raise InputError("the run was driven: give its controller, sensitivities(run, controller)")
    if len(run.t) < 2:
        raise InputError("the run has one state only")
    steps = np.diff(run.t)
    if np.ptp(steps) > 1e-9 * steps.max():
        raise InputError("the run's states are not at equal times; simulate(..., sample=0.01) keeps such")
    return run.model, run.model.parameters.nominal, run.q[0], run.v[0], run.t


def _of_model(
    given: Any, q0: Any, v0: Any, duration: float | None, sample: float | None, parameters: Any
) -> tuple[Model, Array, Array, Array, Array]:
    model = as_model("sensitivities", given)
    if duration is None:
        raise InputError("sensitivities of a model need a duration; those of a run have the run's")
    if not len(model.parameters):
        raise InputError("the model has no parameters; see model.with_parameters(…)")
    length = positive("duration", duration)
    count = max(1, round(length / positive("sample", sample if sample is not None else length / 100)))
    values = model.parameters.nominal if parameters is None else model.parameters.checked(parameters)
    if values.ndim != 1:
        raise InputError(f"sensitivities take one set of parameters, got shape {values.shape}")
    start = model.neutral() if q0 is None else finite("q0", model._q(q0, "q0"))
    speed = np.zeros(model.nv) if v0 is None else finite("v0", state_array("v0", v0, model.nv))
    return model, values, start, speed, np.linspace(0.0, length, count + 1)


def _start(model: Model, q: Array, v: Array, values: Array, loops: bool, memory: int) -> Array:
    """[x_0; growth, with loops; z = 0; S_0]."""
    n, k = model.nq + model.nv, len(values)
    S = np.zeros((n, k))
    if loops:
        from polybody.linearization.derivative import followers_of

        q_p, v_p, _ = followers_of(model, q, v, None, values)
        S = np.concatenate([_numbers(model, q) @ q_p, v_p])  # type: ignore[list-item]
    return np.concatenate([q, v, np.zeros((1 if loops else 0) + memory), S.ravel(), np.zeros(memory * k)])


def _numbers(model: Model, q: Array) -> Array:
    """Γ(q): how the numbers of q change along tangent vectors."""
    from polybody.mechanism.kinematics import rate

    return np.column_stack([rate(model.mechanism, q, e) for e in np.eye(model.nv)])


def _kernel(model: Model, control: Control, method: str, loops: LoopSteps | None, steps: int, size: int) -> Any:
    width = 1 + control.rows.shape[1]
    sizes = (size, 1 + len(control.constants) + len(model.parameters), width)
    name = f"sensitivities {method} {control.key} {width}{f' loops {loops.label}' if loops else ''}"
    make: Callable[[], Any] = lambda: _augmented(model, control, method, loops)  # noqa: E731
    return model.engine.iterate(name, sizes, steps, make, True)


def _augmented(model: Model, control: Control, method: str, loops: LoopSteps | None) -> Any:
    """casadi.Function ([x; z; S], p, u) -> the same after one step."""
    import casadi

    width, count, memory = 1 + control.rows.shape[1], len(control.constants), control.memory

    def text(m: Any, q: Array, v: Array, c: Array, u: Array, domain: Any) -> Array:
        return control.text(u[0], q, v, u[width:], c, u[1:width], domain)

    step = step_function(model, Law(control.key, count, width + memory, text, timed=True), method, loops)
    x, p, _ = step.sx_in()
    u, z = casadi.SX.sym("u", width), casadi.SX.sym("z", memory)
    n, k = model.nq + model.nv, len(model.parameters)
    kept = z if control.update is None else _updating(model, control, width)(x[:n], z, p[1 : 1 + count], u)
    new = step(x, p, casadi.vertcat(u, kept))
    S = casadi.SX.sym("S", (n + memory) * k)
    seeds = casadi.reshape(S, k, n + memory).T  # row by row
    still = casadi.SX.zeros(x.shape[0] - n, k)  # of the growth
    along = casadi.vertcat(seeds[:n, :], still, seeds[n:, :], casadi.SX.zeros(p.shape[0] - k, k), casadi.SX.eye(k))
    moved = casadi.jtimes(casadi.vertcat(new[:n], kept), casadi.vertcat(x, z, p), along)
    return casadi.Function("augmented", [casadi.vertcat(x, z, S), p, u], [
        casadi.densify(casadi.vertcat(new, kept, casadi.vec(moved.T)))])  # fmt: skip


def _updating(model: Model, control: Control, width: int) -> Any:
    """casadi.Function (x, z, c, u) -> z at the beginning of a step."""
    import casadi

    graph: Any = domain("casadi")
    sizes = {"x": model.nq + model.nv, "z": control.memory, "c": len(control.constants), "u": width}
    made = {name: graph.variables(name, size) for name, size in sizes.items() if size}
    nodes = {name: made[name][1] if size else np.zeros(0) for name, size in sizes.items()}
    x, u = nodes["x"], nodes["u"]
    assert control.update is not None
    found = control.update(u[0], x[: model.nq], x[model.nq :], nodes["z"], nodes["c"], u[1:], graph)
    columns = [made[name][0] if size else casadi.SX.sym(name, 0) for name, size in sizes.items()]
    return casadi.Function("update", columns, [graph.column(found)])


__all__ = ["stepped_sensitivities"]
