"""Every public name has a docstring, and so have the public members of every class that a public call returns."""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import re
import typing
from collections.abc import Iterator
from pathlib import Path
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


def public_classes() -> list[type]:
    """Exported classes, and those that exported functions and public members of such classes return."""
    classes = [thing for _, thing in exported() if inspect.isclass(thing)]
    classes += [kind for _, thing in exported() if inspect.isfunction(thing) for kind in returned(thing)]
    seen: dict[type, None] = {}
    while classes:
        kind = classes.pop()
        if kind not in seen and kind.__module__.startswith("polybody"):
            seen[kind] = None
            classes += [found for _, function in members(kind) for found in returned(function)]
    return list(seen)


def test_every_public_name_and_member_has_a_docstring() -> None:
    missing = [name for name, thing in exported() if not name.startswith("_") and not documented(thing)]
    seen = public_classes()
    for kind in seen:
        if not documented(kind):
            missing.append(f"{kind.__module__}.{kind.__name__}")
        missing += [f"{kind.__module__}.{kind.__name__}.{name}" for name, function in members(kind)
                    if not documented(function)]  # fmt: skip
    assert sorted(missing) == []
    assert {"Model", "Study", "StateSpace", "Trajectory"} < {kind.__name__ for kind in seen}
    assert len(seen) > 90


def undocumented_fields(kind: type) -> Iterator[str]:
    """Public fields of a dataclass without a comment at or above their line, and without a word in the docstring."""
    source = Path(inspect.getsourcefile(kind) or "").read_text(encoding="utf-8")
    lines = source.splitlines()
    found = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef))
    body = next(node.body for node in found if node.name == kind.__name__)
    for statement in body:
        if not (isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)):
            continue
        name, last = statement.target.id, lines[(statement.end_lineno or statement.lineno) - 1]
        commented = "#" in last or lines[statement.lineno - 2].strip().startswith("#")
        if not (name.startswith("_") or commented or re.search(rf"\b{re.escape(name)}\b", kind.__doc__ or "")):
            yield f"{kind.__module__}.{kind.__name__}.{name}"


def test_every_field_of_a_public_dataclass_is_explained() -> None:
    kinds = [kind for kind in public_classes() if dataclasses.is_dataclass(kind)]
    assert [name for kind in kinds for name in undocumented_fields(kind)] == []
    assert len(kinds) > 50
