"""Whether a user's function may be run on symbols: it must do nothing but compute.

One that writes to anything outside itself (an attribute, a global name, a list), prints, draws random numbers or asks
the clock is not run on symbols but called, as it always was (`reach`: methods of objects that it knows count as its
own). Writing to entries of an array, `v[0] = 0.0`, is allowed where it can only reach what is the function's own: its
arguments, which are copies, and what it makes. All that it names from outside must then be harmless: functions,
numbers, texts or arrays of NumPy, and the arrays are read-only while it is run on symbols. The same is asked of
actions of events: who has one called may have it called to do something elsewhere.

What a function reads from outside is compiled with the value that it had. `Knowledge` reports whether it still has it.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from polybody.simulation.compiled.reach import Reach, is_harmless, is_of


def impure(function: Any, entries: bool = False, alone: bool = False) -> str:
    """Why a function is not run on symbols; empty if nothing speaks against it.

    `entries`: whoever runs it lets it write to entries of its own arrays, and to no others (`reading`). `alone`: it may
    know nothing that it could change.
    """
    reach = Reach(function)
    if reach.reason or not (reach.writes or alone):
        return reach.reason
    if reach.writes and not entries:
        return f"{reach.writes} writes to entries of something"
    for thing in reach.outside:
        if not is_harmless(thing):
            return f"it knows a {type(thing).__name__} that it may change"
    return ""


@contextmanager
def reading(function: Any) -> Iterator[None]:
    """Arrays that a function knows from outside can only be read meanwhile."""
    reach = Reach(function)
    arrays = [x for x in reach.outside if isinstance(x, np.ndarray) and x.flags.writeable] if reach.writes else []
    for array in arrays:
        array.flags.writeable = False
    try:
        yield
    finally:
        for array in arrays:
            array.flags.writeable = True


class Knowledge:
    """What a function reads from outside, as it was: numbers, texts and arrays under the names that it uses."""

    def __init__(self, function: Any) -> None:
        reach = Reach(function)
        plain = isinstance(function, types.FunctionType) and not reach.reason
        self._read = [(read, was, was.copy() if isinstance(was, np.ndarray) else was) for read, was in reach.read]
        #: whether that is all: what an object, a list or a dictionary holds is not known, nor are attributes of
        #: functions and entries of arrays in a tuple
        self.is_whole = plain and all(is_harmless(x) and not _holds(x) for x in (function, *reach.outside))

    def is_as_it_was(self) -> bool:
        """Whether whoever reads it now reads the same."""
        for read, was, kept in self._read:
            try:
                now = read()
            except (KeyError, ValueError):  # a name that is gone
                return False
            if now is not was or (isinstance(kept, np.ndarray) and not np.array_equal(now, kept)):
                return False
        return self.is_whole


def _holds(thing: Any) -> bool:
    """Whether a thing holds what may change without anybody being told."""
    if isinstance(thing, tuple | frozenset):
        return any(isinstance(x, np.ndarray) or _holds(x) for x in thing)
    if isinstance(thing, types.FunctionType):
        return bool(vars(thing)) and not is_of(thing)
    return isinstance(thing, np.poly1d)


__all__ = ["Knowledge", "impure", "reading"]
