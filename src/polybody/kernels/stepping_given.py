"""Machine code for steps that somebody else has taken, in the language of `native`: what is looked at inside them.

A step is given by its states at nodes θ_j of [0, 1], both ends among them. Between them the state is the polynomial
through all, by the second barycentric formula (Berrut & Trefethen, SIAM Review 46 (2004) 501):

    x(s) = Σ_j c_j x_j / Σ_j c_j,    c_j = w_j/(s − θ_j)

The loop `stepping_methods.FIXED` goes over such steps: their ends are put back on the manifold, recorded and watched as
those of its own steps are. Both ends in the formula are those put back. After an event the motion is another one, and
what was given beyond it means nothing: the loop ends there.
"""

from __future__ import annotations

import numpy as np

from polybody.late import dataclass
from polybody.properties import cached_property

Array = np.ndarray


@dataclass(frozen=True)
class Nodes:
    """Where the states of a step are given, θ from 0 to 1, with the barycentric weights of these points."""

    points: Array
    weights: Array
    looks: int  # points of a step at which watched functions are looked at

    stages, adaptive = 0, False

    @property
    def dense_rows(self) -> int:
        """States given for each step: the first of its nodes is the end of the step before."""
        return len(self.points) - 1

    @cached_property
    def rows(self) -> Array:
        """The table that the loop reads."""
        return np.concatenate([self.points, self.weights])


STEPPED = """
def _stepped(job, x, f, new, h: float):
    _copy(new, word(job + DENSE) + word(job + DONE) * DENSE_ROW + DENSE_ROW - X, N)
    return 0
"""

INTERPOLANT = """
def _node(job, x0, x1, j):
    if j == 0:
        return x0
    if j == NODE_COUNT - 1:
        return x1
    return word(job + DENSE) + word(job + DONE) * DENSE_ROW + X * (j - 1)

def _inside(job, x0, f0, x1, f1, h: float, s: float, out):
    points = word(job + TABLEAU)
    shares = word(job + STAGES)
    total = 0.0
    hit = 0
    for j in range(NODE_COUNT):
        away = s - number(points + 8 * j)
        if size(away) < 1e-15:
            hit = 1
            _copy(out, _node(job, x0, x1, j), N)
        else:
            share = number(points + 8 * (NODE_COUNT + j)) / away
            put(shares + 8 * j, share)
            total = total + share
    if hit == 1:
        return 0
    for i in range(N):
        put(out + 8 * i, 0.0)
    for j in range(NODE_COUNT):
        node = _node(job, x0, x1, j)
        share = number(shares + 8 * j) / total
        for i in range(N):
            put(out + 8 * i, number(out + 8 * i) + share * number(node + 8 * i))
    return 0
"""

#: in the place of `stepping_switches.SPREAD`
SPREAD = """
def _spread(job, k):
    return k
"""

__all__ = ["INTERPOLANT", "SPREAD", "STEPPED", "Nodes"]
