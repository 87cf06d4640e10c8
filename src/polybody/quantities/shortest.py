"""Of two texts with one meaning, the one that takes fewer operations for a concrete mechanism.

A mechanism's zeros decide: forward dynamics of a general 6R arm is shorter from the elements of its inertia matrix,
that of a Stanford arm by articulated bodies. Only traced readings ask, and only of mechanisms with few velocities,
where the elements can win at all.
"""

from __future__ import annotations

from polybody.algebra.domains import Array, Domain, GraphDomain
from polybody.algebra.graph import distinct
from polybody.formulations import denoc
from polybody.mechanism.mechanism import Mechanism

#: velocities beyond which elimination from elements takes more operations, in general position
ELEMENTS_UP_TO = 10


def forward_dynamics(
    m: Mechanism, q: Array, v: Array, tau: Array, wrenches: Array | None = None, *, domain: Domain
) -> Array:
    """a: by articulated bodies, or from the elements of the inertia matrix where that is shorter."""
    found = denoc.forward_dynamics(m, q, v, tau, wrenches, domain=domain)
    if not isinstance(domain, GraphDomain) or not 2 <= m.nv <= ELEMENTS_UP_TO:
        return found
    return shorter(found, denoc.forward_dynamics_by_elements(m, q, v, tau, wrenches, domain=domain))


def solve_mass_matrix(m: Mechanism, q: Array, force: Array, *, domain: Domain) -> Array:
    """M⁻¹ force, likewise."""
    found = denoc.solve_mass_matrix(m, q, force, domain=domain)
    if not isinstance(domain, GraphDomain) or not 2 <= m.nv <= ELEMENTS_UP_TO:
        return found
    return shorter(found, denoc.solve_by_elements(m, q, force, domain=domain))


def shorter(one: Array, other: Array) -> Array:
    """The array whose expressions take fewer operations; the first of equals."""
    return other if distinct(other.ravel()) < distinct(one.ravel()) else one


__all__ = ["ELEMENTS_UP_TO", "forward_dynamics", "shorter", "solve_mass_matrix"]
