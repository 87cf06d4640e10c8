"""What every first answer of a process needs, made ready as soon as it has a model.

Who makes a model asks it something. CasADi and LLVM take some 50 ms to import, and the code around kernels some 50 ms
of LLVM's time, which a thread of its own takes while the caller goes on. On a thread the imports would take no less:
they hold the interpreter's lock, and so does who reads the model.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from polybody.interrupts import imported

_done: list[bool] = []


def make_ready() -> None:
    """Import the kernels, and begin to make the code that all of them need; once in a process."""
    if _done:
        return
    _done.append(True)
    try:
        imported("polybody.kernels")
    except ImportError:  # said where something is asked that needs them
        return
    from polybody.kernels import prepare

    prepare()


@contextmanager
def only_reading() -> Iterator[None]:
    """Models that are loaded here are shown, not asked: nothing is made ready. What is asked all the same waits."""
    before, _done[:] = _done[:], [True]
    try:
        yield
    finally:
        _done[:] = before


__all__ = ["make_ready", "only_reading"]
