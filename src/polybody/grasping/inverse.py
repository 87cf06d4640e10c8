"""The inverse problem of a grasp on numbers: which equations are independent, and states at which they lose rank.

The equations and their compiled text are in `quantities.holding`. Here E is looked at in general position near the
first states asked for, and a state at which that does badly is solved level by level: closure, the object's balance,
passive columns. A residual so shows up in the last level that could not be met.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from polybody.algebra.domains import FLOAT
from polybody.constraints.plan import plan_elimination
from polybody.constraints.ranks import RANK_TOLERANCE
from polybody.model.batches import spread
from polybody.model.constrained_engine import ConstrainedEngine
from polybody.model.engine import Request
from polybody.quantities.holding import Wanted, applied, gaps
from polybody.quantities.table import QUANTITIES

Array = np.ndarray

#: configurations that a plan is made from
SAMPLES = 4


def planned(engine: ConstrainedEngine, wants: Wanted, q: Array) -> Wanted:
    """The problem with what is independent in general position near some of the states q (k, nq)."""
    picked = q[spread(len(q), SAMPLES)]
    place = np.array([engine.assembly.general_place(state) for state in picked])
    J = engine.constraints.jacobian(place)
    M = engine.tree.answer(Request(QUANTITIES["mass_matrix"], (place,)))
    whole = [wants.matrix(*x, FLOAT) for x in zip(J, M, strict=True)]
    rank = max(levelled(E, np.zeros(len(E)), wants, len(J[0]))[1] for E in whole)
    of_object, every = list(wants.of_object), [*wants.of_object, *wants.passive]
    apart = not np.any(M[:, of_object][:, :, wants.free])
    settled = apart and all(_rank(x[:, every]) == _rank(x[:, of_object]) for x in J)
    found = replace(wants, settled=settled, rank=rank)
    samples = np.array([found.matrix(*x, FLOAT) for x in zip(J, M, strict=True)])
    return replace(found, plan=plan_elimination(samples))


def _rank(A: Array) -> int:
    s = np.linalg.svd(A, compute_uv=False)
    return int(np.sum(s > RANK_TOLERANCE * s.max(initial=1e-300)))


@dataclass(frozen=True, eq=False)
class Ranked:
    """One state's answer, the rank of its equations, and the row that cannot be met: (kind, index, residual)."""

    tau: Array
    a: Array
    multipliers: Array
    rank: int
    failed: tuple[str, int, float] | None


def ranked_inverse(
    engine: ConstrainedEngine, wants: Wanted, shares: Array,
    q: Array, v: Array, a: Array, tau: Array, multipliers: Array,
) -> Ranked:  # fmt: skip
    """The answer of one state, whatever its rank; all loads are unknown."""
    wants, tree, system = replace(wants, settled=False), engine.tree.mechanism, engine.constraints.constraints
    J, M = engine.constraints.jacobian(q), engine.tree.answer(Request(QUANTITIES["mass_matrix"], (q,)))
    r, f = gaps(tree, system, wants, shares, J, q, v, a, tau, multipliers, domain=FLOAT)
    E = wants.matrix(J, M, FLOAT)
    d, rank = levelled(E, r, wants, len(J))
    rest = E @ d + r
    size = 1.0 + np.abs(r).max() + np.abs(E).max(initial=0.0) * (np.abs(d).max(initial=0.0) + np.abs(f).max())
    worst, failed = int(np.argmax(np.abs(rest))), None
    if not abs(rest[worst]) <= 1e-8 * size:
        kind, index = "closure", worst
        if worst >= len(J):
            index = wants.balanced[worst - len(J)]
            kind = "object" if index in wants.of_object else "passive"
        failed = (kind, index, float(rest[worst]))
    return Ranked(*applied(tree, wants, J, q, v, a, tau, f, d, domain=FLOAT), rank, failed)


def levelled(E: Array, r: Array, wants: Wanted, closures: int) -> tuple[Array, int]:
    """(d, rank): the least d that meets E d + r = 0 as well as can be, level by level.

    Orthogonal projections on nested spaces compose, so d is the least of all solutions.
    """
    last = closures + (0 if wants.settled else len(wants.of_object))
    levels: Sequence[range] = (range(closures), range(closures, last), range(last, len(E)))
    d, free, rank = np.zeros(E.shape[1]), np.eye(E.shape[1]), 0
    for rows in levels:
        own = E[list(rows)]
        if not own.size:
            continue
        U, s, Vt = np.linalg.svd(own @ free, full_matrices=False)
        kept = s > RANK_TOLERANCE * max(np.abs(own).max(), 1e-300)
        Vt = Vt[kept]
        d = d - Vt.T @ ((U[:, kept].T @ (r[list(rows)] + own @ d)) / s[kept])
        free, rank = free - Vt.T @ Vt, rank + int(kept.sum())
    return d, rank


__all__ = ["SAMPLES", "Ranked", "levelled", "planned", "ranked_inverse"]
