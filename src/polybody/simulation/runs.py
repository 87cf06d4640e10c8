"""Runs of one machine with many sets of parameters: `simulate(variant, …, parameters=(n, k))`.

Each run is one of its own, with adaptive steps, events and an audit; the compiled steps are shared, as parameters are
inputs of them. For thousands of fixed-step runs without events see `rollout`. An interrupt ends them all, and an error
too: the runs made so far are returned, or carried by the error as `runs`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

from polybody.errors import InputError, PolybodyError, warn
from polybody.mechanism.columns import state_text
from polybody.model.arguments import as_model, float_array, state_array
from polybody.model.batches import batch_shape
from polybody.names import counted
from polybody.simulation.trajectory import INTERRUPTED, Trajectory

Array = np.ndarray
P = ParamSpec("P")
R = TypeVar("R")


class Runs:
    """Runs with leading dimensions `shape`: `runs[3]` or `runs[1, 2]` is a `Trajectory`, iteration goes through all.

    After an interrupt, shape is the number of runs made; the last of them ends early.

    t (n,), q (*shape, n, nq), v, a, tau (*shape, n, nv) and work (*shape, n) are available if all runs have the same
    times, which `sample` or `times` ensure unless events or a run that stopped early add others.
    """

    def __init__(self, runs: list[Trajectory], shape: tuple[int, ...]) -> None:
        self._runs, self.shape = runs, shape

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[Trajectory]:
        return iter(self._runs)

    def __getitem__(self, index: Any) -> Trajectory:
        where = index if isinstance(index, tuple) else (index,)
        if len(where) == 1 and len(self.shape) != 1:  # in the order of iteration
            return self._runs[where[0]]
        return self._runs[int(np.arange(len(self)).reshape(self.shape)[where])]

    def __repr__(self) -> str:
        early = [k for k, run in enumerate(self._runs) if run.stopped]
        told = f", {len(early)} stopped early (first: {early[0]})" if early else ""
        return f"<Runs of {self._runs[0].model.name!r}: {counted(len(self), 'run')}, shape {self.shape}{told}>"

    @property
    def t(self) -> Array:
        """Times of all runs, (n,)."""
        first = self._runs[0].t
        for k, run in enumerate(self._runs):
            if not np.array_equal(run.t, first):
                raise InputError(
                    f"run {k} has other times than run 0 (events, or it stopped early: {run.stopped}); take the runs "
                    "one by one, runs[k]"
                )
        return first

    @property
    def q(self) -> Array:
        """Configurations, (*shape, n, nq)."""
        return self._stacked("q")

    @property
    def v(self) -> Array:
        """Velocities, (*shape, n, nv)."""
        return self._stacked("v")

    @property
    def a(self) -> Array:
        """Accelerations, (*shape, n, nv)."""
        return self._stacked("a")

    @property
    def tau(self) -> Array:
        """Joint forces, (*shape, n, nv)."""
        return self._stacked("tau")

    @property
    def work(self) -> Array:
        """Work done since the start, (*shape, n)."""
        return self._stacked("work")

    def _stacked(self, name: str) -> Array:
        _ = self.t  # that they are the same
        found = np.array([getattr(run, name) for run in self._runs])
        return found.reshape(*self.shape, *found.shape[1:])


def each_run(simulate: Callable[P, R]) -> Callable[P, R]:
    """`simulate` for `parameters` (..., k): one run per set; q0, v0 and currents0 broadcast with them."""

    @wraps(simulate)
    def call(model: Any, duration: Any, q0: Any = None, v0: Any = None, *given: Any, **options: Any) -> Any:
        parameters = options.pop("parameters", None)
        if parameters is None:
            return simulate(model, duration, q0, v0, *given, **options)  # type: ignore[call-arg]
        model = as_model("simulate", model)
        values = model.parameters.checked(parameters)
        currents = options.pop("currents0", None)
        parts = {
            "parameters": values,
            **({} if q0 is None else {"q0": state_array("q0", q0, model.nq)}),
            **({} if v0 is None else {"v0": state_array("v0", v0, model.nv)}),
            **({} if currents is None else {"currents0": float_array("currents0", currents)}),
        }
        lead = batch_shape([x for x in parts.values() if x.ndim])
        wide = {name: np.broadcast_to(x, (*lead, *x.shape[-1:])) for name, x in parts.items()}

        def one(index: tuple[int, ...]) -> Any:
            own = {name: x[index] for name, x in wide.items()}
            q, v = own.pop("q0", None), own.pop("v0", None)
            return simulate(model, duration, q, v, *given, **options, **own)  # type: ignore[call-arg]

        if not lead:
            return one(())
        if not np.prod(lead):
            raise InputError(f"parameters, q0 and v0 broadcast to {lead}: there is no run to make")
        runs: list[Trajectory] = []
        for index in np.ndindex(lead):
            try:
                runs.append(one(index))
            except BaseException as error:
                if runs:
                    setattr(error, "runs", Runs(runs, (len(runs),)))  # noqa: B010  of any exception
                if isinstance(error, PolybodyError):
                    error.args = (f"{error}{state_text(index)}", *error.args[1:])
                raise
            if str(runs[-1].stopped).startswith(INTERRUPTED) and len(runs) < np.prod(lead):
                warn(f"interrupted: the first {len(runs)} of {np.prod(lead)} runs are returned")
                return Runs(runs, (len(runs),))
        return Runs(runs, lead)

    return call  # type: ignore[return-value]


__all__ = ["Runs", "each_run"]
