"""URDF written from a description: for trees of the joints that URDF can say.

Numbers are printed with all their digits, so that reading back gives the same model; only rotations pass through roll,
pitch and yaw, which costs a rounding. Named frames become links without mass, held by fixed joints. A root link that
is simply fixed at the world's origin is written as URDF's root; any other attachment to the ground is written with a
link named `world`, which `read_urdf` takes for the ground. What URDF cannot express raises one error that lists it all;
or, where `lossy` is asked for, left out and listed: constraints, springs, motors, gravity, and what joints say beyond
URDF. Kinds of joints that URDF does not know, and trees that it cannot draw, raise an error in any case.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np

from polybody.algebra.rotations import matrix_rpy
from polybody.description import shapes
from polybody.description.limit_losses import limit_losses
from polybody.description.records import (
    WORLD,
    Body,
    Coupling,
    Description,
    Frame,
    Friction,
    Joint,
    Visual,
    as_data,
    frozen_array,
)
from polybody.description.urdf.reader import ROOT_JOINT, UNBOUNDED, URDF_KINDS
from polybody.errors import InputError
from polybody.files import write_text

Array = np.ndarray


def write_urdf(description: Description, path: str | os.PathLike[str], *, lossy: bool = False) -> list[str]:
    """Write the description as URDF; an InputError names everything that URDF cannot say, and nothing is written.

    With `lossy` what can be left out is left out; returns what was lost.
    """
    kept, lost = without_losses(description) if lossy else (description, [])
    write_text(path, urdf_text(kept))
    return lost


def urdf_text(description: Description) -> str:
    """The description as URDF text."""
    lost, problems = without_losses(description)[1], unsayable(description)
    if lost or problems:
        hint = "\n(--lossy, or lossy=True, writes the rest)" if not problems else ""
        listed = "\n".join(f"- {problem}" for problem in (*lost, *problems))
        raise InputError(f"{description.name!r} cannot be written as URDF:\n{listed}{hint}")
    import lxml.etree as etree

    robot = etree.Element("robot", name=description.name)
    joints = list(description.joints)
    if _plain_root(description):
        joints = [joint for joint in joints if joint.parent != WORLD]
    else:
        etree.SubElement(robot, "link", name=WORLD)
    for body in description.bodies:
        if body.name != WORLD:
            _add_link(robot, body)
    mimics = {coupling.joint: coupling for coupling in description.couplings}
    for joint in joints:
        _add_joint(robot, joint, mimics.get(joint.name))
    _add_frames(robot, description)
    etree.indent(robot)
    return etree.tostring(robot, xml_declaration=True, encoding="utf-8").decode() + "\n"


def without_losses(description: Description) -> tuple[Description, list[str]]:
    """The description without what URDF cannot express and can be left out, and the list of that."""
    lost = []
    for what in ("loops", "rods", "guides", "relations", "springs", "motors", "transmissions", "contacts",
                 "actuators", "rolling", "velocity_relations"):
        lost += [f"{what[:-1]} {record.name!r}" for record in getattr(description, what)]
        description = replace(description, **{what: ()})
    if description.network is not None:
        lost.append("the network")
        description = replace(description, network=None)
    if tuple(description.gravity) != (0.0, 0.0, -9.81):
        gravity = tuple(float(x) for x in description.gravity)
        lost.append(f"gravity {gravity}; URDF cannot express it; readers use (0, 0, -9.81)")
        description = replace(description, gravity=frozen_array((0.0, 0.0, -9.81)))
    joints = []
    for joint in description.joints:
        reasons = _joint_losses(joint)
        lost += [f"joint {joint.name!r}: {reason}" for reason in reasons.values()]
        left: dict[str, Any] = {key: None for key in reasons if key not in ("power", "stops")}
        if joint.limits is not None and "limits" not in reasons:
            left["limits"] = replace(joint.limits, power=None, stiffness=None, damping=None)
        joints.append(replace(joint, **left))
    return replace(description, joints=tuple(joints)), lost


def unsayable(description: Description) -> list[str]:
    """What URDF cannot express, and cannot be left out either."""
    known = ", ".join(URDF_KINDS)
    found = [
        f"joint {joint.name!r}: its kind {joint.kind!r}; URDF knows {known}"
        for joint in description.joints
        if joint.kind not in URDF_KINDS
    ]
    return found + _tree_reasons(description) + _name_reasons(description)


def _joint_losses(joint: Joint) -> dict[str, str]:
    """{field: why URDF cannot say it}."""
    if joint.kind not in URDF_KINDS:
        return {}
    nv = URDF_KINDS[joint.kind]
    reasons = {}
    for word, values in (("stiffness", joint.stiffness), ("armature", joint.armature), ("rest", joint.rest)):
        if values is not None and np.any(values):
            reasons[word] = f"its {word}"
    if joint.damping is not None and not np.array_equal(joint.damping, joint.damping.flat[0] * np.eye(nv)):
        reasons["damping"] = "its damping; URDF has one number for all directions"
    if joint.friction is not None and not _plain_friction(joint.friction):
        reasons["friction"] = "its friction; URDF has one Coulomb level for all directions"
    driven = joint.kind != "floating"
    if joint.active is not None and tuple(joint.active) != (driven,) * nv:
        reasons["active"] = "which of its coordinates are driven"
    if joint.limits is not None and nv != 1 and not _no_limits(joint):
        reasons["limits"] = "its limits; URDF limits joints of one number only"
    return reasons if "limits" in reasons else reasons | limit_losses(joint)


def _plain_friction(friction: Friction) -> bool:
    """Whether it is what the reader makes of one Coulomb level."""
    plain = shapes.friction("friction", friction.coulomb.flat[0], len(friction.coulomb))
    return plain is not None and as_data(plain) == as_data(friction)


def _no_limits(joint: Joint) -> bool:
    limits = joint.limits
    return limits is None or not any(
        np.isfinite(x).any() for x in (limits.lower, limits.upper, limits.velocity, limits.effort)
    )


def _tree_reasons(description: Description) -> list[str]:
    """Joints that point towards the ground: URDF's parents are always nearer to it."""
    parent_of: dict[str, str] = {}
    reasons = []
    for joint in description.joints:
        if joint.child in parent_of or joint.child == WORLD:
            reasons.append(
                f"joint {joint.name!r} points towards the ground; reverse it so that its child is the outer body"
            )
        parent_of.setdefault(joint.child, joint.parent)
    if not reasons:
        for body in description.bodies:
            if body.name not in parent_of and body.name != WORLD:
                reasons.append(f"body {body.name!r}, which is not a joint's child; URDF's tree grows from the ground")
    return reasons


def _name_reasons(description: Description) -> list[str]:
    """Frames and links share URDF's names."""
    links = {body.name for body in description.bodies} | {WORLD}
    joints = {joint.name for joint in description.joints}
    reasons = [f"frame {f.name!r}: a link has that name" for f in description.frames if f.name in links]
    reasons += [
        f"frame {f.name!r}: a joint has the name {_frame_joint(f)!r}, which its fixed joint would get"
        for f in description.frames
        if _frame_joint(f) in joints
    ]
    return reasons


def _plain_root(description: Description) -> bool:
    """True when reading with base="fixed" makes the joint to the ground again by itself."""
    grounded = [joint for joint in description.joints if joint.parent == WORLD]
    on_ground = any(frame.body == WORLD for frame in description.frames)
    return (
        len(grounded) == 1
        and not on_ground
        and grounded[0].kind == "fixed"
        and grounded[0].name == ROOT_JOINT
        and np.array_equal(grounded[0].origin, np.eye(4))
    )


def _add(parent: Any, tag: str, **attributes: str) -> Any:
    import lxml.etree as etree

    return etree.SubElement(parent, tag, **attributes)


def _text(*values: Any) -> str:
    """Numbers with all their digits; infinite ones as the largest float."""
    return " ".join(repr(float(np.clip(x, -UNBOUNDED, UNBOUNDED)) + 0.0) for x in values)


def _add_origin(element: Any, origin: Array) -> None:
    if not np.array_equal(origin, np.eye(4)):
        _add(element, "origin", xyz=_text(*origin[:3, 3]), rpy=_text(*matrix_rpy(origin[:3, :3])))


def _add_link(robot: Any, body: Body) -> None:
    link = _add(robot, "link", name=body.name)
    if body.mass or np.any(body.inertia) or np.any(body.com):
        inertial = _add(link, "inertial")
        _add(inertial, "origin", xyz=_text(*body.com), rpy="0 0 0")
        _add(inertial, "mass", value=_text(body.mass))
        entries = {"ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2), "izz": (2, 2)}
        _add(inertial, "inertia", **{key: _text(body.inertia[at]) for key, at in entries.items()})
    for visual in body.visuals:
        _add_visual(link, visual)


def _add_visual(link: Any, visual: Visual) -> None:
    element = _add(link, "visual")
    _add_origin(element, visual.origin)
    geometry = _add(element, "geometry")
    if visual.shape == "mesh":
        _add(geometry, "mesh", filename=visual.mesh or "", scale=_text(*visual.size))
    elif visual.shape == "box":
        _add(geometry, "box", size=_text(*visual.size))
    elif visual.shape == "cylinder":
        _add(geometry, "cylinder", radius=_text(visual.size[0]), length=_text(visual.size[1]))
    else:
        _add(geometry, "sphere", radius=_text(visual.size[0]))
    if visual.color is not None:
        _add(_add(element, "material", name=""), "color", rgba=_text(*visual.color))


def _add_joint(robot: Any, joint: Joint, mimic: Coupling | None) -> None:
    element = _add(robot, "joint", name=joint.name, type=joint.kind)
    _add_origin(element, joint.origin)
    _add(element, "parent", link=joint.parent)
    _add(element, "child", link=joint.child)
    if joint.kind not in ("fixed", "floating"):
        _add(element, "axis", xyz=_text(*joint.axis))
    dynamics = {
        word: _text(values.flat[0])
        for word, values in (("damping", joint.damping), ("friction", joint.friction and joint.friction.coulomb))
        if values is not None and values.size
    }
    if dynamics:
        _add(element, "dynamics", **dynamics)
    if joint.limits is not None and URDF_KINDS[joint.kind] == 1:
        words = ("velocity", "effort") if joint.kind == "continuous" else ("lower", "upper", "velocity", "effort")
        _add(element, "limit", **{word: _text(getattr(joint.limits, word)[0]) for word in words})
    elif joint.kind in ("revolute", "prismatic"):  # other readers insist on limits
        huge = _text(UNBOUNDED)
        _add(element, "limit", lower=_text(-UNBOUNDED), upper=huge, velocity=huge, effort=huge)
    if mimic is not None:
        _add(element, "mimic", joint=mimic.source_joint, multiplier=_text(mimic.ratio), offset=_text(mimic.offset))


def _frame_joint(frame: Frame) -> str:
    return f"{frame.name}_frame"


def _add_frames(robot: Any, description: Description) -> None:
    for frame in description.frames:
        _add(robot, "link", name=frame.name)
        joint = _add(robot, "joint", name=_frame_joint(frame), type="fixed")
        _add_origin(joint, frame.origin)
        _add(joint, "parent", link=frame.body)
        _add(joint, "child", link=frame.name)


__all__ = ["unsayable", "urdf_text", "without_losses", "write_urdf"]
