"""`model.base`: free-floating systems. Momentum that stays, the base that follows its arms, and any body as base.

With M_b the base's block of the mass matrix and M_br the rest of its rows, the momentum of the whole, seen from the
base, is p = M_b v_b + M_br v_r. It is kept where no force acts, so v_b = M_b⁻¹(p − M_br v_r): for p = 0 minus the
disturbance Jacobian times the joints' velocities (Swain & Morris, (38)). A planar base keeps three of the six.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from polybody.errors import InputError
from polybody.mechanism.mechanism import GROUND, TreeJoint
from polybody.model.arguments import float_array, state_array
from polybody.model.batches import batch_shape
from polybody.model.engine import Request
from polybody.model.sets import each_set, one_set
from polybody.quantities.table import QUANTITIES

if TYPE_CHECKING:
    from polybody.model.model import Model
    from polybody.model.rebasing import Rebased

Array = np.ndarray
FREE = ("floating", "planar")


class Base:
    """The free joint that connects the whole model to the ground."""

    def __init__(self, model: Model) -> None:
        self._model, self._engine = model, model.engine

    @property
    def joint(self) -> TreeJoint:
        """The floating or planar joint that carries the whole model; raises an error if there is none."""
        roots = [joint for joint in self._model.mechanism.joints if joint.parent == GROUND]
        if len(roots) != 1 or roots[0].kind not in FREE or roots[0].reversed:
            found = ", ".join(f"{joint.name!r} ({joint.kind})" for joint in roots) or "nothing"
            raise InputError(
                f"this needs a free-floating model, one that stands on a single floating or planar joint; on the "
                f"ground stand {found}; load it with base='floating'"
            )
        return roots[0]

    @each_set
    def zero_momentum_velocity(
        self, q: ArrayLike, v: ArrayLike, momentum: ArrayLike | None = None, *, parameters: ArrayLike | None = None
    ) -> Array:
        """Velocity v, (..., nv), with the base's columns chosen for zero momentum, or for `momentum` [angular; linear].

        `momentum` is about the centre of mass in world axes, as `model.momentum` returns it. The base's columns of the
        given v are not read. For a planar base, only the components of momentum that its joint can change are matched.
        """
        base, model = self.joint, self._model
        q, v = model._q(q), state_array("v", v, model.nv)
        self._require_free(base, q)
        p: Any = np.zeros(base.nv)
        if momentum is not None:
            p = self._seen_from_base(base, q, state_array("momentum", momentum, 6))
        M = self._engine.tree.answer(Request(QUANTITIES["mass_matrix"], (q,)))[..., base.v, :]
        rest = v.copy()
        rest[..., base.v] = 0.0
        right = p - (M @ rest[..., None])[..., 0]
        result = np.broadcast_to(rest, (*batch_shape([right]), rest.shape[-1])).copy()
        result[..., base.v] = np.linalg.solve(M[..., base.v], right[..., None])[..., 0]
        self._engine.require_closed(q, result)
        return result

    @each_set
    def reaction(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, parameters: ArrayLike | None = None
    ) -> Array:
        """Reaction wrench [moment; force], (..., 6), of a planned motion on its base, which is held fixed.

        In the base's axes, at its origin. The base's columns of v and a are taken as zero; gravity is included. For a
        planar base, the three forces conjugate to its velocity.
        """
        base, model = self.joint, self._model
        q, v, a = model._q(q), state_array("v", v, model.nv).copy(), state_array("a", a, model.nv).copy()
        v[..., base.v] = a[..., base.v] = 0.0
        self._require_free(base, q)
        self._engine.require_closed(q, v)
        self._engine.require_acceleration(q, v, a)
        return -self._engine.tree.answer(Request(QUANTITIES["inverse_dynamics"], (q, v, a)))[..., base.v]

    @one_set
    def motion(
        self, q: ArrayLike, times: ArrayLike, joint_velocities: Callable[[float], Any],
        momentum: ArrayLike | None = None, *, parameters: ArrayLike | None = None,
    ) -> tuple[Array, Array]:  # fmt: skip
        """(q, v) at the given times, when the joints move as planned and the free base follows.

        `joint_velocities(t)` returns v of all columns except the base's, in their order; `momentum` is as in
        `zero_momentum_velocity` and is conserved, `parameters` one set, (k,). Fourth-order Runge-Kutta
        steps from each time to the next; no gravity acts.
        """
        base, model = self.joint, self._model
        q, times = model._q(q), float_array("times", times)
        if q.ndim != 1 or times.ndim != 1 or np.any(np.diff(times) <= 0):
            raise InputError("base.motion takes one configuration q and increasing times")
        others = np.setdiff1d(np.arange(model.nv), np.arange(base.v.start, base.v.stop))

        def velocity(t: float, q: Array) -> Array:
            v = np.zeros(model.nv)
            v[others] = state_array("joint_velocities(t)", joint_velocities(t), len(others))
            return self.zero_momentum_velocity(model.normalize(q), v, momentum)

        def rate(t: float, q: Array) -> Array:
            return self._engine.tree.answer(Request(QUANTITIES["rate"], (q, velocity(t, q))))

        path = [q]
        for start, stop in pairwise(times):
            h, q = stop - start, path[-1]
            k1 = rate(start, q)
            k2 = rate(start + h / 2, q + h / 2 * k1)
            k3 = rate(start + h / 2, q + h / 2 * k2)
            k4 = rate(stop, q + h * k3)
            path.append(model.normalize(q + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)))
        found = np.array(path)
        return found, np.array([velocity(t, x) for t, x in zip(times, found, strict=True)])

    def rebase(self, body: str) -> Rebased:
        """The same free-floating system with another link as its base.

        The result has `.model` and maps of q and v in both directions.
        """
        from polybody.model.rebasing import rebased

        return rebased(self._model, body)

    # Inside.

    def _require_free(self, base: TreeJoint, q: Array) -> None:
        """Loops within the system exert nothing on its motion as a whole; those that hold it to the ground do."""
        held = np.abs(self._engine.constraints.jacobian(q)[..., base.v]).max(initial=0.0)
        if held > 1e-9:
            raise InputError("loops, rods or guides hold this model to the ground: it does not float freely")

    def _seen_from_base(self, base: TreeJoint, q: Array, momentum: Array) -> Array:
        """Momentum about the centre of mass, world axes, as the momentum conjugate to the base's velocity."""
        model = self._model
        name = model.mechanism.bodies[base.index].name
        arm = model.center_of_mass(q) - model.pose(q, name)[..., :3, 3]
        angular = momentum[..., :3] + np.cross(arm, momentum[..., 3:])
        J = model.jacobian(q, name)[..., base.v]
        whole = np.concatenate([np.broadcast_to(angular, (*angular.shape[:-1], 3)), np.broadcast_to(
            momentum[..., 3:], angular.shape)], axis=-1)
        return np.einsum("...ij,...i->...j", J, whole)


__all__ = ["Base"]
