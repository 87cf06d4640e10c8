"""Assembly: a configuration that meets all constraints, near a guess, with some joints held and limits kept.

Gauss-Newton on the manifold: the step is the least one that removes the linearised residual,

    d = −J_f⁺ φ,    q ← q ⊕ d          over the columns f that are neither held nor pressed against a limit

shortened where it is long, halved while ‖φ‖ grows. Where that ends in a valley, it starts again from disturbed guesses,
then from anywhere. Residuals are the far ones, whose zeros are assembled poses only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from polybody.constraints.ranks import pseudo_inverse
from polybody.errors import PolybodyError
from polybody.late import dataclass, field
from polybody.mechanism.mechanism import Mechanism

Array = np.ndarray

#: a configuration with smaller residuals (m, rad) is assembled
CLOSED = 1e-11
#: one with smaller residuals is left as it is
EXACT = 1e-14
LONGEST_STEP = 0.6
STEPS = 80


class AssemblyError(PolybodyError):
    """No configuration was found that meets all constraints. `best` is the nearest one, `residuals` {name: size}."""

    def __init__(self, message: str, best: Array, residuals: dict[str, float]) -> None:
        super().__init__(message)
        self.best, self.residuals = best, residuals


@dataclass(frozen=True, eq=False)
class Problem:
    """What assembly needs: `functions(q)` gives (φ, J) with exact J, `move(q, d)` goes along the manifold."""

    mechanism: Mechanism
    functions: Callable[[Array], tuple[Array, Array]]
    move: Callable[[Array, Array], Array]
    free: Array  # indices of the velocities that may change
    lower: Array = field(repr=False)  # bounds of q for each velocity, infinite where there are none
    upper: Array = field(repr=False)
    at: Array = field(repr=False)  # index in q of each velocity's number, −1 for quaternions


def bounded_problem(
    mechanism: Mechanism,
    functions: Callable[[Array], tuple[Array, Array]],
    move: Callable[[Array, Array], Array],
    held: list[str],
    limits: bool,
) -> Problem:
    """The problem with joints `held` still and, where asked, limits kept."""
    n = mechanism.nv
    lower, upper, at = np.full(n, -np.inf), np.full(n, np.inf), np.full(n, -1)
    free = np.ones(n, dtype=bool)
    for joint in mechanism.joints:
        if joint.name in held:
            free[joint.v] = False
        if limits and joint.model.rates_are_velocities:
            lower[joint.v], upper[joint.v] = joint.limits.lower, joint.limits.upper
            at[joint.v] = np.arange(joint.q.start, joint.q.stop)
    return Problem(mechanism, functions, move, np.flatnonzero(free), lower, upper, at)


def descend(problem: Problem, q: Array) -> tuple[Array, float]:
    """(configuration, largest residual) after Gauss-Newton from q."""
    q = within_limits(problem, q)
    phi, J = problem.functions(q)
    size = _size(phi)
    for _ in range(STEPS):
        if size < EXACT:
            break
        step = _step(problem, q, phi, J)
        if step is None:
            break
        better = _search(problem, q, step, phi)
        if better is None:
            break
        last, (q, phi, J) = size, better
        size = _size(phi)
        if size < CLOSED and size > 0.3 * last:  # rounding is all that is left
            break
    return q, size


def _size(phi: Array) -> float:
    largest = float(np.abs(phi).max(initial=0.0))
    return largest if np.isfinite(largest) else np.inf


def _step(problem: Problem, q: Array, phi: Array, J: Array) -> Array | None:
    """The least step on the free columns; those that press against a limit are taken out."""
    if not (np.isfinite(J).all() and np.isfinite(phi).all()):
        return None
    step, columns = np.zeros(problem.mechanism.nv), problem.free
    for _ in range(len(problem.free) + 1):
        if not len(columns):
            return None
        step[:] = 0.0
        step[columns] = -pseudo_inverse(J[:, columns], 1e-10) @ phi
        pressed = _presses(problem, q, columns, step[columns])
        if not pressed.any():
            break
        columns = columns[~pressed]
    longest = float(np.abs(step).max())
    return step if longest <= LONGEST_STEP else step * (LONGEST_STEP / longest)


def _presses(problem: Problem, q: Array, columns: Array, step: Array) -> Array:
    """Which of these velocities, moved so, press against a limit."""
    value = q[problem.at[columns]]
    above, below = (value >= problem.upper[columns]) & (step > 0), (value <= problem.lower[columns]) & (step < 0)
    return (problem.at[columns] >= 0) & (above | below)


def _search(problem: Problem, q: Array, step: Array, phi: Array) -> tuple[Array, Array, Array] | None:
    """The first of step, step/2, … that lessens ‖φ‖."""
    before = float(phi @ phi)
    for _ in range(12):
        there = within_limits(problem, problem.move(q, step))
        new, J = problem.functions(there)
        if float(new @ new) < before:
            return there, new, J
        step = step / 2
    return None


def within_limits(problem: Problem, q: Array) -> Array:
    """q with bounded numbers put back into their limits; held ones are left as they are."""
    k = problem.free[(problem.at[problem.free] >= 0) & (problem.lower <= problem.upper)[problem.free]]
    q, at = q.copy(), problem.at[k]
    q[at] = np.minimum(np.maximum(q[at], problem.lower[k]), problem.upper[k])
    return q


def starts(
    problem: Problem, guess: Array, draw: Callable[[np.random.Generator], Array], count: int
) -> Iterator[Array]:
    """The guess, then it disturbed more and more, then configurations from anywhere; held joints stay."""
    yield guess
    rng, n = np.random.default_rng(0), problem.mechanism.nv
    for k in range(count):
        if k < count // 2:
            noise = np.zeros(n)
            noise[problem.free] = rng.normal(scale=0.05 * 4.0 ** (3.0 * k / max(count // 2, 1)), size=len(problem.free))
            yield problem.move(guess, noise)
        else:
            anywhere = draw(rng)
            for joint in problem.mechanism.independent_joints:
                if joint.v.start not in problem.free:
                    anywhere[joint.q] = guess[joint.q]
            yield anywhere


__all__ = [
    "CLOSED", "EXACT", "AssemblyError", "Problem", "bounded_problem", "descend", "starts", "within_limits",
]  # fmt: skip
