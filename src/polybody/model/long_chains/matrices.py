"""The mass matrix and Saha's C of long chains, in O(n²) operations for their n² numbers.

Composite bodies are gathered inwards, as `denoc.composite` does. Then each column of each joint i walks to the root:

    mass       F = M̃_i H_i, carried by B_ijᵀ:            i_ij = H_jᵀ F                                     (24)
    Coriolis   F', F and G = K̃_iᵀ H_i likewise:          c_ji, c_ij                                        (29)

Where joints share slots of v, entries add up, so that none may be given twice: a mark travels along, 0 at the joint
itself and 1 away from it, and takes the mirrored entry off there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.algebra.domains import Array
from polybody.formulations.denoc.composite import (
    Composite,
    Convective,
    Drift,
    angular_velocity,
    composite_to_parent,
    composite_wrench,
    convective,
    drift_to_parent,
    inertial_rate,
    own_drift,
)
from polybody.formulations.denoc.inverse import joint_force
from polybody.kernels.scan import INWARD, OUTWARD, ROOTWARD, Pass
from polybody.model.long_chains.crossings import Crossings
from polybody.model.long_chains.kinds import COUPLING, JOINT, Chain, Kind
from polybody.model.long_chains.lone import lone, lone_link

_SIX = list(zip(*np.triu_indices(3), strict=True))


class Matrices:
    """The passes of a chain's mass matrix and Coriolis matrix."""

    def __init__(self, chain: Chain) -> None:
        self.chain, self.graph = chain, chain.graph
        self.crossings = Crossings(chain)
        self.marks = 1 if chain.mechanism.followers else 0

    @property
    def carried(self) -> dict[str, int]:
        """Widths of what walks: F, or the parts of `Convective`, and the mark."""
        return {"wrench": 6 + self.marks, "travelling": 15 + self.marks}

    @property
    def fields(self) -> dict[str, int]:
        r = self.chain.most_velocities
        return {
            "composite": 10, "F": self.carried["wrench"] * r, "omega": 3, "slide": 3, "rates": 6 * r, "drift": 12,
            "sent": self.carried["travelling"] * r, "stored": self.crossings.width,
        }  # fmt: skip

    def gather(self) -> Pass:
        """Composites inwards; F of each joint's columns."""

        def step(kind: Kind) -> Any:
            if kind.role != JOINT:
                return None

            def text(table: Array, stored: Array, beyond: Array) -> list[Any]:
                crossing = self.crossings.again(kind, table, stored)
                part = self._composite(kind, table, beyond)
                F = [x for column in crossing.H.T for x in (*composite_wrench(part, column), np.zeros(self.marks))]
                return [F, packed_composite(composite_to_parent(crossing, part, domain=self.graph))]

            return self.chain.function([("stored", self.crossings.width), ("composite", 10)], text)

        return Pass("gather", INWARD, step, constants=["c"], own=["stored", "composite"], writes=["F"],
                    adds=["composite"])  # fmt: skip

    def _composite(self, kind: Kind, table: Array, beyond: Array) -> Composite:
        """The body with what is beyond it."""
        link = lone_link(self.chain, kind, table)
        inertia = self.graph.zeros(3, 3)
        for value, (i, j) in zip(beyond[4:], _SIX, strict=True):
            inertia[i, j] = inertia[j, i] = value
        return Composite(link.mass + beyond[0], link.moment + beyond[1:4], link.inertia + inertia)

    def inertia(self, row: str, column: str) -> Pass:
        """F walks to the root and leaves i_ij at every joint: a row of M and, mirrored, its column."""

        def step(kind: Kind) -> Any:
            if kind.role != JOINT:
                return None

            def text(table: Array, stored: Array, F: Array) -> list[Any]:
                crossing = self.crossings.again(kind, table, stored)
                entries = joint_force(crossing, F[:3], F[3:6])
                up = [*crossing.wrench_to_parent(F[:3], F[3:6]), np.ones(self.marks)]
                return [up, [entries], [self._away(entries, F[6:])]]

            return self.chain.function([("stored", self.crossings.width), ("wrench", 6 + self.marks)], text)

        return Pass("inertia", ROOTWARD, step, constants=["c"], own=["stored"], carried=["wrench"],
                    begin={"wrench": "F"}, outputs=[row, column])  # fmt: skip

    def _away(self, entries: Array, mark: Array) -> Array:
        """Entries that belong to pairs of different joints only."""
        return entries * mark[0] if self.marks else entries

    def armature(self, entry: str) -> Pass:
        """Armature and reflected rotors, number by number."""

        def step(kind: Kind) -> Any:
            if kind.role != COUPLING:
                return None
            return self.chain.function([(entry, 1)], lambda table, M: [[M + self.chain.values(kind, table)[0]]])

        return Pass("armature", OUTWARD, step, constants=["c"], inputs=[entry], outputs=[entry])

    # the convective matrix

    def turn(self) -> Pass:
        """Angular velocities, ṙ and the inertial rates of the joint maps."""

        def step(kind: Kind) -> Any:
            if kind.role != JOINT:
                return None
            joint = self.chain.joint(kind)

            def text(table: Array, q: Array, v: Array, before: Array) -> list[Any]:
                crossing, stored = self.crossings.at(kind, q, table)
                omega, slide = angular_velocity(crossing, before, v)
                H_dot = joint.model.velocity_map_rate(q, v, domain=self.graph)
                return [[omega], [slide], [inertial_rate(H_dot, crossing.H, omega)], [stored]]

            return self.chain.function([("q", joint.nq), ("v", joint.nv), ("omega", 3)], text)

        return Pass("turn", OUTWARD, step, constants=["c"], inputs=["q", "v"], parent=["omega"],
                    writes=["omega", "slide", "rates", "stored"])  # fmt: skip

    def drift(self) -> Pass:
        """M̃ and K̃ inwards; F', F and G of each joint's columns."""

        def step(kind: Kind) -> Any:
            if kind.role != JOINT:
                return None
            r = self.chain.joint(kind).nv

            def text(table: Array, stored: Array, beyond: Array, more: Array, *rest: Array) -> list[Any]:
                omega, slide, rates = rest
                crossing = self.crossings.again(kind, table, stored)
                part = self._composite(kind, table, beyond)
                own = own_drift(lone(self.chain, kind, table), 0, omega, domain=self.graph)
                drift = Drift(own.N + more[:9].reshape(3, 3), own.h_dot + more[9:])
                sent = [convective(part, drift, H, H_dot)
                        for H, H_dot in zip(crossing.H.T, rates.reshape(6, r).T, strict=True)]  # fmt: skip
                up = drift_to_parent(crossing, part, drift, slide, domain=self.graph)
                return [
                    [x for one in sent for x in (one.n_col, one.f_col, one.n, one.f, one.g, np.zeros(self.marks))],
                    packed_composite(composite_to_parent(crossing, part, domain=self.graph)), [up.N, up.h_dot],
                ]  # fmt: skip

            sizes = [("stored", self.crossings.width), ("composite", 10), ("drift", 12), ("omega", 3), ("slide", 3)]
            return self.chain.function([*sizes, ("rates", 6 * r)], text)

        return Pass("drift", INWARD, step, constants=["c"],
                    own=["stored", "composite", "drift", "omega", "slide", "rates"], writes=["sent"],
                    adds=["composite", "drift"])  # fmt: skip

    def coriolis(self, row: str, column: str) -> Pass:
        """F', F and G walk to the root: c_ji down a column of C, c_ij along a row."""

        def step(kind: Kind) -> Any:
            if kind.role != JOINT:
                return None
            r = self.chain.joint(kind).nv

            def text(table: Array, stored: Array, slide: Array, rates: Array, travelling: Array) -> list[Any]:
                crossing = self.crossings.again(kind, table, stored)
                sent = Convective(*np.split(travelling[:15], 5))
                down, along = sent.on_joint(crossing.H, rates.reshape(6, r))
                up = sent.to_parent(crossing, slide)
                carried = [up.n_col, up.f_col, up.n, up.f, up.g, np.ones(self.marks)]
                return [carried, [self._away(along, travelling[15:])], [down]]

            sizes = [("stored", self.crossings.width), ("slide", 3), ("rates", 6 * r)]
            sizes += [("travelling", 15 + self.marks)]
            return self.chain.function(sizes, text)

        return Pass("coriolis", ROOTWARD, step, constants=["c"], own=["stored", "slide", "rates"],
                    carried=["travelling"], begin={"travelling": "sent"}, outputs=[row, column])  # fmt: skip


def packed_composite(part: Composite) -> list[Any]:
    """Mass, first moment and the upper triangle of the inertia: ten numbers."""
    six = [part.inertia[ij] for ij in _SIX]
    return [np.array([part.mass, *part.h, *six], dtype=object)]


__all__ = ["Matrices"]
