"""Values of a mechanism file that are more than numbers: axes, poses, kinds, maps, names, addresses of meshes.

Each converter takes what the value is called and its node, and raises an `InputError` that says what was wanted.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np

from polybody.algebra.rotations import quaternion_matrix, rpy_matrix
from polybody.algebra.spatial import pose
from polybody.description import shapes
from polybody.description.fields import Fields, Notes, as_count, as_numbers, as_text
from polybody.description.mechanism_file.yaml_nodes import Mapping, Node, Scalar, Sequence, describe
from polybody.description.records import KINDS, Array, frozen_array
from polybody.description.units import ANGLE, LENGTH
from polybody.errors import InputError
from polybody.names import listed, nearest

_AXES = {
    sign + letter: value * np.eye(3)[i] + 0.0
    for i, letter in enumerate("xyz")
    for sign, value in (("", 1.0), ("+", 1.0), ("-", -1.0))
}


def as_array(*shape: int, dimensions: tuple[str, ...] = ()) -> Callable[[str, Node], Array]:
    return lambda what, node: shapes.numbers(what, as_numbers(*dimensions)(what, node), *shape)


def as_axis(what: str, node: Node) -> Array:
    if isinstance(node, Scalar):
        if node.text not in _AXES:
            raise InputError(f"{what} must be three numbers or one of {listed(_AXES)}, got {describe(node)}")
        return frozen_array(_AXES[node.text])
    return as_array(3)(what, node)


def as_pose(notes: Notes) -> Callable[[str, Node], Array]:
    """[x, y, z], {xyz, and one of rpy, quaternion, rotation}, or {matrix}."""

    def convert(what: str, node: Node) -> Array:
        if isinstance(node, Sequence):
            return shapes.pose_matrix(what, as_numbers(LENGTH)(what, node))
        if not isinstance(node, Mapping):
            raise InputError(f"{what} must be [x, y, z] or a mapping of xyz and rpy, got {describe(node)}")
        part = Fields(notes, what, node, ("xyz", "rpy", "quaternion", "rotation", "matrix"))
        turns = [key for key in ("rpy", "quaternion", "rotation", "matrix") if key in part]
        if len(turns) > 1 or ("matrix" in part and "xyz" in part):
            raise InputError(
                f"{what} has {' and '.join(part.pairs)}; one of rpy, quaternion, rotation is enough, and "
                "matrix stands alone"
            )
        if "matrix" in part:
            return part.get("matrix", as_array(4, 4), frozen_array(np.eye(4)))
        rotation = np.eye(3)
        if "rpy" in part:
            turn = part.get("rpy", as_array(3, dimensions=(ANGLE,)), np.zeros(3))
            if not np.isfinite(turn).all():
                raise InputError(f"{what}: rpy is {turn}, expected finite angles")
            rotation = rpy_matrix(turn)
        elif "quaternion" in part:
            rotation = quaternion_matrix(part.get("quaternion", as_quaternion, np.array([0.0, 0, 0, 1])))
        elif "rotation" in part:
            rotation = part.get("rotation", as_array(3, 3), np.eye(3))
        return frozen_array(pose(rotation, part.get("xyz", as_array(3, dimensions=(LENGTH,)), np.zeros(3))))

    return convert


def as_quaternion(what: str, node: Node) -> Array:
    q = as_array(4)(what, node)
    length = float(np.linalg.norm(q))
    if not abs(length - 1) <= shapes.AXIS_SLACK:
        raise InputError(f"{what} has length {length:.6g}, expected a unit (x, y, z, w)")
    return q / length


def as_kind(what: str, node: Node) -> str:
    kind = as_text(what, node)
    if kind not in KINDS:
        raise InputError(f"{what}: no kind {kind!r}{nearest(kind, KINDS)}; available: {listed(KINDS)}")
    return kind


def as_stages(what: str, node: Node) -> tuple[int, ...]:
    if not isinstance(node, Sequence):
        raise InputError(f"{what} must be a list of whole numbers, got {describe(node)}")
    return tuple(as_count(f"{what}[{i}]", item) for i, item in enumerate(node.items))


def as_map(what: str, node: Node) -> Array:
    rows = as_numbers()(what, node)
    return shapes.numbers(what, rows, *np.shape(rows)) if _is_regular(rows) else shapes.numbers(what, rows, 6, 1)


def _is_regular(rows: Any) -> bool:
    return not isinstance(rows, list) or len({np.shape(row) for row in rows}) <= 1


def mesh_path(what: str, text: str) -> str:
    """A mesh's address: a URI as it is, a relative path that stays in the file's folder."""
    if "://" in text:
        return text
    windows = PureWindowsPath(text)
    if PurePosixPath(text).is_absolute() or windows.is_absolute() or windows.drive or ".." in windows.parts:
        raise InputError(f"{what} {text!r} leaves the folder of its file; put it beside the file or below")
    return text


def as_names(what: str, node: Node) -> tuple[str, ...]:
    if not isinstance(node, Sequence):
        raise InputError(f"{what} must be a list of names, got {describe(node)}")
    return tuple(as_text(f"{what}[{i}]", item) for i, item in enumerate(node.items))


def as_expression(what: str, node: Node) -> str:
    if not isinstance(node, Scalar) or not node.text:
        raise InputError(f"{what} must be an expression, got {describe(node)}")
    return node.text


__all__ = ["as_array", "as_axis", "as_expression", "as_kind", "as_map", "as_names", "as_pose", "as_stages", "mesh_path"]
