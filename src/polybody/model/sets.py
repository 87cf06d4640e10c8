"""`parameters=` of calls that compute with a model of plain numbers: the states are grouped by their set of parameters.

A call f(model, q, …) without `parameters=` of its own becomes one with it:

    f(model, q, …, parameters=p) = f(model.parameters.at(p), q, …)              p (k,)
    f(model, q, …, parameters=p)[i] = f(model.parameters.at(p[i]), q[i], …)     p (..., k), leading dimensions broadcast

Each distinct set is evaluated once, on all of its states, by the code that is compiled already. Results may be arrays,
tuples and mappings of them, or records with such fields; what is no array must be alike for all sets.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np

from polybody.errors import InputError, PolybodyError
from polybody.mechanism.columns import state_text
from polybody.model.arguments import as_model, float_array, into
from polybody.model.batches import batch_shape, in_pieces

if TYPE_CHECKING:
    from polybody.model.model import Model

Array = np.ndarray
P = ParamSpec("P")
R = TypeVar("R")

#: matrices of all velocities and rows that functions of `large` batches need on their way, arrays with three indices of
#: velocities, and numbers up to which a batch is not large
MATRICES, ARRAYS, FEW = 4, 16, 8192
#: functions whose results have three indices of velocities, beside those of third order, and how many such arrays they
#: are counted as: with 16 a humanoid's were computed three states at a time
CUBES = {"dynamic_arrays": 2, "reduced_dynamics": 4}
#: arguments (..., n) that have leading dimensions of states
OF_STATES = frozenset({
    "q", "v", "a", "tau", "jerk", "u_dot", "u_ddot", "forces", "currents", "voltages", "momentum",
})  # fmt: skip


def large(function: Callable[P, R]) -> Callable[P, R]:
    """A function of a model, or a method of a namespace, that answers large batches piece by piece.

    Its arguments named in `OF_STATES`, wrenches and parameters have leading dimensions; so have all arrays of results.
    """
    given_names = inspect.signature(function).parameters
    names, usual = list(given_names), getattr(given_names.get("order"), "default", None)
    few = FEW if usual is None and function.__name__ not in CUBES else FEW // 8  # a humanoid's D has 2 MB per state

    @wraps(function)
    def call(*given: Any, **options: Any) -> Any:
        if not any(isinstance(x, np.ndarray) and x.ndim > 1 and x.size > few for x in (*given, *options.values())):
            return function(*given, **options)  # type: ignore[call-arg]
        owner, *rest = given
        options |= dict(zip(names[1:], rest, strict=False))
        felt = options.get("wrenches")
        loads = list(felt.items()) if isinstance(felt, Mapping) else []
        keys = [name for name, x in options.items() if x is not None and name in (*OF_STATES, "parameters")]
        arrays = [*(np.asarray(options[name]) for name in keys), *(np.asarray(x) for _, x in loads)]
        if not all(x.ndim for x in arrays):
            return function(*given[:1], **options)  # type: ignore[call-arg]
        forms: list[Any] = []

        def some(parts: Sequence[Array]) -> tuple[Array, ...]:
            own = options | dict(zip(keys, parts, strict=False))
            if loads:
                own["wrenches"] = dict(zip([frame for frame, _ in loads], parts[len(keys) :], strict=True))
            found = function(owner, **own)  # type: ignore[call-arg]
            forms[:] = forms[:1] or [found]
            return tuple(_leaves(found))

        nv, rows = _model_of(owner).nv, len(_model_of(owner).engine.constraints.constraints)
        cubes = ARRAYS if options.get("order", usual) == 3 else CUBES.get(function.__name__, 0)
        matrices = MATRICES if usual is None and not cubes else ARRAYS  # coefficients of second order are larger, too
        whole = in_pieces(some, arrays, 8 * (matrices * (nv + rows) ** 2 + cubes * nv**3))
        return _rebuilt(forms[0], iter(whole if isinstance(whole, tuple) else (whole,)))

    return call  # type: ignore[return-value]


def _leaves(found: Any) -> Iterator[Array]:
    """The arrays of a result."""
    if isinstance(found, np.ndarray):
        yield found
    elif isinstance(found, Mapping):
        for x in found.values():
            yield from _leaves(x)
    elif isinstance(found, tuple):
        for x in found:
            yield from _leaves(x)
    elif is_dataclass(found):
        for f in fields(found):
            yield from _leaves(getattr(found, f.name))


def _rebuilt(found: Any, arrays: Iterator[Array]) -> Any:
    """A result with other arrays in the order of `_leaves`."""
    if isinstance(found, np.ndarray):
        return next(arrays)
    if isinstance(found, Mapping):
        return {name: _rebuilt(x, arrays) for name, x in found.items()}
    if isinstance(found, tuple):
        members = [_rebuilt(x, arrays) for x in found]
        return type(found)(*members) if hasattr(found, "_fields") else tuple(members)
    if is_dataclass(found):
        return type(found)(**{f.name: _rebuilt(getattr(found, f.name), arrays) for f in fields(found)})  # type: ignore[misc]
    return found


def each_set(function: Callable[P, R]) -> Callable[P, R]:
    """A function of a model, or a method of a namespace, with `parameters=` (k,) or (..., k) added as described above.

    Its signature must name `parameters`; its body never sees them.
    """
    names = list(inspect.signature(function).parameters)
    assert "parameters" in names

    @wraps(function)
    def call(*given: Any, **options: Any) -> Any:
        parameters = options.pop("parameters", None)
        if parameters is None:
            return function(*given, **options)  # type: ignore[call-arg]
        owner, *rest = given
        values = _model_of(owner).parameters.checked(parameters)
        options |= dict(zip(names[1:], rest, strict=False))
        return by_sets(lambda p, some: function(_at(owner, p), **some), values, options)  # type: ignore[call-arg]

    return call  # type: ignore[return-value]


def one_set(function: Callable[P, R]) -> Callable[P, R]:
    """As `each_set`, for results that belong to a single set, (k,): objects, or arrays whose sizes depend on it."""
    signature = inspect.signature(function)
    assert "parameters" in signature.parameters

    @wraps(function)
    def call(*given: Any, **options: Any) -> Any:
        parameters = options.pop("parameters", None)
        if parameters is None:
            return function(*given, **options)  # type: ignore[call-arg]
        return function(_at(given[0], parameters), *given[1:], **options)  # type: ignore[call-arg]

    return call  # type: ignore[return-value]


def _model_of(owner: Any) -> Model:
    return owner._model if hasattr(owner, "_model") else as_model("parameters", owner)


def _at(owner: Any, values: Any) -> Any:
    """The model at one set of values, or the same namespace of it."""
    model = _model_of(owner).parameters.at(values)
    return type(owner)(model) if hasattr(owner, "_model") else model


def by_sets(call: Callable[[Array, dict[str, Any]], Any], values: Array, options: dict[str, Any]) -> Any:
    """call(set, options of its states) for each distinct set of values (..., k), the results put together.

    States are those of `options` named in `OF_STATES`, and the wrenches among them.
    """
    out = options.pop("out", None)
    if values.ndim == 1:
        return into(out, call(values, options))
    states = {name: float_array(name, x) for name, x in options.items() if name in OF_STATES and x is not None}
    loads = options.get("wrenches")
    if isinstance(loads, Mapping):
        states |= {("wrenches", frame): float_array(f"wrench of {frame!r}", w) for frame, w in loads.items()}
    for name, array in states.items():
        if not array.ndim:
            raise InputError(f"{name} has shape (); expected (n,) or (..., n)")
    lead = batch_shape([*states.values(), values])
    wide = {name: np.broadcast_to(x, (*lead, x.shape[-1])).reshape(-1, x.shape[-1]) for name, x in states.items()}
    rows = np.broadcast_to(values, (*lead, values.shape[-1])).reshape(-1, values.shape[-1])
    if not len(rows):
        raise InputError("there are no states: parameters and arrays have a leading dimension of 0")
    distinct, group = np.unique(rows, axis=0, return_inverse=True)
    parts: list[tuple[Array, Any]] = []
    for k, p in enumerate(distinct):
        chosen = np.flatnonzero(group.ravel() == k)
        try:
            parts.append((chosen, call(p, _picked(options, wide, chosen))))
        except PolybodyError:
            _name_the_state(call, p, options, wide, chosen, lead)
            raise
    return into(out, _joined(parts, lead))


def _picked(options: dict[str, Any], wide: dict[Any, Array], index: Any) -> dict[str, Any]:
    some = options | {name: x[index] for name, x in wide.items() if isinstance(name, str)}
    loads = {name[1]: x[index] for name, x in wide.items() if isinstance(name, tuple)}
    return some | {"wrenches": loads} if loads else some


def _name_the_state(
    call: Callable[..., Any], p: Array, options: dict[str, Any], wide: dict[Any, Array], chosen: Array,
    lead: tuple[int, ...],
) -> None:  # fmt: skip
    """Raise the error of the first state that has one, with its index in the whole batch."""
    for k in chosen:
        try:
            call(p, _picked(options, wide, k))
        except PolybodyError as error:
            index = tuple(int(i) for i in np.unravel_index(int(k), lead))
            error.args = (f"{error}{state_text(index)}", *error.args[1:])
            raise


def _joined(parts: list[tuple[Array, Any]], lead: tuple[int, ...]) -> Any:
    """Results of groups of states as one of all, (*lead, …)."""
    first = parts[0][1]
    if isinstance(first, np.ndarray | np.generic | float | int):
        shape = np.shape(first)[1:]
        result = np.empty((int(np.prod(lead, dtype=int)), *shape), dtype=np.asarray(first).dtype)
        for chosen, found in parts:
            result[chosen] = found
        return result.reshape(*lead, *shape)
    again = lambda pick: _joined([(chosen, pick(found)) for chosen, found in parts], lead)  # noqa: E731
    if isinstance(first, Mapping):
        return {name: again(lambda x, name=name: x[name]) for name in first}
    if isinstance(first, tuple) and first and isinstance(first[0], np.ndarray):
        members = [again(lambda x, k=k: x[k]) for k in range(len(first))]
        return type(first)(*members) if hasattr(first, "_fields") else tuple(members)
    if is_dataclass(first):
        return type(first)(**{f.name: again(lambda x, name=f.name: getattr(x, name)) for f in fields(first)})  # type: ignore[misc]
    if any(found != first for _, found in parts[1:]):
        raise InputError("the result has another form for other parameters; give one set, (k,), at a time")
    return first


__all__ = ["by_sets", "each_set", "large", "one_set"]
