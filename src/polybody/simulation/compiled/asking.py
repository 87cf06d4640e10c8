"""Forces that a user's function in Python computes at sample instants, asked for by the compiled loop itself.

A step ends at each instant. There the loop calls back with the state, the controller samples, and what it asks for is
checked and written into the loop's memory: no run is left and begun anew for it. Errors cannot pass through machine
code: they are kept, the loop ends where it is, and `raise_kept` raises them as they were once the steps before are
recorded; interrupts too. One that comes as Python is entered belongs to no line of it, and is reported as an error that
nobody can handle: that report is kept in the same way.

Where the function has changed what compiled functions of the user read, the loop ends behind the instant (`is_stale`).

Instants must be known ahead, for equal steps end at them: those of a law with a `next_sample` of the user's own are
not, and there the run goes from one instant to the next.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from polybody.kernels.stepping import TICK_CALL, Loop
from polybody.simulation.compiled.law import Law
from polybody.simulation.compiled.remembered import Remembered
from polybody.simulation.controllers.sampling import Clock, Noisy, Quantised, Sampled, is_sampling
from polybody.simulation.failures import call_user
from polybody.simulation.problem import Problem

Array = np.ndarray


def asking_of(problem: Problem, law: Law) -> Asking | None:
    """What asks the controller, where its forces are held from one instant to the next and these are known ahead."""
    clocks = clocks_of(problem.controller) if law.held else None
    return None if clocks is None else Asking(problem, clocks)


def clocks_of(controller: Any) -> tuple[Clock, ...] | None:
    """The clocks whose instants are those of a controller; None where they are not all known."""
    if isinstance(controller, Quantised | Noisy):
        return clocks_of(controller.law)
    if not isinstance(controller, Sampled):
        return None if is_sampling(controller) else ()
    inner = clocks_of(controller.law)
    own = (controller.clock, controller.effects) if controller.delay else (controller.clock,)
    return None if inner is None else (*own, *inner)


class Reports:
    """Errors that nobody can handle, while loops run: one hook of the process serves the loops of all threads, as these
    begin and end in any order; a law may simulate, too."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[int, list[Asking]] = {}
        self._hook: Any = None
        self._before: Any = None

    @contextmanager
    def kept_for(self, asking: Asking) -> Iterator[None]:
        own = threading.get_ident()
        try:
            with self._lock:
                if not self._running:
                    self._before, self._hook = sys.unraisablehook, self._hook_before(sys.unraisablehook)
                    sys.unraisablehook = self._hook
                self._running.setdefault(own, []).append(asking)
            yield
        finally:
            with self._lock:
                mine = self._running.get(own, [])
                if asking in mine:
                    mine.remove(asking)
                if not mine:
                    self._running.pop(own, None)
                if not self._running and sys.unraisablehook is self._hook:
                    sys.unraisablehook = self._before

    def _hook_before(self, before: Any) -> Callable[[Any], None]:
        def kept(report: Any) -> None:
            mine = self._running.get(threading.get_ident())
            if mine and mine[-1].is_about(report):
                mine[-1].keep(report.exc_value)
            else:
                before(report)

        return kept


REPORTS = Reports()


class Asking:
    """The controller of one run, as the loop sees it."""

    def __init__(self, problem: Problem, clocks: tuple[Clock, ...]) -> None:
        self.problem, self.forces = problem, np.zeros(problem.nv)
        self.is_stale = False
        self.holds: Callable[[], bool] = lambda: True  # whether compiled functions still read what they did
        self._error: BaseException | None = None
        self._loop: Loop | None = None
        self._function: Any = TICK_CALL(self._asked)
        self.memory = Remembered(
            "asked", lambda m, t, q, v, z, c, row, domain: z, size=problem.nv, clocks=clocks,
            take=lambda: self.forces, give=self._given,
        )  # fmt: skip

    def attach(self, loop: Loop) -> None:
        """Let the loop ask."""
        self._loop = loop
        loop.ask(self._function)
        loop.set(tick_stop=0)

    def run(self, loop: Loop) -> int:
        """`loop.run()`, with what is raised on the way to `_asked`."""
        with REPORTS.kept_for(self):
            return loop.run()

    def is_about(self, report: Any) -> bool:
        """Whether a report is of what was raised on the way to `_asked`."""
        return "ctypes callback" in (report.err_msg or "") and report.object in (None, self._asked)  # None: Python 3.13

    def keep(self, error: BaseException) -> None:
        self._error = error

    def forget(self) -> None:
        """The loop is another run's now."""
        self._loop = self._function = None

    def _given(self, times: Array, told: Array, rows: Array) -> None:
        self.forces = rows[-1].copy()

    def _asked(self, *_: int) -> int:
        """At an instant. The loop's doubt, `goal`, is as large as it may not be, and stays so where this fails. Arrays
        of the loop are read and written by their names, in less time than by the addresses that it gives."""
        try:
            problem, loop, controller = self.problem, self._loop, self.problem.controller
            assert loop is not None
            assert is_sampling(controller)
            row, size = loop.held("states")[loop.word("done")], problem.size
            t, y = float(row[size]), row[:size]
            call_user("the controller", t, controller.sample, t, *problem.split(y))
            loop.held("memories")[loop.word("tick_next")] = problem.torque(t, *problem.split(y))
            if not self.holds():
                self.is_stale = True
                loop.set(tick_stop=1)
            loop.set(goal=0.0)
        except BaseException as error:
            self._error = error
        return 0

    def raise_kept(self) -> None:
        """Raise what the controller raised while a loop was under way."""
        error, self._error = self._error, None
        if error is not None:
            raise error


__all__ = ["Asking", "asking_of"]
