"""Imports under way while a process forks.

Modules have locks while they are imported. A child has one thread, the one that forked: it would wait for ever for a
module that another thread of its parent was importing, and polybody imports most of its modules when they are first
used. So a thread that forks first has, and keeps until it has forked, the interpreter's import lock at a moment when no
other thread imports. It waits `PATIENCE` seconds at most, as an import may wait for the child itself; the child then
imports anew what was being imported.
"""

from __future__ import annotations

import _imp
import _thread
import os
import sys
import time
from collections.abc import Callable

PATIENCE = 5.0  # seconds
LOOK = 0.001  # seconds between looks at the imports under way
_having: set[int] = set()  # threads that fork just now and have the import lock
_interrupted: set[int] = set()
Hook = Callable[[], None]
_others: list[tuple[Hook, Hook, Hook]] = []
_asked: dict[int, tuple[tuple[Hook, Hook, Hook], ...]] = {}  # by thread that forks: those who were told before


def wait() -> None:
    """Have the import lock, when no other thread imports or one did for too long; it is given back after the fork."""
    if _thread.get_ident() in _having:
        return
    end = time.monotonic() + PATIENCE
    while True:
        _imp.acquire_lock()  # who has it can begin no other import
        _having.add(_thread.get_ident())
        if not _foreign() or time.monotonic() > end:
            return
        _having.discard(_thread.get_ident())
        _imp.release_lock()
        time.sleep(LOOK)


def _foreign() -> list[str]:
    """Names of the modules that other threads import now."""
    modules = getattr(sys.modules["_frozen_importlib"], "_module_locks", {})  # not public: name -> weak reference
    living = [(name, found) for name, ref in list(modules.items()) if (found := ref()) is not None]
    return [name for name, found in living if getattr(found, "owner", None) != _thread.get_ident()]


def also(before: Hook, after_in_parent: Hook, after_in_child: Hook) -> None:
    """Call these too where a process forks; `before` calls `wait` itself.

    The interpreter would call those after a fork, and not the one before it, where another thread has registered them
    while this one waited.
    """
    _others.append((before, after_in_parent, after_in_child))


def _before() -> None:
    here = _thread.get_ident()
    try:
        if not _others:
            wait()
        if _others:
            _give_back()
            _asked[here] = tuple(_others)
            for before, _, _ in _asked[here]:
                before()
    except KeyboardInterrupt:  # the interpreter forgets exceptions of this function
        _interrupted.add(here)


def _give_back() -> None:
    if _thread.get_ident() in _having:
        _having.discard(_thread.get_ident())
        _imp.release_lock()


def _after_in_parent() -> None:
    here = _thread.get_ident()
    for _, after, _ in _asked.pop(here, ()):
        after()
    _give_back()
    if here in _interrupted:
        _interrupted.discard(here)
        _thread.interrupt_main()


def _after_in_child() -> None:
    here = _thread.get_ident()
    had, interrupted, others = here in _having, here in _interrupted, _asked.get(here, ())
    for known in (_having, _interrupted, _asked):
        known.clear()
    for _, _, after in others:
        after()
    if had:
        for name in _foreign():
            sys.modules["_frozen_importlib"]._module_locks.pop(name, None)
            if getattr(getattr(sys.modules.get(name), "__spec__", None), "_initializing", False):
                del sys.modules[name]
        if _imp.lock_held():
            _imp.release_lock()
    if interrupted:
        _thread.interrupt_main()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)

__all__ = ["also", "wait"]
