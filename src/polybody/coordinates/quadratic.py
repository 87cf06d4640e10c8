"""Small convex quadratic programs, a batch at a time.

    least ½ zᵀP z + cᵀz   within   low ≤ A z ≤ high,        P positive definite, low ≤ 0 ≤ high

States do not know each other, and no Python runs for one of them alone. Where the free minimum −P⁻¹c is inside, it is
the answer. For the others a primal-dual interior-point method (Mehrotra 1992) solves, with slacks s and multipliers u
of the upper and t and l of the lower bounds,

    P z + c + Aᵀ(u − l) = 0,   A z + s = high,   t − A z = −low,   s u = t l = 0,   all of s, t, u, l ≥ 0           (1)

by Newton's steps towards s u = t l = σ μ. With p = d(u − l) and W = u/s + l/t a step is

    | P   Aᵀ   | | dz |   | −(P z + c + Aᵀ(u − l)) |
    | A  −W⁻¹  | | p  | = | −W⁻¹ g                 |                                                                (2)

which stays well scaled however near to its bounds a state is. A state leaves the batch when (1) holds, so that its
answer does not depend on who else is in it. The bounds that are then met are taken as equations, which gives the last
digits, if all others hold and no multiplier has the wrong sign.
"""

from __future__ import annotations

import numpy as np

Array = np.ndarray
INSIDE = 1e-14  # how far a free minimum may be outside
TOLERANCE = 1e-10  # of (1), relative to the size of c and of the multipliers
ENOUGH = 1e-7  # and where rounding allows no more
SURE = 1e-12  # of bounds, and of the signs of multipliers, where the bounds that are met are taken as equations
CENTRED = 1e-3  # the least σ: slacks far below the others lose their digits
STEPS = 60
FIRM = 1e-14  # what keeps (2) regular
STALE = 6  # steps without progress after which no more is to be had
BACK = 0.995  # part of the way to the nearest bound


def least(P: Array, c: Array, A: Array, low: Array, high: Array) -> Array:
    """z (s, n) of every state, for P (s, n, n), c (s, n), A (s, m, n), low and high (s, m); zero where none was found.
    """
    z = np.linalg.solve(P, -c[..., None])[..., 0]
    reached = _times(A, z)
    outside = np.flatnonzero(~((reached <= high + INSIDE) & (reached >= low - INSIDE)).all(axis=-1))
    if len(outside):
        z[outside] = _interior(*(x[outside] for x in (P, c, A, low, high)))
    return z


def _times(A: Array, x: Array) -> Array:
    return (A @ x[..., None])[..., 0]


def _largest(x: Array) -> Array:
    return np.abs(x).max(axis=-1, initial=0.0)


def _interior(P: Array, c: Array, A: Array, low: Array, high: Array) -> Array:
    """By interior points, from z = 0."""
    empty = _largest(A) == 0.0  # rows that say nothing
    bounds = np.stack([np.where(empty, 1.0, high), np.where(empty, 1.0, -low)])  # of A z and of −A z
    answer, at, best = np.zeros_like(c), np.arange(len(c)), np.full(len(c), np.inf)
    since, met = np.zeros(len(c), dtype=int), np.zeros(bounds.shape, dtype=bool)
    whole = P, c, A, bounds
    z = np.zeros_like(c)
    slack, force = np.maximum(bounds, 1e-2), np.full(bounds.shape, 0.1)
    for _ in range(STEPS):
        reached = _times(A, z)
        dual = _times(P, z) + c + _times(np.swapaxes(A, -1, -2), force[0] - force[1])
        primal = np.stack([reached, -reached]) + slack - bounds
        mu = (slack * force).mean(axis=(0, -1))
        scale = 1.0 + _largest(c) + force.max(axis=(0, -1))
        error = np.maximum(_largest(dual) / scale, np.maximum(_largest(primal).max(axis=0), mu))
        better = error < best[at]
        answer[at[better]], best[at[better]] = z[better], error[better]
        met[:, at[better]] = (force > slack)[:, better]
        since[at] += 1
        since[at[better]] = 0
        left = (error > TOLERANCE) & (since[at] < STALE)
        if not left.any():
            break
        P, c, A, dual, z, mu, at = (x[left] for x in (P, c, A, dual, z, mu, at))
        bounds, slack, force, primal = (x[:, left] for x in (bounds, slack, force, primal))
        product = slack * force
        step = _Newton(P, A, dual, primal, slack, force)
        dz, ds, df = step(product)
        way = np.minimum(_way(slack, ds), _way(force, df))
        ahead = ((slack + way * ds) * (force + way * df)).mean(axis=(0, -1))
        target = np.maximum(np.maximum((ahead / mu) ** 3, CENTRED) * mu, 0.1 * TOLERANCE)
        dz, ds, df = step(product + ds * df - target[:, None])
        way = np.minimum(BACK * np.minimum(_way(slack, ds), _way(force, df)), 1.0)
        z, slack, force = z + way * dz, slack + way * ds, force + way * df
    exact, sure = _with_equations(*whole, met)
    answer[best > ENOUGH] = 0.0
    answer[sure] = exact[sure]
    return answer


def _with_equations(P: Array, c: Array, A: Array, bounds: Array, met: Array) -> tuple[Array, Array]:
    """(z with the bounds that are met as equations, whether that is the answer)."""
    n, m = A.shape[-1], A.shape[-2]
    some = np.asarray(met.any(axis=0))
    rows = np.where(some[..., None], A, 0.0)
    K = np.zeros((len(A), n + m, n + m))
    K[:, :n, :n], K[:, :n, n:], K[:, n:, :n] = P, np.swapaxes(rows, -1, -2), rows
    K[:, range(n, n + m), range(n, n + m)] = np.where(some, -FIRM, 1.0)
    right = np.concatenate([-c, np.where(met[0], bounds[0], np.where(met[1], -bounds[1], 0.0))], axis=-1)
    found = np.linalg.solve(K, right[..., None])[..., 0]
    z, force = found[:, :n], found[:, n:]
    reached = _times(A, z)
    sure = ((np.stack([reached, -reached]) - bounds) <= SURE).all(axis=(0, -1))
    scale = 1.0 + _largest(c)[:, None]
    both = met.all(axis=0)
    signs = both | ((force >= -SURE * scale) & met[0]) | ((force <= SURE * scale) & met[1]) | ~some
    return z, sure & signs.all(axis=-1)


class _Newton:
    """Equation (2) of a batch, factored for one step's two right sides."""

    def __init__(self, P: Array, A: Array, dual: Array, primal: Array, slack: Array, force: Array) -> None:
        self.A, self.dual, self.primal, self.slack, self.force = A, dual, primal, slack, force
        n, m = A.shape[-1], A.shape[-2]
        self.weight = (force / slack).sum(axis=0)
        K = np.zeros((len(A), n + m, n + m))
        K[:, :n, :n], K[:, :n, n:], K[:, n:, :n] = P, np.swapaxes(A, -1, -2), A
        K[:, range(n, n + m), range(n, n + m)] = -1.0 / self.weight - FIRM  # bounds that say the same twice
        self.inverse = np.linalg.inv(K)

    def __call__(self, off: Array) -> tuple[Array, Array, Array]:
        """(dz, ds, df) for complementarity off by `off`."""
        n = self.A.shape[-1]
        parts = (self.force * self.primal - off) / self.slack
        right = np.concatenate([-self.dual, -(parts[0] - parts[1]) / self.weight], axis=-1)
        dz = _times(self.inverse, right)[:, :n]
        moved = _times(self.A, dz)
        ds = -self.primal - np.stack([moved, -moved])
        return dz, ds, -(off + self.force * ds) / self.slack


def _way(x: Array, dx: Array) -> Array:
    """How much of dx positive numbers x can go, 1 at most, (s, 1)."""
    part = np.where(dx < 0, -x / np.where(dx < 0, dx, 1.0), 1.0)
    return np.minimum(part.min(axis=(0, -1)), 1.0)[:, None]


__all__ = ["least"]
