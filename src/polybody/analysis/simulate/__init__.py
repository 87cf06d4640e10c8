"""Simulation: the motion of a model from a first state, on its manifold, with its balance sheet."""

from __future__ import annotations

from polybody.analysis.simulate.audit import Audit
from polybody.analysis.simulate.events import Event, Happening
from polybody.analysis.simulate.failures import ControllerError, SimulationError
from polybody.analysis.simulate.integrators import METHODS
from polybody.analysis.simulate.run import simulate
from polybody.analysis.simulate.trajectory import Trajectory

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
