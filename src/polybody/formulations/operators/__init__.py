"""Swain & Morris 2003: spatial operators, active and passive columns, any base.

Departures from the paper: docs/theory/operators.md.
"""

from polybody.formulations.operators.hybrid import (
    bias_forces,
    forward_dynamics,
    hybrid_dynamics,
    inverse_dynamics,
    mass_matrix,
)

__all__ = ["bias_forces", "forward_dynamics", "hybrid_dynamics", "inverse_dynamics", "mass_matrix"]
