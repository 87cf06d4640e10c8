"""Many simulations at once: `rollout` advances thousands of states by fixed steps in one call of compiled code.

One step is traced over the mechanism,

    rk4            y₁ = y₀ + h/6 (k₁ + 2k₂ + 2k₃ + k₄),  y = [q; v],  ẏ = [Γ(q) v; FD(q, v, tau)],  unit quaternions
    semi-implicit  v₁ = v₀ + h FD(q₀, v₀, tau),  q₁ = q₀ ∘ exp(h v₁)
    midpoint       the implicit rule of `simulate.integrators.midpoint`, by four Newton iterations; small models

and iterated by `kernels.iterate`. Torques are a table (held over each step), a PD law evaluated inside the step, or
none; for those no Python runs between steps. Any other policy is called once a step on the whole batch. Models with
loops end each step on them (`loop_steps`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from polybody.algebra.domains import FLOAT, domain
from polybody.errors import InputError, warn
from polybody.formulations import denoc
from polybody.interrupts import interruptible
from polybody.mechanism import kinematics
from polybody.mechanism.saturation import drive_limits, saturated
from polybody.model.arguments import as_model, finite, float_array, precision, state_array
from polybody.model.batches import first_state, in_pieces
from polybody.model.configurations import require_unit
from polybody.model.model import Model
from polybody.model.tracing import Recorded
from polybody.model.wrenches import checked
from polybody.names import counted
from polybody.quantities.frames import find_frame
from polybody.quantities.shortest import forward_dynamics
from polybody.simulation.arguments import positive, require_motion
from polybody.simulation.compiled.field import unit
from polybody.simulation.constrained_motion import ConstrainedMotion, constrained_engine
from polybody.simulation.controllers import PD
from polybody.simulation.integrators.midpoint import residual_function
from polybody.simulation.loop_steps import LoopSteps, numeric_step
from polybody.simulation.rollout_steps import rk4_step

Array = np.ndarray
METHODS = ("rk4", "semi-implicit", "midpoint")
NEWTON_ITERATIONS = 4
MIDPOINT_UP_TO = 8  # degrees of freedom: its Newton iterations are solved in straight-line code


class Rollout(NamedTuple):
    """States after each step: t (steps,), q (..., steps, nq), v (..., steps, nv); keep="last" drops that axis."""

    t: Array
    q: Array
    v: Array


@interruptible
def rollout(
    model: Model,
    q0: Any,
    v0: Any,
    tau: Any = None,
    steps: int | None = None,
    dt: float = 1e-3,
    *,
    method: str = "rk4",
    keep: str = "all",
    parameters: Any = None,
    efforts: str = "ignore",
    wrenches: Mapping[str, Any] | None = None,
) -> Rollout:
    """Advance a batch of states (..., nq), (..., nv) by `steps` steps of `dt` seconds.

    `tau` is None; a constant (nv,); a table (..., steps, nv), one row per step, whose leading dimensions broadcast with
    the states; a `pb.PD`; or any policy(t, q, v) -> (..., nv), called once per step. Joint limits are not enforced.
    `keep` is "all" states or the "last" one. `steps` defaults to the length of the table. "rk4" and "semi-implicit"
    keep loops closed in position and velocity; states near singular configurations are stepped one by one, with a
    warning. `parameters`, (k,) or (..., k), are values of the parameters of `model.with_parameters`; their leading
    dimensions broadcast with the states. Friction is the regularised one, contact acts. `efforts="saturate"` bounds the
    torques by the effort, power and velocity limits of joints as `pb.simulate` does; by default they are ignored.
    `wrenches` maps frames to constant wrenches [moment; force], (6,) or (..., 6), at their origins in world axes; their
    leading dimensions broadcast with the states.

    If q0 and v0 are float32 arrays, states are computed (with loops or a policy: returned) in float32.
    """
    model = as_model("rollout", model)
    require_motion(model)
    if method not in METHODS:
        raise InputError(f"no rollout method {method!r}; available: {', '.join(METHODS)}")
    if keep not in ("all", "last"):
        raise InputError(f"keep is {keep!r}; expected 'all' or 'last'")
    if method == "midpoint" and model.nv > MIDPOINT_UP_TO:
        raise InputError(f"midpoint rollouts take up to {MIDPOINT_UP_TO} degrees of freedom, this model has {model.nv}")
    if method == "midpoint" and model.mechanism.constrained:
        raise InputError("midpoint rollouts do not keep loops; use method='rk4' or 'semi-implicit'")
    if efforts not in ("ignore", "saturate"):
        raise InputError(f"efforts is {efforts!r}; expected 'ignore' or 'saturate'")
    h = positive("dt", dt)
    q, v = _states(model, q0, v0)
    values = None if parameters is None else model.parameters.checked(parameters)
    given = checked(model.mechanism, wrenches, True)
    frames, loads = tuple(frame.name for frame, _ in given), [load for _, load in given]
    law, constants, table, steps = _law(model, tau, steps, h)
    if law is None:
        held = _loaded(model, _limited(model, _held(model.nv), efforts), frames)
        x = _wide(_joined([q, v]), values, loads)
        found = _by_policy(model, x, tau, held, steps, h, method, keep, values, _joined(loads))
        return Rollout(found.t, *(part.astype(precision((q0, v0)), copy=False) for part in (found.q, found.v)))
    dtype = precision((q0, v0))
    law, constants = _loaded(model, _limited(model, law, efforts), frames), _joined([constants, *loads])
    if model.mechanism.constrained:
        x = _wide(_joined([q, v]), values, loads)
        states = _Advance(model, law, method, x, keep == "all", values)(x, constants, table, steps, h)
        states = states.astype(dtype, copy=False)
    else:
        advance = _Advance(model, law, method, None, keep == "all", values)
        states = advance.in_pieces(q, v, constants, table, steps, h, dtype)
    times = h * np.arange(1, steps + 1)
    return Rollout(times if keep == "all" else times[-1:], states[..., : model.nq], states[..., model.nq :])


class Law(NamedTuple):
    """How torques come about inside the step: a name, the sizes of its constants and of a table's row, and its text."""

    name: str
    constants: int
    table: int
    text: Callable[..., Array]  # (mechanism, q, v, constants, row, domain) -> tau


def _held(nv: int) -> Law:
    """Torques of a table, held over each step."""
    return Law("table", 0, nv, lambda m, q, v, c, u, domain: u)


def _limited(model: Model, law: Law, efforts: str) -> Law:
    """The law with its torques bounded by what the drives can give, where that is asked for."""
    limits = drive_limits(model.mechanism)
    if efforts == "ignore" or not limits.any:
        return law

    def text(m: Any, q: Array, v: Array, c: Array, u: Array, domain: Any) -> Array:
        return saturated(limits, law.text(m, q, v, c, u, domain), v, domain=domain)

    return law._replace(name=f"{law.name} saturated", text=text)


def _loaded(model: Model, law: Law, frames: tuple[str, ...]) -> Law:
    """The law with Σ Jᵀ w of constant wrenches at frames added, after what bounds the drives."""
    if not frames:
        return law

    def text(m: Any, q: Array, v: Array, c: Array, u: Array, domain: Any) -> Array:
        # graphs are made of the reduced mechanism, which moves alike but has frames of its own
        whole = m if domain is FLOAT else model.engine.traced_mechanism
        tau = law.text(m, q, v, c[: law.constants], u, domain)
        for k, name in enumerate(frames):
            J = kinematics.frame_jacobian(whole, q, find_frame(whole, name), domain=domain)
            start = law.constants + 6 * k
            tau = tau + J.T @ c[start : start + 6]
        return tau

    return Law(f"{law.name} loaded at {' '.join(frames)}", law.constants + 6 * len(frames), law.table, text)


def _joined(parts: list[Array]) -> Array:
    """Constants of laws side by side, their leading dimensions broadcast."""
    lead = np.broadcast_shapes(*(part.shape[:-1] for part in parts)) if parts else ()
    return np.concatenate([np.zeros((*lead, 0)), *(np.broadcast_to(x, (*lead, x.shape[-1])) for x in parts)], axis=-1)


def _law(model: Model, tau: Any, steps: int | None, h: float) -> tuple[Law | None, Array, Array | None, int]:
    """(law, its constants, its table, steps); no law for a policy in Python."""
    none = np.zeros(0)
    if isinstance(tau, PD) and not (tau.gravity and model.mechanism.constrained):  # held at active joints: a policy
        return _pd_law(model, tau, _count(steps, None), h)
    if callable(tau):
        return None, none, None, _count(steps, None)
    if tau is None:
        return Law("free", 0, 0, lambda m, q, v, c, u, domain: domain.zeros(m.nv)), none, None, _count(steps, None)
    values = float_array("tau", tau)
    if values.ndim == 0 or values.shape[-1] != model.nv:
        raise InputError(f"tau has shape {values.shape}; expected ({model.nv},) or (..., steps, {model.nv})")
    if values.ndim == 1:
        return Law("constant", model.nv, 0, lambda m, q, v, c, u, domain: c), values, None, _count(steps, None)
    if not values.shape[-2]:
        raise InputError(f"tau is a table without rows, {values.shape}; expected at least one step")
    count = _count(steps, values.shape[-2])
    if values.shape[-2] != count:
        raise InputError(
            f"tau has {values.shape[-2]} rows for {counted(count, 'step')}; expected shape (..., {count}, {model.nv})"
        )
    return _held(model.nv), none, np.ascontiguousarray(values), count


def _count(steps: int | None, rows: int | None) -> int:
    if steps is None:
        if rows is None:
            raise InputError("steps is not given, and tau is not a table that would say how many there are")
        return rows
    if int(steps) != steps or steps < 1:
        raise InputError(f"steps is {steps!r}; expected a whole number of at least 1")
    return int(steps)


def _pd_law(model: Model, law: PD, steps: int, h: float) -> tuple[Law, Array, Array | None, int]:
    """PD inside the step: a fixed target is a constant, a path a table of targets at the beginnings of the steps."""
    nq, nv = model.nq, model.nv
    lead = np.broadcast_shapes(*(x.shape[:-1] for x in (law.kp, law.kd, *([] if law.target is None else [law.target]))))
    wide = lambda x: np.broadcast_to(x, (*lead, x.shape[-1]))  # noqa: E731
    gains = np.concatenate([wide(law.kp), wide(law.kd)], axis=-1)

    def text(m: Any, q: Array, v: Array, c: Array, u: Array, domain: Any) -> Array:
        kp, kd = c[:nv], c[nv : 2 * nv]
        goal, speed = (u[:nq], u[nq:]) if law.path is not None else (c[2 * nv :], None)
        pull = kinematics.difference(m, q, goal, domain=domain) * kp
        tau = pull + ((speed - v) if speed is not None else -v) * kd
        return tau + denoc.gravity_forces(m, q, domain=domain) if law.gravity else tau

    name = f"pd{' along a path' if law.path else ''}{' with gravity' if law.gravity else ''}"
    if law.path is None:
        assert law.target is not None
        return Law(name, 2 * nv + nq, 0, text), np.concatenate([gains, wide(law.target)], axis=-1), None, steps
    q, v, _ = law.path(h * np.arange(steps))
    return Law(name, 2 * nv, nq + nv, text), gains, np.concatenate([q, v], axis=-1), steps


def _states(model: Model, q0: Any, v0: Any) -> list[Array]:
    parts = []
    for name, values, size in (("q0", q0, model.nq), ("v0", v0, model.nv)):
        parts.append(finite(name, state_array(name, values, size)))
    require_unit(model.mechanism, "q0", parts[0])
    return parts


def _wide(x: Array, parameters: Array | None, loads: list[Array]) -> Array:
    """States for every set of parameters and of wrenches."""
    more = [*([] if parameters is None else [parameters]), *loads]
    return np.broadcast_to(x, (*np.broadcast_shapes(x.shape[:-1], *(y.shape[:-1] for y in more)), x.shape[-1]))


class _Advance:
    """Steps of one model under one law, compiled; with loops, doubtful states are stepped again by numbers."""

    def __init__(
        self, model: Model, law: Law, method: str, x: Array | None, every: bool, parameters: Array | None = None
    ) -> None:
        self.model, self.law, self.method, self.every = model, law, method, every
        self.loops: LoopSteps | None = None
        self.parameters = parameters
        #: values of the model's parameters, after the law's constants: (..., k) or none
        self.given = model.engine.source.given(parameters)
        if not model.mechanism.constrained:
            model.engine.require_dynamics(model.neutral(), np.zeros(model.nv))  # what cannot move says so
            return
        assert x is not None
        q, v = x[..., : model.nq], x[..., model.nq :]
        if parameters is None:
            model.engine.require_dynamics(q, v)
        else:
            model.forward_dynamics(q, v, np.zeros(model.nv), parameters=parameters)
        self.loops = LoopSteps(self._model_of(()), q)

    def _model_of(self, index: tuple[int, ...]) -> Model:
        """The model of one state of the batch, or of the first."""
        if self.parameters is None:
            return self.model
        values = self.parameters
        return self.model.parameters.at(values[index] if index else first_state(values))

    def in_pieces(
        self, q: Array, v: Array, constants: Array, table: Array | None, steps: int, h: float, dtype: Any
    ) -> Array:
        """As a call, of a tree: states, and what they are made of, are joined piece by piece."""
        rows = [] if table is None else [table.reshape(*table.shape[:-2], -1)]

        def answer(some: Sequence[Array]) -> Array:
            q, v, constants, *rest = some
            given, u = (rest, None) if table is None else (rest[:-1], rest[-1])
            u = None if u is None else u.reshape(*u.shape[:-1], steps, -1)
            return self(_joined([q, v]).astype(dtype, copy=False), constants, u, steps, h, given)

        cost = 8 * (q.shape[-1] + v.shape[-1]) * (2 + (steps if self.every else 1))
        return in_pieces(answer, [q, v, constants, *self.given, *rows], cost)

    def __call__(
        self, x: Array, constants: Array, table: Array | None, steps: int, h: float,
        given: Sequence[Array] | None = None,
    ) -> Array:  # fmt: skip
        """States after the steps, (..., steps, nq + nv) or the last; table (..., steps, n)."""
        parts = [np.array([h]), constants, *(self.given if given is None else given)]
        wide = np.broadcast_shapes(*(part.shape[:-1] for part in parts))
        arguments = [x, np.concatenate([np.broadcast_to(p, (*wide, p.shape[-1])) for p in parts], axis=-1)]
        if table is not None:
            arguments.append(table.reshape(*table.shape[:-2], -1))
        if self.loops is None:
            return self._kernel(steps, x.dtype.type)(*(argument.astype(x.dtype, copy=False) for argument in arguments))
        size = x.shape[-1]
        lead = np.broadcast_shapes(*(argument.shape[:-1] for argument in arguments))
        if self.loops.plan is None:
            states, doubtful = np.empty((*lead, *((steps,) if self.every else ()), size)), np.ones(lead, dtype=bool)
        else:
            arguments[0] = np.concatenate([x, np.zeros((*x.shape[:-1], 1))], axis=-1)
            found = self._kernel(steps)(*arguments)
            states, last = found[..., :size].copy(), found[..., -1, :] if self.every else found
            doubtful = ~((last[..., -1] < self.loops.limit) & np.isfinite(last).all(axis=-1))
        if np.any(doubtful):
            self._by_numbers(states, doubtful, x, constants, table, steps, h)
        return states

    def _by_numbers(
        self, states: Array, doubtful: Array, x: Array, constants: Array, table: Array | None, steps: int, h: float
    ) -> None:
        """Step the doubtful states again, in place."""
        model, lead = self.model, doubtful.shape
        wide_x = np.broadcast_to(x, (*lead, x.shape[-1]))
        wide_c = np.broadcast_to(constants, (*lead, constants.shape[-1]))
        wide_u = None if table is None else np.broadcast_to(table, (*lead, *table.shape[-2:]))
        marked = [tuple(int(k) for k in index) for index in np.argwhere(doubtful)]
        if self.loops is not None and self.loops.plan is not None:
            where = f" (first: state {', '.join(map(str, marked[0]))})" if marked[0] else ""
            warn(
                f"{len(marked)} of {max(doubtful.size, 1)} states come near singular configurations{where}; they are "
                "stepped one by one"
            )
        if self.parameters is not None:
            self.parameters = np.broadcast_to(self.parameters, (*lead, self.parameters.shape[-1]))
        for index in marked:
            own = self._model_of(index)
            motion = ConstrainedMotion(constrained_engine(own))
            q, v = wide_x[index][: model.nq], wide_x[index][model.nq :]
            for k in range(steps):
                u = None if wide_u is None else wide_u[index][k]

                def tau(q: Array, v: Array, index: Any = index, u: Any = u, own: Model = own) -> Array:
                    return self.law.text(own.mechanism, q, v, wide_c[index], u, FLOAT)

                q, v = numeric_step(own, motion, self.method, q, v, h, tau)
                if self.every:
                    states[(*index, k)] = np.concatenate([q, v])
            if not self.every:
                states[index] = np.concatenate([q, v])

    def _kernel(self, steps: int, dtype: type[np.floating] = np.float64) -> Any:
        model, law, loops = self.model, self.law, self.loops
        count = sum(size for _, size in model.engine.source.inputs)
        sizes = (model.nq + model.nv + (loops is not None), 1 + law.constants + count, law.table)
        name = f"rollout {self.method} {law.name}{f' loops {loops.label}' if loops else ''}"
        make = lambda: step_function(model, law, self.method, loops)  # noqa: E731
        return model.engine.iterate(name, sizes, steps, make, self.every, dtype)


def step_function(model: Model, law: Law, method: str, loops: LoopSteps | None = None) -> Any:
    """Function (x, p[, u]) -> x after one step, traced; with loops x ends with the growth.

    p = [h, constants of the law, parameters of the model].
    """
    import casadi

    m = model.engine.reduced_mechanism
    graph: Any = domain("casadi") if loops is None else model.engine.constraints.graph
    count = sum(column.shape[0] for column in m.symbols)
    sizes = {"x": m.nq + m.nv + (loops is not None), "p": 1 + law.constants + count, "u": law.table}
    made = {name: graph.variables(name, size) for name, size in sizes.items() if size}
    if loops is not None:
        made["x"] = graph.stacked(("q", m.nq), ("v", m.nv), ("x", 1))
    x, p = made["x"][1], made["p"][1]
    u = made["u"][1] if "u" in made else None
    q, v, h, constants = x[: m.nq], x[m.nq : m.nq + m.nv], p[0], p[1 : 1 + law.constants]
    if loops is not None:
        q, v = graph.variables("q", m.nq)[1], graph.variables("v", m.nv)[1]

    def tau(q: Array, v: Array) -> Array:
        return law.text(m, q, v, constants, u, graph)

    def accelerated(q: Array, v: Array) -> Array:
        force = tau(q, v)
        if loops is not None:
            return loops.acceleration(q, v, force, graph)
        return forward_dynamics(m, q, v, force, domain=graph)

    columns = [column for column, _ in made.values()]
    if method == "rk4":
        known, at = [], 1 + law.constants
        for symbols in m.symbols:
            known.append((symbols, made["p"][0][at : at + symbols.shape[0]]))
            at += symbols.shape[0]
        still = unit(m, q, graph)  # as `simulate` reads its stages
        rate = np.concatenate([kinematics.rate(m, still, v, domain=graph), accelerated(still, v)])
        ended = [still, v] if loops is None else loops.returned(still, v, x[-1], graph)
        stage, finish = (Recorded("step", columns, [x], known) for x in (rate, np.concatenate(ended)))
        return rk4_step(stage, finish, m.nq + m.nv)
    if method == "midpoint":
        new = _midpoint(m, made, tau, graph)
    else:
        parts = _semi_implicit(m, q, v, h, accelerated, graph)
        parts = parts if loops is None else loops.returned(*parts, x[-1], graph)
        if not count:
            return Recorded("step", columns, [np.concatenate(parts)])
        new = graph.column(np.concatenate(parts))
    whole = casadi.Function("step", [*columns, *m.symbols], [new])
    if not count:
        return whole
    return casadi.Function("step", columns, whole.call([*columns, made["p"][0][1 + law.constants :]]))


def _semi_implicit(
    m: Any, q: Array, v: Array, h: Any, accelerated: Any, graph: Any
) -> tuple[Array, ...]:
    faster = v + accelerated(q, v) * h
    return kinematics.integrate(m, q, faster * h, domain=graph), faster


def _midpoint(m: Any, made: dict[str, Any], tau: Any, graph: Any) -> Any:
    import casadi

    x, p = made["x"][0], made["p"][0]
    q, v, h = x[: m.nq], x[m.nq :], p[0]
    residual_of = residual_function(m)
    residual = lambda *given: residual_of(*given, *m.symbols)  # noqa: E731
    (q_in, q_nodes), (v_in, v_nodes) = graph.variables("q", m.nq), graph.variables("v", m.nv)
    (h_in, h_nodes) = graph.variables("h", 1)
    M = graph.column(denoc.mass_matrix(m, q_nodes, domain=graph))
    mass_of = casadi.Function("mass", [q_in, *m.symbols], [casadi.reshape(M, m.nv, m.nv)])
    mass = lambda q: mass_of(q, *m.symbols)  # noqa: E731
    moved = graph.column(kinematics.integrate(m, q_nodes, v_nodes * h_nodes[0], domain=graph))
    integrate = casadi.Function("integrate", [q_in, v_in, h_in], [moved])
    rest = [*(c for n, (c, _) in made.items() if n != "x"), *m.symbols]
    torque = casadi.Function("torque", [x, *rest], [graph.column(tau(made["x"][1][: m.nq], made["x"][1][m.nq :]))])
    momentum = mass(q) @ v
    u = v
    for _ in range(NEWTON_ITERATIONS):
        force = torque(casadi.vertcat(integrate(q, u, h / 2), u), *rest)
        r, jacobian, _ = residual(q, momentum, u, force, h)
        u = u - casadi.solve(casadi.reshape(jacobian, m.nv, m.nv).T, r)
    q1 = integrate(q, u, h)
    middle = mass(integrate(q, u, h / 2)) @ u
    v1 = casadi.solve(mass(q1), 2 * middle - momentum)
    return casadi.densify(casadi.vertcat(q1, v1))


def _by_policy(
    model: Model, x: Array, policy: Callable[[float, Array, Array], Any], law: Law, steps: int, h: float, method: str,
    keep: str, parameters: Array | None, constants: Array,
) -> Rollout:  # fmt: skip
    """The policy's torques are held over each step."""
    advance = _Advance(model, law, method, x, False, parameters)
    lead = x.shape[:-1]
    # a step's states side by side: otherwise the first step would touch, and have the system zero, all of the memory
    kept = np.empty((steps, *x.shape)) if keep == "all" else None
    for k in range(steps):
        q, v = x[..., : model.nq].copy(), x[..., model.nq :].copy()
        torques = np.asarray(policy(k * h, q, v), dtype=float)
        if torques.shape not in ((*lead, model.nv), (model.nv,)):
            raise InputError(
                f"the policy returned shape {torques.shape} at t = {k * h:.9g} s; expected {(*lead, model.nv)}"
            )
        x = advance(x, constants, torques[..., None, :], 1, h)
        if kept is not None:
            kept[k] = x
    states = x if kept is None else np.moveaxis(kept, 0, -2)
    times = h * np.arange(1, steps + 1)
    return Rollout(times if keep == "all" else times[-1:], states[..., : model.nq], states[..., model.nq :])


__all__ = ["METHODS", "Rollout", "rollout", "step_function"]
