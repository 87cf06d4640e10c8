"""Physically consistent estimates: every body's pseudo-inertia is positive definite.

    J = [Σ h; hᵀ m] ≻ 0,      Σ = ½ tr(I) 1 − I,       I = tr(Σ) 1 − Σ

is equivalent to a mass distribution that can exist: positive mass, inertia about the mass centre positive definite
and within the triangle inequalities (Traversaro et al. 2016; Wensing, Kim & Slotine 2018). So every body has kinetic
energy, and the mass matrix is positive definite at every configuration. Of all such parameters the semidefinite
programme takes

    min ‖R x − z‖²/s² + λ Σ ‖(p − p_0)/scale‖²,     x = K p,   J_i ⪰ ε,   viscous, Coulomb, Stribeck, armature, load ≥ 0

with R, z of the least-squares fit and s² its weighted residual: the data decide what they show, and the prior p_0 (the
model's own parameters: CAD values) only what they do not.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polybody.identification.joint_terms import POSITIVE
from polybody.identification.least_squares import Fit
from polybody.identification.semidefinite import solve, units

Array = np.ndarray
#: smallest eigenvalue of J in units of the body's scale
MARGIN = 1e-5


def _typical_mass(fit: Fit, K: Array, nominal: Array, length: float) -> float:
    """The size of masses: the model's own; where it has none, or far smaller ones than the data need, that of the data.

    A prior in units of masses that are next to nothing would outweigh every measurement.
    """
    own, n = float(np.mean(np.abs(nominal[:, 0]))), nominal.size
    scale = np.ones(K.shape[1])
    scale[:n] = np.tile(units(1.0, length), len(nominal))
    x = np.linalg.lstsq(fit.R, fit.z, rcond=None)[0]
    needed = float(np.abs(np.linalg.lstsq(K * scale, x, rcond=None)[0][:n]).max(initial=0.0))
    return max(own if own > 0.01 * needed else needed, 1e-6)


def consistent_parameters(
    fit: Fit, K: Array, names: Sequence[str], prior: Array, bodies: int, length: float, weight: float
) -> Array:
    """All parameters p (of bodies, then of joints): the consistent ones nearest to the data, then to the prior."""
    n = 10 * bodies
    nominal = np.reshape(prior[:n], (bodies, 10))
    mass = _typical_mass(fit, K, nominal, length)
    misfit = max(fit.residual, 1e-9 * float(fit.z @ fit.z))
    seen = fit.R @ K / np.sqrt(misfit)
    sizes = np.linalg.norm(seen[:, n:], axis=0)  # a joint's coefficient in units in which it matters as much as others
    sizes = np.where(sizes > 0, sizes, 1.0) / max(1.0, float(sizes.max(initial=0.0)))
    scale = np.concatenate([np.tile(units(mass, length), bodies), 1 / sizes])
    bounded = [k for k in range(n, len(names)) if names[k].rpartition(".")[2] in POSITIVE]
    weights, centre = np.zeros(len(names)), np.zeros(len(names))
    weights[:n], centre[:n] = weight, prior[:n] / scale[:n]
    z = fit.z / np.sqrt(misfit)
    found = scale * solve(seen * scale, z, range(0, n, 10), MARGIN, bounded, weights, centre)
    for k in bounded:  # the solver meets bounds to its own tolerance only
        if found[k] < 1e-7 * abs(found[n:]).max():
            found[k] = 0.0
    return found


__all__ = ["consistent_parameters"]
