"""Saha 1999: the decoupled natural orthogonal complement; recursive O(n) inverse and forward dynamics.

Departures from the paper: docs/theory/denoc.md.
"""

from polybody.formulations.denoc.articulated import forward_dynamics, inverse_mass_matrix, solve_mass_matrix, udu
from polybody.formulations.denoc.composite import coriolis_matrix, mass_matrix
from polybody.formulations.denoc.inverse import bias_forces, gravity_forces, inverse_dynamics, passive_forces
from polybody.formulations.denoc.matrices import denoc_matrices, generalized_mass

__all__ = [
    "bias_forces",
    "coriolis_matrix",
    "denoc_matrices",
    "forward_dynamics",
    "generalized_mass",
    "gravity_forces",
    "inverse_dynamics",
    "inverse_mass_matrix",
    "mass_matrix",
    "passive_forces",
    "solve_mass_matrix",
    "udu",
]
