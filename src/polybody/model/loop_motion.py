"""What simulation asks of models with loops: accelerations between closed states, and the way back to them."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from polybody.analysis.constraints.multipliers import solve_multipliers
from polybody.analysis.constraints.ranks import motion_projector, pseudo_inverse
from polybody.model.dynamics import Wrenches
from polybody.model.loop_kernels import GROWTH, SWITCH
from polybody.model.loops import LoopDynamics

Array = np.ndarray

#: residuals (m, rad) that projection aims at
KEPT = 1e-13
#: singular values below this part of the largest are not divided by when projecting
SOFT_RANK = 1e-5


class LoopMotion(LoopDynamics):
    """Steps of a motion with loops; one state at a time, and never refused for being slightly off."""

    def loop_acceleration(self, q: Array, v: Array, tau: Array, wrenches: Wrenches | None = None) -> tuple[Array, bool]:
        """(a, singular) at a state that may be off the loops by a little; rank-revealing near singular ones."""
        if self.loop_kernels.available:
            loads = self.tree.body_wrenches(q, wrenches) if wrenches else None
            self._plan_ready(q)
            a, trust = self.loop_kernels.forward(q, v, tau, loads)
            if trust[2] > SWITCH * self._rank and np.isfinite(trust[2]):
                self.loop_kernels.switch(q, self._rank)
                a, trust = self.loop_kernels.forward(q, v, tau, loads)
            # Off the loops by a little, redundant rows seem not to be so: what elimination leaves of them is no matter.
            if trust[2] < GROWTH or not np.isfinite(q).all():
                return a, False
        M, force = self._tree_terms(q, v, tau, wrenches, None)
        J, gamma = self.constraint_kernels.jacobian(q), self.constraint_kernels.bias(q, v)
        return solve_multipliers(M, J, gamma, force, SOFT_RANK, self._rank).a, True

    @cached_property
    def _rank(self) -> int:
        """The rank of the constraints in general position."""
        return self.nv - len(self._independent)

    def loop_projection(self, q: Array, v: Array) -> tuple[Array, Array, float]:
        """(q, v, how far q was off): the state brought back to the loops, at position and velocity level.

        The dependent coordinates move, the independent ones stay; near singular configurations all move, the least.
        """
        first, size = None, np.inf
        for count in range(12):
            # Rows that a plan leaves out are met because the others are, or else all rows must be looked at.
            step, speed, now = self._way_back(q, v, all_rows=count >= 4)
            first = now if first is None else first
            if now < KEPT or (now < 1e-11 and now > 0.3 * size):
                break
            q, size = self.integrate(q, step), now
        _, speed, _ = self._way_back(q, v, all_rows=False)
        v = v + speed
        if np.abs(self.constraint_kernels.velocity(q, v)).max(initial=0.0) > 1e-10 * (1 + np.abs(v).max(initial=0.0)):
            v = v + self._way_back(q, v, all_rows=True)[1]
        return q, v, first or 0.0

    def _way_back(self, q: Array, v: Array, all_rows: bool) -> tuple[Array, Array, float]:
        """(step of q, change of v, ‖φ‖)."""
        if not all_rows and self.loop_kernels.available and self.loop_kernels.is_planned:
            step, speed, trust = self.loop_kernels.way_back(q, v)
            if trust[1] < SWITCH**2 * max(self._rank, 1):
                return step, speed, float(np.sqrt(trust[0]))
        phi, J = self.constraint_kernels.residual(q), self.constraint_kernels.jacobian(q)
        back = pseudo_inverse(J, SOFT_RANK, self._rank)
        return -(back @ phi), -(back @ (J @ v)), float(np.linalg.norm(phi))

    def motion_inertia(self, q: Any) -> Array:
        """The inverse mass matrix on the motions that the loops let pass: accelerations of unit joint forces, nv×nv."""
        P, M = motion_projector(self.constraint_kernels.jacobian(q)), self.tree.mass_matrix(q)
        scale = float(np.trace(M)) / len(M)
        return P @ np.linalg.solve(P @ M @ P + scale * (np.eye(len(M)) - P), P)


__all__ = ["LoopMotion"]
