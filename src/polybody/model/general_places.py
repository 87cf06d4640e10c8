"""Places in general position: where a mechanism has the rank it has nearly everywhere.

A configuration that is asked for may be singular, or have zeros in J that its neighbours have not. Plans of elimination
and coordinates are therefore chosen beside it: at the best of a few assembled places a step along its motions away.
The first will do where the rows of J are independent, at q and there.
"""

from __future__ import annotations

from collections.abc import Callable
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
        rng, best, quality = Random(2), q, -1.0  # `numpy.random` takes 8 ms of a first answer
        problem = self._problem(nv - least < rows)
        for size in SIZES:
            if not Z.shape[1]:
                break
            direction = Z @ np.array([rng.gauss(0.0, 1.0) for _ in range(Z.shape[1])])
            there, gap = descend(problem, self._move(q, size * direction / np.linalg.norm(direction)))
            if gap > CLOSED:
                continue
            mobile, smallest = _mobility(self.kernels.jacobian(there))
            if (mobile, -smallest) < (least, -quality):
                best, least, quality = there, mobile, smallest
            if nv - least == rows and quality > max(LIKE * own, CLEARLY):  # rows are independent: nowhere is it better
                break
        return best


def _mobility(J: Array) -> tuple[int, float]:
    """(how many motions pass, the least singular value that counts, as a part of the largest)."""
    nv, (_, s, _, kept) = J.shape[1], ranked_svd(J, full=False)
    rank = int(kept.sum())
    return nv - rank, float(s[rank - 1] / s[0]) if rank else 1.0


__all__ = ["GeneralPlaces"]
