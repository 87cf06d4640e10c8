"""Frames of an SDF file: where everything stands at the beginning, and which link each frame moves with.

Links, joints, frames and nested models are nodes of one graph, named by their scopes ("arm::hand::finger"). Each has a
pose relative to another node (`relative_to`, or its default: the model, for a joint its child, for a frame what it is
attached to). A model's `placement_frame` P makes its pose that of P: X_model = X_said · (X_P in the model)⁻¹.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polybody.algebra.spatial import inverse_pose
from polybody.description.records import WORLD, Array
from polybody.description.xml.fields import Fields
from polybody.names import nearest

MODEL = "__model__"
SEPARATOR = "::"


@dataclass
class Node:
    """A frame: its pose in the node `base`, and the node it moves with (None: it is a link or the world)."""

    element: Any
    base: str
    pose: Array
    attached: str | None
    placement: str = ""  # of a model: the node that its pose places


class Frames:
    """All nodes of a file by name, resolved on request."""

    def __init__(self, fields: Fields) -> None:
        self.fields = fields
        self.nodes: dict[str, Node] = {WORLD: Node(None, "", np.eye(4), None)}
        self._poses: dict[str, Array] = {WORLD: np.eye(4)}
        self._placements: dict[str, Array] = {}
        self._links: dict[str, str] = {}  # what `link_of` found before
        self.only = ""  # a world's only model: its parts have no scope of their own, the world may name it

    def add(self, name: str, node: Node, what: str) -> None:
        """Take a node; a second one of that name is a problem."""
        if name in self.nodes:
            self.fields.problem(node.element, f"two elements are named {name!r}; {what} needs a name of its own")
        else:
            self.nodes[name] = node

    def named(self, scope: str, name: str, element: Any, what: str) -> str:
        """The node that `name` means inside a scope, "" after a problem."""
        if name == WORLD:
            return WORLD
        if name == MODEL:
            return f"{scope}{MODEL}"
        full = f"{scope}{name}"
        names = [full, f"{full}{SEPARATOR}{MODEL}"]  # a nested model's name means its frame
        if self.only and not scope and f"{name}{SEPARATOR}".startswith(f"{self.only}{SEPARATOR}"):
            inside = name.removeprefix(self.only).removeprefix(SEPARATOR)
            names += [inside or MODEL, f"{inside}{SEPARATOR}{MODEL}"]
        for found in names:
            if found in self.nodes:
                return found
        known = [key.removeprefix(scope) for key in self.nodes if key.startswith(scope)]
        self.fields.problem(element, f"{what}: no frame {name!r}{nearest(name, known)}")
        return ""

    def world_pose(self, name: str) -> Array:
        """The 4×4 pose of a node in the world, at the beginning."""
        trail: dict[str, None] = {}
        while name not in self._poses:
            if name in trail:
                node = self.nodes[name]
                self.fields.problem(node.element, f"poses are relative to each other in a circle: {' - '.join(trail)}")
                self._poses[name] = np.eye(4)
                break
            trail[name] = None
            name = self.nodes[name].base or WORLD
        for part in reversed(trail):
            node = self.nodes[part]
            self._poses[part] = self._poses.get(node.base or WORLD, np.eye(4)) @ self._placed(part, node)
        return self._poses[next(iter(trail), name)]

    def link_of(self, name: str) -> str:
        """The link (or the world) that a node moves with; "" where it moves with nothing."""
        seen: set[str] = set()
        while name in self.nodes and (attached := self.nodes[name].attached) is not None:
            if name in seen:
                self.fields.problem(self.nodes[name].element, f"frame {name!r} is attached to itself")
                return ""
            seen.add(name)
            name = self._links.get(attached, attached)
        found = name if name in self.nodes else ""
        self._links |= dict.fromkeys(seen, found)
        return found

    def _placed(self, name: str, node: Node) -> Array:
        """The node's pose in its base; placements inside each other are resolved a single time each."""
        if not node.placement:
            return node.pose
        if name not in self._placements:
            self._placements[name] = node.pose  # what a placement that leads back to itself finds
            self._placements[name] = self._placement(name, node)
        return self._placements[name]

    def _placement(self, name: str, node: Node) -> Array:
        inside, part = np.eye(4), node.placement
        for _ in range(len(self.nodes)):  # up to the model's own frame
            if part == name:
                return node.pose @ inverse_pose(inside)
            inside = self._placed(part, self.nodes[part]) @ inside
            part = self.nodes[part].base or WORLD
            if part == WORLD:
                break
        self.fields.problem(node.element, f"placement_frame {node.placement!r} does not lie in its model")
        return node.pose


__all__ = ["MODEL", "SEPARATOR", "Frames", "Node"]
