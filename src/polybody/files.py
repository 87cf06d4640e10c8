"""Writing a file whole or not at all: what stood there before survives every failure."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from polybody.errors import InputError

UNFINISHED = ".part"  # how a file's name ends while it is written


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Put the text (UTF-8) at `path`."""
    write_whole(path, text.encode())


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Put the bytes at `path`, with the permissions that the file has, or a new one gets."""
    path = Path(path)
    if not path.parent.is_dir():
        raise InputError(f"{path}: the folder {str(path.parent)!r} does not exist")
    if path.is_dir():
        raise InputError(f"{path}: is a folder; the path of a file is expected")
    try:
        write_bytes(path, content, _mode(path))
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from None


def write_bytes(path: Path, content: bytes, mode: int) -> None:
    """Put the bytes at `path`, with these permissions, by writing a neighbour and renaming it."""
    write_stream(path, mode, lambda stream: stream.write(content))


def write_stream(path: Path, mode: int, write: Callable[[BinaryIO], object]) -> None:
    """Put at `path` what `write` writes to a stream, with these permissions."""

    def whole(neighbour: str) -> None:
        with open(neighbour, "wb") as stream:
            write(stream)

    write_beside(path, mode, whole)


def write_beside(path: Path, mode: int, write: Callable[[str], object]) -> None:
    """Put at `path` the file that `write` writes at the path it is given, a neighbour's, which is then renamed."""
    handle, neighbour = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=UNFINISHED)
    try:
        os.close(handle)
        write(neighbour)
        os.chmod(neighbour, mode)
        os.replace(neighbour, path)
    except BaseException:
        Path(neighbour).unlink(missing_ok=True)
        raise


def _mode(path: Path) -> int:
    """The permissions the file has, or those a new file gets: mkstemp's own are for its user alone."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


__all__ = ["UNFINISHED", "write_beside", "write_bytes", "write_stream", "write_text", "write_whole"]
