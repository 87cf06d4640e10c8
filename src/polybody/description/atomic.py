"""Writing a file whole or not at all: what stood there before survives every failure."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from polybody.errors import InputError


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Put the text (UTF-8) at `path` by writing a neighbour and renaming it."""
    path = Path(path)
    if not path.parent.is_dir():
        raise InputError(f"{path}: the folder {str(path.parent)!r} does not exist")
    if path.is_dir():
        raise InputError(f"{path}: is a folder; the path of a file is wanted")
    try:
        handle, neighbour = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from None
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
        os.chmod(neighbour, _mode(path))
        os.replace(neighbour, path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from None
    finally:
        with contextlib.suppress(FileNotFoundError):  # it is gone once it was renamed
            os.unlink(neighbour)


def _mode(path: Path) -> int:
    """The permissions the file has, or those a new file gets: mkstemp's own are for its user alone."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


__all__ = ["write_text"]
