"""What can be wrong with one record, whatever surrounds it: values, sizes, kinds.

Each function yields problems and never raises; `checks` adds what only the whole description shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from polybody.algebra.inertia_checks import inertia_problem
from polybody.algebra.rotations import is_rotation
from polybody.description.expressions import parse
from polybody.description.limits import GRID_NODES, LARGEST_NUMBER
from polybody.description.problems import ERROR, WARNING, Problem
from polybody.description.records import (
    FRICTION_DEFAULTS,
    KINDS,
    Body,
    Contact,
    Coupling,
    Frame,
    Friction,
    Guide,
    Joint,
    Limits,
    Loop,
    Relation,
    Rod,
    Spring,
    joint_size,
)
from polybody.description.shapes import AXIS_SLACK
from polybody.errors import InputError
from polybody.names import counted, listed, nearest

#: How far from orthogonal a written rotation may be, and from symmetric a written matrix (relative).
ROTATION_SLACK = 1e-6
SYMMETRY_SLACK = 1e-9

#: The kinds whose motion depends on `axis`.
WITH_AXIS = ("revolute", "continuous", "prismatic", "screw", "cylindrical", "planar")


class Record:
    """Collects the problems of one record under its name ("joint 'elbow': …")."""

    def __init__(self, what: str, record: Any) -> None:
        self.prefix = f"{what} {record.name!r}"
        self.source = record.source
        self.problems: list[Problem] = []

    def error(self, message: str) -> None:
        self.problems.append(Problem(ERROR, f"{self.prefix}: {message}", self.source))

    def warning(self, message: str) -> None:
        self.problems.append(Problem(WARNING, f"{self.prefix}: {message}", self.source))

    def array(self, what: str, values: Any, *shape: int, finite: bool = True) -> bool:
        """Whether the array has the shape and no NaN (nor infinity, where it must be finite)."""
        found = np.shape(values)
        if found != shape:
            self.error(f"{what} has shape {found}, expected {shape}")
            return False
        if np.asarray(values).dtype.kind not in "iuf":
            self.error(f"{what} is {values!r:.60}, expected numbers")
            return False
        array = np.asarray(values, dtype=float)
        wrong = ~(np.abs(array) <= LARGEST_NUMBER) if finite else np.isnan(array)
        if wrong.any():
            index = tuple(int(i) for i in np.argwhere(wrong)[0])
            place = f"[{', '.join(map(str, index))}]" if index else ""
            most = f" of at most {LARGEST_NUMBER:g}" if np.isfinite(array[index]) else ""
            self.error(f"{what}{place} is {array[index]:g}, expected a finite number{most}")
            return False
        return True

    def number(self, what: str, value: float) -> bool:
        return self.array(what, value)

    def pose(self, what: str, values: Any) -> None:
        if not self.array(what, values, 4, 4):
            return
        if not np.array_equal(np.asarray(values)[3], (0, 0, 0, 1)):
            self.error(f"{what} has the last row {np.asarray(values)[3]}, expected (0, 0, 0, 1)")
        elif not is_rotation(np.asarray(values)[:3, :3], ROTATION_SLACK):
            self.error(
                f"the upper left 3×3 of {what} is not a rotation; its columns must be orthogonal unit vectors, "
                "right-handed"
            )

    def symmetric(self, what: str, values: Any) -> None:
        matrix = np.asarray(values, dtype=float)
        if np.abs(matrix - matrix.T).max(initial=0) > SYMMETRY_SLACK * np.abs(matrix).max(initial=0):
            self.error(f"{what} is not symmetric")


def body_problems(body: Body) -> Iterator[Problem]:
    r = Record("body", body)
    if r.number("mass", body.mass) and body.mass < 0:
        r.error(f"mass is {body.mass:g} kg; it must not be negative")
    r.array("com", body.com, 3)
    if r.array("inertia", body.inertia, 3, 3):
        r.symmetric("inertia", body.inertia)
        problem = inertia_problem(body.inertia)
        if problem:
            r.warning(problem)
    for visual in body.visuals:
        r.pose("a visual's origin", visual.origin)
    yield from r.problems


def _kind(r: Record, record: Joint | Loop) -> bool:
    """Problems of kind, axis, pitch, map and stages; whether (nq, nv) are known."""
    kind = record.kind
    if kind not in KINDS:
        r.error(f"no kind {kind!r}{nearest(kind, KINDS)}; available: {listed(KINDS)}")
        return False
    if r.array("axis", record.axis, 3) and kind in WITH_AXIS:
        length = float(np.linalg.norm(record.axis))
        if length == 0:
            r.error("the axis is zero; expected a unit vector")
        elif abs(length - 1) > AXIS_SLACK:
            unit = np.asarray(record.axis) / length
            r.error(f"the axis has length {length:.6g}, expected 1: write ({', '.join(f'{x:.9g}' for x in unit)})")
    if kind == "screw":
        if record.pitch is None:
            r.error("a screw needs its pitch, in metres per radian")
        else:
            r.number("pitch", record.pitch)
    elif record.pitch is not None:
        r.error(f"only a screw has a pitch, not a {kind} joint")
    return _map(r, record)


def _map(r: Record, record: Joint | Loop) -> bool:
    if record.kind != "custom":
        for what, value in (("map", record.map), ("stages", record.stages)):
            if value is not None:
                r.error(f"only a custom joint has {what}, not a {record.kind} joint")
        return True
    if record.map is None:
        r.error("a custom joint needs its map, a 6×r matrix")
        return False
    shape = np.shape(record.map)
    if len(shape) != 2 or shape[0] != 6 or not 1 <= shape[1] <= 6:
        r.error(f"map has shape {shape}, expected (6, r) with r from 1 to 6")
        return False
    r.array("map", record.map, *shape)
    if record.stages is not None and (any(n < 1 for n in record.stages) or sum(record.stages) != shape[1]):
        r.error(f"stages {tuple(record.stages)} must be positive and sum to the map's {shape[1]} columns")
    return True


def joint_problems(joint: Joint) -> Iterator[Problem]:
    r = Record("joint", joint)
    r.pose("origin", joint.origin)
    if joint.parent == joint.child:
        r.error(f"its parent and its child are both {joint.child!r}")
    if _kind(r, joint):
        nq, nv = joint_size(joint)
        _passive(r, joint, nq, nv)
        if joint.active is not None and len(joint.active) != nv:
            r.error(f"active has {counted(len(joint.active), 'entry', 'entries')}, expected {nv}")
    yield from r.problems


def _passive(r: Record, joint: Joint | Loop, nq: int, nv: int) -> None:
    if joint.limits is not None:
        _limits(r, joint.limits, nv)
    if joint.stiffness is not None and r.array("stiffness", joint.stiffness, nv, nv):
        r.symmetric("stiffness", joint.stiffness)
    if joint.damping is not None and r.array("damping", joint.damping, nv, nv) and nv:
        both = np.asarray(joint.damping) + np.asarray(joint.damping).T
        if np.linalg.eigvalsh(both)[0] < -SYMMETRY_SLACK * np.abs(both).max():
            r.warning("its damping matrix has a negative eigenvalue, so it can add energy")
    if joint.armature is not None and r.array("armature", joint.armature, nv) and np.any(joint.armature < 0):
        r.error(f"armature is {np.min(joint.armature):g}; it must not be negative")
    if joint.friction is not None:
        _friction(r, joint.friction, nv)
    if joint.rest is not None and r.array("rest", joint.rest, nq) and nq != nv:
        length = float(np.linalg.norm(joint.rest[-4:]))
        if abs(length - 1) > AXIS_SLACK:
            r.error(f"the quaternion of rest has length {length:.6g}, expected a unit (x, y, z, w)")


def _friction(r: Record, friction: Friction, nv: int) -> None:
    named = [(what, getattr(friction, what)) for what in FRICTION_DEFAULTS]
    if not all([r.array(f"friction.{what}", values, nv) for what, values in named]):
        return
    for what, values in named:
        positive = what in ("stribeck", "exponent", "regularisation")
        if np.any(values < 0) or (positive and np.any(values == 0)):
            must = "be positive" if positive else "not be negative"
            r.error(f"friction.{what} is {np.min(values):g}; it must {must}")
    if np.any(friction.static < friction.coulomb):
        r.error("friction.static is below friction.coulomb; static friction is at least Coulomb friction")


def _limits(r: Record, limits: Limits, nv: int) -> None:
    named = [(what, getattr(limits, what)) for what in ("lower", "upper", "velocity", "effort")]
    sound = [r.array(f"limits.{what}", values, nv, finite=False) for what, values in named]
    lower, upper = np.asarray(limits.lower), np.asarray(limits.upper)
    if all(sound) and np.any((lower > upper) | (lower == np.inf) | (upper == -np.inf)):
        r.error(f"its lower limit {limits.lower} is above the upper {limits.upper}; no position lies between them")
    more = [(what, getattr(limits, what)) for what in ("power", "stiffness", "damping")]
    more = [(what, values) for what, values in more if values is not None]
    sound += [r.array(f"limits.{what}", values, nv, finite=what != "power") for what, values in more]
    for what, values in (*named[2:], *more) if all(sound) else ():
        if np.any(np.asarray(values) < 0):
            r.error(f"limits.{what} is {np.min(values):g}; it must not be negative")


def loop_problems(loop: Loop) -> Iterator[Problem]:
    r = Record("loop", loop)
    r.pose("origin_a", loop.origin_a)
    r.pose("origin_b", loop.origin_b)
    if loop.body_a == loop.body_b:
        r.error(f"it joins {loop.body_a!r} to itself")
    if _kind(r, loop):
        _passive(r, loop, *joint_size(loop))
    if loop.kind == "floating":
        r.warning("a floating joint constrains nothing, so the loop is not closed")
    yield from r.problems


def frame_problems(frame: Frame) -> Iterator[Problem]:
    r = Record("frame", frame)
    r.pose("origin", frame.origin)
    yield from r.problems


def spring_problems(spring: Spring) -> Iterator[Problem]:
    r = Record("spring", spring)
    r.array("point_a", spring.point_a, 3)
    r.array("point_b", spring.point_b, 3)
    for what, value in (("stiffness", spring.stiffness), ("length", spring.length), ("damping", spring.damping)):
        if r.number(what, value) and value < 0:
            r.error(f"{what} is {value:g}; it must not be negative")
    yield from r.problems


def contact_problems(contact: Contact) -> Iterator[Problem]:
    r = Record("contact", contact)
    points = np.asarray(contact.points)
    if points.ndim != 2 or points.shape[1:] != (3,) or not len(points) or not np.isfinite(points).all():
        r.error(f"points has shape {points.shape}; expected one or more rows of three finite numbers")
    for what in ("stiffness", "damping", "friction", "radius", "exponent", "slip"):
        value = getattr(contact, what)
        least, strict = 1.0 if what == "exponent" else 0.0, what in ("stiffness", "slip")
        if r.number(what, value) and (value < least or (strict and value == least)):
            r.error(f"{what} is {value:g}; it must be {'above' if strict else 'at least'} {least:g}")
    if r.array("point", contact.point, 3) and r.array("normal", contact.normal, 3):
        length = float(np.linalg.norm(contact.normal))
        if abs(length - 1) > 1e-9:
            r.error(f"its normal has length {length:.6g}, expected 1")
    if contact.terrain is not None and contact.heights is not None:
        r.error("it has a terrain and heights; expected one of them")
    if contact.terrain is not None:
        _terrain(r, contact.terrain)
    if (contact.heights is None) != (contact.extent is None):
        r.error("heights need an extent (x_low, x_high, y_low, y_high), and an extent heights")
    elif contact.heights is not None and contact.extent is not None and r.array("extent", contact.extent, 4):
        heights, (x0, x1, y0, y1) = np.asarray(contact.heights), contact.extent
        if heights.ndim != 2 or min(heights.shape) < 2 or heights.size > GRID_NODES or not np.isfinite(heights).all():
            r.error(f"heights has shape {heights.shape}; expected 2×2 or more finite numbers, at most {GRID_NODES}")
        if not (x1 > x0 and y1 > y0):
            r.error("its extent is empty; expected (x_low, x_high, y_low, y_high)")
    yield from r.problems


def _terrain(r: Record, text: str) -> None:
    try:
        others = sorted(set(parse(text).joints) - {"x", "y"})
    except InputError as error:
        r.error(f"terrain: {error}")
        return
    if others:
        r.error(f"terrain {text!r:.60} names {', '.join(others)}; a terrain is an expression in x and y")


def rod_problems(rod: Rod) -> Iterator[Problem]:
    r = Record("rod", rod)
    _ends(r, rod)
    if r.number("length", rod.length) and rod.length <= 0:
        r.error(f"length is {rod.length:g}; it must be positive (two points that coincide are a spherical loop)")
    yield from r.problems


def guide_problems(guide: Guide) -> Iterator[Problem]:
    r = Record("guide", guide)
    _ends(r, guide)
    if guide.kind not in ("line", "plane"):
        r.error(f"no kind {guide.kind!r}; there are line (axis is its direction) and plane (axis is its normal)")
    if r.array("axis", guide.axis, 3) and not np.any(guide.axis):
        r.error("the axis is zero; expected the line's direction or the plane's normal")
    yield from r.problems


def _ends(r: Record, record: Rod | Guide) -> None:
    r.array("point_a", record.point_a, 3)
    r.array("point_b", record.point_b, 3)
    if record.body_a == record.body_b:
        r.error(f"it joins {record.body_a!r} to itself")


def relation_problems(relation: Relation, joints: Mapping[str, Joint]) -> Iterator[Problem]:
    """Problems of a relation among these joints."""
    r = Record("relation", relation)
    try:
        used = parse(relation.expression).used
    except InputError as error:
        r.error(str(error))
        used = ()
    for name, number in used:
        if name not in joints:
            r.error(f"it names {name!r}, which is not a joint{nearest(name, joints)}")
        elif _is_sized(joints[name]) and number >= joint_size(joints[name])[0]:
            r.error(f"it uses number {number} of joint {name!r}, which has {joint_size(joints[name])[0]}")
    yield from r.problems


def _is_sized(joint: Joint) -> bool:
    """Whether the joint's numbers can be counted: its kind is known, and a custom one's map is a matrix."""
    return joint.kind in KINDS and (joint.kind != "custom" or (joint.map is not None and np.ndim(joint.map) == 2))


def coupling_problems(coupling: Coupling, joints: Mapping[str, Joint]) -> Iterator[Problem]:
    for what, value in (("ratio", coupling.ratio), ("offset", coupling.offset)):
        if not abs(value) <= LARGEST_NUMBER:
            text = f"{what} is {value}, expected a finite number"
            yield Problem(ERROR, f"coupling of {coupling.joint!r}: {text}", coupling.source)
    for name in (coupling.joint, coupling.source_joint):
        joint = joints.get(name)
        if joint is not None and _is_sized(joint) and joint_size(joint) != (1, 1):
            text = f"joint {name!r} ({joint.kind}) does not have exactly one coordinate; write a relation"
            yield Problem(ERROR, f"coupling of {coupling.joint!r}: {text}", coupling.source)
    if coupling.joint == coupling.source_joint:
        yield Problem(ERROR, f"coupling of {coupling.joint!r}: it follows itself", coupling.source)


__all__ = [
    "body_problems",
    "coupling_problems",
    "frame_problems",
    "guide_problems",
    "joint_problems",
    "loop_problems",
    "relation_problems",
    "rod_problems",
    "spring_problems",
]
