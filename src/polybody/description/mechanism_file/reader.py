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

import numpy as np

from polybody.description import shapes
from polybody.description.coordinate_units import Units, coordinate_units
from polybody.description.dh import DH_KINDS, DHLink, dh_records
from polybody.description.fields import Fields, Notes, as_count, as_flag, as_number, as_numbers, as_text
from polybody.description.flexible import flexible_link_records
from polybody.description.limits import EXPRESSIONS_TOGETHER, TRANSMISSION_JOINTS
from polybody.description.mechanism_file.constants import with_constants
from polybody.description.mechanism_file.values import (
    as_array,
    as_axis,
    as_kind,
    as_map,
    as_names,
    as_pose,
    as_stages,
    mesh_path,
)
from polybody.description.mechanism_file.yaml_nodes import Mapping, Node, Scalar, Sequence, compose, describe, plain
from polybody.description.naming import name_problem, shown
from polybody.description.problems import Problem, raise_errors
from polybody.description.records import (
    FRICTION_DEFAULTS,
    LOOP_DRIVE,
    UNLIMITED,
    WORLD,
    Actuator,
    Body,
    Configuration,
    Contact,
    Coupling,
    Description,
    Frame,
    Friction,
    Guide,
    Joint,
    Limits,
    Loop,
    Motor,
    Relation,
    Rod,
    Rolling,
    Spring,
    Transmission,
    VelocityRelation,
    Visual,
    frozen_array,
    joint_size,
)
from polybody.description.units import ANGLE, LENGTH, MASS
from polybody.errors import InputError
from polybody.names import counted, listed, nearest

Array = np.ndarray
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
JOINT_MOTION = ("kind", "axis", "pitch", "map", "stages")
JOINT_DRIVE = ("stiffness", "damping", "friction", "rest", "armature", "limits", "active")
#: A joint's words for the ends of a loop, which are accepted too: a loop is a joint whose child side has a frame too.
LOOP_WORDS = {"parent": "body_a", "child": "body_b", "origin": "origin_a", "child_origin": "origin_b"}
#: limits that are said in the joint's coordinates; the others are in SI
LIMITS_OF_MOTION = ("lower", "upper", "velocity")
SHAPE_SIZES = {"mesh": 3, "box": 3, "cylinder": 2, "sphere": 1}


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
    tables = _dh_section(notes, top)
    chains = _section(notes, top, "flexible_links", _flexible_link)
    bodies = (*tables[0], *_section(notes, top, "bodies", _body), *(b for c in chains for b in c[0]))
    joints = (*tables[1], *_section(notes, top, "joints", _joint), *(j for c in chains for j in c[1]))
    units = {joint.name: coordinate_units(joint) for joint in joints}
    description = Description(
        name=top.get("name", as_text, name),
        gravity=top.get("gravity", as_array(3), frozen_array((0.0, 0.0, -9.81))),
        bodies=bodies,
        joints=joints,
        frames=(*tables[2], *_section(notes, top, "frames", _frame), *(f for c in chains for f in c[2])),
        loops=_section(notes, top, "loops", _loop),
        springs=_section(notes, top, "springs", _spring),
        contacts=_section(notes, top, "contacts", _contact),
        actuators=_section(notes, top, "actuators", _actuator),
        rolling=_section(notes, top, "rolling", _rolling),
        velocity_relations=_section(notes, top, "velocity_relations", _velocity_relation),
        couplings=_section(notes, top, "couplings", partial(_coupling, units)),
        motors=_section(notes, top, "motors", _motor),
        transmissions=_section(notes, top, "transmissions", _transmission),
        rods=_section(notes, top, "rods", _rod),
        guides=_section(notes, top, "guides", _guide),
        relations=_section(notes, top, "relations", _relation),
        configurations=_section(notes, top, "configurations", partial(_configuration, units)),
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


def _body(notes: Notes, name: str, line: int, node: Node) -> Body:
    f = Fields(notes, f"body {name!r}", node, ("mass", "com", "inertia", "visuals"))
    return Body(
        name,
        f.get("mass", as_number(MASS), 0.0),
        f.get("com", as_array(3, dimensions=(LENGTH,)), frozen_array(np.zeros(3))),
        f.get("inertia", lambda w, n: shapes.inertia_matrix(w, as_numbers()(w, n)), frozen_array(np.zeros((3, 3)))),
        f.get("visuals", lambda w, n: _visuals(notes, w, n), ()),
        source=notes.at(line),
    )


def _motion(f: Fields) -> dict[str, Any]:
    """kind, axis, pitch, map and stages of a joint or a loop."""
    return {
        "kind": f.need("kind", as_kind, "fixed"),
        "axis": f.get("axis", as_axis, frozen_array((0.0, 0.0, 1.0))),
        "pitch": f.get("pitch", as_number(LENGTH), None),
        "map": f.get("map", as_map, None),
        "stages": f.get("stages", as_stages, None),
    }


#: What to tell who writes a loop's words in a joint.
_LOOPS_WORDS = {
    word: f"; a joint has {ours!r} (the frame of its child is the joint's own: only a loop has 'origin_b')"
    for ours, word in LOOP_WORDS.items()
}


def _joint(notes: Notes, name: str, line: int, node: Node) -> Joint:
    f = Fields(notes, f"joint {name!r}", node, ("parent", "child", "origin", *JOINT_MOTION, *JOINT_DRIVE), _LOOPS_WORDS)
    bare = Joint(
        name,
        parent=f.need("parent", as_text, WORLD),
        child=f.need("child", as_text, WORLD),
        origin=f.get("origin", as_pose(notes), frozen_array(np.eye(4))),
        source=notes.at(line),
        **_motion(f),
    )
    return Joint(**{**bare.__dict__, **_drive(notes, f, bare, JOINT_DRIVE)})


def _drive(notes: Notes, f: Fields, bare: Joint | Loop, keys: tuple[str, ...]) -> dict[str, Any]:
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


def _frame(notes: Notes, name: str, line: int, node: Node) -> Frame:
    f = Fields(notes, f"frame {name!r}", node, ("body", "origin"))
    return Frame(
        name, f.need("body", as_text, WORLD), f.get("origin", as_pose(notes), frozen_array(np.eye(4))), notes.at(line)
    )


def _loop(notes: Notes, name: str, line: int, node: Node) -> Loop:
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
        **_motion(f),
    )
    return Loop(**{**bare.__dict__, **_drive(notes, f, bare, LOOP_DRIVE)})


def _spring(notes: Notes, name: str, line: int, node: Node) -> Spring:
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


CONTACT_NUMBERS = ("stiffness", "damping", "friction", "radius", "exponent", "slip")


def _contact(notes: Notes, name: str, line: int, node: Node) -> Contact:
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


def _actuator(notes: Notes, name: str, line: int, node: Node) -> Actuator:
    f = Fields(notes, f"actuator {name!r}", node, ("joint", "gain", "bias", "gear", "control", "limit", "coordinate"))
    given: dict[str, Any] = {key: f.get(key, as_number(), None) for key in ("gain", "gear")}
    given |= {key: f.get(key, as_array(n), None) for key, n in (("bias", 3), ("control", 2), ("limit", 2))}
    given["coordinate"] = f.get("coordinate", as_count, None)
    said = {key: value for key, value in given.items() if value is not None}
    return Actuator(name, f.need("joint", as_text, ""), **said, source=notes.at(line))


def _rolling(notes: Notes, name: str, line: int, node: Node) -> Rolling:
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


def _velocity_relation(notes: Notes, name: str, line: int, node: Node) -> VelocityRelation:
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


def _configuration(units: dict[str, Units], notes: Notes, name: str, line: int, node: Node) -> Configuration:
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


def _coupling(units: dict[str, Units], notes: Notes, name: str, line: int, node: Node) -> Coupling:
    f = Fields(notes, f"coupling of {name!r}", node, ("source", "ratio", "offset"))
    return Coupling(
        name,
        f.need("source", as_text, ""),
        f.get("ratio", as_number(), 1.0),
        f.get("offset", as_number(*(units.get(name) or ((ANGLE, LENGTH),))[0]), 0.0),
        notes.at(line),
    )


def _rod(notes: Notes, name: str, line: int, node: Node) -> Rod:
    f = Fields(notes, f"rod {name!r}", node, ("body_a", "point_a", "body_b", "point_b", "length"))
    (body_a, point_a), (body_b, point_b) = _end(f, "a"), _end(f, "b")
    return Rod(name, body_a, point_a, body_b, point_b, f.need("length", as_number(LENGTH), 1.0), notes.at(line))


def _guide(notes: Notes, name: str, line: int, node: Node) -> Guide:
    f = Fields(notes, f"guide {name!r}", node, ("kind", "body_a", "point_a", "axis", "body_b", "point_b"))
    (body_a, point_a), (body_b, point_b) = _end(f, "a"), _end(f, "b")
    axis = f.get("axis", as_axis, frozen_array((0.0, 0.0, 1.0)))
    return Guide(name, f.need("kind", as_text, "line"), body_a, point_a, axis, body_b, point_b, notes.at(line))


def _end(f: Fields, which: str) -> tuple[str, Any]:
    """The body and the point of one end."""
    point = f.get(f"point_{which}", as_array(3, dimensions=(LENGTH,)), frozen_array(np.zeros(3)))
    return f.need(f"body_{which}", as_text, WORLD), point


def _relation(notes: Notes, name: str, line: int, node: Node) -> Relation:
    if isinstance(node, Scalar):
        return Relation(name, node.text, notes.at(line))
    f = Fields(notes, f"relation {name!r}", node, ("expression",))
    return Relation(name, f.need("expression", as_expression, ""), notes.at(line))


def as_expression(what: str, node: Node) -> str:
    if not isinstance(node, Scalar) or not node.text:
        raise InputError(f"{what} must be an expression, got {describe(node)}")
    return node.text


MOTOR_NUMBERS = ("resistance", "inductance", "torque_constant", "speed_constant", "rotor_inertia", "damping", "gear")


def _motor(notes: Notes, name: str, line: int, node: Node) -> Motor:
    f = Fields(notes, f"motor {name!r}", node, ("joint", *MOTOR_NUMBERS, "coordinate"))
    needed = {key: f.need(key, as_number(), 1.0) for key in MOTOR_NUMBERS[:4]}
    more = {key: f.get(key, as_number(), 1.0 if key == "gear" else 0.0) for key in MOTOR_NUMBERS[4:]}
    coordinate = f.get("coordinate", as_count, 0)
    return Motor(name, f.need("joint", as_text, ""), **needed, **more, coordinate=coordinate, source=notes.at(line))


def _transmission(notes: Notes, name: str, line: int, node: Node) -> Transmission:
    f = Fields(notes, f"transmission {name!r}", node, ("joints", "matrix"))
    joints = f.need("joints", as_names, ())
    size = len(joints)
    if size > TRANSMISSION_JOINTS:
        notes.error(
            line,
            f"transmission {name!r} couples {counted(size, 'joint')}; at most {TRANSMISSION_JOINTS} are read"
        )
        return Transmission(name, (), frozen_array(np.zeros((0, 0))), notes.at(line))
    return Transmission(
        name, joints, f.need("matrix", as_array(size, size), frozen_array(np.eye(size))), notes.at(line)
    )


def _flexible_link(notes: Notes, name: str, line: int, node: Node) -> tuple[list[Body], list[Joint], list[Frame]]:
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


def _dh_section(notes: Notes, top: Fields) -> tuple[list[Body], list[Joint], list[Frame]]:
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
    drive = _drive(notes, f, bare, JOINT_DRIVE)
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


__all__ = ["read_mechanism", "scan_mechanism", "schema"]
