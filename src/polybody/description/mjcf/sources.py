"""What MuJoCo is given of an MJCF file: everything that was checked, and nothing else.

MuJoCo follows `<include>`, `<model>` and every `file` attribute wherever they lead, and replicates and attaches as
often as it is named. So it gets no path at all: the file is read here, includes are put in their places, recursively,
and every other file that it names is read into memory and renamed. All of them are resolved (links and the compiler's
folders too) and must lie in the folder of the main file or below; each XML file passes the same gate as any other
(`xml.safety`). How large the compiled model would be is counted first, against `limits`.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from polybody.description.files import read_bytes
from polybody.description.limits import (
    ASSET_BYTES,
    INCLUDED_FILES,
    MB,
    MJCF_CELLS,
    MJCF_COUNT,
    MJCF_DEPTH,
    MJCF_ELEMENTS,
    MJCF_VERTEX_NUMBERS,
)
from polybody.description.xml.fields import Fields
from polybody.description.xml.safety import parse_xml
from polybody.errors import InputError

_FOLDERS = {
    "mesh": ("meshdir", "assetdir"),
    "hfield": ("meshdir", "assetdir"),
    "skin": ("meshdir", "assetdir"),
    "texture": ("texturedir", "assetdir"),
}
_FOLDER_KEYS = ("meshdir", "texturedir", "assetdir")
#: tags whose name, where they have none, is that of their file
_NAMED_BY_FILE = tuple(_FOLDERS)
#: attributes that make MuJoCo allocate by their value; `nuser_…` besides
_COUNTS = ("nkey", "octree_maxdepth", "params")
#: attributes whose product is a number of cells
_CELLS = {"hfield": ("nrow", "ncol"), "texture": ("width", "height")}
#: elements that stand for many: the attribute that says how many
_MULTIPLIED = {"replicate": "count", "composite": "count", "flexcomp": "count"}
#: attributes that may say nothing. Of others MuJoCo (4.0) may throw what it cannot catch, and never reads a file again.
_MAY_BE_EMPTY = ("name", "class", "childclass", "model", "prefix", "suffix", "data", "value", *_FOLDER_KEYS)
#: where an element came from, while its tree is put together
_ORIGIN = "polybody-origin"


@dataclass
class Sources:
    """The text for MuJoCo, the files it names, where its elements were written, and each element's place in order."""

    text: str
    files: dict[str, bytes]
    places: dict[tuple[str, str], str]
    origins: list[str] = field(repr=False, default_factory=list)

    def located(self, message: str) -> str:
        """A message of MuJoCo with the lines of its text turned into those of the files."""
        import lxml.etree as etree

        root = etree.fromstring(self.text)
        lines = {element.sourceline: origin for element, origin in zip(root.iter(), self.origins, strict=True)}

        def place(match: re.Match[str]) -> str:
            return lines.get(int(match[1]), match[0])

        return re.sub(r"line (\d+)", place, message)


def checked_sources(path: Path) -> Sources:
    """Check every file that the MJCF file names, and put together what MuJoCo may see."""
    import lxml.etree as etree

    gathered = _Gathered(path)
    root, _ = gathered.model(path.name, gathered.folder / path.name)
    tags = ("body", "joint", "freejoint", "site", "connect", "weld")
    places = {(e.tag, e.get("name")): e.get(_ORIGIN) for e in root.iter(*tags) if e.get("name")}
    origins = [element.attrib.pop(_ORIGIN) for element in root.iter()]
    return Sources(etree.tostring(root, encoding="unicode"), gathered.files, places, origins)


class _Gathered:
    """The files that one MJCF file names, read so far."""

    def __init__(self, path: Path) -> None:
        self.folder = path.parent.resolve()
        self.main = path.name
        self.files: dict[str, bytes] = {}
        self.names: dict[Path, str] = {}
        self.weights: dict[Path, int] = {}
        self.opened = 0
        self.bytes = 0
        self.waiting: list[Path] = []  # models whose parts are being read

    def model(self, name: str, path: Path) -> tuple[Any, int]:
        """The root of one model, includes in place and files renamed, and how many elements it compiles to."""
        if path in self.waiting:
            raise InputError(f"{name}: is a part of itself")
        self.waiting.append(path)
        root, fields = self._parsed(name, path)
        if root.tag != "mujoco":
            raise InputError(f"{fields.source(root)}: the root element is <{root.tag}>, an MJCF file has <mujoco>")
        self._include(root, fields, {path})
        weight = self._weigh(root, name, self._rename(root, name, path.parent))
        self.waiting.pop()
        return root, weight

    def _parsed(self, name: str, path: Path) -> tuple[Any, Fields]:
        """A file's root, each element marked with its place."""
        self.opened += 1
        if self.opened > INCLUDED_FILES:
            raise InputError(f"{self.main}: includes more than {INCLUDED_FILES} files")
        root, fields = parse_xml(path, kind="MJCF", name=name), Fields(name)
        for element in root.iter():
            element.set(_ORIGIN, fields.source(element))
        return root, fields

    def _include(self, root: Any, fields: Fields, seen: set[Path]) -> None:
        """Put the content of every included file in the place of its <include>."""
        for element in list(root.iter("include")):
            target = self._inside(element, "file", self.folder, fields)
            fields.raise_problems()
            if target is None:
                raise InputError(f"{fields.source(element)}: <include> needs the attribute 'file'")
            if target in seen:
                raise InputError(f"{fields.source(element)}: {element.get('file')!r} is included a second time")
            seen.add(target)
            part, part_fields = self._parsed(target.name, target)
            self._include(part, part_fields, seen)
            parent = element.getparent()
            at = parent.index(element)
            parent[at : at + 1] = list(part)

    def _rename(self, root: Any, name: str, start: Path) -> dict[str, int]:
        """Read the files that elements name, give them names in `files`; return the weight of each attached model."""
        fields = Fields(name)
        compilers = list(root.iter("compiler"))
        folders: dict[str, Path] = {}
        for compiler in compilers:
            for key in _FOLDER_KEYS:
                folder = self._inside(compiler, key, start, fields)
                if folder is not None:
                    folders[key] = folder
        fields.raise_problems()
        weights: dict[str, int] = {}
        for element in root.iter():
            for key in [key for key in element.attrib if key.startswith("file")]:
                if element.tag == "model":
                    self._rename_model(element, key, start, weights, fields)
                else:
                    self._rename_file(element, key, _starts(element.tag, folders, start), fields)
        for compiler in compilers:
            for key in (*_FOLDER_KEYS, "strippath"):
                compiler.attrib.pop(key, None)
        fields.raise_problems()
        return weights

    def _rename_model(self, element: Any, key: str, start: Path, weights: dict[str, int], fields: Fields) -> None:
        import lxml.etree as etree

        target = self._inside(element, key, start, fields)
        if target is None:
            return
        if target not in self.names:
            root, self.weights[target] = self.model(target.name, target)
            weights[root.get("model", "")] = self.weights[target]
            for part in root.iter():
                part.attrib.pop(_ORIGIN)
            self._keep(target, etree.tostring(root), ".xml")
        weights[element.get("name", "")] = self.weights[target]
        element.set(key, self.names[target])

    def _rename_file(self, element: Any, key: str, starts: list[Path], fields: Fields) -> None:
        targets = [self._inside(element, key, start, fields) for start in starts]
        target = next((t for t in targets if t is not None and os.path.exists(t)), targets[0])
        if target is None or None in targets:
            return
        if target not in self.names:
            self._keep(target, read_bytes(target, ASSET_BYTES, f"<{element.tag}>"), target.suffix.lower())
        if key == "file" and element.tag in _NAMED_BY_FILE and element.get("name") is None:
            element.set("name", PurePosixPath(element.get(key).replace("\\", "/")).stem)
        element.set(key, self.names[target])

    def _keep(self, path: Path, data: bytes, suffix: str) -> None:
        self.bytes += len(data)
        if self.bytes > ASSET_BYTES:
            raise InputError(f"{self.main}: the files it names have more than {ASSET_BYTES // MB} MB together")
        self.names[path] = f"part{len(self.names)}{suffix}"
        self.files[self.names[path]] = data

    def _inside(self, element: Any, key: str, start: Path, fields: Fields) -> Path | None:
        """The resolved path; a problem where it leaves the folder, is absolute, or names another kind of resource."""
        text = element.get(key)
        if text is None:
            return None
        said = f"<{element.tag} {key}={text!r:.200}>"
        windows = text.replace("\\", "/")
        if ":" in text or "\0" in text or windows.startswith("/"):
            fields.problem_at(element.get(_ORIGIN), f"{said}: a path relative to the file's folder is expected")
            return None
        target = (start / windows).resolve()
        if not target.is_relative_to(self.folder):
            leaves = f"{said} leaves the folder of the file; what it opens must lie below it"
            fields.problem_at(element.get(_ORIGIN), leaves)
            return None
        return target

    def _weigh(self, root: Any, name: str, models: dict[str, int]) -> int:
        """How many elements the model has once everything is carried out; an error where it is too large."""
        weights: dict[int, int] = {}
        order = [(root, 1)]
        for element, depth in order:  # grows while it is read: parents before their children
            if depth > MJCF_DEPTH:
                raise InputError(f"{element.get(_ORIGIN)}: nested more than {MJCF_DEPTH} deep")
            order.extend((child, depth + 1) for child in element)
        vertices = 0
        for element, _ in reversed(order):
            _refuse_sizes(element)
            vertices += len((element.get("vertex") or "").split())
            if vertices > MJCF_VERTEX_NUMBERS:
                raise InputError(
                    f"{element.get(_ORIGIN)}: the vertices of meshes that stand in the file have more than "
                    f"{MJCF_VERTEX_NUMBERS} numbers; write the mesh as a file (.obj, .stl)"
                )
            weight = 1 + sum(weights[id(child)] for child in element)
            if element.tag in _MULTIPLIED:
                weight *= _product(element, _MULTIPLIED[element.tag])
            elif element.tag == "attach":
                weight += models.get(element.get("model", ""), 0)
            weights[id(element)] = weight
            if weight > MJCF_ELEMENTS:
                raise InputError(
                    f"{element.get(_ORIGIN)}: <{element.tag}> expands to more than {MJCF_ELEMENTS} elements of "
                    f"{name!r}; no more are compiled"
                )
        return weights[id(root)]


def _starts(tag: str, folders: dict[str, Path], start: Path) -> list[Path]:
    """Where MuJoCo may look for a file of this element."""
    named = [folders[key] for key in _FOLDERS.get(tag, _FOLDER_KEYS) if key in folders]
    return named[:1] if tag in _FOLDERS and named else [start, *named]


def _product(element: Any, key: str) -> int:
    result = 1
    for word in (element.get(key) or "1").split():
        if not re.fullmatch(r"\+?\d{1,9}", word, re.ASCII):
            raise InputError(f"{element.get(_ORIGIN)}: <{element.tag} {key}={word!r:.40}> is not a whole number")
        result *= max(1, int(word))
    return result


def _refuse_sizes(element: Any) -> None:
    """Attributes that would make MuJoCo allocate more than any model needs."""
    for key, text in element.attrib.items():
        if not text.strip() and key not in _MAY_BE_EMPTY:
            raise InputError(f"{element.get(_ORIGIN)}: <{element.tag} {key}={text!r:.40}> is empty; leave it out")
        if key in _COUNTS or key.startswith("nuser_"):
            for word in text.split():
                if not re.fullmatch(r"[-+]?\d{1,9}(\.\d*)?", word, re.ASCII) or float(word) > MJCF_COUNT:
                    raise InputError(
                        f"{element.get(_ORIGIN)}: <{element.tag} {key}={text!r:.40}>: expected a number of at most "
                        f"{MJCF_COUNT}"
                    )
    if element.tag in _CELLS:
        cells = 1
        for key in _CELLS[element.tag]:
            cells *= _product(element, key)
        if cells > MJCF_CELLS:
            where = element.get(_ORIGIN)
            raise InputError(f"{where}: <{element.tag}> has {cells} cells, at most {MJCF_CELLS} are read")


__all__ = ["Sources", "checked_sources"]
