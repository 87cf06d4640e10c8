"""The package path: where a xacro file may include from.

A file belongs to the package of the nearest folder above it that holds a `package.xml`, or, without one, to its own
folder. `$(find NAME)` is that package, one beside it, or one on ROS_PACKAGE_PATH or AMENT_PREFIX_PATH. What a file
includes or loads must lie, links followed, in one of the packages that were found.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

from polybody.description.files import read_text
from polybody.description.limits import INCLUDED_FILES, XML_BYTES
from polybody.description.naming import shown
from polybody.errors import InputError
from polybody.names import nearest

MARK = "package.xml"
_FIND = re.compile(r"\$\(find ([\w-]+)\)")
_EXPRESSION = re.compile(r"\$\{[^}]*\}|\$\([^)]*\)")
#: what reads like the name of a file: its parts are letters or expressions
_NAMED = re.compile(r"(?:[\w./-]|\$\{[^}]*\}|\$\([^)]*\))+\.(?:xacro|urdf|xml|ya?ml)\b")


def package_of(path: Path) -> Path:
    """The folder of the package that a file belongs to."""
    folder = path.resolve().parent
    return next((f for f in (folder, *folder.parents) if (f / MARK).is_file()), folder)


def package_path(path: Path, environment: Mapping[str, str]) -> list[Path]:
    """Folders that hold packages, the file's own neighbours first."""
    own = package_of(path)
    beside = [own.parent] if (own / MARK).is_file() else []
    ros = [Path(x) for x in environment.get("ROS_PACKAGE_PATH", "").split(os.pathsep) if x]
    ament = [Path(x) / "share" for x in environment.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if x]
    return [folder.resolve() for folder in (*beside, *ros, *ament) if folder.is_dir()]


def files_of(path: Path, environment: Mapping[str, str]) -> list[Path]:
    """The file and all that its expansion may read, whatever the arguments are.

    Names may be expressions, so that nothing less than an expansion with each set of arguments knows the files exactly.
    These are those of the packages whose names occur in the text of the others, `*` in place of expressions.
    """
    packages = Packages(path, package_path(path, environment))
    found, todo = dict[Path, None](), [path.resolve()]
    while todo:
        place = todo.pop()
        if place in found or len(found) >= INCLUDED_FILES:
            continue
        found[place] = None
        text = read_text(place, XML_BYTES, "xacro")
        for name in _FIND.findall(text):
            with contextlib.suppress(InputError):  # not there: an expansion that needs it will say so
                packages.find(name)
        names = {_EXPRESSION.sub("*", match).rpartition("/")[2] for match in _NAMED.findall(text)}
        todo += [file.resolve() for folder in packages.found for name in sorted(names) if name.strip("*.")
                 for file in sorted(folder.rglob(name)) if file.is_file()]  # fmt: skip
    return list(found)


class Packages:
    """The packages that one file may read from: its own, and those it finds on the package path."""

    def __init__(self, path: Path, folders: list[Path]) -> None:
        self.own, self.folders = package_of(path), folders
        self.found = [self.own]

    def find(self, name: str) -> str:
        """$(find NAME): the package's folder."""
        if name == self.own.name:
            return str(self.own)
        inside = bool(name) and name == Path(name).name and name not in (".", "..")
        for folder in self.folders if inside else ():
            place = (folder / name).resolve()
            if os.path.isfile(place / MARK):
                self.found.append(place)
                return str(place)
        known = sorted({p.parent.name for f in self.folders for p in f.glob(f"*/{MARK}")} | {self.own.name})
        raise InputError(
            f"$(find {shown(name)}): no such package{nearest(name, known)}; packages are looked for beside "
            f"{self.own}, and on ROS_PACKAGE_PATH and AMENT_PREFIX_PATH"
        )

    def allowed(self, name: str) -> Path:
        """The file of that name, or an error where it lies outside the packages."""
        place = Path(name).resolve()
        if not any(place.is_relative_to(folder) for folder in self.found):
            raise InputError(f"{name}: lies outside the package {self.own}; files are included from packages only")
        return place


__all__ = ["Packages", "files_of", "package_of", "package_path"]
