"""What can end a simulation early, and what is kept of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from polybody.errors import PolybodyError

if TYPE_CHECKING:
    from polybody.simulation.trajectory import Trajectory


class NotCompiled(Exception):
    """Why something runs in Python."""


class SimulationError(PolybodyError):
    """A simulation that cannot continue.

    `time` is where it failed, `trajectory` the states computed before (None if there are none).
    """

    def __init__(self, message: str, time: float | None = None) -> None:
        super().__init__(message)
        self.time = time
        self.trajectory: Trajectory | None = None


class ControllerError(SimulationError):
    """The controller raised, or returned something that is not joint forces. Its own error is the cause."""


class UserFunctionError(SimulationError):
    """A wrench, an event, its action, or the progress function raised or returned something useless; see its cause."""


def call_user(what: str, t: float, function: Callable[..., Any], *arguments: Any) -> Any:
    """function(*arguments); what it raises becomes an error that says who raised it, and when."""
    try:
        return function(*arguments)
    except SimulationError:
        raise
    except Exception as error:
        kind = ControllerError if what == "the controller" else UserFunctionError
        raise kind(f"{what} raised {type(error).__name__} at t = {t:.9g} s: {error}", t) from error


class BlowUp(Exception):
    """An integrator cannot go on from its last state: steps too small, numbers not finite, equations unsolved."""


__all__ = ["BlowUp", "ControllerError", "NotCompiled", "SimulationError", "UserFunctionError", "call_user"]
