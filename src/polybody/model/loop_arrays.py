"""Freeman's arrays of models with loops in independent coordinates: G, H, D of joints and frames, I*, P*.

    v = G u̇,    a = G ü + u̇ᵀHu̇,    I* ü + u̇ᵀP*u̇ − load = Gᵀ tau
    I*_uu = Gᵀ I* G,    P*_uuu = Gᵀ•(Gᵀ P* G) + (Gᵀ I*)•H                                           (4-26)-(4-32)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polybody.constraints.coefficients import carried, joint_third_order
from polybody.constraints.ranks import pseudo_inverse
from polybody.constraints.variations import returning, second_coefficients
from polybody.coordinates.arrays import combine, sandwich
from polybody.formulations.influence.coefficients import Influence, check_order
from polybody.mechanism.columns import velocity_names
from polybody.model.arguments import state_array
from polybody.model.control import ControlAnswers
from polybody.model.loops import LoopDynamics, _back, _refuse_choice

Array = np.ndarray
#: residuals (m, rad) that Newton's method aims at, and how often it tries
SETTLED, NEWTON = 1e-13, 25


@dataclass(frozen=True, eq=False)
class ReducedDynamics:
    """I* ü + u̇ᵀP*u̇ − load = Gᵀtau at closed configurations (...); v = G u̇, a = G ü + u̇ᵀHu̇."""

    names: tuple[str, ...]
    G: Array  # (..., nv, m)
    H: Array  # (..., nv, m, m)
    I: Array  # (..., m, m), the paper's name
    P: Array  # (..., m, m, m)
    load: Array  # (..., m): −gravity + springs at rest


class LoopArrays(LoopDynamics, ControlAnswers):
    """Influence coefficients and dynamic arrays with the loops honoured."""

    def joint_influence(self, q: Any, order: int = 2, independent: Sequence[str] | None = None) -> Influence:
        """G (..., nv, m), H (..., nv, m, m), D (..., nv, m, m, m) of all joints over the independent coordinates.

        H[:, m, n] is the derivative of G[:, n] along u_m, D[:, l, m, n] that of H[:, m, n] along u_l: `velocity`,
        `acceleration` and `jerk` of the result take u̇, ü and its rate, and give those of all joints.
        """
        order = check_order(order)
        (q,) = self._states(("q", q))
        if not self.mechanism.constrained:
            _refuse_choice(independent)
            return self._own_influence(q, order)
        kernels, transfer = self.constraint_kernels, self._motion(q, independent)
        G = transfer.G
        if order == 1:
            return Influence(G)
        E, T = returning(transfer, kernels.jacobian(q)), kernels.jacobian_changes(q, G)
        H = second_coefficients(E, T, G)
        if order == 2:
            return Influence(G, H)
        D = joint_third_order(
            E, T, G, H, lambda X: kernels.jacobian_changes(q, X), lambda X, Y: kernels.jacobian_seconds(q, X, Y)
        )
        return Influence(G, H, D)

    def _own_influence(self, q: Array, order: int) -> Influence:
        """Of joints that follow nothing: G = 1, the rest zero."""
        n, lead = self.nv, q.shape[:-1]
        G = np.broadcast_to(np.eye(n), (*lead, n, n))
        return Influence(G, *(np.zeros((*lead, n, *(n,) * k)) for k in range(2, order + 1)))

    def follow(
        self, q: Any, u_dot: Any, u_ddot: Any = None, *, independent: Sequence[str] | None = None
    ) -> Any:
        """v, (..., nv), of all joints at q when the independent coordinates move with u̇; with ü also: (v, a)."""
        m = len(self._independent if independent is None else independent)
        u_dot = state_array("u_dot", u_dot, m)
        joints = self.joint_influence(q, 1 if u_ddot is None else 2, independent)
        v = joints.velocity(u_dot)
        return v if u_ddot is None else (v, joints.acceleration(u_dot, state_array("u_ddot", u_ddot, m)))

    def close_dependent(self, q: Any, independent: Sequence[str] | None = None) -> Array:
        """The closed configuration near q, (..., nq), with the independent coordinates where they are: Newton's method.

        For configurations that are nearly closed, many at once; `close` finds one from anywhere.
        """
        (q,) = self._states(("q", q))
        if not self.mechanism.constrained:
            return q
        chosen = self._independent if independent is None else self.velocity_indices(independent)
        rest = [k for k in range(self.nv) if k not in set(chosen)]
        kernels = self.constraint_kernels
        phi, step = kernels.residual(q), np.zeros((*q.shape[:-1], self.nv))
        for _ in range(NEWTON):
            if not np.abs(phi).max(initial=0.0) > SETTLED:
                break
            step[..., rest] = -(pseudo_inverse(kernels.jacobian(q)[..., rest]) @ phi[..., None])[..., 0]
            q = self.integrate(q, step)
            phi = kernels.residual(q)
        self._require_small("no q with these independent coordinates is near that meets", phi, 1e-9, "see model.close")
        return q

    def influence(
        self, q: Any, frame: str, order: int = 3, *, point: Any = None, independent: Sequence[str] | None = None
    ) -> Influence:
        """Influence coefficients G (..., 6, nv), H (..., 6, nv, nv), D (..., 6, nv, nv, nv) of a frame, world axes.

        Rows are [angular; linear]; H[:, m, n] is the derivative of G[:, n] along v_m, D[:, l, m, n] that of H[:, m, n]
        along v_l. `order` is the highest wanted. `point` moves the point from the frame's origin: three numbers in the
        frame's axes, or "com" for the mass centre of the rigid body that carries the frame. With loops these hold over
        all velocities of the tree, which v = G u̇ relates; `independent` coordinates give them over u instead (m
        columns), loops included.
        """
        found = super().influence(q, frame, order, point=point)
        return self._over_independent(q, order, found, independent)

    def center_of_mass_influence(
        self, q: Any, order: int = 3, *, independent: Sequence[str] | None = None
    ) -> Influence:
        """The same of the centre of mass of everything that moves; the angular rows are zero."""
        return self._over_independent(q, order, super().center_of_mass_influence(q, order), independent)

    def _over_independent(
        self, q: Any, order: int, found: Influence, independent: Sequence[str] | None
    ) -> Influence:
        if independent is None:
            return found
        if not self.mechanism.constrained:
            _refuse_choice(independent)
        joints = self.joint_influence(q, order, independent)
        orders = [[x for x in (part.G, part.H, part.D) if x is not None] for part in (found, joints)]
        return Influence(*carried(*orders))

    def dynamic_arrays(self, q: Any, *, independent: Sequence[str] | None = None) -> tuple[Array, Array]:
        """(I*, P*) of tau = I* a + vᵀP*v − loads: (..., nv, nv) and (..., nv, nv, nv); P*[i] belongs to tau_i.

        With loops those of the independent coordinates, (..., m, m) and (..., m, m, m).
        """
        if not self.mechanism.constrained:
            _refuse_choice(independent)
            return super().dynamic_arrays(q)
        (q,) = self._states(("q", q))
        found = self.joint_influence(q, 2, independent)
        return self._arrays(q, found)

    def _arrays(self, q: Array, joints: Influence) -> tuple[Array, Array]:
        I, P = self.tree.dynamic_arrays(q)
        assert joints.H is not None
        G, back = joints.G, np.swapaxes(joints.G, -1, -2)
        return back @ I @ G, combine(back, sandwich(G, P)) + combine(back @ I, joints.H)

    def reduced_dynamics(self, q: Any, independent: Sequence[str] | None = None) -> ReducedDynamics:
        """Freeman's model of closed configurations in independent coordinates: G, H of all joints, I*, P*, load."""
        (q,) = self._states(("q", q))
        joints = self.joint_influence(q, 2, independent)
        assert joints.H is not None
        I, P = self._arrays(q, joints)
        chosen = self._independent if independent is None else self.velocity_indices(independent)
        load = self.tree.passive_forces(q, np.zeros(self.nv)) - self.tree.gravity_forces(q)
        names = velocity_names(self.mechanism)
        return ReducedDynamics(tuple(names[k] for k in chosen), joints.G, joints.H, I, P, _back(joints.G, load))


__all__ = ["LoopArrays", "ReducedDynamics"]
