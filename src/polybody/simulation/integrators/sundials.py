"""What the two SUNDIALS methods share: output times in chunks, and Python functions that their solvers call back.

A solver goes from one wanted time to the next without telling its inner steps; states are put back on their manifold
(quaternions, stops, loops) as they come out, and a new chunk starts from such a state. Between wanted times a state is
that of polynomials through the solver's own output (`pieces`), each of which is a step. Every evaluation comes back to
Python, with its exact Jacobian: so a run can be interrupted, and an error of a user's function ends it.
"""

from __future__ import annotations

import contextlib
import io
import signal
import threading
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from polybody.simulation.bridge import bridge, crossing_time
from polybody.simulation.failures import BlowUp
from polybody.simulation.integrators.base import Options, Step, finite
from polybody.simulation.integrators.pieces import LOOKS, PARTS, resolved, subdivided, through
from polybody.simulation.moments import moment
from polybody.simulation.problem import Problem

Array = np.ndarray
MOST_STEPS = 20_000  # between two output times
BUDGET = 40_000  # evaluations a call: the driver must be told how a run goes on
MOST_MARKS = 1_000_000  # between wanted times, in a run
CHUNK = 256  # wanted times a call: a restart costs the solver its history
FIRST_CHUNK = 2  # of the first call where events are looked for: what comes after one is computed in vain
LOOP_CHUNK = 32  # with loops, which may come near singular configurations
#: (t, y, grid) -> states at the grid's times, inner steps, rejected tries
Solve = Callable[[float, Array, Array], tuple[Array, int, int]]


def sundials_steps(
    name: str, solve: Solve, called: CalledBack, problem: Problem, t: float, y: Array, end: float, options: Options
) -> Iterator[Step]:
    """Steps from one wanted time to the next, and across singular configurations of loops."""
    times, longest = wanted_times(t, end, options), LOOP_CHUNK if problem.loops else CHUNK
    before, chunk = (t, y), FIRST_CHUNK if options.inside else longest
    counts: tuple[int, int] = 0, 0  # inner steps and rejected tries of the last call

    def within_pieces(t: float, y: Array, grid: Array) -> Array:
        nonlocal counts
        called.count = 0
        states, count, tries = solve(t, y, subdivided(t, grid).ravel())
        counts = count, tries
        return states.reshape(len(grid), PARTS, -1)

    while len(times):
        across = ahead(problem, before, t, y, times[0], end, options) if problem.loops else None
        if across is not None:
            yield across
            before, (t, y) = (t, y), (across.t1, across.y1)
            times = times[times > t + moment(t, 1e-12)]
            continue
        grid, said, called.error = times[:chunk], io.StringIO(), None
        states_at = partial(within_pieces, t, y)
        try:
            with contextlib.redirect_stderr(said), interrupts_kept_for(called):  # stderr: what SUNDIALS reports
                states, off = states_at(grid), np.zeros(len(grid))
                if options.inside and finite(states):
                    grid, states, off = resolved(states_at, t, y, grid, states, options)
            called.raise_interrupt(said.getvalue())
        except RuntimeError as error:
            called.raise_interrupt(f"{said.getvalue()}{error}")
            if len(grid) > 1:  # keep what comes before
                chunk = longest = max(1, len(grid) // 16)
                continue
            if isinstance(called.error, _TooMany):
                raise BlowUp(f"{name} needs more than {BUDGET} evaluations between two output times") from None
            if called.error is not None:
                raise called.error from called.error.__cause__
            raise BlowUp(f"{name} gave up: {_reason(said.getvalue(), error)}") from None
        chunk, (count, tries) = min(2 * chunk, longest), counts
        # By their lengths: those beyond an event, which are void, are no steps of the run.
        taken = np.diff(np.ceil(count * (grid - t) / (grid[-1] - t)).astype(int), prepend=0).tolist()
        for time, within, left, inner in zip(grid, states, off, taken, strict=True):
            raw = within[-1]
            if not finite(raw):
                raise BlowUp("numbers are no longer finite")
            new = problem.project(raw) if problem.moves() else raw
            dense = partial(through, t, time, np.vstack([y, within[:-1], new]))
            yield Step(
                t, time, y, new, dense, tries, problem.off_manifold(raw), inner, looks=LOOKS, left_out=float(left)
            )
            before, (t, y, tries) = (t, y), (time, new, 0)
            if time < times[0]:
                continue
            times = times[1:]
            if problem.loops and t < grid[-1] and crossing_time(problem, y) < horizon(problem, t, y, times[0]):
                break


def ahead(
    problem: Problem, before: tuple[float, Array], t: float, y: Array, following: float, end: float, options: Options
) -> Step | None:
    """A step across a singular configuration that comes soon."""
    soon = horizon(problem, t, y, following)
    if not crossing_time(problem, y) < soon:
        return None
    rate, jerk = problem.rate(t, y), np.zeros(problem.nv)
    if t > before[0]:
        v = slice(problem.nq, problem.nq + problem.nv)
        jerk = (rate[v] - problem.rate(*before)[v]) / (t - before[0])
    return bridge(problem, t, y, rate, jerk, end, soon, options)[0]


def horizon(problem: Problem, t: float, y: Array, following: float) -> float:
    """Within two and a half output times, or a tenth of a radian."""
    return max(2.5 * (following - t), 0.1 / max(float(np.abs(problem.split(y)[1]).max(initial=0.0)), 1e-9))


def wanted_times(t: float, end: float, options: Options) -> Array:
    """The driver's sample times after t, at most `max_step` apart, `end` last."""
    inside = [s for s in options.times if t + moment(t, 1e-12) < s < end]
    marks = [t, *inside, end]
    fine: list[float] = []
    for a, b in pairwise(marks):
        count = int(np.ceil((b - a) / min(options.max_step, max(0.05, (end - t) / MOST_MARKS))))
        fine.extend(a + (b - a) * (np.arange(1, count) / count) if count > 1 else [])
        fine.append(b)
    return np.array(fine)


def solver_options(options: Options) -> dict[str, Any]:
    """What of a user's options CasADi's integrators are told, by their names for it."""
    common: dict[str, Any] = {
        "reltol": options.rtol, "abstol": options.atol, "max_num_steps": MOST_STEPS, "print_stats": False,
        "show_eval_warnings": False, "quad_err_con": True,  # the work is a result too
    }  # fmt: skip
    return common | ({"max_step_size": options.max_step} if np.isfinite(options.max_step) else {})


def integrate(
    method: str, equations: dict[str, Any], called: CalledBack, t: float, y: Array, grid: Array, options: Options,
    start: dict[str, Any], chosen: dict[str, Any],
) -> tuple[Array, int, int]:
    """(states at the grid's times, inner steps, rejected tries) of one call; `chosen` are options of the method.

    SUNDIALS counts its time from t: late times are resolved badly, and its least step is a part of them.
    """
    import casadi

    called.begun = t
    solver = casadi.integrator(method, method, equations, 0.0, grid - t, {**solver_options(options), **chosen})
    answer = solver(x0=y[:-1], **start)
    work = np.asarray(answer["qf"]).ravel() + y[-1]
    told = solver.stats()
    return np.column_stack([np.asarray(answer["xf"]).T, work]), int(told["nsteps"]), int(told["netfails"])


class _TooMany(Exception):
    """A call took more evaluations than it may."""


class CalledBack:
    """A Python function (t, x) -> arrays in CasADi's graph, and `slopes` (t, x), its arrays' Jacobians by x. The graph
    counts time from `begun`.

    The first error that either raises is kept: CasADi only says that there was one.
    """

    def __init__(
        self, function: Callable[[float, Array], list[Array]], slopes: Callable[[float, Array], list[Array]], size: int,
        outputs: list[int],
    ) -> None:
        import casadi

        self.error: BaseException | None = None
        self.interrupted = False
        self.count, self.begun = 0, 0.0
        dense, inputs, owner = casadi.Sparsity.dense, [1, size], self
        latest: list[Any] = [None, None]  # SUNDIALS asks for rates and quadratures one after the other

        def kept(call: Callable[[float, Array], list[Array]], arguments: Any) -> list[Array]:
            if owner.error is not None:
                raise owner.error
            owner.count += 1
            try:
                owner.raise_interrupt()
                if owner.count > BUDGET:
                    raise _TooMany
                return call(owner.begun + float(arguments[0]), np.asarray(arguments[1]).ravel())
            except BaseException as error:
                owner.error = error
                raise

        def remembered(t: float, x: Array) -> list[Array]:
            key = (t, x.tobytes())
            if latest[0] != key:
                latest[:] = key, function(t, x)
            return latest[1]

        class Slopes(casadi.Callback):
            """Its inputs are those of the function and its answers; its outputs by t (none) and x."""

            def __init__(self) -> None:
                casadi.Callback.__init__(self)
                self.construct("called_back_slopes", {})

            def get_n_in(self) -> int:
                return 2 + len(outputs)

            def get_n_out(self) -> int:
                return 2 * len(outputs)

            def get_sparsity_in(self, i: int) -> Any:
                return dense([*inputs, *outputs][i], 1)

            def get_sparsity_out(self, i: int) -> Any:
                return dense(outputs[i // 2], size) if i % 2 else casadi.Sparsity(outputs[i // 2], 1)

            def eval(self, arguments: Any) -> Any:
                none = [casadi.DM(rows, 1) for rows in outputs]
                return [part for pair in zip(none, kept(slopes, arguments), strict=True) for part in pair]

        class Function(casadi.Callback):
            def __init__(self) -> None:
                casadi.Callback.__init__(self)
                self.construct("called_back", {})

            def get_n_in(self) -> int:
                return 2

            def get_n_out(self) -> int:
                return len(outputs)

            def get_sparsity_in(self, i: int) -> Any:
                return dense(inputs[i], 1)

            def get_sparsity_out(self, i: int) -> Any:
                return dense(outputs[i], 1)

            def has_jacobian(self) -> bool:
                return True

            def get_jacobian(self, *_: Any) -> Any:
                return owner.slopes

            def eval(self, arguments: Any) -> Any:
                return kept(remembered, arguments)

        self.slopes, self.function = Slopes(), Function()

    def __call__(self, t: Any, x: Any) -> Any:
        return self.function(t, x)

    def raise_interrupt(self, said: str = "") -> None:
        """Raise an interrupt that came during the call, or that CasADi made a line of text of."""
        if self.interrupted or isinstance(self.error, KeyboardInterrupt) or "KeyboardInterrupt" in said:
            raise KeyboardInterrupt


@contextlib.contextmanager
def interrupts_kept_for(called: CalledBack) -> Iterator[None]:
    """Note Ctrl-C in `called` instead of raising it in the middle of CasADi, whose wrappers may swallow the exception.

    The next evaluation, or the end of the call, raises it. Only the main thread gets signals, and only Python's own
    handler is replaced: a program that handles SIGINT itself keeps its handler.
    """
    own = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not own or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, lambda *_: setattr(called, "interrupted", True))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _reason(said: str, error: Exception) -> str:
    """What SUNDIALS said last, and what CasADi made of it."""
    lines = [text.strip().splitlines()[-1] for text in (said, str(error)) if text.strip()]
    return " ".join(lines)


__all__ = [
    "CHUNK", "LOOP_CHUNK", "CalledBack", "ahead", "horizon", "integrate", "solver_options", "sundials_steps",
    "wanted_times",
]  # fmt: skip
