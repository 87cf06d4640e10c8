"""Memory of large results, used again once nobody holds them.

A fresh array of some megabytes comes from the operating system page by page, each page zeroed on first touch: for a
kernel that writes much, that costs more than computing. `empty` therefore hands out parts of buffers it keeps, and
hands a buffer out again when the last array that lived in it is gone. At most `KEPT` bytes stay behind.
"""

from __future__ import annotations

import math
import sys
import threading

import numpy as np

SMALL = 1 << 18  # below this malloc keeps its own free lists
KEPT = 96 << 20

_buffers: list[np.ndarray] = []
_lock = threading.Lock()


def _references(buffers: list[np.ndarray], index: int) -> int:
    """References to a buffer of the list, with those that asking makes."""
    return sys.getrefcount(buffers[index])


#: what `_references` says of a buffer that only the list holds: found out here, for interpreters count differently
#: (from Python 3.14 on a local variable lends its reference), and a wrong number would hand out memory in use
_IDLE = _references([np.empty(1)], 0)


def empty(shape: tuple[int, ...]) -> np.ndarray:
    """An uninitialised float64 array, in memory that was used before if possible."""
    count = math.prod(shape)
    size = 8 * count
    if not SMALL <= size <= KEPT // 2:
        return np.empty(shape)
    with _lock:
        for index in range(len(_buffers)):
            if _references(_buffers, index) == _IDLE and size <= 8 * _buffers[index].size <= 2 * size:
                return _buffers[index][:count].reshape(shape)
        buffer = np.empty(count)
        _buffers.append(buffer)
        _shrink()
        return buffer[:count].reshape(shape)


def _shrink() -> None:
    """Forget buffers, oldest first, until what is kept fits. One that is in use lives on in its arrays."""
    while len(_buffers) > 1 and sum(8 * b.size for b in _buffers) > KEPT:
        del _buffers[0]


__all__ = ["empty"]
