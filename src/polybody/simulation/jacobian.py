"""The exact Jacobian ∂ẏ/∂y of the right side, for implicit methods.

Loops and held stops are constraint rows J a + γ = 0 (a stop's row is a unit vector, its γ zero), λ what they exert. The
motion's equations are differentiated along displacements d of q (in tangent space) and w of v, f = tau − ID(q, v, 0):

    M da − Jᵀ dλ = −dID[d, w] + dJ[d]ᵀ λ + dtau                                                             (1)
    J da         = −dγ[d, w] − dJ[d] a                                                                      (2)

dID, dJ and dγ come from the model's derivative kernels. With Z the motions that J allows and r, f the right sides,

    da = J⁺r + Z (ZᵀMZ)⁻¹ Zᵀ (f − M J⁺r)                                                                    (3)

Displacements of q as it is stored are d = Γ⁺ δq. Only what a user writes in Python (controller, voltages) is
differentiated by differences, with steps of a fixed size: the system's scales are not guessed from its behaviour.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.algebra.domains import domain
from polybody.constraints.ranks import null_space, pseudo_inverse
from polybody.mechanism import kinematics

if TYPE_CHECKING:
    from polybody.simulation.problem import Problem

Array = np.ndarray
#: of differences of a user's functions, relative, and absolute in SI units
STEP = 1e-7


def jacobian(problem: Problem, t: float, y: Array) -> Array:
    """∂ẏ/∂y, (size, size)."""
    nq, nv, n = problem.nq, problem.nv, problem.nq + problem.nv
    (q, v), i = problem.split(y), problem.currents(y)
    tau, loads = problem.drive(t, q, v, i)
    gamma, turn = rate_derivatives(problem, q, v)
    back = np.linalg.pinv(gamma)
    driven = drive_derivatives(problem, t, q, v, i)
    changes, answers = motion_derivatives(problem, q, v, tau, loads)
    result = np.zeros((problem.size, problem.size))
    result[:nq, :nq], result[:nq, nq:n] = turn, gamma
    by_state = answers @ driven[:nv]
    by_state[:, : 2 * nv] += changes
    result[nq:n, :nq] = by_state[:, :nv] @ back
    result[nq:n, nq:-1] = by_state[:, nv:]
    result[n:-1, :nq], result[n:-1, nq:-1] = driven[nv:, :nv] @ back, driven[nv:, nv:]
    # W does not act on the state; its row only lets Newton's iterations reach its value together with the others.
    power = v @ driven[:nv]
    power[nv : 2 * nv] += problem.power_gradient(q, v, tau, loads)
    result[-1, :nq], result[-1, nq:-1] = power[:nv] @ back, power[nv:]
    return result


def motion_derivatives(problem: Problem, q: Array, v: Array, tau: Array, loads: Any) -> tuple[Array, Array]:
    """(∂a/∂[d; w] (nv, 2nv), ∂a/∂tau (nv, nv)) with loops and held stops."""
    nv, tree = problem.nv, problem.tree
    a = problem.accelerate(q, v, tau, loads)
    dq, dv, M = tree.inverse_dynamics_derivatives(q, v, a, wrenches=loads)
    J = np.eye(nv)[problem.resting]
    force, right = -np.concatenate([dq, dv], axis=1), np.zeros((len(J), 2 * nv))
    if problem.loops:
        kernels, unit, none = problem.model.engine.constraints, np.eye(nv), np.zeros((nv, nv))
        rows = kernels.jacobian(q)
        J = np.concatenate([rows, J])
        load = tree.inverse_dynamics(q, v, a, wrenches=loads) - tau
        multipliers = (pseudo_inverse(J.T) @ load)[: len(rows)]
        T = kernels.jacobian_changes(q, unit)  # (nv, rows, nv)
        force[:, :nv] += np.einsum("kij,i->jk", T, multipliers)
        by_q = kernels.bias_changes(q, v, unit, none) + np.einsum("kij,j->ik", T, a)
        by_v = kernels.bias_changes(q, v, none, unit)
        right = np.concatenate([-np.concatenate([by_q, by_v], axis=1), right])
    if not len(J):
        inverse = np.linalg.inv(M)
        return inverse @ force, inverse
    Z, particular = null_space(J), pseudo_inverse(J) @ right
    moved = Z @ np.linalg.solve(Z.T @ M @ Z, Z.T)
    return particular + moved @ (force - M @ particular), moved


def outside_derivatives(problem: Problem, t: float, y: Array) -> Array:
    """∂[force; di/dt]/∂[q; v; i] of `Problem.outside_force`, (nv + currents, size − 1)."""
    nq, nv = problem.nq, problem.nv
    (q, v), i = problem.split(y), problem.currents(y)
    driven = drive_derivatives(problem, t, q, v, i)
    loads = problem.wrenches_at(t)
    if loads:
        still = np.zeros(nv)
        derivatives = problem.tree.inverse_dynamics_derivatives
        driven[:nv, :nv] += derivatives(q, still, still)[0] - derivatives(q, still, still, wrenches=loads)[0]
    result = np.zeros((len(driven), problem.size - 1))
    if driven.any():
        result[:, :nq] = driven[:, :nv] @ np.linalg.pinv(rate_derivatives(problem, q, v)[0])
    result[:, nq:] = driven[:, nv:]
    return result


def drive_derivatives(problem: Problem, t: float, q: Array, v: Array, i: Array) -> Array:
    """∂[tau; di/dt]/∂[d; v; i]: of what a user's functions and the circuits do, (nv + currents, 2nv + currents)."""
    nv, count = problem.nv, problem.circuits.size

    def driven(q: Array, v: Array, i: Array) -> Array:
        rates = problem.circuits.drive(t, q, v, i)[1] if count else np.zeros(0)
        return np.concatenate([problem.drive(t, q, v, i)[0], rates])

    result = np.zeros((nv + count, 2 * nv + count))
    if problem.controller is None and not problem.circuits.closed and problem.friction is None:
        return result
    for k in range(2 * nv + count):
        part, index = divmod(k, nv) if k < 2 * nv else (2, k - 2 * nv)
        size = STEP * (1.0 + abs((np.zeros(nv), v, i)[part][index]))
        ends = []
        for side in (-size, size):
            x, shift = [q, v.copy(), i.copy()], np.zeros(nv)
            if part == 0:
                shift[index] = side
                x[0] = problem.model.integrate(q, shift)
            else:
                x[part][index] += side
            ends.append(driven(*x))
        result[:, k] = (ends[1] - ends[0]) / (2 * size)
    return result


def rate_derivatives(problem: Problem, q: Array, v: Array) -> tuple[Array, Array]:
    """(Γ (nq, nv), ∂(Γ v)/∂q (nq, nq))."""
    if problem.trivial_rate:
        return np.eye(problem.nv), np.zeros((problem.nv, problem.nv))
    m = problem.model.engine.traced_mechanism
    outputs = [("gamma", (m.nq, m.nv)), ("turn", (m.nq, m.nq))]
    inputs = [("q", m.nq), ("v", m.nv)]
    kernel = problem.model.engine.compile("rate derivatives", inputs, outputs, lambda: _rate_function(m))
    return kernel(q, v)


def _rate_function(mechanism: Any) -> Any:
    import casadi

    graph: Any = domain("casadi")
    (q_in, q), (v_in, v) = graph.variables("q", mechanism.nq), graph.variables("v", mechanism.nv)
    rate = graph.column(kinematics.rate(mechanism, q, v, domain=graph))
    rows = [casadi.densify(casadi.vec(casadi.jacobian(rate, x).T)) for x in (v_in, q_in)]
    return casadi.Function("rate_derivatives", [q_in, v_in, *mechanism.symbols], rows)


__all__ = ["drive_derivatives", "jacobian", "outside_derivatives"]
