"""How large closed formulas will be, before any is computed.

Inwards along the tree an inertia passes each joint by RIRᵀ: a turning joint multiplies the number of terms by the
number of harmonics its angle can have (1, cos θ, sin θ, cos 2θ, sin 2θ: five in general position, of which half
remain for the right angles of real robots), siblings add. The estimate counts terms of 𝓜 and of 𝓒p. It is right
within a factor of some twenty: enough to distinguish what takes seconds from what would take hours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polybody.mechanism.joints import MapJoint
from polybody.mechanism.mechanism import GROUND, Mechanism

#: Above this many terms a closed form serves nobody and takes minutes or more.
LARGEST = 50_000
#: What a turning joint multiplies terms by: about a coordinate axis amid right angles, and in general position.
ALIGNED, GENERAL = 2.5, 5.0
#: Characters of a typical term when printed.
CHARACTERS = 25


@dataclass(frozen=True)
class Estimate:
    """The terms of 𝓜 and 𝓒p, and of their characters in print."""

    terms: int
    characters: int

    @property
    def too_large(self) -> bool:
        return self.terms > LARGEST


def estimated_size(mechanism: Mechanism, charts: list[MapJoint], symbols: int) -> Estimate:
    """The estimate for a mechanism whose bodies carry `symbols` symbols in all."""
    count = len(mechanism.joints)
    own = 1 + symbols / max(count, 1) / 2
    inside = np.zeros(count)  # terms of the composite inertia in the body's own frame
    crossing = np.zeros(count)  # factor of going from a body's frame to its parent's
    for joint in reversed(mechanism.joints):
        i = joint.index
        inside[i] += own
        crossing[i] = _growth(mechanism, joint.index, charts[i])
        if joint.parent != GROUND:
            inside[joint.parent] += crossing[i] * inside[i]
    terms = 0.0
    for joint in mechanism.joints:
        width, along, k = joint.nv, inside[joint.index] * joint.nv, joint.index
        pair = along
        while k != GROUND:  # the row of 𝓜 towards the ground, two more harmonics a joint
            terms += pair * mechanism.joints[k].nv
            pair *= np.sqrt(crossing[k])
            k = mechanism.joints[k].parent
        terms += width
    total = terms * (1 + min(mechanism.nv, 8))
    return Estimate(int(total), int(total * CHARACTERS))


def _growth(mechanism: Mechanism, index: int, chart: MapJoint) -> float:
    """How many terms one term becomes: placements by right angles keep axis-aligned joints sparse."""
    joint, growth = mechanism.joints[index], 1.0
    aligned = np.count_nonzero(np.abs(joint.rotation) > 1e-12) == 3
    for k in range(chart.nv):
        axis = chart.map.H[:3, k]
        if np.any(axis):
            plain = np.count_nonzero(axis) == 1 and aligned
            growth *= ALIGNED if plain else GENERAL
    return growth * growth if joint.reversed and chart.nv > 1 else growth  # its joint map turns with it too


__all__ = ["LARGEST", "Estimate", "estimated_size"]
