"""Reading the fields of a mechanism file's mappings: known keys only, each value converted, every problem collected.

A problem does not end the reading. It is noted with its line, the field takes its default, and reading goes on, so
that a person sees all problems at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Mapping as Mapping_
from typing import Any, TypeVar

from polybody.description.limits import RECORDS
from polybody.description.mechanism_file.yaml_nodes import Mapping, Node, Scalar, Sequence, describe
from polybody.description.naming import name_problem, shown
from polybody.description.problems import Problem, ProblemList
from polybody.description.units import quantity
from polybody.errors import InputError
from polybody.names import listed, nearest

T = TypeVar("T")


class Notes:
    """The problems met so far in one file."""

    def __init__(self, where: str) -> None:
        self.where = where
        self._problems = ProblemList()
        #: segments of flexible links and shapes to draw, so far
        self.segments = self.shapes = 0

    @property
    def problems(self) -> list[Problem]:
        return self._problems.found

    def at(self, line: int) -> str:
        return f"{self.where}:{line}"

    def error(self, line: int, message: str) -> None:
        self._problems.error(message, self.at(line))

    def count(self, what: str, number: int) -> None:
        """Refuse more records of one kind than a description may have."""
        if number > RECORDS:
            raise InputError(f"{self.where}: {number} {what}; at most {RECORDS} are read")


class Fields:
    """One mapping of the file, called `owner` in messages, with the keys it may have."""

    def __init__(
        self, notes: Notes, owner: str, node: Node, keys: Iterable[str], hints: Mapping_[str, str] | None = None
    ) -> None:
        """`hints` are explanations of keys that are expected by mistake."""
        self.notes, self.owner, self.line = notes, owner, node.line
        self.keys = tuple(keys)
        self.pairs: dict[str, tuple[int, Node]] = {}
        if isinstance(node, Mapping):
            self.pairs = node.pairs
        elif not (isinstance(node, Scalar) and node.text in ("", "~", "null")):
            notes.error(node.line, f"{owner} must be a mapping of {listed(self.keys, 20)}, got {describe(node)}")
        for key, (line, _) in self.pairs.items():
            if key not in self.keys:
                hint = (hints or {}).get(key) or f"{nearest(key, self.keys)}; available: {listed(self.keys, 20)}"
                notes.error(line, f"{owner}: no key {shown(key)}{hint}")

    @property
    def source(self) -> str:
        return self.notes.at(self.line)

    def __contains__(self, key: str) -> bool:
        return key in self.pairs

    def node(self, key: str) -> Node | None:
        return self.pairs[key][1] if key in self.pairs else None

    def get(self, key: str, convert: Callable[[str, Node], T], default: T) -> T:
        """The converted value of a key; its default where it is absent, or wrong (which is noted)."""
        if key not in self.pairs:
            return default
        line, node = self.pairs[key]
        try:
            return convert(f"{self.owner}: {key}", node)
        except InputError as error:
            self.notes.error(line, str(error))
            return default

    def need(self, key: str, convert: Callable[[str, Node], T], default: T) -> T:
        """As `get`, but absence is noted too."""
        if key not in self.pairs:
            self.notes.error(self.line, f"{self.owner} needs {key!r}")
        return self.get(key, convert, default)


def as_text(what: str, node: Node) -> str:
    if not isinstance(node, Scalar) or not node.text:
        raise InputError(f"{what} must be a name, got {describe(node)}")
    problem = name_problem(node.text)
    if problem is not None:
        raise InputError(f"{what}: the name {shown(node.text)} {problem}")
    return node.text


def as_flag(what: str, node: Node) -> Any:
    """true or false, or a list of them."""
    if isinstance(node, Sequence):
        return [as_flag(what, item) for item in node.items]
    if isinstance(node, Scalar) and node.text.lower() in ("true", "false"):
        return node.text.lower() == "true"
    raise InputError(f"{what} must be true or false, got {describe(node)}")


def as_count(what: str, node: Node) -> int:
    if isinstance(node, Scalar) and node.text.isascii() and node.text.isdecimal() and len(node.text) <= 9:
        return int(node.text)
    raise InputError(f"{what} must be a whole number of at most nine digits, got {describe(node)}")


def as_number(*dimensions: str) -> Callable[[str, Node], float]:
    """A converter to one number that may carry a unit of these dimensions."""

    def convert(what: str, node: Node) -> float:
        if not isinstance(node, Scalar):
            raise InputError(f"{what} must be one number, got {describe(node)}")
        try:
            return quantity(node.text, dimensions)
        except InputError as error:
            raise InputError(f"{what}: {error}") from None

    return convert


def as_numbers(*dimensions: str) -> Callable[[str, Node], Any]:
    """A converter to a number, a list of numbers or a matrix of rows."""
    one = as_number(*dimensions)

    def convert(what: str, node: Node, depth: int = 2) -> Any:
        if isinstance(node, Sequence):
            if depth == 0:
                raise InputError(f"{what} is nested too deep; expected numbers or rows of numbers")
            return [convert(f"{what}[{i}]", item, depth - 1) for i, item in enumerate(node.items)]
        return one(what, node)

    return convert


__all__ = ["Fields", "Notes", "as_count", "as_flag", "as_number", "as_numbers", "as_text"]
