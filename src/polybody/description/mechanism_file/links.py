"""Bodies, joints, loops and frames of a mechanism file; DH tables and flexible links, which become such records.

Each function reads one entry: `notes` takes its problems, `line` is where it stands. A loop is a joint whose child side
has a frame too, so both have the same words for motion and drive.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from polybody.description import shapes
from polybody.description.coordinate_units import coordinate_units
from polybody.description.dh import DH_KINDS, DHLink, dh_records
from polybody.description.fields import Fields, Notes, as_count, as_flag, as_number, as_numbers, as_text
from polybody.description.flexible import flexible_link_records
from polybody.description.mechanism_file.values import (
    as_array,
    as_axis,
    as_kind,
    as_map,
    as_pose,
    as_stages,
    mesh_path,
)
from polybody.description.mechanism_file.yaml_nodes import Mapping, Node, Sequence, describe
from polybody.description.records import (
    FRICTION_DEFAULTS,
    LOOP_DRIVE,
    UNLIMITED,
    WORLD,
    Body,
    Frame,
    Friction,
    Joint,
    Limits,
    Loop,
    Visual,
    frozen_array,
    joint_size,
)
from polybody.description.units import ANGLE, LENGTH, MASS
from polybody.errors import InputError
from polybody.names import listed, nearest

JOINT_MOTION = ("kind", "axis", "pitch", "map", "stages")
JOINT_DRIVE = ("stiffness", "damping", "friction", "rest", "armature", "limits", "active")
#: A joint's words for the ends of a loop, which are accepted too: a loop is a joint whose child side has a frame too.
LOOP_WORDS = {"parent": "body_a", "child": "body_b", "origin": "origin_a", "child_origin": "origin_b"}
#: limits that are said in the joint's coordinates; the others are in SI
LIMITS_OF_MOTION = ("lower", "upper", "velocity")
SHAPE_SIZES = {"mesh": 3, "box": 3, "cylinder": 2, "sphere": 1}
#: What to tell who writes a loop's words in a joint.
_LOOPS_WORDS = {
    word: f"; a joint has {ours!r} (the frame of its child is the joint's own: only a loop has 'origin_b')"
    for ours, word in LOOP_WORDS.items()
}


def read_body(notes: Notes, name: str, line: int, node: Node) -> Body:
    f = Fields(notes, f"body {name!r}", node, ("mass", "com", "inertia", "visuals"))
    return Body(
        name,
        f.get("mass", as_number(MASS), 0.0),
        f.get("com", as_array(3, dimensions=(LENGTH,)), frozen_array(np.zeros(3))),
        f.get("inertia", lambda w, n: shapes.inertia_matrix(w, as_numbers()(w, n)), frozen_array(np.zeros((3, 3)))),
        f.get("visuals", lambda w, n: _visuals(notes, w, n), ()),
        source=notes.at(line),
    )


def _visuals(notes: Notes, what: str, node: Node) -> tuple[Visual, ...]:
    if not isinstance(node, Sequence):
        raise InputError(f"{what} must be a list, got {describe(node)}")
    result = []
    notes.shapes += len(node.items)
    notes.count("visuals", notes.shapes)
    for i, item in enumerate(node.items):
        f = Fields(notes, f"{what}[{i}]", item, ("shape", "size", "origin", "mesh", "color"))
        shape = f.need("shape", as_text, "sphere")
        if shape not in SHAPE_SIZES:
            notes.error(
                f.line,
                f"{what}[{i}]: no shape {shape!r}{nearest(shape, SHAPE_SIZES)}; available: {listed(SHAPE_SIZES)}",
            )
            continue
        size = f.get(
            "size", as_array(SHAPE_SIZES[shape], dimensions=(LENGTH,)), frozen_array(np.ones(SHAPE_SIZES[shape]))
        )
        mesh = f.get("mesh", lambda w, n: mesh_path(w, as_text(w, n)), None)
        color = f.get("color", lambda w, n: tuple(float(x) for x in as_array(4)(w, n)), None)
        origin = f.get("origin", as_pose(notes), frozen_array(np.eye(4)))
        result.append(Visual(shape, size, origin, mesh, color))  # type: ignore[arg-type]
    return tuple(result)


def read_joint(notes: Notes, name: str, line: int, node: Node) -> Joint:
    f = Fields(notes, f"joint {name!r}", node, ("parent", "child", "origin", *JOINT_MOTION, *JOINT_DRIVE), _LOOPS_WORDS)
    bare = Joint(
        name,
        parent=f.need("parent", as_text, WORLD),
        child=f.need("child", as_text, WORLD),
        origin=f.get("origin", as_pose(notes), frozen_array(np.eye(4))),
        source=notes.at(line),
        **motion_fields(f),
    )
    return Joint(**{**bare.__dict__, **drive_fields(notes, f, bare, JOINT_DRIVE)})


def read_loop(notes: Notes, name: str, line: int, node: Node) -> Loop:
    f = Fields(notes, f"loop {name!r}", node, (*LOOP_WORDS, *LOOP_WORDS.values(), *JOINT_MOTION, *LOOP_DRIVE))
    for joints_word, word in LOOP_WORDS.items():
        if joints_word in f and word in f:
            notes.error(line, f"loop {name!r} has {joints_word!r} and {word!r}, two names for the same key; keep one")

    def called(word: str, joints_word: str) -> str:
        return joints_word if joints_word in f else word

    bare = Loop(
        name,
        body_a=f.need(called("body_a", "parent"), as_text, WORLD),
        body_b=f.need(called("body_b", "child"), as_text, WORLD),
        origin_a=f.get(called("origin_a", "origin"), as_pose(notes), frozen_array(np.eye(4))),
        origin_b=f.get(called("origin_b", "child_origin"), as_pose(notes), frozen_array(np.eye(4))),
        source=notes.at(line),
        **motion_fields(f),
    )
    return Loop(**{**bare.__dict__, **drive_fields(notes, f, bare, LOOP_DRIVE)})


def motion_fields(f: Fields) -> dict[str, Any]:
    """kind, axis, pitch, map and stages of a joint or a loop."""
    return {
        "kind": f.need("kind", as_kind, "fixed"),
        "axis": f.get("axis", as_axis, frozen_array((0.0, 0.0, 1.0))),
        "pitch": f.get("pitch", as_number(LENGTH), None),
        "map": f.get("map", as_map, None),
        "stages": f.get("stages", as_stages, None),
    }


def drive_fields(notes: Notes, f: Fields, bare: Joint | Loop, keys: tuple[str, ...]) -> dict[str, Any]:
    """Springs, dampers, limits … of a joint or a loop, in the sizes of its kind."""
    shape = () if bare.map is None else np.shape(bare.map)
    if bare.kind == "custom" and (len(shape) != 2 or shape[0] != 6):
        return {}  # its size is unknown; checks say why
    nq, nv = joint_size(bare)
    units = tuple({unit for which in "qv" for number in coordinate_units(bare, which) for unit in number})
    convert: dict[str, Callable[[str, Node], Any]] = {
        "stiffness": lambda w, n: shapes.square_matrix(w, as_numbers()(w, n), nv),
        "damping": lambda w, n: shapes.square_matrix(w, as_numbers()(w, n), nv),
        "friction": lambda w, n: _friction(notes, w, n, nv),
        "rest": lambda w, n: shapes.rest_configuration(w, as_numbers(*units)(w, n), nq),
        "armature": lambda w, n: shapes.vector(w, as_numbers()(w, n), nv),
        "limits": lambda w, n: _limits(notes, w, n, nv, units),
        "active": lambda w, n: shapes.active_flags(w, as_flag(w, n), nv),
    }
    return {key: f.get(key, convert[key], None) for key in keys}


def _friction(notes: Notes, what: str, node: Node, nv: int) -> Friction | None:
    if not isinstance(node, Mapping):
        return shapes.friction(what, as_numbers()(what, node), nv)
    f = Fields(notes, what, node, FRICTION_DEFAULTS)
    return shapes.friction(what, {key: f.get(key, as_numbers(), None) for key in FRICTION_DEFAULTS}, nv)


def _limits(notes: Notes, what: str, node: Node, nv: int, units: tuple[str, ...]) -> Limits:
    f = Fields(notes, what, node, UNLIMITED)
    given = {key: f.get(key, as_numbers(*(units if key in LIMITS_OF_MOTION else ())), None) for key in UNLIMITED}
    return shapes.joint_limits(what, {key: value for key, value in given.items() if value is not None}, nv)


def read_frame(notes: Notes, name: str, line: int, node: Node) -> Frame:
    f = Fields(notes, f"frame {name!r}", node, ("body", "origin"))
    return Frame(
        name, f.need("body", as_text, WORLD), f.get("origin", as_pose(notes), frozen_array(np.eye(4))), notes.at(line)
    )


def read_flexible_link(notes: Notes, name: str, line: int, node: Node) -> tuple[list[Body], list[Joint], list[Frame]]:
    keys = ("length", "mass_per_length", "EI", "GJ", "damping", "segments", "axis", "polar_inertia", "rotary_inertia")
    f = Fields(notes, f"flexible link {name!r}", node, keys)
    found = len(notes.problems)
    given = {
        "length": f.need("length", as_number(LENGTH), 1.0),
        "mass_per_length": f.need("mass_per_length", as_number(), 1.0),
        "EI": f.need("EI", as_numbers(), 1.0),
        "GJ": f.get("GJ", as_number(), None),
        "damping": f.get("damping", as_number(), 0.0),
        "segments": f.get("segments", as_count, 10),
        "axis": f.get("axis", as_axis, frozen_array((0.0, 0.0, 1.0))),
        "polar_inertia": f.get("polar_inertia", as_number(), None),
        "rotary_inertia": f.get("rotary_inertia", as_number(), 0.0),
    }
    notes.segments += given["segments"]
    notes.count("segments of flexible links", notes.segments)
    try:
        return flexible_link_records(name, **given, source=notes.at(line))
    except InputError as error:
        if len(notes.problems) == found:
            notes.error(line, str(error))
        return [], [], []


def read_dh_section(notes: Notes, top: Fields) -> tuple[list[Body], list[Joint], list[Frame]]:
    node = top.node("dh")
    if node is None:
        return [], [], []
    f = Fields(notes, "dh", node, ("convention", "parent", "base", "links"))
    rows = f.node("links")
    if not isinstance(rows, Sequence):
        notes.error(f.line, "dh needs 'links', a list of rows")
        return [], [], []
    notes.count("DH rows", len(rows.items))
    links = [_dh_link(notes, i, row) for i, row in enumerate(rows.items, start=1)]
    convention, parent = f.get("convention", as_text, "classical"), f.get("parent", as_text, WORLD)
    base = f.get("base", as_pose(notes), frozen_array(np.eye(4)))
    try:
        return dh_records(links, convention=convention, base=base, parent=parent)
    except InputError as error:
        notes.error(f.line, str(error))
        return [], [], []


def _dh_link(notes: Notes, index: int, node: Node) -> DHLink:
    keys = ("name", "joint", "kind", "a", "alpha", "d", "theta", "mass", "com", "inertia", *JOINT_DRIVE)
    f = Fields(notes, f"DH row {index}", node, keys)
    kind = f.get("kind", as_text, "revolute")
    bare = Joint("", kind if kind in DH_KINDS else "revolute", WORLD, WORLD)
    drive = drive_fields(notes, f, bare, JOINT_DRIVE)
    return DHLink(
        f.get("a", as_number(LENGTH), 0.0),
        f.get("alpha", as_number(ANGLE), 0.0),
        f.get("d", as_number(LENGTH), 0.0),
        f.get("theta", as_number(ANGLE), 0.0),
        kind,
        f.get("mass", as_number(MASS), 0.0),
        f.get("com", as_array(3, dimensions=(LENGTH,)), frozen_array(np.zeros(3))),
        f.get("inertia", lambda w, n: shapes.inertia_matrix(w, as_numbers()(w, n)), frozen_array(np.zeros((3, 3)))),
        f.get("name", as_text, None),
        f.get("joint", as_text, None),
        {key: value for key, value in drive.items() if value is not None},
        notes.at(node.line),
    )


__all__ = [
    "drive_fields",
    "motion_fields",
    "read_body",
    "read_dh_section",
    "read_flexible_link",
    "read_frame",
    "read_joint",
    "read_loop",
]
