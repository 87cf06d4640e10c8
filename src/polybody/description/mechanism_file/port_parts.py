"""Multi-port bodies and what connects their ports, of a `network:` section: records whose ends are ports, not bodies.

    ground: {pin: [0, 0, 0]}                                               # ports of the ground: world.pin
    bodies:
      arm: {mass: 2, com: [0.2, 0, 0], inertia: [0, 0.03, 0.03], ports: {pin: [0, 0, 0], tip: {xyz: [0.4, 0, 0], rpy: [0, 0, 90deg]}}}
    joints: {hinge: {kind: revolute, a: world.pin, b: arm.pin, damping: 0.1 N m s/rad}}
    springs: {S: {a: world.wall, b: arm.tip, stiffness: 20 N/m, length: 30cm}}
    rods: {R: {a: arm.tip, b: other.eye, length: 0.5}}
    guides: {G: {kind: line, a: world.rail, b: arm.eye, axis: x}}          # b stays on the line (plane) of a
    gears: {follow: {follower: wrist, leader: hinge, factor: -2}}
    relations: {cam: "wrist - sin(hinge)"}
    motors: {M: {joint: hinge, nodes: [plus, minus], torque_constant: 0.05 N m/A, resistance: 1.2 ohm}}

Numbers may carry units of their dimension; in joints whose coordinates turn and slide, forces are plain SI numbers.
Each reader notes what is wrong with its line, checks of the record (`record_checks`) included.
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from polybody.description import record_checks as checks
from polybody.description import shapes
from polybody.description.coordinate_units import coordinate_units
from polybody.description.fields import Fields, Notes, as_number, as_numbers, as_text
from polybody.description.mechanism_file.conditions import read_relation
from polybody.description.mechanism_file.forces import MOTOR_NUMBERS, read_motor
from polybody.description.mechanism_file.links import JOINT_MOTION, drive_fields, motion_fields
from polybody.description.mechanism_file.values import as_array, as_axis, as_pose
from polybody.description.mechanism_file.yaml_nodes import Mapping, Node, Scalar, Sequence, describe
from polybody.description.naming import name_problem, shown
from polybody.description.problems import ERROR, Problem
from polybody.description.records import (
    LOOP_DRIVE,
    WORLD,
    Body,
    Coupling,
    Frame,
    Guide,
    Joint,
    Loop,
    Motor,
    Relation,
    Rod,
    Spring,
    frozen_array,
)
from polybody.description.units import ANGLE, LENGTH, MASS
from polybody.errors import InputError

#: a number's text in SI units of a dimension that a unit's text has: "3 mN" where "N" is wanted is "0.003"
InSI = Callable[[str, str, str], float]

#: unit of a joint's stiffness, damping and inertia by what its coordinate is
UNITS = {ANGLE: {"stiffness": "N m/rad", "damping": "N m s/rad", "armature": "kg m^2"},
         LENGTH: {"stiffness": "N/m", "damping": "N s/m", "armature": "kg"}}  # fmt: skip
MOTOR_UNITS = {"resistance": "ohm", "inductance": "H", "torque_constant": "N m/A", "speed_constant": "V s/rad",
               "rotor_inertia": "kg m^2", "damping": "N m s/rad"}


class Ports:
    """Reads the records of one section; `in_si` knows units of forces and of electricity."""

    def __init__(self, notes: Notes, in_si: InSI) -> None:
        self.notes, self.in_si = notes, in_si

    def body(self, name: str, line: int, node: Node) -> tuple[Body, list[Frame]]:
        """A body, and its ports as frames."""
        f = Fields(self.notes, f"body {name!r}", node, ("mass", "com", "inertia", "ports"))
        body = Body(
            name,
            f.get("mass", as_number(MASS), 0.0),
            f.get("com", as_array(3, dimensions=(LENGTH,)), frozen_array(np.zeros(3))),
            f.get("inertia", lambda w, n: shapes.inertia_matrix(w, as_numbers()(w, n)), frozen_array(np.zeros((3, 3)))),
            source=self.notes.at(line),
        )
        self._told(checks.body_problems(body), line)
        ports = f.node("ports")
        if ports is None:
            self.notes.error(line, f"body {name!r} needs 'ports', a mapping from names to points or poses")
        return body, [] if ports is None else self.ports(name, ports)

    def ports(self, owner: str, node: Node) -> list[Frame]:
        """Ports of a body, or of the ground."""
        if not isinstance(node, Mapping):
            self.notes.error(node.line, f"ports of {owner!r} must be a mapping from names, got {describe(node)}")
            return []
        self.notes.count("ports", len(node.pairs))
        found = []
        for name, (line, value) in node.pairs.items():
            problem = name_problem(name)
            if problem is not None:
                self.notes.error(line, f"{owner!r}: the name of the port {shown(name)} {problem}")
                continue
            try:
                origin = as_pose(self.notes)(f"port {owner}.{name}", value)
            except InputError as error:
                self.notes.error(line, str(error))
                continue
            frame = Frame(name, owner, origin, self.notes.at(line))
            if self._told(checks.frame_problems(frame), line):
                found.append(frame)
        return found

    def joint(self, name: str, line: int, node: Node) -> Joint:
        """A joint; `parent` and `child` are its ports a and b."""
        node = self._in_units(node, self._kind_units(node), f"joint {name!r}")
        f = Fields(self.notes, f"joint {name!r}", node, ("a", "b", *JOINT_MOTION, *LOOP_DRIVE))
        bare = Joint(name, parent=f.need("a", as_text, WORLD), child=f.need("b", as_text, "?"),
                     source=self.notes.at(line), **motion_fields(f))
        joint = Joint(**{**bare.__dict__, **drive_fields(self.notes, f, bare, LOOP_DRIVE)})
        self._told(checks.joint_problems(joint), line)
        return joint

    def _kind_units(self, node: Node) -> dict[str, str]:
        """Units of what a joint's forces are said in; none where its coordinates turn and slide."""
        kind = node.pairs.get("kind") if isinstance(node, Mapping) else None
        if kind is None or not isinstance(kind[1], Scalar):
            return {}
        try:
            found = coordinate_units(Loop("", kind[1].text, "", ""), "v")
        except KeyError:  # no kind of joint, which is told elsewhere
            return {}
        dimensions = {unit for number in found for unit in number}
        return UNITS[dimensions.pop()] if len(dimensions) == 1 else {}

    def spring(self, name: str, line: int, node: Node) -> Spring:
        node = self._in_units(node, UNITS[LENGTH], f"spring {name!r}")
        f = Fields(self.notes, f"spring {name!r}", node, ("a", "b", "stiffness", "length", "damping"))
        a, b = self._ends(f)
        spring = Spring(name, a, np.zeros(3), b, np.zeros(3), f.need("stiffness", as_number(), 0.0),
                        f.get("length", as_number(LENGTH), 0.0), f.get("damping", as_number(), 0.0),
                        self.notes.at(line))
        self._told(checks.spring_problems(spring), line)
        return spring

    def rod(self, name: str, line: int, node: Node) -> Rod:
        f = Fields(self.notes, f"rod {name!r}", node, ("a", "b", "length"))
        a, b = self._ends(f)
        rod = Rod(name, a, np.zeros(3), b, np.zeros(3), f.need("length", as_number(LENGTH), 1.0), self.notes.at(line))
        self._told(checks.rod_problems(rod), line)
        return rod

    def guide(self, name: str, line: int, node: Node) -> Guide:
        f = Fields(self.notes, f"guide {name!r}", node, ("kind", "a", "b", "axis"))
        a, b = self._ends(f)
        axis = f.get("axis", as_axis, frozen_array((0.0, 0.0, 1.0)))
        guide = Guide(name, f.need("kind", as_text, "line"), a, np.zeros(3), axis, b, np.zeros(3), self.notes.at(line))
        self._told(checks.guide_problems(guide), line)
        return guide

    def gear(self, name: str, line: int, node: Node) -> Coupling:
        """`joint` follows `source_joint`."""
        f = Fields(self.notes, f"gear {name!r}", node, ("follower", "leader", "factor", "offset"))
        gear = Coupling(f.need("follower", as_text, ""), f.need("leader", as_text, ""),
                        f.need("factor", as_number(), 1.0), f.get("offset", as_number(ANGLE, LENGTH), 0.0),
                        self.notes.at(line))
        for key, value in (("factor", gear.ratio), ("offset", gear.offset)):
            if not np.isfinite(value):
                self.notes.error(line, f"gear {name!r}: {key} is {value}, expected a finite number")
        return gear

    def relation(self, name: str, line: int, node: Node) -> Relation:
        return read_relation(self.notes, name, line, node)

    def motor(self, name: str, line: int, node: Node) -> tuple[Motor, tuple[str, str] | None]:
        """A motor, and the nodes between which its winding is."""
        node = self._in_units(node, MOTOR_UNITS, f"motor {name!r}")
        nodes, rest = None, node
        if isinstance(node, Mapping):
            if "nodes" in node.pairs:
                at, said = node.pairs["nodes"]
                names = said.items if isinstance(said, Sequence) else (said, Scalar("ground", at))
                if len(names) != 2 or not all(isinstance(n, Scalar) and n.text for n in names):
                    self.notes.error(at, f"motor {name!r}: nodes must be a node's name or two, got {describe(said)}")
                else:
                    nodes = names[0].text, names[1].text  # type: ignore[union-attr]
            pairs = {key: value for key, value in node.pairs.items() if key != "nodes"}
            if "torque_constant" in pairs:
                pairs.setdefault("speed_constant", pairs["torque_constant"])
            for key, default in (("resistance", "0"), ("inductance", "0")):
                pairs.setdefault(key, (node.line, Scalar(default, node.line)))
            rest = Mapping(node.line, pairs)
        motor = read_motor(self.notes, name, line, rest)
        for key in MOTOR_NUMBERS:
            value, signed = getattr(motor, key), key in ("torque_constant", "speed_constant", "gear")
            if not np.isfinite(value) or (value < 0 and not signed):
                self.notes.error(line, f"motor {name!r}: {key} is {value:g}, expected a finite number"
                                       f"{'' if signed else ' that is not negative'}")
        return motor, nodes

    def _ends(self, f: Fields) -> tuple[str, str]:
        return f.need("a", as_text, WORLD), f.need("b", as_text, "?")

    def _told(self, problems: Iterable[Problem], line: int) -> bool:
        """Note the errors of a record; whether there are none. Oddities are told where the model is made."""
        wrong = [problem for problem in problems if problem.severity == ERROR]
        for problem in wrong:
            self.notes.error(line, problem.message)
        return not wrong

    def _in_units(self, node: Node, units: dict[str, str], owner: str) -> Node:
        """The mapping with numbers of these keys in SI, where they carry a unit."""
        if not isinstance(node, Mapping):
            return node
        pairs: dict[str, Any] = dict(node.pairs)
        for key, unit in units.items():
            if key in pairs:
                pairs[key] = (pairs[key][0], self._plain(pairs[key][1], unit, f"{owner}: {key}"))
        return Mapping(node.line, pairs)

    def _plain(self, node: Node, unit: str, what: str) -> Node:
        if isinstance(node, Sequence):
            return Sequence(node.line, [self._plain(item, unit, what) for item in node.items])
        if not isinstance(node, Scalar) or " " not in node.text.strip():
            return node
        try:
            return Scalar(repr(self.in_si(node.text, unit, what)), node.line)
        except InputError as error:
            self.notes.error(node.line, str(error))
            return Scalar("0", node.line)


__all__ = ["InSI", "Ports"]
