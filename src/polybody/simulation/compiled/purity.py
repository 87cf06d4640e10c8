"""Whether a user's function may be run on symbols: it must do nothing but compute.

One that writes to anything outside itself (an attribute, a global name, a list), prints, or asks the clock is not run
on symbols but called, as it always was. Writing to entries of an array, `v[0] = 0.0`, is allowed where it can only
reach what is the function's own: its arguments, which are copies, and what it makes. All that it names from outside
must then be harmless: functions, numbers, texts or arrays of NumPy, and the arrays are read-only while it is run on
symbols. The same is asked of actions of events: who has one called may have it called to do something elsewhere.

What a function reads from outside is compiled with the value that it had. `Knowledge` reports whether it still has it.
"""

from __future__ import annotations

import dis
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from weakref import ref

import numpy as np

#: instructions that change something which outlives the call
WRITING = frozenset({"STORE_ATTR", "DELETE_ATTR", "STORE_GLOBAL", "DELETE_GLOBAL", "YIELD_VALUE", "DELETE_SUBSCR"})
#: and those that may
ENTRIES = frozenset({"STORE_SUBSCR", "STORE_SLICE"})
#: names of functions and methods that do
NAMES = frozenset({
    "append", "extend", "insert", "pop", "remove", "clear", "update", "setdefault", "add", "discard", "write", "print",
    "open", "input", "send", "put", "next", "random", "time", "perf_counter", "monotonic", "sleep", "exit", "setattr",
    "appendleft", "popleft", "fill", "sort",
})  # fmt: skip
HARMLESS = (type(None), bool, int, float, complex, str, bytes, np.generic, np.ndarray, types.FunctionType,
            types.BuiltinFunctionType, np.ufunc)  # fmt: skip
PACKAGES = ("numpy", "scipy", "math", "cmath", "operator", "functools", "itertools", "builtins")
DEPTH = 4


class _Seen:
    """What was found in a function and those it calls."""

    def __init__(self) -> None:
        self.writes = ""  # to entries of something: who does
        self.outside: list[Any] = []
        self.read: list[tuple[Callable[[], Any], Any]] = []  # (how it is read, what was there) of names from outside


def impure(function: Any, entries: bool = False, alone: bool = False) -> str:
    """Why a function is not run on symbols; empty if nothing speaks against it.

    `entries`: whoever runs it lets it write to entries of its own arrays, and to no others (`reading`). `alone`: it may
    know nothing that it could change.
    """
    seen = _Seen()
    reason = _impure(function, seen)
    if reason or not (seen.writes or alone):
        return reason
    if seen.writes and not entries:
        return f"{seen.writes} writes to entries of something"
    for thing in seen.outside:
        if not _is_harmless(thing):
            return f"it knows a {type(thing).__name__} that it may change"
    return ""


@contextmanager
def reading(function: Any) -> Iterator[None]:
    """Arrays that a function knows from outside can only be read meanwhile."""
    seen = _Seen()
    _impure(function, seen)
    arrays = [x for x in seen.outside if isinstance(x, np.ndarray) and x.flags.writeable] if seen.writes else []
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
        seen = _Seen()
        plain = isinstance(function, types.FunctionType) and not _impure(function, seen)
        self._read = [(read, was, was.copy() if isinstance(was, np.ndarray) else was) for read, was in seen.read]
        #: whether that is all: what an object, a list or a dictionary holds is not known, nor are attributes of
        #: functions
        self.is_whole = plain and all(_is_harmless(x) and not _has_attributes(x) for x in (function, *seen.outside))

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


def _is_harmless(thing: Any) -> bool:
    if isinstance(thing, types.ModuleType):
        return thing.__name__.partition(".")[0] in PACKAGES
    if isinstance(thing, type):
        return thing.__module__.partition(".")[0] in PACKAGES
    if isinstance(thing, tuple | frozenset):
        return all(map(_is_harmless, thing))
    if isinstance(thing, np.ndarray):
        return thing.dtype != object
    return isinstance(thing, HARMLESS) or type(thing).__module__.partition(".")[0] in PACKAGES[:2]


def _has_attributes(thing: Any) -> bool:
    """Whether a function of the user's has attributes, which may change without anybody being told."""
    return isinstance(thing, types.FunctionType) and bool(vars(thing)) and not _is_of(thing, PACKAGES)


def _is_of(thing: types.FunctionType, packages: tuple[str, ...]) -> bool:
    return str(thing.__module__).partition(".")[0] in packages


def _impure(function: Any, seen: _Seen) -> str:
    if isinstance(function, partial):
        seen.outside += [*function.args, *function.keywords.values()]
        return _impure(function.func, seen)
    if isinstance(function, types.MethodType):
        seen.outside.append(function.__self__)
        return _impure(function.__func__, seen)
    if isinstance(function, types.FunctionType):
        return _impure_function(function, function.__globals__, seen, 0)
    kind = type(function)
    call = getattr(kind, "__call__", None)  # noqa: B004
    if not isinstance(call, types.FunctionType) or kind.__module__.partition(".")[0] == "polybody":
        return f"a {kind.__name__} is called as it is"
    seen.outside.append(function)
    methods = {name: value for base in reversed(kind.__mro__) for name, value in vars(base).items()}
    return _impure_function(call, {**call.__globals__, **methods}, seen, 0)


def _impure_function(function: types.FunctionType, scope: dict[str, Any], seen: _Seen, depth: int) -> str:
    defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    seen.outside += defaults
    seen.read += [(lambda x=x: x, x) for x in defaults]  # entries of an array may change
    own = ("__code__", "__defaults__", "__kwdefaults__")
    seen.read += [(partial(_attribute, ref(function), name), getattr(function, name)) for name in own]
    captured = []
    for cell in function.__closure__ or ():
        try:
            captured.append(cell.cell_contents)
        except ValueError:  # of a name that is not bound yet: whoever reads it raises
            continue
        seen.read.append((partial(getattr, cell, "cell_contents"), captured[-1]))
    names = _names(function.__code__) & function.__globals__.keys()
    seen.read += [(partial(function.__globals__.__getitem__, name), function.__globals__[name]) for name in names]
    for thing in captured:
        reason = _impure_other(thing, scope, seen, depth)
        if reason:
            return reason
    return _impure_code(function.__code__, scope, seen, depth)


def _attribute(of: ref[types.FunctionType], name: str) -> Any:
    """Of a function that nobody who remembers what it reads keeps alive."""
    return getattr(of(), name)


def _names(code: types.CodeType) -> set[str]:
    """Of globals and attributes in a function and those within it."""
    inner = (_names(x) for x in code.co_consts if isinstance(x, types.CodeType))
    return set(code.co_names).union(*inner)


def _impure_other(other: Any, scope: dict[str, Any], seen: _Seen, depth: int) -> str:
    """Of something that a function names."""
    seen.outside.append(other)
    if not isinstance(other, types.FunctionType) or str(other.__module__).startswith(("numpy", "scipy")):
        return ""
    if depth == DEPTH:
        seen.outside.append(seen)  # who knows what is below
        return ""
    return _impure_function(other, {**scope, **other.__globals__}, seen, depth + 1)


def _impure_code(code: types.CodeType, scope: dict[str, Any], seen: _Seen, depth: int) -> str:
    for step in dis.get_instructions(code):
        outer = step.opname == "STORE_DEREF" and step.argval in code.co_freevars
        if step.opname in WRITING or outer:
            return f"{code.co_name} changes something outside itself (line {code.co_firstlineno})"
        if step.opname in ENTRIES:
            seen.writes = code.co_name
        if step.opname == "IMPORT_NAME" and str(step.argval).partition(".")[0] not in PACKAGES:
            seen.outside.append(seen)  # who knows what is in there
    used = NAMES.intersection(code.co_names)
    if used:
        return f"{code.co_name} uses {sorted(used)[0]!r}, which may do more than compute"
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            reason = _impure_code(inner, scope, seen, depth)
            if reason:
                return reason
    for name in code.co_names:
        reason = _impure_other(scope.get(name), scope, seen, depth)
        if reason:
            return reason
    return ""


__all__ = ["Knowledge", "impure", "reading"]
