"""What an SDF link weighs, and the shapes that are drawn for it."""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.description.records import Array, Visual, frozen_array
from polybody.description.sdf.values import number, numbers, pose, text
from polybody.description.xml.fields import Fields


def read_inertial(link: Any, owner: str, fields: Fields) -> tuple[float, Array, Array]:
    """(mass, com, inertia about it in link axes); SDF's default is 1 kg and unit inertia."""
    inertial = link.find("inertial")
    if inertial is None:
        return 1.0, frozen_array(np.zeros(3)), frozen_array(np.eye(3))
    placed, relative = pose(fields, inertial, f"inertial of {owner}")
    if relative:
        fields.problem(inertial, f"inertial of {owner}: relative_to is not allowed here")
    if (inertial.get("auto") or "").strip().lower() in ("1", "true"):
        fields.problem(inertial, f"inertial of {owner}: auto='true' (from collision shapes) is not read; state <mass> "
                       "and <inertia>")  # fmt: skip
    mass = number(fields, inertial, "mass", 1.0, owner)
    said = inertial.find("inertia")
    inertia = np.eye(3)
    if said is not None:
        xx, yy, zz = (number(fields, said, key, 1.0, owner) for key in ("ixx", "iyy", "izz"))
        xy, xz, yz = (number(fields, said, key, 0.0, owner) for key in ("ixy", "ixz", "iyz"))
        inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    R = placed[:3, :3]
    if not np.array_equal(R, np.eye(3)):
        inertia = R @ inertia @ R.T
        inertia = (inertia + inertia.T) / 2
    return mass, frozen_array(placed[:3, 3]), frozen_array(inertia)


def read_visuals(link: Any, owner: str, fields: Fields) -> tuple[Visual, ...]:
    """The link's visuals; shapes that are not drawn here are left out."""
    found = [_read_visual(visual, f"visual of {owner}", fields) for visual in link.findall("visual")]
    return tuple(visual for visual in found if visual is not None)


def _read_visual(visual: Any, owner: str, fields: Fields) -> Visual | None:
    geometry = visual.find("geometry")
    shape = None if geometry is None else next((child for child in geometry if isinstance(child.tag, str)), None)
    if shape is None:
        return None
    mesh, size = None, None
    if shape.tag == "box":
        size = _numbers(fields, shape, "size", 3, owner)
    elif shape.tag in ("cylinder", "sphere"):
        keys = ("radius", "length") if shape.tag == "cylinder" else ("radius",)
        size = np.array([number(fields, shape, key, 0.0, owner) for key in keys])
    elif shape.tag == "mesh":
        mesh = text(shape, "uri")
        size = np.ones(3) if shape.find("scale") is None else _numbers(fields, shape, "scale", 3, owner)
    if size is None:
        return None
    placed, _ = pose(fields, visual, owner)
    diffuse = visual.find("material/diffuse")
    color = None if diffuse is None else numbers(fields, diffuse, 4, owner)
    shown = None if color is None else (float(color[0]), float(color[1]), float(color[2]), float(color[3]))
    return Visual(shape.tag, frozen_array(size), frozen_array(placed), mesh, shown)


def _numbers(fields: Fields, element: Any, tag: str, count: int, owner: str) -> Array | None:
    child = element.find(tag)
    return None if child is None else numbers(fields, child, count, owner)


__all__ = ["read_inertial", "read_visuals"]
