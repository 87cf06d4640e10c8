"""What of a description acts besides masses and joints, in words: `polybody check` prints it."""

from __future__ import annotations

import numpy as np

from polybody.description.records import Description
from polybody.names import listed


def modelled(d: Description) -> list[str]:
    """One line for each kind of force, limit and constraint on velocities, with names."""
    joints = [*d.joints, *d.loops]

    def having(key: str) -> list[str]:
        return [j.name for j in d.joints if j.limits is not None and _bounded(getattr(j.limits, key))]

    found = {
        "friction (smooth in kernels, sticking in runs)": [j.name for j in joints if j.friction is not None],
        "effort limits (bound controllers in runs)": having("effort"),
        "velocity limits (bound drives in runs)": having("velocity"),
        "power limits (bound drives in runs)": having("power"),
        "compliant stops": [j.name for j in joints if j.limits is not None and j.limits.stiffness is not None],
        "actuators (by pb.controllers.Actuators)": [a.name for a in d.actuators],
        "contact with the ground": [c.name for c in d.contacts],
        "rolling and blades": [r.name for r in d.rolling],
        "velocity relations": [r.name for r in d.velocity_relations],
    }
    return [f"{what}: {listed(names)}" for what, names in found.items() if names]


def _bounded(values: object) -> bool:
    return values is not None and bool(np.any(np.isfinite(np.asarray(values)) & (np.asarray(values) > 0)))


__all__ = ["modelled"]
