"""Compiled code, kept on disk between processes.

Code is kept in a file named by the digest of the text it was compiled from and of the processor: whatever led to the
text, equal texts share code and different ones never do. A second kind of file, a *trace*, named by a digest of the
caller's key, says what text the key led to the last time, so that a warm start neither traces nor writes text.

A file begins with an HMAC-SHA256, under a key that only this user can read, of its name and content. What does not
verify (damaged, truncated, renamed, put there by someone else) is never executed: it is removed and the code is built
again. Files appear by atomic renaming, so that processes that start at once see a whole entry or none. The folder is
private (0700) and must belong to the user; if it cannot be used, one `PolybodyWarning` says why and every process
compiles for itself.

    folder()   where it is: $POLYBODY_CACHE/kernels, or the platform's cache folder
    entries()  what is in it
    clear()    forget everything
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import secrets
import stat
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from polybody.errors import PolybodyWarning
from polybody.files import UNFINISHED, write_bytes
from polybody.kernels.locks import Lock
from polybody.late import dataclass

MAGIC = b"polybody kernel 2\n"
LIMIT = 512 * 2**20  # bytes; beyond it the entries used longest ago go
CODE, TRACE = ".kernel", ".trace"
KEY_SIZE = 32
ABANDONED = 3600.0  # seconds after which a temporary file belongs to a process that died

_warned = False
_lock = Lock()
#: bytes stored in a folder by this process since it was last looked through
_stored: dict[Path, int] = {}


@dataclass(frozen=True)
class Entry:
    """One kept kernel."""

    name: str
    digest: str
    size: int
    used: float
    path: Path


def folder() -> Path:
    """Where compiled code is kept."""
    chosen = os.environ.get("POLYBODY_CACHE")
    if chosen:
        return Path(chosen).expanduser() / "kernels"
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "polybody" / "kernels"


#: (digest, kind) of what this process has taken or kept, for `used`
_used: dict[tuple[str, str], None] = {}


def used() -> list[tuple[str, str, dict[str, Any], bytes]]:
    """(digest, kind, facts, code) of all that this process took from the cache or put there: to send to others."""
    found = []
    for digest, kind in list(_used):
        opened = load(digest, kind)
        if opened is not None:
            found.append((digest, kind, *opened))
    return found


def is_empty() -> bool:
    """Whether nothing can be found in it."""
    try:
        with os.scandir(folder()) as found:
            return next(found, None) is None
    except OSError:  # most often: there is no such folder
        return True


def load(digest: str, kind: str = CODE) -> tuple[dict[str, Any], bytes] | None:
    """(facts, object code) of an entry, if it is there and its seal holds. A trace has no code."""
    where = folder()
    _used[digest, kind] = None
    path = where / (digest + kind)
    try:
        if not path.exists():
            return None
        _check_folder(where)
        key = _key(where)
        content = _read_private(path)
    except (OSError, RuntimeError) as reason:
        _warn(where, reason)
        return None
    opened = _unseal(content, path.name, key)
    with contextlib.suppress(OSError):  # another process may have removed it, or the folder may be read-only
        if opened is None:
            path.unlink()
        else:
            os.utime(path)
    return opened


def store(digest: str, facts: dict[str, Any], code: bytes, kind: str = CODE) -> None:
    """Keep code, or a trace. Failure to do so is a warning, once."""
    where = folder()
    _used[digest, kind] = None
    try:
        where.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_folder(where)
        path = where / (digest + kind)
        content = _seal(facts, code, path.name, _key(where))
        write_bytes(path, content, 0o600)
        _prune_now_and_then(where, len(content))
    except (OSError, RuntimeError) as reason:
        _warn(where, reason)


def entries() -> list[Entry]:
    """What is kept, the most recently used first. Names come from the files and are not verified."""
    found = []
    for path in _files(folder()):
        with contextlib.suppress(OSError):
            status = path.stat()
            found.append(Entry(_name(path), path.stem, status.st_size, status.st_mtime, path))
    return sorted(found, key=lambda e: -e.used)


def clear() -> int:
    """Remove every entry; how many there were."""
    removed = 0
    for path in [*_files(folder()), *_files(folder(), TRACE)]:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
            removed += path.suffix == CODE
    return removed


def _files(where: Path, kind: str = CODE) -> Iterator[Path]:
    return where.glob("*" + kind) if where.is_dir() else iter(())


def _name(path: Path) -> str:
    try:
        payload = _read_private(path)[len(MAGIC) + 32 :]
        return str(json.loads(payload[4 : 4 + int.from_bytes(payload[:4], "little")])["name"])
    except (OSError, RuntimeError, ValueError, KeyError, TypeError):
        return "(damaged)"


def _seal(facts: dict[str, Any], code: bytes, name: str, key: bytes) -> bytes:
    header = json.dumps(facts).encode()
    payload = len(header).to_bytes(4, "little") + header + code
    return MAGIC + _mac(name, payload, key) + payload


def _unseal(content: bytes, name: str, key: bytes) -> tuple[dict[str, Any], bytes] | None:
    start = len(MAGIC) + 32
    payload = content[start:]
    if not content.startswith(MAGIC) or not hmac.compare_digest(content[len(MAGIC) : start], _mac(name, payload, key)):
        return None
    length = int.from_bytes(payload[:4], "little")
    return json.loads(payload[4 : 4 + length]), payload[4 + length :]


def _mac(name: str, payload: bytes, key: bytes) -> bytes:
    return hmac.new(key, name.encode() + b"\0" + payload, hashlib.sha256).digest()


def _check_folder(where: Path) -> None:
    """The folder must be this user's alone."""
    status = os.lstat(where)
    if not stat.S_ISDIR(status.st_mode):
        raise RuntimeError("it is not a folder")
    if os.name == "posix":
        if status.st_uid != os.geteuid():
            raise RuntimeError(f"it belongs to user {status.st_uid}, not to {os.geteuid()}")
        if status.st_mode & 0o077:
            os.chmod(where, 0o700)


def _read_private(path: Path) -> bytes:
    """A file that only this user can have written. A pipe is opened without waiting for who writes to it."""
    flags = os.O_RDONLY
    for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"):
        flags |= getattr(os, name, 0)
    with open(os.open(path, flags), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_size > LIMIT:
            raise RuntimeError(f"{path.name} is not a file of ours")
        if os.name == "posix" and (status.st_uid != os.geteuid() or status.st_mode & 0o022):
            raise RuntimeError(f"{path.name} could have been written by another user")
        return file.read()


def _key(where: Path) -> bytes:
    """This user's secret; the first process to need it makes it."""
    path = where / "key"
    for _ in range(100):
        with contextlib.suppress(FileNotFoundError):
            key = _read_private(path)
            if len(key) == KEY_SIZE:
                return key
            if time.time() - path.stat().st_mtime > 5:  # not one being written: damaged, so make another
                path.unlink(missing_ok=True)
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
            with open(os.open(path, flags, 0o600), "wb") as file:
                file.write(secrets.token_bytes(KEY_SIZE))
        except FileExistsError:  # another process writes it
            time.sleep(0.01)
    raise RuntimeError("its key file is damaged; remove it")


def _prune_now_and_then(where: Path, stored: int) -> None:
    """A folder of thousands of entries takes time to look through: at a process' first entry, then each LIMIT/16."""
    with _lock:
        since = _stored.get(where)
        due = since is None or since + stored > LIMIT / 16
        _stored[where] = 0 if due else (since or 0) + stored
    if due:
        _prune(where)


def _prune(where: Path) -> None:
    """Keep the folder within its limit, and free of what dead processes left."""
    kept, now = [], time.time()
    with os.scandir(where) as files:
        for file in files:
            with contextlib.suppress(FileNotFoundError):
                status = file.stat(follow_symlinks=False)
                if file.name.endswith((CODE, TRACE)):
                    kept.append((status.st_mtime, status.st_size, file.path))
                elif file.name.endswith(UNFINISHED) and now - status.st_mtime > ABANDONED:
                    os.unlink(file.path)
    total = sum(size for _, size, _ in kept)
    for _, size, path in sorted(kept):
        if total <= LIMIT:
            break
        Path(path).unlink(missing_ok=True)
        total -= size


def _warn(where: Path, reason: Exception) -> None:
    global _warned
    with _lock:
        if _warned:
            return
        _warned = True
    warnings.warn(
        f"compiled code cannot be kept in {where}: {reason}. Work goes on, but every process compiles for itself; "
        "set POLYBODY_CACHE to a folder of yours that can be written",
        PolybodyWarning,
        stacklevel=2,
    )
