"""How the drives of a mechanism with loops share a load, along a plan of elimination.

The forces of the joints act on the motions that pass by Gᵀ, those of the drives by G_Aᵀ, the drives' columns of it. As
many drives as motions share a load by elimination of G_Aᵀ, whose plan is made here; more of them by least norm. Both
need drives that together act on every motion: where they do not, each state is solved by singular values.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from polybody.constraints.blocks import plan_blocks
from polybody.constraints.minimal import transfer_to
from polybody.constraints.plan import Plan, plan_elimination
from polybody.constraints.ranks import ranks

Array = np.ndarray


class Drives:
    """The driven columns, and what they can do along each plan; `samples(q)` gives J at states near q, the first of
    them in general position. `kin` are those of the same mechanism at other values of its parameters."""

    def __init__(
        self, columns: tuple[int, ...], samples: Callable[[Array], Array], kin: Drives | None = None
    ) -> None:
        self.columns, self._samples = columns, samples
        self._shares: dict[str, Plan | None] = {} if kin is None else kin._shares
        self._held: dict[str, bool] = {} if kin is None else kin._held

    def can_hold(self, plan: Plan, q: Array) -> bool:
        """Whether they can hold every motion."""
        if plan.label not in self._held:
            self._held[plan.label] = self._holds(plan, q)
        return self._held[plan.label]

    def shares(self, plan: Plan, q: Array) -> Plan | None:
        """The plan of G_Aᵀ where drives are as many as motions; None otherwise."""
        if plan.label not in self._shares:
            self._shares[plan.label] = self._share_plan(plan, q)
        return self._shares[plan.label]

    def known_shares(self, plan: Plan) -> Plan | None:
        """`shares` where it was asked before; None otherwise."""
        return self._shares.get(plan.label)

    def _holds(self, plan: Plan, q: Array) -> bool:
        shares = self.shares(plan, q)
        if len(self.columns) == len(plan.independent):
            return shares is not None and len(shares.pivots) == len(self.columns)
        # drives of some motions may be many while another has none: the matrix of their shares would be singular
        return len(self.columns) > len(plan.independent) and self._act_on_all(plan, q)

    def _act_on_all(self, plan: Plan, q: Array) -> bool:
        return int(ranks(self._matrices(self._samples(q)[:1], plan))[0]) == len(plan.independent)

    def _share_plan(self, plan: Plan, q: Array) -> Plan | None:
        if len(self.columns) != len(plan.independent):
            return None
        GA = self._matrices(self._samples(q), plan)
        found = plan_elimination(np.swapaxes(GA[:1], -1, -2))
        return plan_blocks(np.swapaxes(GA, -1, -2), found) or found

    def _matrices(self, samples: Array, plan: Plan) -> Array:
        """G_A, (samples, drives, motions)."""
        return transfer_to(samples, np.zeros(samples.shape[:-1]), plan.independent).G[:, list(self.columns)]
