"""The implicit midpoint rule in configuration and momentum p = M v: order 2, its energy error stays bounded.

With u the velocity at the middle of the step, and Saha's C (Ṁ = C + Cᵀ, hence ṗ = Cᵀv − gravity + …),

    q_m = q₀ ∘ exp(½h u),    p_m = M(q_m) u,
    p₁ − p₀ = h (C(q_m, u)ᵀ u − gravity(q_m) + passive(q_m, u) + force),    p₁ = 2 p_m − p₀,    q₁ = q₀ ∘ exp(h u).

Where velocities are rates this is the midpoint rule of Hamilton's equations, which is symplectic; on rotations it is
its counterpart in body axes, symmetric in time, and for a free body it keeps energy and the size of the momentum
exactly. The equations for u are solved by Newton's method with the exact Jacobian of the compiled residual, or of many
velocities with differences of their recursions (Cᵀu = Ṁu − C u); torques of a controller are taken at the last iterate,
and where that does not do soon, with their derivatives. Joints that stops
or friction hold have u = 0 and v₁ = 0 in the place of their rows, as in compiled steps: a run may change from these to
those.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from polybody.algebra.domains import domain
from polybody.formulations import denoc
from polybody.interrupts import imported
from polybody.mechanism import kinematics
from polybody.model import long_chains
from polybody.model.model import Model
from polybody.simulation.failures import BlowUp
from polybody.simulation.integrators.base import Options, Step, finite, fixed_times, hermite
from polybody.simulation.jacobian import drive_derivatives
from polybody.simulation.problem import Problem

Array = np.ndarray
MOST_ITERATIONS = 25
PATIENCE = 4
MOST_EXACT = 60  # velocities: the text of an exact Jacobian grows with their square
DIFFERENCE = 1.5e-8
ROUNDED = 1e-7  # of u: what the rounding of M u, times M⁻¹, may be in long chains


class ImplicitMidpoint:
    """Momentum is carried from step to step; velocities are what it says at the end of each."""

    name, order, adaptive = "midpoint", 2, False

    def steps(self, problem: Problem, t: float, y: Array, end: float, options: Options) -> Iterator[Step]:
        model = problem.model
        exact = model.nv <= MOST_EXACT or model.engine.tree.source.variation is not None
        solve = residual_kernel(model) if exact else residual_by_recursions(model)
        q, v = problem.split(y)
        p = model.mass_matrix(q) @ v
        u, before = v, v  # the last two middles, from which the next is foreseen
        for t0, t1 in fixed_times(t, end, options.dt):
            h, middle = t1 - t0, t0 + (t1 - t0) / 2
            i = problem.currents(y)
            guess = 2 * u - before
            before = u
            u, p_middle, power = newton(problem, solve, q, p, guess, i, middle, h)
            if problem.circuits.size:
                i = problem.circuits.step(middle, model.integrate(q, u, h / 2), u, i, h, 0.5)
            q_new = model.integrate(q, u, h)
            p = 2 * p_middle - p
            held = held_joints(problem)
            v = np.linalg.solve(*without(held, model.mass_matrix(q_new), p, 0.0))
            raw = problem.state(q_new, v, i, y[-1] + h * power)
            if not finite(raw):
                raise BlowUp("numbers are no longer finite")
            new = raw
            if problem.moves():
                new = problem.project(raw)
                if problem.stops is not None and problem.stops.held:
                    p = model.mass_matrix(new[: problem.nq]) @ new[problem.nq : problem.nq + problem.nv]
            yield Step(t0, t1, y, new, partial(hermite, problem, t0, t1, y, new), 0, problem.off_manifold(raw))
            y, q = new, new[: problem.nq].copy()


def newton(
    problem: Problem, solve: Any, q: Array, p: Array, u: Array, i: Array, middle: float, h: float
) -> tuple[Array, Array, float]:
    """(u, p_m, power): the middle of one step."""
    imported("scipy.linalg")
    from scipy.linalg import lapack

    dgesv: Any = getattr(lapack, "dgesv")  # noqa: B009  SciPy's stubs do not list LAPACK's functions
    step = np.array([h])
    force, power = problem._no_torque, 0.0
    quiet = problem.autonomous and not problem._dissipates
    # Newton squares its error: below the square root of rounding the next iterate is exact. Torques that follow the
    # iterates converge linearly.
    enough = 1e-9 if quiet else 1e-13
    slopes, guess, held, sizes = None, u, held_joints(problem), list[float]()
    for count in range(MOST_ITERATIONS):
        if not quiet:
            again = count > 0 and count % PATIENCE == 0  # stiff gains: the torques' own derivatives are needed
            u = guess if again and sizes[-1] > 0.1 * sizes[0] else u
            q_middle = problem.model.integrate(q, u, h / 2)
            half = (i + problem.circuits.step(middle, q_middle, u, i, h, 0.5)) / 2
            if again:
                n = problem.nv
                by_state = drive_derivatives(problem, middle, q_middle, u, half)[:n]
                slopes = h * (by_state[:, :n] * (h / 2) + by_state[:, n : 2 * n])
            force, power = problem.outside_force(middle, q_middle, u, half)
        problem.evaluations += 1
        residual, jacobian, _ = solve(q, p, u, force, step)
        jacobian = jacobian if slopes is None else jacobian - slopes
        jacobian, residual = without(held, jacobian, residual, u)
        if not finite(residual):
            break
        _, _, change, singular = dgesv(jacobian, residual)
        if singular:
            break
        u = u - change
        sizes.append(max(map(abs, change), default=0.0))
        fastest = 1.0 + max(map(abs, u), default=0.0)
        rounded = count > 2 * PATIENCE and max(sizes[-3:]) <= ROUNDED * fastest and sizes[-1] > 0.5 * sizes[-3]
        if sizes[-1] <= enough * fastest or rounded:
            return u, solve(q, p, u, force, step)[2], power
    raise BlowUp(f"the implicit equations were not solved in {MOST_ITERATIONS} iterations; a smaller dt may help")


def held_joints(problem: Problem) -> list[int]:
    """Velocities of joints that stops or friction hold."""
    return [] if problem.stops is None else list(problem.stops.held)


def without(held: list[int], matrix: Array, right: Array, there: Any) -> tuple[Array, Array]:
    """A system of equations with x = `there` in the rows of held joints (their u and v₁ are 0: `compiled.middle`)."""
    if not held:
        return matrix, right
    matrix, right = np.array(matrix), np.array(right)
    matrix[held] = np.eye(len(right))[held]
    right[held] = np.broadcast_to(there, right.shape)[held]
    return matrix, right


def residual_kernel(model: Model) -> Any:
    """Kernel (q, p, u, force, h) -> residual, its Jacobian in u, p_m."""
    m = model.engine.traced_mechanism
    n = m.nv
    inputs = [("q", m.nq), ("p", n), ("u", n), ("force", n), ("h", 1)]
    outputs = [("residual", (n,)), ("jacobian", (n, n)), ("momentum", (n,))]
    return model.engine.compile("midpoint residual", inputs, outputs, lambda: residual_function(m))


def residual_by_recursions(model: Model) -> Any:
    """The same by kernels whose length does not grow: the Jacobian is a batch of differences."""
    kernels = [long_chains.kernel(model.mechanism, name) for name in ("mass_product", "momentum_rate")]
    product, turned = (kernel for kernel in kernels if kernel is not None)

    def solve(q: Array, p: Array, u: Array, force: Array, step: Array) -> tuple[Array, Array, Array]:
        h = float(step[0])
        speeds = np.concatenate([u[None], u + np.diag(DIFFERENCE * (1.0 + np.abs(u)))])
        q_m = model.integrate(np.broadcast_to(q, (len(speeds), len(q))), speeds, h / 2)
        rate = turned(q_m, speeds) - model.bias_forces(q_m, speeds) + model.passive_forces(q_m, speeds) + force
        p_m = product(q_m, speeds)
        found = 2 * (p_m - p) - h * rate
        return found[0], ((found[1:] - found[0]) / (speeds[1:] - u).diagonal()[:, None]).T, p_m[0]

    return solve


def residual_function(mechanism: Any) -> Any:
    import casadi

    graph: Any = domain("casadi")
    sizes = {"q": mechanism.nq, "p": mechanism.nv, "u": mechanism.nv, "force": mechanism.nv, "h": 1}
    columns, (q, p, u, force, step) = zip(*(graph.variables(n, s) for n, s in sizes.items()), strict=True)
    h = step[0]
    middle = kinematics.integrate(mechanism, q, u * (h * graph.const(0.5)), domain=graph)
    p_middle = denoc.mass_matrix(mechanism, middle, domain=graph) @ u
    C = denoc.coriolis_matrix(mechanism, middle, u, domain=graph)
    rate = C.T @ u - denoc.gravity_forces(mechanism, middle, domain=graph) + force
    rate = rate + denoc.passive_forces(mechanism, middle, u, domain=graph)
    residual = graph.column((p_middle - p) * graph.const(2) - rate * h)
    jacobian = casadi.densify(casadi.vec(casadi.jacobian(residual, columns[2]).T))
    found = [residual, jacobian, graph.column(p_middle)]
    return casadi.Function("residual", [*columns, *mechanism.symbols], found)


__all__ = ["ImplicitMidpoint", "newton", "residual_by_recursions", "residual_function", "residual_kernel"]
