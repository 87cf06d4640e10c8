"""One expression graph for many functions: variables of equal names are the same, and named parts are made once.

Quantities of a mechanism with loops are read from the same poses, Jacobian, drift and elimination. Traced over one
`SharedGraph`, they share these: `once` returns what was made of the very same objects before. Parts are kept as long as
the graph, with the objects they were made of, so that the identity of an object is a key; arrays among them cannot be
written to.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from polybody.algebra.domains import Array, GraphDomain


class SharedGraph(GraphDomain):
    """Expression graphs that have their variables and the parts of `once` in common."""

    def __init__(self) -> None:
        super().__init__()
        self._variables: dict[tuple[str, int], tuple[Any, Array]] = {}
        self._parts: dict[Hashable, tuple[Any, tuple[Any, ...]]] = {}

    def variables(self, name: str, n: int) -> tuple[Any, Array]:
        """The CasADi column of this name and size, and the same as an object array of nodes."""
        found = self._variables.get((name, n))
        if found is None:
            found = super().variables(name, n)
            found[1].setflags(write=False)
            found = self._variables.setdefault((name, n), found)  # of two threads the first counts
        return found

    def stacked(self, *parts: tuple[str, int]) -> tuple[Any, Array]:
        """Variables by name and size, behind each other in one column and array."""
        made = [self.variables(*part) for part in parts]
        return self._casadi.vertcat(*(column for column, _ in made)), np.concatenate([nodes for _, nodes in made])

    def once(self, what: Hashable, of: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        key = (what, *map(id, of))
        found = self._parts.get(key)
        if found is None:
            made = make()
            if isinstance(made, np.ndarray):
                made.setflags(write=False)
            found = self._parts.setdefault(key, (made, of))
        return found[0]


__all__ = ["SharedGraph"]
