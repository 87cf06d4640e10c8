"""How many threads a batch uses, and the threads themselves.

    with threads(1): ...

holds for the code inside it (a context variable: other threads and tasks keep their own number). The default is every
core this process may use. Work is cut into more pieces than threads, which take the next piece when they are free; the
calling thread works too.
"""

from __future__ import annotations

import contextlib
import operator
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar

from polybody.errors import InputError

PIECES = 16  # for each thread
STACK = 64 * 1024 * 1024  # a large kernel's frame is megabytes, and macOS gives a thread half of one

_chosen: ContextVar[int | None] = ContextVar("polybody_threads", default=None)
_pool: ThreadPoolExecutor | None = None
_pool_lock = threading.Lock()


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


def _executor(workers: int) -> ThreadPoolExecutor:
    global _pool
    with _pool_lock:
        if _pool is None or _pool._max_workers < workers:
            _pool = ThreadPoolExecutor(max_workers=workers, thread_name_prefix="polybody")
        return _pool


def _forget_pool() -> None:
    """A forked child has none of its parent's threads, and perhaps a lock that nobody will release."""
    global _pool, _pool_lock
    _pool = None
    _pool_lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


def piece(states: int, lanes: int, workers: int) -> int:
    """How many states a thread takes at a time: whole blocks, and few enough that all end at about the same time."""
    if workers <= 1:
        return states
    return -(-states // (workers * PIECES * lanes)) * lanes


def together(workers: int, work: Callable[[], None]) -> None:
    """Call work() by so many threads, this one among them, until all have returned."""
    if workers <= 1:
        work()
        return
    executor = _executor(max(workers - 1, cores() - 1))
    before = threading.stack_size(STACK)  # the executor starts threads when work is submitted
    try:
        helpers: list[Future[None]] = [executor.submit(work) for _ in range(workers - 1)]
    finally:
        threading.stack_size(before)
    work()
    for helper in helpers:
        if not helper.cancel():  # one that has not started yet has nothing left to do
            helper.result()
