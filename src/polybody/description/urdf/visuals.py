"""The shapes that a URDF draws: read into `Visual` records, mesh names left as the file gives them."""

from __future__ import annotations

from typing import Any

from polybody.description.records import Visual, frozen_array
from polybody.description.urdf.poses import read_origin
from polybody.description.xml.fields import Fields

Color = tuple[float, float, float, float]


def read_materials(robot: Any, fields: Fields) -> dict[str, Color]:
    """Colours of the materials that the file defines, at its top or inside visuals, by name."""
    colors: dict[str, Color] = {}
    for material in robot.iter("material"):
        color, name = material.find("color"), material.get("name")
        if color is not None and name and color.get("rgba") is not None:
            colors.setdefault(name, _rgba(color, f"material {name!r}", fields))
    return colors


def read_visuals(link: Any, name: str, colors: dict[str, Color], fields: Fields) -> tuple[Visual, ...]:
    """The link's visuals; shapes that URDF does not define are left out, for they have no part in motion."""
    visuals = [_read_visual(visual, f"visual of link {name!r}", colors, fields) for visual in link.findall("visual")]
    return tuple(v for v in visuals if v is not None)


def _read_visual(visual: Any, owner: str, colors: dict[str, Color], fields: Fields) -> Visual | None:
    geometry = visual.find("geometry")
    if geometry is None:
        fields.problem(visual, f"{owner} needs a <geometry>")
        return None
    shape = next((child for child in geometry if isinstance(child.tag, str)), None)
    if shape is None:
        return None
    sized = _read_size(shape, owner, fields)
    if sized is None:
        return None
    size, mesh = sized
    return Visual(
        shape=shape.tag,
        size=frozen_array(size),
        origin=read_origin(visual, owner, fields),
        mesh=mesh,
        color=_read_color(visual, owner, colors, fields),
    )


def _read_size(shape: Any, owner: str, fields: Fields) -> tuple[tuple[float, ...], str | None] | None:
    if shape.tag == "mesh":
        return fields.numbers(shape, "scale", (1.0, 1.0, 1.0), owner=owner), fields.name(shape, "a mesh", "filename")
    if shape.tag == "box":
        if shape.get("size") is None:
            fields.problem(shape, f"{owner}: <box> needs the attribute 'size', 3 numbers")
        return fields.numbers(shape, "size", (0.0, 0.0, 0.0), owner=owner), None
    if shape.tag == "cylinder":
        return tuple(fields.number(shape, key, None, owner=owner) for key in ("radius", "length")), None
    if shape.tag == "sphere":
        return (fields.number(shape, "radius", None, owner=owner),), None
    return None


def _read_color(visual: Any, owner: str, colors: dict[str, Color], fields: Fields) -> Color | None:
    material = visual.find("material")
    if material is None:
        return None
    color = material.find("color")
    if color is not None and color.get("rgba") is not None:
        return _rgba(color, owner, fields)
    return colors.get(material.get("name", ""))


def _rgba(color: Any, owner: str, fields: Fields) -> Color:
    r, g, b, a = fields.numbers(color, "rgba", (0.5, 0.5, 0.5, 1.0), owner=owner)
    return r, g, b, a


__all__ = ["read_materials", "read_visuals"]
