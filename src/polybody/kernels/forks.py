"""What a fork waits for.

A child has one thread, the one that forked. What another thread of its parent held would stay locked for ever, and what
it was changing would stay half changed. So a thread that forks first has, and keeps until it has forked,

1. `locks.tracing`: no thread makes an expression graph for us. CasADi has locks of its own, which it holds for as long
   as it makes a function: a child forked then hung as soon as it made one itself;
2. the interpreter's import lock, at a moment when no thread imports (`polybody.importing`, which waits for it in
   processes that have no kernels yet, too);
3. llvmlite's lock, which is held around every single call of LLVM;
4. every other `Lock` that is free. One that is not begins anew in the child: the dictionaries and lists behind our
   locks are whole between any two steps of Python, hence then too.

The first three are waited for, `PATIENCE` seconds at most. Where that was not enough the child cannot compile: it says
so in an error where it would hang.

What is beyond us: threads that call CasADi without polybody.
"""

from __future__ import annotations

import _thread
import threading
from typing import Any, NoReturn

from llvmlite.binding import ffi

from polybody import importing
from polybody.errors import PolybodyError
from polybody.kernels.locks import Lock, tracing

PATIENCE = 30.0  # seconds: LLVM works some seconds on the largest kernels


class Refused:
    """Takes the place of a lock of what a child cannot use."""

    def __enter__(self) -> NoReturn:
        self.acquire()

    def __exit__(self, *_: object) -> None: ...

    def acquire(self, blocking: bool = True, timeout: float = -1) -> NoReturn:
        """Say why not."""
        raise PolybodyError(
            f"this process was forked while another thread of its parent had been compiling for {PATIENCE:g} s, and "
            'cannot compile; fork before or after that, or start processes by "spawn" or "forkserver"'
        )

    def release(self) -> None: ...


class _Fork:
    """What one fork has found, of the thread that forks."""

    def __init__(self) -> None:
        self.llvm = self.interrupted = False


_forks: dict[int, _Fork] = {}  # by thread: several may fork at once
_llvm: Any = getattr(ffi.lib, "_lock", None)  # not public, but the only thing that every call of LLVM passes


def _before() -> None:
    here = _forks[threading.get_ident()] = _Fork()
    try:
        tracing.before_fork(PATIENCE)
        importing.wait()
        here.llvm = _llvm is None or _llvm._lock.acquire(timeout=PATIENCE)
    except KeyboardInterrupt:  # the interpreter forgets exceptions of this function
        here.interrupted = True
    except PolybodyError:  # a child that cannot compile forks
        pass
    for lock in Lock.every:
        if lock is not tracing:
            lock.before_fork()


def _after_in_parent() -> None:
    here = _forks.pop(threading.get_ident(), None) or _Fork()
    for lock in Lock.every:
        lock.after_in_parent()
    if here.llvm and _llvm is not None:
        _llvm._lock.release()
    if here.interrupted:
        _thread.interrupt_main()


def _after_in_child() -> None:
    here = _forks.get(threading.get_ident()) or _Fork()
    _forks.clear()
    for lock in Lock.every:
        lock.after_in_child(Refused() if lock is tracing else None)
    if _llvm is not None:
        if here.llvm:
            _llvm._lock.release()
        else:
            _llvm._lock = Refused()
    if here.interrupted:
        _thread.interrupt_main()


importing.also(_before, _after_in_parent, _after_in_child)

__all__ = ["Refused"]
