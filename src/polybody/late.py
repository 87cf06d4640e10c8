"""Dataclasses whose text is compiled when some objects have been made: `dataclass` as that of the standard library.

The standard one writes six functions as text and compiles them where a class is defined: 1 ms a class, 60 ms of the
modules that a first simulation imports. Here only `__init__` is made so, once it has been called a few times: of most
classes a first simulation makes one object or two, which are filled field by field. The others are functions that all
these classes share. `fields`, `replace` and `is_dataclass` of the standard library work as usual.

Frozen classes are not to be mixed with the standard library's in one line of inheritance.
"""

from __future__ import annotations

import dataclasses
import inspect
import reprlib
from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, field
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform, overload

T = TypeVar("T")
FEW = 8  # objects that are made before text is compiled, which takes as long as to fill some fifty


@overload
def dataclass(cls: type[T], /) -> type[T]: ...
@overload
def dataclass(cls: None = None, /, *, frozen: bool = False, eq: bool = True) -> Callable[[type[T]], type[T]]: ...


@dataclass_transform(field_specifiers=(dataclasses.field,))
def dataclass(cls: Any = None, /, *, frozen: bool = False, eq: bool = True) -> Any:
    """A dataclass; `frozen` and `eq` as in the standard library."""

    def wrap(cls: type) -> type:
        own = set(cls.__dict__)
        cls.__doc__ = cls.__doc__ or cls.__qualname__  # or the standard library would write a signature, for 8 ms
        dataclasses.dataclass(init=False, repr=False, eq=False)(cls)  # its fields; no text
        given: dict[str, Any] = {"__init__": _first(cls, frozen), "__repr__": _repr, "__signature__": _Signature()}
        if eq:
            given |= {"__eq__": _eq, "__hash__": _hash if frozen else None}
        if frozen:
            given |= {"__setattr__": _refuse, "__delattr__": _refuse}
        for name, value in given.items():
            if name not in own or (name == "__hash__" and cls.__dict__[name] is None):
                setattr(cls, name, value)
        return cls

    return wrap if cls is None else wrap(cls)


def _first(cls: type, frozen: bool) -> Callable[..., None]:
    """What makes the first objects: then it puts the compiled text in its own place."""
    left = FEW

    def __init__(self: Any, *values: Any, **named: Any) -> None:
        nonlocal left
        left -= 1
        if left >= 0 and _filled(self, cls, frozen, values, named):
            return
        made = _init(cls, frozen)  # who is given what it does not take says so
        cls.__init__ = made  # type: ignore[method-assign]
        made(self, *values, **named)

    __init__.frozen = frozen  # type: ignore[attr-defined]
    return __init__


def _filled(self: Any, cls: type, frozen: bool, values: tuple[Any, ...], named: dict[str, Any]) -> bool:
    """Whether these are values of the fields; then they are set as `_init` sets them."""
    fields = dataclasses.fields(cls)  # type: ignore[arg-type]
    places = [one.name for one in fields if one.init and not one.kw_only]
    given = dict(zip(places, values, strict=False))
    taken = {one.name for one in fields if one.init}
    needed = {one.name for one in fields if one.init and one.default is MISSING and one.default_factory is MISSING}
    if len(values) > len(places) or given.keys() & named.keys() or not named.keys() <= taken:
        return False
    given |= named
    if not needed <= given.keys():
        return False
    for one in fields:
        name = one.name
        if name in given:
            value = given[name]
        elif one.default_factory is not MISSING:
            value = one.default_factory()
        elif one.init:
            value = one.default
        else:  # an attribute of the class, or nobody's
            continue
        if frozen:
            self.__dict__[name] = value  # past its own refusal
        else:
            setattr(self, name, value)
    if hasattr(cls, "__post_init__"):
        self.__post_init__()
    return True


def _init(cls: type, frozen: bool) -> Callable[..., None]:
    """`__init__` of its fields."""
    names: dict[str, Any] = {"_left": MISSING}
    plain, named, lines = [], [], []
    for one in dataclasses.fields(cls):  # type: ignore[arg-type]
        value, default = one.name, ""
        if one.default is not MISSING:
            names[f"_is_{one.name}"] = one.default
            default = f"=_is_{one.name}"
        elif one.default_factory is not MISSING:
            names[f"_make_{one.name}"] = one.default_factory
            default, value = "=_left", f"_make_{one.name}() if {one.name} is _left else {one.name}"
        if one.init:
            (named if one.kw_only else plain).append(f"{one.name}{default}")
        elif one.default_factory is not MISSING:
            value = f"_make_{one.name}()"
        else:  # an attribute of the class, or nobody's
            continue
        lines.append(f"_own[{one.name!r}] = {value}" if frozen else f"self.{one.name} = {value}")
    if frozen:
        lines.insert(0, "_own = self.__dict__")  # past its own refusal, in half the time of object.__setattr__
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    parameters = ", ".join(["self", *plain, *(["*", *named] if named else [])])
    exec(f"def __init__({parameters}):\n " + "\n ".join(lines or ["pass"]), names)
    made: Any = names["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


class _Signature:
    """What `inspect.signature` of a class shows: that of its fields."""

    def __get__(self, instance: object, owner: type) -> inspect.Signature:
        if instance is not None:
            raise AttributeError("__signature__")
        made = owner.__init__
        frozen = getattr(made, "frozen", None)
        shown = inspect.signature(made if frozen is None else _init(owner, frozen))
        kinds = {one.name: one.type for one in dataclasses.fields(owner)}  # type: ignore[arg-type]
        kept = []
        for name, parameter in list(shown.parameters.items())[1:]:
            default = parameter.default
            if default is MISSING:
                default = dataclasses._HAS_DEFAULT_FACTORY  # type: ignore[attr-defined]
            kept.append(parameter.replace(annotation=kinds.get(name, parameter.annotation), default=default))
        return shown.replace(parameters=kept, return_annotation=None)


@reprlib.recursive_repr()
def _repr(self: Any) -> str:
    told = ", ".join(f"{one.name}={getattr(self, one.name)!r}" for one in dataclasses.fields(self) if one.repr)
    return f"{type(self).__qualname__}({told})"


_GETTERS: dict[type, Callable[[Any], Any]] = {}


def _compared(self: Any) -> Any:
    """The values that are compared."""
    get = _GETTERS.get(type(self))
    if get is None:
        names = [one.name for one in dataclasses.fields(self) if one.compare]
        get = attrgetter(*names) if len(names) > 1 else lambda x: tuple(getattr(x, name) for name in names)
        _GETTERS[type(self)] = get
    return get(self)


def _eq(self: Any, other: Any) -> Any:
    return _compared(self) == _compared(other) if other.__class__ is self.__class__ else NotImplemented


def _hash(self: Any) -> int:
    return hash(_compared(self))


def _refuse(self: Any, name: str, *_: object) -> None:
    raise FrozenInstanceError(f"cannot {'assign to' if _ else 'delete'} field {name!r}")


__all__ = ["dataclass", "field"]
