"""What loops bear: the wrenches of cut joints, rods and guides, and the internal loads of actuators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from polybody.constraints.actuation import internal_load_basis
from polybody.errors import InputError
from polybody.mechanism.columns import actuated, velocity_names
from polybody.model.arguments import state_array
from polybody.model.dynamics import Wrenches
from polybody.model.loops import LoopDynamics

Array = np.ndarray


class LoopLoads(LoopDynamics):
    """Loads of constraints and actuators."""

    def closure_loads(
        self, q: Any, v: Any, tau: Any, *, wrenches: Wrenches | None = None, route: str = "multipliers"
    ) -> dict[str, Array]:
        """{constraint: loads} of the motion under tau.

        A loop's is the wrench (..., 6) [moment; force] of its cut joint on body b at b's frame origin, world axes; a
        rod's its force (..., 1), positive where it pushes; a coupling's the joint force (..., 1) on its follower; the
        others' their multipliers.
        """
        q = state_array("q", q, self.nq)
        found = self.loop_solution(q, v, tau, wrenches=wrenches, route=route).multipliers
        return self._loads(q, found)

    def _loads(self, q: Array, multipliers: Array) -> dict[str, Array]:
        system = self.constraint_kernels.constraints
        loads = {name: multipliers[..., part] for name, part in system.slices.items()}
        if system.pairs:
            borne, _ = self.constraint_kernels.wrenches(q, multipliers)
            loops = {closure.name for closure in self.mechanism.closures}
            loads |= {pair.name: borne[..., k, :] for k, pair in enumerate(system.pairs) if pair.name in loops}
        return loads

    def internal_loads(self, q: Any) -> tuple[list[str], Array]:
        """(active coordinates, basis (active, k)): actuator loads that move nothing at q, orthonormal."""
        (q,) = self._states(("q", q))
        if q.ndim != 1:  # how many loads there are changes with the state
            raise InputError(f"internal_loads takes one configuration, got shape {q.shape}")
        self.require_closed(q)
        driven = actuated(self.mechanism)
        names = velocity_names(self.mechanism)
        return [names[k] for k in driven], internal_load_basis(self.constraint_kernels.jacobian(q), driven)

    def constraint_wrenches(self, q: Array, multipliers: Array) -> Mapping[str, Array]:
        """{link: (..., 6)}: loads of loops, rods and guides as wrenches on links, at their frames, world axes."""
        system = self.constraint_kernels.constraints
        if not system.pairs:
            return {}
        _, totals = self.constraint_kernels.wrenches(q, multipliers)
        return {link: totals[..., k, :] for k, link in enumerate(system.loaded_links)}


__all__ = ["LoopLoads"]
