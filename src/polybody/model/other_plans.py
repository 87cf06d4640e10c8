"""Plans for the states of batches that a mechanism's first plan does not serve, though they are regular.

Pivots vanish together on whole branches of motion: at one random state in thirteen of a delta robot one of its motors
does not move its leg as elsewhere, and coordinates that are independent elsewhere are not so there. Singular values
take some hundred times as long as compiled elimination. So such states are given to other plans, of the same rank and
for matrices of the same coordinates: first to those that are known; and when singular values have taken as long as
making one takes, a plan is made for one of the states that are left, of some tried the one that serves most of them.
What no plan serves is left to singular values.

A state is believed along any plan by the same diagnostics, so that its answer is the same up to rounding whichever
plans are known. Rows and pivots keep the sizes that the first plan has for them: of those made at singular
states, rows that nearly vanish would otherwise seem as large as usual.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from polybody.algebra.many import MANY, Many
from polybody.constraints.blocks import eliminated, plan_blocks
from polybody.constraints.plan import Plan, plan_elimination, resized
from polybody.model.batches import spread
from polybody.model.diagnosed import diagnosed, doubtful
from polybody.model.engine import Request
from polybody.model.ranked import refers_to_coordinates

if TYPE_CHECKING:
    from polybody.kernels import Kernel
    from polybody.model.constrained_engine import ConstrainedEngine

Array = np.ndarray
Key = tuple[str, str, tuple[int, ...]]  # a quantity, the first plan, and the coordinates that are kept

#: states whose singular values take as long as looking for a plan and tracing its code
WORTH = 1000
#: doubtful states of float32 that float64 answers along other plans in the time of tracing one of these for float32
WORTH_SINGLE = 10_000
#: other plans for a quantity: each is compiled
MOST = 8
#: states that are looked at for a new plan, and of these the ones from each of which a plan is made
LOOKED_AT, TRIED = 256, 4
#: growth up to which their answers are believed, less than of the first plan (`diagnosed`): blocks of one row follow
#: each other where few pivots are good, and their errors amplify each other. Accelerations of a delta robot were within
#: 2e-13 of those of singular values, and its loads, where these are 6e-10 off, within 3e-13 of 40 digits.
GROWTH_BLOCKS, GROWTH_PIVOTS = 1e6, 1e4
#: how many times the states a new plan must serve that one known for other quantities serves
BETTER = 1.25
#: states that are computed together: they take some megabytes
AT_ONCE = 4000
#: what depends on the plan beyond rounding: where a step back to the loops leads
OWN = "projection_step"


class OtherPlans:
    """The other plans of one mechanism's plans; `kin` are those at other values of its parameters, which share them."""

    def __init__(self, kin: OtherPlans | None = None) -> None:
        #: plans that answer a quantity beside the first one
        self._known: dict[Key, tuple[Plan, ...]] = {} if kin is None else kin._known
        self._left: dict[Key, float] = {} if kin is None else kin._left  # states left to singular values so far
        self._worth: dict[Key, float] = {} if kin is None else kin._worth  # of which so many are worth a look

    def known(self, name: str, first: Plan, kept: tuple[int, ...]) -> tuple[Plan, ...]:
        """Plans that answer the quantity beside the first one, with the coordinates `kept` where some are given."""
        return self._known.get((name, first.label, kept), ())

    def known_to_single(self, name: str, first: Plan, kept: tuple[int, ...], count: int) -> tuple[Plan, ...]:
        """Those of the known plans that float32 takes as well, `count` doubtful states being met now: one after the
        other as it pays."""
        known, key = self.known(name, first, kept), (f"{name} float32", first.label, kept)
        if not known:
            return ()
        met = self._left[key] = self._left.get(key, 0.0) + count
        return known[: int(met // WORTH_SINGLE)]

    def fresh(
        self, name: str, first: Plan, kept: tuple[int, ...], count: int, jacobian: Callable[[list[int]], Array],
        pattern: Array,
    ) -> Plan | None:  # fmt: skip
        """One more plan for some of `count` states that are left, where it pays; `jacobian(k)` gives J at some of them,
        whose entries are zero everywhere that are not in `pattern`."""
        key = name, first.label, kept
        left = self._left[key] = self._left.get(key, 0.0) + count
        known = self.known(name, first, kept)
        if not count or len(known) >= MOST or left < self._worth.get(key, WORTH):
            return None
        met = {x.label: x for k, plans in [*self._known.items()] if k[1:] == key[1:] for x in plans}
        plan, share = serving(jacobian(spread(count, LOOKED_AT)), pattern, first, kept, [*met.values()])
        if plan is None or share * left < WORTH or any(plan.label == x.label for x in known):
            self._worth[key] = 2 * left  # of many kinds, or singular: looked at again when there are more
            return None
        self._left[key] = (left - count) * (1 - share)  # those that it does not serve are counted when it is done
        self._worth[key] = WORTH
        self._known[key] = (*known, plan)
        return plan


def serving(
    J: Array, pattern: Array, first: Plan, kept: tuple[int, ...], met: Sequence[Plan] = ()
) -> tuple[Plan | None, float]:
    """(the plan that serves most of the samples J (k, m, n), the share that it serves): of those `met` for other
    quantities, or of some that are made for one sample each, where those are clearly better."""
    best: tuple[Plan | None, float] = (None, 0.0)
    made = [_made_at(J[k : k + 1], pattern, first, kept) for k in spread(len(J), TRIED)]
    for plan in [*met, *(x for x in made if x is not None and x.label != first.label)]:
        share = float(np.mean(~doubtful(_told(J, plan), believed(plan))))
        if share > best[1] * (1.0 if best[0] not in met else BETTER):
            best = plan, share
    return best


def believed(plan: Plan) -> float:
    """The growth up to which answers along another plan are believed."""
    return GROWTH_BLOCKS if plan.blocks else GROWTH_PIVOTS


def _made_at(sample: Array, pattern: Array, first: Plan, kept: tuple[int, ...]) -> Plan | None:
    """The plan of one J, (1, m, n), with the rank and the rows' sizes of the first."""
    if first.blocks:
        own = pattern.copy()
        own[list(first.redundant)] = False  # rows of zeros in general
        found = plan_blocks(sample, first, kept, own)
    else:
        found = plan_elimination(sample, kept=kept, rank=len(first.pivots))
    if found is None or len(found.pivots) != len(first.pivots):
        return None
    return replace(resized(found, first), independent=kept) if kept else resized(found, first)


def _told(J: Array, plan: Plan) -> Array:
    """The diagnostics of elimination at J (k, m, n), as `doubtful` takes them."""
    A = np.array([[Many(J[:, i, j]) if J[:, i, j].any() else 0.0 for j in range(J.shape[2])]
                  for i in range(J.shape[1])], dtype=object)  # fmt: skip
    told = np.zeros((len(J), 6))
    with np.errstate(all="ignore"):  # of states that the plan does not serve
        found = eliminated(A, plan, MANY)
        for k, value in zip((2, 3, 4), (found.growth, found.leftover, found.narrow), strict=True):
            told[:, k] = value.x if isinstance(value, Many) else value
    return told


def answered(
    engine: ConstrainedEngine, request: Request, first: Plan, values: Sequence[Array], left: Array,
    given: Sequence[Array],
) -> None:  # fmt: skip
    """Put the answers along other plans into `values` at those of the states `left` that they serve, whose marks are
    cleared. `given` are values of the parameters."""
    quantity, name = request.quantity, request.whole.name
    if quantity.name == OWN:
        return
    kept, arguments = first.independent if refers_to_coordinates(quantity) else (), [request.arrays[0], *given]

    def jacobian(numbers: list[int]) -> Array:
        at = np.flatnonzero(left)[numbers]
        places = np.unravel_index(at, left.shape) if left.ndim else ()
        states = [picked(x, left.shape, places) for x in arguments]
        return engine.constraints.jacobian(*(x.reshape(-1, x.shape[-1]) for x in states))

    def serve(plan: Plan) -> None:
        first_left = picked(request.arrays[0], left.shape, next(places_of(left, 1)))
        if engine._can_drive(quantity, plan, first_left):
            _along(engine._kernel(request.whole, plan), request, values, left, given, believed(plan))

    for plan in engine.others.known(name, first, kept):
        if not left.any():
            return
        serve(plan)
    pattern = engine.constraints.constraints.spread(np.ones(engine.constraints.entries)) != 0
    while left.any():
        count = int(np.count_nonzero(left))
        plan = engine.others.fresh(name, first, kept, count, jacobian, pattern)
        if plan is None:
            return
        serve(plan)


def _along(
    kernel: Kernel, request: Request, values: Sequence[Array], left: Array, given: Sequence[Array], limit: float
) -> None:
    """One plan's answers at marked states, where they are to be believed; those marks are cleared."""
    for places in places_of(left.copy(), AT_ONCE):
        some = part_of(request, left.shape, places)
        own = tuple(picked(x, left.shape, places) for x in given)
        found, again, _ = diagnosed(kernel, some, own, limit)
        good = ~again
        if not np.any(good):
            continue
        at = tuple(x[good] for x in places)
        for value, part in zip(values, found, strict=True):
            value[at] = part[good] if places else part
        left[at] = False


def places_of(marks: Array, step: int, looked_at: int = 1 << 20) -> Iterator[tuple[Array, ...]]:
    """Indices of marked states, `step` at a time; of `looked_at` states the marks are looked at together."""
    flat = marks.reshape(-1)
    for start in range(0, flat.size, looked_at):
        marked = start + np.flatnonzero(flat[start : start + looked_at])
        for k in range(0, len(marked), step):
            yield np.unravel_index(marked[k : k + step], marks.shape) if marks.ndim else ()


def picked(x: Array, lead: tuple[int, ...], places: tuple[Array, ...]) -> Array:
    """Some states of an array; what all states have in common stays as it is."""
    return x if x.ndim == 1 else np.broadcast_to(x, (*lead, x.shape[-1]))[places]


def part_of(request: Request, lead: tuple[int, ...], places: tuple[Array, ...]) -> Request:
    """A request for some of its states."""
    pick = lambda x: np.broadcast_to(x, (*lead, x.shape[-1]))[places]  # noqa: E731
    return replace(
        request, arrays=tuple(pick(x) for x in request.arrays), out=None,
        wrenches=None if request.wrenches is None else pick(request.wrenches),
        parameters=None if request.parameters is None else pick(request.parameters),
    )  # fmt: skip


__all__ = ["OtherPlans", "answered", "part_of", "picked", "places_of", "serving"]
