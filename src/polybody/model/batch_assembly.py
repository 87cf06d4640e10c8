"""Assembly of many configurations at once: Levenberg-Marquardt, by one compiled kernel where that is not too long.

    δ = −W Jᵀ(J W Jᵀ + λ)⁻¹ φ,     λ = φᵀφ/100 + ε,     q ← clip(q ⊞ δ)

φ are the far residuals; W leaves out joints that are held, or pressed against a limit; long steps are shortened.
States that end in a valley start again from disturbed guesses, then from anywhere, as in `constraints.assembly`. What
is not found so is left to it, state by state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.constraints.assembly import CLOSED, Problem
from polybody.model import configurations
from polybody.model.constraint_kernels import ConstraintKernels
from polybody.model.engine import Request
from polybody.model.tracing import compiled, trace
from polybody.model.tree_engine import TreeEngine
from polybody.quantities.table import QUANTITIES

if TYPE_CHECKING:
    from polybody.kernels import Kernel

Array = np.ndarray
#: rows and velocities up to which the step is straight-line code; others solve by LAPACK
MOST_ROWS, MOST_VELOCITIES = 36, 60
STEPS, LONGEST, LEAST_DAMPING = 40, 2.0, 1e-13
#: of φᵀφ that damps a step. With one half, and 1.2 as the longest step, those from anywhere were too short: 1000
#: configurations of a Stewart platform, a delta robot and Bricard's mechanism took 21, 25 and 81 steps each, now 15, 15
#: and 25
DAMPING = 0.01
#: starts again: standard deviations of what disturbs the guess; None draws from anywhere
AGAIN = (0.05, 0.2, 0.6, *[None] * 25)


class BatchAssembly:
    """Assembles one mechanism's configurations; `tree` moves along its manifold."""

    def __init__(self, tree: TreeEngine, kernels: ConstraintKernels) -> None:
        self.mechanism, self.tree, self.kernels = kernels.mechanism, tree, kernels
        self._kernel: Kernel | None = None

    def __call__(self, problem: Problem, guesses: Array, parameters: Array | None = None) -> tuple[Array, Array]:
        """(configurations (n, nq), whether each is assembled), with parameters (n, k) where there are such."""
        rng = np.random.default_rng(0)
        result = self._inside(problem, guesses)
        done = np.zeros(len(result), dtype=bool)
        for spread in (0.0, *AGAIN):
            active = np.flatnonzero(~done)
            if not len(active):
                break
            start = result[active] if spread == 0.0 else self._started(problem, guesses[active], spread, rng)
            step = self._by_kernel if self._is_compiled else self._by_numbers
            found, closed = self._descended(problem, start, None if parameters is None else parameters[active], step)
            result[active[closed]] = found[closed]
            done[active[closed]] = True
        return result, done

    def led_to(self, problem: Problem, starts: Array) -> Array:
        """The assembled configurations that starts (n, nq) lead to, (m, nq): not as many where some lead nowhere.

        They are few, and asked for once: no kernel of the whole step is traced for them.
        """
        found, closed = self._descended(problem, self._inside(problem, starts), None, self._by_numbers)
        return found[closed]

    def _started(self, problem: Problem, guesses: Array, spread: float | None, rng: np.random.Generator) -> Array:
        """Guesses disturbed, or drawn anew; what is held stays."""
        m = self.mechanism
        if spread is not None:
            noise = np.zeros((len(guesses), m.nv))
            noise[:, problem.free] = rng.normal(scale=spread, size=(len(guesses), len(problem.free)))
            return self._inside(problem, self.tree.answer(Request(QUANTITIES["integrate"], (guesses, noise))))
        drawn = configurations.draw(m, rng, len(guesses))
        for joint in m.independent_joints:
            if joint.v.start not in problem.free:
                drawn[:, joint.q] = guesses[:, joint.q]
        return drawn

    def _descended(
        self, problem: Problem, q: Array, parameters: Array | None, step: Callable[..., tuple[Array, Array]]
    ) -> tuple[Array, Array]:
        """(where the steps lead from q, whether that is assembled)."""
        active, free = np.arange(len(q)), np.zeros(self.mechanism.nv)
        free[problem.free] = 1.0
        q, closed = q.copy(), np.zeros(len(q), dtype=bool)
        for _ in range(STEPS):
            values = None if parameters is None else parameters[active]
            following, worst = step(q[active], free, problem.lower, problem.upper, values)
            arrived = worst <= 0.01 * CLOSED
            closed[active[arrived]] = True
            q[active[~arrived]] = self._inside(problem, following[~arrived])
            active = active[~arrived]
            if not len(active):
                break
        upright = self.kernels.uprightness(q, parameters)
        return q, closed & np.all(upright >= 0, axis=-1) & np.isfinite(q).all(axis=-1)

    @staticmethod
    def _inside(problem: Problem, q: Array) -> Array:
        """q with bounded numbers within their limits; held ones are left as they are."""
        bounded = [k for k in problem.free if problem.at[k] >= 0 and problem.lower[k] <= problem.upper[k]]
        q = q.copy()
        q[:, problem.at[bounded]] = np.clip(q[:, problem.at[bounded]], problem.lower[bounded], problem.upper[bounded])
        return q

    @property
    def _is_compiled(self) -> bool:
        system = self.kernels.constraints
        return len(system) <= MOST_ROWS and self.mechanism.nv <= MOST_VELOCITIES and not system.iterates

    @property
    def numbers(self) -> int:
        """How many a state needs on its way."""
        rows, nv = self.kernels.rows, self.mechanism.nv
        return 16 * self.mechanism.nq + (0 if self._is_compiled else 3 * rows * (nv + rows))

    def _by_kernel(
        self, q: Array, free: Array, lower: Array, upper: Array, parameters: Array | None
    ) -> tuple[Array, Array]:
        return self._step()(q, free, lower, upper, *self.kernels.source.given(parameters))

    def _by_numbers(
        self, q: Array, free: Array, lower: Array, upper: Array, parameters: Array | None
    ) -> tuple[Array, Array]:
        """The same step of mechanisms with many rows, and of loops by map matrix, by matrices of all states."""
        phi, J = self.kernels.far(q, parameters)
        pull, weights = np.einsum("nij,ni->nj", J, phi), np.broadcast_to(free, (len(q), len(free))).copy()
        at = self._numbers_of_q()
        place, k = q[:, list(at.values())], list(at)
        pressed = ((place <= lower[k]) & (pull[:, k] > 0)) | ((place >= upper[k]) & (pull[:, k] < 0))
        weights[:, k] *= ~pressed
        scaled, square = J * weights[:, None, :], np.einsum("ni,ni->n", phi, phi)
        A = scaled @ np.swapaxes(J, -1, -2) + np.eye(phi.shape[1]) * (DAMPING * square + LEAST_DAMPING)[:, None, None]
        usable = np.isfinite(A).all(axis=(-1, -2))
        solved = np.linalg.solve(np.where(usable[:, None, None], A, np.eye(phi.shape[1])), phi[..., None])
        delta = -np.einsum("nij,ni->nj", scaled, solved[..., 0])
        length = np.sqrt(np.einsum("ni,ni->n", delta, delta) + 1e-300)
        delta *= np.minimum(1.0, LONGEST / length)[:, None]
        delta[~usable] = 0.0
        following = self.tree.answer(Request(QUANTITIES["integrate"], (q, delta)))
        return following, np.where(usable, np.abs(phi).max(axis=-1), np.inf)

    def _numbers_of_q(self) -> dict[int, int]:
        """{velocity: place in q} of joints whose rates are velocities."""
        return {joint.v.start + k: joint.q.start + k for joint in self.mechanism.independent_joints
                if joint.nq == joint.nv for k in range(joint.nv)}  # fmt: skip

    def _step(self) -> Kernel:
        """(q, free, lower, upper) -> (next q, largest residual at q)."""
        if self._kernel is None:
            source, results = self.kernels.source, [("q", (self.mechanism.nq,)), ("worst", ())]
            ports = [*self._inputs(), *source.inputs]
            self._kernel = compiled("assembly step", ports, results, self._function, source.digest)
        return self._kernel

    def _inputs(self) -> list[tuple[str, int]]:
        m = self.mechanism
        return [("q", m.nq), ("free", m.nv), ("lower", m.nv), ("upper", m.nv)]

    def _function(self) -> Any:
        from polybody.mechanism import kinematics

        m, rows = self.kernels.source.traced, len(self.kernels.constraints)
        places = list(zip(*(index.tolist() for index in self.kernels.constraints.filled), strict=True))
        at = self._numbers_of_q()

        def text(q: Array, free: Array, lower: Array, upper: Array, *, domain: Any) -> tuple[Array, Array]:
            graph = domain
            phi, entries = self.kernels.traced.far(q, domain=graph)
            J = graph.zeros(rows, m.nv)
            for (i, j), value in zip(places, entries, strict=True):
                J[i, j] = value
            pull, zero, one = J.T @ phi, 0.0, 1.0
            weights = free.copy()
            for k, place in at.items():  # δ is against Jᵀφ
                down = graph.where(graph.less(zero, pull[k]), zero, one)
                up = graph.where(graph.less(pull[k], zero), zero, one)
                weights[k] = weights[k] * graph.where(graph.less(lower[k], q[place]), one, down)
                weights[k] = weights[k] * graph.where(graph.less(q[place], upper[k]), one, up)
            scaled, square = J * weights, phi @ phi
            A = graph.zeros(rows, rows)
            for i in range(rows):
                A[i, i:] = J[i:] @ scaled[i]
                A[i, i] = A[i, i] + (DAMPING * square + LEAST_DAMPING)
            delta = -(scaled.T @ graph.solve_symmetric(A, phi))
            length = graph.sqrt(delta @ delta + 1e-300)
            delta = delta * graph.where(graph.less(length, LONGEST), one, LONGEST / length)
            worst = graph.const(0)
            for x in phi:
                size = graph.where(graph.less(x, zero), -x, x)
                worst = graph.where(graph.less(worst, size), size, worst)
            return kinematics.integrate(m, q, delta, domain=graph), np.array([worst], dtype=object)

        return trace("assembly step", self._inputs(), text, m.symbols, self.kernels.graph)


__all__ = ["BatchAssembly"]
