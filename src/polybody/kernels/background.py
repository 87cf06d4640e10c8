"""Compilation behind the caller's back: one thread that takes jobs in turn while the fast tier answers.

A job is a function of `between`, which it calls wherever it can be left off: there the thread ends when the process
does. Jobs begin once a kernel has been asked for, no other job has come for a moment and nobody builds a kernel
(`building`), so that the first calls of a session, which trace and interpret, have Python and LLVM to themselves: both
do one thing at a time.

The end of the process waits for the piece in hand, some tenths of a second at most, because LLVM must not work while
its library is being unloaded. A forked child has no such thread: what was not done is done by one of its own, started
when a kernel that would profit is next called (`wake`). A job that fails leaves the fast tier in place and says so in a
`PolybodyWarning`.
"""

from __future__ import annotations

import _thread
import atexit
import contextlib
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator

from polybody.errors import InputError, PolybodyWarning
from polybody.garbage import uncollected

Job = Callable[[Callable[[], None]], None]
TIERS = ("auto", "optimised", "fast")
PAUSE = 0.15  # seconds without a new job before work begins, and how long it is put off at most
LATEST = 1.0
WAITED = 0.3  # seconds that a piece of a job waits at most for those who build


class _Stopped(Exception):
    """The process ends."""


class _Worker:
    def __init__(self) -> None:
        self.lock = threading.RLock()  # `with` takes this, not the condition: see `locks` about interrupts
        self.changed = threading.Condition(self.lock)
        self.jobs: list[tuple[str, Job]] = []  # the first is in work, if there is a thread
        self.thread: object = None  # what the thread that works was told to be, if there is one
        self.stopping = False
        self.asked = 0.0
        self.builders: dict[int, float] = {}  # threads that make kernels now, and since when
        self.wanted = False  # a kernel has been asked for: what was begun with a model alone can wait for that

    def wake(self) -> None:
        """See to it that there is a thread while there are jobs."""
        with self.lock:
            if self.jobs and self.thread is None and not self.stopping:
                self.thread = mark = object()
                try:
                    _thread.start_new_thread(self.run, (mark,))
                except BaseException as reason:  # an interrupt: a thread that began nevertheless finds its mark gone
                    self.thread = None
                    if not isinstance(reason, RuntimeError):  # no thread is left: the fast tier stays
                        raise

    def run(self, mark: object) -> None:
        with self.lock:
            if self.thread is not mark:
                return
        try:
            while self.wait_for_a_pause():
                name, job = self.jobs[0]
                try:
                    job(self.between)
                except _Stopped:
                    return
                except Exception as reason:  # told to the user: the answers stay right, only slower
                    text = f"{name} could not be compiled and stays in the fast tier: {type(reason).__name__}: {reason}"
                    warnings.warn(text, PolybodyWarning, stacklevel=1)
                with self.lock:
                    del self.jobs[0]
                    self.changed.notify_all()
        finally:
            with self.lock:
                self.thread = None
                self.changed.notify_all()

    def wait_for_a_pause(self) -> bool:
        """False when there is nothing left to do."""
        begun = time.monotonic()
        with self.lock:
            while self.jobs and not self.stopping:
                if not self.wanted:
                    self.changed.wait()
                    begun = time.monotonic()
                    continue
                now = time.monotonic()
                last = now if self.is_building() else self.asked
                left = min(last + PAUSE, begun + LATEST) - now
                if left <= 0:
                    return True
                self.changed.wait(left)
            return False

    def is_building(self) -> bool:
        """Whether somebody waits for a kernel. An entry that an interrupt left behind counts for a while only."""
        now = time.monotonic()
        return any(now - since < LATEST for since in self.builders.values())

    def between(self) -> None:
        """Where a job may be left off, or wait for those who build."""
        end = time.monotonic() + WAITED
        with self.lock:
            while self.is_building() and not self.stopping and (left := end - time.monotonic()) > 0:
                self.changed.wait(left)
        if self.stopping:
            raise _Stopped


_worker = _Worker()


def tier() -> str:
    """What $POLYBODY_TIER asks for: "auto", "optimised" (compile before answering) or "fast" (never compile)."""
    chosen = os.environ.get("POLYBODY_TIER") or "auto"
    if chosen not in TIERS:
        raise InputError(f"POLYBODY_TIER is {chosen!r}; expected {', '.join(TIERS[:-1])} or {TIERS[-1]}")
    return "optimised" if chosen == "auto" and True in _asked.values() else chosen


def is_repeatable() -> bool:
    """Whether only such ways may answer as give the same bits whatever has been compiled, or asked for, before.

    Interpreted and compiled kernels are such; reading equations in NumPy is not, which rounds products and sums apart.
    """
    return bool(_asked) or tier() == "optimised"


_asked: dict[object, bool] = {}  # of each that is under way: whether it waits for compiled code


@contextlib.contextmanager
def repeatable(compiled: bool = False) -> Iterator[None]:
    """What is computed inside, in any thread, does not depend on what the cache holds (`is_repeatable`); `compiled` to
    wait for machine code as the tier "optimised" does."""
    mark = object()
    try:
        _asked[mark] = compiled
        yield
    finally:
        _asked.pop(mark, None)


def submit(name: str, job: Job) -> None:
    """Do this when there is time."""
    worker = _worker
    with worker.lock:
        worker.jobs.append((name, job))
        worker.asked = time.monotonic()
        worker.changed.notify_all()
    worker.wake()


@contextlib.contextmanager
def building() -> Iterator[None]:
    """Whoever makes a kernel that a call waits for has the machine to itself meanwhile, and for a moment after.

    No garbage is searched for meanwhile.
    """
    with answering(), uncollected():
        yield


@contextlib.contextmanager
def answering() -> Iterator[None]:
    """Like `building`, of a call that makes several kernels and works between them: for `LATEST` at most.

    A thread that emits code has Python for 5 ms whenever this one lets go of it, as every kernel that runs does.
    """
    worker, own = _worker, threading.get_ident()
    if time.monotonic() - worker.builders.get(own, -LATEST) < LATEST:
        yield  # part of something larger
        return
    with worker.lock:
        worker.builders[own] = time.monotonic()
        if not worker.wanted:
            worker.wanted = True
            worker.changed.notify_all()
    try:
        yield
    finally:
        with worker.lock:
            worker.builders.pop(own, None)
            worker.asked = max(worker.asked, time.monotonic())
            worker.changed.notify_all()


def wake() -> None:
    """Go on with what is left, in a forked child too."""
    if _worker.thread is None and _worker.jobs:
        _worker.wake()


def wait(seconds: float | None = None) -> bool:
    """Until all jobs are done, or so long; whether they are."""
    worker = _worker
    worker.asked, worker.wanted = 0.0, True
    worker.wake()
    with worker.lock:
        worker.changed.notify_all()
        return worker.changed.wait_for(lambda: not worker.jobs, seconds)


def _stop() -> None:
    worker = _worker
    with worker.lock:
        worker.stopping = True
        worker.changed.notify_all()
        worker.changed.wait_for(lambda: worker.thread is None)


def _renew() -> None:
    """In a child: the same jobs, no thread, locks that nobody holds."""
    global _worker
    jobs, wanted = _worker.jobs, _worker.wanted
    _worker = _Worker()
    _worker.jobs, _worker.wanted = list(jobs), wanted


atexit.register(_stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)

__all__ = ["answering", "building", "is_repeatable", "repeatable", "submit", "tier", "wait", "wake"]
