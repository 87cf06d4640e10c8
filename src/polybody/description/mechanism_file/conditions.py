"""Couplings, rods, guides, relations, rolling and velocity relations of a mechanism file, and named configurations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from polybody.description import shapes
from polybody.description.coordinate_units import Units
from polybody.description.fields import Fields, Notes, as_flag, as_number, as_numbers, as_text
from polybody.description.mechanism_file.values import as_array, as_axis, as_expression
from polybody.description.mechanism_file.yaml_nodes import Mapping, Node, Scalar, Sequence, describe
from polybody.description.records import (
    WORLD,
    Configuration,
    Coupling,
    Guide,
    Relation,
    Rod,
    Rolling,
    VelocityRelation,
    frozen_array,
)
from polybody.description.units import ANGLE, LENGTH
from polybody.errors import InputError
from polybody.names import counted

Array = np.ndarray


def read_coupling(units: dict[str, Units], notes: Notes, name: str, line: int, node: Node) -> Coupling:
    f = Fields(notes, f"coupling of {name!r}", node, ("source", "ratio", "offset"))
    return Coupling(
        name,
        f.need("source", as_text, ""),
        f.get("ratio", as_number(), 1.0),
        f.get("offset", as_number(*(units.get(name) or ((ANGLE, LENGTH),))[0]), 0.0),
        notes.at(line),
    )


def read_rod(notes: Notes, name: str, line: int, node: Node) -> Rod:
    f = Fields(notes, f"rod {name!r}", node, ("body_a", "point_a", "body_b", "point_b", "length"))
    (body_a, point_a), (body_b, point_b) = _end(f, "a"), _end(f, "b")
    return Rod(name, body_a, point_a, body_b, point_b, f.need("length", as_number(LENGTH), 1.0), notes.at(line))


def read_guide(notes: Notes, name: str, line: int, node: Node) -> Guide:
    f = Fields(notes, f"guide {name!r}", node, ("kind", "body_a", "point_a", "axis", "body_b", "point_b"))
    (body_a, point_a), (body_b, point_b) = _end(f, "a"), _end(f, "b")
    axis = f.get("axis", as_axis, frozen_array((0.0, 0.0, 1.0)))
    return Guide(name, f.need("kind", as_text, "line"), body_a, point_a, axis, body_b, point_b, notes.at(line))


def _end(f: Fields, which: str) -> tuple[str, Any]:
    """The body and the point of one end."""
    point = f.get(f"point_{which}", as_array(3, dimensions=(LENGTH,)), frozen_array(np.zeros(3)))
    return f.need(f"body_{which}", as_text, WORLD), point


def read_relation(notes: Notes, name: str, line: int, node: Node) -> Relation:
    if isinstance(node, Scalar):
        return Relation(name, node.text, notes.at(line))
    f = Fields(notes, f"relation {name!r}", node, ("expression",))
    return Relation(name, f.need("expression", as_expression, ""), notes.at(line))


def read_rolling(notes: Notes, name: str, line: int, node: Node) -> Rolling:
    keys = ("body", "kind", "radius", "point", "axis", "normal", "ground", "lateral")
    f = Fields(notes, f"rolling {name!r}", node, keys)
    given: dict[str, Any] = {
        "radius": f.get("radius", lambda w, n: frozen_array(np.atleast_1d(as_numbers(LENGTH)(w, n))), None),
        "point": f.get("point", as_array(3, dimensions=(LENGTH,)), None),
        "axis": f.get("axis", as_axis, None),
        "normal": f.get("normal", as_axis, None),
        "ground": f.get("ground", as_array(3, dimensions=(LENGTH,)), None),
        "lateral": f.get("lateral", as_flag, None),
    }
    said = {key: value for key, value in given.items() if value is not None}
    body, kind = f.need("body", as_text, WORLD), f.need("kind", as_text, "wheel")
    return Rolling(name, body, kind, **said, source=notes.at(line))


def read_velocity_relation(notes: Notes, name: str, line: int, node: Node) -> VelocityRelation:
    owner = f"velocity relation {name!r}"
    if not isinstance(node, Mapping):
        notes.error(line, f"{owner} must be a mapping from joints to coefficients, got {describe(node)}")
        return VelocityRelation(name, (), notes.at(line))
    terms, equals = [], "0"
    for key, (where, value) in node.pairs.items():
        if not isinstance(value, Scalar):
            notes.error(where, f"{owner}: {key} must be a number or an expression, got {describe(value)}")
            continue
        if key == "=":
            equals = value.text
        else:
            terms.append((*shapes.velocity_name(key), value.text))
    return VelocityRelation(name, tuple(terms), notes.at(line), equals)


def read_configuration(units: dict[str, Units], notes: Notes, name: str, line: int, node: Node) -> Configuration:
    f = Fields(notes, f"configuration {name!r}", node, units)
    said = {joint: f.get(joint, _coordinates(units[joint]), frozen_array([])) for joint in f.pairs if joint in units}
    return Configuration(name, tuple((joint, tuple(map(float, q))) for joint, q in said.items()), notes.at(line))


def _coordinates(units: Units) -> Callable[[str, Node], Array]:
    """Numbers of a joint's q, each in the unit of its coordinate: one, or a list."""

    def convert(what: str, node: Node) -> Array:
        nodes = node.items if isinstance(node, Sequence) else (node,)
        if len(nodes) != len(units):
            raise InputError(f"{what} has {counted(len(nodes), 'number')}, expected {len(units)}")
        return np.array([as_number(*unit)(what, part) for unit, part in zip(units, nodes, strict=True)])

    return convert


__all__ = [
    "read_configuration",
    "read_coupling",
    "read_guide",
    "read_relation",
    "read_rod",
    "read_rolling",
    "read_velocity_relation",
]
