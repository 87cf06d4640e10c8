"""Reading and writing descriptions by the name of a file, or of a model that ships with polybody.

    read_description("arm.urdf", base="floating")    read_description("arm.yaml")    read_description("stanford-arm")

Files come from anyone: `files` opens them and `limits` says how much of them is read. Writing goes to a temporary file
that takes the place of the old one only when it is complete, so that nothing is written where anything failed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from polybody.description.files import read_text
from polybody.description.limits import YAML_BYTES
from polybody.description.mechanism_file.reader import read_mechanism, scan_mechanism
from polybody.description.problems import ERROR, Problem, TooManyProblems
from polybody.description.records import Description
from polybody.errors import InputError
from polybody.files import write_text
from polybody.names import listed, nearest

YAML_SUFFIXES, XML_SUFFIXES = (".yaml", ".yml"), (".urdf", ".xacro", ".sdf", ".xml")
URDF_SUFFIXES = (".urdf", ".xacro")
SUFFIXES = (*YAML_SUFFIXES, *XML_SUFFIXES)
BASES = ("fixed", "floating")


def shipped_models() -> dict[str, Path]:
    """The models that ship with polybody: {name: file}."""
    folder = Path(str(resources.files("polybody") / "models"))
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def find_source(source: str | os.PathLike[str]) -> Path:
    """The file that `source` names: a path, or a shipped model."""
    if not isinstance(source, str | os.PathLike):
        raise InputError(f"expected a file's path or a shipped model's name, got {type(source).__name__}")
    path = Path(source)
    text = os.fspath(source)
    shipped = shipped_models()
    if text in shipped and not path.is_file():
        return shipped[text]
    if os.path.isdir(path):
        raise InputError(f"{text!r} is a folder; name a file in it")
    if not os.path.exists(path):  # unlike Path.exists, it does not raise for names that are too long for the system
        if path.suffix == "" and path.name == text:
            raise InputError(
                f"no model {text!r}{nearest(text, shipped)}; available: {listed(shipped)}, and paths to "
                f"{', '.join(SUFFIXES)} files"
            )
        near = nearest(path.name, os.listdir(path.parent)) if os.path.isdir(path.parent) else ""
        raise InputError(f"no file {text!r}{near}")
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(
            f"{text}: polybody reads {', '.join(SUFFIXES)} files, not {path.suffix or 'files without suffix'}"
        )
    return path


def read_description(
    source: str | os.PathLike[str], *, base: str | None = None, arguments: Mapping[str, Any] | None = None
) -> Description:
    """The description in a .yaml, .urdf, .xacro, .sdf or .xml (MJCF) file, or of a shipped model.

    `base` ("fixed" or "floating") says how the root of a URDF or MJCF is joined to the ground; a mechanism file says
    so itself; SDF and MJCF say so too, where `base` is None. `arguments` are those of a xacro file.
    """
    path = find_source(source)
    suffix = path.suffix.lower()
    _refuse_arguments(path, arguments)
    if base is not None and base not in BASES:
        raise InputError(f"base is {base!r}{nearest(str(base), BASES)}, expected 'fixed' or 'floating'")
    if suffix in YAML_SUFFIXES:
        if base is not None:
            raise InputError(
                f"{path}: base={base!r} is for URDF and MJCF; a mechanism file states how its root is "
                "joined to the world (a joint of the kind floating, named root_joint)"
            )
        return read_mechanism(read_text(path, YAML_BYTES, "mechanism"), _shown(path))
    if suffix in URDF_SUFFIXES:
        from polybody.description.urdf.reader import read_urdf  # lxml loads only where XML is read

        return read_urdf(path, base=base or "fixed", arguments=arguments)
    if suffix == ".sdf":
        from polybody.description.sdf.reader import read_sdf

        return read_sdf(path, base=base)
    from polybody.description.mjcf.reader import read_mjcf

    return read_mjcf(path, base=base)


def _refuse_arguments(path: Path, arguments: Mapping[str, Any] | None) -> None:
    if arguments and path.suffix.lower() not in URDF_SUFFIXES:
        raise InputError(f"{path.name}: arguments are for xacro files, not for {path.suffix} files")


def scan_description(
    source: str | os.PathLike[str], *, base: str | None = None, arguments: Mapping[str, Any] | None = None
) -> tuple[Description | None, list[Problem]]:
    """As `read_description`, but every problem of reading is collected instead of raised."""
    try:
        path = find_source(source)
        _refuse_arguments(path, arguments)
        if path.suffix.lower() in YAML_SUFFIXES and base is None:
            return scan_mechanism(read_text(path, YAML_BYTES, "mechanism"), _shown(path))
        if path.suffix.lower() in URDF_SUFFIXES:
            from polybody.description.urdf.reader import scan_urdf

            return scan_urdf(path, base=base or "fixed", arguments=arguments)
        if path.suffix.lower() == ".sdf":
            from polybody.description.sdf.reader import scan_sdf

            return scan_sdf(path, base=base)
        return read_description(source, base=base), []
    except TooManyProblems as stop:
        return None, stop.problems
    except InputError as error:
        return None, [Problem(ERROR, str(error))]


def _shown(path: Path) -> str:
    """The path as messages show it: shipped models by their file name."""
    return path.name if path in shipped_models().values() else str(path)


def write_description(
    description: Description, path: str | os.PathLike[str], *, force: bool = True, lossy: bool = False
) -> list[str]:
    """Write a .yaml, .urdf or .xml (MJCF) file, whole or not at all; an existing file is kept unless `force`.

    A mechanism file says everything. URDF and MJCF do not: what they cannot express raises an error, or is, where
    `lossy`, left out.
    Returns what was left out.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in (*YAML_SUFFIXES, ".urdf", ".xml"):
        raise InputError(
            f"{path}: polybody writes .yaml, .yml, .urdf and .xml (MJCF) files, not "
            f"{path.suffix or 'files without suffix'}"
        )
    if path.exists() and not force:
        raise InputError(f"{path} exists already; use --force (force=True) to replace it")
    if suffix == ".urdf":
        from polybody.description.urdf.writer import write_urdf

        return write_urdf(description, path, lossy=lossy)
    if suffix == ".xml":
        from polybody.description.mjcf.writer import write_mjcf

        return write_mjcf(description, path, lossy=lossy)
    from polybody.description.mechanism_file.writer import mechanism_text

    write_text(path, mechanism_text(description))
    return []


__all__ = [
    "find_source",
    "read_description",
    "scan_description",
    "shipped_models",
    "write_description",
]
