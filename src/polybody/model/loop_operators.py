"""Active and passive columns of models with loops: given motions here, given forces there.

Columns A follow given accelerations, the others given forces. The motion is that of the mechanism with rows a_A added
to its constraints,

    [J; S_A] a = [−γ; a_A],     M a = f + Jᵀλ + S_Aᵀτ_A

solved rank-revealing; then τ_A are the least forces of those columns that make it, Z_Aᵀτ_A = Zᵀ(ID − tau), as in
inverse dynamics.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polybody.constraints.actuation import actuator_loads
from polybody.constraints.multipliers import solve_multipliers
from polybody.errors import InputError, PolybodyError
from polybody.model.arguments import state_array
from polybody.model.batches import batch_shape
from polybody.model.dynamics import Wrenches
from polybody.model.loops import LoopDynamics
from polybody.model.operators import OperatorAnswers, Operators

Array = np.ndarray


class LoopOperators(LoopDynamics, OperatorAnswers):
    """Hybrid dynamics with the loops honoured."""

    def operators(
        self, q: Any, v: Any, tau: Any = None, *, frames: Sequence[str] | None = None, active: Any = None
    ) -> Operators:
        """The spatial operators and the coefficients of the unified model at (q, v), by the paper's names.

        `frames` are the end effectors (default: the outermost links), `active` the driven columns (default: the
        model's own). tau (default 0) enters T_a, T_p and T_hat only. Models with loops refuse: these are a tree's.
        """
        if self.mechanism.constrained:
            raise PolybodyError(
                "operators: the paper's operators are those of a tree, and this model has loops or couplings; "
                "model.tree.operators gives the tree's, hybrid_dynamics splits active and passive columns with loops, "
                "mass_matrix, dynamic_arrays and influence(…, independent=…) give what moves in independent coordinates"
            )
        return super().operators(q, v, tau, frames=frames, active=active)

    def hybrid_dynamics(
        self, q: Any, v: Any, a: Any, tau: Any = None, *, active: Any = None, wrenches: Wrenches | None = None
    ) -> tuple[Array, Array]:
        """(a, tau), each (..., nv): active columns follow the given a, passive ones the given tau (default 0).

        a is (..., nv), of which only active columns are read, or (..., number of active columns) in their order; tau
        likewise with the passive columns. The result holds all columns: the active forces that the motion takes, and
        the passive accelerations that follow. `active` chooses other columns than the model's own. With loops the
        given accelerations must agree with them, and where active columns are more than needed their forces are the
        least.
        """
        if not self.mechanism.constrained:
            return super().hybrid_dynamics(q, v, a, tau, active=active, wrenches=wrenches)
        mask = self.active_mask(active)
        q, v = self._states(("q", q), ("v", v))
        given = self._scattered("a", a, mask)
        loads = np.zeros(self.nv) if tau is None else self._scattered("tau", tau, ~mask)
        self.require_closed(q, v)
        motion = self._hybrid_motion(q, v, given, loads, mask, wrenches)
        needed = self.tree.inverse_dynamics(q, v, motion, wrenches=wrenches) - loads
        forces, unmet = actuator_loads(self.constraint_kernels.jacobian(q), needed, np.flatnonzero(mask))
        self._require_mass(unmet, needed)
        return motion, forces + loads

    def active_forces(
        self, q: Any, v: Any, a: Any, tau: Any = None, *, active: Any = None, tolerance: float = 1e-9
    ) -> Array:
        """tau, (..., nv), that makes the whole motion a with active forces alone; passive ones are the given tau.

        A motion that the passive columns would not make by themselves is refused, with the coordinate that stands out.
        With loops the least such forces; the motion that nothing active holds is named.
        """
        if not self.mechanism.constrained:
            return super().active_forces(q, v, a, tau, active=active, tolerance=tolerance)
        mask = self.active_mask(active)
        q, v, a = self._states(("q", q), ("v", v), ("a", a))
        given = np.zeros(self.nv) if tau is None else self._scattered("tau", tau, ~mask)
        self.require_closed(q, v)
        J = self.constraint_kernels.jacobian(q)
        self._require_acceleration(J, q, v, a)
        needed = self.tree.inverse_dynamics(q, v, a) - given
        forces, unmet = actuator_loads(J, needed, np.flatnonzero(mask))
        self._refuse_unheld(unmet, needed)
        return forces + given

    def holding_forces(self, q: Any) -> Array:
        """tau, (..., nv), of the active joints that holds the mechanism still against gravity; springs not counted.

        `gravity_forces` of a model without loops; with loops the least such forces, and an error where none do.
        """
        if not self.mechanism.constrained:
            return self.gravity_forces(q)
        return self.borne(q, self.tree.gravity_forces(q))

    def borne(self, q: Any, forces: Any) -> Array:
        """tau, (..., nv), of the active joints that does on every motion what joint forces (..., nv) would do.

        With loops the least such tau, and an error where there is none; without loops the forces themselves.
        """
        (q,) = self._states(("q", q))
        forces = state_array("forces", forces, self.nv)
        if not self.mechanism.constrained:
            return forces
        found, unmet = actuator_loads(self.constraint_kernels.jacobian(q), forces, np.flatnonzero(self.active))
        self._refuse_unheld(unmet, forces)
        return found

    # Inside.

    def _hybrid_motion(
        self, q: Array, v: Array, a: Array, tau: Array, mask: Array, wrenches: Wrenches | None
    ) -> Array:
        M, force = self._tree_terms(q, v, tau, wrenches, None)
        J, gamma = self.constraint_kernels.jacobian(q), self.constraint_kernels.bias(q, v)
        chosen = np.eye(self.nv)[mask]
        rows = np.concatenate([J, np.broadcast_to(chosen, (*J.shape[:-2], *chosen.shape))], axis=-2)
        lead = batch_shape([gamma, a])
        parts = [np.broadcast_to(x, (*lead, x.shape[-1])) for x in (gamma, -a[..., mask])]
        right = np.concatenate(parts, axis=-1)
        motion = solve_multipliers(M, rows, right, force).a
        gap = (rows @ motion[..., None])[..., 0] + right
        slack = 1e-7 * (1 + np.abs(right).max(axis=-1, keepdims=True, initial=0.0))
        bad = np.any(np.abs(gap) > slack, axis=-1)
        if np.any(bad):
            index = tuple(int(k) for k in np.argwhere(bad)[0])
            where = f" (state {', '.join(map(str, index))} of the batch)" if index else ""
            names = ", ".join(self.column_name(int(k)) for k in np.flatnonzero(mask))
            raise InputError(
                f"the accelerations given for {names} do not agree with the loops{where}: they miss by "
                f"{np.abs(gap[index]).max():.3g}; model.close_acceleration(q, v, a) gives some that do, or give fewer"
            )
        return motion

    def _require_mass(self, unmet: Array, needed: Array) -> None:
        """What the active columns do not bear must be in balance by itself; a massless motion cannot be."""
        size = 1e-3 + np.abs(needed).max(axis=-1, initial=0.0)
        if not np.all(np.abs(unmet).max(axis=-1, initial=0.0) <= 1e-6 * size):
            raise PolybodyError(
                f"{self.mechanism.name!r}: a passive motion that the loops let pass moves no mass, so no force "
                "determines its acceleration; give its bodies mass or its joints armature"
            )


__all__ = ["LoopOperators"]
