"""Tokad 1992: mechanisms as networks of multi-port components.

Departures from the paper: docs/theory/network.md.
"""

from polybody.formulations.network.batched import forward_accelerations
from polybody.formulations.network.closed import ClosedForm
from polybody.formulations.network.convert import network_of
from polybody.formulations.network.graph import SystemGraph
from polybody.formulations.network.multiport import HybridMultiport, Multiport
from polybody.formulations.network.network import Network
from polybody.formulations.network.reactions import reactions
from polybody.formulations.network.recursion import bias_forces, forward_dynamics, inverse_dynamics, mass_matrix
from polybody.formulations.network.solution import Solution
from polybody.formulations.network.terminals import ActivePort, TerminalForm, active_port, terminal_form

__all__ = [
    "ActivePort",
    "ClosedForm",
    "HybridMultiport",
    "Multiport",
    "Network",
    "Solution",
    "SystemGraph",
    "TerminalForm",
    "active_port",
    "bias_forces",
    "forward_accelerations",
    "forward_dynamics",
    "inverse_dynamics",
    "mass_matrix",
    "network_of",
    "reactions",
    "terminal_form",
]
