"""Sub-networks used several times: copies of a network's bodies, joints, parts and models under names of their own.

Names of what is copied are prefixed, `left.arm`; ports of its bodies are `left.arm.tip`, its ports on the ground
`world.left.pin`. Nodes are prefixed too, except the ground and terminals, which are connected to nodes outside.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from polybody.formulations.network.parts import WORLD, Port, RelationPart
from polybody.networks.component import Component, PartComponent
from polybody.networks.models import ModelComponent

if TYPE_CHECKING:
    from polybody.networks.network import Network

Rename = Callable[[str], str]
#: parts, bodies and joints of a network, copies of sub-networks included: a few lines of a file may ask for millions
MOST_PARTS = 20_000


def part_count(net: Network) -> int:
    """Parts, models, bodies and joints of a network."""
    return len(net.components) + len(net.parts.bodies) + len(net.parts.joints) + len(net.parts.electric)


def copied_components(name: str, other: Network, outside: Rename) -> list[Component]:
    """One-dimensional parts and models of a network under new names."""
    found: list[Component] = []
    for part in other.components.values():
        if isinstance(part, PartComponent):
            placed = {own: (outside(head), outside(tail)) for own, (head, tail) in part.nodes.items()}
            found.append(PartComponent(f"{name}.{part.name}", part.part, placed, part.values, part.source))
            continue
        assert isinstance(part, ModelComponent)
        placed = {port.name: (outside(port.head), outside(port.tail)) for port in part.ports}
        made = replace(part, name=f"{name}.{part.name}", prefix=f"{name}.{part.prefix}",
                       places={f"{name}.{port}": ends for port, ends in placed.items()})
        found.append(made)
    return found


def copy_bodies(net: Network, name: str, other: Network, outside: Rename) -> None:
    """Add bodies, joints and what connects them under new names."""
    parts, mine = other.parts, net.parts

    def new(word: str) -> str:
        return f"{name}.{word}"

    def moved(port: Port) -> Port:
        own = (WORLD, new(port.name)) if port.component == WORLD else (new(port.component), port.name)
        return Port(*own, port.place, port.axes)

    full = {port.full: moved(port).full for port in other.ports.values()}
    for port in other.ports.values():
        net._new_port(moved(port))
    for word, port in parts.ground.items():
        mine.ground[new(word)] = moved(port)
    for word, body in parts.bodies.items():
        net._fresh(new(word), f"body {new(word)!r}")
        ports = {key: moved(port) for key, port in body.ports.items()}
        mine.bodies[new(word)] = replace(body, name=new(word), ports=ports)
    for kind in ("joints", "springs", "forces", "holds"):
        for word, part in getattr(parts, kind).items():
            ends = {side: None if getattr(part, side) is None else full[getattr(part, side)] for side in ("a", "b")}
            getattr(mine, kind)[new(word)] = replace(part, name=new(word), **ends)
    for word, gear in parts.gears.items():
        mine.gears[new(word)] = replace(gear, name=new(word), follower=new(gear.follower), leader=new(gear.leader))
    for word, relation in parts.relations.items():
        mine.relations[new(word)] = RelationPart(new(word), relation.expression.renamed(new))
    for word, multiport in parts.multiports.items():
        mine.multiports[new(word)] = replace(multiport, name=new(word))
    for word, part in parts.electric.items():
        mine.electric[new(word)] = replace(part, name=new(word), plus=outside(part.plus), minus=outside(part.minus))
    for word, motor in parts.motors.items():
        ends: dict[str, Any] = {side: None if getattr(motor, side) is None else outside(getattr(motor, side))
                                for side in ("plus", "minus")}
        speeds = {new(joint): E for joint, E in motor.speeds.items()}
        mine.motors[new(word)] = replace(motor, name=new(word), speeds=speeds, **ends)
    net.connections |= {full[port]: new(user) for port, user in other.connections.items()}


__all__ = ["MOST_PARTS", "copied_components", "copy_bodies", "part_count"]
