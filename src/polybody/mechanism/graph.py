"""The graph of a description: bodies as vertices, joints as edges, the ground as root.

`walk` visits the joints in depth-first preorder from the ground, siblings in file order, whichever way each joint was
given; fixed joints are walked too. What cannot be a tree raises an error with the names a person needs: a cycle with
its path, bodies that nothing reaches.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from polybody.description.records import WORLD, Description, Joint
from polybody.errors import InputError
from polybody.late import dataclass


def joint_graph(description: Description) -> Any:
    """Bodies (and the ground) as nodes, joints as keyed edges that carry their records; loops are not in it."""
    import networkx as nx  # takes as long to import as the rest of polybody

    graph = nx.MultiGraph(name=description.name)
    graph.add_node(WORLD)
    for body in description.bodies:
        graph.add_node(body.name, record=body)
    for joint in description.joints:
        graph.add_edge(joint.parent, joint.child, key=joint.name, record=joint)
    return graph


@dataclass(frozen=True)
class Step:
    """One joint of the walk, from the body `near` the ground to the body `far` from it."""

    joint: Joint
    near: str
    far: str
    reversed: bool


def walk(description: Description) -> Iterator[Step]:
    """The joints in depth-first preorder from the ground."""
    incident: dict[str, list[Joint]] = {WORLD: []} | {body.name: [] for body in description.bodies}
    for joint in description.joints:
        incident[joint.parent].append(joint)
        incident[joint.child].append(joint)
    reached = {WORLD}
    stack = [(WORLD, joint) for joint in reversed(incident[WORLD])]
    while stack:
        near, joint = stack.pop()
        far = joint.child if joint.parent == near else joint.parent
        if far in reached:
            raise InputError(_cycle_message(description, joint))
        reached.add(far)
        yield Step(joint, near, far, joint.parent != near)
        stack.extend((far, other) for other in reversed(incident[far]) if other is not joint)
    missed = [body.name for body in description.bodies if body.name not in reached]
    if missed:
        raise InputError(_unreached_message(description, missed))


def _cycle_message(description: Description, closing: Joint) -> str:
    import networkx as nx

    graph = joint_graph(description)
    graph.remove_edge(closing.parent, closing.child, key=closing.name)
    path = nx.shortest_path(graph, closing.child, closing.parent)
    where = f" ({closing.source})" if closing.source else ""
    return (
        f"joints form a cycle: {' - '.join([*path, path[0]])}, closed by joint {closing.name!r}{where}; "
        "make one of them a loop"
    )


def _unreached_message(description: Description, missed: list[str]) -> str:
    listed = ", ".join(repr(name) for name in missed[:8]) + (" …" if len(missed) > 8 else "")
    children = {joint.child for joint in description.joints}
    roots = [name for name in missed if name not in children]
    hint = f"; join {roots[0]!r} to {WORLD!r} (or to a body that is joined to it)" if roots else ""
    return f"no chain of joints leads from {WORLD!r} to {listed}{hint}"


__all__ = ["Step", "joint_graph", "walk"]
