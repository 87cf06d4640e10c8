"""Joints that must be eliminated together: the super-joints of articulated recursions.

An articulated recursion takes joints off one by one, from the tips inwards, and is exact where each has coordinates and
rotors of its own. Followers share the coordinates of their leader, and a rotor driven by several joints couples their
accelerations; such joints are one *group*. With A the outermost body that carries all members of a group,

    S = the joints between A and the members,    groups whose S overlap are one

S is eliminated as one joint on A. Joints are in depth-first preorder, so that at the least index of S everything
attached to its bodies is eliminated already, and inwards and outwards groups come at the place of that joint.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np

from polybody.late import dataclass

Array = np.ndarray
GROUND = -1


class Hung(Protocol):
    """What grouping reads of a joint."""

    @property
    def index(self) -> int: ...
    @property
    def parent(self) -> int: ...
    @property
    def v(self) -> slice: ...


@dataclass(frozen=True)
class Group:
    """Joints S on the body `base` (−1: the ground), mostly one, and the velocities they have between them, in order."""

    base: int
    joints: tuple[int, ...]
    slots: tuple[int, ...]

    @property
    def first(self) -> int:
        """The least joint, which stands on the base."""
        return self.joints[0]

    @property
    def alone(self) -> bool:
        """True for a single joint."""
        return len(self.joints) == 1


def elimination_groups(
    joints: Sequence[Hung], supports: Sequence[tuple[int, ...]], armature: Array
) -> tuple[Group, ...]:
    """Every joint in its group, groups in the order of their least joints: outwards."""
    spans = [_span(members, joints, supports) for members in _linked(joints, armature)]
    merged: list[set[int]] = []
    for span in spans:
        while True:
            touching = [other for other in merged if other & span]
            if not touching:
                break
            merged = [other for other in merged if not other & span]
            span = _span(span.union(*touching), joints, supports)
        merged.append(span)
    alone = [{joint.index} for joint in joints if not any(joint.index in span for span in merged)]
    groups = []
    for members in sorted(sorted(span) for span in (*merged, *alone)):
        slots = sorted({k for i in members for k in range(joints[i].v.start, joints[i].v.stop)})
        groups.append(Group(joints[members[0]].parent, tuple(members), tuple(slots)))
    return tuple(groups)


def _linked(joints: Sequence[Hung], armature: Array) -> list[set[int]]:
    """Sets of two joints or more that share a slot or a rotor."""
    owners: dict[int, list[int]] = {}
    for joint in joints:
        for k in range(joint.v.start, joint.v.stop):
            owners.setdefault(k, []).append(joint.index)
    rows, columns = np.nonzero(armature)
    pairs = [(row, column) for row, column in zip(rows.tolist(), columns.tolist(), strict=True) if row < column]
    links = [set(link) for link in owners.values()] + [{*owners[row], *owners[column]} for row, column in pairs]
    sets: list[set[int]] = []
    for link in links:
        if len(link) > 1:
            found = link.union(*(s for s in sets if s & link))
            sets = [s for s in sets if not s & found] + [found]
    return sets


def _span(members: Iterable[int], joints: Sequence[Hung], supports: Sequence[tuple[int, ...]]) -> set[int]:
    """The joints between the members and the outermost body that carries them all."""
    paths = [supports[i] for i in members]
    common = set(paths[0][:-1]).intersection(*(path[:-1] for path in paths[1:]))
    return {i for path in paths for i in path if i not in common}


__all__ = ["Group", "elimination_groups"]
