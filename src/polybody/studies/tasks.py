"""What a study does with each case: a quantity, a rollout, a simulation, a linearisation, or a user's function.

Where all cases of a chunk can be lanes of one kernel (quantities, rollouts) they are; otherwise each case is taken for
itself. A chunk is always computed in the same way, whoever computes it, so that results do not depend on the executor.
A case that fails is found by halving the lanes, and becomes a row with its error.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from polybody.errors import InputError, PolybodyError
from polybody.interrupts import passed_on
from polybody.model.model import Model
from polybody.properties import cached_property
from polybody.quantities.quantity import Quantity
from polybody.quantities.table import quantity as quantity_named
from polybody.studies import targets
from polybody.studies.axes import Cases, Correlated
from polybody.studies.reductions import kept, key_of, text_of

Array = np.ndarray
KINDS = ("quantity", "rollout", "simulate", "linearize", "function")
#: cases in a chunk, where nothing is said
CHUNKS = {"quantity": 16384, "rollout": 256, "simulate": 16, "linearize": 256, "function": 64}


@dataclass(frozen=True, eq=False)
class Case:
    """One case, as a user's function gets it: its number, values by name, model with its parameters, random numbers."""

    index: int
    values: dict[str, Any]
    model: Model | None
    seed: int

    @property
    def rng(self) -> np.random.Generator:
        """The case's own random numbers: the spawn of the study's seed that has its number."""
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(1, self.index)))

    def __getitem__(self, name: str) -> Any:
        return self.values[name]


@dataclass(frozen=True, eq=False)
class Task:
    """What is done: its kind, options, a user's function, and what is kept."""

    kind: str
    options: dict[str, Any]
    keep: tuple[str, ...]
    function: Callable[[Case], Mapping[str, Any]] | None = None
    where: dict[str, tuple[str, Any]] = field(default_factory=dict)  # axis name -> (what it sets, where in it)

    @property
    def in_lanes(self) -> bool:
        """Whether cases can be lanes of one kernel: controllers other than PD are Python of one case."""
        return self.kind in ("quantity", "rollout") and not targets.made_by_user(self.options)


# ---- one chunk -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Job:
    """Data of a worker, which can be sent to another process or machine.

    `template` makes the model of a case from its values, where cases differ in structure; `model` is then the first's.
    """

    model: Model | None
    cases: Cases
    task: Task  # what is computed for every case
    template: Callable[[dict[str, Any]], Model] | None = None
    _nominal: dict[str, Array] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def asked(self) -> Quantity:
        """The quantity that is computed."""
        assert self.model is not None
        return quantity_named(self.model.mechanism, self.task.options["quantity"])

    @cached_property
    def shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """Names and shapes of its results."""
        assert self.model is not None
        return self.asked.shapes(self.model.engine.sizes())

    @cached_property
    def together(self) -> tuple[list[tuple[str, tuple[int, ...]]], Any] | None:
        """(what is kept, its kernel) where a quantity has straight-line code: nothing else is computed or written.

        Where the bounds of the axes leave parameters in doubt, the kernel's last result is their margin, so that they
        are not read a second time.
        """
        loaded = any(target.startswith("wrench.") for target, _ in self.task.where.values())
        if self.task.kind != "quantity" or loaded or self.model is None:
            return None
        found = text_of(self.task.keep, self.shapes)
        if found is None:
            return None
        (items, text), parameters = found, self.model.parameters
        margins = [("margin", ())] if len(parameters) and not self._possible() else []

        def whole(results: Sequence[Any], symbols: Sequence[Any]) -> list[Any]:
            return [*text(results), *(parameters.margin_function().call(symbols) if margins else [])]

        kernel = self.model.engine.derived(self.asked, f"kept {items}", [*items, *margins], whole)
        return None if kernel is None else (items, kernel)

    @property
    def _is_ready(self) -> bool:
        """Whether lanes are a call of machine code that there is already, and nothing else."""
        return self.__dict__.get("together") is not None

    def _possible(self) -> bool:
        """Whether the bounds of the axes show that no case has parameters that are not possible."""
        assert self.model is not None
        bounds, low = self.cases.bounds(), self.nominal("parameters").copy()
        high = low.copy()
        for name, (target, columns) in self.task.where.items():
            if target == "parameters":
                if name not in bounds:
                    return False
                low[columns], high[columns] = bounds[name]
        return self.model.parameters.all_possible(low, high)

    def nominal(self, target: str) -> Array:
        """Values used in all cases unless an axis varies them."""
        if target not in self._nominal:
            assert self.model is not None
            self._nominal[target] = targets.base(self.model, self.task, target)
        return self._nominal[target]

    def __reduce__(self) -> Any:
        """What is sent to workers: kernels they take from their cache."""
        return Job, (self.model, self.cases, self.task, self.template)

    def compute(self, index: int, cases: Cases | None = None) -> dict[str, Any]:
        """Columns of one chunk: case, the varied names, what is kept, and errors, {row: what was wrong}.

        `cases` are those of the study in chunks of another size.
        """
        cases = cases or self.cases
        first, last = cases.span(index)
        values, count = cases.values(index), last - first
        errors: dict[int, str] = {}
        results: dict[str, Array] = {}
        lanes = self.task.in_lanes and self.template is None
        # a user's function may raise anything: its case failed, the others go on
        users = self.task.kind == "function" or self.template is not None or targets.made_by_user(self.task.options)
        expected = (Exception,) if users else (PolybodyError, ArithmeticError, ValueError)

        # pieces of the chunk that are computed together, the next one last; where that fails, their halves
        todo = [(0, count)] if lanes else [(k, k + 1) for k in reversed(range(count))]
        while todo:
            start, stop = todo.pop()
            some = {name: array[start:stop] for name, array in values.items()}
            try:
                if lanes and self._is_ready:
                    answer = self._lanes(some, stop - start)
                else:  # what may trace loses interrupts; `simulate` returns at one, the study must end, without it
                    one = functools.partial(self._lanes, some, stop - start)
                    answer = passed_on(one if lanes else functools.partial(self._single, first + start, some))
            except expected as error:
                if stop - start > 1:
                    middle = (start + stop) // 2
                    todo += [(middle, stop), (start, middle)]
                else:
                    errors[start] = f"{type(error).__name__}: {error}".replace(" (state 0 of the batch)", "")
                continue
            for name, array in answer.items():
                if name in values or name in ("case", "error"):
                    errors[start] = f"a result is called {name!r}, like a column that the study has; rename it"
                    continue
                if stop - start == count:
                    results[name] = array
                    continue
                if name not in results:
                    results[name] = np.full((count, *array.shape[1:]), np.nan)
                if results[name].shape[1:] != array.shape[1:]:
                    others = results[name].shape[1:]
                    errors[start] = f"{name} has shape {array.shape[1:]}; other cases have {others}"
                    continue
                results[name][start:stop] = array
        return {"case": range(first, last), **values, **results, "error": errors}

    def _lanes(self, values: dict[str, Array], count: int) -> dict[str, Array]:
        """Results (count, …) of cases that differ in parameters, states and gains, in one call."""
        assert self.model is not None
        given = self._given(values, count)
        if self.together is None:
            return kept(self.task.keep, self._answered(self.model, given, count))
        items, kernel = self.together
        states = self.model._arrays(self.asked, [given.get(name, self.nominal(name)) for name in self.asked.arguments])
        parameters = given.get("parameters")
        found = kernel(*states, parameters=parameters)
        parts = list(found) if isinstance(found, tuple) else [found]
        if len(parts) > len(items) and not np.min(parts.pop()) >= 0:
            self.model.parameters.checked(parameters)  # says which number of which case is not possible
            raise PolybodyError("a parameter is not possible")
        return {item: np.broadcast_to(part, (count, *shape)) for (item, shape), part in zip(items, parts, strict=True)}

    def _single(self, index: int, values: dict[str, Array]) -> dict[str, Array]:
        plain = {name: _plain(array[0]) for name, array in values.items()}
        if self.template is not None:
            own = self.template({n: x for n, x in plain.items() if self.task.where[n][0] == "value"})
            if not isinstance(own, Model):
                raise InputError(f"the template returned {type(own).__name__}; expected a Model")
            return replace(self, model=own, template=None)._single(index, values)
        given = {} if self.model is None else self._given(values, 1)
        model = self.model
        if model is not None and "parameters" in given:
            model = model.parameters.at(given["parameters"][0])
        if self.task.kind == "function":
            assert self.task.function is not None
            answer = self.task.function(Case(index, plain, model, self.cases.seed))
            if not isinstance(answer, Mapping):
                raise InputError(f"the study's function returned {type(answer).__name__}; expected {{name: numbers}}")
            found = {str(name): np.asarray(x, dtype=float)[None] for name, x in answer.items()}
        elif self.task.kind in ("quantity", "rollout"):
            assert model is not None
            found = self._answered(model, {n: x for n, x in given.items() if n != "parameters"}, 1)
        else:
            assert model is not None
            one = _simulated if self.task.kind == "simulate" else _linearized
            found = {name: np.asarray(x)[None] for name, x in one(model, self.task, given).items()}
        return kept(self.task.keep, found)

    def _given(self, values: dict[str, Array], count: int) -> dict[str, Array]:
        """{what is set: (count, size)} from the varied names, on top of what is given for all."""
        parts: dict[str, list[tuple[list[int] | None, Array]]] = {}
        for name, array in values.items():
            target, columns = self.task.where[name]
            if target != "value":
                parts.setdefault(target, []).append((columns, array))
        own = {target: some[0][1] for target, some in parts.items() if target.startswith("controller")}
        return own | {
            target: _filled(self.nominal(target), some, count)
            for target, some in parts.items() if target not in own
        }  # fmt: skip


    def _answered(self, model: Model, given: dict[str, Array], count: int) -> dict[str, Array]:
        return (_quantity if self.task.kind == "quantity" else _rollout)(model, self, given, count)


def _filled(nominal: Array, parts: list[tuple[list[int] | None, Array]], count: int) -> Array:
    """(count, size): the nominal numbers, with columns replaced by those that vary."""
    whole = _side_by_side(parts, len(nominal))
    if whole is not None:
        return whole
    found = np.empty((count, len(nominal)))
    found[:] = nominal
    for columns, array in parts:
        if columns is None:
            found[:] = array  # one number for all, or one for each
        elif columns == list(range(columns[0], columns[-1] + 1)):
            found[:, columns[0] : columns[-1] + 1] = array
        else:
            found[:, columns] = array
    return found


def _side_by_side(parts: list[tuple[list[int] | None, Array]], size: int) -> Array | None:
    """The array of whose columns the parts are all, in their order, as they were drawn: nothing is copied."""
    if [k for columns, _ in parts for k in columns or ()] != list(range(size)):
        return None
    first = parts[0][1]
    owner, place = first.base, first.ctypes.data
    for columns, part in parts:
        inside = owner is not None and part.base is owner and part.ctypes.data == place
        if not inside or part.shape[1] != len(columns or ()) or part.strides != (8 * size, 8):
            return None
        place += 8 * part.shape[1]
    return np.lib.stride_tricks.as_strided(first, (len(first), size), (8 * size, 8))


def _plain(value: Array) -> Any:
    return float(value[0]) if value.shape == (1,) else value


def _quantity(model: Model, job: Job, given: dict[str, Array], count: int) -> dict[str, Array]:
    states = [given.get(name, job.nominal(name)) for name in job.asked.arguments]
    answer = model._ask(job.asked, states, wrenches=targets.wrenches(given), parameters=given.get("parameters"))
    parts = answer if isinstance(answer, tuple) else (answer,)
    found = {}
    for (name, shape), part in zip(job.shapes, parts, strict=True):
        found[name] = np.broadcast_to(part, (count, *shape))
    return found


def _rollout(model: Model, job: Job, given: dict[str, Array], count: int) -> dict[str, Array]:
    from polybody.simulation.rollout import rollout

    task, o = job.task, job.task.options
    q0, v0 = (given[name] if name in given else job.nominal(name) for name in ("q0", "v0"))
    law = targets.law(model, task, given, single=targets.made_by_user(o))
    if isinstance(law, np.ndarray) and law.ndim == 2:
        law = np.repeat(law[:, None, :], int(o["steps"]), axis=1)
    whole = any(key_of(item) in ("q", "v") for item in task.keep) or not task.keep
    found = rollout(model, q0, v0, law, int(o["steps"]), float(o.get("dt", 1e-3)), method=o.get("method", "rk4"),
                    keep="all" if whole else "last", parameters=given.get("parameters"),
                    wrenches=targets.wrenches(given))  # fmt: skip
    q, v = (np.broadcast_to(x, (count, *x.shape[-(1 + whole) :])) for x in (found.q, found.v))
    if not np.isfinite(q).all() or not np.isfinite(v).all():
        raise PolybodyError("the motion is not finite; a smaller dt may help")
    if whole:
        return {"q": q, "v": v, "q_end": q[:, -1], "v_end": v[:, -1]}
    return {"q_end": q, "v_end": v}


def _simulated(model: Model, task: Task, given: dict[str, Array]) -> dict[str, Any]:
    from polybody.simulation import simulate

    o = dict(task.options)
    q0, v0 = (given[name][0] if name in given else targets.base(model, task, name) for name in ("q0", "v0"))
    law = targets.law(model, task, given, single=True) if "controller" in o else None
    more = {k: x for k, x in o.items() if k not in ("q0", "v0", "duration", "controller")}
    run = simulate(model, float(o["duration"]), q0, v0, law, wrenches=targets.wrenches(given, single=True), **more)
    kinetic, potential = run.energies
    return {"t": run.t, "q": run.q, "v": run.v, "tau": run.tau, "q_end": run.q[-1], "v_end": run.v[-1],
            "peak_tau": np.abs(run.tau).max(axis=0), "energy_end": kinetic[-1] + potential[-1],
            "trusted": float(run.audit.trusted)}  # fmt: skip


def _linearized(model: Model, task: Task, given: dict[str, Array]) -> dict[str, Any]:
    from polybody.linearization import linearize

    q, v = (given[name][0] if name in given else targets.base(model, task, name) for name in ("q", "v"))
    tau = given["tau"][0] if "tau" in given else task.options.get("tau")
    more = {k: x for k, x in task.options.items() if k in ("inputs", "outputs", "independent")}
    system = linearize(model, q, v, tau, wrenches=targets.wrenches(given, single=True), **more)
    poles: Any = np.sort_complex(system.poles())
    return {"A": system.A, "B": system.B, "pole_real": np.real(poles), "pole_imag": np.imag(poles)}


def varied_names(cases: Cases) -> list[str]:
    return [n for axis in cases.axes for n in (axis.names if isinstance(axis, Correlated) else (axis.name,))]


__all__ = ["CHUNKS", "KINDS", "Case", "Job", "Task", "varied_names"]
