"""A quantity: one answer at a state, as data.

Name, arguments, results with their shapes, and the text that computes it over any scalar domain, for trees and for
mechanisms with constraints. Batched calls, single calls, `out=`, C, CasADi functions, counts and documentation are
outlets of the one table (`quantities.table`); none has a list of its own.

Sizes are words: "nq", "nv", "m" (the independent coordinates: nv where nothing is constrained), "bodies", "frames",
"joints" (fixed ones too), "slots" (columns of all joints, followers too), "followers", "pairs", "rows" (of the
constraints), "all" (nv + rows), or numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from polybody.formulations.network.reactions import reaction_names
from polybody.late import dataclass
from polybody.mechanism.mechanism import Mechanism

Text = Callable[..., Any]
Size = str | int
Shape = tuple[Size, ...]

#: arguments by name: how many numbers each has
ARGUMENTS: dict[str, Size] = {
    "q": "nq", "q0": "nq", "q1": "nq", "v": "nv", "a": "nv", "tau": "nv", "d": "nv",
    "wrenches": "wrenches", "loads": "loads", "multipliers": "rows", "parameters": "parameters",
}  # fmt: skip
#: what the arguments are, for documentation
MEANING = {
    "q": "configuration", "q0": "configuration to start from", "q1": "configuration to reach", "v": "velocity",
    "a": "acceleration", "tau": "joint forces", "d": "tangent vector",
    "wrenches": "a wrench [moment; force] on every body at its origin, world axes",
    "loads": "a wrench [moment; force] on every frame at its origin, world axes",
    "multipliers": "loads of the constraints' rows",
    "parameters": "numbers of the model that are inputs (model.with_parameters)",
}  # fmt: skip


@dataclass(frozen=True)
class Quantity:
    """One answer. `tree(mechanism, *arguments, domain=…)` and `constrained(closed, *arguments, domain=…)` give arrays.

    constrained None: the answer depends on q and v of all joints only, and the tree's text serves. `reduced`: it is
    joint-space dynamics, so it may be traced from the reduced mechanism. `loaded`: both texts take body wrenches
    (bodies, 6) as one more argument. `factors`, of trees, takes what `tree` takes and gives (A, B₁, B₂, …, C₁, C₂, …),
    where the results are C₁ − A B₁, C₂ − A B₂, …, A: for large trees, whose products are loops.
    """

    name: str  # that of the method of `Model`
    arguments: tuple[str, ...]
    results: tuple[tuple[str, Shape], ...]  # (name, shape) of each
    tree: Text
    constrained: Text | None = None
    doc: str = ""  # one line for the reference
    group: str = ""  # section of the reference
    reduced: bool = False
    loaded: bool = False
    factors: Text | None = None

    def with_wrenches(self) -> Quantity:
        """The variant that takes wrenches on bodies as its last argument."""
        return replace(
            self, name=f"{self.name}_wrenches", arguments=(*self.arguments, "wrenches"), reduced=False, loaded=False,
            tree=_unpacked(self.tree), constrained=_unpacked(self.constrained), factors=_unpacked(self.factors),
        )  # fmt: skip

    def inputs(self, sizes: Mapping[str, int]) -> list[tuple[str, int]]:
        """(name, size) of the arguments."""
        return [(name, sized(ARGUMENTS[name], sizes)) for name in self.arguments]

    def shapes(self, sizes: Mapping[str, int]) -> list[tuple[str, tuple[int, ...]]]:
        """(name, shape) of the results."""
        return [(name, tuple(sized(x, sizes) for x in shape)) for name, shape in self.results]


def _unpacked(text: Any) -> Any:
    """The text with its last argument, a row of numbers, made (bodies, 6)."""
    if text is None:
        return None

    def loaded(first: Any, *arrays: Any, domain: Any) -> Any:
        return text(first, *arrays[:-1], arrays[-1].reshape(-1, 6), domain=domain)

    return loaded


def sized(size: Size, sizes: Mapping[str, int]) -> int:
    """A size as a number."""
    return size if isinstance(size, int) else sizes[size]


def sizes_of(mechanism: Mechanism, *, independent: int | None = None, rows: int = 0, pairs: int = 0) -> dict[str, int]:
    """The numbers behind the words, of one mechanism."""
    return {
        "nq": mechanism.nq,
        "nv": mechanism.nv,
        "m": mechanism.nv if independent is None else independent,
        "bodies": len(mechanism.bodies),
        "frames": len(mechanism.frames),
        "joints": len(reaction_names(mechanism)),
        "wrenches": 6 * len(mechanism.bodies),
        "loads": 6 * len(mechanism.frames),
        "rows": rows,
        "pairs": pairs,
        "all": mechanism.nv + rows,
        "slots": len(mechanism.slots),
        "followers": len(mechanism.followers),
    }


__all__ = ["ARGUMENTS", "MEANING", "Quantity", "Shape", "sized", "sizes_of"]
