"""One step of the implicit midpoint rule (`integrators.midpoint`) as texts, u its velocity at the middle.

    r(u) = 2 (p_m − p₀) − h (Cᵀu − gravity + passive + force) = 0,    p_m = M(q_m) u
    v₁ = M(q₁)⁻¹ (2 p_m − p₀)

Joints that stops or friction hold have u = 0 and v₁ = 0 in the place of their rows; what holds them does no work. The
currents of motors at the middle follow from u, as the rule is linear in them:

    i_m = (L i₀ + ½h (V − k u))/(L + ½h R),    i₁ = 2 i_m − i₀

`middle` and `ends` give ∂r/∂u and M(q₁) as text. `balance` and `end` are the same equations in O(n) operations, for
robots of more than a dozen joints: p = M u and v₁ by recursions, and Cᵀu = Ṁu − C u with Ṁu the rate of M(q) u along u.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.algebra.domains import Domain, domain
from polybody.algebra.jets import along
from polybody.algebra.slopes import jacobian
from polybody.formulations import denoc
from polybody.late import dataclass
from polybody.mechanism import kinematics

if TYPE_CHECKING:
    from polybody.simulation.compiled.field import Acting

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class _Middle:
    columns: list[Any]  # x, u, h, constants, row
    x: Array
    c: Array
    q: Array
    v: Array
    u: Array
    h: Any
    q_m: Array
    p_m: Array
    i_m: Array
    tau: Array
    loads: list[Array]
    free: Array | None  # 0 for joints that are held


def _middle_of(acting: Acting, graph: Any, momentum: Any = None) -> _Middle:
    columns, x, c, row = acting.columns(graph)
    speed, u = graph.variables("u", acting.model.nv)
    step, h = graph.variables("h", 1)
    q, v, i, t = acting.state(x, graph)
    half = h[0] * graph.const(0.5)
    q_m = kinematics.integrate(acting.mechanism, q, u * half, domain=graph)
    i_m = _currents(acting, u, i, c, half, graph)
    loads = acting.loads(t + half, c, graph)
    tau, _ = acting.rubbed(q_m, u, acting.drive(q_m, u, i_m, t + half, c, row, graph)[0], loads, c, graph)
    p_m = (momentum or _by_matrix)(acting.mechanism, q_m, u, domain=graph)
    free = acting.holding.free(acting.model.nv, acting.split_constants(c)[3], graph)
    given = [columns[0], speed, step, *columns[1:]]
    return _Middle(given, x, c, q, v, u, h[0], q_m, p_m, i_m, tau, loads, free)


def _by_matrix(m: Any, q: Array, u: Array, *, domain: Domain) -> Array:
    return denoc.mass_matrix(m, q, domain=domain) @ u


def _force(acting: Acting, at: _Middle, graph: Any) -> Array:
    """What acts at the middle, beside bodies, gravity and passive forces."""
    force = at.tau
    for frame, wrench in zip(acting.frames, at.loads, strict=True):
        force = force + kinematics.frame_jacobian(acting.mechanism, at.q_m, frame, domain=graph).T @ wrench
    return force


def _currents(acting: Acting, u: Array, i: Array, c: Array, half: Any, graph: Any) -> Array:
    if acting.motors is None or not acting.motors.size:
        return i
    k, motors = acting.motors.inductive, acting.mechanism.motors
    L, R = graph.array(motors.inductance[k]), graph.array(motors.resistance[k])
    push = (acting.split_constants(c)[2] - graph.array(motors.voltages) @ u)[k]
    return (L * i + push * half) / (L + R * half)


def middle(acting: Acting) -> Any:
    """r and ∂r/∂u."""
    import casadi

    graph: Any = domain("casadi")
    at, m = _middle_of(acting, graph), acting.mechanism
    force = _force(acting, at, graph)
    C = denoc.coriolis_matrix(m, at.q_m, at.u, domain=graph)
    rate = C.T @ at.u - denoc.gravity_forces(m, at.q_m, domain=graph) + force
    rate = rate + denoc.passive_forces(m, at.q_m, at.u, domain=graph)
    p = denoc.mass_matrix(m, at.q, domain=graph) @ at.v
    r = (at.p_m - p) * graph.const(2) - rate * at.h
    if at.free is not None:
        r = r * at.free + at.u * (graph.const(1) - at.free)
    slopes = jacobian(r, at.u.tolist())
    if slopes is None:
        r = graph.column(r)
        slopes = casadi.densify(casadi.vec(casadi.jacobian(r, at.columns[1]).T))
    return acting.made("middle", at.columns, at.columns[3], [r, slopes], graph)


def ends(acting: Acting) -> Any:
    """The state at the end, but for its velocity; 2 p_m − p₀ and M there."""
    graph: Any = domain("casadi")
    at, m = _middle_of(acting, graph), acting.mechanism
    new, moved = _after(acting, at, graph)
    p = at.p_m * graph.const(2) - denoc.mass_matrix(m, at.q, domain=graph) @ at.v
    M = denoc.mass_matrix(m, moved, domain=graph)
    if at.free is not None:
        p = p * at.free
        M = M * at.free[:, None] + graph.eye(m.nv) * (graph.const(1) - at.free)[:, None]
    return acting.made("ends", at.columns, at.columns[3], [new, p, M], graph)


def balance(acting: Acting) -> Any:
    """r."""
    graph: Any = domain("casadi")
    at, m = _middle_of(acting, graph, denoc.joint_momentum), acting.mechanism

    def text(q: Array, *, domain: Domain) -> Array:
        return denoc.joint_momentum(m, q, at.u, domain=domain)

    (turned,) = along(text, (at.q_m,), [(kinematics.rate(m, at.q_m, at.u, domain=graph),)], graph)
    rate = turned - denoc.bias_forces(m, at.q_m, at.u, domain=graph) + _force(acting, at, graph)
    rate = rate + denoc.passive_forces(m, at.q_m, at.u, domain=graph)
    p = denoc.joint_momentum(m, at.q, at.v, domain=graph)
    r = (at.p_m - p) * graph.const(2) - rate * at.h
    if at.free is not None:
        r = r * at.free + at.u * (graph.const(1) - at.free)
    return acting.made("balance", at.columns, at.columns[3], [r], graph)


def end(acting: Acting) -> Any:
    """The state at the end."""
    graph: Any = domain("casadi")
    at, m = _middle_of(acting, graph, denoc.joint_momentum), acting.mechanism
    new, moved = _after(acting, at, graph)
    p = at.p_m * graph.const(2) - denoc.joint_momentum(m, at.q, at.v, domain=graph)
    v = denoc.solve_mass_matrix(m, moved, p, domain=graph, free=at.free)
    new[acting.model.nq : acting.model.nq + acting.model.nv] = v
    return acting.made("end", at.columns, at.columns[3], [new], graph)


def _after(acting: Acting, at: _Middle, graph: Any) -> tuple[Array, Array]:
    """(the state at the end with the velocity of its beginning, q there)."""
    nq, nv, size, two = acting.model.nq, acting.model.nv, acting.size, graph.const(2)
    moved = kinematics.integrate(acting.mechanism, at.q, at.u * at.h, domain=graph)
    work = at.x[size - 1] + acting.power(at.q_m, at.u, at.tau, at.loads, at.c, graph) * at.h
    currents = at.i_m * two - at.x[nq + nv : size - 1]
    return np.concatenate([moved, at.v, currents, [work, at.x[size] + at.h]]), moved


__all__ = ["balance", "end", "ends", "middle"]
