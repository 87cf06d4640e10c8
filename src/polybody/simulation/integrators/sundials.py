"""What the two SUNDIALS methods share: output times in chunks, and Python functions that their solvers call back.

A solver goes from one wanted time to the next without telling its inner steps; states are put back on their manifold
(quaternions, stops, loops) as they come out, and a new chunk starts from such a state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from polybody.simulation.failures import BlowUp, ControllerError
from polybody.simulation.integrators.base import Options, Step, finite, hermite
from polybody.simulation.problem import Problem

Array = np.ndarray
MOST_STEPS = 200_000  # between two output times
CHUNK = 256  # output times a call: a restart costs the solver its history
#: (t, y, grid) -> states at the grid's times, rejected tries
Solve = Callable[[float, Array, Array], tuple[list[Array], int]]


def sundials_steps(
    name: str, solve: Solve, called: CalledBack | None, problem: Problem, t: float, y: Array, end: float,
    options: Options,
) -> Iterator[Step]:
    """Steps from one wanted time to the next."""
    times, chunk = wanted_times(t, end, options), CHUNK
    while len(times):
        grid = times[:chunk]
        try:
            states, tries = solve(t, y, grid)
        except RuntimeError as error:
            if len(grid) > 1:  # keep what comes before
                chunk = max(1, len(grid) // 16)
                continue
            if called is not None and called.error is not None:
                raise called.error from called.error.__cause__
            raise BlowUp(f"{name} gave up: {_last_line(error)}") from None
        for time, raw in zip(grid, states, strict=True):
            if not finite(raw):
                raise BlowUp("numbers are not finite any more")
            new = problem.project(raw) if problem.moves() else raw
            dense = partial(hermite, problem, t, time, y, new)
            yield Step(t, time, y, new, dense, tries, problem.off_manifold(raw))
            t, y, tries = time, new, 0
        times = times[len(grid) :]


def wanted_times(t: float, end: float, options: Options) -> Array:
    """The driver's sample times after t, at most `max_step` apart, `end` last."""
    inside = [s for s in options.times if t + 1e-12 * (1 + abs(t)) < s < end]
    marks = [t, *inside, end]
    fine: list[float] = []
    for a, b in pairwise(marks):
        count = int(np.ceil((b - a) / min(options.max_step, 0.05)))
        fine.extend(a + (b - a) * (np.arange(1, count) / count) if count > 1 else [])
        fine.append(b)
    return np.array(fine)


def settings(options: Options) -> dict[str, Any]:
    """Options that both solvers know."""
    chosen: dict[str, Any] = {
        "reltol": options.rtol, "abstol": options.atol, "max_num_steps": MOST_STEPS, "print_stats": False,
        "show_eval_warnings": False,
    }  # fmt: skip
    if np.isfinite(options.max_step):
        chosen["max_step_size"] = options.max_step
    return chosen


class CalledBack:
    """A Python function (t, x) -> arrays in CasADi's graph; its derivatives come from differences.

    The first error it raises is kept: CasADi only says that there was one.
    """

    def __init__(self, function: Callable[[float, Array], list[Array]], size: int, outputs: list[int]) -> None:
        import casadi

        self.error: ControllerError | None = None
        owner = self

        class Function(casadi.Callback):
            def __init__(self) -> None:
                casadi.Callback.__init__(self)
                self.construct("called_back", {"enable_fd": True})

            def get_n_in(self) -> int:
                return 2

            def get_n_out(self) -> int:
                return len(outputs)

            def get_sparsity_in(self, i: int) -> Any:
                return casadi.Sparsity.dense(1 if i == 0 else size, 1)

            def get_sparsity_out(self, i: int) -> Any:
                return casadi.Sparsity.dense(outputs[i], 1)

            def eval(self, arguments: Any) -> Any:
                try:
                    return function(float(arguments[0]), np.asarray(arguments[1]).ravel())
                except ControllerError as error:
                    owner.error = error
                    raise

        self.function = Function()

    def __call__(self, t: Any, x: Any) -> Any:
        return self.function(t, x)


def _last_line(error: Exception) -> str:
    return str(error).strip().splitlines()[-1]


__all__ = ["CalledBack", "settings", "sundials_steps", "wanted_times"]
