"""The coordinates that a transfer starts from: a tree's own velocities φ, or the independent ones of loops.

A space answers in its own velocities w, forces conjugate to them, and expands its motions to all joints:

    tree     v = w
    loops    v = G w,  a = G ẇ + wᵀHw,  da/dt by D;  forces Gᵀ tau; parameters by the chain rule (4-9), (4-14)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from polybody.constraints.coefficients import carried
from polybody.coordinates.arrays import Dynamics, apply, quadratic, transposed
from polybody.coordinates.sets import CoordinateSet
from polybody.errors import InputError
from polybody.linearization import StateSpace, linearize
from polybody.mechanism.columns import velocity_names
from polybody.model.model import Model

Array = np.ndarray


class JointSpace:
    """The model's own coordinates, with the answers a transfer starts from."""

    def __init__(self, model: Model) -> None:
        self.model: Model = model
        self.names = velocity_names(model.mechanism)
        self.columns = list(range(model.mechanism.nv))

    def coefficients(self, q: Array, coordinates: CoordinateSet, order: int) -> list[Array]:
        """[G, H, D] of a set of coordinates over w, as many as `order` says."""
        return coordinates.coefficients(self.model, q, order)

    def parameter(self, q: Array, coordinates: CoordinateSet) -> tuple[Array, Array]:
        """G and H of dependent parameters in these coordinates."""
        G, H = self.coefficients(q, coordinates, 2)
        return G, H

    def velocity(self, q: Array, w: Array) -> Array:
        """All joints' velocities."""
        return w

    def acceleration(self, q: Array, w: Array, w_dot: Array) -> Array:
        """All joints' accelerations."""
        return w_dot

    def jerk(self, q: Array, w: Array, w_dot: Array, w_ddot: Array) -> Array:
        """The rates of all joints' accelerations."""
        return w_ddot

    def joint_map(self, q: Array) -> Array:
        """All joints' velocities per w, (..., nv, len(names))."""
        return np.broadcast_to(np.eye(self.model.nv), (*q.shape[:-1], self.model.nv, self.model.nv))

    def mass_matrix(self, q: Array) -> Array:
        return self.model.mass_matrix(q)

    def arrays(self, q: Array) -> tuple[Array, Array]:
        """I*, P* over w."""
        return self.model.coefficients.dynamic_arrays(q)

    def effort(self, q: Array, w: Array, w_dot: Array, wrenches: Any = None) -> Array:
        """Forces conjugate to w that make this motion."""
        return self.model.inverse_dynamics(q, w, w_dot, wrenches=wrenches)

    def motion(self, q: Array, w: Array, effort: Array, wrenches: Any = None) -> Array:
        """ẇ under forces conjugate to w."""
        return self.model.forward_dynamics(q, w, effort, wrenches=wrenches)

    def dynamics(self, q: Array, w: Array, wrenches: Any = None) -> Dynamics:
        """I*, P* and the loads at velocities w."""
        I, P = self.arrays(q)
        needed = self.effort(q, w, np.zeros(w.shape[-1]), wrenches)
        return Dynamics(I, P, quadratic(w, P, w) - needed)

    def linearize(
        self, q: Array, w: Array, tau: Array | None, options: Mapping[str, Any]
    ) -> tuple[StateSpace, Array]:
        """(the state-space model in w, the nominal ẇ); tau=None represents forces that give ẇ = 0."""
        plain = linearize(self.model, q, w, tau, **options)
        loads = options["wrenches"]
        return plain, np.zeros(w.shape) if tau is None else self.model.forward_dynamics(q, w, tau, wrenches=loads)


class IndependentSpace(JointSpace):
    """The independent coordinates of a model with loops."""

    def __init__(self, model: Model, independent: Sequence[str] | None = None) -> None:
        super().__init__(model)
        self.columns = list(model.constraints.indices(independent or model.constraints.independent))
        self.names = [self.names[k] for k in self.columns]

    def _joints(self, q: Array, order: int) -> Any:
        return self.model.constraints.joint_influence(q, order, self.names)

    def coefficients(self, q: Array, coordinates: CoordinateSet, order: int) -> list[Array]:
        found = self._joints(q, order)
        joints = [x for x in (found.G, found.H, found.D) if x is not None]
        return carried(coordinates.coefficients(self.model, q, order), joints)

    def joint_map(self, q: Array) -> Array:
        return self._joints(q, 1).G

    def velocity(self, q: Array, w: Array) -> Array:
        return self._joints(q, 1).velocity(w)

    def acceleration(self, q: Array, w: Array, w_dot: Array) -> Array:
        return self._joints(q, 2).acceleration(w, w_dot)

    def jerk(self, q: Array, w: Array, w_dot: Array, w_ddot: Array) -> Array:
        return self._joints(q, 3).jerk(w, w_dot, w_ddot)

    def mass_matrix(self, q: Array) -> Array:
        return self.model.mass_matrix(q, independent=self.names)

    def arrays(self, q: Array) -> tuple[Array, Array]:
        return self.model.coefficients.dynamic_arrays(q, independent=self.names)

    def effort(self, q: Array, w: Array, w_dot: Array, wrenches: Any = None) -> Array:
        joints = self._joints(q, 2)
        v, a = joints.velocity(w), joints.acceleration(w, w_dot)
        return apply(transposed(joints.G), self.model.tree.inverse_dynamics(q, v, a, wrenches=wrenches))

    def motion(self, q: Array, w: Array, effort: Array, wrenches: Any = None) -> Array:
        tau = np.zeros((*effort.shape[:-1], self.model.nv))
        tau[..., self.columns] = effort
        v = self.velocity(q, w)
        return self.model.forward_dynamics(q, v, tau, wrenches=wrenches)[..., self.columns]

    def linearize(
        self, q: Array, w: Array, tau: Array | None, options: Mapping[str, Any]
    ) -> tuple[StateSpace, Array]:
        v = self.velocity(q, w)
        plain = linearize(self.model, q, v, tau, independent=self.names, **options)
        if tau is None:
            return plain, np.zeros(w.shape)
        return plain, self.model.forward_dynamics(q, v, tau, wrenches=options["wrenches"])[..., self.columns]


def space_of(model: Model, independent: Sequence[str] | None = None) -> JointSpace:
    """The coordinates of a model: its joints', or the independent ones where it has loops."""
    if len(model.constraints):
        return IndependentSpace(model, independent)
    if independent is not None:
        raise InputError("independent coordinates are chosen in models with loops; this one has none")
    return JointSpace(model)


__all__ = ["IndependentSpace", "JointSpace", "space_of"]
