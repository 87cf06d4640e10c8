"""Simulation: the motion of a model from a first state, on its manifold, with its energy audit."""

from __future__ import annotations

from polybody.simulation.audit import Audit
from polybody.simulation.events import Event, Happening
from polybody.simulation.failures import ControllerError, SimulationError
from polybody.simulation.integrators import METHODS
from polybody.simulation.start import simulate
from polybody.simulation.trajectory import Trajectory

__all__ = [
    "METHODS",
    "Audit",
    "ControllerError",
    "Event",
    "Happening",
    "SimulationError",
    "Trajectory",
    "simulate",
]
