"""Values of SDF elements: texts, numbers and poses, each problem with its line."""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.algebra.rotations import quaternion_matrix, rpy_matrix
from polybody.description.limits import LARGEST_NUMBER, NUMBER_CHARACTERS
from polybody.description.records import Array
from polybody.description.xml.fields import Fields


def text(element: Any, tag: str, default: str = "") -> str:
    """The text of a child element."""
    return (element.findtext(tag) or default).strip()


def flag(element: Any, tag: str, default: bool = False) -> bool:
    """A boolean child element."""
    said = text(element, tag).lower()
    return default if not said else said in ("1", "true")


def numbers(fields: Fields, element: Any, count: int, owner: str) -> Array | None:
    """That many finite numbers in the text of an element; None after a problem."""
    said = (element.text or "").strip()
    try:
        if len(said) > NUMBER_CHARACTERS * count:
            raise ValueError
        values = np.array([float(word) for word in said.split()])
    except ValueError:
        values = np.zeros(0)
    if values.shape != (count,) or not np.all(np.abs(values) <= LARGEST_NUMBER):
        wanted = "a finite number" if count == 1 else f"{count} finite numbers"
        fields.problem(element, f"{owner}: <{element.tag}> is {said!r:.60}; expected {wanted}")
        return None
    return values


def number(fields: Fields, element: Any, tag: str, default: float, owner: str) -> float:
    """One number in a child element, infinite ones too (SDF writes inf for no limit)."""
    child = element.find(tag)
    if child is None:
        return default
    said = (child.text or "").strip().lower()
    if said in ("inf", "+inf", "-inf"):
        return float(said)
    found = numbers(fields, child, 1, owner)
    return default if found is None else float(found[0])


def pose(fields: Fields, element: Any, owner: str) -> tuple[Array, str]:
    """(4×4 pose, name of the frame it is given in, "" for the default) of an element's <pose>."""
    said, found = element.find("pose"), np.eye(4)
    if said is None:
        return found, ""
    quaternion = said.get("rotation_format") == "quat_xyzw"
    empty = not (said.text or "").strip()
    values = None if empty else numbers(fields, said, 7 if quaternion else 6, owner)
    if values is not None:
        found[:3, 3] = values[:3]
        turn = values[3:]
        if quaternion and abs(np.linalg.norm(turn) - 1) > 1e-3:
            fields.problem(said, f"{owner}: the quaternion has length {np.linalg.norm(turn):.6g}, expected 1")
        elif quaternion:
            found[:3, :3] = quaternion_matrix(turn / np.linalg.norm(turn))
        elif np.any(turn):
            degrees = said.get("degrees", "").lower() in ("1", "true")
            found[:3, :3] = rpy_matrix(np.radians(turn) if degrees else turn)
    return found, (said.get("relative_to") or "").strip()


__all__ = ["flag", "number", "numbers", "pose", "text"]
