"""Controllers that are known to be functions of the state alone.

Error control keeps the steps of an adaptive method as short as what acts needs, if that changes with the state. A force
that may change with the time can be zero at every stage of a step: a mechanism at rest steps over its pulses, unless
something else bounds the steps (`events.longest_step`). Of users' functions nothing is known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polybody.simulation.controllers import kind_of


def _holds_frame(law: Any) -> bool:
    return law.motion.is_fixed and getattr(law, "force", None) is None


def _resolves(law: Any) -> bool:
    own = law.resolving
    return own.motion.is_fixed and (own.posture is None or own.rest is not None)


#: by the names of classes, of which those that are asked for are imported already
_STEADY: dict[str, Callable[[Any], bool]] = {
    "PD": lambda law: law.path is None,
    "GravityCompensation": lambda law: True,
    "Given": lambda law: law.table is not None and law.times is None,
    "Actuators": lambda law: law.constant is not None,
    "OperationalSpace": _holds_frame,
    "Impedance": _holds_frame,
    "HybridForcePosition": lambda law: _holds_frame(law) and law.fixed is not None,
    "ResolvedRate": _resolves,
    "ResolvedAcceleration": _resolves,
    "DisturbanceObserver": lambda law: is_steady(law.law),  # its estimate changes at instants, where steps end
}


def is_steady(controller: Any) -> bool:
    """Whether a controller is known not to depend on the time; a subclass of a user's is not."""
    known = _STEADY.get(kind_of(controller) or "")
    return known is not None and known(controller)


__all__ = ["is_steady"]
