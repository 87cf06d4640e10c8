"""A tree's joint-space dynamics from the fewest numbers, for laws that compute forces from them.

The field of a run is read from `reduction.reduced`: a law that reads M, C v + g or inverse dynamics from it, too, has
most of its operations in common with the field, and they are computed once. Poses, Jacobians of frames and the Coriolis
matrix are not to be read from it: origins of its bodies are others, and their inertias are no bodies'.
"""

from __future__ import annotations

from polybody.mechanism.mechanism import Mechanism
from polybody.mechanism.reduction import reduced

KEPT = 8
_known: list[tuple[Mechanism, Mechanism]] = []  # those asked for last: a text is read several times


def joint_space(m: Mechanism) -> Mechanism:
    """The mechanism with the same joint-space dynamics; springs between bodies need their own frames."""
    if m.sprung:
        return m
    for given, found in _known:
        if given is m:
            return found
    found = reduced(m)
    _known[:] = [(m, found), *_known[: KEPT - 1]]
    return found


__all__ = ["joint_space"]
