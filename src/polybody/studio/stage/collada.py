"""COLLADA meshes (.dae): triangles and polygons with the colours of their materials, in metres.

    scene ─► nodes, each with transforms that multiply in their order ─► instance_geometry ─► mesh ─► primitives
                                                                         └ bind_material: symbol ─► material ─► effect

A primitive's <p> has one row per corner, of `1 + largest offset` indices; that of VERTEX leads to the positions.
Polygons (<polylist>) are fans about their first corner. The colour of a face is its material's diffuse one, else that
of the COLOR input. <unit meter> scales lengths; <up_axis> is not applied, as in RViz: robots' files place meshes by
their origins.

trimesh reads more (textures, polygons with holes, nodes used twice) and is ready after a second of imports: `read` is
None for what only it reads.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from polybody.description.files import read_bytes
from polybody.description.limits import ASSET_BYTES, LARGEST_NUMBER, MESH_FACES, RECORDS
from polybody.description.xml.safety import parse_xml_bytes
from polybody.errors import InputError

Array = np.ndarray
#: colour of faces that state none, in files where others do
PLAIN = (0.4, 0.4, 0.4)
MOST_DIGITS = 9  # of strides and offsets
_ELSEWHERE = ("instance_node", "instance_controller", "lookat", "skew", "polygons", "trifans", "tristrips", "texture")


class Corners(NamedTuple):
    """Triangles of a file: vertices (n, 3), faces (m, 3), colours (n, 3) from 0 to 255 or None."""

    vertices: Array
    faces: Array
    colors: Array | None = None


class _File:
    """A parsed file: elements by name, and by id where something refers to it."""

    def __init__(self, path: str) -> None:
        self.name = Path(path).name
        data = read_bytes(Path(path), ASSET_BYTES, "COLLADA")
        self.root = parse_xml_bytes(data, self.name, kind="COLLADA", long_texts=True)
        self.space = self.root.tag.rpartition("}")[0] + "}" if "}" in self.root.tag else ""
        self.known = {element.get("id"): element for element in self.root.iter() if element.get("id")}
        self.arrays: dict[str, Array] = {}

    def all(self, element: Any, path: str) -> list[Any]:
        return element.findall("/".join(self.space + name for name in path.split("/")))

    def first(self, element: Any, path: str) -> Any:
        return element.find("/".join(self.space + name for name in path.split("/")))

    def holds(self, *names: str) -> bool:
        return any(next(self.root.iter(self.space + name), None) is not None for name in names)

    def called(self, reference: str | None) -> Any:
        found = self.known.get((reference or "").removeprefix("#"))
        if found is None:
            raise InputError(f"{self.name}: refers to {reference!r}, which is not in the file")
        return found

    def numbers(self, element: Any, kind: Any = float) -> Array:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", DeprecationWarning)  # how older NumPy tells of text that is no number
                found = np.fromstring(element.text or "", dtype=kind, sep=" ")
        except (ValueError, DeprecationWarning) as error:
            raise InputError(f"{self.name}:{element.sourceline}: {error}") from None
        if not np.isfinite(found).all():
            raise InputError(f"{self.name}:{element.sourceline}: has numbers that are not finite")
        return found

    def indices(self, element: Any) -> Array:
        return self.numbers(element, np.int64)

    def whole(self, element: Any, name: str, usual: int) -> int:
        """An attribute that counts something of the file."""
        text = element.get(name, str(usual)).strip()
        if not text.isdecimal() or len(text) > MOST_DIGITS:
            raise InputError(f"{self.name}:{element.sourceline}: {name}={text[:40]!r}; expected a whole number")
        return int(text)

    def source(self, reference: str | None, least: int) -> Array:
        """The rows of a <source>, by its accessor."""
        element = self.called(reference)
        if element.tag == self.space + "vertices":
            inputs = {one.get("semantic"): one.get("source") for one in self.all(element, "input")}
            element = self.called(inputs.get("POSITION"))
        accessor = self.first(element, "technique_common/accessor")
        if accessor is None:
            raise InputError(f"{self.name}:{element.sourceline}: a <source> without <accessor>")
        key = accessor.get("source") or ""
        if key not in self.arrays:
            self.arrays[key] = self.numbers(self.called(key))
        stride, start = self.whole(accessor, "stride", 1), self.whole(accessor, "offset", 0)
        rows = self.arrays[key][start:]
        if stride < least:
            raise InputError(f"{self.name}:{accessor.sourceline}: rows of {stride} numbers; expected {least} or more")
        return rows[: len(rows) // stride * stride].reshape(-1, stride)[:, :least]


def unit(path: str) -> float:
    """Metres of the file's unit of length."""
    return _unit(_File(path))


def _unit(file: _File) -> float:
    stated = file.first(file.root, "asset/unit")
    if stated is None:
        return 1.0
    text = stated.get("meter", "1")
    try:
        found = float(text)
    except ValueError:
        found = np.nan
    if not (np.isfinite(found) and found > 0):
        raise InputError(f"{file.name}:{stated.sourceline}: <unit meter={text!r}>; expected a length")
    return found


def read(path: str) -> Corners | None:
    """All triangles of the scene, None where the file has what only trimesh reads; errors where it is damaged."""
    file = _File(path)
    if file.holds(*_ELSEWHERE):
        return None
    instance = file.first(file.root, "scene/instance_visual_scene")
    if instance is None:
        raise InputError(f"{file.name}: has no <scene> to show")
    found: list[Corners] = []
    made: dict[Any, Corners] = {}  # a geometry may be placed many times
    count = 0
    todo = [(node, np.eye(4)) for node in file.all(file.called(instance.get("url")), "node")]
    while todo:
        node, above = todo.pop()
        with np.errstate(all="ignore"):  # what is not finite then is refused below
            pose = above @ _transform(file, node)
        todo += [(child, pose) for child in file.all(node, "node")]
        for placed in file.all(node, "instance_geometry"):
            bound = {one.get("symbol"): one.get("target")
                     for one in file.all(placed, "bind_material/technique_common/instance_material")}  # fmt: skip
            mesh = file.first(file.called(placed.get("url")), "mesh")
            primitives = [] if mesh is None else [*file.all(mesh, "triangles"), *file.all(mesh, "polylist")]
            for primitive in primitives:
                target = bound.get(primitive.get("material") or "")
                if (primitive, target) not in made:
                    made[primitive, target] = _corners(file, primitive, target)
                one = made[primitive, target]
                count += len(one.faces)
                if len(one.faces):
                    found.append(_moved(one, pose))
                if count > MESH_FACES or len(found) > RECORDS:
                    raise InputError(f"{file.name}: shows more than {MESH_FACES} triangles, or {RECORDS} meshes")
    if not found:
        raise InputError(f"{file.name}: has no triangles")
    before = np.cumsum([0, *(len(one.vertices) for one in found)])
    faces = np.concatenate([one.faces + k for one, k in zip(found, before, strict=False)])
    colors = None
    if any(one.colors is not None for one in found):
        each = [np.tile(PLAIN, (len(one.vertices), 1)) if one.colors is None else one.colors for one in found]
        colors = np.round(255 * np.clip(np.concatenate(each), 0, 1)).astype(np.uint8)
    vertices = np.concatenate([one.vertices for one in found]) * _unit(file)
    if not np.abs(vertices).max() <= LARGEST_NUMBER:
        raise InputError(f"{file.name}: has vertices farther away than {LARGEST_NUMBER:g} m")
    return Corners(vertices, faces, colors)


def _moved(mesh: Corners, pose: Array) -> Corners:
    """Triangles in another frame; a mirror turns them around, so that they still show their outer sides."""
    with np.errstate(all="ignore"):
        faces = mesh.faces if np.linalg.det(pose[:3, :3]) > 0 else mesh.faces[:, ::-1]
        return Corners(mesh.vertices @ pose[:3, :3].T + pose[:3, 3], faces, mesh.colors)


def _transform(file: _File, node: Any) -> Array:
    """The product of a node's transforms."""
    result = np.eye(4)
    for element in node:
        kind = element.tag.removeprefix(file.space)
        size = {"matrix": 16, "translate": 3, "rotate": 4, "scale": 3}.get(kind)
        if size is None:
            continue
        numbers = file.numbers(element)
        if len(numbers) != size:
            raise InputError(f"{file.name}:{element.sourceline}: <{kind}> of {len(numbers)} numbers; expected {size}")
        one = np.eye(4)
        if kind == "matrix":
            one = numbers.reshape(4, 4)
        elif kind == "translate":
            one[:3, 3] = numbers
        elif kind == "scale":
            one[:3, :3] = np.diag(numbers)
        elif (length := np.linalg.norm(numbers[:3])) > 0:  # about an axis, in degrees: Rodrigues
            x, y, z = numbers[:3] / length
            cross, angle = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]]), np.deg2rad(numbers[3])
            one[:3, :3] += np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross
        result = result @ one
    return result


def _corners(file: _File, primitive: Any, target: str | None) -> Corners:
    """The triangles of a primitive with that material, with colours from 0 to 1."""
    inputs = file.all(primitive, "input")
    offsets = [file.whole(one, "offset", 0) for one in inputs]
    places = {one.get("semantic"): (offset, one.get("source")) for one, offset in zip(inputs, offsets, strict=True)}
    lists = [file.indices(p) for p in file.all(primitive, "p")]
    if "VERTEX" not in places or not lists:
        return Corners(np.zeros((0, 3)), np.zeros((0, 3), dtype=np.int64))
    width = max(offsets) + 1
    rows = np.concatenate(lists)
    if len(rows) % width:
        raise InputError(f"{file.name}:{primitive.sourceline}: indices do not come in rows of {width}")
    rows = rows.reshape(-1, width)
    counted = file.first(primitive, "vcount")
    if counted is not None:
        rows = rows[_fans(file, counted, len(rows))]
    elif len(rows) % 3:
        raise InputError(f"{file.name}:{primitive.sourceline}: {len(rows)} corners are no whole triangles")

    def taken(semantic: str) -> tuple[Array, Array]:
        offset, reference = places[semantic]
        values, index = file.source(reference, 3), rows[:, offset]
        if len(index) and not (index.min() >= 0 and index.max() < len(values)):
            raise InputError(f"{file.name}:{primitive.sourceline}: an index is beyond the {len(values)} of {semantic}")
        return values, index

    values, index = taken("VERTEX")
    if target is None and "COLOR" in places:  # of each corner
        colors, chosen = taken("COLOR")
        return Corners(values[index], np.arange(len(index)).reshape(-1, 3), colors[chosen])
    used = np.zeros(len(values), dtype=bool)
    used[index] = True
    faces = (np.cumsum(used) - 1)[index].reshape(-1, 3)
    color = None if target is None else np.tile(_diffuse(file, target), (int(used.sum()), 1))
    return Corners(values[used], faces, color)


def _fans(file: _File, counted: Any, corners: int) -> Array:
    """Which corners make the triangles of polygons with so many corners each."""
    counts = file.indices(counted)
    if len(counts) and (counts.min() < 0 or counts.max() > corners):
        raise InputError(f"{file.name}:{counted.sourceline}: <vcount> counts more corners than {corners}, or below 0")
    if len(counts) and counts.sum() != corners:
        raise InputError(f"{file.name}:{counted.sourceline}: <vcount> counts {counts.sum()} corners of {corners}")
    start, many = np.cumsum(counts) - counts, np.maximum(counts - 2, 0)
    step = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
    first = np.repeat(start, many)
    return np.column_stack([first, first + step + 1, first + step + 2]).ravel()


def _diffuse(file: _File, target: str) -> Array:
    """The diffuse colour of a material, white where its effect has none."""
    instance = file.first(file.called(target), "instance_effect")
    effect = file.called(None if instance is None else instance.get("url"))
    for element in effect.iter(file.space + "diffuse"):
        color = file.first(element, "color")
        if color is not None and len(numbers := file.numbers(color)) >= 3:
            return numbers[:3]
    return np.ones(3)


__all__ = ["Corners", "read", "unit"]
