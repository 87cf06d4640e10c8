"""What a mechanism with loops is: how mobile, over what constraints, driven how.

    Gruebler     nv − (constraint rows): what counting joints promises
    here         nv − rank J(q): the motions that the constraints allow at this configuration
    nearby       the least of that over configurations a small motion away: what the mechanism keeps while it moves

Where `here` exceeds `nearby` the configuration is singular: the extra motions exist to first order only, or lead to
other branches. `redundant` are the rows that repeat others: with N the left null space of J, a row takes part in a
redundancy where its row of N is not zero; as many as N has columns are chosen to be named, those that N rests on most.

With Z the motions (nv×mobility) and A the driven velocities: Z_A of rank below the mobility leaves motions free that no
actuator holds; its left null space is what the actuators cannot do independently (a dead centre).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from polybody.constraints.ranks import NEAR, RANK_TOLERANCE, null_space, ranked_svd
from polybody.constraints.system import Row
from polybody.late import dataclass, field
from polybody.mechanism.columns import direction_text
from polybody.names import counted

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Redundancy:
    """One way in which constraint rows repeat each other: the row named for it, and all rows with their weights."""

    row: Row
    rows: tuple[Row, ...]
    weights: Array

    def __str__(self) -> str:
        others = [str(row) for row in self.rows if row is not self.row]
        if not others:
            return f"{self.row} (holds by itself)"
        return f"{self.row} (follows from {', '.join(others[:6])}{' …' if len(others) > 6 else ''})"


@dataclass(frozen=True, eq=False)
class Mobility:
    """Result of `model.mobility`."""

    velocities: int  # nv
    constraints: int  # number of constraint rows
    rank: int  # of the constraint Jacobian here
    nearby: int  # rank at nearby configurations: larger in a singular one
    redundant: tuple[Redundancy, ...]  # rows that follow from others, each with those
    independent: tuple[str, ...]  # names of joint velocities that determine the others
    motions: Array = field(repr=False)  # (nv, here)
    names: tuple[str, ...] = field(repr=False)  # of the joint velocities
    actuators: tuple[str, ...] = ()  # names of the actuated joint velocities
    uncontrolled: tuple[Array, ...] = field(default=(), repr=False)  # motions that locked actuators do not stop
    dead: tuple[Array, ...] = field(default=(), repr=False)  # directions in which the actuators cannot move
    smallest: float = 1.0  # smallest kept singular value of J over the largest

    @property
    def gruebler(self) -> int:
        """Gruebler's count: velocities minus constraints, as if all constraints were independent."""
        return self.velocities - self.constraints

    @property
    def here(self) -> int:
        """Number of independent motions that the constraints allow at this configuration."""
        return self.velocities - self.rank

    @property
    def true(self) -> int:
        """True (rank-based) mobility, away from isolated singular configurations."""
        return self.nearby

    @property
    def singular(self) -> bool:
        """Whether this configuration allows more motions than its neighbours."""
        return self.here > self.nearby

    @property
    def actuation(self) -> str:
        """"exact", "redundant" or "underactuated": the actuators against the true mobility."""
        if self.uncontrolled:
            return "underactuated"
        return "exact" if len(self.actuators) == self.here else "redundant"

    def __str__(self) -> str:
        lines = [
            f"mobility {self.true} (Gruebler's count {self.gruebler}: {self.velocities} velocities, {self.constraints} "
            f"constraints of rank {self.rank})",
        ]
        if self.singular:
            lines.append(f"singular here: {self.here} motions to first order, {self.nearby} nearby; the extra ones are "
                         + "; ".join(self.text(m) for m in self.motions.T[: self.here - self.nearby]))
        elif self.smallest < NEAR:
            lines.append(f"nearly singular: smallest singular value {self.smallest:.2g} of the largest")
        for redundancy in self.redundant:
            lines.append(f"redundant: {redundancy}")
        lines.append(f"independent coordinates: {', '.join(self.independent) or 'none'}")
        if self.actuators:
            lines.append(f"{counted(len(self.actuators), 'driven coordinate')}: {self.actuation}")
        lines += [f"not held by the actuators: {self.text(m)}" for m in self.uncontrolled]
        if len(self.actuators) <= self.here:
            lines += [f"the actuators cannot move: {direction_text(m, self.actuators)}" for m in self.dead]
        return "\n".join(lines)

    def text(self, motion: Array) -> str:
        """A motion as text: its larger components by name."""
        return direction_text(motion / max(float(np.linalg.norm(motion)), 1e-300), self.names)


def redundancies(J: Array, rows: Sequence[Row]) -> tuple[Redundancy, ...]:
    """The rows of J that repeat others, each with those it follows from."""
    U, _, _, kept = ranked_svd(J)
    N = U[:, int(kept.sum()) :]
    if not N.shape[1]:
        return ()
    # The last rows are asked first, so that loops named later are those called redundant.
    order = np.arange(len(rows))[::-1]
    pivots = order[pivoted(N[order].T)[1][: N.shape[1]]]
    basis = N @ np.linalg.inv(N[pivots])
    found = []
    for k, row in enumerate(pivots):
        weights = basis[:, k]
        part = np.abs(weights) > 1e-7
        found.append(Redundancy(rows[row], tuple(r for r, take in zip(rows, part, strict=True) if take), weights[part]))
    return tuple(sorted(found, key=lambda r: rows.index(r.row)))


def choose_independent(Z: Array, preferred: Array, mobility: int) -> tuple[int, ...]:
    """Velocities that carry all motions Z: preferred (driven) ones where they serve well, else the best."""

    def best(weights: Array) -> tuple[int, ...]:
        _, order = pivoted((Z * weights[:, None]).T)
        return tuple(int(k) for k in sorted(order[:mobility]))

    alike = np.ones(len(Z))
    favoured = alike.copy()
    favoured[preferred] = 1e3
    everyone, driven = best(alike), best(favoured)
    return driven if _quality(Z, driven) > 0.05 * _quality(Z, everyone) else everyone


def pivoted(A: Array) -> tuple[Array, Array]:
    """(sizes of the pivots, order of the columns) of a QR decomposition with column pivoting, by Householder's mirrors.

    Of columns that are equally long to ten digits the first is taken, so that rounding decides nothing. (LAPACK's does
    the same otherwise; loading SciPy for it takes longer than most first answers.)
    """
    R, order = np.array(A, dtype=float), np.arange(A.shape[1])
    pivots = np.zeros(min(A.shape))
    for k in range(len(pivots)):
        squares = np.sum(R[k:, k:] ** 2, axis=0)
        j = k + int(np.flatnonzero(squares >= (1 - 1e-10) * squares.max())[0])
        R[:, [k, j]], order[[k, j]] = R[:, [j, k]], order[[j, k]]
        mirror = R[k:, k].copy()
        pivots[k] = np.linalg.norm(mirror)
        mirror[0] += math.copysign(pivots[k], mirror[0])
        if pivots[k] > 0:
            R[k:, k:] -= np.outer(mirror, 2 / (mirror @ mirror) * (mirror @ R[k:, k:]))
    return pivots, order


def _quality(Z: Array, chosen: tuple[int, ...]) -> float:
    """How well these velocities determine all motions: the smallest singular value of Z over them."""
    return float(np.linalg.svd(Z[list(chosen)], compute_uv=False)[-1]) if chosen else 1.0


def independence(J: Array, chosen: Sequence[int]) -> float:
    """0 where the chosen velocities do not determine all motions of J, 1 at best; −1 where their number is wrong."""
    Z = null_space(J)
    if Z.shape[1] != len(chosen):
        return -1.0
    return _quality(Z, tuple(chosen))


def actuator_singularities(Z: Array, driven: Array) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """(motions that locked actuators do not stop, directions the actuators cannot take)."""
    if not Z.shape[1]:
        return (), tuple(np.eye(len(driven)))
    if not len(driven):
        return tuple(Z.T), ()
    U, s, Vt = np.linalg.svd(Z[driven])
    kept = int(np.sum(s > RANK_TOLERANCE))
    return tuple(Z @ row for row in Vt[kept:]), tuple(U[:, kept:].T)


__all__ = [
    "Mobility",
    "Redundancy",
    "actuator_singularities",
    "choose_independent",
    "independence",
    "pivoted",
    "redundancies",
]
