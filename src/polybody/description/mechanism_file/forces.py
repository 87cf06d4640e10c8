"""Springs, contacts, actuators, motors and transmissions of a mechanism file, an entry each."""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.description import shapes
from polybody.description.fields import Fields, Notes, as_count, as_number, as_numbers, as_text
from polybody.description.limits import TRANSMISSION_JOINTS
from polybody.description.mechanism_file.values import as_array, as_axis, as_expression, as_names
from polybody.description.mechanism_file.yaml_nodes import Node
from polybody.description.records import WORLD, Actuator, Contact, Motor, Spring, Transmission, frozen_array
from polybody.description.units import LENGTH
from polybody.names import counted

CONTACT_NUMBERS = ("stiffness", "damping", "friction", "radius", "exponent", "slip")
MOTOR_NUMBERS = ("resistance", "inductance", "torque_constant", "speed_constant", "rotor_inertia", "damping", "gear")


def read_spring(notes: Notes, name: str, line: int, node: Node) -> Spring:
    keys = ("body_a", "point_a", "body_b", "point_b", "stiffness", "length", "damping")
    f = Fields(notes, f"spring {name!r}", node, keys)
    point = as_array(3, dimensions=(LENGTH,))
    return Spring(
        name,
        f.need("body_a", as_text, WORLD),
        f.get("point_a", point, frozen_array(np.zeros(3))),
        f.need("body_b", as_text, WORLD),
        f.get("point_b", point, frozen_array(np.zeros(3))),
        f.need("stiffness", as_number(), 0.0),
        f.get("length", as_number(LENGTH), 0.0),
        f.get("damping", as_number(), 0.0),
        notes.at(line),
    )


def read_contact(notes: Notes, name: str, line: int, node: Node) -> Contact:
    keys = ("body", "points", *CONTACT_NUMBERS, "point", "normal", "terrain", "heights", "extent")
    f = Fields(notes, f"contact {name!r}", node, keys)
    given: dict[str, Any] = {
        key: f.get(key, as_number(*((LENGTH,) if key == "radius" else ())), None) for key in CONTACT_NUMBERS
    }
    given["points"] = f.get("points", lambda w, n: shapes.points(w, as_numbers(LENGTH)(w, n)), None)
    given["point"] = f.get("point", as_array(3, dimensions=(LENGTH,)), None)
    given["normal"] = f.get("normal", as_axis, None)
    given["terrain"] = f.get("terrain", as_expression, None)
    given["heights"] = f.get("heights", lambda w, n: shapes.table(w, as_numbers(LENGTH)(w, n)), None)
    given["extent"] = f.get("extent", as_array(4, dimensions=(LENGTH,)), None)
    if given["stiffness"] is None:
        f.need("stiffness", as_number(), 0.0)
    said = {key: value for key, value in given.items() if value is not None}
    filled = {"points": frozen_array(np.zeros((1, 3))), "stiffness": 0.0} | said
    return Contact(name, f.need("body", as_text, WORLD), **filled, source=notes.at(line))


def read_actuator(notes: Notes, name: str, line: int, node: Node) -> Actuator:
    f = Fields(notes, f"actuator {name!r}", node, ("joint", "gain", "bias", "gear", "control", "limit", "coordinate"))
    given: dict[str, Any] = {key: f.get(key, as_number(), None) for key in ("gain", "gear")}
    given |= {key: f.get(key, as_array(n), None) for key, n in (("bias", 3), ("control", 2), ("limit", 2))}
    given["coordinate"] = f.get("coordinate", as_count, None)
    said = {key: value for key, value in given.items() if value is not None}
    return Actuator(name, f.need("joint", as_text, ""), **said, source=notes.at(line))


def read_motor(notes: Notes, name: str, line: int, node: Node) -> Motor:
    f = Fields(notes, f"motor {name!r}", node, ("joint", *MOTOR_NUMBERS, "coordinate"))
    needed = {key: f.need(key, as_number(), 1.0) for key in MOTOR_NUMBERS[:4]}
    more = {key: f.get(key, as_number(), 1.0 if key == "gear" else 0.0) for key in MOTOR_NUMBERS[4:]}
    coordinate = f.get("coordinate", as_count, 0)
    return Motor(name, f.need("joint", as_text, ""), **needed, **more, coordinate=coordinate, source=notes.at(line))


def read_transmission(notes: Notes, name: str, line: int, node: Node) -> Transmission:
    f = Fields(notes, f"transmission {name!r}", node, ("joints", "matrix"))
    joints = f.need("joints", as_names, ())
    size = len(joints)
    if size > TRANSMISSION_JOINTS:
        notes.error(
            line, f"transmission {name!r} couples {counted(size, 'joint')}; at most {TRANSMISSION_JOINTS} are read"
        )
        return Transmission(name, (), frozen_array(np.zeros((0, 0))), notes.at(line))
    return Transmission(
        name, joints, f.need("matrix", as_array(size, size), frozen_array(np.eye(size))), notes.at(line)
    )


__all__ = [
    "CONTACT_NUMBERS",
    "MOTOR_NUMBERS",
    "read_actuator",
    "read_contact",
    "read_motor",
    "read_spring",
    "read_transmission",
]
