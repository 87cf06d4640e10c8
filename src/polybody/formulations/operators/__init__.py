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
from polybody.formulations.operators.named import Coefficients, coefficients
from polybody.formulations.operators.split import Split, active_mask, split
from polybody.formulations.operators.structure import Pieces, Stack, Structure, pieces, structure
from polybody.formulations.operators.table_one import HeldMotion, table_one

__all__ = [
    "Coefficients",
    "HeldMotion",
    "Pieces",
    "Split",
    "Stack",
    "Structure",
    "active_mask",
    "bias_forces",
    "coefficients",
    "forward_dynamics",
    "hybrid_dynamics",
    "inverse_dynamics",
    "mass_matrix",
    "pieces",
    "split",
    "structure",
    "table_one",
]
