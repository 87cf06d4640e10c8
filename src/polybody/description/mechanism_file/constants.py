"""Constants of a mechanism file: numbers with names, and expressions of them in place of numbers.

    parameters: {L1: 30cm, L2: =2*L1}
    bodies:
      link: {mass: 1, com: [=L1/2, 0, 0]}

What begins with "=" is an expression (`description.expressions`) of constants above it. It is worked out before the
file is read any further, so that it may stand wherever a number may. Which numbers of the records it became is found
by reading the file a second time with other values, of which no two expressions have the same:
`model.with_parameters("L1")` then moves all of them. Where a constant became something else (a rotation, a joint's
limit), it stays a constant.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from polybody.algebra.domains import FLOAT
from polybody.description.expressions import parse
from polybody.description.mechanism_file.dimensions import Dimension, dimension_of_text, unit_of
from polybody.description.mechanism_file.yaml_nodes import Mapping, Node, Scalar, describe
from polybody.description.naming import name_problem
from polybody.description.parameters import parameters_of
from polybody.description.records import Constant, Description, Formula, as_data
from polybody.description.substitution import number_at, substituted
from polybody.description.units import ANGLE, LENGTH, MASS, quantity
from polybody.errors import InputError
from polybody.names import listed, nearest

MARK = "="
SECTION = "parameters"
SKIPPED = ("source", "visuals", "constants", "formulas", "configurations")


def read_constants(root: Node, where: str) -> list[Constant]:
    """The constants of a file, in their order."""
    return _constants(root, where)[0]


def _constants(root: Node, where: str) -> tuple[list[Constant], dict[str, Dimension]]:
    """The constants, and the dimensions of those that have one."""
    node = root.pairs[SECTION][1] if isinstance(root, Mapping) and SECTION in root.pairs else None
    if node is None:
        return [], {}
    if not isinstance(node, Mapping):
        raise InputError(f"{where}:{node.line}: {SECTION} must be a mapping of names to numbers, got {describe(node)}")
    found: dict[str, Constant] = {}
    dimensions: dict[str, Dimension] = {}
    for name, (line, value) in node.pairs.items():
        if name_problem(name) is not None or not name.isidentifier() or name == "pi":
            raise InputError(
                f"{where}:{line}: {SECTION}: {name!r} is not a constant's name; expected letters, digits and _"
            )
        if not isinstance(value, Scalar):
            raise InputError(f"{where}:{line}: {SECTION}: {name} must be one number, got {describe(value)}")
        try:
            if value.text.startswith(MARK):
                text = value.text[len(MARK) :].strip()
                found[name] = Constant(name, _value(text, found), text)
            else:
                found[name] = Constant(name, quantity(value.text, (ANGLE, LENGTH, MASS)))
            dimensions[name] = dimension_of_text(value.text, MARK, dimensions)
        except InputError as error:
            raise InputError(f"{where}:{line}: {SECTION}: {name}: {error}") from None
    return list(found.values()), dimensions


def _value(text: str, known: dict[str, Constant]) -> float:
    expression = parse(text)
    for name in expression.joints:
        if name not in known:
            raise InputError(f"no constant {name!r}{nearest(name, known)}; defined above: {listed(known) or 'none'}")
    return float(expression.value({name: (c.value,) for name, c in known.items()}, FLOAT))  # type: ignore[dict-item]


def expressions_in(root: Node) -> Iterator[Scalar]:
    """Scalars of the file that are expressions, but for the constants' own."""
    pending = [value for key, (_, value) in root.pairs.items() if key != SECTION] if isinstance(root, Mapping) else []
    seen: set[int] = set()
    while pending:
        node = pending.pop()
        if id(node) in seen:
            continue  # an alias
        seen.add(id(node))
        if isinstance(node, Scalar):
            if node.text.startswith(MARK):
                yield node
        elif isinstance(node, Mapping):
            pending += [value for _, value in node.pairs.values()]
        else:
            pending += node.items


def work_out_expressions(root: Node, where: str) -> None:
    """Put numbers in place of the expressions of a composed file, where it is read for something else than records."""
    constants, dimensions = _constants(root, where)
    marked = [(scalar, scalar.text[len(MARK) :].strip()) for scalar in expressions_in(root)]
    _work_out(marked, constants, where, dimensions)


def with_constants(root: Node, where: str, read: Callable[[], Any]) -> Any:
    """read() with every expression worked out; and where the constants stand among the description's numbers."""
    constants, dimensions = _constants(root, where)
    marked = [(scalar, scalar.text[len(MARK) :].strip()) for scalar in expressions_in(root)]
    if not constants and not marked:
        return read()
    _work_out(marked, constants, where, dimensions)
    description, problems = read()
    if problems or not marked:
        return replace(description, constants=tuple(constants)), problems
    found = replace(description, constants=tuple(constants))
    return _located(found, marked, constants, where, read, dimensions), problems


def _work_out(
    marked: list[tuple[Scalar, str]], constants: list[Constant], where: str, dimensions: dict[str, Dimension]
) -> None:
    """Put values in place of expressions, with a unit where one follows from the constants: places check it."""
    known = {c.name: c for c in constants}
    for scalar, text in marked:
        try:
            value = _value(text, known)
            unit = unit_of(text, dimensions)
            scalar.text = f"{value!r}{unit}" if math.isfinite(value) else repr(value)
        except InputError as error:
            raise InputError(f"{where}:{scalar.line}: {MARK}{text}: {error}") from None


def _located(
    description: Description, marked: list[tuple[Scalar, str]], constants: list[Constant], where: str, read: Any,
    dimensions: dict[str, Dimension],
) -> Description:  # fmt: skip
    """The description with formulas, if its constants are all that a second reading with other values needs."""
    probe: list[Constant] = []
    for k, c in enumerate(constants):  # near the value, in general position
        value = c.value * (1 + 1e-3 * (0.618034 + 0.1 * k)) + 1e-4 * (0.754878 + 0.1 * k)
        if c.expression is not None:
            value = _value(c.expression, {p.name: p for p in probe})
        probe.append(replace(c, value=value))
    try:
        _work_out(marked, probe, where, dimensions)
        other, problems = read()
    except InputError:
        return description
    finally:
        numbers = {scalar.text: text for scalar, text in marked}
        _work_out(marked, constants, where, dimensions)
    if problems:
        return description
    texts = {quantity(value, (ANGLE, LENGTH, MASS)): text for value, text in numbers.items()}
    formulas = []
    for parameter in parameters_of(description):
        if parameter.place[0] != "constants":
            before, after = number_at(description, parameter.place), number_at(other, parameter.place)
            if before != after and after in texts:
                formulas.append(Formula(parameter.place, texts[after]))
    found = replace(description, formulas=tuple(formulas))
    chosen = [p for p in parameters_of(found) if p.place[0] == "constants" and constants[p.place[1]].expression is None]
    again = substituted(found, chosen, [probe[p.place[1]].value for p in chosen])
    whole = as_data(again, skip=SKIPPED) == as_data(other, skip=SKIPPED)
    return found if whole else replace(description, constants=())


__all__ = ["MARK", "SECTION", "read_constants", "with_constants"]
