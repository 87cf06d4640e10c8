"""What each of the five formulations must answer, and the equation they share.

    M(q) a + C(q, v) v + g(q) = tau + passive(q, v) + Σ Jᵀ w

q is the configuration, v the velocity (quasi-velocities where a joint has them), a the time derivative of the numbers
in v. M includes armature and reflected rotors; `bias_forces` is C v + g; `passive` is what springs and dampers exert.
`wrenches` is None or an array (bodies, 6): the external wrench [moment; force] on each body, in world axes, at the
origin of the body's frame. Every function takes one state, over any scalar domain; batches are the work of kernels
and of the façade.
"""

from __future__ import annotations

from importlib import import_module
from typing import Protocol, runtime_checkable

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.errors import InputError
from polybody.mechanism.mechanism import Mechanism
from polybody.names import nearest


@runtime_checkable
class Formulation(Protocol):
    """The module-level functions of a formulation."""

    def inverse_dynamics(
        self, mechanism: Mechanism, q: Array, v: Array, a: Array, wrenches: Array | None = None, *,
        domain: Domain = FLOAT,
    ) -> Array:
        """tau (nv,) that gives the accelerations `a` under gravity, passive forces and `wrenches` (frames, 6)."""
        ...

    def forward_dynamics(
        self, mechanism: Mechanism, q: Array, v: Array, tau: Array, wrenches: Array | None = None, *,
        domain: Domain = FLOAT,
    ) -> Array:
        """Accelerations a (nv,) under the joint forces `tau`, gravity, passive forces and `wrenches` (frames, 6)."""
        ...

    def mass_matrix(self, mechanism: Mechanism, q: Array, *, domain: Domain = FLOAT) -> Array:
        """M (nv, nv), with armature and reflected rotors."""
        ...

    def bias_forces(self, mechanism: Mechanism, q: Array, v: Array, *, domain: Domain = FLOAT) -> Array:
        """C v + gravity_forces, (nv,)."""
        ...


#: In the order of the papers' years.
NAMES = ("influence", "network", "poincare", "denoc", "operators")


def formulations() -> tuple[str, ...]:
    """The names of the formulations, in the order of their papers."""
    return NAMES


def formulation(name: str) -> Formulation:
    """The formulation of that name."""
    if name not in NAMES:
        raise InputError(f"no formulation {name!r}{nearest(str(name), NAMES)}; available: {', '.join(NAMES)}")
    return import_module(f"polybody.formulations.{name}")  # type: ignore[return-value]


__all__ = ["NAMES", "Formulation", "formulation", "formulations"]
