"""Steps across singular configurations of loops.

Near a configuration where the loops' Jacobian loses rank, at a distance δ, accelerations are divided by what is left of
the lost rows: a state closed to rounding ε has them to ε/δ³ only. Smaller steps come nearer and make it worse. The
motion itself is smooth there, on its branch. So one step goes from before the configuration to as far behind it,
by Gauss' collocation with an even number of nodes, of which none is near the middle:

    Y_i = y + h Σ_j A_ij F_j,    F_i = ẏ(t + c_i h, Y_i),    y₁ = y + h Σ b_i F_i         (12 nodes, order 24)

Each Y_i is put on the loops before it is believed: off them, errors grow like 1/δ². F has an expansion in Legendre's
polynomials, whose last terms report the step's error. They must be within the tolerances, or have fallen to where
rounding keeps them from falling on; else there is no such step, and the method goes on by its own steps, to try nearer
by. In compiled runs the iterations are machine code (`compiled.bridging`).

The time of the crossing is that at which the lost rows U, of singular values S, vanish along the motion: S + τ UᵀJ̇V is
singular. It is asked for again on the way there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from polybody.simulation.integrators.base import Interpolant, Options, Step
from polybody.simulation.loop_batches import rates_at, returned
from polybody.simulation.problem import Problem

Array = np.ndarray
NODES = 12
MOST_ITERATIONS = 40
#: singular values over the largest from which a crossing is looked for
FAR = 0.3
#: way to the crossing (rad, m) below which it is too late for a bridge
LATE = 2e-3
#: error, over coordinates and speeds, that rounding may leave in a step
ROUNDING = 1e-5


@cache
def gauss() -> tuple[Array, Array, Array, Array]:
    """(c, A, b, the matrix that gives Legendre's coefficients of values at the nodes) on [0, 1]."""
    from numpy.polynomial import legendre  # 4 ms

    x, w = legendre.leggauss(NODES)
    values = legendre.legvander(x, NODES - 1)
    integrals = np.array([legendre.legval(x, legendre.legint(e, lbnd=-1)) for e in np.eye(NODES)]).T
    coefficients = np.linalg.inv(values)
    return (x + 1) / 2, integrals @ coefficients / 2, w / 2, coefficients


def crossing_time(problem: Problem, y: Array) -> float:
    """Seconds until the motion crosses a singular configuration; infinite where none is ahead."""
    return problem.motion.crossing(*problem.split(y), FAR) if problem.loops and not problem.resting else np.inf


def is_late(problem: Problem, y: Array) -> bool:
    """Whether a singular configuration ahead is so near that no bridge begins here."""
    ahead = crossing_time(problem, y)
    return ahead < np.inf and ahead * float(np.abs(problem.split(y)[1]).max(initial=0.0)) < LATE


def first_ahead(problem: Problem, Y: Array, horizon: Callable[[int], float]) -> int:
    """How many of the states come before a singular configuration is nearer than their horizon, that one included."""
    if problem.resting or not len(Y):
        return len(Y)
    rank = problem.motion._rank
    J = problem.motion.kernels.jacobian(Y[:, : problem.nq].copy())
    s = np.linalg.svd(J, compute_uv=False)
    near = s[:, rank - 1] < FAR * s[:, 0] if rank else np.zeros(len(Y), dtype=bool)
    for k in np.flatnonzero(near):
        if crossing_time(problem, Y[k]) < horizon(int(k)):
            return int(k) + 1
    return len(Y)


def bridge(
    problem: Problem, t: float, y: Array, rate: Array, jerk: Array, end: float, horizon: float, options: Options
) -> tuple[Step | None, float]:
    """(a step across the configuration ahead, or None; seconds until the crossing).

    `rate` is ẏ, `jerk` an estimate of v̈; crossings later than `horizon` are left alone.
    """
    ahead, speed = crossing_time(problem, y), float(np.abs(problem.split(y)[1]).max(initial=0.0))
    if not ahead < min(horizon, end - t) or ahead * speed < LATE:
        return None, ahead
    there = _extrapolated(problem, y, rate, jerk, np.array([0.8 * ahead]))[0]
    later = crossing_time(problem, problem.project(there))
    half = 0.8 * ahead + (later if later < ahead else 0.2 * ahead)
    found = collocate(problem, t, y, rate, jerk, 2 * half)
    if found is None or not _is_good(found[0] * 2 * half, y, found[1], options):
        return None, ahead
    F, last = found
    dense = _interpolant(t, y, 2 * half, F)
    t1 = min(t + 2 * half, end)
    y1 = problem.project(last if t1 == t + 2 * half else dense(t1))
    return Step(t, t1, y, y1, lambda: dense, 0, problem.off_manifold(last), across=True), ahead


def collocate(
    problem: Problem, t: float, y: Array, rate: Array, jerk: Array, h: float
) -> tuple[Array, Array] | None:
    """(F, y₁), or None where the iteration does not converge."""
    c, A, b, _ = gauss()
    Y = _extrapolated(problem, y, rate, jerk, c * h)
    found = None if problem.collocated is None else problem.collocated(t, y, Y, t + c * h, t + h)
    if found is not None:
        return found
    size, before = 1 + np.abs(y), np.inf
    for _ in range(MOST_ITERATIONS):
        on_loops, off = returned(problem, Y)
        problem.off_loops = max(problem.off_loops, off)
        F = rates_at(problem, t + c * h, on_loops)
        if not np.isfinite(F).all():
            return None
        new = y + h * (A @ F)
        change = float(np.max(np.abs(new - Y)[:, :-1] / size[:-1]))
        Y = new
        if change < 1e-14 or (change < 1e-9 and change > 0.5 * before):
            return F, y + h * (b @ F)
        before = change
    return None


def _extrapolated(problem: Problem, y: Array, rate: Array, jerk: Array, after: Array) -> Array:
    """States so many seconds later (n,), (n, size), as they would be with this v̈."""
    (q, v), nq, nv, h = problem.split(y), problem.nq, problem.nv, after[:, None]
    a = rate[nq : nq + nv]
    Y = np.tile(y, (len(h), 1))
    Y[:, :nq] = problem.model.integrate(np.tile(q, (len(h), 1)), h * (v + a * (h / 2) + jerk * (h * h / 6)))
    Y[:, nq : nq + nv] = v + a * h + jerk * (h * h / 2)
    Y[:, -1] += after * rate[-1]
    return Y


def _is_good(change: Array, y: Array, last: Array, options: Options) -> bool:
    """Whether Legendre's terms of h F fall below the tolerances, or to where rounding keeps them from falling on."""
    terms = np.abs(gauss()[3] @ change)[:, :-1] / (2 * NODES)
    scale = options.atol + options.rtol * np.maximum(np.abs(y), np.abs(last))[:-1]
    if np.sqrt(np.mean((np.maximum(terms[-1], terms[-2] / NODES) / scale) ** 2)) <= 1:
        return True
    sizes = (terms / (1 + np.abs(y[:-1]))).max(axis=1)
    return bool(sizes[-2:].max() < ROUNDING and sizes[-2:].max() > 0.1 * sizes[-6:-4].max())


def _interpolant(t: float, y: Array, h: float, F: Array) -> Interpolant:
    from numpy.polynomial import legendre

    terms = h / 2 * legendre.legint(gauss()[3] @ F, lbnd=-1)
    return lambda at: y + legendre.legval(2 * (at - t) / h - 1, terms)


__all__ = ["bridge", "crossing_time", "first_ahead"]
