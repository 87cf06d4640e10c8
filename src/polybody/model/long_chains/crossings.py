"""The crossing of a joint (R, r, H), kept between passes: what depends on q is stored, not computed again."""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.algebra.domains import Array
from polybody.algebra.graph import Node as Scalar
from polybody.formulations.denoc.links import Crossing, crossing
from polybody.kernels.scan import OUTWARD, Pass
from polybody.model.long_chains.kinds import JOINT, Chain, Kind
from polybody.model.long_chains.lone import lone_link
from polybody.properties import cached_property


class Crossings:
    """The crossings of a chain's kinds, written to and read from the field "stored"."""

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self._traced: dict[Kind, tuple[Crossing, list[Any], Array]] = {}

    @cached_property
    def width(self) -> int:
        """Of the field: the most that any kind stores."""
        return max([1, *(len(self._first(kind)[1]) for kind in self.chain.joint_kinds)])

    def at(self, kind: Kind, q: Array, table: Array) -> tuple[Crossing, Array]:
        """The joint at its configuration, and what to store of it."""
        step = crossing(lone_link(self.chain, kind, table), q, domain=self.chain.graph)
        entries = _moving(step, table)
        return step, np.array([*entries, *[0.0] * (self.width - len(entries))], dtype=object)

    def store(self) -> Pass:
        """The pass that stores the crossings and does nothing else."""

        def step(kind: Kind) -> Any:
            if kind.role != JOINT:
                return None
            size = self.chain.joint(kind).nq
            return self.chain.function([("q", size)], lambda table, q: [[self.at(kind, q, table)[1]]])

        return Pass("cross", OUTWARD, step, constants=["c"], inputs=["q"], writes=["stored"])

    def again(self, kind: Kind, table: Array, stored: Array) -> Crossing:
        """The crossing with its entries read back."""
        step, entries, constants = self._first(kind)
        known = dict(zip(entries, stored, strict=False)) | dict(zip(constants, table, strict=True))

        def swapped(array: Array) -> Array:
            flat = [known[x] if isinstance(x, Scalar) else x for x in array.ravel()]
            return np.array([*flat, None], dtype=object)[:-1].reshape(array.shape)

        placement, turning = step.factors
        return Crossing((swapped(placement), swapped(turning)), swapped(step.r), swapped(step.H), step.trivial)

    def _first(self, kind: Kind) -> tuple[Crossing, list[Any], Array]:
        if kind not in self._traced:
            graph = self.chain.graph
            _, q = graph.variables("q", self.chain.joint(kind).nq)
            _, table = graph.variables("c", self.chain.table.shape[1])
            step = crossing(lone_link(self.chain, kind, table), q, domain=graph)
            self._traced[kind] = step, _moving(step, table), table
        return self._traced[kind]


def _moving(step: Crossing, table: Array) -> list[Any]:
    """The different entries that are neither numbers nor constants of the table, in order of appearance."""
    constants = set(table)
    found: dict[Any, None] = {}
    for array in (step.factors[1], step.r, step.H):
        for entry in array.ravel():
            if isinstance(entry, Scalar) and entry not in constants:
                found.setdefault(entry)
    return list(found)


__all__ = ["Crossings"]
