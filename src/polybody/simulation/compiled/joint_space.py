"""A tree's joint-space dynamics from the fewest numbers, for laws that compute forces from them.

The field of a run is read from `reduction.reduced`: a law that reads M, C v + g or inverse dynamics from it, too, has
most of its operations in common with the field, and they are computed once. Poses, Jacobians of frames and the Coriolis
matrix are not to be read from it: origins of its bodies are others, and their inertias are no bodies'.
"""

from __future__ import annotations

from dataclasses import fields, replace

from polybody.mechanism.mechanism import Mechanism, TreeJoint
from polybody.mechanism.reduction import reduced

KEPT = 8
_known: list[tuple[Mechanism, Mechanism]] = []  # those asked for last: a text is read several times
#: of joints, what reduction leaves as it is: dry friction, which a run's own mechanism may be without
RUBBING = frozenset({"friction", "record"})


def joint_space(m: Mechanism) -> Mechanism:
    """The mechanism with the same joint-space dynamics; springs between bodies need their own frames."""
    if m.sprung:
        return m
    for given, found in _known:
        if given is m:
            return found
    found = next((_rubbing(m, found) for given, found in _known if _alike(given, m)), None) or reduced(m)
    remember(m, found)
    return found


def remember(m: Mechanism, found: Mechanism) -> None:
    """Tell of a mechanism that has been reduced."""
    if not any(given is m for given, _ in _known):
        _known[:] = [(m, found), *_known[: KEPT - 1]]


def _alike(a: Mechanism, b: Mechanism) -> bool:
    """Whether two mechanisms differ in dry friction only, as `friction.without_dry_friction` makes them."""
    names = [field.name for field in fields(TreeJoint) if field.name not in RUBBING]
    return a.bodies is b.bodies and len(a.joints) == len(b.joints) and all(
        getattr(x, name) is getattr(y, name) for x, y in zip(a.joints, b.joints, strict=True) for name in names
    )


def _rubbing(m: Mechanism, found: Mechanism) -> Mechanism:
    """What `found` is of a mechanism like m, with the friction of m."""
    pairs = zip(found.joints, m.joints, strict=True)
    joints = tuple(replace(own, friction=given.friction, record=given.record) for own, given in pairs)
    return replace(m, joints=joints, inertials=found.inertials)


__all__ = ["joint_space", "remember"]
