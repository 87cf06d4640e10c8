"""States of a motion with loops, many at once: put back on the loops, and accelerated.

What `constrained_motion` does for one state, over the arrays that kernels take.
"""

from __future__ import annotations

import numpy as np

from polybody.model.plans import SWITCH
from polybody.quantities.table import QUANTITIES
from polybody.simulation.constrained_motion import KEPT, LOST, NEAR
from polybody.simulation.problem import Problem

Array = np.ndarray
MOST = 4  # Newton's steps along the plan: a state that needs more is put back by itself
SPEED = 1e-10  # of J v, relative to 1 + |v|


def is_planned(problem: Problem) -> bool:
    """Whether loops are eliminated along a plan, by kernels."""
    return problem.motion.engine.is_compiled and problem.motion.plans.is_made


def returned(problem: Problem, raw: Array) -> tuple[Array, float]:
    """(states as `Problem.project` has them, how far the worst was off the loops)."""
    if not problem.moves() or not len(raw):
        return raw.copy(), 0.0
    if problem.resting or not problem.loops or not is_planned(problem):
        return np.array([problem.project(y) for y in raw]), 0.0
    Y, motion, nq, nv = raw.copy(), problem.motion, problem.nq, problem.nv
    for k in problem._quaternions:
        Y[:, k : k + 4] /= np.linalg.norm(Y[:, k : k + 4], axis=1, keepdims=True)
    q, v = Y[:, :nq].copy(), Y[:, nq : nq + nv].copy()
    first, size = np.zeros(0), np.full(len(q), np.inf)
    open_, bad, rank = np.arange(len(q)), np.zeros(len(q), dtype=bool), max(motion._rank, 1)

    def doubted(told: Array) -> Array:  # as `ConstrainedMotion._step_back`
        return ~((told[:, 2] < SWITCH**2 * rank) & (told[:, 4] < LOST * rank))

    for _ in range(MOST):
        step, _, _, told = motion._newton(q[open_], v[open_])
        bad[open_] |= doubted(told)
        now = np.sqrt(told[:, 0])
        first = now.copy() if not len(first) else first
        done = (now < KEPT) | ((now < 1e-11) & (now > 0.3 * size[open_]))
        size[open_] = now
        open_, step = open_[~done], step[~done]
        if not len(open_):
            break
        q[open_] = motion.engine.assembly.integrate(q[open_], step)
    _, change, _, told = motion._newton(q, v)
    v = v + change
    speed = np.abs(motion.kernels.velocity(q, v)).max(axis=1, initial=0.0)
    bad |= doubted(told) | ~(speed <= SPEED * (1 + np.abs(v).max(axis=1, initial=0.0)))
    bad[open_] = True
    Y[:, :nq], Y[:, nq : nq + nv] = q, v
    for k in np.flatnonzero(bad):
        Y[k] = problem.project(raw[k])
    return Y, float(first.max(initial=0.0))


def rates_at(problem: Problem, times: Array, Y: Array) -> Array:
    """ẏ at states that are on the loops, (n, size); those of which the plan is not to be believed by themselves."""
    if problem.wrenches or problem.resting or not is_planned(problem):
        return np.array([problem.rate(float(t), y) for t, y in zip(times, Y, strict=True)])
    motion, nq, nv = problem.motion, problem.nq, problem.nv
    states = [(*problem.split(y), problem.currents(y)) for y in Y]
    tau = np.array([problem.drive(float(t), *state)[0] for t, state in zip(times, states, strict=True)])
    q, v = (np.array([state[k] for state in states]) for k in (0, 1))
    a, told = motion.engine.eliminated(QUANTITIES["forward_dynamics"], q, v, tau, plan=motion.plans.free(None))
    problem.evaluations += len(Y)
    rank = max(motion._rank, 1)
    bad = ~((told[:, 2] < SWITCH * rank) & (told[:, 4] < NEAR * rank))
    result = np.empty_like(Y)
    result[:, :nq] = v if problem.trivial_rate else problem._rate(q, v)
    result[:, nq : nq + nv] = a
    for k in range(len(Y)):
        if bad[k]:
            result[k] = problem.rate(float(times[k]), Y[k])
            continue
        if problem.circuits.size:
            result[k, nq + nv : -1] = problem.circuits.drive(float(times[k]), *states[k])[1]
        result[k, -1] = problem.power(q[k], v[k], tau[k], None)
    return result


__all__ = ["rates_at", "returned"]
