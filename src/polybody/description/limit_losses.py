"""What of a joint's limits robot files (URDF, MJCF) cannot express."""

from __future__ import annotations

import numpy as np

from polybody.description.records import Joint


def limit_losses(joint: Joint) -> dict[str, str]:
    """{what: how it is named} of the limits' power, and of stops that yield."""
    limits, found = joint.limits, {}
    if limits is None:
        return {}
    if limits.power is not None and np.isfinite(limits.power).any():
        found["power"] = "its power limit"
    if any(x is not None and np.any(x) for x in (limits.stiffness, limits.damping)):
        found["stops"] = "stiffness and damping of its stops"
    return found


__all__ = ["limit_losses"]
