"""Reading and writing descriptions by the name of a file, or of a model that ships with polybody.

    read_description("arm.urdf", base="floating")    read_description("arm.yaml")    read_description("stanford-arm")

Files come from anyone: their size is looked at before they are opened, and writing goes to a temporary file that takes
the place of the old one only when it is complete, so that nothing is written where anything failed.
"""

from __future__ import annotations

import os
from importlib import resources
from pathlib import Path

from polybody.description.mechanism_file.reader import read_mechanism, scan_mechanism
from polybody.description.problems import Problem
from polybody.description.records import Description
from polybody.errors import InputError
from polybody.files import write_text
from polybody.names import listed, nearest

MB = 1_000_000
YAML_SUFFIXES, XML_SUFFIXES = (".yaml", ".yml"), (".urdf", ".xml")
#: the largest file that is opened; real robots are below 1 MB
LARGEST = dict.fromkeys(YAML_SUFFIXES, 10 * MB) | dict.fromkeys(XML_SUFFIXES, 20 * MB)
BASES = ("fixed", "floating")


def shipped_models() -> dict[str, Path]:
    """The models that ship with polybody: {name: file}."""
    folder = Path(str(resources.files("polybody") / "models"))
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def find_source(source: str | os.PathLike[str]) -> Path:
    """The file that `source` names: a path, or a shipped model."""
    if not isinstance(source, str | os.PathLike):
        raise InputError(f"wanted a file's path or a shipped model's name, got {type(source).__name__}")
    path = Path(source)
    text = os.fspath(source)
    shipped = shipped_models()
    if text in shipped and not path.is_file():
        return shipped[text]
    if path.is_dir():
        raise InputError(f"{text!r} is a folder; name a file in it")
    if not path.exists():
        if path.suffix == "" and path.name == text:
            raise InputError(
                f"no model {text!r}{nearest(text, shipped)}; there are {listed(shipped)}, and paths to "
                f"{', '.join(LARGEST)} files"
            )
        near = nearest(path.name, os.listdir(path.parent)) if path.parent.is_dir() else ""
        raise InputError(f"no file {text!r}{near}")
    if path.suffix.lower() not in LARGEST:
        raise InputError(
            f"{text}: polybody reads {', '.join(LARGEST)} files, not {path.suffix or 'files without suffix'}"
        )
    size, most = path.stat().st_size, LARGEST[path.suffix.lower()]
    if size > most:
        raise InputError(
            f"{text}: the file has {size / MB:.0f} MB; a {path.suffix} file of more than {most // MB} MB "
            "describes no mechanism"
        )
    return path


def read_description(source: str | os.PathLike[str], *, base: str | None = None) -> Description:
    """The description in a .yaml, .urdf or .xml (MJCF) file, or of a shipped model.

    `base` ("fixed" or "floating") says how the root of a URDF or MJCF is joined to the ground; a mechanism file says
    so itself.
    """
    path = find_source(source)
    suffix = path.suffix.lower()
    if base is not None and base not in BASES:
        raise InputError(f"base is {base!r}{nearest(str(base), BASES)}, wanted 'fixed' or 'floating'")
    if suffix in YAML_SUFFIXES:
        if base is not None:
            raise InputError(
                f"{path}: base={base!r} is for URDF and MJCF; a mechanism file says itself how its root is "
                "joined to the world (a joint of the kind floating, named root_joint)"
            )
        return read_mechanism(read_text(path), _shown(path))
    read_text(path)  # binary content gets its own message, not an XML parser's
    if suffix == ".urdf":
        from polybody.description.urdf.reader import read_urdf  # lxml loads only where XML is read

        return read_urdf(path, base=base or "fixed")
    from polybody.description.mjcf.reader import read_mjcf

    return read_mjcf(path, base=base)


def scan_description(
    source: str | os.PathLike[str], *, base: str | None = None
) -> tuple[Description | None, list[Problem]]:
    """As `read_description`, but every problem of reading is collected instead of raised."""
    from polybody.description.problems import ERROR

    try:
        path = find_source(source)
        if path.suffix.lower() in YAML_SUFFIXES and base is None:
            return scan_mechanism(read_text(path), _shown(path))
        if path.suffix.lower() == ".urdf":
            from polybody.description.urdf.reader import scan_urdf

            return scan_urdf(path, base=base or "fixed")
        return read_description(source, base=base), []
    except InputError as error:
        return None, [Problem(ERROR, str(error))]


def _shown(path: Path) -> str:
    """The path as messages show it: shipped models by their file name."""
    return path.name if path in shipped_models().values() else str(path)


def read_text(path: Path) -> str:
    """The text of a file; binary files are refused."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    if b"\0" in data and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(f"{path}: this is a binary file, not text")
    if not data.strip():
        raise InputError(f"{path}: the file is empty")
    try:
        return data.decode("utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}:{line}: this is not UTF-8 text (byte {data[error.start]:#04x})") from None


def write_description(description: Description, path: str | os.PathLike[str], *, force: bool = True) -> None:
    """Write a .yaml or .urdf file, whole or not at all; an existing file is kept unless `force`."""
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in (*YAML_SUFFIXES, ".urdf"):
        raise InputError(
            f"{path}: polybody writes .yaml, .yml and .urdf files, not {path.suffix or 'files without suffix'}"
        )
    if path.exists() and not force:
        raise InputError(f"{path} exists already; use --force (force=True) to replace it")
    if suffix == ".urdf":
        from polybody.description.urdf.writer import write_urdf

        write_urdf(description, path)
        return
    from polybody.description.mechanism_file.writer import mechanism_text

    write_text(path, mechanism_text(description))


__all__ = [
    "find_source",
    "read_description",
    "read_text",
    "scan_description",
    "shipped_models",
    "write_description",
]
