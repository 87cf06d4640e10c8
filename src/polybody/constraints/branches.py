"""Elimination along one of several plans, chosen by the state: expressions for all branches of motion.

A plan made on one branch may do badly on another: where a mechanism lies in a plane, pivots vanish that are large
in space. With plans k = 0, 1, … of equal rank, P_k and Q_k the orders in which they take rows and columns, the plan
whose growth is least at the state gives

    J' = P_k J Q_kᵀ,      J' = L' U' with pivots along the diagonal                                             (1)

entry by entry a choice among entries of J. So one elimination serves all plans, and derivatives of the choice are
finite even where pivots of the plans not taken are zero; a choice among finished answers would give 0·∞ there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polybody.algebra.domains import Array, Domain
from polybody.constraints.blocks import eliminated
from polybody.constraints.elimination import Elimination
from polybody.constraints.motions import Motions
from polybody.constraints.plan import Plan, growth, plan_elimination, resized

#: growth that counts as any larger one, and as none that is a number
MOST = 1e60
#: growth above which another plan is looked for, and how much less it must have
POOR, LESS = 1e12, 1e-3
MOST_PLANS = 4


class BranchedElimination:
    """The motions of J by the plan that does best at the state. `independent` are those of the first plan."""

    def __init__(self, J: Array, plans: Sequence[Plan], domain: Domain) -> None:
        self.domain, self.independent = domain, plans[0].independent
        self._better = _choices([Elimination(J, plan, domain).growth for plan in plans], domain)
        self._rows = [[i for i, _ in plan.pivots] + list(plan.redundant) for plan in plans]
        self._columns = [[j for _, j in plan.pivots] + list(plan.independent) for plan in plans]
        orders = list(zip(self._rows, self._columns, strict=True))
        ordered = domain.zeros(*J.shape)
        for a in range(J.shape[0]):
            for b in range(J.shape[1]):
                ordered[a, b] = self._chosen([J[rows[a], columns[b]] for rows, columns in orders])
        self._inner = Elimination(ordered, _diagonal(plans, J.shape), domain)
        self.growth, self.narrow, self.leftover = self._inner.growth, self._inner.narrow, self._inner.leftover
        self.G = np.array([self._back(column, self._columns) for column in self._inner.G.T], dtype=domain.dtype)
        self.G = self.G.reshape(len(self.independent), J.shape[1]).T

    @property
    def rounding(self) -> Any:
        return self._inner.rounding

    @property
    def spread(self) -> Any:
        return self._inner.spread

    def follow(self, right: Array) -> Array:
        return self._back(self._inner.follow(self._ordered(right, self._rows)), self._columns)

    def bear(self, load: Array) -> Array:
        return self._back(self._inner.bear(self._ordered(load, self._columns)), self._rows)

    def least(self, multipliers: Array) -> Array:
        return self._back(self._inner.least(self._ordered(multipliers, self._rows)), self._rows)

    def _ordered(self, values: Array, orders: list[list[int]]) -> Array:
        return self._array([self._chosen([values[order[a]] for order in orders]) for a in range(len(values))])

    def _back(self, values: Array, orders: list[list[int]]) -> Array:
        places = [np.argsort(order) for order in orders]
        return self._array([self._chosen([values[place[i]] for place in places]) for i in range(len(values))])

    def _array(self, values: list[Any]) -> Array:
        found = self.domain.zeros(len(values))
        for k, value in enumerate(values):
            found[k] = value
        return found

    def _chosen(self, values: list[Any]) -> Any:
        """The value of the plan that is taken."""
        result, domain = values[0], self.domain
        for better, value in zip(self._better, values[1:], strict=True):
            if value is not result and not (domain.is_zero(value) and domain.is_zero(result)):
                result = domain.where(better, value, result)
        return result


def _choices(growths: list[Any], domain: Domain) -> list[Any]:
    """For each plan after the first, whether it does better than all before it; what is no number does worst."""
    most = domain.const(MOST)
    bounded = [domain.where(domain.less(x, most), x, most) for x in growths]
    found, best = [], bounded[0]
    for x in bounded[1:]:
        found.append(domain.less(x, best))
        best = domain.where(found[-1], x, best)
    return found


def _diagonal(plans: Sequence[Plan], shape: tuple[int, ...]) -> Plan:
    n = len(plans[0].pivots)
    sizes = tuple(max(plan.sizes[k] for plan in plans) for k in range(n))
    return Plan(tuple((k, k) for k in range(n)), tuple(range(n, shape[1])), tuple(range(n, shape[0])), sizes)


def along_plans(plans: Sequence[Plan]) -> Callable[[Array, Domain], Motions]:
    """The motions by elimination along a plan, or along that of several which does best at the state."""

    def passing(J: Array, domain: Domain) -> Motions:
        labels = ("elimination", *(plan.label for plan in plans))
        if len(plans) == 1:
            return domain.once(labels, (J,), lambda: eliminated(J, plans[0], domain))
        return domain.once(labels, (J,), lambda: BranchedElimination(J, plans, domain))

    return passing


def covering(first: Plan, samples: Array) -> tuple[Plan, ...]:
    """Plans of which one does well at each J of the samples, as far as there is one with the rank of the first."""
    found = [first]
    for J in samples:
        best = min(growth(J, plan) for plan in found)
        if best <= POOR or len(found) >= MOST_PLANS:
            continue
        fresh = resized(plan_elimination(J[None], rank=len(first.pivots)), first)
        if len(fresh.pivots) == len(first.pivots) and growth(J, fresh) < LESS * best:
            found.append(fresh)
    return tuple(found)


__all__ = ["BranchedElimination", "along_plans", "covering"]
