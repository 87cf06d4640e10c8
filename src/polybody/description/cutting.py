"""Which joints of a graph are cut: formats that list joints without naming a tree close loops by listing one more.

The tree keeps joints with few freedoms, and those that carry something (a drive, a limit, a spring, a coupling) before
those that carry nothing: a cut joint with f freedoms leaves 6 − f equations, and what acts in a joint acts best in a
coordinate of its own. Among equals the joints nearest the ground are kept, so that cuts come where the two sides of a
loop meet and both are short. The tree is Kruskal's over that order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from polybody.description.records import WORLD


@dataclass(frozen=True)
class Edge:
    """A joint between two links: its freedoms, and whether something acts in it."""

    a: str
    b: str
    freedoms: int
    carries: bool = False


def spanning_tree(edges: Sequence[Edge], roots: Iterable[str] = (WORLD,)) -> list[bool]:
    """For each joint, whether the tree keeps it."""
    depth = _depths(edges, roots)

    def order(i: int) -> tuple[int, bool, int, int]:
        edge = edges[i]
        return edge.freedoms, not edge.carries, min(depth.get(edge.a, 0), depth.get(edge.b, 0)), i

    leader: dict[str, str] = {}

    def find(name: str) -> str:
        while leader.setdefault(name, name) != name:
            leader[name] = name = leader[leader[name]]
        return name

    kept = [False] * len(edges)
    for i in sorted(range(len(edges)), key=order):
        a, b = find(edges[i].a), find(edges[i].b)
        if a != b:
            leader[a], kept[i] = b, True
    return kept


def _depths(edges: Sequence[Edge], roots: Iterable[str]) -> dict[str, int]:
    """How many joints lie between each link and the roots."""
    neighbours: dict[str, list[str]] = {}
    for edge in edges:
        neighbours.setdefault(edge.a, []).append(edge.b)
        neighbours.setdefault(edge.b, []).append(edge.a)
    depth = dict.fromkeys(roots, 0)
    waiting = deque(depth)
    while waiting:
        near = waiting.popleft()
        for far in neighbours.get(near, ()):
            if far not in depth:
                depth[far] = depth[near] + 1
                waiting.append(far)
    return depth


def components(names: Iterable[str], edges: Iterable[Edge]) -> list[list[str]]:
    """The links that joints hold together, each group in the order of `names`."""
    names = list(names)
    neighbours: dict[str, list[str]] = {name: [] for name in names}
    for edge in edges:
        neighbours.setdefault(edge.a, []).append(edge.b)
        neighbours.setdefault(edge.b, []).append(edge.a)
    found: dict[str, int] = {}
    for start in names:
        if start in found:
            continue
        number = len(set(found.values()))
        found[start], waiting = number, [start]
        while waiting:
            for far in neighbours[waiting.pop()]:
                if far not in found:
                    found[far] = number
                    waiting.append(far)
    groups: dict[int, list[str]] = {}
    for name in names:
        groups.setdefault(found[name], []).append(name)
    return list(groups.values())


__all__ = ["Edge", "components", "spanning_tree"]
