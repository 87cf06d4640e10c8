"""What analyses ask of a model. `Model` answers all of it; this layer lies below the façade and states its needs."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from polybody.mechanism.mechanism import BodyFrame, Mechanism

Array = np.ndarray


class Answering(Protocol):
    """The answers of a model that analyses use, all over leading batch dimensions."""

    mechanism: Mechanism

    @property
    def independent_columns(self) -> tuple[int, ...]: ...
    def kernel(self, quantity: Any) -> Any: ...
    def frame(self, name: str) -> BodyFrame: ...
    def pose(self, q: Any, frame: str) -> Array: ...
    def jacobian(self, q: Any, frame: str, axes: str = "world") -> Array: ...
    def mass_matrix(self, q: Any) -> Array: ...
    def inverse_dynamics(self, q: Any, v: Any, a: Any) -> Array: ...
    def forward_dynamics(self, q: Any, v: Any, tau: Any) -> Array: ...
    def inverse_dynamics_derivatives(self, q: Any, v: Any, a: Any) -> tuple[Array, Array, Array]: ...
    def forward_dynamics_derivatives(self, q: Any, v: Any, tau: Any) -> tuple[Array, Array, Array]: ...


class Shaped(Answering, Protocol):
    """The answers about configurations, beside the others."""

    def neutral(self) -> Array: ...
    def random_configuration(self, rng: Any = None, size: Any = None) -> Array: ...
    def integrate(self, q: Any, v: Any, dt: Any = 1.0) -> Array: ...


def velocity_names(mechanism: Mechanism) -> list[str]:
    """A name for each number of v: the joint's, with _0, _1, … where it has several."""
    names = []
    for joint in mechanism.independent_joints:
        names += [joint.name] if joint.nv == 1 else [f"{joint.name}_{k}" for k in range(joint.nv)]
    return names


def actuated(mechanism: Mechanism) -> Array:
    """Indices of the velocities that are active: those of a joint or of one that follows it."""
    flags = [joint.active for joint in mechanism.independent_joints]
    return np.flatnonzero(np.concatenate(flags)) if flags else np.zeros(0, dtype=int)


__all__ = ["Answering", "Shaped", "actuated", "velocity_names"]
