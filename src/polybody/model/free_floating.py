"""Free-floating systems: momentum that stays, the base that follows its arms, and any body as base.

With M_b the base's 6×6 block of the mass matrix and M_br the rest of its rows, the momentum of the whole, seen from the
base, is p = M_b v_b + M_br v_r. It is kept where no force acts, so v_b = M_b⁻¹(p − M_br v_r): for p = 0 minus the
disturbance Jacobian times the joints' velocities (Swain & Morris, (38)).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.errors import InputError
from polybody.mechanism.mechanism import GROUND, TreeJoint
from polybody.model.arguments import state_array
from polybody.model.batches import batch_shape
from polybody.model.dynamics import DynamicAnswers
from polybody.model.shape import ShapeAnswers

if TYPE_CHECKING:
    from polybody.model.rebasing import Rebased

Array = np.ndarray


class FreeFloatingAnswers(DynamicAnswers, ShapeAnswers):
    """Velocities without momentum, base reactions, other bases."""

    def free_base(self) -> TreeJoint:
        """The one floating joint that the whole model hangs on; a model without it is refused."""
        roots = [joint for joint in self.mechanism.joints if joint.parent == GROUND]
        if len(roots) != 1 or roots[0].kind != "floating" or roots[0].reversed:
            found = ", ".join(f"{joint.name!r} ({joint.kind})" for joint in roots) or "nothing"
            raise InputError(
                f"this needs a free-floating model, one that stands on a single floating joint; on the ground stand "
                f"{found}; load it with base='floating'"
            )
        return roots[0]

    def zero_momentum_velocity(self, q: Any, v: Any, momentum: Any = None) -> Array:
        """v, (..., nv), with the base's columns such that the momentum is zero, or `momentum` [angular; linear].

        `momentum` is about the centre of mass in world axes, as `model.momentum` gives it. The base's columns of the
        given v are not read.
        """
        base = self.free_base()
        q, v = self._states(("q", q), ("v", v))
        p = np.zeros(6) if momentum is None else self._seen_from_base(base, q, state_array("momentum", momentum, 6))
        M = self._open(base, q).mass_matrix(q)[..., base.v, :]
        rest = v.copy()
        rest[..., base.v] = 0.0
        right = p - (M @ rest[..., None])[..., 0]
        result = np.broadcast_to(rest, (*batch_shape([right]), rest.shape[-1])).copy()
        result[..., base.v] = np.linalg.solve(M[..., base.v], right[..., None])[..., 0]
        if self.mechanism.constrained:
            self.require_closed(q, result)  # type: ignore[attr-defined]
        return result

    def _open(self, base: TreeJoint, q: Array) -> Any:
        """The model whose terms in the base's columns are the whole system's: with loops that of the tree.

        Loops within the system exert nothing on its motion as a whole; loops that hold it to the ground are refused.
        """
        if not self.mechanism.constrained:
            return self
        held = np.abs(self.constraint_jacobian(q)[..., base.v]).max(initial=0.0)  # type: ignore[attr-defined]
        if held > 1e-9:
            raise InputError("loops, rods or guides hold this model to the ground: it does not float freely")
        return self.tree  # type: ignore[attr-defined]

    def _seen_from_base(self, base: TreeJoint, q: Array, momentum: Array) -> Array:
        """Momentum about the centre of mass, world axes, as the momentum conjugate to the base's velocity."""
        pose = self.pose(q, self.mechanism.bodies[base.index].name)
        R_t = np.swapaxes(pose[..., :3, :3], -1, -2)
        arm = self.center_of_mass(q) - pose[..., :3, 3]
        angular = momentum[..., :3] + np.cross(arm, momentum[..., 3:])
        return np.concatenate([(R_t @ x[..., None])[..., 0] for x in (angular, momentum[..., 3:])], axis=-1)

    def base_reaction(self, q: Any, v: Any, a: Any) -> Array:
        """Wrench [moment; force], (..., 6), of a planned motion on its base, which is held where it is.

        In the base's axes, at its origin. The base's columns of v and a are taken for zero; gravity is included.
        """
        base = self.free_base()
        q, v, a = self._states(("q", q), ("v", v), ("a", a))
        v, a = v.copy(), a.copy()
        v[..., base.v] = a[..., base.v] = 0.0
        whole = self._open(base, q)
        if whole is not self:
            self.require_closed(q, v)  # type: ignore[attr-defined]
            self._require_acceleration(self.constraint_jacobian(q), q, v, a)  # type: ignore[attr-defined]
        return -whole.inverse_dynamics(q, v, a)[..., base.v]

    def base_motion(
        self, q: Any, times: Any, joint_velocities: Callable[[float], Any], momentum: Any = None
    ) -> tuple[Array, Array]:
        """(q, v) at the given times, when the joints move as planned and the free base follows.

        `joint_velocities(t)` gives v of all columns but the base's, in their order; `momentum` is as in
        `zero_momentum_velocity` and stays. Fourth-order Runge-Kutta steps from each time to the next; no gravity acts.
        """
        base = self.free_base()
        (q,) = self._states(("q", q))
        times = np.asarray(times, dtype=float)
        if q.ndim != 1 or times.ndim != 1 or np.any(np.diff(times) <= 0):
            raise InputError("base_motion takes one configuration q and increasing times")
        others = np.setdiff1d(np.arange(self.mechanism.nv), np.arange(base.v.start, base.v.stop))

        def velocity(t: float, q: Array) -> Array:
            v = np.zeros(self.mechanism.nv)
            v[others] = state_array("joint_velocities(t)", joint_velocities(t), len(others))
            return self.zero_momentum_velocity(q, v, momentum)

        def rate(t: float, q: Array) -> Array:
            return self.kernel("rate")(q, velocity(t, q))

        path = [q]
        for start, stop in pairwise(times):
            h, q = stop - start, path[-1]
            k1 = rate(start, q)
            k2 = rate(start + h / 2, q + h / 2 * k1)
            k3 = rate(start + h / 2, q + h / 2 * k2)
            k4 = rate(stop, q + h * k3)
            path.append(self.normalize(q + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)))
        found = np.array(path)
        return found, np.array([velocity(t, x) for t, x in zip(times, found, strict=True)])

    def rebase(self, body: str) -> Rebased:
        """The same free-floating system with another link as its base: `.model`, and maps of q and v between."""
        from polybody.model.model import Model
        from polybody.model.rebasing import rebased

        assert isinstance(self, Model)
        return rebased(self, body)


__all__ = ["FreeFloatingAnswers"]
