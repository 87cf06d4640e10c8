"""Locks that a forked child can use (`forks`), and work that no interrupt ends halfway.

An interrupt (Ctrl-C) is an exception between any two calls of the main thread's Python code, also between the call that
takes a lock and the return of an `__enter__` written in Python: the lock would stay taken, and the compiling thread
would wait for it for ever. So `with` gets the methods of the interpreter's own lock, which have no such place; and what
cannot be written so, because it is llvmlite's code, is done by a thread, where no interrupt comes (`undisturbed`).
"""

from __future__ import annotations

import _thread
import atexit
import os
import threading
import time
from collections.abc import Callable
from operator import attrgetter
from typing import Any, ClassVar, TypeVar


class Lock:
    """A reentrant lock, for `with`."""

    every: ClassVar[list[Lock]] = []

    def __init__(self) -> None:
        self._lock: Any = threading.RLock()
        self._had: set[int] = set()  # threads that fork just now and have it
        self.every.append(self)

    # Getters written in C: what `with` asks for is on the way of every batch.
    __enter__ = property(attrgetter("_lock.__enter__"))
    __exit__ = property(attrgetter("_lock.__exit__"))

    def before_fork(self, seconds: float = 0.0) -> None:
        """Have it while this thread forks, if it can be had within so many seconds."""
        if self._lock.acquire(timeout=seconds) if seconds > 0 else self._lock.acquire(blocking=False):
            self._had.add(threading.get_ident())

    def after_in_parent(self) -> None:
        """Give it back."""
        if threading.get_ident() in self._had:
            self._had.discard(threading.get_ident())
            self._lock.release()

    def after_in_child(self, instead: Any = None) -> None:
        """Give it back; one that another thread of the parent had begins anew, or becomes `instead`."""
        if threading.get_ident() not in self._had:
            self._lock = threading.RLock() if instead is None else instead
        self.after_in_parent()
        self._had.clear()


#: Who makes or frees CasADi's expression graphs has this. CasADi lets other threads run during every call, but is not
#: safe there: two threads that made graphs with the same whole numbers ended the process (CasADi 3.8.2).
tracing = Lock()


T = TypeVar("T")
LOOK = 0.05  # seconds between looks for an interrupt
_under_way: dict[int, Any] = {}  # locks that threads of `undisturbed` release when they are done
_abandoned: list[Any] = []  # what they found and nobody waits for: freed by the end of the process, not by the thread


def undisturbed(work: Callable[[], T]) -> T:
    """`work()`, which no interrupt ends halfway: done by another thread if this is the one that gets interrupts.

    An interrupt ends the waiting at once. The thread does its work to the end, which the end of the process awaits.
    """
    return work() if threading.current_thread() is not threading.main_thread() else begun(work)()


def begun(work: Callable[[], T]) -> Callable[[], T]:
    """Begin `work()` in a thread of its own; the function that waits for its answer."""
    answer: list[T] = []
    raised: list[BaseException] = []
    given = [work]
    done = _thread.allocate_lock()
    done.acquire()

    def run() -> None:
        # What the work holds may have no other owner after an interrupt. It is freed here, before `done` says that this
        # thread is through with LLVM: the end of the process unloads that.
        try:
            answer.append(given.pop()())
        except BaseException as error:
            raised.append(error)
        finally:
            _under_way.pop(id(done), None)
            done.release()

    _under_way[id(done)] = done
    try:
        _thread.start_new_thread(run, ())  # not `threading.Thread`, whose start has places as described above
    except RuntimeError:  # no thread is left, or the interpreter is ending
        _under_way.pop(id(done), None)
        return work
    del work

    def waited() -> T:
        try:
            while not done.acquire(timeout=LOOK):  # a signal that comes just before the waiting begins does not end it
                pass
        except BaseException:
            _abandoned.append((answer, raised))
            raise
        if raised:
            raise raised[0]
        return answer[0]

    return waited


def is_ending() -> bool:
    """Whether the process ends, and waits for work that was begun."""
    return bool(_ending)


_ending: list[bool] = []


def _await_all() -> None:
    _ending.append(True)
    for done in list(_under_way.values()):
        done.acquire()
    time.sleep(0.01)  # the last lines of a thread come after its signal; libraries are unloaded behind this


atexit.register(_await_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_under_way.clear)


__all__ = ["Lock", "begun", "is_ending", "tracing", "undisturbed"]
