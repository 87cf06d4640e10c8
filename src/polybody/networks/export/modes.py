"""Which parts' modes are code and which are data, and the combinations of those that are code.

Modes that differ in right sides are data from the first (`selected.selectable`), and so are limits and friction of
models' joints, and clutches, whose states are the same in all modes. Diodes and switches are code, solved once and for
all in each combination, while there are few combinations; else data, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from polybody.errors import InputError
from polybody.networks.component import Component, PartComponent
from polybody.networks.export.selected import SelectedComponent, derives, selectable
from polybody.networks.joint_laws import released
from polybody.networks.motion import Motion
from polybody.networks.system import InputRateNeeded, System

#: combinations of modes whose code is written
MOST_COMBINATIONS = 64


class TooManyCombinations(InputError):
    """More combinations of modes than may be written."""


@dataclass(frozen=True)
class Switch:
    """Where a condition leads: to a combination (−1: a singular one), or a part with its mode as a number."""

    combination: int
    selector: int
    value: int


def with_data(components: Sequence[Component], coded: frozenset[str], most: int) -> list[Any]:
    """Components with modes as data where they may be; parts in `coded` are not regular as data."""
    found: list[Any] = []
    for part in components:
        if not isinstance(part, PartComponent) or not part.part.alternatives or part.name in coded:
            found.append(part)
        elif selectable(part):
            found.append(SelectedComponent(part))
        else:
            found.append(SelectedComponent(part, whole=True) if part.law or derives(part) else part)
    left = [len(p.part.alternatives) for p in found if isinstance(p, PartComponent) and p.part.alternatives]
    return whole(found, coded) if math.prod(left) > most else found


def whole(components: Sequence[Any], coded: frozenset[str]) -> list[Any]:
    """Components with all modes as data."""
    return [SelectedComponent(p, whole=True) if isinstance(p, PartComponent) and p.part.alternatives
            and p.name not in coded else p for p in components]


def explored(motion: Motion, first: System, most: int) -> tuple[list[System], list[list[Switch]], list[int]]:
    """The systems of all combinations that switches lead to, where each condition leads, and the combination in which
    a joint meets its limit: nothing sticks in it."""
    systems, index = [first], {tuple(first.modes.items()): 0}
    switches: list[list[Switch]] = []
    free: list[int] = []
    parts = {part.name: part for part in motion.components}
    selected = [p for p in motion.components if isinstance(p, SelectedComponent)]
    striking = any(p.inner.impacts for p in selected)

    def place(modes: dict[str, str]) -> int:
        key = tuple(modes.items())
        if key not in index:
            try:
                made = motion.system(modes)
            except InputRateNeeded:
                raise
            except InputError:
                index[key] = -1  # singular: entering it is an error of the run, as in `pb.simulate`
            else:
                if len(systems) >= most:
                    raise TooManyCombinations(
                        f"the network's parts that switch ({', '.join(systems[0].modes)}) have more than {most} "
                        "combinations of modes, each of which is written as code of its own; allow more by "
                        f"combinations={2 * most}, or use parts whose states are the same in all modes (stops, diodes, "
                        "clutches between inertias), which are data and not code")
                index[key] = len(systems)
                systems.append(made)
        return index[key]

    for at in range(10**6):
        if at >= len(systems):
            return systems, switches, free
        modes = systems[at].modes
        row = [Switch(place({**modes, part: mode}), -1, 0) for part, mode in systems[at].conditions]
        for k, part in enumerate(selected):
            for alternatives in part.inner.part.alternatives.values():
                row += [Switch(at, k, part.modes.index(other)) for other in alternatives.to]
        switches.append(row)
        free.append(place({name: released(parts[name], m) for name, m in modes.items()}) if striking else at)
    raise AssertionError


__all__ = ["MOST_COMBINATIONS", "Switch", "TooManyCombinations", "explored", "whole", "with_data"]
