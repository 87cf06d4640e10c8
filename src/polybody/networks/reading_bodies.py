"""Multi-port bodies, joints and what else connects ports, from a `network:` section or a sub-network into a `Network`.

The grammar is that of `description.mechanism_file.port_parts`. Bodies come before the parts of a section, so that
sub-networks that parts use add theirs, and joints after them: `b: left.upper.pin` is a port of the used sub-network.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polybody.description.fields import Fields, Notes
from polybody.description.mechanism_file.port_parts import Ports
from polybody.description.mechanism_file.yaml_nodes import Node, Scalar
from polybody.description.records import WORLD
from polybody.errors import InputError
from polybody.networks.network import Network
from polybody.networks.units import value_of

#: sections of a network that say bodies and what connects their ports
BODY_KEYS = ("ground", "bodies", "joints", "springs", "rods", "guides", "gears", "relations", "motors")

#: (name, line, node) of each entry of a section
Entries = Callable[[Fields, str], list[tuple[str, int, Node]]]


class BodyReader:
    """Reads the sections `BODY_KEYS` of one network; `entries` lists those of a section."""

    def __init__(self, notes: Notes, entries: Entries) -> None:
        self.notes, self.entries = notes, entries
        self.ports = Ports(notes, lambda text, unit, what: value_of(text, unit, what))

    def bodies(self, net: Network, section: Fields) -> None:
        node = section.node("ground")
        if node is not None and not (isinstance(node, Scalar) and node.text in ("", "~", "null")):
            for frame in self.ports.ports(WORLD, node):
                self._add(node.line, lambda f=frame: net.ground({f.name: f.origin}))
        self._each(section, "bodies", lambda name, line, value: self._body(net, name, line, value))

    def connections(self, net: Network, section: Fields) -> None:
        for key, add in (
            ("joints", self._joint), ("springs", self._spring), ("rods", self._rod), ("guides", self._guide),
            ("gears", self._gear), ("relations", self._relation), ("motors", self._motor),
        ):  # fmt: skip
            self._each(section, key, lambda name, line, value, put=add: put(net, name, line, value))

    def _each(self, section: Fields, key: str, read: Callable[[str, int, Node], None]) -> None:
        for name, line, value in self.entries(section, key):
            self._add(line, lambda n=name, at=line, v=value: read(n, at, v))

    def _add(self, line: int, work: Callable[[], Any]) -> None:
        """Do it; an error is noted, unless it follows from one that was noted on the way."""
        before = len(self.notes.problems)
        try:
            work()
        except InputError as error:
            if len(self.notes.problems) == before:
                self.notes.error(line, str(error))

    def _body(self, net: Network, name: str, line: int, node: Node) -> None:
        body, frames = self.ports.body(name, line, node)
        net._fresh(name, f"body {name!r}")
        net.body(name, body.mass, body.com, body.inertia, ports={frame.name: frame.origin for frame in frames})

    def _joint(self, net: Network, name: str, line: int, node: Node) -> None:
        joint = self.ports.joint(name, line, node)
        self._unless_driven(net, name)
        laws = {key: getattr(joint, key) for key in ("stiffness", "damping", "armature", "rest", "friction", "limits")}
        net.joint(name, joint.kind, joint.parent, joint.child, joint.axis, pitch=joint.pitch, map=joint.map,
                  stages=joint.stages, **{key: law for key, law in laws.items() if law is not None})

    def _unless_driven(self, net: Network, name: str) -> None:
        net._fresh(name, f"joint {name!r}")
        taken = [part.name for part in net.components.values() for port in part.ports if port.name == name]
        if taken:
            raise InputError(f"joint {name!r}: {taken[0]!r} has a port or joint of this name already")

    def _spring(self, net: Network, name: str, line: int, node: Node) -> None:
        spring = self.ports.spring(name, line, node)
        net._fresh(name, f"spring {name!r}")
        net.spring(name, spring.body_a, spring.body_b, spring.stiffness, spring.length, spring.damping)

    def _rod(self, net: Network, name: str, line: int, node: Node) -> None:
        rod = self.ports.rod(name, line, node)
        net._fresh(name, f"rod {name!r}")
        net.rod(name, rod.body_a, rod.body_b, rod.length)

    def _guide(self, net: Network, name: str, line: int, node: Node) -> None:
        guide = self.ports.guide(name, line, node)
        net._fresh(name, f"guide {name!r}")
        add = net.point_on_line if guide.kind == "line" else net.point_in_plane
        add(name, guide.body_a, guide.body_b, guide.axis)

    def _gear(self, net: Network, name: str, line: int, node: Node) -> None:
        gear = self.ports.gear(name, line, node)
        net._fresh(name, f"gear {name!r}")
        net.gear(name, gear.joint, gear.source_joint, gear.ratio, gear.offset)

    def _relation(self, net: Network, name: str, line: int, node: Node) -> None:
        relation = self.ports.relation(name, line, node)
        net._fresh(name, f"relation {name!r}")
        net.relation(name, relation.expression)

    def _motor(self, net: Network, name: str, line: int, node: Node) -> None:
        motor, nodes = self.ports.motor(name, line, node)
        net._fresh(name, f"motor {name!r}")
        net.motor(name, motor.joint, nodes, torque_constant=motor.torque_constant, speed_constant=motor.speed_constant,
                  resistance=motor.resistance, inductance=motor.inductance, rotor_inertia=motor.rotor_inertia,
                  damping=motor.damping, gear=motor.gear, coordinate=motor.coordinate)
        net._electric_nodes()


__all__ = ["BODY_KEYS", "BodyReader"]
