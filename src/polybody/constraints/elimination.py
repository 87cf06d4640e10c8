"""The motions that constraints allow, by a fixed elimination, over any domain: what compiled code is traced from.

Gauss' elimination of J along the plan's pivots, J_B = L U for the pivots' rows B and columns d, gives from the last
pivot back, for every dependent velocity d,

    φ̇_d = T u̇,      G = [1; T]                                          v = G u̇ for every velocity that keeps J v = 0
    follow(r):       x with J x + r = 0 and x_u = 0                      a = G ü + β, β = follow(γ), keeps J a + γ = 0
    bear(f):         λ with (Jᵀλ)_d = f_d, zero at redundant rows        what the constraints bear of joint forces f

Known zeros are skipped, so that the cost follows the mechanism's structure: legs, branches, chains of loops. A
redundant row is J_r = Σ c_i J_i over the pivots' rows; `least` takes from λ what such rows may share among them.

Three numbers report whether the answer may be believed: `growth`, the sum of (row/pivot)² over the pivots, which is
large where the chosen coordinates are not independent; `narrow`, the sum of (size in general position/row)², which is
large near singular configurations, where nearly nothing is left of a row; and `leftover`, the square of what is left of
rows that are redundant elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from polybody.algebra.domains import Array, Domain
from polybody.constraints.plan import Plan

Row = dict[int, Any]


class Elimination:
    """J along a plan: G, and the solutions of J x + r = 0 and of Jᵀλ = f."""

    def __init__(self, J: Array, plan: Plan, domain: Domain) -> None:
        self.plan, self.domain, self.independent = plan, domain, plan.independent
        self.shape = J.shape
        self._rows: list[Row] = [
            {j: J[i, j] for j in range(J.shape[1]) if not domain.is_zero(J[i, j])} for i in range(J.shape[0])
        ]
        #: for each pivot what of its row was taken from the others: {row: factor}
        self._factors: list[dict[int, Any]] = []
        self._inverses: list[Any] = []  # of the pivots: compiled code divides once for each
        self.growth = self.narrow = domain.const(0)
        self.turns = domain.zeros(2, len(plan.pivots))
        self._eliminate()
        self.leftover = squares((x for r in plan.redundant for x in self._rows[r].values()), domain)
        self.G = self._motions()

    @property
    def rounding(self) -> Any:
        """The growth that counts in few digits: single pivots amplify up to ten times what it says."""
        return (self.growth + self.narrow) * self.domain.const(10)

    @property
    def spread(self) -> Any:
        """Σ G², counted likewise."""
        return squares(self.G.ravel(), self.domain) * self.domain.const(10)

    def _eliminate(self) -> None:
        domain, rows = self.domain, self._rows
        open_rows = dict.fromkeys(range(len(rows)))
        for k, (i, j) in enumerate(self.plan.pivots):
            del open_rows[i]
            inverse, size = domain.const(1) / rows[i][j], squares(rows[i].values(), domain)
            self._inverses.append(inverse)
            self.growth = self.growth + size * (inverse * inverse)
            self.narrow = self.narrow + domain.const(self.plan.sizes[k] ** 2) / size
            self.turns[:, k] = _told(rows[i], j) / domain.sqrt(size)
            taken: dict[int, Any] = {}
            for r in open_rows:
                if j not in rows[r]:
                    continue
                taken[r] = factor = rows[r].pop(j) * inverse
                for c, value in rows[i].items():
                    if c != j:
                        rows[r][c] = rows[r][c] - factor * value if c in rows[r] else -(factor * value)
            self._factors.append(taken)

    def _motions(self) -> Array:
        """G, nv×m, from the last pivot back."""
        domain, m = self.domain, len(self.independent)
        G = domain.zeros(self.shape[1], m)
        for k, c in enumerate(self.independent):
            G[c, k] = domain.const(1)
        for (i, j), inverse in zip(reversed(self.plan.pivots), reversed(self._inverses), strict=True):
            for k in range(m):
                total = domain.const(0)
                for c, value in self._rows[i].items():
                    if c != j and not domain.is_zero(G[c, k]):
                        total = total + value * G[c, k]
                if not domain.is_zero(total):
                    G[j, k] = -(total * inverse)
        return G

    def follow(self, right: Array) -> Array:
        """x, nv numbers: J x + right = 0 with the independent ones zero."""
        domain, b = self.domain, list(right)
        for (i, _), taken in zip(self.plan.pivots, self._factors, strict=True):
            if not domain.is_zero(b[i]):
                for r, factor in taken.items():
                    b[r] = b[r] - factor * b[i]
        x = domain.zeros(self.shape[1])
        for (i, j), inverse in zip(reversed(self.plan.pivots), reversed(self._inverses), strict=True):
            total = b[i]
            for c, value in self._rows[i].items():
                if c != j and not domain.is_zero(x[c]):
                    total = total + value * x[c]
            if not domain.is_zero(total):
                x[j] = -(total * inverse)
        return x

    def bear(self, load: Array) -> Array:
        """λ, one for each row: (Jᵀλ)_d = load_d, zero at the plan's redundant rows."""
        domain = self.domain
        y: dict[int, Any] = {}
        for (i, j), inverse in zip(self.plan.pivots, self._inverses, strict=True):  # Uᵀ y = load
            total = load[j]
            for other, value in y.items():
                if j in self._rows[other] and not domain.is_zero(value):
                    total = total - self._rows[other][j] * value
            y[i] = total * inverse
        return self._unrolled(y)

    def _unrolled(self, y: Row) -> Array:
        """λ with Lᵀλ = y."""
        domain, found = self.domain, self.domain.zeros(self.shape[0])
        for (i, _), taken in zip(reversed(self.plan.pivots), reversed(self._factors), strict=True):
            total = y[i]
            for r, factor in taken.items():
                if not domain.is_zero(found[r]):
                    total = total - factor * found[r]
            found[i] = total
        return found

    def least(self, multipliers: Array) -> Array:
        """The least of all λ that bear the same: what redundant rows can share is taken out."""
        domain, redundant = self.domain, self.plan.redundant
        if not redundant:
            return multipliers
        zero, N = domain.const(0), domain.zeros(self.shape[0], len(redundant))
        for k, r in enumerate(redundant):  # Jᵀ N = 0
            parts = {i: t.get(r, zero) for (i, _), t in zip(self.plan.pivots, self._factors, strict=True)}
            N[:, k] = -self._unrolled(parts)
            N[r, k] = N[r, k] + domain.const(1)
        return multipliers - N @ domain.solve(N.T @ N, N.T @ multipliers)


def _told(row: Row, pivot: int) -> Array:
    """[the pivot, all others of its row in one number that no usual relation between them makes vanish]."""
    others = [value * (1.0 + (0.618 * c) % 1.0) for c, value in row.items() if c != pivot]
    return np.array([row[pivot], sum(others[1:], others[0]) if others else row[pivot]], dtype=object)


def squares(values: Iterable[Any], domain: Domain) -> Any:
    """Σ x²."""
    total = domain.const(0)
    for value in values:
        total = total + value * value
    return total


__all__ = ["Elimination", "squares"]
