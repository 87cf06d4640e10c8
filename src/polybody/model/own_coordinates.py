"""The independent columns of a mechanism with loops: chosen once, so that matrices of all its states refer to the same.

They are those of the mechanism assembled from neutral and moved into general position, whatever state is asked first;
driven ones where they serve well. Where it moves less freely than there, as on another branch, they are chosen anew.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from polybody.algebra.domains import FLOAT
from polybody.constraints.assembly import AssemblyError
from polybody.constraints.blocks import eliminated
from polybody.constraints.mobility import choose_independent
from polybody.constraints.plan import Plan
from polybody.constraints.ranks import null_space
from polybody.mechanism.columns import actuated
from polybody.model.assembly import Assembly
from polybody.model.batches import first_state

Array = np.ndarray


class OwnCoordinates:
    """Chosen columns of one mechanism; `jacobian(q)` gives J. `kin` are those at other values of its parameters."""

    def __init__(
        self, assembly: Assembly, jacobian: Callable[[Array], Array], kin: OwnCoordinates | None = None
    ) -> None:
        self._assembly, self._jacobian, self._kin = assembly, jacobian, kin
        self.chosen: tuple[int, ...] | None = None if kin is None else kin.chosen
        self._exact: dict[str, bool] = {} if kin is None else kin._exact

    def columns(self, q: Array | None = None) -> tuple[int, ...]:
        """The columns; only where the mechanism cannot be assembled from neutral are they chosen at q."""
        if self.chosen is None:
            try:
                start = self._assembly.from_neutral()
            except AssemblyError:
                if q is None or not q.size:
                    raise
                start = first_state(q)
                self._assembly.require_closed(start)
            self._choose(self._assembly.general_place(start))
        assert self.chosen is not None
        return self.chosen

    def choose_at(self, q: Array) -> None:
        """Choose the columns at an assembled configuration, for who knows a better one than neutral."""
        if self.chosen is None:
            self._choose(self._assembly.general_place(q))

    def chosen_anew(self, q: Array) -> bool:
        """Whether other columns had to be chosen: in general position near q fewer motions pass than where they were.

        A state is off the constraints by a little, and redundant rows then seem independent: the rank is that of a
        place which is closed to rounding.
        """
        if self.chosen is None:
            return False
        self._assembly.require_closed(q)
        place = self._assembly.general_place(self._assembly.assembled(q, limits=False))
        if self._assembly.mobile(place) >= len(self.chosen):
            return False
        self._choose(place)
        return True

    def may_lose_motions(self, plan: Plan, q: Array) -> bool:
        """Whether somewhere fewer motions may pass than were chosen: not where rows beyond the plan's never count."""
        return self.chosen is not None and (
            len(self.chosen) != len(plan.independent) or not self.is_exact(plan, q.reshape(1, -1))
        )

    def is_exact(self, plan: Plan, q: Array) -> bool:
        """Whether redundant rows vanish to the last digit, since entries of J are zero wherever it moves: then the rank
        is nowhere higher than the plan's. `q` (..., nq) are states to look near."""
        if plan.label not in self._exact:
            J = self._jacobian(self._assembly.general_place(first_state(q))) if plan.redundant else None
            self._exact[plan.label] = J is None or bool(eliminated(J, plan, FLOAT).leftover == 0)
        return self._exact[plan.label]

    def _choose(self, place: Array) -> None:
        Z = null_space(self._jacobian(place))
        self.chosen = choose_independent(Z, actuated(self._assembly.mechanism), Z.shape[1])
        if self._kin is not None and self._kin.chosen is None:  # results at other values refer to the same
            self._kin.chosen = self.chosen
