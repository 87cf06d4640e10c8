"""The motions that constraints allow at one state: what every constrained quantity is written over.

`Elimination` has them in straight-line code along a plan; `ranked_motions` by singular values, for the states at which
the plan does badly. With J_d the columns of the dependent velocities and J_d⁺ its inverse on what the rows agree on,

    G = [1; −J_d⁺ J_u],      E = [0; −J_d⁺],      follow(r) = E r,      bear(f) = −Eᵀ f                 (4-19), (4-33)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from polybody.algebra.domains import Array
from polybody.constraints.ranks import DEPENDENT_TOLERANCE, pseudo_inverse


class Motions(Protocol):
    """G, and the solutions of J x + r = 0 and of Jᵀλ = f, at one state over some domain."""

    G: Array
    independent: tuple[int, ...]
    growth: Any
    leftover: Any
    narrow: Any

    @property
    def rounding(self) -> Any: ...
    @property
    def spread(self) -> Any: ...
    def follow(self, right: Array) -> Array: ...
    def bear(self, load: Array) -> Array: ...
    def least(self, multipliers: Array) -> Array: ...


class GivenMotions:
    """The motions of one state by E and G as they are given, numbers or symbols."""

    growth = leftover = narrow = rounding = spread = 0.0

    def __init__(self, E: Array, G: Array, independent: Sequence[int] = ()) -> None:
        self.independent, self.E, self.G = tuple(independent), E, G

    def follow(self, right: Array) -> Array:
        return self.E @ right

    def bear(self, load: Array) -> Array:
        return -(self.E.T @ load)

    def least(self, multipliers: Array) -> Array:
        return multipliers  # J_d⁺ gives the least already


def ranked_motions(J: Array, independent: Sequence[int]) -> GivenMotions:
    """The motions of one numeric J, with the rank that it has."""
    return GivenMotions(*returning(J, independent), independent)


def returning(J: Array, independent: Sequence[int]) -> tuple[Array, Array]:
    """(E, nv×rows; G, nv×m) over leading dimensions."""
    n, u = J.shape[-1], list(independent)
    d = [k for k in range(n) if k not in set(u)]
    E, G = np.zeros((*J.shape[:-2], n, J.shape[-2])), np.zeros((*J.shape[:-2], n, len(u)))
    E[..., d, :] = -pseudo_inverse(J[..., d], DEPENDENT_TOLERANCE)
    G[..., u, range(len(u))] = 1.0
    G[..., d, :] = E[..., d, :] @ J[..., u]
    return E, G


__all__ = ["GivenMotions", "Motions", "ranked_motions", "returning"]
