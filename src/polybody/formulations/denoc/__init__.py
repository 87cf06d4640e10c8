"""Saha 1999: the decoupled natural orthogonal complement; recursive O(n) inverse and forward dynamics.

Departures from the paper: docs/theory/denoc.md.
"""

from polybody.formulations.denoc.articulated import forward_dynamics, solve_mass_matrix, udu
from polybody.formulations.denoc.composite import coriolis_matrix, mass_matrix
from polybody.formulations.denoc.derivatives import inverse_dynamics_derivatives
from polybody.formulations.denoc.elements import forward_dynamics_by_elements, solve_by_elements
from polybody.formulations.denoc.inverse import (
    bias_forces,
    gravity_forces,
    inverse_dynamics,
    joint_momentum,
    passive_forces,
)
from polybody.formulations.denoc.matrices import denoc_matrices, generalized_mass
from polybody.formulations.denoc.momentum import momentum_and_drift
from polybody.formulations.denoc.regressor import (
    body_parameters,
    changes_of_forces,
    energy_regressor,
    momentum_regressor,
    regressor,
)
from polybody.formulations.denoc.sparse_inverse import inverse_mass_matrix

__all__ = [
    "bias_forces",
    "body_parameters",
    "changes_of_forces",
    "coriolis_matrix",
    "denoc_matrices",
    "energy_regressor",
    "forward_dynamics",
    "forward_dynamics_by_elements",
    "generalized_mass",
    "gravity_forces",
    "inverse_dynamics",
    "inverse_dynamics_derivatives",
    "inverse_mass_matrix",
    "joint_momentum",
    "mass_matrix",
    "momentum_and_drift",
    "momentum_regressor",
    "passive_forces",
    "regressor",
    "solve_by_elements",
    "solve_mass_matrix",
    "udu",
]
