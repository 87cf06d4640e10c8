"""URDF: links and joints of a tree, read into a `Description`.

Every link becomes a body and every joint a joint, fixed ones too. The root link is joined to the ground:

    base="fixed"      by a fixed joint `root_joint`; a root link named `world` is the ground itself
    base="floating"   by a floating joint `root_joint`; a root link named `world` is renamed `base`, with a warning

`damping` becomes a damping matrix, `friction` Coulomb friction, `limit` limits, `mimic` becomes a coupling (one
of a joint that does not exist is ignored, with a warning), visuals are recorded with mesh names as given. What URDF
leaves to other programs (collision, transmission, gazebo, sensor, …) is ignored. All problems of a file are reported
together.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from polybody.description import shapes
from polybody.description.limits import LARGEST_NUMBER, RECORDS
from polybody.description.naming import shown, shown_path
from polybody.description.problems import Problem, raise_errors
from polybody.description.record_checks import body_problems
from polybody.description.records import (
    WORLD,
    Body,
    Coupling,
    Description,
    Friction,
    Joint,
    Limits,
    frozen_array,
    joint_size,
)
from polybody.description.urdf.poses import read_origin
from polybody.description.urdf.visuals import Color, read_materials, read_visuals
from polybody.description.xml.fields import Fields
from polybody.description.xml.safety import parse_xml
from polybody.errors import InputError, warn
from polybody.names import counted, nearest

Array = np.ndarray

ROOT_JOINT = "root_joint"
#: Velocity coordinates of the kinds of joint that URDF knows.
URDF_KINDS = {"fixed": 0, "revolute": 1, "continuous": 1, "prismatic": 1, "planar": 3, "floating": 6}
#: A limit written as the largest float means "none": URDF has no other word for it.
UNBOUNDED = sys.float_info.max
_AXIS_SLACK = 1e-3
LOOP_ADVICE = ", make one of them a loop (in a mechanism file: URDF has none)"


def read_urdf(
    path: str | os.PathLike[str], *, base: str = "fixed", arguments: Mapping[str, Any] | None = None
) -> Description:
    """The description in a URDF file, its root link fixed to the ground or floating; `arguments` are xacro's."""
    description, problems = scan_urdf(path, base=base, arguments=arguments)
    raise_errors(problems, Path(path).name)
    assert description is not None
    return description


def scan_urdf(
    path: str | os.PathLike[str], *, base: str = "fixed", arguments: Mapping[str, Any] | None = None
) -> tuple[Description | None, list[Problem]]:
    """As `read_urdf`, but what is wrong inside a well-formed file is returned, not raised."""
    if base not in ("fixed", "floating"):
        raise InputError(f"base is {base!r}, expected 'fixed' or 'floating'")
    path = Path(path)
    robot = _robot(path, arguments)
    fields = Fields(path.name)
    if robot.tag != "robot":
        raise InputError(f"{fields.source(robot)}: the root element is <{robot.tag}>, a URDF has <robot>")
    links, joints = robot.findall("link"), robot.findall("joint")
    if not links:
        raise InputError(
            f"{fields.source(robot)}: <robot> has no <link>; the file is truncated, or is a xacro not yet expanded"
        )
    shapes, materials = robot.findall("link/visual"), list(robot.iter("material"))
    for what, elements in (("links", links), ("joints", joints), ("visuals", shapes), ("materials", materials)):
        if len(elements) > RECORDS:
            raise InputError(f"{path.name}: has {len(elements)} {what}; at most {RECORDS} are read")
    colors = read_materials(robot, fields)
    bodies = [_read_body(link, colors, fields) for link in links]
    records = [_read_joint(joint, fields) for joint in joints]
    mimics = _read_mimics(joints, fields)
    root = _find_root(links, joints, fields)
    if fields.problems:  # what the links' numbers are worth is said at once too, not only when the rest is mended
        return None, fields.problems + [problem for body in bodies for problem in body_problems(body)]
    couplings = _known_couplings(mimics, {joint.name for joint in records if joint_size(joint) == (1, 1)}, path.name)
    bodies, records = _ground(bodies, records, root, base, path.name)
    description = Description(
        name=(robot.get("name") or "").strip() or path.stem,
        bodies=tuple(bodies),
        joints=tuple(records),
        couplings=tuple(couplings),
        source=str(path),
    )
    return description, []


def _robot(path: Path, arguments: Mapping[str, Any] | None) -> Any:
    """The root element, macros expanded."""
    from polybody.description.xacro.expand import expanded, has_macros, refuse_unknown

    robot = parse_xml(path, kind="URDF")
    if has_macros(robot):
        refuse_unknown(path, robot, arguments)
        return expanded(path, arguments)
    if arguments:
        raise InputError(f"{path.name}: arguments are for files with xacro macros; this one has none")
    return robot


def _read_body(link: Any, colors: dict[str, Color], fields: Fields) -> Body:
    name = fields.name(link, "a link")
    mass, com, inertia = 0.0, np.zeros(3), np.zeros((3, 3))
    inertial = fields.child(link, "inertial", owner=f"link {name!r}")
    if inertial is not None:
        mass, com, inertia = _read_inertial(inertial, f"inertial of link {name!r}", fields)
    return Body(
        name=name,
        mass=mass,
        com=frozen_array(com),
        inertia=frozen_array(inertia),
        visuals=read_visuals(link, name, colors, fields),
        source=fields.source(link),
    )


def _read_inertial(inertial: Any, owner: str, fields: Fields) -> tuple[float, Array, Array]:
    """(mass, com, inertia about it in link axes)."""
    placement = read_origin(inertial, owner, fields)
    mass_element, inertia_element = (fields.child(inertial, tag, owner=owner) for tag in ("mass", "inertia"))
    if mass_element is None:
        fields.problem(inertial, f"{owner} needs a <mass value=…>")
    if inertia_element is None:
        fields.problem(inertial, f"{owner} needs an <inertia ixx=… iyy=… izz=… ixy=… ixz=… iyz=…>")
    mass = 0.0 if mass_element is None else fields.number(mass_element, "value", None, owner=owner)
    if inertia_element is None:
        return mass, placement[:3, 3], np.zeros((3, 3))
    xx, yy, zz = (fields.number(inertia_element, key, None, owner=owner) for key in ("ixx", "iyy", "izz"))
    xy, xz, yz = (fields.number(inertia_element, key, 0.0, owner=owner) for key in ("ixy", "ixz", "iyz"))
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    R = placement[:3, :3]
    if not np.array_equal(R, np.eye(3)):
        inertia = R @ inertia @ R.T
        inertia = (inertia + inertia.T) / 2
    return mass, placement[:3, 3], inertia


def _read_joint(joint: Any, fields: Fields) -> Joint:
    name = fields.name(joint, "a joint")
    owner = f"joint {name!r}"
    kind = joint.get("type", "")
    if kind not in URDF_KINDS:
        what = f"has type {kind!r}" if kind else "has no type"
        fields.problem(joint, f"{owner} {what}; URDF knows {', '.join(URDF_KINDS)}")
        kind = "fixed"
    nv = URDF_KINDS[kind]
    damping, friction = _read_dynamics(joint, nv, owner, fields)
    return Joint(
        name=name,
        kind=kind,
        parent=_end(joint, "parent", owner, fields),
        child=_end(joint, "child", owner, fields),
        origin=read_origin(joint, owner, fields),
        axis=_read_axis(joint, kind, owner, fields),
        damping=damping,
        friction=friction,
        limits=_read_limits(joint, kind, owner, fields),
        source=fields.source(joint),
    )


def _end(joint: Any, tag: str, owner: str, fields: Fields) -> str:
    element = fields.child(joint, tag, owner=owner)
    if element is None:
        fields.problem(joint, f"{owner} needs a <{tag} link=…>")
        return ""
    return fields.name(element, f"<{tag}> of {owner}", "link")


def _read_axis(joint: Any, kind: str, owner: str, fields: Fields) -> Array:
    """The unit axis; x where URDF's default applies, z (which means nothing) for joints without an axis."""
    if kind in ("fixed", "floating"):
        return frozen_array((0.0, 0.0, 1.0))
    element = fields.child(joint, "axis", owner=owner)
    if element is None:
        return frozen_array((1.0, 0.0, 0.0))
    axis = np.array(fields.numbers(element, "xyz", (1.0, 0.0, 0.0), owner=owner))
    length = float(np.linalg.norm(axis))
    if abs(length - 1) > _AXIS_SLACK:
        fields.problem(element, f"{owner}: the axis {element.get('xyz')!r} has length {length:.6g}, expected 1")
        return frozen_array((1.0, 0.0, 0.0))
    return frozen_array(axis if abs(length - 1) <= 1e-15 else axis / length)


def _read_dynamics(joint: Any, nv: int, owner: str, fields: Fields) -> tuple[Array | None, Friction | None]:
    """(damping matrix, friction), None where they are zero."""
    element = fields.child(joint, "dynamics", owner=owner)
    if element is None:
        return None, None
    damping, friction = (fields.number(element, key, 0.0, owner=owner) for key in ("damping", "friction"))
    return (
        frozen_array(damping * np.eye(nv)) if damping and nv else None,
        shapes.friction(f"{owner} friction", friction, nv) if friction and nv else None,
    )


def _read_limits(joint: Any, kind: str, owner: str, fields: Fields) -> Limits | None:
    """Limits of joints of one number; a bound that is not given is taken as URDF says, 0, if the other one is."""
    element = fields.child(joint, "limit", owner=owner)
    if element is None or URDF_KINDS[kind] != 1:
        return None

    def bound(key: str, default: float) -> float:
        value = fields.number(element, key, default, owner=owner, infinite=True)
        return float(np.copysign(np.inf, value)) if abs(value) > LARGEST_NUMBER else value

    bounded = kind != "continuous" and (element.get("lower") is not None or element.get("upper") is not None)
    lower, upper = (bound("lower", 0.0), bound("upper", 0.0)) if bounded else (-np.inf, np.inf)
    velocity, effort = bound("velocity", np.inf), bound("effort", np.inf)
    if not np.isfinite((lower, upper, velocity, effort)).any():
        return None
    return Limits(*(frozen_array([x]) for x in (lower, upper, velocity, effort)))


def _read_mimics(joints: list[Any], fields: Fields) -> list[Coupling]:
    couplings = []
    for joint in joints:
        name = (joint.get("name") or "").strip()
        owner = f"mimic of joint {name!r}"
        element = fields.child(joint, "mimic", owner=f"joint {name!r}")
        if element is not None:
            leader = fields.name(element, owner, "joint")
            ratio = fields.number(element, "multiplier", 1.0, owner=owner)
            offset = fields.number(element, "offset", 0.0, owner=owner)
            couplings.append(Coupling(name, leader, ratio, offset, fields.source(element)))
    return couplings


def _known_couplings(mimics: list[Coupling], names: set[str], file_name: str) -> list[Coupling]:
    """The couplings between joints that exist and move.

    A mimic of or by a joint that is not there or is fixed is only warned of: real files have it, and the other joint
    can move all the same.
    """
    known = [c for c in mimics if c.source_joint in names and c.joint in names]
    lost = [c for c in mimics if not (c.source_joint in names and c.joint in names)]
    if lost:
        told = f"mimic between joints that do not exist or do not move is ignored: {_mimic_list(lost)}"
        warn(f"{file_name}: {told}")
    return known


def _mimic_list(couplings: list[Coupling]) -> str:
    listed = ", ".join(f"{c.joint!r} (of {c.source_joint!r})" for c in couplings[:4])
    return listed + (f" and {len(couplings) - 4} more" if len(couplings) > 4 else "")


def _find_root(links: list[Any], joints: list[Any], fields: Fields) -> str:
    """The one link that is no joint's child, after checking that names exist and are used once."""
    by_name = _unique(links, "link", fields)
    _unique(joints, "joint", fields)
    parent_of: dict[str, Any] = {}
    neighbours: dict[str, list[str]] = {}
    for joint in joints:
        ends = _ends(joint)
        for tag, name in zip(("parent", "child"), ends, strict=True):
            if name and name not in by_name:
                no_link = f"joint {_shown_name(joint)}: no {tag} link {shown(name)}{nearest(name, by_name)}"
                fields.problem(joint.find(tag), no_link)
        parent, child = ends
        if child in parent_of:
            other = parent_of[child]
            fields.problem(
                joint.find("child"),
                f"link {shown(child)} is the child of joint {_shown_name(other)} ({fields.line(other)}) and of "
                f"joint {_shown_name(joint)}; a URDF is a tree, each link has one parent"
                f"{_closing(neighbours, child, parent)}",
            )
        elif child:
            parent_of[child] = joint
        for near, far in (ends, ends[::-1]):
            neighbours.setdefault(near, []).append(far)
    roots = [name for name in by_name if name not in parent_of]
    if not roots:
        path = _cycle(parent_of, links)
        fields.problem(links[0], f"joints form a cycle: {path}; a URDF is a tree with one root link{LOOP_ADVICE}")
        return ""
    if len(roots) > 1:
        listed = ", ".join(f"{shown(name)} ({fields.line(by_name[name])})" for name in roots[:6])
        fields.problem(
            by_name[roots[1]],
            f"{counted(len(roots), 'root link')}, which no joint has as child: {listed}; expected one",
        )
    if WORLD in by_name and WORLD not in roots:
        fields.problem(by_name[WORLD], f"link {WORLD!r} is not the root; the name means the ground, rename the link")
    return roots[0]


def _shown_name(element: Any) -> str:
    return shown((element.get("name") or "").strip())


def _unique(elements: list[Any], what: str, fields: Fields) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    for element in elements:
        name = (element.get("name") or "").strip()
        if name in seen:
            first = fields.line(seen[name])
            fields.problem(element, f"two {what}s are named {shown(name)}; the first is at {first}")
        elif name:
            seen[name] = element
    return seen


def _cycle(parent_of: dict[str, Any], links: list[Any]) -> str:
    """The names along the cycle that one meets going upwards from the first link."""
    path: dict[str, None] = {}  # a list whose members are found at once
    name = (links[0].get("name") or "").strip()
    while name not in path and name in parent_of:
        path[name] = None
        name = _ends(parent_of[name])[0]
    names = list(path)
    return shown_path([*names[names.index(name) if name in path else 0 :], name])


def _closing(neighbours: dict[str, list[str]], start: str, goal: str) -> str:
    """What the second joint of a link closes: the cycle's path and what to do, or nothing where it closes none."""
    came: dict[str, str] = {start: start}
    waiting = deque([start])
    while waiting and goal not in came:
        near = waiting.popleft()
        for far in neighbours.get(near, ()):
            if far not in came:
                came[far] = near
                waiting.append(far)
    if goal not in came or goal not in neighbours:
        return ""
    path = [start, goal]
    while path[-1] != start:
        path.append(came[path[-1]])
    return f"; its joints form a cycle: {shown_path(path[::-1])}{LOOP_ADVICE}"


def _ends(joint: Any) -> tuple[str, str]:
    """(parent, child) of a joint's element, "" where it says none."""
    ends = (joint.find(tag) for tag in ("parent", "child"))
    parent, child = ("" if end is None else (end.get("link") or "").strip() for end in ends)
    return parent, child


def _ground(
    bodies: list[Body], joints: list[Joint], root: str, base: str, file_name: str
) -> tuple[list[Body], list[Joint]]:
    """Join the root link to the ground."""
    if root == WORLD and base == "fixed":
        return [body for body in bodies if body.name != WORLD], joints
    if root == WORLD:
        root = _free_name("base", {body.name for body in bodies})
        warn(
            f"{file_name}: the root link is named {WORLD!r}, which is the ground; with a floating base it is renamed "
            f"{root!r}"
        )
        bodies, joints = _renamed_root(bodies, joints, root)
    name = _free_name(ROOT_JOINT, {joint.name for joint in joints})
    if base == "floating" and name != ROOT_JOINT:
        warn(f"{file_name}: a joint is named {ROOT_JOINT!r} already; the floating base's joint is named {name!r}")
    source = next(body.source for body in bodies if body.name == root)
    return bodies, [Joint(name, base, WORLD, root, source=source), *joints]


def _renamed_root(bodies: list[Body], joints: list[Joint], root: str) -> tuple[list[Body], list[Joint]]:
    from dataclasses import replace

    return (
        [replace(body, name=root) if body.name == WORLD else body for body in bodies],
        [replace(joint, parent=root) if joint.parent == WORLD else joint for joint in joints],
    )


def _free_name(wanted: str, taken: set[str]) -> str:
    while wanted in taken:
        wanted += "_"
    return wanted


__all__ = ["ROOT_JOINT", "UNBOUNDED", "URDF_KINDS", "read_urdf", "scan_urdf"]
