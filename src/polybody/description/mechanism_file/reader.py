"""The mechanism file: YAML that says everything a description can hold.

    polybody: 1                       # the format's version
    name: pendulum
    gravity: [0, 0, -9.81]
    bodies:
      bob: {mass: 1, com: [0, 0, -0.5], inertia: [0.02, 0.02, 0.001]}
    joints:
      hinge: {kind: revolute, parent: world, child: bob, axis: y, limits: {lower: -90deg, upper: 90deg}}
    frames: … loops: … springs: … couplings: … rods: … guides: … relations: … motors: … transmissions: … dh: …
    flexible_links: …

`mechanism.schema.json` beside this file states the grammar (`polybody schema` prints it). `scan_mechanism` collects
every problem with its line and goes on; `read_mechanism` raises them as one error. A `dh` table is turned into bodies,
joints and frames while reading; its links come before those of `bodies`. `flexible_links` become chains of elastic
joints, after those of `bodies` and `joints`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from polybody.description.coordinate_units import coordinate_units
from polybody.description.fields import Fields, Notes, as_count, as_text
from polybody.description.limits import EXPRESSIONS_TOGETHER
from polybody.description.mechanism_file.conditions import (
    read_configuration,
    read_coupling,
    read_guide,
    read_relation,
    read_rod,
    read_rolling,
    read_velocity_relation,
)
from polybody.description.mechanism_file.constants import with_constants
from polybody.description.mechanism_file.forces import (
    read_actuator,
    read_contact,
    read_motor,
    read_spring,
    read_transmission,
)
from polybody.description.mechanism_file.links import (
    read_body,
    read_dh_section,
    read_flexible_link,
    read_frame,
    read_joint,
    read_loop,
)
from polybody.description.mechanism_file.values import as_array
from polybody.description.mechanism_file.yaml_nodes import Mapping, Node, Scalar, compose, describe, plain
from polybody.description.naming import name_problem, shown
from polybody.description.problems import Problem, raise_errors
from polybody.description.records import Description, frozen_array
from polybody.errors import InputError

VERSION = 1
SECTIONS = (
    "polybody",
    "name",
    "parameters",
    "gravity",
    "dh",
    "bodies",
    "flexible_links",
    "joints",
    "frames",
    "loops",
    "springs",
    "contacts",
    "actuators",
    "rolling",
    "velocity_relations",
    "couplings",
    "motors",
    "transmissions",
    "rods",
    "guides",
    "relations",
    "configurations",
    "network",
)
#: what a mechanism inside a file does not say again
INNER = tuple(key for key in SECTIONS if key not in ("polybody", "parameters", "network"))


def schema() -> dict[str, Any]:
    """The JSON Schema of mechanism files."""
    return json.loads(Path(__file__).with_name("mechanism.schema.json").read_text(encoding="utf-8"))


def read_mechanism(text: str, where: str) -> Description:
    """The description a YAML text says; one `InputError` with every problem. `where` names the file."""
    description, problems = scan_mechanism(text, where)
    raise_errors(problems, where)
    return description


def scan_mechanism(text: str, where: str) -> tuple[Description, list[Problem]]:
    """What could be read, and every problem met in reading."""
    root = compose(text, where)
    return with_constants(root, where, lambda: _scan(root, where))


def inner_mechanism(notes: Notes, name: str, node: Node) -> Description:
    """A mechanism that stands inside a file, under a name of its own, its expressions worked out."""
    return _described(notes, Fields(notes, f"model {name!r}", node, INNER), name)


def _scan(root: Node, where: str) -> tuple[Description, list[Problem]]:
    notes = Notes(where)
    top = Fields(notes, "the file", root, SECTIONS)
    if "polybody" not in top:
        notes.error(top.line, f"the first line must be 'polybody: {VERSION}', the version of the format")
    elif top.get("polybody", as_count, VERSION) != VERSION:
        notes.error(top.pairs["polybody"][0], f"this polybody reads version {VERSION} of the format")
    return _described(notes, top, Path(where).stem), notes.problems


def _described(notes: Notes, top: Fields, name: str) -> Description:
    tables = read_dh_section(notes, top)
    chains = _section(notes, top, "flexible_links", read_flexible_link)
    bodies = (*tables[0], *_section(notes, top, "bodies", read_body), *(b for c in chains for b in c[0]))
    joints = (*tables[1], *_section(notes, top, "joints", read_joint), *(j for c in chains for j in c[1]))
    units = {joint.name: coordinate_units(joint) for joint in joints}
    description = Description(
        name=top.get("name", as_text, name),
        gravity=top.get("gravity", as_array(3), frozen_array((0.0, 0.0, -9.81))),
        bodies=bodies,
        joints=joints,
        frames=(*tables[2], *_section(notes, top, "frames", read_frame), *(f for c in chains for f in c[2])),
        loops=_section(notes, top, "loops", read_loop),
        springs=_section(notes, top, "springs", read_spring),
        contacts=_section(notes, top, "contacts", read_contact),
        actuators=_section(notes, top, "actuators", read_actuator),
        rolling=_section(notes, top, "rolling", read_rolling),
        velocity_relations=_section(notes, top, "velocity_relations", read_velocity_relation),
        couplings=_section(notes, top, "couplings", partial(read_coupling, units)),
        motors=_section(notes, top, "motors", read_motor),
        transmissions=_section(notes, top, "transmissions", read_transmission),
        rods=_section(notes, top, "rods", read_rod),
        guides=_section(notes, top, "guides", read_guide),
        relations=_section(notes, top, "relations", read_relation),
        configurations=_section(notes, top, "configurations", partial(read_configuration, units)),
        network=None if (network := top.node("network")) is None else plain(network),
        source=notes.where,
    )
    _refuse_many_expressions(description, notes.where)
    return description


def _refuse_many_expressions(description: Description, where: str) -> None:
    texts = [relation.expression for relation in description.relations]
    texts += [text for row in description.velocity_relations for *_, text in row.terms]
    weight = sum(len(text) + 50 for text in texts)
    if weight > EXPRESSIONS_TOGETHER:
        raise InputError(
            f"{where}: its {len(texts)} expressions are {sum(map(len, texts))} characters together; at most "
            f"{EXPRESSIONS_TOGETHER} are read, each expression counted with 50 more"
        )


def _section(notes: Notes, top: Fields, key: str, read: Callable[[Notes, str, int, Node], Any]) -> tuple[Any, ...]:
    """The records of a section, a mapping from names."""
    node = top.node(key)
    if node is None or (isinstance(node, Scalar) and node.text in ("", "~", "null")):
        return ()
    if not isinstance(node, Mapping):
        notes.error(node.line, f"{key} must be a mapping from names, got {describe(node)}")
        return ()
    notes.count(key, len(node.pairs))
    records = []
    for name, (line, value) in node.pairs.items():
        problem = name_problem(name)
        if problem is not None:
            notes.error(line, f"{key}: the name {shown(name)} {problem}")
        else:
            records.append(read(notes, name, line, value))
    return tuple(records)


__all__ = ["read_mechanism", "scan_mechanism", "schema"]
