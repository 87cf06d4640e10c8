"""`model.actuation`: active and passive coordinates, given motions here and given forces there.

Columns A follow given accelerations, the others given forces. With constraints the motion is that of the mechanism with
rows a_A added to them,

    [J; S_A] a = [−γ; a_A],     M a = f + Jᵀλ + S_Aᵀτ_A

solved rank-revealing; then τ_A are the forces of least norm of those columns that produce it, Z_Aᵀτ_A = Zᵀ(ID − tau),
as in inverse dynamics.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from polybody.algebra.domains import Domain
from polybody.constraints.actuation import actuator_loads, internal_load_basis
from polybody.constraints.multipliers import solve_multipliers
from polybody.errors import InputError, PolybodyError
from polybody.formulations import operators as formulation
from polybody.mechanism.columns import actuated, state_text, velocity_names
from polybody.mechanism.mechanism import Mechanism
from polybody.model import wrenches as loads
from polybody.model.arguments import choose, state_array
from polybody.model.batches import batch_shape
from polybody.model.engine import Request
from polybody.model.ranked import Ranked
from polybody.model.sets import large, one_set
from polybody.model.wrenches import Wrenches
from polybody.names import counted
from polybody.quantities.quantity import Quantity
from polybody.quantities.table import QUANTITIES

if TYPE_CHECKING:
    from polybody.model.model import Model

Array = np.ndarray


class Actuation:
    """Active and passive coordinates of a model, and the forces of its actuators."""

    def __init__(self, model: Model) -> None:
        self._model, self._mechanism, self._engine = model, model.mechanism, model.engine

    @property
    def active(self) -> Array:
        """Active columns of v, (nv,) booleans; those of a free base are passive."""
        return formulation.active_mask(self._mechanism)

    @property
    def names(self) -> list[str]:
        """Names of the active coordinates."""
        every = velocity_names(self._mechanism)
        return [every[k] for k in actuated(self._mechanism)]

    def mask(self, active: Sequence[str] | ArrayLike | None = None) -> Array:
        """Boolean mask of the active columns, (nv,): the model's own, those of named joints, or a mask passed through.
        """
        m = self._mechanism
        if active is None:
            return self.active
        given: list[Any] = list(active)  # type: ignore[arg-type]
        if given and all(isinstance(x, str) for x in given):
            mask = np.zeros(m.nv, dtype=bool)
            for name in given:
                mask[m.joints[choose("joint", name, m.joint_index)].v] = True
            return mask
        if len(given) != m.nv or not all(isinstance(x, (bool, np.bool_)) for x in given):
            raise InputError(f"active must be joint names or {counted(m.nv, 'boolean')}, got {active!r}")
        return np.array(given, dtype=bool)

    @large
    def hybrid_dynamics(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike | None = None, *, active: Any = None,
        wrenches: Wrenches | None = None, parameters: ArrayLike | None = None,
    ) -> tuple[Array, Array]:  # fmt: skip
        """(a, tau), each (..., nv): active columns follow the given a, passive ones the given tau (default 0).

        a is (..., nv), of which only the active columns are read, or (..., number of active columns) in their order;
        tau likewise with the passive columns. The result holds all columns: the active forces that the motion requires,
        and the resulting passive accelerations. `active` selects other columns than the model's own. With loops the
        given accelerations must be consistent with them; if there are more active columns than needed, their forces are
        those of least norm.
        """
        mask = self.mask(active)
        q, v = self._model._q(q), state_array("v", v, self._mechanism.nv)
        a = self._scattered("a", a, mask)
        forces = np.zeros(self._mechanism.nv) if tau is None else self._scattered("tau", tau, ~mask)
        given = loads.checked(self._mechanism, wrenches)
        values = self._model._parameters(parameters)
        on_bodies = loads.on_bodies(self._engine.tree, q, given, values) if given else None
        if not len(self._engine.constraints.constraints):
            if not mask.all():
                self._engine.tree._refuse_singular()
            return self._engine.answer(Request(_hybrid(mask), (q, v, a, forces), on_bodies, parameters=values))
        self._engine.require_closed(q, v, values)
        motion = self._hybrid_motion(q, v, a, forces, mask, on_bodies, values)
        needed = self._tree_inverse(q, v, motion, on_bodies, values) - forces
        found, unmet = actuator_loads(self._engine.constraints.jacobian(q, values), needed, np.flatnonzero(mask))
        self._require_mass(unmet, needed)
        return motion, found + forces

    @large
    def active_forces(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike | None = None, *, active: Any = None,
        tolerance: float = 1e-9, parameters: ArrayLike | None = None,
    ) -> Array:  # fmt: skip
        """Joint forces tau, (..., nv), that produce the motion a with active forces alone.

        Passive columns keep the given tau. A motion that the passive columns would not perform by themselves raises an
        error that names the coordinate with the largest discrepancy. With loops the forces are those of least norm, and
        an uncontrolled motion is named.
        """
        mask, nv = self.mask(active), self._mechanism.nv
        q, v, a = self._model._q(q), state_array("v", v, nv), state_array("a", a, nv)
        given = np.zeros(nv) if tau is None else self._scattered("tau", tau, ~mask)
        values = self._model._parameters(parameters)
        self._engine.require_closed(q, v, values)
        self._engine.require_acceleration(q, v, a, values)
        needed = self._tree_inverse(q, v, a, None, values) - given
        if len(self._engine.constraints.constraints):
            return self._ranked.held_by(q, needed, np.flatnonzero(mask), parameters=values) + given
        lacking = np.where(mask, 0.0, np.abs(needed))
        share = lacking / (1.0 + np.abs(needed).max(axis=-1, keepdims=True, initial=0.0))
        if np.any(share > tolerance):
            at = np.unravel_index(int(np.argmax(np.nan_to_num(share))), share.shape)
            base = float(np.broadcast_to(given, needed.shape)[at])
            raise InputError(self._impossible(at, float(needed[at]) + base, base))
        return np.where(mask, needed, 0.0) + given

    @large
    def equivalent_actuator_forces(
        self, q: ArrayLike, forces: ArrayLike, *, parameters: ArrayLike | None = None
    ) -> Array:
        """Forces tau, (..., nv), of the active joints that do the same work as `forces` (..., nv) on every motion.

        With loops the tau of least norm, and an error if there is none; without loops the forces themselves.
        """
        q, forces = self._model._q(q), state_array("forces", forces, self._mechanism.nv)
        values = self._model._parameters(parameters)
        if not len(self._engine.constraints.constraints):
            return forces
        return self._ranked.held_by(q, forces, np.flatnonzero(self.active), parameters=values)

    @large
    def holding_forces(self, q: ArrayLike, *, parameters: ArrayLike | None = None) -> Array:
        """Forces tau, (..., nv), of the active joints that balance gravity at rest; springs are not included.

        Equal to `gravity_forces` for a model without loops; with loops the forces of least norm, and an error if none
        exist.
        """
        q = self._model._q(q)
        values = self._model._parameters(parameters)
        gravity = self._engine.tree.answer(Request(QUANTITIES["gravity_forces"], (q,), parameters=values))
        return self.equivalent_actuator_forces(q, gravity, parameters=parameters)

    @one_set
    def internal_loads(self, q: ArrayLike, *, parameters: ArrayLike | None = None) -> tuple[list[str], Array]:
        """(active coordinates, basis (active, k)): orthonormal actuator loads that cause no motion at q.

        One configuration and one set of parameters, as the number of loads depends on them.
        """
        q = self._model._q(q)
        if q.ndim != 1:  # how many loads there are changes with the state
            raise InputError(f"internal_loads takes one configuration, got shape {q.shape}")
        self._engine.require_closed(q)
        basis = internal_load_basis(self._engine.constraints.jacobian(q), actuated(self._mechanism))
        return self.names, basis

    def column_name(self, column: int) -> str:
        """Name of a column of v, as used in messages."""
        for joint in self._mechanism.independent_joints:
            if joint.v.start <= column < joint.v.stop:
                part = "" if joint.nv == 1 else f", column {column - joint.v.start} of {joint.nv}"
                return f"v[{column}] (joint {joint.name!r}{part})"
        raise InputError(f"no column {column}; v has {self._mechanism.nv}")

    # Inside.

    @property
    def _ranked(self) -> Ranked:
        return Ranked(self._engine.tree, self._model._assembly)

    def _weights(self, weights: ArrayLike) -> Array:
        count = len(actuated(self._mechanism))
        found = state_array("weights", weights, count)
        if found.ndim != 1 or not np.all(found > 0):
            raise InputError(f"weights must be {counted(count, 'positive number')}, one for each active coordinate")
        return found

    def _tree_inverse(self, q: Array, v: Array, a: Array, on_bodies: Array | None, values: Array | None) -> Array:
        asked = Request(QUANTITIES["inverse_dynamics"], (q, v, a), on_bodies, parameters=values)
        return self._engine.tree.answer(asked)

    def _scattered(self, name: str, values: Any, mask: Array) -> Array:
        """(..., nv) with zeros outside the mask, from all columns or from those of the mask alone."""
        array, nv, some = np.asarray(values), self._mechanism.nv, int(mask.sum())
        if array.ndim and array.shape[-1] == some != nv:
            array = state_array(name, array, some)
            full = np.zeros((*array.shape[:-1], nv))
            full[..., mask] = array
            return full
        return np.where(mask, state_array(name, array, nv), 0.0)

    def _impossible(self, at: tuple[Any, ...], needed: float, given: float) -> str:
        *index, column = (int(i) for i in at)
        state = f" in state {tuple(index)}" if index else ""
        return (
            f"{self.column_name(column)} is passive: this motion{state} needs the force {needed:.6g} there, and "
            f"{given:.6g} is given; take the passive accelerations from hybrid_dynamics, or make that coordinate active"
        )

    def _hybrid_motion(
        self, q: Array, v: Array, a: Array, tau: Array, mask: Array, on_bodies: Array | None, values: Array | None
    ) -> Array:
        M, force = self._ranked.tree_terms(q, v, tau, on_bodies, parameters=values)
        J, gamma = self._engine.constraints.jacobian(q, values), self._engine.constraints.bias(q, v, values)
        chosen = np.eye(self._mechanism.nv)[mask]
        rows = np.concatenate([J, np.broadcast_to(chosen, (*J.shape[:-2], *chosen.shape))], axis=-2)
        lead = batch_shape([gamma, a])
        right = np.concatenate([np.broadcast_to(x, (*lead, x.shape[-1])) for x in (gamma, -a[..., mask])], axis=-1)
        motion = solve_multipliers(M, rows, right, force).a
        gap = (rows @ motion[..., None])[..., 0] + right
        slack = 1e-7 * (1 + np.abs(right).max(axis=-1, keepdims=True, initial=0.0))
        bad = np.any(np.abs(gap) > slack, axis=-1)
        if np.any(bad):
            index = tuple(int(k) for k in np.argwhere(bad)[0])
            names = ", ".join(self.column_name(int(k)) for k in np.flatnonzero(mask))
            raise InputError(
                f"the accelerations given for {names} are inconsistent with the loops{state_text(index)}, by "
                f"{np.abs(gap[index]).max():.3g}; model.assemble_acceleration(q, v, a) returns consistent ones; or "
                "give fewer"
            )
        return motion

    def _require_mass(self, unmet: Array, needed: Array) -> None:
        """What the active columns do not bear must be in balance by itself; a massless motion cannot be."""
        size = 1e-3 + np.abs(needed).max(axis=-1, initial=0.0)
        if not np.all(np.abs(unmet).max(axis=-1, initial=0.0) <= 1e-6 * size):
            raise PolybodyError(
                f"{self._mechanism.name!r}: a passive motion that the loops allow moves no mass, so no force "
                "determines its acceleration; give its bodies mass or its joints armature"
            )


def _hybrid(mask: Array) -> Quantity:
    """Hybrid dynamics for one choice of active columns."""

    def text(
        m: Mechanism, q: Array, v: Array, a: Array, tau: Array, wrenches: Array | None = None, *, domain: Domain
    ) -> Any:
        return formulation.hybrid_dynamics(m, q, v, mask, a, tau, wrenches, domain=domain)

    bits = "".join("1" if x else "0" for x in mask)
    results = (("a", ("nv",)), ("tau", ("nv",)))
    return Quantity(f"hybrid:{bits}", ("q", "v", "a", "tau"), results, text, group="dynamics", loaded=True)


__all__ = ["Actuation"]
