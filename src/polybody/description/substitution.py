"""Descriptions with other numbers in the place of parameters.

`substituted` puts numbers of any domain there: floats give another description, scalars of an expression graph one that
`mechanism_from` turns into a mechanism whose equations have those numbers as inputs. Constants that a mechanism file
names move every number that is written with them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from polybody.algebra.rotations import rotation_exp
from polybody.algebra.scalars import domain_of, is_symbolic, numbers, plain
from polybody.description.expressions import parse
from polybody.description.parameters import TURNS, XYZ, Parameter, frictionless
from polybody.description.records import Array, Constant, Description, Friction, Joint, Loop, joint_size


def substituted(description: Description, chosen: Iterable[Parameter], values: Any) -> Description:
    """The description with other numbers, floats or scalars of an expression graph."""
    by_record: dict[tuple[str, int], dict[str, list[tuple[Any, Any]]]] = {}
    places = [(parameter.place, value) for parameter, value in zip(chosen, values, strict=True)]
    constants = {place[1]: value for place, value in places if place[0] == "constants"}
    if constants:
        said = {place for place, _ in places}
        changed_constants, formulas = followed(description, constants)
        description = replace(description, constants=changed_constants)
        places += [(place, value) for place, value in formulas if place not in said]
    for (section, index, field, where), value in places:
        if section == "constants":
            continue
        by_record.setdefault((section, index), {}).setdefault(field, []).append((where, value))
    sections: dict[str, list[Any]] = {}
    changed: dict[str, Any] = {}
    for (section, index), fields in by_record.items():
        if section == "gravity":
            changed["gravity"] = _entries(description.gravity, fields["gravity"])
            continue
        records = sections.setdefault(section, list(getattr(description, section)))
        record = records[index]
        records[index] = replace(record, **{field: _field(record, field, new) for field, new in fields.items()})
    return replace(description, **changed, **{section: tuple(records) for section, records in sections.items()})


def followed(
    description: Description, given: dict[int, Any]
) -> tuple[tuple[Constant, ...], list[tuple[tuple[Any, ...], Any]]]:
    """All constants with some given anew, and the numbers of records that follow from them."""
    domain = domain_of(*given.values())
    known: dict[str, Any] = {}
    moved: set[str] = set()
    for k, constant in enumerate(description.constants):
        value: Any = constant.value
        if k in given:
            value = given[k]
            moved.add(constant.name)
        elif constant.expression is not None and moved & set(parse(constant.expression).joints):
            value = parse(constant.expression).value(known, domain)
            moved.add(constant.name)
        known[constant.name] = (domain.const(value),)
    constants = tuple(
        replace(c, value=known[c.name][0] if is_symbolic(known[c.name][0]) else float(known[c.name][0]))
        for c in description.constants
    )
    formulas = [(f.place, parse(f.expression)) for f in description.formulas]
    return constants, [(place, e.value(known, domain)) for place, e in formulas if moved & set(e.joints)]


def number_at(description: Description, place: tuple[Any, ...]) -> float:
    """The number that stands at a place; turns of placements are not numbers there, and read zero."""
    section, index, field, where = place
    if section == "gravity":
        return float(description.gravity[where])
    record = getattr(description, section)[index]
    value = getattr(record, field)
    if field.startswith("origin"):
        return float(value[XYZ.index(where), 3]) if where in XYZ else 0.0
    if value is None:
        return 0.0
    if field == "friction" and where != ():
        return float(getattr(value, where[0])[where[1]])
    return float(value) if where == () else float(np.asarray(value)[where])


def _field(record: Any, field: str, new: list[tuple[Any, Any]]) -> Any:
    if field.startswith("origin"):
        return _placed(getattr(record, field), dict(new))
    if field == "axis":
        axis = _entries(record.axis, new)
        return axis / domain_of(axis).sqrt(axis @ axis)
    if field == "friction" and isinstance(record, Joint | Loop):
        return _resisted(record.friction or frictionless(joint_size(record)[1]), dict(new))
    (where, value), *_ = new
    if where == ():
        return value if is_symbolic(value) else float(value)
    given = getattr(record, field)
    if given is None:
        nv = joint_size(record)[1]
        given = np.zeros((nv, nv) if field in ("stiffness", "damping") else nv)
    if field == "inertia":
        new = [*new, *((where[::-1], value) for where, value in new)]
    return _entries(given, new)


def _resisted(friction: Friction, new: dict[tuple[str, int], Any]) -> Friction:
    """Friction with other numbers; a static level that is the sliding one stays so unless it is given."""
    for (word, k), value in list(new.items()):
        if word == "coulomb" and friction.static[k] == friction.coulomb[k]:
            new.setdefault(("static", k), value)
    words = {word for word, _ in new}
    changed = {w: [((k,), value) for (word, k), value in new.items() if word == w] for w in words}
    return replace(friction, **{word: _entries(getattr(friction, word), entries) for word, entries in changed.items()})


def _entries(given: Any, new: list[tuple[Any, Any]]) -> Array:
    result = np.array(given, dtype=object)
    for where, value in new:
        result[where] = value
    return plain(result)


def _placed(origin: Any, new: dict[str, Any]) -> Array:
    """A placement with another shift, and turned by a rotation vector in its own axes."""
    result = np.array(origin, dtype=object)
    for k, axis in enumerate(XYZ):
        if axis in new:
            result[k, 3] = new[axis]
    if any(turn in new for turn in TURNS):
        vector = numbers([new.get(turn, 0.0) for turn in TURNS])
        result[:3, :3] = numbers(origin)[:3, :3] @ rotation_exp(vector, domain=domain_of(vector))
    return plain(result)


__all__ = ["followed", "number_at", "substituted"]
