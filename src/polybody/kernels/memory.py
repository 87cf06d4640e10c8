"""Memory of large results, used again once nobody holds them.

A fresh array of some megabytes comes from the operating system page by page, each page zeroed on first touch: for a
kernel that writes much, that costs more than computing. `empty` therefore hands out parts of buffers it keeps, and
hands a buffer out again when the last array that lived in it is gone. At most `KEPT` bytes stay behind, a sixteenth of
the machine's memory or a gigabyte; `release` gives them back.

Buffers from a megabyte on ask for huge pages where the system has them (Linux): measured on Zen 3, results of some
megabytes are then written twice as fast into memory used before, and five times as fast into fresh memory.
"""

from __future__ import annotations

import math
import mmap
import os
import sys
from typing import Any

import numpy as np

from polybody.kernels.locks import Lock

SMALL = 1 << 18  # below this malloc keeps its own free lists
LARGE = 1 << 20  # from here on in huge pages
HUGE_PAGE = 2 << 20
FLOAT64 = np.dtype(np.float64)


def _kept() -> int:
    """How much idle memory may stay: a sixteenth of what the machine has, between 96 MB and 1 GB."""
    try:
        physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not a POSIX system, or one that does not say
        physical = 0
    return min(max(physical // 16, 96 << 20), 1 << 30)


KEPT = _kept()

_buffers: list[np.ndarray] = []
_lock = Lock()


def _references(buffers: list[np.ndarray], index: int) -> int:
    """References to a buffer of the list, with those that asking makes."""
    return sys.getrefcount(buffers[index])


#: what `_references` says of a buffer that only the list holds: found out here, for interpreters count differently
#: (from Python 3.14 on a local variable lends its reference), and a wrong number would hand out memory in use
_IDLE = _references([np.empty(1)], 0)


def empty(shape: tuple[int, ...], dtype: np.dtype[Any] = FLOAT64) -> np.ndarray:
    """An uninitialised array, in memory that was used before if possible."""
    size = dtype.itemsize * math.prod(shape)
    if not SMALL <= size <= KEPT // 2:
        return np.empty(shape, dtype)
    with _lock:
        for index in range(len(_buffers)):
            if size <= _buffers[index].nbytes <= 2 * size and _references(_buffers, index) == _IDLE:
                return _part(_buffers[index], shape, dtype)
        buffer = _fresh(-(-size // 8))
        _buffers.append(buffer)
        _shrink()
        return _part(buffer, shape, dtype)


def _part(buffer: np.ndarray, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    return np.ndarray(shape, dtype, buffer)


def _fresh(count: int) -> np.ndarray:
    """So many numbers from the system, in huge pages if they are many and the system has such."""
    if 8 * count < LARGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return np.empty(count)
    # Only whole, aligned huge pages count; what is asked for beyond the array is never touched, so it costs nothing.
    pages = -(-8 * count // HUGE_PAGE) + 1
    try:
        area = mmap.mmap(-1, pages * HUGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        area.madvise(mmap.MADV_HUGEPAGE)
    except OSError:  # a kernel built without huge pages, or no room for another mapping
        return np.empty(count)
    start = -np.frombuffer(area, dtype=np.uint8).ctypes.data % HUGE_PAGE
    return np.frombuffer(area, dtype=np.float64, count=count, offset=start)


def release() -> None:
    """Give idle memory back to the system; arrays that are in use keep theirs."""
    with _lock:
        _buffers.clear()


def _shrink() -> None:
    """Forget buffers, oldest first, until what is kept fits. One that is in use lives on in its arrays."""
    while len(_buffers) > 1 and sum(8 * b.size for b in _buffers) > KEPT:
        del _buffers[0]


__all__ = ["empty", "release"]
