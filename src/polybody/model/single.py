"""Models with loops in single precision: float32 code answers, and float64 code where float32 has too few digits.

Elimination along a plan divides by pivots, and what rounding took from them comes out amplified: in random postures of
a Stewart platform by 30 in the median, by more than 1,000 in one of twenty. A kernel of float32 computes how much
beside its answer (`quantities.constrained`, `doubt`). States with a doubt of one or more are computed again in float64,
by the engine's own way: those that are off the constraints raise its errors, those at which the constraints lose rank
are answered by singular values. Every state's answer is decided by that state alone, whatever the batch around it, and
by the plans that are known: where float64 has made others for states that the first does not serve
(`model.other_plans`), and such states are many, float32 takes those before float64 does.

All else is computed in float64 and rounded: quantities that are not in `COMPUTED`, plans with rows that are redundant
by their numbers only (rounding in float32 would make them independent), constraints that iterate, parameters of each
state, weights and named formulations.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.constraints.plan import Plan
from polybody.errors import PolybodyError
from polybody.model.arguments import finite, into
from polybody.model.batches import batch_shape
from polybody.model.engine import Request, by_double
from polybody.model.other_plans import part_of
from polybody.model.ranked import refers_to_coordinates
from polybody.model.rounded import closed_again

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
#: states that are computed again in float64 together: they take some megabytes
AT_ONCE = 4000
#: growth up to which elimination by blocks in float64 is believed for them. Its errors were at most 3e-5 of a state's
#: largest entry up to here, 3e-6 up to 1e12, 3e-7 up to 1e11 (forward dynamics of a 3-RRR robot moved towards singular
#: states, 60 states each; other quantities, and a Stewart platform, below 1e-8), 2e-4 up to 1e14. What is believed in
#: float32 itself may be off by 2e-4 (`quantities.constrained`).
GROWTH_SINGLE = 1e13


def answer(engine: ConstrainedEngine, request: Request) -> Any:
    """The answer to a request of float32 arrays."""
    lead = batch_shape(request.all_arrays)
    try:
        plan = _planned(engine, request) if math.prod(lead) else None
    except PolybodyError:  # of states that no plan can be made from, or that rounding took off their loops
        plan = None
    if plan is None:
        return _in_double(engine, request)
    if request.check:
        for name, array in zip(request.whole.arguments, request.all_arrays, strict=True):
            finite(name, array)
    values, doubts = _computed(engine._kernel(request.whole, plan, np.float32), engine, request, lead)
    at = np.flatnonzero(~(doubts < 1))
    if len(at):
        at = _elsewhere(engine, request, plan, values, at)
    if len(at):
        try:
            mended = _mend(engine, request, plan, values, at)
        except PolybodyError:
            mended = False
        if not mended:  # other coordinates were chosen, or a state is refused: all of the batch is asked for
            return _in_double(engine, request)
    several = tuple(values)
    return into(request.out, several[0] if len(several) == 1 else several)


def _in_double(engine: ConstrainedEngine, request: Request) -> Any:
    """The answer in float64, of states that rounding took off their loops after these are closed again."""
    try:
        return by_double(engine, request, engine.answer)
    except PolybodyError:
        closed = closed_again(engine, request)
        if closed is None:
            raise
        return by_double(engine, closed, engine.answer)


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
    """(values in float32, the doubt of every state)."""
    from polybody.kernels import memory

    given = (*request.all_arrays, *engine.source.given())
    values = [memory.empty((*lead, *shape), np.dtype(np.float32)) for _, shape in kernel.outputs[:-1]]
    told = memory.empty((*lead, 1), np.dtype(np.float32))
    kernel(*given, out=(*values, told))
    return values, told


def _elsewhere(engine: ConstrainedEngine, request: Request, plan: Plan, values: list[Array], at: Array) -> Array:
    """Put the answers of float32 along other plans into `values` at those states `at` that they serve; the others."""
    quantity, whole, lead = request.quantity, request.whole, batch_shape(request.all_arrays)
    kept = plan.independent if refers_to_coordinates(quantity) else ()
    for other in engine.others.known_to_single(whole.name, plan, kept, len(at)):
        q = _picked(request.arrays[0], lead, at[:1])
        if not len(at) or not engine._can_drive(quantity, other, q) or not engine.own.is_exact(other, q):
            continue
        kernel, left = engine._kernel(whole, other, np.float32), []
        for start in range(0, len(at), AT_ONCE):
            part = at[start : start + AT_ONCE]
            some = part_of(request, lead, np.unravel_index(part, lead) if lead else ())
            found, doubts = _computed(kernel, engine, some, batch_shape(some.all_arrays))
            good = (doubts < 1).reshape(-1)
            for value, own in zip(values, found, strict=True):
                tail = value.shape[len(lead) :]
                value.reshape(-1, *tail)[part[good]] = own.reshape(-1, *tail)[good]
            left.append(part[~good])
        at = np.concatenate(left)
    return at


def _mend(engine: ConstrainedEngine, request: Request, plan: Plan, values: list[Array], at: Array) -> bool:
    """Put float64's answers for states `at` into `values`; False if it chose other coordinates on the way.

    They are found along the same plan, which `engine.answer` would look up: that takes longer than a hundred states.
    """
    lead, chosen = batch_shape(request.all_arrays), engine.own.chosen
    columns = plan.independent if refers_to_coordinates(request.quantity) else ()
    limit = GROWTH_SINGLE if plan.blocks else None  # single pivots lose more digits
    marks = np.zeros(len(at), dtype=bool)
    for start in range(0, len(at), AT_ONCE):
        part = slice(start, start + AT_ONCE)
        arrays = [_picked(x, lead, at[part]) for x in request.all_arrays]
        wrenches = None if request.wrenches is None else arrays.pop()
        some = Request(
            request.quantity, tuple(arrays), wrenches, independent=request.independent, singular=marks[part]
        )
        found = engine._by_plan(some, plan, columns, limit)
        if chosen is not None and engine.own.chosen != chosen:
            return False
        for value, own in zip(values, found if isinstance(found, tuple) else (found,), strict=True):
            # a view: results are contiguous; rounded before, as NumPy puts numbers of another type one by one
            value.reshape(-1, *value.shape[len(lead) :])[at[part]] = own.astype(np.float32)
    if marks.any():
        states = np.zeros(lead, dtype=bool)
        states.reshape(-1)[at] = marks
        engine._flag(request, states)
    return True


def _picked(x: Array, lead: tuple[int, ...], at: Array) -> Array:
    """Some states of an array in float64."""
    if x.shape[:-1] != lead:
        x = np.broadcast_to(x, (*lead, x.shape[-1]))
    # taken by number, which is several times as fast as by marks
    return x.reshape(-1, x.shape[-1]).take(at, axis=0).astype(np.float64)


__all__ = ["answer"]
