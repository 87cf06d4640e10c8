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

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from polybody.errors import InputError, PolybodyError, warn
from polybody.formulations.denoc.regressor import ENTRIES
from polybody.identification.joint_terms import POSITIVE
from polybody.identification.least_squares import Fit

Array = np.ndarray
#: smallest eigenvalue of J in units of the body's scale
MARGIN = 1e-5


def pseudo_inertia(p: Array) -> Array:
    """J (..., 4, 4) of ten parameters (..., 10)."""
    inertia = np.zeros((*p.shape[:-1], 3, 3))
    for k, (r, c) in enumerate(ENTRIES):
        inertia[..., r, c] = inertia[..., c, r] = p[..., 4 + k]
    J = np.zeros((*p.shape[:-1], 4, 4))
    half = np.trace(inertia, axis1=-2, axis2=-1)[..., None, None] / 2
    J[..., :3, :3] = half * np.eye(3) - inertia
    J[..., :3, 3] = J[..., 3, :3] = p[..., 1:4]
    J[..., 3, 3] = p[..., 0]
    return J


def is_consistent(p: Array) -> bool:
    """True where every body (10 numbers each) has a positive definite pseudo-inertia."""
    return bool(np.all(np.linalg.eigvalsh(pseudo_inertia(np.reshape(p, (-1, 10)))) > 0))


def parameters_of(J: Any, length: float) -> list[Any]:
    """The ten parameters as expressions of J in units of `length`."""
    trace = J[0, 0] + J[1, 1] + J[2, 2]
    inertia = [(trace - J[r, r] if r == c else -J[r, c]) * length**2 for r, c in ENTRIES]
    return [J[3, 3], J[0, 3] * length, J[1, 3] * length, J[2, 3] * length, *inertia]


def _typical_mass(fit: Fit, K: Array, nominal: Array, length: float) -> float:
    """The size of masses: the model's own; where it has none, or far smaller ones than the data need, that of the data.

    A prior in units of masses that are next to nothing would outweigh every measurement.
    """
    own, n = float(np.mean(np.abs(nominal[:, 0]))), nominal.size
    units = np.ones(K.shape[1])
    units[:n] = np.tile([1.0] + [length] * 3 + [length**2] * 6, len(nominal))
    x = np.linalg.lstsq(fit.R, fit.z, rcond=None)[0]
    needed = float(np.abs(np.linalg.lstsq(K * units, x, rcond=None)[0][:n]).max(initial=0.0))
    return max(own if own > 0.01 * needed else needed, 1e-6)


def consistent_parameters(
    fit: Fit, K: Array, names: Sequence[str], prior: Array, bodies: int, length: float, weight: float
) -> Array:
    """All parameters p (of bodies, then of joints): the consistent ones nearest to the data, then to the prior."""
    try:
        import cvxpy as cp
    except ImportError:
        raise InputError("physically consistent estimates need cvxpy: pip install 'polybody[identify]'") from None
    n = 10 * bodies
    nominal = np.reshape(prior[:n], (bodies, 10))
    mass = _typical_mass(fit, K, nominal, length)
    matrices = [cp.Variable((4, 4), PSD=True) for _ in range(bodies)]  # in units of `mass`
    misfit = max(fit.residual, 1e-9 * float(fit.z @ fit.z))
    seen = fit.R @ K / np.sqrt(misfit)
    sizes = np.linalg.norm(seen[:, n:], axis=0)  # a joint's coefficient in units in which it matters as much as others
    sizes = np.where(sizes > 0, sizes, 1.0) / max(1.0, float(sizes.max(initial=0.0)))
    joints = cp.Variable(len(names) - n)
    p = cp.hstack([*(mass * x for J in matrices for x in parameters_of(J, length)), cp.multiply(1 / sizes, joints)])
    scale = np.tile([mass] + [mass * length] * 3 + [mass * length**2] * 6, bodies)
    cost = cp.sum_squares(seen @ p - fit.z / np.sqrt(misfit))
    cost = cost + weight * cp.sum_squares(cp.multiply(1 / scale, p[:n] - prior[:n]))
    limits: list[Any] = [J >> MARGIN * np.eye(4) for J in matrices]
    limits += [joints[k - n] >= 0 for k in range(n, len(names)) if names[k].rpartition(".")[2] in POSITIVE]
    programme = cp.Problem(cp.Minimize(cost), limits)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # cvxpy's of a reduced accuracy, which is reported below
        programme.solve(solver=cp.CLARABEL)
    if p.value is None:
        raise PolybodyError(f"the semidefinite programme has no solution: {programme.status}")
    if programme.status != cp.OPTIMAL:
        warn("consistent estimates were found to the solver's reduced accuracy only, some five digits")
    found = np.asarray(p.value, dtype=float)
    for k in range(n, len(names)):  # the solver meets bounds to its own tolerance only
        if names[k].rpartition(".")[2] in POSITIVE and found[k] < 1e-7 * abs(found[n:]).max():
            found[k] = 0.0
    return found


__all__ = ["consistent_parameters", "is_consistent", "parameters_of", "pseudo_inertia"]
