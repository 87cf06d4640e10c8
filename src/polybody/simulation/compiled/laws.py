"""Controllers as text over any domain (`law`): what a compiled field needs of them."""

from __future__ import annotations

from collections.abc import Callable
from math import factorial
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.algebra.domains import Domain
from polybody.constraints.plan import Plan
from polybody.description.records import as_data
from polybody.formulations import denoc
from polybody.mechanism import kinematics
from polybody.model.model import Model
from polybody.quantities.constrained import Closed, along_plan, drive_forces
from polybody.simulation.compiled.joint_space import joint_space
from polybody.simulation.compiled.law import Law, Planned, Signals, free
from polybody.simulation.controllers import kind_of, kinds_of
from polybody.simulation.controllers.sampling import Noisy, Quantised, Sampled
from polybody.simulation.failures import NotCompiled

if TYPE_CHECKING:
    from polybody.paths.path import PointToPoint, Spline
    from polybody.simulation.controllers import PD, Actuators, ComputedTorque, Given, GravityCompensation

Array = np.ndarray
#: (t, row, domain) -> (q, v, a) of a path
Motion = Callable[[Any, Array, Domain], tuple[Array, Array, Array]]


def law_of(model: Model, controller: Any, plan: Planned | None = None) -> Law:
    """The text of a controller, or `NotCompiled`; with loops read along `plan()`, or else the model's own plan."""
    if controller is None:
        return free()
    kind = kind_of(controller)
    if kind is None:
        return _traced(model, controller)
    from polybody.simulation.compiled.remembered import law_with_memory, maker_of

    remembering = maker_of(controller)
    if remembering is not None:
        try:
            if model.mechanism.constrained and _shows_open_loops(controller):
                raise NotCompiled("states that sensors show off the loops are put onto them in Python")
            return law_with_memory(remembering(model, controller, plan))
        except NotCompiled:
            if is_held(controller):
                return _held(model)
            raise
    make: Callable[..., Law] | None = LAWS.get(kind)
    if make is None:
        from polybody.simulation.compiled.task_laws import LAWS as TASK_LAWS

        make = TASK_LAWS.get(kind)
    if make is None:
        return _traced(model, controller)
    owner = getattr(controller, "model", model)
    if owner is not model and owner.mechanism is not model.mechanism:
        from polybody.simulation.compiled.own_numbers import of_own_numbers

        return of_own_numbers(model, controller, make)
    return make(model, controller, plan) if kind in HOLDING else make(model, controller)


def _traced(model: Model, controller: Any) -> Law:
    """A user's function, where it is an expression."""
    from polybody.simulation.compiled.tracing import key_of, samples_of, traced

    def shaped(answer: Any) -> Any:
        if np.shape(np.asarray(answer, dtype=object)) != (model.nv,):
            raise NotCompiled("the shape of what it returns")  # whoever calls it tells the user
        return answer

    try:
        function = traced(controller, (0, model.nq, model.nv), model.nv, samples_of(model), shaped)
    except NotCompiled as reason:
        raise NotCompiled(f"the controller is called in Python: {reason}") from None

    def text(m: Any, t: Any, q: Array, v: Array, c: Array, row: Array, domain: Any) -> Array:
        return domain.scalars(function(*(domain.column(x) for x in ([t], q, v))))

    return Law(f"traced {key_of(function)}", text, steady=not function.jac_sparsity(0, 0).nnz())


def _plan(model: Model, planned: Planned | None) -> Plan:
    engine: Any = model.engine
    return engine.plans.free(None) if planned is None else planned()


def _holding(model: Model, planned: Planned | None, q: Array, domain: Domain, m: Any, doubts: list[Any]) -> Array:
    """What holds the mechanism still against gravity; with loops the drives bear it, along the plan of elimination."""
    if not model.mechanism.constrained:
        return denoc.gravity_forces(joint_space(m), q, domain=domain)
    gravity = denoc.gravity_forces(m, q, domain=domain)
    engine: Any = model.engine
    plan = _plan(model, planned)
    closed = Closed(m, engine.constraints.traced, along_plan(plan), engine.drives.columns, engine.shares_of(plan))
    tau = drive_forces(closed, q, gravity, domain)
    doubts[:] = closed.growth
    return tau


def _require_holding(model: Model, planned: Planned | None) -> None:
    engine: Any = model.engine
    if model.mechanism.constrained and not (engine.plans.is_made and engine.can_hold(_plan(model, planned))):
        raise NotCompiled("the drives of the loops cannot hold every motion")


def _pd(model: Model, law: PD, planned: Planned | None = None) -> Law:
    nv = model.nv
    if law.gravity:
        _require_holding(model, planned)
    doubts: list[Any] = []
    key = f"pd{' with gravity' if law.gravity else ''}"
    gains = np.concatenate([law.kp, law.kd])
    if law.path is None:
        assert law.target is not None

        def still(m: Any, t: Any, q: Array, v: Array, c: Array, row: Array, domain: Domain) -> Array:
            tau = kinematics.difference(m, q, c[2 * nv :], domain=domain) * c[:nv] - v * c[nv : 2 * nv]
            return tau + _holding(model, planned, q, domain, m, doubts) if law.gravity else tau

        return Law(key, still, np.concatenate([gains, law.target]), doubts=doubts)
    name, motion, signals = motion_of(model, law.path, whole=True)

    def along(m: Any, t: Any, q: Array, v: Array, c: Array, row: Array, domain: Domain) -> Array:
        goal, speed, _ = motion(t, row, domain)
        tau = kinematics.difference(m, q, goal, domain=domain) * c[:nv] + (speed - v) * c[nv:]
        return tau + _holding(model, planned, q, domain, m, doubts) if law.gravity else tau

    return Law(f"{key} along {name}", along, gains, signals, doubts)


def _gravity(model: Model, law: GravityCompensation, planned: Planned | None = None) -> Law:
    _require_holding(model, planned)
    doubts: list[Any] = []

    def text(m: Any, t: Any, q: Array, v: Array, c: Array, row: Array, domain: Domain) -> Array:
        return _holding(model, planned, q, domain, m, doubts) - v * c

    return Law("gravity", text, law.kd, doubts=doubts)


def _computed(model: Model, law: ComputedTorque) -> Law:
    nv = model.nv
    name, motion, signals = motion_of(model, law.path)
    if model.mechanism.constrained:
        return _computed_with_loops(model, law, name, motion, signals)

    def text(m: Any, t: Any, q: Array, v: Array, c: Array, row: Array, domain: Domain) -> Array:
        goal, speed, acceleration = motion(t, row, domain)
        pull = kinematics.difference(m, q, goal, domain=domain) * c[:nv]
        wished = acceleration + pull + (speed - v) * c[nv:]
        return denoc.inverse_dynamics(joint_space(m), q, v, wished, domain=domain)

    return Law(f"computed torque along {name}", text, np.concatenate([law.kp, law.kd]), signals)


def _computed_with_loops(model: Model, law: ComputedTorque, name: str, motion: Motion, signals: Signals) -> Law:
    """The independent coordinates are steered, v and a of the others follow: v = G u̇, a = G ü + β."""
    from polybody.simulation.compiled.own_state import steered

    engine: Any = model.engine
    (u, plan, shares), doubts = steered(model), list[Any]()

    def text(m: Any, t: Any, q: Array, v: Array, c: Array, row: Array, domain: Domain) -> Array:
        goal, speed, acceleration = motion(t, row, domain)
        kp, kd = c[: model.nv], c[model.nv :]
        wished = acceleration + kinematics.difference(m, q, goal, domain=domain) * kp + (speed - v) * kd
        closed = Closed(m, engine.constraints.traced, along_plan(plan), engine.drives.columns, shares)
        found = closed.motions(q, domain)
        moved = found.G @ v[u]
        bend = found.follow(closed.system.bias(q, moved, domain=domain))
        tau = drive_forces(
            closed, q, denoc.inverse_dynamics(m, q, moved, found.G @ wished[u] + bend, domain=domain), domain
        )
        doubts[:] = [*closed.growth, found.growth]
        return tau

    key = f"computed torque of {u} along {plan.label} {shares.label if shares else None} {name}"
    return Law(key, text, np.concatenate([law.kp, law.kd]), signals, doubts)


def _given(model: Model, law: Given) -> Law:
    if law.table is None:
        return _of_time(model, law)
    if law.times is None:
        return Law("constant", lambda m, t, q, v, c, row, domain: c, law.table)
    nv, times, table = model.nv, law.times, law.table
    slopes = np.diff(table, axis=0) / np.diff(times)[:, None]
    still = np.zeros((1, nv))
    starts = np.concatenate([times[:1], times])[:, None]
    rows = np.concatenate([starts, np.concatenate([table[:1], table]), np.concatenate([still, slopes, still])], axis=1)
    breaks = np.concatenate([[-np.inf], times])

    def text(m: Any, t: Any, q: Array, v: Array, c: Array, row: Array, domain: Domain) -> Array:
        return row[1 : 1 + nv] + row[1 + nv :] * (t - row[0])

    return Law("table", text, signals=Signals(breaks, rows))


def _of_time(model: Model, law: Given) -> Law:
    """A user's function of time, where it is an expression."""
    from polybody.simulation.compiled.tracing import key_of, traced

    try:
        made = traced(law._function, (0,), model.nv, [(0.0,), (0.3,), (1.7,)])
    except NotCompiled as reason:
        raise NotCompiled(f"the torques are called in Python: {reason}") from None

    def text(m: Any, t: Any, q: Array, v: Array, c: Array, row: Array, domain: Any) -> Array:
        return domain.scalars(made(domain.column([t])))

    return Law(f"of time {key_of(made)}", text)


def _actuators(model: Model, law: Actuators) -> Law:
    key = f"actuators {as_data(law.records)}"
    if law.constant is not None:
        return Law(key, lambda m, t, q, v, c, row, domain: law.efforts(q, v, c, domain=domain), law.constant)
    from polybody.simulation.compiled.purity import impure
    from polybody.simulation.compiled.tracing import key_of, samples_of, traced

    reason = impure(law.function)
    try:
        if reason:
            raise NotCompiled(reason)
        made = traced(law.controls, (0, model.nq, model.nv), len(law.names), samples_of(model))
    except NotCompiled as reason:
        raise NotCompiled(f"the controls of actuators are called in Python: {reason}") from None

    def text(m: Any, t: Any, q: Array, v: Array, c: Array, row: Array, domain: Any) -> Array:
        u = domain.scalars(made(*(domain.column(x) for x in ([t], q, v))))
        return law.efforts(q, v, u, domain=domain)

    return Law(f"{key} {key_of(made)}", text)


def _held(model: Model) -> Law:
    """Forces that are held between a computer's instants; they are read anew at each (`Compiled.stretch`)."""
    return Law("constant", lambda m, t, q, v, c, row, domain: c, np.zeros(model.nv), held=True)


def _shows_open_loops(controller: Any, rough: bool = False) -> bool:
    """Whether sensors with noise or a resolution are around a law that puts what they show onto its loops."""
    if not hasattr(controller, "law"):
        plain = not type(controller).__module__.startswith("polybody") or not AS_IT_IS.isdisjoint(kinds_of(controller))
        return rough and not plain
    if rough and "DisturbanceObserver" in kinds_of(controller):
        return True
    wide = isinstance(controller, Quantised | Noisy) and bool(controller.position.any() or controller.velocity.any())
    return _shows_open_loops(controller.law, rough or wide)


def is_held(controller: Any) -> bool:
    """Whether a controller's forces change at its instants only."""
    if "DisturbanceObserver" in kinds_of(controller):
        plain = not len(controller.model.constraints) and controller.model.actuation.active.all()
        return is_held(controller.law) and bool(plain or not controller.compensate)
    return isinstance(controller, Sampled) or (isinstance(controller, Quantised | Noisy) and is_held(controller.law))


#: by the names of their classes, of which a run imports its own only
LAWS: dict[str, Callable[..., Law]] = {
    "PD": _pd, "GravityCompensation": _gravity, "ComputedTorque": _computed, "Given": _given, "Actuators": _actuators,
}
#: laws that take a state as it is, on the loops of their model or not
AS_IT_IS = frozenset({"PD", "GravityCompensation", "Given", "Actuators", "Stateful"})
HOLDING = ("PD", "GravityCompensation")  # whose texts are read along the plan of the motion that they drive


def motion_of(model: Model, path: Any, *, whole: bool = False) -> tuple[str, Motion, Signals]:
    """(name, motion, table) of a path; with loops of its independent joints only, unless it is wanted `whole`."""
    from polybody.paths.path import PointToPoint, Spline
    from polybody.simulation.compiled.path_tables import tabulated

    if hasattr(path, "motion") and hasattr(path, "signals"):  # by numbers at given stages (`stage_control`)
        return "tabulated", path.motion, path.signals
    if not isinstance(path, PointToPoint | Spline):
        return _traced_path(model, path)
    if (path.model.nq, path.model.nv) != (model.nq, model.nv):
        raise NotCompiled("the path is that of another model, with other coordinates")
    if whole and path.model.mechanism.constrained:
        return tabulated(path.model, path)
    if isinstance(path, PointToPoint):
        return _point_to_point(path)
    if all(joint.model.rates_are_velocities for joint in path.model.mechanism.independent_joints):
        return _spline(path)
    return tabulated(path.model, path)


def _traced_path(model: Model, path: Any) -> tuple[str, Motion, Signals]:
    """A user's path, where it is an expression of time."""
    from polybody.simulation.compiled.purity import impure
    from polybody.simulation.compiled.tracing import key_of, traced

    nq, nv, reason = model.nq, model.nv, impure(path)
    if reason:
        raise NotCompiled(f"the path is called in Python: {reason}")
    try:
        whole = lambda t: np.concatenate([np.asarray(x) for x in path(t)])  # noqa: E731
        made = traced(whole, (0,), nq + 2 * nv, [(0.0,), (0.3,), (1.7,)])
    except NotCompiled as reason:
        raise NotCompiled(f"the path is called in Python: {reason}") from None

    def motion(t: Any, row: Array, domain: Any) -> tuple[Array, Array, Array]:
        found = domain.scalars(made(domain.column([t])))
        return found[:nq], found[nq : nq + nv], found[nq + nv :]

    return f"traced {key_of(made)}", motion, Signals()


def _point_to_point(path: PointToPoint) -> tuple[str, Motion, Signals]:
    nq, m = path.model.nq, path.model.mechanism
    if not hasattr(path.law, "text"):
        raise NotCompiled("the path's time law is a function in Python")
    profile: Any = path.law
    facts = np.concatenate([path.q0, path.direction, profile.numbers])

    def motion(t: Any, row: Array, domain: Domain) -> tuple[Array, Array, Array]:
        q0, d = row[:nq], row[nq : nq + m.nv]
        s, ds, dds = profile.text(t, row[nq + m.nv :], domain)
        return kinematics.integrate(m, q0, d * s, domain=domain), d * ds, d * dds

    return profile.name, motion, Signals(np.zeros(1), facts[None])


def _spline(path: Spline) -> tuple[str, Motion, Signals]:
    order, nq, knots = int(path._spline.k), path.model.nq, np.unique(path._spline.t)
    starts = knots[(knots >= path.start) & (knots < path.end)]
    powers = range(order, -1, -1)  # Taylor's coefficients of every piece, the highest power first
    coefficients = np.array([path._spline(starts, p) / factorial(p) for p in powers])  # (order + 1, pieces, nq)
    count = len(starts)
    still = np.zeros((order + 1, 2, nq))
    still[-1] = path._spline(np.array([path.start, path.end]))
    table = np.concatenate([still[:, :1], coefficients, still[:, 1:]], axis=1)
    begins = np.concatenate([[path.start], starts, [path.end]])
    rows = np.concatenate([begins[:, None], np.moveaxis(table, 1, 0).reshape(count + 2, -1)], axis=1)
    breaks = np.concatenate([[-np.inf], starts, [np.nextafter(path.end, np.inf)]])

    def motion(t: Any, row: Array, domain: Domain) -> tuple[Array, Array, Array]:
        x, c = t - row[0], row[1:].reshape(order + 1, nq)
        found = []
        for k in range(3):
            total = c[0] * domain.const(_falling(order, k))
            for p in range(1, order + 1 - k):
                total = total * x + c[p] * domain.const(_falling(order - p, k))
            found.append(total)
        return found[0], found[1], found[2]

    return f"spline of order {order}", motion, Signals(breaks, rows)


def _falling(n: int, k: int) -> float:
    """n (n−1) … (n−k+1)."""
    return float(np.prod([n - i for i in range(k)], initial=1.0))


__all__ = ["is_held", "law_of", "motion_of"]
