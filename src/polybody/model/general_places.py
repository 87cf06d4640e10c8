"""Places in general position: where a mechanism has the rank it has nearly everywhere.

A configuration that is asked for may be singular, or have zeros in J that its neighbours have not. Plans of elimination
and coordinates are therefore chosen beside it: at the best of a few assembled places a step along its motions away.
The first will do where the rows of J are independent, at q and there.

Where branches cross, a step along all motions of first order at once may lead back to q, as to the flat position of a
parallelogram with three cranks. Newton's method ends there some 1e-7 off, where rounding has made J's rank higher than
anywhere on a branch. Then one velocity after the other is stepped, and held while the others close the loops: that
leads along a branch, if there is one. Where nothing closes, the mechanism moves to first order only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random

import numpy as np

from polybody.constraints.assembly import CLOSED, Problem, descend
from polybody.constraints.ranks import null_space, ranked_svd
from polybody.model.constraint_kernels import ConstraintKernels

Array = np.ndarray

#: steps away, and places that are remembered
SIZES, PLACES = (0.05, 0.1, 0.2, 0.3), 16
#: the first place is taken where the least singular value is this part of the one at q, and so large
LIKE, CLEARLY = 0.5, 1e-3
#: the part of a step within which a place is q itself, and velocities that are held one after the other
BACK, HELD = 1e-2, 8


class GeneralPlaces:
    """Places of one mechanism; `move` goes along its manifold, `problem(redundant)` assembles near by."""

    def __init__(
        self, kernels: ConstraintKernels, move: Callable[[Array, Array], Array], problem: Callable[[bool], Problem]
    ) -> None:
        self.kernels, self._move, self._problem = kernels, move, problem
        self._known: dict[bytes, Array] = {}  # by where they are near

    def __call__(self, q: Array) -> Array:
        """An assembled configuration in general position near q."""
        key = q.tobytes()
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= PLACES:
                self._known.clear()
            found = self._known[key] = self._moved_away(q)
        return found.copy()

    def _moved_away(self, q: Array) -> Array:
        nv, rows = self.kernels.mechanism.nv, self.kernels.rows
        J = self.kernels.jacobian(q)
        Z, (least, own) = null_space(J), _mobility(J)
        rng, problem = Random(2), self._problem(nv - least < rows)  # `numpy.random` takes 8 ms of a first answer
        beside: list[tuple[int, float, Array]] = []  # motions that pass, −(least singular value), place
        back: list[tuple[int, float, Array]] = []
        for size in SIZES:
            if not Z.shape[1]:
                break
            direction = Z @ np.array([rng.gauss(0.0, 1.0) for _ in range(Z.shape[1])])
            there, gap = descend(problem, self._move(q, size * direction / np.linalg.norm(direction)))
            if gap > CLOSED:
                continue
            mobile, quality = _mobility(self.kernels.jacobian(there))
            if is_back(q, there, size):
                back.append((mobile, -quality, there))
                continue
            beside.append((mobile, -quality, there))
            if nv - mobile == rows and quality > max(LIKE * own, CLEARLY):  # independent rows: nowhere is it better
                break
        if back and not beside:
            for there in along_branches(problem, self._move, q, Z, SIZES[0]):
                mobile, quality = _mobility(self.kernels.jacobian(there))
                beside.append((mobile, -quality, there))
        best = min(beside or back, key=lambda x: x[:2], default=(least, 1.0, q))
        return best[2] if best[:2] < (least, 1.0) else q


def is_back(q: Array, there: Array, size: float) -> bool:
    """Whether a step of this size has led back to where it began."""
    return bool(np.abs(there - q).max() < BACK * size)


def along_branches(
    problem: Problem, move: Callable[[Array, Array], Array], q: Array, Z: Array, size: float
) -> Iterator[Array]:
    """Closed configurations beside q that one velocity, stepped by so much and held, leads to; Z are all motions that
    pass at q."""
    shares = np.linalg.norm(Z, axis=1)
    for column in np.argsort(-shares, kind="stable")[:HELD]:
        if shares[column] < BACK:
            return
        step = Z @ Z[column] * (size / shares[column] ** 2)
        held = replace(problem, free=problem.free[problem.free != column])
        for start in (move(q, step), move(q, -step)):
            there, gap = descend(held, start)
            if gap <= CLOSED and not is_back(q, there, size):
                yield there
                break


def _mobility(J: Array) -> tuple[int, float]:
    """(how many motions pass, the least singular value that counts, as a part of the largest)."""
    nv, (_, s, _, kept) = J.shape[1], ranked_svd(J, full=False)
    rank = int(kept.sum())
    return nv - rank, float(s[rank - 1] / s[0]) if rank else 1.0


__all__ = ["GeneralPlaces", "along_branches", "is_back"]
