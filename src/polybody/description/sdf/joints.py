"""SDF's joints as ours.

| SDF | here |
|---|---|
| fixed, revolute, continuous, prismatic, ball | the same, ball as `spherical` |
| screw | `screw`, pitch in m/rad: screw_thread_pitch / 2π, or −1 / thread_pitch (rad/m, left-handed) |
| universal, revolute2 | `custom` of two stages; q from the child outwards: [about axis2, about axis] |
| gearbox | refused by name |

The joint's frame is fixed to the child; where it is not the child link's frame, a body without mass ("link@joint")
stands at it and the link is fixed to that. Axes are turned from `expressed_in` into the joint's frame. Limits of ±1e16
and more mean none, as does a negative effort or velocity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polybody.description import shapes
from polybody.description.records import Array, Coupling, Limits, frozen_array
from polybody.description.sdf.frames import Frames
from polybody.description.sdf.values import number, numbers, text
from polybody.description.xml.fields import Fields

#: SDF's type: (our kind, how many of its axes count)
KINDS = {
    "fixed": ("fixed", 0), "revolute": ("revolute", 1), "continuous": ("continuous", 1), "prismatic": ("prismatic", 1),
    "ball": ("spherical", 0), "screw": ("screw", 1), "universal": ("custom", 2), "revolute2": ("custom", 2),
}  # fmt: skip
FREEDOMS = {"fixed": 0, "spherical": 3, "custom": 2}
UNLIMITED = 1e16
_AXES = ("axis2", "axis")  # from the child outwards


@dataclass(frozen=True)
class SdfJoint:
    """One joint: its ends as links, its frame's name, and what our records take of it."""

    name: str
    element: Any
    parent: str
    child: str
    frame: str
    kind: str
    record: dict[str, Any]
    follows: Coupling | None

    @property
    def freedoms(self) -> int:
        return FREEDOMS.get(self.kind, 1)

    @property
    def carries(self) -> bool:
        """True where something acts in it, or it follows another joint."""
        return self.follows is not None or any(self.record.get(key) is not None for key in ("stiffness", "damping",
                                               "friction", "limits"))


def read_joint(element: Any, scope: str, frames: Frames, fields: Fields) -> SdfJoint | None:
    """A <joint>; None after a problem that leaves nothing of it."""
    name = f"{scope}{fields.name(element, 'a joint')}"
    owner, said = f"joint {name!r}", (element.get("type") or "").strip()
    if said not in KINDS:
        fields.problem(element, f"{owner} has type {said!r}, which is not read; read are {', '.join(KINDS)}")
        return None
    ends = [_end(element, tag, scope, owner, frames, fields) for tag in ("parent", "child")]
    if not all(ends):
        return None
    kind, count = KINDS[said]
    axes = [element.find(tag) for tag in (("axis",) if count == 1 else _AXES)[:count]]
    if any(axis is None for axis in axes):
        fields.problem(element, f"{owner}: a {said} joint needs {'<axis> and <axis2>' if count == 2 else '<axis>'}")
        return None
    record: dict[str, Any] = {"kind": kind}
    directions = [_direction(axis, name, scope, owner, frames, fields) for axis in axes]
    if count == 1:
        record["axis"] = frozen_array(directions[0])
    elif count == 2:
        record["map"] = frozen_array(np.vstack([np.column_stack(directions), np.zeros((3, 2))]))
        record["stages"] = (1, 1)
    if kind == "screw":
        record["pitch"] = _pitch(element, owner, fields)
    record |= _drive(axes, said, owner, fields)
    follows = next((c for axis in axes if (c := _mimic(axis, name, scope, owner, fields)) is not None), None)
    if follows is not None and count != 1:
        fields.problem(element, f"{owner}: mimic is read of joints with one axis")
    return SdfJoint(name, element, ends[0], ends[1], name, kind, record, follows)


def _end(element: Any, tag: str, scope: str, owner: str, frames: Frames, fields: Fields) -> str:
    """The link that an end of the joint moves with."""
    said = text(element, tag)
    if not said:
        fields.problem(element, f"{owner} needs a <{tag}>")
        return ""
    node = frames.named(scope, said, element.find(tag), f"{owner}, <{tag}>")
    link = frames.link_of(node) if node else ""
    if node and not link:
        fields.problem(element.find(tag), f"{owner}: {tag} {said!r} moves with no link")
    return link


def _direction(axis: Any, name: str, scope: str, owner: str, frames: Frames, fields: Fields) -> Array:
    """The axis in the joint's frame."""
    said = axis.find("xyz")
    if said is None:
        return np.array([0.0, 0.0, 1.0])  # SDF's default
    values = numbers(fields, said, 3, owner)
    if values is None or not np.linalg.norm(values) > 0:
        fields.problem(said, f"{owner}: the axis has no direction")
        return np.array([0.0, 0.0, 1.0])
    expressed = (said.get("expressed_in") or "").strip()
    if expressed:
        node = frames.named(scope, expressed, said, f"{owner}, expressed_in")
        if node:
            values = frames.world_pose(name)[:3, :3].T @ frames.world_pose(node)[:3, :3] @ values
    return values / np.linalg.norm(values)


def _pitch(element: Any, owner: str, fields: Fields) -> float:
    if element.find("screw_thread_pitch") is not None:
        return number(fields, element, "screw_thread_pitch", 1.0, owner) / (2 * np.pi)
    old = number(fields, element, "thread_pitch", 1.0, owner)
    if old == 0:
        fields.problem(element, f"{owner}: thread_pitch is 0; expected rad/m, or screw_thread_pitch in m per turn")
        return 1.0
    return -1.0 / old


def _drive(axes: list[Any], said: str, owner: str, fields: Fields) -> dict[str, Any]:
    """Springs, damping, friction and limits of the axes."""
    if not axes:
        return {}
    rows = [_axis_numbers(axis, said, owner, fields) for axis in axes]
    columns = {key: np.array([row[key] for row in rows]) for key in rows[0]}
    found: dict[str, Any] = {}
    if columns["stiffness"].any():
        found["stiffness"] = frozen_array(np.diag(columns["stiffness"]))
        found["rest"] = frozen_array(columns["rest"])
    if columns["damping"].any():
        found["damping"] = frozen_array(np.diag(columns["damping"]))
    if columns["friction"].any():
        found["friction"] = shapes.friction(owner, columns["friction"], len(axes))
    bounds = [columns[key] for key in ("lower", "upper", "velocity", "effort")]
    if any(np.isfinite(x).any() for x in bounds):
        found["limits"] = Limits(*(frozen_array(x) for x in bounds))
    return found


def _axis_numbers(axis: Any, said: str, owner: str, fields: Fields) -> dict[str, float]:
    nothing = axis.makeelement("nothing")
    dynamics = axis.find("dynamics") if axis.find("dynamics") is not None else nothing
    limit = axis.find("limit") if axis.find("limit") is not None else nothing

    def of(element: Any, tag: str, default: float = 0.0) -> float:
        return number(fields, element, tag, default, owner)

    lower, upper = of(limit, "lower", -np.inf), of(limit, "upper", np.inf)
    velocity, effort = (of(limit, tag, -1.0) for tag in ("velocity", "effort"))
    endless = said == "continuous"
    return {
        "stiffness": of(dynamics, "spring_stiffness"),
        "rest": of(dynamics, "spring_reference"),
        "damping": of(dynamics, "damping"),
        "friction": of(dynamics, "friction"),
        "lower": -np.inf if endless or lower <= -UNLIMITED else lower,
        "upper": np.inf if endless or upper >= UNLIMITED else upper,
        "velocity": np.inf if velocity < 0 else velocity,
        "effort": np.inf if effort < 0 else effort,
    }


def _mimic(axis: Any, name: str, scope: str, owner: str, fields: Fields) -> Coupling | None:
    """q = multiplier · (q of the leader − reference) + offset."""
    mimic = axis.find("mimic")
    if mimic is None:
        return None
    leader = fields.name(mimic, f"mimic of {owner}", "joint")
    if (mimic.get("axis") or "axis") != "axis":
        fields.problem(mimic, f"{owner}: mimic of the second axis of {leader!r} is not read")
    ratio, offset, reference = (number(fields, mimic, tag, default, owner) for tag, default in (
        ("multiplier", 1.0), ("offset", 0.0), ("reference", 0.0)))
    return Coupling(name, f"{scope}{leader}", ratio, offset - ratio * reference, fields.source(mimic))


__all__ = ["SdfJoint", "read_joint"]
