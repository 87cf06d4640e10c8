"""Inverse and forward dynamics from the arrays.

    tau = I* φ̈ + φ̇ᵀP*φ̇ − T^L                                                                            (2-198)
    φ̈   = I*⁻¹ (tau − φ̇ᵀP*φ̇ + T^L)                                                                      (2-199)
"""

from __future__ import annotations

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.formulations.influence.arrays import generalized_load, gravity_load, inertia_matrix, inertia_power
from polybody.formulations.influence.coefficients import configured
from polybody.formulations.influence.products import quadratic
from polybody.mechanism.mechanism import Mechanism


def inverse_dynamics(
    mechanism: Mechanism, q: Array, v: Array, a: Array, wrenches: Array | None = None, *, domain: Domain = FLOAT
) -> Array:
    """tau by (2-198)."""
    at = configured(mechanism, q, domain=domain)
    load = generalized_load(at, q, v, wrenches)
    return inertia_matrix(at) @ a + quadratic(v, inertia_power(at), v) - load


def forward_dynamics(
    mechanism: Mechanism, q: Array, v: Array, tau: Array, wrenches: Array | None = None, *, domain: Domain = FLOAT
) -> Array:
    """The accelerations by (2-199)."""
    at = configured(mechanism, q, domain=domain)
    load = generalized_load(at, q, v, wrenches)
    return domain.solve(inertia_matrix(at), tau - quadratic(v, inertia_power(at), v) + load)


def mass_matrix(mechanism: Mechanism, q: Array, *, domain: Domain = FLOAT) -> Array:
    """I* by (2-196)."""
    return inertia_matrix(configured(mechanism, q, domain=domain))


def bias_forces(mechanism: Mechanism, q: Array, v: Array, *, domain: Domain = FLOAT) -> Array:
    """φ̇ᵀP*φ̇ less the load of gravity."""
    at = configured(mechanism, q, domain=domain)
    return quadratic(v, inertia_power(at), v) - gravity_load(at)


__all__ = ["bias_forces", "forward_dynamics", "inverse_dynamics", "mass_matrix"]
