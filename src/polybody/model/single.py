"""Models with loops in single precision: float32 code answers, and float64 code where float32 has too few digits.

Elimination along a plan divides by pivots, and what rounding took from them comes out amplified: in random postures of
a Stewart platform by 30 in the median, by more than 1,000 in one of twenty. A kernel of float32 computes how much
beside its answer (`quantities.constrained`, `doubt`). States with a doubt of one or more are computed again in float64,
by the engine's own way: those that are off the constraints raise its errors, those at which the constraints lose rank
are answered by singular values. Every state's answer is decided by that state alone, whatever the batch around it.

All else is computed in float64 and rounded: quantities that are not in `COMPUTED`, plans with rows that are redundant
by their numbers only (rounding in float32 would make them independent), constraints that iterate, parameters of each
state, weights and named formulations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.constraints.plan import Plan
from polybody.errors import PolybodyError
from polybody.model.arguments import finite, into
from polybody.model.batches import batch_shape
from polybody.model.diagnosed import all_believed, growth_limit
from polybody.model.engine import Request, by_double
from polybody.model.ranked import refers_to_coordinates

if TYPE_CHECKING:
    from polybody.kernels import Kernel
    from polybody.model.constrained_engine import ConstrainedEngine

Array = np.ndarray

#: quantities whose texts tell `doubt` of all that they solve
COMPUTED = frozenset({
    "mass_matrix", "inverse_mass_matrix", "coriolis_matrix", "bias_forces", "gravity_forces", "passive_forces",
    "inverse_dynamics", "forward_dynamics", "inverse_dynamics_derivatives", "forward_dynamics_derivatives",
})  # fmt: skip
#: states that the first plan of a mechanism is made from
LOOKED_AT = 1000
#: states that one call of a kernel computes again in float64: they take some megabytes
AT_ONCE = 4000


def answer(engine: ConstrainedEngine, request: Request) -> Any:
    """The answer to a request of float32 arrays."""
    lead = batch_shape(request.all_arrays)
    try:
        plan = _planned(engine, request) if np.prod(lead, dtype=int) else None
    except PolybodyError:  # of states that no plan can be made from: float64's error counts the batch's states
        plan = None
    if plan is None:
        return by_double(engine, request, engine.answer)
    if request.check:
        for name, array in zip(request.whole.arguments, request.all_arrays, strict=True):
            finite(name, array)
    values, again = _computed(engine._kernel(request.whole, plan, np.float32), engine, request, lead)
    if again.any() and not _mend(engine, request, plan, values, again):
        return by_double(engine, request, engine.answer)
    several = tuple(values)
    return into(request.out, several[0] if len(several) == 1 else several)


def _planned(engine: ConstrainedEngine, request: Request) -> Plan | None:
    """The plan; None where float64 has to answer."""
    quantity, special = request.quantity, (request.formulation, request.weights, request.parameters)
    if quantity.name not in COMPUTED or any(x is not None for x in special) or not engine.is_compiled:
        return None
    if engine.constraints.constraints.iterates:
        return None
    q = request.arrays[0]
    some = q.reshape(-1, q.shape[-1])[:LOOKED_AT].astype(np.float64)
    columns = request.independent or ()
    if request.independent is None and refers_to_coordinates(quantity):
        columns = engine.coordinates(some)
    plan = engine._plan(quantity, columns, some)
    if plan is None or not engine._can_drive(quantity, plan, some) or not engine.own.is_exact(plan, some):
        return None
    engine._require_mass(quantity, some)
    return plan


def _computed(
    kernel: Kernel, engine: ConstrainedEngine, request: Request, lead: tuple[int, ...]
) -> tuple[list[Array], Array]:
    """(values in float32, which states are to be computed again)."""
    from polybody.kernels import memory

    given = (*request.all_arrays, *engine.source.given())
    values = [memory.empty((*lead, *shape), np.dtype(np.float32)) for _, shape in kernel.outputs[:-1]]
    told = memory.empty((*lead, 1), np.dtype(np.float32))
    kernel(*given, out=(*values, told))
    return values, ~(told[..., 0] < 1)


def _mend(engine: ConstrainedEngine, request: Request, plan: Plan, values: list[Array], again: Array) -> bool:
    """Put float64's answers for the marked states into `values`; False if it chose other coordinates on the way."""
    at = np.flatnonzero(again)  # taken by number, which is several times as fast as by marks

    def picked(x: Array | None) -> Any:
        if x is not None and x.shape[:-1] != again.shape:
            x = np.broadcast_to(x, (*again.shape, x.shape[-1]))
        return None if x is None else x.reshape(-1, x.shape[-1]).take(at, axis=0)

    if len(at) <= AT_ONCE and (found := _by_kernel(engine, request, plan, picked)) is not None:
        _put(values, again, at, found)
        return True
    marks, chosen = np.zeros(len(at), dtype=bool), engine.own.chosen
    some = replace(
        request, arrays=tuple(picked(x) for x in request.arrays), wrenches=picked(request.wrenches), out=None,
        singular=marks,
    )  # fmt: skip
    try:
        if len(at) <= AT_ONCE:
            # along the same plan, which `engine.answer` would look up: that takes longer than a hundred states
            wide = replace(some, arrays=tuple(x.astype(np.float64) for x in some.arrays))
            columns = plan.independent if refers_to_coordinates(request.quantity) else ()
            found = engine._by_plan(wide, plan, columns)
        else:
            found = by_double(engine, some, engine.answer)
    except PolybodyError:
        by_double(engine, replace(request, out=None), engine.answer)  # its error counts the batch's states
        raise
    if chosen is not None and engine.own.chosen != chosen:
        return False
    _put(values, again, at, found if isinstance(found, tuple) else (found,))
    if np.any(marks):
        states = np.zeros(again.shape, dtype=bool)
        states.reshape(-1)[at] = marks
        engine._flag(request, states)
    return True


def _by_kernel(
    engine: ConstrainedEngine, request: Request, plan: Plan, picked: Callable[[Array], Array]
) -> tuple[Array, ...] | None:
    """Answers of the same plan in float64, all that most batches need; None where one of them may not be believed.

    Anything more would take longer than the hundred states that they are in a batch.
    """
    arrays = [picked(x).astype(np.float64) for x in request.all_arrays]
    *found, told = engine._kernel(request.whole, plan)(*arrays, *engine.source.given())
    asked = request.quantity
    return tuple(found) if all_believed(asked, arrays, told, growth_limit(asked, plan)) else None


def _put(values: list[Array], again: Array, at: Array, found: tuple[Array, ...]) -> None:
    for value, part in zip(values, found, strict=True):
        # a view: results are contiguous; rounded before, as NumPy puts numbers of another type one by one
        value.reshape(-1, *value.shape[again.ndim :])[at] = part.astype(np.float32)


__all__ = ["answer"]
