"""Controllers: tau = controller(t, q, v). Any function will do; these are the usual ones, one file each.

Those that measure at instants of their own (`sampling`) have `next_sample` and `sample`; a run calls them there.

Each is imported when it is first used: a run without a controller needs none of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polybody.simulation.controllers.actuators import Actuators
    from polybody.simulation.controllers.adaptive import Adaptive
    from polybody.simulation.controllers.admittance import Admittance
    from polybody.simulation.controllers.computed_torque import ComputedTorque
    from polybody.simulation.controllers.disturbance_observer import DisturbanceObserver
    from polybody.simulation.controllers.feedback_linearisation import FeedbackLinearisation
    from polybody.simulation.controllers.given import Given, zero
    from polybody.simulation.controllers.gravity import GravityCompensation
    from polybody.simulation.controllers.hybrid import HybridForcePosition
    from polybody.simulation.controllers.impedance import Impedance
    from polybody.simulation.controllers.operational_space import OperationalSpace
    from polybody.simulation.controllers.pd import PD
    from polybody.simulation.controllers.resolved import ResolvedAcceleration, ResolvedRate
    from polybody.simulation.controllers.sampling import Noisy, Quantised, Sampled, Sampling
    from polybody.simulation.controllers.stateful import Stateful

#: the module of each
_WHERE = {
    "Actuators": "actuators",
    "Adaptive": "adaptive",
    "Admittance": "admittance",
    "ComputedTorque": "computed_torque",
    "DisturbanceObserver": "disturbance_observer",
    "FeedbackLinearisation": "feedback_linearisation",
    "Given": "given",
    "zero": "given",
    "GravityCompensation": "gravity",
    "HybridForcePosition": "hybrid",
    "Impedance": "impedance",
    "OperationalSpace": "operational_space",
    "PD": "pd",
    "ResolvedAcceleration": "resolved",
    "ResolvedRate": "resolved",
    "Noisy": "sampling",
    "Quantised": "sampling",
    "Sampled": "sampling",
    "Sampling": "sampling",
    "Stateful": "stateful",
}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found = getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
    return found


def kinds_of(controller: Any) -> list[str]:
    """The names of its class and of those that it derives from, where they are of this folder.

    Who asks so imports no class that the controller cannot be of.
    """
    return [kind.__name__ for kind in type(controller).__mro__ if _is_own(kind)]


def kind_of(controller: Any) -> str | None:
    """The name of its class, where that is of this folder."""
    return type(controller).__name__ if _is_own(type(controller)) else None


def _is_own(kind: type) -> bool:
    return kind.__module__ == f"{__name__}.{_WHERE.get(kind.__name__)}"


__all__ = [
    "PD",
    "Actuators",
    "Adaptive",
    "Admittance",
    "ComputedTorque",
    "DisturbanceObserver",
    "FeedbackLinearisation",
    "Given",
    "GravityCompensation",
    "HybridForcePosition",
    "Impedance",
    "Noisy",
    "OperationalSpace",
    "Quantised",
    "ResolvedAcceleration",
    "ResolvedRate",
    "Sampled",
    "Sampling",
    "Stateful",
    "zero",
]
