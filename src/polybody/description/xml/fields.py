"""Reading attributes of XML elements, collecting every problem instead of stopping at the first.

A reader asks for fields, gets a harmless default where one is missing or malformed, goes on, and at the end raises or
returns the `Problem`s, each with its line ("file.urdf:42").
"""

from __future__ import annotations

import contextlib
import math
from typing import Any

from polybody.description.limits import LARGEST_NUMBER, NUMBER_CHARACTERS
from polybody.description.naming import name_problem, shown
from polybody.description.problems import Problem, ProblemList, raise_errors
from polybody.names import counted

#: Of elements that a macro expansion made: "file:line" of the element they come from.
SOURCE = "polybody_source"


class Fields:
    """Access to elements of one file, with its list of problems."""

    def __init__(self, file_name: str) -> None:
        self.file_name = file_name
        self._problems = ProblemList()

    @property
    def problems(self) -> list[Problem]:
        return self._problems.found

    def source(self, element: Any) -> str:
        """ "file.urdf:42": where the element stands."""
        return element.get(SOURCE) or f"{self.file_name}:{element.sourceline}"

    def line(self, element: Any) -> str:
        """ "line 42", or "file.xacro:42" where the element comes from a macro: where another element stands."""
        return element.get(SOURCE) or f"line {element.sourceline}"

    def problem(self, element: Any, text: str) -> None:
        self.problem_at(self.source(element), text)

    def problem_at(self, source: str, text: str) -> None:
        self._problems.error(text, source)

    def raise_problems(self) -> None:
        """Raise one InputError that lists all problems, if there are any."""
        raise_errors(self.problems, self.file_name)

    def child(self, element: Any, tag: str, *, owner: str) -> Any | None:
        """The only child with that tag, or None; a second one is a problem."""
        found = element.findall(tag)
        if len(found) > 1:
            self.problem(found[1], f"{owner} has {len(found)} <{tag}> elements; expected one")
        return found[0] if found else None

    def name(self, element: Any, what: str, attribute: str = "name") -> str:
        """A name that must be there and must not be empty; "" after a problem."""
        name = (element.get(attribute) or "").strip()
        if not name:
            self.problem(element, f"{what} needs the attribute {attribute!r}, a name that is not empty")
            return ""
        problem = name_problem(name)
        if problem is not None:
            self.problem(element, f"{what}: the name {shown(name)} {problem}")
            return ""
        return name

    def numbers(
        self, element: Any, attribute: str, default: tuple[float, ...], *, owner: str, infinite: bool = False
    ) -> tuple[float, ...]:
        """As many numbers as `default` has, or the default where the attribute is absent."""
        text = element.get(attribute)
        if text is None:
            return default
        if len(default) == 1 and len(text) <= NUMBER_CHARACTERS:  # most attributes are one number, and most are right
            with contextlib.suppress(ValueError):
                value = float(text)
                if abs(value) <= LARGEST_NUMBER:
                    return (value,)
        said = f"{owner}: <{element.tag} {attribute}={text!r:.80}>"
        if len(text) > NUMBER_CHARACTERS * len(default):
            self.problem(element, f"{said} has {len(text)} characters; expected {_wanted(default)}")
            return default
        words = text.split()
        try:
            values = tuple(float(word) for word in words)
        except ValueError:
            what = f"{_wanted(default)}{_hint(text)}"
            self.problem(element, f"{said} is not {what}")
            return default
        if len(values) != len(default):
            self.problem(element, f"{said} has {counted(len(values), 'number')}, expected {_wanted(default)}")
            return default
        if not all(abs(x) <= LARGEST_NUMBER or (infinite and not math.isnan(x)) for x in values):
            self.problem(element, f"{said} must be finite (and not above {LARGEST_NUMBER:g})")
            return default
        return values

    def number(
        self, element: Any, attribute: str, default: float | None, *, owner: str, infinite: bool = False
    ) -> float:
        """One number; with no default its absence is a problem."""
        if default is None and element.get(attribute) is None:
            self.problem(element, f"{owner}: <{element.tag}> needs the attribute {attribute!r}, a number")
        return self.numbers(element, attribute, (default or 0.0,), owner=owner, infinite=infinite)[0]


def _wanted(default: tuple[float, ...]) -> str:
    return "a number" if len(default) == 1 else f"{len(default)} numbers"


def _hint(text: str) -> str:
    macros = "${" in text or "$(" in text
    return " (a xacro expression: declare xmlns:xacro on <robot> to have it expanded)" if macros else ""


__all__ = ["SOURCE", "Fields"]
