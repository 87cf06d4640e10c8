"""Tokad 1992: mechanisms as networks of multi-port components.

Departures from the paper: docs/theory/network.md.
"""

from polybody.formulations.network.reactions import reactions
from polybody.formulations.network.recursion import bias_forces, forward_dynamics, inverse_dynamics, mass_matrix

__all__ = ["bias_forces", "forward_dynamics", "inverse_dynamics", "mass_matrix", "reactions"]
