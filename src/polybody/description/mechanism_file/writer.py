"""Writing mechanism files: what is read back is the same description, bit by bit.

Numbers are written as the shortest text that reads back to the same float. A rotation is written as roll, pitch, yaw
only where these give back every bit, else as its matrix. What a record leaves unsaid is not written. Sources are not
kept: they are the new file's lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from polybody.algebra.rotations import matrix_rpy, rpy_matrix
from polybody.description.checks import check_description
from polybody.description.mechanism_file.forces import CONTACT_NUMBERS, MOTOR_NUMBERS
from polybody.description.mechanism_file.reader import VERSION
from polybody.description.mechanism_file.values import mesh_path
from polybody.description.problems import raise_errors
from polybody.description.records import (
    FRICTION_DEFAULTS,
    UNLIMITED,
    Actuator,
    Array,
    Body,
    Contact,
    Description,
    Friction,
    Guide,
    Joint,
    Limits,
    Loop,
    Rod,
    Rolling,
    VelocityRelation,
    Visual,
)
from polybody.errors import warn

_PLAIN_NAME = re.compile(r"[A-Za-z_][\w./-]*", re.ASCII)
_RESERVED = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}


def mechanism_text(description: Description) -> str:
    """The mechanism file of a description; one with errors raises an error."""
    if description.bodies or description.network is None:  # else it is the file of a network, with no model of its own
        raise_errors(check_description(description), repr(description.name))
    if description.formulas:
        names = ", ".join(constant.name for constant in description.constants)
        warn(f"the constants {names} are written as numbers: expressions of them are not kept")
    return "\n".join(_lines(description)) + "\n"


def _lines(d: Description) -> Iterator[str]:
    yield f"polybody: {VERSION}"
    yield f"name: {text(d.name)}"
    yield f"gravity: {numbers(d.gravity)}"
    yield from _section("bodies", {body.name: _body(body) for body in d.bodies})
    yield from _section("joints", {joint.name: _joint(joint) for joint in d.joints})
    frames = {frame.name: {"body": text(frame.body), "origin": _pose(frame.origin)} for frame in d.frames}
    yield from _section("frames", frames)
    yield from _section("loops", {loop.name: _loop(loop) for loop in d.loops})
    springs = {
        s.name: {
            "body_a": text(s.body_a),
            "point_a": numbers(s.point_a),
            "body_b": text(s.body_b),
            "point_b": numbers(s.point_b),
            "stiffness": number(s.stiffness),
            "length": number(s.length),
            "damping": number(s.damping),
        }
        for s in d.springs
    }
    yield from _section("springs", springs)
    yield from _section("contacts", {c.name: _contact(c) for c in d.contacts})
    yield from _section("actuators", {a.name: _actuator(a) for a in d.actuators})
    yield from _section("rolling", {r.name: _rolling(r) for r in d.rolling})
    yield from _section("velocity_relations", {r.name: _rates(r) for r in d.velocity_relations})
    couplings = {
        c.joint: {"source": text(c.source_joint), "ratio": number(c.ratio), "offset": number(c.offset)}
        for c in d.couplings
    }
    yield from _section("couplings", couplings)
    motors = {
        m.name: {
            "joint": text(m.joint),
            **{key: number(getattr(m, key)) for key in MOTOR_NUMBERS},
            "coordinate": str(m.coordinate),
        }
        for m in d.motors
    }
    yield from _section("motors", motors)
    transmissions = {
        t.name: {"joints": f"[{', '.join(quoted(joint) for joint in t.joints)}]", "matrix": numbers(t.matrix)}
        for t in d.transmissions
    }
    yield from _section("transmissions", transmissions)
    rods = {rod.name: {**_ends(rod), "length": number(rod.length)} for rod in d.rods}
    yield from _section("rods", rods)
    guides = {guide.name: {"kind": guide.kind, **_ends(guide), "axis": numbers(guide.axis)} for guide in d.guides}
    yield from _section("guides", guides)
    yield from _section("configurations", {c.name: {j: numbers(q) for j, q in c.joints} for c in d.configurations})
    if d.network is not None:
        import yaml

        text_of = yaml.safe_dump({"network": d.network}, sort_keys=False, allow_unicode=True, default_flow_style=None)
        yield from text_of.rstrip("\n").split("\n")
    yield from _section("relations", {r.name: {"expression": quoted(r.expression)} for r in d.relations})


def _ends(record: Rod | Guide) -> dict[str, str | None]:
    return {
        "body_a": text(record.body_a),
        "point_a": numbers(record.point_a),
        "body_b": text(record.body_b),
        "point_b": numbers(record.point_b),
    }


def _section(title: str, records: Mapping[str, Mapping[str, str | None]]) -> Iterator[str]:
    if not records:
        return
    yield ""
    yield f"{title}:"
    for name, fields in records.items():
        yield f"  {text(name)}:"
        said = {key: value for key, value in fields.items() if value is not None}
        if not said:
            yield "    {}"
        for key, value in said.items():
            yield f"    {key}: {value}"


def text(value: str) -> str:
    """A name, quoted where YAML could take it for something else."""
    return value if _PLAIN_NAME.fullmatch(value) and value.lower() not in _RESERVED else quoted(value)


def number(value: Any) -> str:
    """The shortest text of a float that reads back to the same bits."""
    value = float(value)
    if np.isinf(value):
        return ".inf" if value > 0 else "-.inf"
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def numbers(values: Any) -> str:
    """A number, a list or rows, in flow style."""
    if np.ndim(values) == 0:
        return number(values)
    return f"[{', '.join(numbers(row) for row in values)}]"


def _pose(matrix: Array) -> str | None:
    """None for the identity; [x, y, z] for a shift; else xyz with rpy where that keeps every bit, or the rotation."""
    R, p = np.asarray(matrix)[:3, :3], np.asarray(matrix)[:3, 3]
    if np.array_equal(R, np.eye(3)):
        return None if not p.any() else numbers(p)
    rpy = matrix_rpy(R)
    turn = f"rpy: {numbers(rpy)}" if np.array_equal(rpy_matrix(rpy), R) else f"rotation: {numbers(R)}"
    return f"{{xyz: {numbers(p)}, {turn}}}"


def _inertia(inertia: Array) -> str | None:
    matrix = np.asarray(inertia)
    if not matrix.any():
        return None
    if not np.array_equal(matrix, matrix.T):
        return numbers(matrix)
    off = matrix[[0, 0, 1], [1, 2, 2]]
    return numbers([*np.diag(matrix), *(off if off.any() else ())])


def _body(body: Body) -> dict[str, str | None]:
    return {
        "mass": number(body.mass),
        "com": numbers(body.com) if np.any(body.com) else None,
        "inertia": _inertia(body.inertia),
        "visuals": f"[{', '.join(_visual(body.name, visual) for visual in body.visuals)}]" if body.visuals else None,
    }


def _visual(body: str, visual: Visual) -> str:
    fields = {
        "shape": visual.shape,
        "size": numbers(np.atleast_1d(visual.size)),
        "origin": _pose(visual.origin),
        "mesh": None if visual.mesh is None else quoted(mesh_path(f"body {body!r}: mesh", visual.mesh)),
        "color": None if visual.color is None else numbers(visual.color),
    }
    return f"{{{', '.join(f'{key}: {value}' for key, value in fields.items() if value is not None)}}}"


def quoted(value: str) -> str:
    """Always in quotes: safe inside flow style."""
    if value.isascii() and value.isprintable() and not {'"', "\\"} & set(value):  # nothing to escape: most names are so
        return f'"{value}"'
    import yaml

    return yaml.safe_dump(value, default_style='"', allow_unicode=True, width=2**20).rstrip("\n")


def _motion(record: Joint | Loop) -> dict[str, str | None]:
    return {
        "axis": None if np.array_equal(record.axis, (0, 0, 1)) else numbers(record.axis),
        "pitch": None if record.pitch is None else number(record.pitch),
        "map": None if record.map is None else numbers(record.map),
        "stages": None if record.stages is None else numbers(record.stages),
    }


def _drive(record: Joint | Loop) -> dict[str, str | None]:
    return {
        "stiffness": _square(record.stiffness),
        "damping": _square(record.damping),
        "friction": None if record.friction is None else _friction(record.friction),
        "rest": None if record.rest is None else numbers(record.rest),
        "armature": None if record.armature is None else numbers(record.armature),
        "limits": None if record.limits is None else _limits(record.limits),
    }


def _joint(joint: Joint) -> dict[str, str | None]:
    return {
        "kind": joint.kind,
        "parent": text(joint.parent),
        "child": text(joint.child),
        "origin": _pose(joint.origin),
        **_motion(joint),
        **_drive(joint),
        "active": None if joint.active is None else f"[{', '.join(str(flag).lower() for flag in joint.active)}]",
    }


def _contact(c: Contact) -> dict[str, str | None]:
    plain = Contact(c.name, c.body, c.points, c.stiffness)
    said = {
        key: number(getattr(c, key))
        for key in CONTACT_NUMBERS
        if key == "stiffness" or getattr(c, key) != getattr(plain, key)
    }
    arrays = {key: getattr(c, key) for key in ("point", "normal", "heights", "extent")}
    told = {k: numbers(x) for k, x in arrays.items() if x is not None and not np.array_equal(x, getattr(plain, k))}
    terrain = {} if c.terrain is None else {"terrain": quoted(c.terrain)}
    return {"body": text(c.body), "points": numbers(c.points), **said, **told, **terrain}


def _actuator(a: Actuator) -> dict[str, str | None]:
    plain = Actuator(a.name, a.joint)
    told = {k: number(getattr(a, k)) for k in ("gain", "gear") if getattr(a, k) != getattr(plain, k)}
    arrays = {k: getattr(a, k) for k in ("bias", "control", "limit")}
    told |= {k: numbers(x) for k, x in arrays.items() if not np.array_equal(x, getattr(plain, k))}
    return {"joint": text(a.joint), **told, **({"coordinate": str(a.coordinate)} if a.coordinate else {})}


def _rates(r: VelocityRelation) -> dict[str, str | None]:
    terms: dict[str, str | None] = {
        quoted(f"{joint}[{k}]" if k else joint): quoted(value) for joint, k, value in r.terms
    }
    return terms if r.equals == "0" else {**terms, quoted("="): quoted(r.equals)}


def _rolling(r: Rolling) -> dict[str, str | None]:
    plain = Rolling(r.name, r.body, r.kind)
    arrays = {key: getattr(r, key) for key in ("radius", "point", "axis", "normal", "ground")}
    told = {k: numbers(x) for k, x in arrays.items() if not np.array_equal(x, getattr(plain, k))}
    return {"body": text(r.body), "kind": r.kind, **told, **({} if r.lateral else {"lateral": "false"})}


def _square(matrix: Array | None) -> str | None:
    if matrix is None:
        return None
    diagonal = np.diag(matrix)
    return numbers(diagonal if np.array_equal(np.diag(diagonal), matrix) else matrix)


def _friction(friction: Friction) -> str:
    said = {key: getattr(friction, key) for key in FRICTION_DEFAULTS}
    implied = {**FRICTION_DEFAULTS, "static": friction.coulomb}
    told = {key: numbers(values) for key, values in said.items() if not np.all(values == implied[key])}
    if list(told) == ["coulomb"]:
        return told["coulomb"]
    return f"{{{', '.join(f'{key}: {values}' for key, values in told.items())}}}"


def _limits(limits: Limits) -> str:
    said = {
        key: numbers(getattr(limits, key))
        for key, value in UNLIMITED.items()
        if getattr(limits, key) is not None and not np.all(np.asarray(getattr(limits, key)) == value)
    }
    return f"{{{', '.join(f'{key}: {value}' for key, value in said.items())}}}"


def _loop(loop: Loop) -> dict[str, str | None]:
    return {
        "kind": loop.kind,
        "body_a": text(loop.body_a),
        "body_b": text(loop.body_b),
        "origin_a": _pose(loop.origin_a),
        "origin_b": _pose(loop.origin_b),
        **_motion(loop),
        **_drive(loop),
    }


__all__ = ["mechanism_text", "quoted"]
