"""Which velocities the others follow, and in what order they are eliminated: chosen on numbers, kept for compiled code.

Two kinds of plan. The *free* one serves accelerations and joint forces of all joints, which do not depend on it: the
sparsest elimination that holds at the first states asked for, disturbed into general position; a motion for which it
does badly takes others on its way (`Followed`). A plan *of coordinates* has given independent columns: matrices and
forces refer to those.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from polybody.constraints.blocks import plan_blocks
from polybody.constraints.plan import Plan, growth, plan_elimination, resized
from polybody.model.batches import spread

Array = np.ndarray

#: growth for each pivot above which simulation looks for better coordinates
SWITCH = 100.0
MOST_PLANS = 8  # of one motion
MOST_COMPILED = 32  # of a mechanism: each costs a compilation
#: states for which no better plan is looked for after none was found
RESTS = 50
#: configurations whose Jacobians a plan is made from
SAMPLES = 4
#: further ones, as they are, for plans by blocks: what is singular at some does not decide those
BLOCK_SAMPLES = 32


class Plans:
    """The plans of one mechanism; `jacobian(q)` gives J, `general(q)` a place in general position near q."""

    def __init__(
        self, jacobian: Callable[[Array], Array], general: Callable[[Array], Array], kin: Plans | None = None
    ) -> None:
        """`kin` are the plans of the same mechanism at other values of its parameters: they serve here too."""
        self.jacobian, self._general = jacobian, general
        self._kin = kin
        self._free: Plan | None = None if kin is None else kin._free
        self._met: dict[str, Plan] = {} if kin is None else kin._met
        self._of_columns: dict[tuple[int, ...], Plan] = {} if kin is None else kin._of_columns
        self._blocked: dict[tuple[str, tuple[int, ...]], Plan] = {} if kin is None else kin._blocked

    @property
    def is_made(self) -> bool:
        return self._free is not None

    @property
    def rank(self) -> int | None:
        """The rank of the constraints in general position near the first states asked for, if there were any."""
        return None if self._free is None else len(self._free.pivots)

    def free(self, q: Array) -> Plan:
        """The plan for answers that do not depend on the coordinates, from the first states asked for."""
        if self._free is None:
            self._free = _of_samples(self._samples(q))
            kin = self._kin
            while kin is not None and kin._free is None:  # whoever comes later at other values takes the same code
                kin._free, kin = self._free, kin._kin
        return self._free

    def has_columns(self, columns: tuple[int, ...]) -> bool:
        return columns in self._of_columns

    def of_columns(self, columns: tuple[int, ...], q: Array, is_general: bool = False) -> Plan | None:
        """The plan whose independent columns are these, in this order; None where they are not independent.

        `is_general` is a single q in general position.
        """
        if columns not in self._of_columns:
            found = _of_samples(self.jacobian(q[None]) if is_general else self._samples(q), kept=columns)
            if sorted(found.independent) != sorted(columns):
                return None
            self._of_columns[columns] = replace(found, independent=columns)
        return self._of_columns[columns]

    def blocked(self, plan: Plan, q: Array, kept: tuple[int, ...] = ()) -> Plan:
        """The plan of the same rank by blocks, with the same independent columns where they are `kept`; the plan itself
        where there is none."""
        key = plan.label, kept
        if key not in self._blocked:
            found = plan_blocks(self.samples(q), plan, kept)
            if found is not None and kept:
                found = replace(found, independent=kept)
            self._blocked[key] = found or plan
        return self._blocked[key]

    def samples(self, q: Array) -> Array:
        """J at four of the states moved into general position, and at more as they are."""
        states = q.reshape(-1, q.shape[-1])
        some = self.jacobian(states[spread(len(states), BLOCK_SAMPLES)])
        return np.concatenate([self._samples(q), some])

    def forget(self) -> None:
        """Make all plans anew: the rank in general position is not what it seemed."""
        self._free, self._met, self._of_columns, self._blocked = None, {}, {}, {}

    def admitted(self, plan: Plan, cost: Callable[[Plan], float]) -> Plan:
        """A plan that a motion has made; the best of those met before where that would be one too many to compile."""
        if plan.label not in self._met and len(self._met) >= MOST_COMPILED:
            return min(self._met.values(), key=cost)
        return self._met.setdefault(plan.label, plan)

    def _samples(self, q: Array) -> Array:
        """J at up to four of the states, moved into general position."""
        states = q.reshape(-1, q.shape[-1])
        picked = states[spread(len(states), SAMPLES)]
        return self.jacobian(np.array([self._general(state) for state in picked]))


class Followed:
    """The free plan along one motion: the mechanism's own at first, another where that does badly.

    Every motion has one of these. A plan decides which coordinates are moved back to the loops after a step, so that
    plans left over from another motion, or from one in another thread, would change results by more than rounding.
    """

    def __init__(self, plans: Plans) -> None:
        self._plans = plans
        self._known: list[Plan] = []
        self._free: Plan | None = None
        self._rests = 0

    @property
    def is_made(self) -> bool:
        return self._plans.is_made

    def free(self, q: Array | None) -> Plan:
        """The plan that holds now; q is asked for where the mechanism has none yet."""
        own = self._plans.free(q)  # type: ignore[arg-type]
        if not self._known or self._known[0] is not own:
            self._known, self._free, self._rests = [own], own, 0
        assert self._free is not None
        return self._free

    def switch(self, q: Array, rank: int, always: bool = True) -> None:
        """Take the plan that does best at q: one of those known to this motion, or a new one made for it.

        Where none was better, as near singular configurations, it is not looked for at every state, unless `always`.
        """
        now = self.free(q)
        self._rests -= 1
        if self._rests > 0 and not always:
            return
        J = self._plans.jacobian(q)

        def cost(plan: Plan) -> float:
            return growth(J, plan)

        best = min(self._known, key=cost)
        if cost(best) > SWITCH * len(best.pivots) and len(self._known) < MOST_PLANS:
            fresh = resized(plan_elimination(J[None], rank=rank), self._known[0])
            whole = len(fresh.pivots) == len(best.pivots)  # at a singular place there are fewer
            if whole and cost(fresh) < 0.1 * cost(best):
                best = self._plans.admitted(fresh, cost)
                self._known.append(best)
        if best is now:
            self._rests = RESTS
        self._free = best


def _of_samples(samples: Array, kept: tuple[int, ...] = ()) -> Plan:
    """The plan of all samples, or of the one whose plan suits the others best where all have no pivot in common.

    In some postures of a delta robot the entries that are left of a last row vanish in other columns than elsewhere: a
    plan of both kinds would take that row for redundant, and every state would be solved by singular values.
    """
    found = plan_elimination(samples, kept=kept)
    if not found.redundant or len(plan_elimination(samples[:1], kept=kept).pivots) <= len(found.pivots):
        return found
    alone = [resized(plan_elimination(J[None], kept=kept), found) for J in samples]
    most = max(len(plan.pivots) for plan in alone)
    return min((p for p in alone if len(p.pivots) == most), key=lambda p: max(growth(J, p) for J in samples))


__all__ = ["SWITCH", "Followed", "Plans"]
