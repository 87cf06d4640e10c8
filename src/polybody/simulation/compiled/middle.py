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
class Given:
    """The inputs of a step's texts."""

    columns: list[Any]  # x, u, h, constants, row
    x: Array
    c: Array
    row: Array
    q: Array
    v: Array
    i: Array
    t: Any
    u: Array
    h: Any
    free: Array | None  # 0 for joints that are held

    def held(self, r: Array, graph: Any) -> Array:
        """The equations r with u = 0 in the rows of joints that are held."""
        return r if self.free is None else r * self.free + self.u * (graph.const(1) - self.free)


@dataclass(frozen=True, eq=False)
class Middle:
    """The middle of a step, and what acts there."""

    given: Given
    q_m: Array
    i_m: Array
    tau: Array
    loads: list[Array]


def given_of(acting: Acting, graph: Any) -> Given:
    columns, x, c, row = acting.columns(graph)
    speed, u = graph.variables("u", acting.model.nv)
    step, h = graph.variables("h", 1)
    q, v, i, t = acting.state(x, graph)
    free = acting.holding.free(acting.model.nv, acting.split_constants(c)[3], graph)
    return Given([columns[0], speed, step, *columns[1:]], x, c, row, q, v, i, t, u, h[0], free)


def middle_of(acting: Acting, graph: Any) -> Middle:
    given = given_of(acting, graph)
    u, c, half = given.u, given.c, given.h * graph.const(0.5)
    q_m = kinematics.integrate(acting.mechanism, given.q, u * half, domain=graph)
    i_m = _currents(acting, u, given.i, c, half, graph)
    loads = acting.loads(given.t + half, c, graph)
    tau = acting.drive(q_m, u, i_m, given.t + half, c, given.row, graph)[0]
    return Middle(given, q_m, i_m, acting.rubbed(q_m, u, tau, loads, c, graph)[0], loads)


def _force(acting: Acting, at: Middle, graph: Any) -> Array:
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
    at, m = middle_of(acting, graph), acting.mechanism
    given, u, force = at.given, at.given.u, _force(acting, at, graph)
    C = denoc.coriolis_matrix(m, at.q_m, u, domain=graph)
    rate = C.T @ u - denoc.gravity_forces(m, at.q_m, domain=graph) + force
    rate = rate + denoc.passive_forces(m, at.q_m, u, domain=graph)
    p_m, p = denoc.mass_matrix(m, at.q_m, domain=graph) @ u, denoc.mass_matrix(m, given.q, domain=graph) @ given.v
    r = given.held((p_m - p) * graph.const(2) - rate * given.h, graph)
    slopes = jacobian(r.tolist(), u.tolist())
    if slopes is None:
        r = graph.column(r)
        slopes = casadi.densify(casadi.vec(casadi.jacobian(r, given.columns[1]).T))
    return acting.made("middle", given.columns, given.columns[3], [r, slopes], graph)


def ends(acting: Acting) -> Any:
    """The state at the end, but for its velocity; 2 p_m − p₀ and M there."""
    graph: Any = domain("casadi")
    at, m = middle_of(acting, graph), acting.mechanism
    given, (new, moved) = at.given, after(acting, at, graph)
    p_m = denoc.mass_matrix(m, at.q_m, domain=graph) @ given.u
    p = p_m * graph.const(2) - denoc.mass_matrix(m, given.q, domain=graph) @ given.v
    M, free = denoc.mass_matrix(m, moved, domain=graph), given.free
    if free is not None:
        p = p * free
        M = M * free[:, None] + graph.eye(m.nv) * (graph.const(1) - free)[:, None]
    return acting.made("ends", given.columns, given.columns[3], [new, p, M], graph)


def balance(acting: Acting) -> Any:
    """r."""
    graph: Any = domain("casadi")
    at, m = middle_of(acting, graph), acting.mechanism
    given, u = at.given, at.given.u

    def text(q: Array, *, domain: Domain) -> Array:
        return denoc.joint_momentum(m, q, u, domain=domain)

    (turned,) = along(text, (at.q_m,), [(kinematics.rate(m, at.q_m, u, domain=graph),)], graph)
    rate = turned - denoc.bias_forces(m, at.q_m, u, domain=graph) + _force(acting, at, graph)
    rate = rate + denoc.passive_forces(m, at.q_m, u, domain=graph)
    p_m, p = text(at.q_m, domain=graph), denoc.joint_momentum(m, given.q, given.v, domain=graph)
    r = given.held((p_m - p) * graph.const(2) - rate * given.h, graph)
    return acting.made("balance", given.columns, given.columns[3], [r], graph)


def end(acting: Acting) -> Any:
    """The state at the end."""
    graph: Any = domain("casadi")
    at, m = middle_of(acting, graph), acting.mechanism
    given, (new, moved) = at.given, after(acting, at, graph)
    p_m = denoc.joint_momentum(m, at.q_m, given.u, domain=graph)
    p = p_m * graph.const(2) - denoc.joint_momentum(m, given.q, given.v, domain=graph)
    v = denoc.solve_mass_matrix(m, moved, p, domain=graph, free=given.free)
    new[acting.model.nq : acting.model.nq + acting.model.nv] = v
    return acting.made("end", given.columns, given.columns[3], [new], graph)


def after(acting: Acting, at: Middle, graph: Any) -> tuple[Array, Array]:
    """(the state at the end with the velocity of its beginning, q there)."""
    nq, nv, size, two = acting.model.nq, acting.model.nv, acting.size, graph.const(2)
    given = at.given
    moved = kinematics.integrate(acting.mechanism, given.q, given.u * given.h, domain=graph)
    work = given.x[size - 1] + acting.power(at.q_m, given.u, at.tau, at.loads, given.c, graph) * given.h
    currents = at.i_m * two - given.x[nq + nv : size - 1]
    return np.concatenate([moved, given.v, currents, [work, given.x[size] + given.h]]), moved


__all__ = ["Given", "Middle", "after", "balance", "end", "ends", "given_of", "middle", "middle_of"]
