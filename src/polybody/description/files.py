"""The one place that opens a file which somebody else wrote.

Only regular files are read: a pipe would never end, a device never runs out, and a link to either is the same. The
file is opened without waiting, judged by what was opened (not by what a name pointed to a moment before), and at most
`limit` bytes of it are ever in memory.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from polybody.description.limits import MB
from polybody.errors import InputError

_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def read_bytes(path: Path, limit: int, kind: str = "text") -> bytes:
    """The bytes of a regular file of at most `limit` bytes; anything else raises an error, with the reason."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise InputError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise InputError(f"{path}: not a file but a folder, a pipe or a device; a {kind} file is expected")
        if status.st_size > limit:
            raise InputError(_too_large(path, status.st_size, limit, kind))
        with os.fdopen(handle, "rb", closefd=False) as stream:
            data = stream.read(limit + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None
    finally:
        os.close(handle)
    if len(data) > limit:
        raise InputError(_too_large(path, len(data), limit, kind))
    return data


def _too_large(path: Path, size: int, limit: int, kind: str) -> str:
    return f"{path}: the file has {size / MB:.0f} MB; of a {kind} file at most {limit / MB:g} MB are read"


def read_text(path: Path, limit: int, kind: str = "text") -> str:
    """The text of a file; binary files and files that are not UTF-8 raise an error."""
    return text_of(read_bytes(path, limit, kind), str(path))


def text_of(data: bytes, name: str, encoding: str = "utf-8-sig") -> str:
    """The text in a file's bytes; `name` is what messages call the file."""
    wide = data.startswith(_UTF16)
    if b"\0" in data and not wide:
        raise InputError(f"{name}: this is a binary file, not text")
    if not data.strip():
        raise InputError(f"{name}: the file is empty")
    try:
        return data.decode("utf-16" if wide else encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{name}:{line}: this is not UTF-8 text (byte {data[error.start]:#04x})") from None


__all__ = ["read_bytes", "read_text", "text_of"]
