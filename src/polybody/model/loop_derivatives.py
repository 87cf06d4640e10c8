"""Derivatives and linearisation of models with loops, along closed states.

Neighbouring states are those that the loops let pass: displacements and velocities of independent coordinates u change,
the other joints follow, and v = G u̇ stays consistent. So derivatives have nv rows (all joints) and m columns (the
independent coordinates); models without loops have m = nv. The theory is in `analysis.constraints.variations`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polybody.constraints import variations
from polybody.constraints.ranks import pseudo_inverse
from polybody.constraints.variations import Following, MotionDerivatives
from polybody.errors import InputError, PolybodyError
from polybody.linearization import state_space as linearization
from polybody.mechanism.columns import actuated, velocity_names
from polybody.model.arguments import state_array
from polybody.model.batches import batch_shape
from polybody.model.control import ControlAnswers
from polybody.model.dynamics import Wrenches
from polybody.model.loops import LoopDynamics, _refuse_choice

Array = np.ndarray


class LoopDerivatives(LoopDynamics, ControlAnswers):
    """Derivatives of the motion along the loops."""

    def forward_dynamics_derivatives(
        self, q: Any, v: Any, tau: Any, *, independent: Sequence[str] | None = None
    ) -> tuple[Array, Array, Array]:
        """(da_dq, da_dv, da_dtau), each (..., nv, nv), q in tangent space.

        With loops: derivatives of all accelerations by the independent coordinates' displacements and velocities,
        (..., nv, m), while the other joints follow and v stays consistent; da_dtau is (..., nv, nv).
        """
        if not self.mechanism.constrained:
            _refuse_choice(independent)
            return super().forward_dynamics_derivatives(q, v, tau)
        found = self.motion_derivatives(q, v, tau, independent)
        return found.da_dq, found.da_dv, found.da_dtau

    def motion_derivatives(
        self, q: Any, v: Any, tau: Any, independent: Sequence[str] | None = None
    ) -> MotionDerivatives:
        """The derivatives of a closed motion, and how every joint follows the independent ones (models with loops)."""
        if not self.mechanism.constrained:
            raise InputError("this model has no loops; forward_dynamics_derivatives are its motion's derivatives")
        q, v, tau = _together(self._states(("q", q), ("v", v), ("tau", tau)))
        a = self.forward_dynamics(q, v, tau)
        follow, demand = self._neighbourhood(q, v, a, tau, independent, None)
        self._require_inertia(demand[2])
        return variations.forward_changes(follow, demand)

    def inverse_dynamics_derivatives(
        self, q: Any, v: Any, a: Any, *, wrenches: Wrenches | None = None, independent: Sequence[str] | None = None,
        weights: Any = None,
    ) -> tuple[Array, Array, Array]:
        """(dtau_dq, dtau_dv, dtau_da), each (..., nv, nv), q in tangent space; wrenches constant in world axes.

        With loops: derivatives of the active joints' forces (the least where there are more than needed, as `weights`
        say; other rows are zero) by the independent coordinates' displacements, velocities and accelerations,
        (..., nv, m), while the other joints follow.
        """
        if not self.mechanism.constrained:
            _refuse_choice(independent)
            return super().inverse_dynamics_derivatives(q, v, a, wrenches=wrenches)
        q, v, a = _together(self._states(("q", q), ("v", v), ("a", a)))
        tau = self.inverse_dynamics(q, v, a, wrenches=wrenches, weights=weights)
        follow, demand = self._neighbourhood(q, v, a, tau, independent, wrenches)
        driven = actuated(self.mechanism)
        shares = None if weights is None else self._weights(weights, driven)
        shared = self._sharing(tau, follow, driven, shares)
        return variations.inverse_changes(follow, demand, driven, shared, shares)

    def linearize(
        self, q: Any, v: Any, tau: Any = None, *, inputs: str = "torque", outputs: Sequence[str] | None = None,
        independent: Sequence[str] | None = None,
    ) -> linearization.StateSpace:
        """Continuous A, B, C, D about (q, v) under tau, in tangent space; leading dimensions give a model each.

        States are q_… (displacements in tangent space), v_… and, with inputs="voltage", i_… of motors with inductance.
        tau=None takes the joint forces that give no acceleration. `inputs` "torque": one for each active coordinate;
        "voltage": one for each motor, then torques of active coordinates without a motor. `outputs` names frames whose
        displacement [rotation; translation] in world axes is measured; None measures every state.
        With loops the states are those of `independent` coordinates (default `model.independent`), the others follow,
        and tau=None takes forces at active joints that give the independent coordinates no acceleration.
        """
        if not self.mechanism.constrained:
            _refuse_choice(independent)
            return super().linearize(q, v, tau, inputs=inputs, outputs=outputs)
        q, v = self._states(("q", q), ("v", v))
        chosen = self._independent if independent is None else self.velocity_indices(independent)
        if tau is None:
            self.require_closed(q, v)
            tau = self.inverse_dynamics(q, v, self._motion(q, independent, self.constraint_kernels.bias(q, v)).beta)
        found = self.motion_derivatives(q, v, state_array("tau", tau, self.nv), independent)
        names = velocity_names(self.mechanism)
        tangent = linearization.Tangent(
            tuple(names[k] for k in chosen), chosen, found.follow.G, found.follow.V, found.da_dq, found.da_dv,
            found.da_dtau,
        )
        return linearization.state_space(self, q, v, tangent, inputs=inputs, outputs=outputs)

    # Inside.

    def _neighbourhood(
        self, q: Array, v: Array, a: Array, tau: Array, independent: Sequence[str] | None, wrenches: Wrenches | None
    ) -> tuple[Following, tuple[Array, Array, Array]]:
        """How joints follow, and what independent coordinates demand (R_q, R_v, M*), at a motion under tau."""
        chosen = self._independent if independent is None else self.velocity_indices(independent)
        J = self.constraint_kernels.jacobian(q)
        transfer = self._transfer(J, np.zeros(J.shape[:-1]), chosen)
        load = self.tree.inverse_dynamics(q, v, a, wrenches=wrenches) - tau
        multipliers = (pseudo_inverse(np.swapaxes(J, -1, -2)) @ load[..., None])[..., 0]
        tree = self.tree.inverse_dynamics_derivatives(q, v, a, wrenches=wrenches)
        T = self.constraint_kernels.jacobian_changes(q, transfer.G)

        def bias_change(D: Array, W: Array) -> Array:
            return self.constraint_kernels.bias_changes(q, v, D, W)

        follow = variations.following(transfer, J, T, v, a, bias_change)
        return follow, variations.demanded(follow, multipliers, tree)

    def _sharing(
        self, tau: Array, follow: Following, driven: Array, weights: Array | None
    ) -> Array | None:
        """[E T_k G y] of the sharing τ_A = W⁻¹G_A y, where there are more actuators than coordinates."""
        GA = follow.G[..., driven, :]
        self._require_held(GA, follow)
        if GA.shape[-2] == GA.shape[-1]:
            return None
        spread = np.ones((len(driven), 1)) if weights is None else 1.0 / weights[:, None]
        back = np.swapaxes(GA, -1, -2)
        y = np.linalg.solve(back @ (spread * GA), back @ tau[..., driven, None])
        return variations.columns(follow.E, follow.T, (follow.G @ y)[..., 0])

    def _require_held(self, GA: Array, follow: Following) -> None:
        """Every independent motion must move an actuator, or no derivative of their forces exists."""
        _, s, Vt = np.linalg.svd(GA)
        least = s[..., -1] if s.shape[-1] == GA.shape[-1] else np.zeros(s.shape[:-1])
        bad = ~(least > 1e-9 * s[..., 0]) if s.shape[-1] else np.ones(GA.shape[:-2], dtype=bool)
        for index in np.argwhere(bad)[:1] if np.any(bad) else ():
            place = tuple(int(k) for k in index)
            motion = follow.G[place] @ Vt[place][-1]
            self._refuse_motion(motion, place)

    def _refuse_motion(self, motion: Array, place: tuple[int, ...]) -> None:
        from polybody.coordinates.conditioning import direction_text

        names = velocity_names(self.mechanism)
        driven = ", ".join(names[k] for k in actuated(self.mechanism)) or "none"
        where = f" (state {', '.join(map(str, place))} of the batch)" if place else ""
        raise PolybodyError(
            f"the active joints ({driven}) do not move along {direction_text(motion / np.linalg.norm(motion), names)}"
            f"{where}, so their forces have no derivatives there; make another joint active"
        )

    def _require_inertia(self, M: Array) -> None:
        """M* must be regular: no motion that the loops let pass may be without mass."""
        if not M.shape[-1]:
            return
        s = np.linalg.svd(M, compute_uv=False)
        if not np.all(s[..., -1] > 1e-13 * s[..., 0]):
            raise PolybodyError(
                f"{self.mechanism.name!r}: a motion that the loops let pass moves no mass, so no force determines its "
                "acceleration; give its bodies mass or its joints armature"
            )


def _together(arrays: Sequence[Array]) -> list[Array]:
    """The states of one batch."""
    lead = batch_shape(arrays)
    return [np.broadcast_to(x, (*lead, x.shape[-1])) for x in arrays]


__all__ = ["LoopDerivatives"]
