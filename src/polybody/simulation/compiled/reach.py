"""What a user's function reaches: the code that a call of it may run, and all that this code knows from outside.

The search begins with the function and goes on through the functions that it names. Which object a name such as
`compute` in `pid.compute(q)` belongs to is known only when the code runs. So every name is looked up in every object
that is known, in what it holds and in its classes: methods found there are searched too, and what is held under a name
is known from then on. Methods that Python calls without a name (`__call__`, `__mul__`, `__getitem__`) belong to every
object. A filter or a log within a law is found by that, however it is called; so are some that the law never uses,
which costs speed and nothing else.
"""

from __future__ import annotations

import dis
import inspect
import types
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any
from weakref import ref

import numpy as np

#: instructions that change something which outlives the call
WRITING = frozenset({"STORE_ATTR", "DELETE_ATTR", "STORE_GLOBAL", "DELETE_GLOBAL", "YIELD_VALUE", "DELETE_SUBSCR"})
#: and those that may
ENTRIES = frozenset({"STORE_SUBSCR", "STORE_SLICE"})
#: names of functions and methods that do, or that reach what is not named
NAMES = frozenset({
    "append", "extend", "insert", "pop", "remove", "clear", "update", "setdefault", "add", "discard", "write", "print",
    "open", "input", "send", "put", "next", "random", "time", "perf_counter", "monotonic", "sleep", "exit", "setattr",
    "appendleft", "popleft", "fill", "sort", "exec", "eval", "delattr", "getattr", "vars", "globals", "__dict__",
    "__setattr__", "__setitem__", "__iadd__", "setitem", "delitem", "copyto", "putmask", "place",
    "save", "savez", "savetxt", "tofile", "rvs",
})  # fmt: skip
#: methods of Python's own objects that only read
READING = frozenset({
    "copy", "count", "index", "get", "keys", "values", "items", "union", "intersection", "difference", "most_common",
    "total", "real", "imag", "conjugate", "is_integer", "bit_length", "isoformat", "timestamp", "total_seconds",
})  # fmt: skip
HARMLESS = (type(None), bool, int, float, complex, str, bytes, np.generic, np.ndarray, np.ufunc)
PACKAGES = ("numpy", "scipy", "math", "cmath", "operator", "functools", "itertools", "builtins")
#: whose functions and objects are not looked into: they do what they say
TRUSTED = (*PACKAGES, "casadi", "polybody", "sympy", "enum", "abc", "typing", "dataclasses")
#: methods that are called to make an object or to show it
APART = frozenset({
    "__init__", "__new__", "__post_init__", "__init_subclass__", "__set_name__", "__setattr__", "__delattr__",
    "__del__", "__repr__", "__str__", "__hash__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__",
    "__dir__", "__sizeof__", "__copy__", "__deepcopy__", "__replace__", "__getnewargs__", "__class_getitem__",
})  # fmt: skip
#: how many functions, and things in a list, are looked at; what knows more is called in Python
MOST = 200


class Reach:
    """What was found in a function, in those it calls and in the objects it knows."""

    def __init__(self, function: Any) -> None:
        self.writes = ""  # to entries of something: who does
        self.outside: list[Any] = []
        self.read: list[tuple[Callable[[], Any], Any]] = []  # (how it is read, what was there) of names from outside
        self._met: set[int] = set()  # of things in `outside`, which live as long as this
        self._codes: set[types.CodeType] = set()
        self._names: set[str] = set()
        self._objects: list[Any] = []
        self._looked_up: set[tuple[int, str]] = set()
        self.reason = self._begin(function) or self._look_up()  # why it does more than compute; empty if it does not

    def _begin(self, function: Any) -> str:
        if isinstance(function, types.FunctionType):
            return self._function(function)
        if not isinstance(function, partial | types.MethodType):
            kind = type(function)
            if not isinstance(getattr(kind, "__call__", None), types.FunctionType) or _package(kind) == "polybody":  # noqa: B004
                return f"a {kind.__name__} is called as it is"
        return self._thing(function)

    def _look_up(self) -> str:
        """All names in all objects, until there is nothing new."""
        while True:
            pairs = [(x, name) for x in self._objects for name in self._names if (id(x), name) not in self._looked_up]
            if not pairs:
                return ""
            for thing, name in pairs:
                self._looked_up.add((id(thing), name))
                reason = self._attribute(thing, name)
                if reason:
                    return reason

    def _attribute(self, thing: Any, name: str) -> str:
        held = _held(thing)
        found = [held[name]] if name in held else []
        classes = thing.__mro__ if isinstance(thing, type) else type(thing).__mro__
        found += [vars(base)[name] for base in classes if name in vars(base)]
        for other in found:
            if isinstance(other, types.MemberDescriptorType):  # of a slot
                try:
                    other = other.__get__(thing)
                except AttributeError:  # nothing is in it
                    continue
            elif isinstance(other, types.MethodDescriptorType | types.ClassMethodDescriptorType):
                if name not in READING:
                    return f"it knows a {type(thing).__name__}, whose {name!r} may do more than compute"
                continue
            reason = self._thing(other)
            if reason:
                return reason
        return ""

    def _thing(self, other: Any) -> str:
        """Something that code names, or that is in it."""
        if id(other) in self._met:
            return ""
        self._met.add(id(other))
        self.outside.append(other)
        if other is self:
            return f"it knows more than {MOST} things in one"
        if isinstance(other, types.FunctionType):
            return "" if is_of(other, TRUSTED) else self._function(other)
        if isinstance(other, types.BuiltinFunctionType):
            return "" if is_harmless(other) else f"it calls {other.__name__!r}, which may do more than compute"
        inside = self._inside(other)
        if inside is None:
            inside = []
            if isinstance(other, types.ModuleType):
                if _root(other.__name__) not in TRUSTED:
                    self._objects.append(other)
            elif isinstance(other, type):
                if _package(other) not in TRUSTED:
                    self._objects.append(other)
            elif isinstance(other, np.ufunc) and other.__name__.endswith("(vectorized)"):  # np.frompyfunc
                return f"it calls {other.__name__!r}, a function that cannot be looked into"
            elif hasattr(type(other), "__next__") or type(other).__module__.startswith("numpy.random"):
                return f"it knows a {type(other).__name__}, which is another after each use"
            elif _package(type(other)) not in TRUSTED:
                self._objects.append(other)
                inside = _unnamed(type(other))
        for part in inside:
            reason = self._thing(part)
            if reason:
                return reason
        return ""

    def _inside(self, other: Any) -> list[Any] | None:
        """The parts of what does nothing by itself; None of anything else."""
        if isinstance(other, partial):
            return [other.func, *other.args, *other.keywords.values()]
        if isinstance(other, types.MethodType):
            return [other.__self__, other.__func__]
        if isinstance(other, staticmethod | classmethod):
            return [other.__func__]
        if isinstance(other, property):
            return [other.fget]
        if isinstance(other, cached_property):
            return [other.func]
        if isinstance(other, np.vectorize):
            return [other.pyfunc]
        wrapped = inspect.getattr_static(other, "__wrapped__", None)
        if isinstance(wrapped, types.FunctionType):  # a cache around it
            return [wrapped]
        if isinstance(other, dict | list | tuple | set | frozenset):
            self._objects.append(other)
            held = other.values() if isinstance(other, dict) else other
            own = [] if _package(type(other)) in TRUSTED else _unnamed(type(other))
            inside = [*own, *(x for x in held if type(x) not in (float, int, str))]
            return inside if len(inside) <= MOST else [self]
        return None

    def _function(self, function: types.FunctionType) -> str:
        defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        self.read += [(lambda x=x: x, x) for x in defaults]  # entries of an array may change
        own = ("__code__", "__defaults__", "__kwdefaults__")
        self.read += [(partial(_attribute, ref(function), name), getattr(function, name)) for name in own]
        captured = []
        for cell in function.__closure__ or ():
            try:
                captured.append(cell.cell_contents)
            except ValueError:  # of a name that is not bound yet: whoever reads it raises
                continue
            self.read.append((partial(getattr, cell, "cell_contents"), captured[-1]))
        scope = function.__globals__
        names = [name for name in _names(function.__code__) if name in scope]
        self.read += [(partial(scope.__getitem__, name), scope[name]) for name in names]
        reason = self._code(function.__code__)
        for thing in (*defaults, *captured, *(scope[name] for name in names)):
            reason = reason or self._thing(thing)
        return reason

    def _code(self, code: types.CodeType) -> str:
        if code in self._codes:
            return ""
        self._codes.add(code)
        if len(self._codes) > MOST:
            return f"it may call more than {MOST} functions"
        for step in dis.get_instructions(code):
            outer = step.opname == "STORE_DEREF" and step.argval in code.co_freevars
            if step.opname in WRITING or outer:
                return f"{code.co_name} changes something outside itself (line {code.co_firstlineno})"
            if step.opname in ENTRIES:
                self.writes = code.co_name
            if step.opname == "IMPORT_NAME" and _root(str(step.argval)) not in TRUSTED:
                return f"{code.co_name} imports {step.argval!r}, which may do more than compute"
        used = NAMES.intersection(code.co_names)
        if used:
            return f"{code.co_name} uses {sorted(used)[0]!r}, which may do more than compute"
        self._names.update(code.co_names)
        for inner in code.co_consts:
            if isinstance(inner, types.CodeType):
                reason = self._code(inner)
                if reason:
                    return reason
        return ""


def is_harmless(thing: Any) -> bool:
    """Whether nobody can change a thing but by writing to entries of an array, nor does it change by itself."""
    if isinstance(thing, types.ModuleType):
        return _root(thing.__name__) in PACKAGES
    if isinstance(thing, type):
        return _package(thing) in PACKAGES
    if isinstance(thing, tuple | frozenset):
        return all(map(is_harmless, thing))
    if isinstance(thing, np.ndarray):
        return thing.dtype != object
    if isinstance(thing, types.BuiltinFunctionType):  # of a module, or of an object
        return thing.__self__ is None or is_harmless(thing.__self__)
    if isinstance(thing, types.FunctionType):
        return True
    if type(thing).__module__.startswith("numpy.random"):
        return False
    return isinstance(thing, HARMLESS) or _package(type(thing)) in PACKAGES[:2]


def is_of(function: types.FunctionType, packages: tuple[str, ...] = PACKAGES) -> bool:
    return _root(str(function.__module__)) in packages


def _held(thing: Any) -> Any:
    """What an object holds by names; the user's `__getattr__` is not asked."""
    try:
        return object.__getattribute__(thing, "__dict__")
    except AttributeError:
        return {}


def _unnamed(kind: type) -> list[Any]:
    """Methods of a user's class that Python calls by itself."""
    every = (x for base in kind.__mro__ if _package(base) not in TRUSTED for x in vars(base).items())
    return [value for name, value in every if name.startswith("__") and name.endswith("__") and name not in APART
            and isinstance(value, types.FunctionType)]  # fmt: skip


def _attribute(of: ref[types.FunctionType], name: str) -> Any:
    """Of a function that nobody who remembers what it reads keeps alive."""
    return getattr(of(), name)


def _names(code: types.CodeType) -> set[str]:
    """Of globals and attributes in a function and those within it."""
    inner = (_names(x) for x in code.co_consts if isinstance(x, types.CodeType))
    return set(code.co_names).union(*inner)


def _package(kind: type) -> str:
    return _root(kind.__module__)


def _root(name: str) -> str:
    return name.partition(".")[0]


__all__ = ["Reach", "is_harmless", "is_of"]
