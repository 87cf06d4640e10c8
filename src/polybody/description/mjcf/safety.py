"""What an MJCF file may open: itself, and files below its own folder.

MuJoCo follows `<include>`, `<model>` and every `file` attribute wherever they lead. Before it gets the file, all of
them are resolved (links too, and the compiler's folders) and what leaves the folder of the main file is refused; each
XML file among them passes the same gate as any other XML (`xml_safety`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from polybody.description.xml.fields import Fields
from polybody.description.xml.safety import parse_xml
from polybody.errors import InputError

MOST_FILES = 100
_FOLDERS = {
    "mesh": ("meshdir", "assetdir"),
    "hfield": ("meshdir", "assetdir"),
    "skin": ("meshdir", "assetdir"),
    "texture": ("texturedir", "assetdir"),
}
_XML_TAGS = ("include", "model")


def checked_sources(path: Path) -> dict[tuple[str, str], str]:
    """Check every file that the MJCF file names; return {(tag, name): "file.xml:LINE"} of its elements."""
    folder = path.parent.resolve()
    roots = _all_roots(path, folder)
    declared = {
        key: value
        for _, root in roots
        for compiler in root.iter("compiler")
        for key, value in compiler.attrib.items()
        if key in ("meshdir", "texturedir", "assetdir")
    }
    for fields, root in roots:
        for key in declared:
            for compiler in root.iter("compiler"):
                _require_inside(compiler, key, folder, folder, fields)
        for element in root.iter("*"):
            for key in element.attrib:
                if key.startswith("file") and element.tag not in _XML_TAGS:
                    for start in _folders_of(element.tag, declared, folder):
                        _require_inside(element, key, start, folder, fields)
        fields.raise_problems()
    return {
        (element.tag, element.get("name")): fields.source(element)
        for fields, root in roots
        for element in root.iter("body", "joint", "freejoint", "site", "connect", "weld")
        if element.get("name")
    }


def _all_roots(path: Path, folder: Path) -> list[tuple[Fields, Any]]:
    """The main file's root element and those of all files it includes, each with its messages."""
    waiting, seen, roots = [path], set(), []
    while waiting:
        current = waiting.pop()
        if current.resolve() in seen:
            continue
        seen.add(current.resolve())
        if len(seen) > MOST_FILES:
            raise InputError(f"{path.name}: includes more than {MOST_FILES} files")
        root, fields = parse_xml(current, kind="MJCF"), Fields(current.name)
        if current is path and root.tag != "mujoco":
            raise InputError(f"{fields.source(root)}: the root element is <{root.tag}>, an MJCF file has <mujoco>")
        for element in root.iter(*_XML_TAGS):
            if element.get("file") is not None:
                target = _require_inside(element, "file", folder, folder, fields)
                if target is not None and target.suffix.lower() in (".xml", ".mjcf", ".urdf"):
                    waiting.append(target)
        fields.raise_problems()
        roots.append((fields, root))
    return roots


def _folders_of(tag: str, declared: dict[str, str], folder: Path) -> list[Path]:
    """Where MuJoCo may look for a file of this element."""
    keys = _FOLDERS.get(tag, ("meshdir", "texturedir", "assetdir"))
    named = [folder / declared[key] for key in keys if key in declared]
    return named if tag in _FOLDERS and named else [folder, *named]


def _require_inside(element: Any, key: str, start: Path, folder: Path, fields: Fields) -> Path | None:
    """The resolved path; a problem where it leaves the folder, is absolute, or names another kind of resource."""
    text = element.get(key)
    if text is None:
        return None
    windows = text.replace("\\", "/")
    if ":" in text or windows.startswith("/"):
        fields.problem(element, f"<{element.tag} {key}={text!r}>: a path relative to the file's folder is wanted")
        return None
    target = (start / windows).resolve()
    if not target.is_relative_to(folder):
        fields.problem(
            element, f"<{element.tag} {key}={text!r}> leaves the folder of the file; what it opens must lie below it"
        )
        return None
    return target


__all__ = ["checked_sources"]
