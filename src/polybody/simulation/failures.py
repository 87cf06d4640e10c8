"""What can end a simulation early, and what is kept of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polybody.errors import PolybodyError

if TYPE_CHECKING:
    from polybody.simulation.trajectory import Trajectory


class SimulationError(PolybodyError):
    """A run that cannot go on. `time` is where, `trajectory` what was computed before (None if nothing was)."""

    def __init__(self, message: str, time: float | None = None) -> None:
        super().__init__(message)
        self.time = time
        self.trajectory: Trajectory | None = None


class ControllerError(SimulationError):
    """The controller raised, or returned something that is not joint forces. Its own error is the cause."""


class BlowUp(Exception):
    """An integrator cannot go on from its last state: steps too small, numbers not finite, equations unsolved."""


__all__ = ["BlowUp", "ControllerError", "SimulationError"]
