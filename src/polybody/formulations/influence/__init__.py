"""Freeman 1985: influence coefficients of any order, and the dynamic model as arrays.

Departures from the paper: docs/theory/influence.md.
"""

from polybody.formulations.influence.arrays import dynamic_arrays, generalized_load
from polybody.formulations.influence.batched import arrays_of_composites, composites, pair_loads
from polybody.formulations.influence.coefficients import (
    Influence,
    center_columns,
    center_influence,
    column_influence,
    configured,
    influence,
)
from polybody.formulations.influence.dynamics import bias_forces, forward_dynamics, inverse_dynamics, mass_matrix
from polybody.formulations.influence.incidence import structure_constants
from polybody.formulations.influence.linear import inverse_dynamics_derivatives
from polybody.formulations.influence.products import cross_product, quadratic, scalar_product, two_sided

__all__ = [
    "Influence",
    "arrays_of_composites",
    "bias_forces",
    "center_columns",
    "center_influence",
    "column_influence",
    "composites",
    "configured",
    "cross_product",
    "dynamic_arrays",
    "forward_dynamics",
    "generalized_load",
    "influence",
    "inverse_dynamics",
    "inverse_dynamics_derivatives",
    "mass_matrix",
    "pair_loads",
    "quadratic",
    "scalar_product",
    "structure_constants",
    "two_sided",
]
