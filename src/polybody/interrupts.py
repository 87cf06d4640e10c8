"""Interrupts (Ctrl-C) that foreign code would swallow.

CasADi chooses among the overloads of a function by trying to convert the arguments, for which it runs Python code of
their classes and forgets every exception of it: measured, an interrupt that came there was lost, one of some thousand
while expression graphs are made, one of fifty while a controller is traced. `passed_on` therefore raises an interrupt
again and again until the work has ended; `interruptible` does so for a whole function. Packages that try, as they are
imported, what they can do without forget exceptions too: `imported` keeps an interrupt until the import is over.
"""

from __future__ import annotations

import _thread
import functools
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")
P = ParamSpec("P")
AGAIN = 0.05  # seconds; far more than it takes to unwind a trace, far less than a person waits
LATER = 0.2  # for whole functions, which may have to clear away what they began


def interruptible(function: Callable[P, T]) -> Callable[P, T]:
    """A function that an interrupt ends, whatever becomes of the exception inside."""

    @functools.wraps(function)
    def call(*arguments: P.args, **options: P.kwargs) -> T:
        return passed_on(lambda: function(*arguments, **options), LATER)

    return call


def passed_on(work: Callable[[], T], again: float = AGAIN) -> T:
    """`work()`, ended by an interrupt that comes during it whatever becomes of the exception there.

    Only the main thread gets interrupts, and only Python's own handler is replaced meanwhile: a program with a handler
    of its own keeps that.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return work()
    came = repeating = closed = told = False
    ended, finished = _thread.allocate_lock(), _thread.allocate_lock()
    ended.acquire()
    finished.acquire()

    def repeat() -> None:
        while not ended.acquire(timeout=again):
            _thread.interrupt_main()
        finished.release()

    def handle(*_: object) -> None:
        nonlocal came, repeating
        came = True
        if closed:  # on the way out, where it is raised once Python's own handler is back
            return
        if not repeating:
            repeating = True  # first: on a busy machine the next interrupt comes before this one has returned
            try:
                _thread.start_new_thread(repeat, ())
            except RuntimeError:  # no thread is left
                repeating = False
        raise KeyboardInterrupt

    try:
        signal.signal(signal.SIGINT, handle)
        answer = work()
    except BaseException as error:
        told = isinstance(error, KeyboardInterrupt)
        if came and not told:  # what CasADi made of the interrupt
            told = True
            raise KeyboardInterrupt from error
        raise
    finally:
        closed = True
        if repeating:
            ended.release()
            finished.acquire()  # so that nothing is raised again behind this place
        signal.signal(signal.SIGINT, signal.default_int_handler)
        # A signal that came while foreign code was at work, or freed what it had made, may be told of only here.
        if came and not told:
            raise KeyboardInterrupt
    return answer


def imported(name: str) -> None:
    """Import a large module that is wanted late, before the statement that names what is wanted of it.

    Measured, an interrupt that came while `scipy.integrate` was imported was lost, and the run went on. One that is
    raised there may also leave CPython's import lock taken while another thread imports.
    """
    handler = signal.getsignal(signal.SIGINT)
    if name in sys.modules or threading.current_thread() is not threading.main_thread() or not callable(handler):
        import_module(name)
        return
    came: list[Any] = []
    try:
        signal.signal(signal.SIGINT, lambda *given: came.append(given))
        import_module(name)
    finally:
        signal.signal(signal.SIGINT, handler)
        if came:
            handler(*came[0])


@contextmanager
def as_interrupt(number: int = signal.SIGTERM) -> Iterator[None]:
    """Let another signal, by default that of `kill` and of batch systems, end the work inside as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(number, lambda *_: _thread.interrupt_main())
    try:
        yield
    finally:
        signal.signal(number, before)


@contextmanager
def not_passed_to_children() -> Iterator[None]:
    """Processes that start inside never get Ctrl-C, which terminals send to all; here it comes at the end, if it came.

    They must then end by other means. Where signals cannot be held back (Windows), nothing is done.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Stop:
    """Lets threads of ours end where the main thread was interrupted: `with stop:` in each, `stop.now = True` here.

    Machine code looks at it between its turns (`stop_here`).
    """

    def __init__(self) -> None:
        self.now = False

    def __enter__(self) -> None:
        _here.stop = self

    def __exit__(self, *_: object) -> None:
        _here.stop = None


class _Here(threading.local):
    stop: Stop | None = None


_here = _Here()


def stop_here() -> None:
    """Raise where the work of this thread is not wanted any more."""
    stop = _here.stop
    if stop is not None and stop.now:
        raise KeyboardInterrupt


def awaited(future: Future[T]) -> T:
    """Its result. A signal that comes just before the waiting begins does not end it, so that it is cut in pieces."""
    from concurrent.futures import wait  # with it comes `logging`, 5 ms

    while not future.done():
        wait([future], timeout=AGAIN)
    return future.result()


__all__ = [
    "LATER", "Stop", "as_interrupt", "awaited", "imported", "interruptible", "not_passed_to_children", "passed_on",
    "stop_here",
]  # fmt: skip
