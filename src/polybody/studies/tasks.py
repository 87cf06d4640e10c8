"""What a study does with each case: a quantity, a rollout, a simulation, a linearisation, or a user's function.

Where all cases of a chunk can be lanes of one kernel (quantities, rollouts) they are; otherwise each case is taken for
itself. A chunk is always computed in the same way, whoever computes it, so that results do not depend on the executor.
A case that fails is found by halving the lanes, and becomes a row with its error.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from polybody.errors import InputError, PolybodyError
from polybody.kernels.interrupts import passed_on
from polybody.model.model import Model
from polybody.names import nearest
from polybody.quantities.table import quantity as quantity_named
from polybody.studies import targets
from polybody.studies.axes import Cases, Correlated

Array = np.ndarray
KINDS = ("quantity", "rollout", "simulate", "linearize", "function")
#: cases in a chunk, where nothing is said
CHUNKS = {"quantity": 16384, "rollout": 256, "simulate": 16, "linearize": 256, "function": 64}
REDUCTIONS: dict[str, Callable[..., Array]] = {
    "max": lambda x: x.max(axis=-1), "min": lambda x: x.min(axis=-1), "mean": lambda x: x.mean(axis=-1),
    "norm": lambda x: np.sqrt((x * x).sum(axis=-1)), "peak": lambda x: np.abs(x).max(axis=-1),
}  # fmt: skip
_KEPT = re.compile(r"(?:(?P<op>\w+)\()?(?P<key>[A-Za-z_]\w*)(?P<index>(?:\[\d+\])*)(?P<end>\))?")


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
    """All that a worker needs: it can be sent to another process or machine.

    `template` makes the model of a case from its values, where cases differ in structure; `model` is then the first's.
    """

    model: Model | None
    cases: Cases
    task: Task
    template: Callable[[dict[str, Any]], Model] | None = None

    def compute(self, index: int) -> dict[str, Any]:
        """Columns of one chunk: case, the varied names, what is kept, and errors, {row: what was wrong}."""
        first, last = self.cases.span(index)
        values, count = self.cases.values(index), last - first
        errors: dict[int, str] = {}
        results: dict[str, Array] = {}
        lanes = self.task.in_lanes and self.template is None
        # a user's function may raise anything: its case failed, the others go on
        users = self.task.kind == "function" or self.template is not None or targets.made_by_user(self.task.options)
        expected = (Exception,) if users else (PolybodyError, ArithmeticError, ValueError)

        def part(start: int, stop: int) -> None:
            """Compute these cases together; where that fails, halves of them."""
            some = {name: array[start:stop] for name, array in values.items()}
            try:
                if lanes:
                    answer = self._lanes(some, stop - start)
                else:  # `simulate` ends its run at an interrupt and returns: the study must end too, without this case
                    answer = passed_on(functools.partial(self._single, first + start, some))
            except expected as error:
                if stop - start > 1:
                    middle = (start + stop) // 2
                    part(start, middle)
                    part(middle, stop)
                else:
                    errors[start] = f"{type(error).__name__}: {error}".replace(" (state 0 of the batch)", "")
                return
            for name, array in answer.items():
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

        for start in (0,) if lanes else range(count):
            part(start, count if lanes else start + 1)
        return {"case": np.arange(first, last), **values, **results, "error": errors}

    def _lanes(self, values: dict[str, Array], count: int) -> dict[str, Array]:
        """Results (count, …) of cases that differ in parameters, states and gains, in one call."""
        assert self.model is not None
        return kept(self.task.keep, _answered(self.model, self.task, self._given(values, count), count))

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
            found = _answered(model, self.task, {n: x for n, x in given.items() if n != "parameters"}, 1)
        else:
            assert model is not None
            one = _simulated if self.task.kind == "simulate" else _linearized
            found = {name: np.asarray(x)[None] for name, x in one(model, self.task, given).items()}
        return kept(self.task.keep, found)

    def _given(self, values: dict[str, Array], count: int) -> dict[str, Array]:
        """{what is set: (count, size)} from the varied names, on top of what is given for all."""
        assert self.model is not None
        parts: dict[str, list[tuple[list[int] | None, Array]]] = {}
        for name, array in values.items():
            target, columns = self.task.where[name]
            if target != "value":
                parts.setdefault(target, []).append((columns, array))
        own = {target: some[0][1] for target, some in parts.items() if target.startswith("controller")}
        return own | {
            target: _filled(targets.base(self.model, self.task, target), some, count)
            for target, some in parts.items() if target not in own
        }  # fmt: skip


def _filled(nominal: Array, parts: list[tuple[list[int] | None, Array]], count: int) -> Array:
    """(count, size): the nominal numbers, with columns replaced by those that vary."""
    drawn = parts[0][1].base
    together = [k for columns, _ in parts for k in columns or ()] == list(range(len(nominal)))
    if together and drawn is not None and drawn.shape == (count, len(nominal)) and drawn.flags.c_contiguous:
        whole = ((drawn[:, columns[0] : columns[-1] + 1], array) for columns, array in parts if columns)
        if all(x.base is drawn and x.shape == own.shape and x.ctypes.data == own.ctypes.data for own, x in whole):
            return drawn  # all columns were drawn at once, in this order: nothing is copied
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


def _plain(value: Array) -> Any:
    return float(value[0]) if value.shape == (1,) else value


def _answered(model: Model, task: Task, given: dict[str, Array], count: int) -> dict[str, Array]:
    return (_quantity if task.kind == "quantity" else _rollout)(model, task, given, count)


def _quantity(model: Model, task: Task, given: dict[str, Array], count: int) -> dict[str, Array]:
    asked = quantity_named(model.mechanism, task.options["quantity"])
    states = [given[name] if name in given else targets.base(model, task, name) for name in asked.arguments]
    wrenches, values = targets.wrenches(given), given.get("parameters")
    answer = model._ask(asked, states, wrenches=wrenches, parameters=values)
    parts = answer if isinstance(answer, tuple) else (answer,)
    found = {}
    for (name, shape), part in zip(asked.shapes(model.engine.sizes()), parts, strict=True):
        found[name] = np.broadcast_to(part, (count, *shape))
    return found


def _rollout(model: Model, task: Task, given: dict[str, Array], count: int) -> dict[str, Array]:
    from polybody.simulation.rollout import rollout

    o = task.options
    q0, v0 = (given[name] if name in given else targets.base(model, task, name) for name in ("q0", "v0"))
    law = targets.law(model, task, given, single=targets.made_by_user(o))
    if isinstance(law, np.ndarray) and law.ndim == 2:
        law = np.repeat(law[:, None, :], int(o["steps"]), axis=1)
    whole = any(_key(item) in ("q", "v") for item in task.keep) or not task.keep
    found = rollout(model, q0, v0, law, int(o["steps"]), float(o.get("dt", 1e-3)), method=o.get("method", "rk4"),
                    keep="all" if whole else "last", parameters=given.get("parameters"))  # fmt: skip
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


# ---- what is kept ----------------------------------------------------------------------------------------------------


def _key(item: str) -> str:
    match = _KEPT.fullmatch(item)
    return match["key"] if match else item


def check_keep(keep: Sequence[str]) -> None:
    for item in keep:
        match = _KEPT.fullmatch(item)
        if match is None or bool(match["op"]) != bool(match["end"]) or (match["op"] and match["op"] not in REDUCTIONS):
            raise InputError(f"keep has {item!r}; expected a result ('tau'), a number of it ('tau[1]'), or one of "
                             f"{', '.join(REDUCTIONS)} of it ('peak(tau)')")


def kept(keep: Sequence[str], found: dict[str, Array]) -> dict[str, Array]:
    """What of the results (count, …) is kept, by name."""
    if not keep:
        return dict(found)
    result = {}
    for item in keep:
        match = _KEPT.fullmatch(item)
        assert match is not None
        if match["key"] not in found:
            raise InputError(f"keep has {item!r}, but there is no result {match['key']!r}"
                             f"{nearest(match['key'], found)}; available: {', '.join(found)}")
        array = found[match["key"]]
        for number in re.findall(r"\d+", match["index"]):
            if array.ndim < 2 or int(number) >= array.shape[1]:
                raise InputError(f"keep has {item!r}, but {match['key']} has shape {found[match['key']].shape[1:]}")
            array = array[:, int(number)]
        if match["op"]:
            array = REDUCTIONS[match["op"]](array.reshape(len(array), -1))
        result[item] = array
    return result


def varied_names(cases: Cases) -> list[str]:
    return [n for axis in cases.axes for n in (axis.names if isinstance(axis, Correlated) else (axis.name,))]


__all__ = ["CHUNKS", "KINDS", "REDUCTIONS", "Case", "Job", "Task", "check_keep", "varied_names"]
