"""Locks that a forked child can use.

A child has one thread, the one that forked. What another thread of its parent held would stay locked for ever, so a
`Lock` that could not be had at the moment of the fork begins anew in the child. The dictionaries and lists behind our
locks are whole between any two steps of Python, hence then too. LLVM's own data are not: a fork waits until no thread
is inside LLVM, by llvmlite's lock, which is held around every single call of it.
"""

from __future__ import annotations

import os
import threading
from typing import Any


class Lock:
    """A reentrant lock, for `with`."""

    def __init__(self) -> None:
        self._lock: Any = threading.RLock()
        self._had: set[int] = set()  # threads that fork just now and have it
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(before=self._try, after_in_parent=self._release, after_in_child=self._renew)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def _try(self) -> None:
        if self._lock.acquire(blocking=False):
            self._had.add(threading.get_ident())

    def _release(self) -> None:
        if threading.get_ident() in self._had:
            self._had.discard(threading.get_ident())
            self._lock.release()

    def _renew(self) -> None:
        if threading.get_ident() not in self._had:
            self._lock = threading.RLock()
        self._release()
        self._had.clear()


def wait_for_llvm_before_forks() -> None:
    """Let no fork happen while a thread is inside LLVM."""
    from llvmlite.binding import ffi

    lock = getattr(ffi.lib, "_lock", None)  # not public, but the only thing that every call of LLVM passes
    if lock is not None and hasattr(os, "register_at_fork"):

        def leave() -> None:
            lock.__exit__()

        os.register_at_fork(before=lock.__enter__, after_in_parent=leave, after_in_child=leave)


__all__ = ["Lock", "wait_for_llvm_before_forks"]
