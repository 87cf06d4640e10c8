"""What the numbers of `Performance.summary` and `Workspace.summary` are called in reports, with their units."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

#: key of a summary: (name, unit). Radii are per unit of the actuators: rad/s and N m, or m/s and N.
LABELS = {
    "rows": ("rows", ""),
    "q": ("configuration q", "rad, m"),
    "position": ("position of the frame", "m"),
    "manipulability": ("manipulability, product of velocity radii", ""),
    "condition": ("condition number", ""),
    "isotropy": ("isotropy, geometric over arithmetic mean of velocity radii", ""),
    "least": ("least velocity radius", "m/s"),
    "greatest": ("greatest velocity radius", "m/s"),
    "regularity": ("regularity of the actuators, 0 where they are singular", ""),
    "closure": ("regularity of the loops, 0 where they are singular", ""),
    "velocity_radii": ("velocity radii per unit rates of the actuators", "m/s"),
    "force_radii": ("force radii per unit forces of the actuators", "N"),
    "acceleration_radii": ("acceleration radii per unit forces of the actuators", "m/s²"),
    "dynamic_manipulability": ("dynamic manipulability, product of acceleration radii", ""),
    "fall": ("acceleration without actuator forces", "m/s²"),
    "effective_masses": ("effective masses along principal axes", "kg"),
    "configurations": ("configurations", ""),
    "reachable": ("reachable", ""),
    "singular": ("near singular", ""),
    "lowest": ("lowest corner", "m"),
    "highest": ("highest corner", "m"),
    "conditioning_index": ("conditioning index, mean of 1/condition", ""),
    "least_condition": ("least condition number", ""),
    "best_configuration": ("configuration of least condition", "rad, m"),
    "largest_manipulability": ("largest manipulability", ""),
    "payload_at_rest": ("largest payload at rest here", "kg"),
    "push_down": ("largest push down at rest here", "N"),
    "payload_along_motion": ("largest payload along the motion", "kg"),
    "against_forces": ("principal stiffness against forces", "N/m"),
    "free_motions": ("motions that nothing holds, so that there is no stiffness", ""),
    "frequencies": ("natural frequencies", "Hz"),
}
#: what has the units of the rows: none where rotations and translations mix
OF_ROWS = ("velocity_radii", "force_radii", "acceleration_radii", "least", "greatest", "fall", "effective_masses")


def labelled(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(name with unit, value as text) of a summary's numbers; keys without a label are written as they are."""
    mixed = any(str(row).startswith("r") for row in summary.get("rows", ()))
    rows = []
    for key, value in summary.items():
        name, unit = LABELS.get(key, (key.replace("_", " "), ""))
        if mixed and key in OF_ROWS:
            unit = ""
        rows.append((f"{name} [{unit}]" if unit else name, short(value)))
    return rows


def short(value: Any) -> str:
    """A number, several, or words, as text of a few digits."""
    if isinstance(value, np.ndarray | list | tuple):
        return ", ".join(short(x) for x in (value.ravel() if isinstance(value, np.ndarray) else value))
    return f"{value:.5g}" if isinstance(value, float | np.floating) else str(value)


__all__ = ["LABELS", "labelled", "short"]
