"""Controllers of frames and outputs as text: each is its class in `simulation.controllers`, over any domain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from polybody.algebra.domains import Domain, domain
from polybody.mechanism import kinematics
from polybody.model.model import Model
from polybody.simulation.compiled.frame_texts import TIMES, FrameText
from polybody.simulation.compiled.law import Law, Signals, Solved
from polybody.simulation.compiled.own_state import Own, OwnState, Shape
from polybody.simulation.compiled.purity import impure
from polybody.simulation.compiled.tracing import key_of, samples_of, traced
from polybody.simulation.controllers import (
    FeedbackLinearisation,
    HybridForcePosition,
    Impedance,
    OperationalSpace,
    ResolvedAcceleration,
    ResolvedRate,
)
from polybody.simulation.controllers.resolved import Resolving
from polybody.simulation.failures import NotCompiled

Array = np.ndarray
#: (own state, J, J̇v, (error, speed, acceleration), t, constants) -> tau
Steered = Callable[..., Array]


def _framed(model: Model, motion: Any, key: str, numbers: list[Any], steer: Steered) -> Law:
    """The law of a frame: `steer` gets the state, the task and the constants `numbers`."""
    own, frame = Own(model), FrameText(model, motion)
    shape = own.frame_shape(motion.name, frame.size)
    doubts: list[Any] = []
    solved: list[Solved] = []
    count = len(frame.constants)

    def text(m: Any, t: Any, q: Array, v: Array, c: Array, row: Array, domain: Domain) -> Array:
        doubts.clear()
        state = own.at(m, q, v, doubts, domain)
        J, drift = frame.jacobian(m, q, state.v, domain)
        goal = frame.wanted(m, t, q, c[:count], row, domain)
        tau = steer(state, shape, J, drift, goal, t, c[count:])
        solved[:] = state.solved_dynamics()
        return tau

    constants = np.concatenate([frame.constants, *(np.ravel(np.asarray(x, dtype=float)) for x in numbers)])
    name = f"{key} {own.key} {frame.key} {shape.key}"
    return Law(name, text, constants, frame.signals, doubts, True, solved=solved)


def _operational(model: Model, law: OperationalSpace) -> Law:
    def steer(s: OwnState, shape: Shape, J: Array, drift: Array, goal: Any, t: Any, c: Array) -> Array:
        error, speed, acceleration = goal
        wanted = acceleration + (speed - J @ s.v) * c[1] + error * c[0]
        return s.task_forces(shape, J, drift, wanted, s.u * -c[2])

    return _framed(model, law.motion, "operational", [law.kp, law.kd, law.null_damping], steer)


def _impedance(model: Model, law: Impedance) -> Law:
    n = law.motion.size
    measured, key = measured_text(model, law.force)

    def steer(s: OwnState, shape: Shape, J: Array, drift: Array, goal: Any, t: Any, c: Array) -> Array:
        error, speed, acceleration = goal
        K, D, inverse = (c[1 + k * n * n : 1 + (k + 1) * n * n].reshape(n, n) for k in range(3))
        pull, load = K @ error + D @ (speed - J @ s.v), None
        if measured is None:
            own = s.carried(J)
            wanted = acceleration + own @ (s.solve(own.T) @ pull)
        else:
            wrench = measured(t, s.q, s.v, s.domain)
            wanted = acceleration + inverse @ (pull + wrench[-n:])
            load = kinematics.frame_jacobian(s.m, s.q, frame, domain=s.domain).T @ wrench
        return s.task_forces(shape, J, drift, wanted, s.u * -c[0], load)

    frame = FrameText(model, law.motion).frame
    inverse = np.eye(n) if law.M is None else np.linalg.inv(law.M)
    return _framed(model, law.motion, f"impedance {key}", [law.null_damping, law.K, law.D, inverse], steer)


def _hybrid(model: Model, law: HybridForcePosition) -> Law:
    n = law.motion.size
    measured, key = measured_text(model, law.force)
    fixed = law.fixed
    push = None if fixed is not None else _called("wrench", law.wrench, (0,), 6, TIMES)
    key = f"hybrid {key} {None if push is None else key_of(push)}"

    def steer(s: OwnState, shape: Shape, J: Array, drift: Array, goal: Any, t: Any, c: Array) -> Array:
        error, speed, acceleration = goal
        graph: Any = s.domain
        kp, kd, kf, slow, null = c[:5]
        touching = c[11:].reshape(n, n)
        wanted = acceleration + (speed - J @ s.v) * kd + error * kp
        force = c[5:11] if push is None else graph.scalars(push(graph.column([t])))
        if measured is not None:
            force = force + (force - measured(t, s.q, s.v, graph)) * kf
        force = touching @ (force[-n:] - (J @ s.v) * slow)
        own = s.carried(J)
        wanted = wanted - touching @ wanted + own @ s.solve(own.T @ force)
        return s.task_forces(shape, J, drift, wanted, s.u * -null)

    numbers = [law.kp, law.kd, law.kf, law.contact_damping, law.null_damping, np.zeros(6) if fixed is None else fixed]
    return _framed(model, law.motion, key, [*numbers, law.touching], steer)


def _resolved_rate(model: Model, law: ResolvedRate) -> Law:
    r = law.resolving
    wish, key = _wish(model, r)

    def steer(s: OwnState, shape: Shape, J: Array, drift: Array, goal: Any, t: Any, c: Array) -> Array:
        error, speed, _ = goal
        wanted, damping = speed + error * c[0], c[2] if r.damping else None
        liking = wish(s, c[4:]) * c[3]
        if s.own.driven:
            own = s.carried(J)
            rate = liking + s.inverse(shape, own, wanted - own @ liking, damping)
            return s.forces((rate - s.u) * c[1])
        own = s.shared(s.borne(s.carried(J).T)).T  # J_g
        active = s.own.active
        aside = (liking - s.u)[active] if s.G is None else s.G[active] @ (liking - s.u)
        rate = aside + s.inverse(shape, own, wanted - J @ s.v - own @ aside, damping)
        return s.exerted(s.steered(rate[[active.index(k) for k in s.own.pushing]] * c[1])[0])

    return _framed(model, r.motion, f"resolved rate {key}", [law.gain, law.rate_gain, *_numbers(r)], steer)


def _resolved_acceleration(model: Model, law: ResolvedAcceleration) -> Law:
    r = law.resolving
    wish, key = _wish(model, r)

    def steer(s: OwnState, shape: Shape, J: Array, drift: Array, goal: Any, t: Any, c: Array) -> Array:
        error, speed, acceleration = goal
        wanted = acceleration + (speed - J @ s.v) * c[1] + error * c[0]
        rest = (wish(s, c[4:]) - s.u * s.domain.const(2)) * c[3]
        if not s.own.driven:
            return s.task_forces(shape, J, drift, wanted, rest)
        own, damping = s.carried(J), c[2] if r.damping else None
        gap = wanted - (J @ s.joint_acceleration(rest) + drift)
        return s.forces(rest + s.inverse(shape, own, gap, damping))

    return _framed(model, r.motion, f"resolved acceleration {key}", [law.kp, law.kd, *_numbers(r)], steer)


def _numbers(r: Resolving) -> list[Any]:
    return [r.damping, r.null_gain, np.zeros(0) if r.rest is None else r.rest]


def _wish(model: Model, r: Resolving) -> tuple[Callable[[OwnState, Array], Array], str]:
    """(where the rest of the motion would like to go, own coordinates; what distinguishes it from others)."""
    key = f"{bool(r.damping)}"
    if r.posture is None:
        return lambda s, c: s.domain.zeros(len(s.own.u)), key
    if r.rest is not None:
        return lambda s, c: kinematics.difference(s.m, s.q, c, domain=s.domain)[s.own.u], f"{key} posture"
    samples = [(q,) for _, q, _ in samples_of(model)]
    made = _called("posture", r.posture, (model.nq,), model.nv, samples)

    def wish(s: OwnState, c: Array) -> Array:
        graph: Any = s.domain
        return graph.scalars(made(graph.column(s.q)))[s.own.u]

    return wish, f"{key} {key_of(made)}"


def _called(what: str, function: Any, sizes: tuple[int, ...], result: int, samples: Any) -> Any:
    """A user's function as a casadi.Function, or `NotCompiled`."""
    try:
        return traced(function, sizes, result, samples)
    except NotCompiled as reason:
        raise NotCompiled(f"the controller's {what} is called in Python: {reason}") from None


def measured_text(model: Model, force: Any) -> tuple[Any, str]:
    """(the measured wrench as text of (t, q, v, domain), or None; what distinguishes it from others)."""
    if force is None:
        return None, "blind"
    made = _called("force", force, (0, model.nq, model.nv), 6, samples_of(model))

    def text(t: Any, q: Array, v: Array, domain: Any) -> Array:
        return domain.scalars(made(*(domain.column(x) for x in ([t], q, v))))

    return text, key_of(made)


def _linearising(model: Model, law: FeedbackLinearisation) -> Law:
    own, size = Own(model), law.size
    outputs = _outputs(model, law)
    samples = [np.concatenate([f.coefficients(model, q, 1)[0] for f in law.outputs]) for q in own.places]
    shape = own.shape(samples)
    doubts: list[Any] = []
    aim = None if law.fixed is not None else _aim(law)

    def text(m: Any, t: Any, q: Array, v: Array, c: Array, row: Array, domain: Any) -> Array:
        doubts.clear()
        s = own.at(m, q, v, doubts, domain)
        y, G, drift = (domain.scalars(x) for x in outputs(domain.column(q), domain.column(s.v)))
        G = G.reshape(size, m.nv)
        goal = np.concatenate([c[2 * size + 1 :], domain.zeros(2 * size)])
        goal = goal if aim is None else domain.scalars(aim(domain.column([t])))
        at, speed, acceleration = (goal[k * size : (k + 1) * size] for k in range(3))
        wanted = acceleration + (speed - G @ s.v) * c[size : 2 * size] + (at - y) * c[:size]
        return s.task_forces(shape, G, drift, wanted, s.u * -c[2 * size])

    fixed = np.zeros(0) if law.fixed is None else law.fixed
    constants = np.concatenate([law.kp, law.kd, [law.null_damping], fixed])
    key = f"feedback linearisation {key_of(outputs)} {None if aim is None else key_of(aim)} {own.key} {shape.key}"
    return Law(key, text, constants, Signals(), doubts, True)


def _aim(law: FeedbackLinearisation) -> Any:
    """(y, ẏ, ÿ) as an expression of time."""
    reason = impure(law.target)
    if reason:
        raise NotCompiled(f"the controller's target is called in Python: {reason}")
    whole = lambda t: np.concatenate([np.atleast_1d(np.asarray(x)) for x in law.target(t)])  # noqa: E731
    return _called("target", whole, (0,), 3 * law.size, TIMES)


def _outputs(model: Model, law: FeedbackLinearisation) -> Any:
    """(q, v) -> y, G row by row, vᵀHv."""
    import casadi

    graph: Any = domain("casadi")
    (place, q), (speed, v) = graph.variables("q", model.nq), graph.variables("v", model.nv)
    y = graph.column(np.concatenate([np.asarray(f.text(q, graph), dtype=object).reshape(-1) for f in law.outputs]))
    moved = graph.column(kinematics.rate(model.mechanism, q, v, domain=graph))
    rate = casadi.jtimes(y, place, moved)
    G, drift = casadi.jacobian(rate, speed), casadi.jtimes(rate, place, moved)
    return casadi.Function("outputs", [place, speed], [casadi.densify(x) for x in (y, casadi.vec(G.T), drift)])


LAWS: dict[str, Callable[[Model, Any], Law]] = {
    "OperationalSpace": _operational, "Impedance": _impedance, "HybridForcePosition": _hybrid,
    "ResolvedRate": _resolved_rate, "ResolvedAcceleration": _resolved_acceleration,
    "FeedbackLinearisation": _linearising,
}  # fmt: skip


__all__ = ["LAWS", "measured_text"]
