"""How many threads a batch uses, and the threads themselves.

    with threads(1): ...

holds for the code inside it (a context variable: other threads and tasks keep their own number). The default is every
core this process may use. Work is cut into more pieces than threads, which take the next piece when they are free; the
calling thread works too.

Helper threads are the system's, not Python's: machine code starts them, works beside them and joins them before it
returns (`runtime_code.together`). No Python exception can come in between, so none can free memory that a helper still
writes to; nothing outlives a call, so there is nothing for a fork to lose; the size of their stacks is theirs alone. A
thread that the system cannot start is done without.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import operator
import os
import sys
from collections.abc import Iterator
from contextvars import ContextVar

from polybody.errors import InputError

PIECES = 16  # for each thread
STACK = 16 * 2**20  # a large kernel's frame is megabytes, and macOS gives a thread half of one

_chosen: ContextVar[int | None] = ContextVar("polybody_threads", default=None)


def cores() -> int:
    """Cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def thread_count() -> int:
    """How many threads a batch uses here."""
    chosen = _chosen.get()
    return cores() if chosen is None else chosen


@contextlib.contextmanager
def threads(n: int) -> Iterator[None]:
    """Let batches use at most n threads within the `with` block."""
    try:
        count = operator.index(n)
    except TypeError:
        raise InputError(f"threads takes a whole number of at least 1, not {n!r}") from None
    if count < 1:
        raise InputError(f"threads takes a whole number of at least 1, not {n}")
    token = _chosen.set(count)
    try:
        yield
    finally:
        _chosen.reset(token)


def piece(states: int, lanes: int, workers: int) -> int:
    """How many states a thread takes at a time: whole blocks, and few enough that all end at about the same time."""
    if workers <= 1:
        return states
    return -(-states // (workers * PIECES * lanes)) * lanes


def address(function: object) -> int:
    """Where a C function that ctypes found begins."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]


@functools.cache
def starter() -> tuple[int, int, int]:
    """What machine code starts and joins threads with: two functions, and what it must know of their stacks.

    pthread_create, pthread_join and the address of a pthread_attr_t; on Windows CreateThread, WaitForSingleObject and
    the address of a stack's size and of CloseHandle.
    """
    if sys.platform == "win32":
        kernel = ctypes.WinDLL("kernel32")
        facts = (ctypes.c_int64 * 2)(STACK, address(kernel.CloseHandle))
        _kept.append(facts)
        return address(kernel.CreateThread), address(kernel.WaitForSingleObject), ctypes.addressof(facts)
    library = ctypes.CDLL(None)
    attributes = ctypes.create_string_buffer(256)  # more than any system's pthread_attr_t
    library.pthread_attr_init(attributes)
    library.pthread_attr_setstacksize(attributes, ctypes.c_size_t(STACK))
    _kept.append(attributes)
    return address(library.pthread_create), address(library.pthread_join), ctypes.addressof(attributes)


_kept: list[object] = []  # read whenever a thread starts, as long as the process lives
