"""Runs of one machine with many sets of parameters: `simulate(variant, …, parameters=(n, k))`.

Runs by equal steps without events go side by side (`lanes`), whose trajectories are made when they are asked for. Any
other run is one of its own, with adaptive steps and events; the compiled steps are shared, as parameters are inputs of
them. An interrupt ends them all, and an error too: the runs made so far are returned, or carried by the error as
`runs`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
#: methods whose runs may go side by side
SIDE_BY_SIDE = ("rk4", "semi-implicit")


class Runs:
    """Runs with leading dimensions `shape`: `runs[3]` or `runs[1, 2]` is a `Trajectory`, iteration goes through all.

    After an interrupt, shape is the number of runs made; the last of them ends early.

    t (n,), q (*shape, n, nq), v, a, tau (*shape, n, nv) and work (*shape, n) are available if all runs have the same
    times, which `sample` or `times` ensure unless events or a run that stopped early add others.
    """

    def __init__(self, runs: Sequence[Trajectory], shape: tuple[int, ...]) -> None:
        self._runs, self.shape = runs, shape

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[Trajectory]:
        return (self._runs[k] for k in range(len(self)))

    def __getitem__(self, index: Any) -> Trajectory:
        where = index if isinstance(index, tuple) else (index,)
        if len(where) == 1 and len(self.shape) != 1:  # in the order of iteration
            return self._runs[where[0]]
        return self._runs[int(np.arange(len(self)).reshape(self.shape)[where])]

    def __repr__(self) -> str:
        early = [k for k, run in self._own() if run.stopped]
        told = f", {len(early)} stopped early (first: {early[0]})" if early else ""
        return f"<Runs of {self._runs[0].model.name!r}: {counted(len(self), 'run')}, shape {self.shape}{told}>"

    @property
    def t(self) -> Array:
        """Times of all runs, (n,)."""
        first = self._runs[0].t
        for k, run in self._own():
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
        stacked = getattr(self._runs, "stacked", None)
        found = None if stacked is None else stacked(name)
        found = np.array([getattr(run, name) for run in self]) if found is None else found
        return found.reshape(*self.shape, *found.shape[1:])


    def _own(self) -> Iterator[tuple[int, Trajectory]]:
        """(index, run) of those that may have other times than the first, or stopped early: not those of lanes."""
        made = getattr(self._runs, "made", None)
        return iter(enumerate(self._runs)) if made is None else iter(sorted(made.items()))


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
        if options.get("method") in SIDE_BY_SIDE and np.prod(lead) > 1:
            found = _side_by_side(model, duration, given, options, wide, lead, one)
            if found is not None:
                return found
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


def _side_by_side(
    model: Any, duration: Any, given: Any, options: dict[str, Any], wide: dict[str, Array], lead: tuple[int, ...],
    one: Callable[[tuple[int, ...]], Any],
) -> Runs | None:  # fmt: skip
    """The runs in lanes, or None where they cannot go side by side."""
    from polybody.simulation.arguments import lone_state
    from polybody.simulation.lanes import Lanes, can_run, step_times
    from polybody.simulation.start import prepared

    more = dict(options)
    controller = given[0] if given else more.pop("controller", None)
    places = list(np.ndindex(lead))

    def again(k: int) -> Any:
        own: dict[str, Any] = {name: x[places[k]] for name, x in wide.items()}
        q, v = own.pop("q0", None), own.pop("v0", None)
        return prepared(model, duration, q, v, controller, **more, **own)

    def alone(k: int) -> Any:
        return _named(places[k], lambda: one(places[k]))

    run, y, _, _ = _named(places[0], lambda: again(0))
    times = step_times(run) if can_run(run) else None
    if times is None:
        return None
    y0, several = np.tile(y, (len(places), 1)), [wide[x] for x in ("q0", "v0") if x in wide]
    if any((x != x[places[0]]).any() for x in several):
        states = {name: wide[name] for name in ("q0", "v0") if name in wide}
        for k, index in enumerate(places):
            own = {name: x[index] for name, x in states.items()}
            q, v = _named(index, lambda own=own: lone_state(model, own.get("q0"), own.get("v0")))
            y0[k] = run.problem.state(q, v)
    lanes = Lanes(run, *times, alone, lambda k: again(k)[::3])
    lanes.advance(y0, np.ascontiguousarray(wide["parameters"].reshape(len(places), -1)))
    return Runs(lanes, lead if len(lanes) == len(places) else (len(lanes),))  # type: ignore[arg-type]


def _named(index: tuple[int, ...], work: Callable[[], Any]) -> Any:
    """What work() gives; an error says of which state it is."""
    try:
        return work()
    except PolybodyError as error:
        error.args = (f"{error}{state_text(index)}", *error.args[1:])
        raise


__all__ = ["Runs", "each_run"]
