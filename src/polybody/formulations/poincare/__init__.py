"""Kwatny & Blankenship 1995: Poincaré's equations in quasi-velocities, for any tree.

Departures from the paper: docs/theory/poincare.md.
"""

from polybody.formulations.poincare.chain import (
    JointState,
    joint_states,
    mass_matrix,
    moved_states,
    quasi_momentum,
    rigid_mass_matrix,
)
from polybody.formulations.poincare.equations import (
    assembled_poincare_matrix,
    bias_forces,
    forward_dynamics,
    gravity_potential,
    inverse_dynamics,
    momentum_slopes,
    poincare_matrix,
    potential_forces,
)
from polybody.formulations.poincare.fields import (
    field_brackets,
    joint_structure_constants,
    kinematic_matrix,
    structure_constants,
)

__all__ = [
    "JointState",
    "assembled_poincare_matrix",
    "bias_forces",
    "field_brackets",
    "forward_dynamics",
    "gravity_potential",
    "inverse_dynamics",
    "joint_states",
    "joint_structure_constants",
    "kinematic_matrix",
    "mass_matrix",
    "momentum_slopes",
    "moved_states",
    "poincare_matrix",
    "potential_forces",
    "quasi_momentum",
    "rigid_mass_matrix",
    "structure_constants",
]
