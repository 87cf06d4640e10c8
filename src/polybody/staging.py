"""Folders that appear whole or not at all: filled beside their place, then renamed.

    .polybody-NAME.xxxxxxxx       a folder that is being filled, locked by the process that fills it
    .polybody-old-NAME.xxxxxxxx   holds as `last` what NAME was, while it is being replaced

A process that is killed leaves these behind. Who next writes into the same folder finds them, by name, unlocked, and
older than a minute (a new one is unlocked for a moment): what stood at NAME is put back if nothing does now, and the
rest is removed.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: nothing tells whether a folder is in use, so nothing is removed
    fcntl = None

_NAME = re.compile(r"\.polybody-(?P<old>old-)?(?P<name>.+)\.[a-z0-9_]{8}", re.DOTALL)
SECONDS = 60.0


@contextlib.contextmanager
def staged(target: Path) -> Iterator[Path]:
    """A new folder beside `target`, for its contents; gone when the block ends unless it was renamed."""
    parent = target.absolute().parent
    remove_leftovers(parent)
    folder = Path(tempfile.mkdtemp(dir=parent, prefix=f".polybody-{target.name}."))
    try:
        with _lock(folder):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def put(folder: Path, target: Path) -> None:
    """Rename a staged folder to its place; what is there goes, and comes back where that fails."""
    folder.chmod(0o755)
    if not target.exists():
        os.replace(folder, target)
        return
    old = Path(tempfile.mkdtemp(dir=target.absolute().parent, prefix=f".polybody-old-{target.name}."))
    try:
        os.replace(target, old / "last")
        try:
            os.replace(folder, target)
        except BaseException:
            os.replace(old / "last", target)
            raise
    finally:
        if target.exists():
            shutil.rmtree(old, ignore_errors=True)


def remove_leftovers(parent: Path) -> None:
    """Clear what killed processes left in a folder; only what is ours, unused and not new."""
    if fcntl is None:
        return
    with contextlib.suppress(OSError), os.scandir(parent) as entries:
        found = [(entry, match) for entry in entries if (match := _NAME.fullmatch(entry.name))]
        for entry, match in found:
            with contextlib.suppress(OSError):  # another process may be faster
                if _abandoned(entry):
                    _clear(Path(entry.path), parent / match["name"] if match["old"] else None)


def _abandoned(entry: os.DirEntry[str]) -> bool:
    if not entry.is_dir(follow_symlinks=False):
        return False
    facts = entry.stat(follow_symlinks=False)
    return facts.st_uid == os.geteuid() and time.time() - facts.st_mtime > SECONDS


def _clear(folder: Path, origin: Path | None) -> None:
    with _lock(folder):
        if origin is not None and (folder / "last").is_dir() and not origin.exists():
            os.replace(folder / "last", origin)
        shutil.rmtree(folder)


@contextlib.contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Hold the folder while the process lives; OSError where another holds it."""
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


__all__ = ["put", "remove_leftovers", "staged"]
