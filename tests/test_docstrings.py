"""Every public name has a docstring, and so have the public members of every class that a public call returns."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import typing
from collections.abc import Iterator
from typing import Any

import polybody as pb


def exported() -> Iterator[tuple[str, Any]]:
    """(name, object) of `pb` and of the modules that it exports (`pb.paths`, `pb.controllers`)."""
    for name in pb.__all__:
        thing = getattr(pb, name)
        yield name, thing
        if inspect.ismodule(thing):
            for inner in thing.__all__:
                yield f"{name}.{inner}", getattr(thing, inner)


def returned(function: Any) -> Iterator[type]:
    """Classes of polybody in a function's return annotation."""
    try:
        waiting = [typing.get_type_hints(function).get("return")]
    except NameError:  # a name that only type checkers import
        return
    while waiting:
        kind = waiting.pop()
        if inspect.isclass(kind) and kind.__module__.startswith("polybody"):
            yield kind
        waiting += typing.get_args(kind)


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """(name, function) of the public methods and properties that polybody defines."""
    for name in dir(kind):
        found = inspect.getattr_static(kind, name)
        if isinstance(found, classmethod | staticmethod):
            found = found.__func__
        elif isinstance(found, property):
            found = found.fget
        elif isinstance(found, functools.cached_property):
            found = found.func
        if not name.startswith("_") and inspect.isfunction(found) and found.__module__.startswith("polybody"):
            yield name, found


def documented(thing: Any) -> bool:
    """Whether a docstring was written: that of a dataclass is not its own signature."""
    text = (thing.__doc__ or "").strip()
    return bool(text) and not (dataclasses.is_dataclass(thing) and text.startswith(f"{thing.__name__}("))


def test_every_public_name_and_member_has_a_docstring() -> None:
    missing = [name for name, thing in exported() if not name.startswith("_") and not documented(thing)]
    classes = [thing for _, thing in exported() if inspect.isclass(thing)]
    classes += [kind for _, thing in exported() if inspect.isfunction(thing) for kind in returned(thing)]
    seen: set[type] = set()
    while classes:
        kind = classes.pop()
        if kind in seen or not kind.__module__.startswith("polybody"):
            continue
        seen.add(kind)
        if not documented(kind):
            missing.append(f"{kind.__module__}.{kind.__name__}")
        for name, function in members(kind):
            classes += returned(function)
            if not documented(function):
                missing.append(f"{kind.__module__}.{kind.__name__}.{name}")
    assert sorted(missing) == []
    assert {"Model", "Study", "StateSpace", "Trajectory"} < {kind.__name__ for kind in seen}
    assert len(seen) > 90
