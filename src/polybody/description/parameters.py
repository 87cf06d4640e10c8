"""Numbers of a description by name, and descriptions with other numbers in their place.

A parameter is one number of a record, named by its owner and field: `forearm.mass`, `forearm.com.x`,
`forearm.inertia.xy`, `elbow.origin.z`, `elbow.axis.x`, `elbow.stiffness`, `spring1.length`, `motor2.gear`, `gravity.z`,
`finger2.ratio` of a joint that follows another, `foot.stiffness` of a contact, `wheel.radius`.
A constant that a mechanism file names (`parameters:`) has its bare name, and moves all that is written with it. A
pattern picks several: `*.com` all mass centres, `forearm.*` all of the forearm.

    origin.x, .y, .z         the shift of a placement, in its parent's axes
    origin.rx, .ry, .rz      a rotation vector r, zero nominally: the placement's rotation is R exp[r]
    axis.x, .y, .z           a direction; it is divided by its length

`substitution` puts other numbers in their place.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from polybody.description.records import (
    FRICTION_DEFAULTS,
    Array,
    Body,
    Description,
    Friction,
    Joint,
    Loop,
    joint_size,
)
from polybody.errors import InputError
from polybody.late import dataclass
from polybody.names import listed, nearest

XYZ = ("x", "y", "z")
TURNS = ("rx", "ry", "rz")
INERTIA = {"xx": (0, 0), "yy": (1, 1), "zz": (2, 2), "xy": (0, 1), "xz": (0, 2), "yz": (1, 2)}
WITH_AXIS = ("revolute", "continuous", "prismatic", "screw", "cylindrical", "planar")
MOTOR = {
    "resistance": "Ω", "inductance": "H", "torque_constant": "N m/A", "speed_constant": "V s/rad",
    "rotor_inertia": "kg m²", "damping": "N m s/rad", "gear": "",
}  # fmt: skip
#: (of a turning coordinate, of a sliding one)
JOINT_UNITS = {
    "stiffness": ("N m/rad", "N/m"), "damping": ("N m s/rad", "N s/m"), "armature": ("kg m²", "kg"),
    "rest": ("rad", "m"),
}  # fmt: skip
FRICTION_UNITS = {
    "coulomb": ("N m", "N"), "viscous": ("N m s/rad", "N s/m"), "static": ("N m", "N"), "stribeck": ("rad/s", "m/s"),
    "exponent": ("", ""), "regularisation": ("rad/s", "m/s"),
}  # fmt: skip
#: Whether the coordinates of a kind turn (otherwise they slide); a custom joint's by its map.
TURNING = {
    "revolute": (True,), "continuous": (True,), "prismatic": (False,), "screw": (True,), "cylindrical": (True, False),
    "universal": (True, True), "spherical": (True,) * 3, "planar": (True, False, False),
    "floating": (True,) * 3 + (False,) * 3,
}  # fmt: skip


@dataclass(frozen=True)
class Parameter:
    """One number of a description: name, unit, nominal value, what values are possible, and its place there."""

    name: str
    unit: str
    nominal: float
    lower: float
    upper: float
    place: tuple[Any, ...]  # (section, index of the record, field, where in the field)
    positive: bool = False  # the lower bound itself is not possible


def parameters_of(description: Description) -> list[Parameter]:
    """Every number that may become an input, in the order of the records."""
    found = [
        Parameter(c.name, "", c.value, -np.inf, np.inf, ("constants", k, "value", ()))
        for k, c in enumerate(description.constants)
    ]
    found += _gravity(description)
    for section, read in _SECTIONS.items():
        for index, record in enumerate(getattr(description, section)):
            found += read(section, index, record)
    coupled = {joint for transmission in description.transmissions for joint in transmission.joints}
    geared = [k for k, motor in enumerate(description.motors) if motor.joint in coupled]  # by the matrix alone
    return _distinct([p for p in found if p.place[0] != "motors" or p.place[2] != "gear" or p.place[1] not in geared])


def chosen(description: Description, patterns: Sequence[str]) -> list[Parameter]:
    """The parameters that patterns pick, each once, in the order of the patterns."""
    every = {p.name: p for p in parameters_of(description)}
    kept: dict[str, Parameter] = {}
    for pattern in patterns:
        if not isinstance(pattern, str):
            raise InputError(f"a parameter is picked by a name or a pattern, got {pattern!r}")
        found = matching(pattern, every)
        if not found and (why := _refused(pattern)):
            raise InputError(f"{pattern!r} cannot be a parameter: {why}")
        if not found:
            short = dict.fromkeys(x for n in every for x in _shortened(n))
            raise InputError(f"no parameter {pattern!r}{nearest(pattern, short)}; available: {listed(every)}")
        kept.update({name: every[name] for name in found})
    return list(kept.values())


def matching(pattern: str, names: Iterable[str]) -> list[str]:
    """The names that are a pattern, begin with it and a dot, or match it."""
    names = list(names)
    found = [n for n in names if n == pattern or n.startswith(f"{pattern}.")]
    if not found and any(c in pattern for c in "*?["):
        found = [n for n in names if any(fnmatch.fnmatchcase(x, pattern) for x in _shortened(n))]
    return found


def _shortened(name: str) -> Iterator[str]:
    """forearm.com.x, forearm.com: what a pattern may be compared with."""
    yield name
    owner = name.rpartition(".")[0]
    while "." in owner:
        yield owner
        owner = owner.rpartition(".")[0]


def _distinct(found: list[Parameter]) -> list[Parameter]:
    """Names that two records share (a motor and a joint of one name) are distinguished by their section."""
    count: dict[str, int] = {}
    for p in found:
        count[p.name] = count.get(p.name, 0) + 1
    return [replace(p, name=f"{p.place[0]}/{p.name}") if count[p.name] > 1 else p for p in found]


# ---- what each record has --------------------------------------------------------------------------------------------


def _gravity(d: Description) -> Iterator[Parameter]:
    for k, axis in enumerate(XYZ):
        yield Parameter(f"gravity.{axis}", "m/s²", float(d.gravity[k]), -np.inf, np.inf, ("gravity", 0, "gravity", k))


def _body(section: str, index: int, body: Body) -> Iterator[Parameter]:
    at = (section, index)
    yield Parameter(f"{body.name}.mass", "kg", float(body.mass), 0.0, np.inf, (*at, "mass", ()))
    yield from _vector(body.name, "com", body.com, "m", at)
    for word, place in INERTIA.items():
        least = 0.0 if place[0] == place[1] else -np.inf
        yield Parameter(
            f"{body.name}.inertia.{word}", "kg m²", float(body.inertia[place]), least, np.inf, (*at, "inertia", place)
        )


def _joint(section: str, index: int, joint: Joint | Loop) -> Iterator[Parameter]:
    at = (section, index)
    for field in ("origin",) if isinstance(joint, Joint) else ("origin_a", "origin_b"):
        yield from _pose(joint.name, field, getattr(joint, field), at)
    if joint.kind in WITH_AXIS:
        yield from _vector(joint.name, "axis", joint.axis, "", at)
    if joint.kind == "screw" and joint.pitch:
        yield Parameter(f"{joint.name}.pitch", "m/rad", float(joint.pitch), -np.inf, np.inf, (*at, "pitch", ()))
    if joint.kind == "fixed":
        return
    nq, nv = joint_size(joint)
    turns = TURNING.get(joint.kind) or tuple(bool(np.any(joint.map[:3, k])) for k in range(nv))  # type: ignore[index]
    loop = isinstance(joint, Loop)
    for field, units in JOINT_UNITS.items():
        if (field == "rest" and nq != nv) or (loop and field == "armature"):
            continue
        matrix, given = field in ("stiffness", "damping"), getattr(joint, field)
        if loop and given is None:
            continue  # whether a cut joint has a spring is its structure
        values = np.zeros((nv, nv) if matrix else nv) if given is None else np.asarray(given, dtype=float)
        least = 0.0 if field == "armature" else -np.inf
        for k in range(nv):
            name = f"{joint.name}.{field}" + (f".{k}" if nv > 1 else "")
            place = (k, k) if matrix else (k,)
            unit = units[0 if turns[k] else 1]
            yield Parameter(name, unit, float(values[place]), least, np.inf, (*at, field, place))


    if joint.friction is not None or not loop:
        yield from _friction(joint, at, turns)


def _friction(joint: Joint | Loop, at: tuple[Any, ...], turns: tuple[bool, ...]) -> Iterator[Parameter]:
    given = joint.friction or frictionless(len(turns))
    for word, units in FRICTION_UNITS.items():
        positive = word in ("stribeck", "exponent", "regularisation")
        for k, turn in enumerate(turns):
            name = f"{joint.name}.friction.{word}" + (f".{k}" if len(turns) > 1 else "")
            value = float(getattr(given, word)[k])
            yield Parameter(name, units[0 if turn else 1], value, 0.0, np.inf, (*at, "friction", (word, k)), positive)


def frictionless(nv: int) -> Friction:
    """No friction, with the speeds and the exponent that it has where nothing else is said."""
    numbers = {word: np.full(nv, 0.0 if value is None else value) for word, value in FRICTION_DEFAULTS.items()}
    return Friction(**numbers)


def _vector(owner: str, field: str, values: Array, unit: str, at: tuple[Any, ...]) -> Iterator[Parameter]:
    for k, axis in enumerate(XYZ):
        yield Parameter(f"{owner}.{field}.{axis}", unit, float(values[k]), -np.inf, np.inf, (*at, field, (k,)))


def _pose(owner: str, field: str, origin: Array, at: tuple[Any, ...]) -> Iterator[Parameter]:
    for k, axis in enumerate(XYZ):
        value = float(origin[k, 3])
        yield Parameter(f"{owner}.{field}.{axis}", "m", value, -np.inf, np.inf, (*at, field, axis))
    for turn in TURNS:
        yield Parameter(f"{owner}.{field}.{turn}", "rad", 0.0, -np.inf, np.inf, (*at, field, turn))


def _frame(section: str, index: int, frame: Any) -> Iterator[Parameter]:
    yield from _pose(frame.name, "origin", frame.origin, (section, index))


def _spring(section: str, index: int, spring: Any) -> Iterator[Parameter]:
    at = (section, index)
    for field, unit in (("stiffness", "N/m"), ("length", "m"), ("damping", "N s/m")):
        yield Parameter(f"{spring.name}.{field}", unit, float(getattr(spring, field)), 0.0, np.inf, (*at, field, ()))
    yield from _ends(spring, at)


def _rod(section: str, index: int, rod: Any) -> Iterator[Parameter]:
    at = (section, index)
    yield Parameter(f"{rod.name}.length", "m", float(rod.length), 0.0, np.inf, (*at, "length", ()), True)
    yield from _ends(rod, at)


def _guide(section: str, index: int, guide: Any) -> Iterator[Parameter]:
    yield from _ends(guide, (section, index))
    yield from _vector(guide.name, "axis", guide.axis, "", (section, index))


def _ends(record: Any, at: tuple[Any, ...]) -> Iterator[Parameter]:
    for field in ("point_a", "point_b"):
        yield from _vector(record.name, field, getattr(record, field), "m", at)


def _motor(section: str, index: int, motor: Any) -> Iterator[Parameter]:
    for field, unit in MOTOR.items():
        least = 0.0 if field in ("resistance", "inductance", "rotor_inertia", "damping") else -np.inf
        value = float(getattr(motor, field))
        yield Parameter(f"{motor.name}.{field}", unit, value, least, np.inf, (section, index, field, ()))


def _transmission(section: str, index: int, transmission: Any) -> Iterator[Parameter]:
    for (i, j), value in np.ndenumerate(transmission.matrix):
        name = f"{transmission.name}.matrix.{i}.{j}"
        yield Parameter(name, "", float(value), -np.inf, np.inf, (section, index, "matrix", (i, j)))


def _coupling(section: str, index: int, coupling: Any) -> Iterator[Parameter]:
    """Named by the joint that follows: `finger2.ratio`, `finger2.offset`."""
    for field in ("ratio", "offset"):
        value = float(getattr(coupling, field))
        yield Parameter(f"{coupling.joint}.{field}", "", value, -np.inf, np.inf, (section, index, field, ()))


def _contact(section: str, index: int, contact: Any) -> Iterator[Parameter]:
    units = {"stiffness": f"N/m^{contact.exponent:g}", "damping": "s/m", "friction": "", "radius": "m"}
    for field, unit in units.items():
        value = float(getattr(contact, field))
        if value:  # whether it dissipates, and whether it is a point, is its structure
            yield Parameter(f"{contact.name}.{field}", unit, value, 0.0, np.inf, (section, index, field, ()))


def _rolling(section: str, index: int, rolling: Any) -> Iterator[Parameter]:
    at, several = (section, index, "radius"), len(rolling.radius) > 1
    for k, value in enumerate(rolling.radius if rolling.kind != "blade" else ()):
        name = f"{rolling.name}.radius" + (f".{k}" if several else "")
        yield Parameter(name, "m", float(value), 0.0, np.inf, (*at, (k,)), True)


_SECTIONS: dict[str, Any] = {
    "bodies": _body, "joints": _joint, "frames": _frame, "loops": _joint, "springs": _spring, "rods": _rod,
    "guides": _guide, "motors": _motor, "transmissions": _transmission, "couplings": _coupling, "contacts": _contact,
    "rolling": _rolling,
}  # fmt: skip

#: numbers that cannot be inputs, and why
STRUCTURE = {
    ("lower", "upper", "velocity", "effort", "power", "limits"): "limits decide where runs stop and drives saturate; "
    "they are not numbers of the equations. Write another description",
    ("map", "stages"): "the map of a custom joint decides how many coordinates it has and of which kind",
    ("terrain", "heights", "extent", "exponent", "slip", "points", "point", "normal", "ground"): "the shape of the "
    "ground and of what touches it is part of the structure",
    ("coefficient", "coefficients", "equals", "expression"): "a relation is an expression; name its numbers in the "
    "file's `parameters:` section where it takes them",
}  # fmt: skip


def _refused(pattern: str) -> str:
    """Why no such number can be an input; empty where nothing is known of it."""
    owner, *fields = pattern.split(".")  # a body may be called `lower`
    words = set(fields or [owner])
    return next((why for names, why in STRUCTURE.items() if words & set(names)), "")


__all__ = ["Parameter", "chosen", "frictionless", "matching", "parameters_of"]
