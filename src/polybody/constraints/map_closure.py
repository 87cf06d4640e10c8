"""A cut joint given by any map matrix H(ε): its own configuration ε is eliminated.

(R, p) is the pose of frame b in frame a, X(ε) = (X, x) that of the joint. What is left over, in b's axes, is

    ξ = [s θ/sin θ; Xᵀ(p − x)],      s, θ: axis times sine, and angle, of XᵀR

and ε is where Hᵀ ξ = 0, by steps of Gauss and Newton, ε̇ = Γ(ε) δ, δ = H⁺ ξ, none longer than 1. With N an orthonormal
complement of H(ε), where the loop is closed (ξ = 0),

    φ = Nᵀ ξ,     φ̇ = Nᵀ V_b,     φ̈ = Nᵀ (V̇_b − Ḣ β),    β = H⁺ V_b

On numbers the steps go on until they settle, from several starts. Straight-line code takes `STEPS` of them from the
neutral configuration; where these have not settled, N is not a number, and the façade asks the numbers' way. Of
jets, the values settle first and one step more makes the rates exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.algebra.jets import JetDomain
from polybody.algebra.rotations import cross
from polybody.algebra.scalars import numbers
from polybody.constraints.closure import ClosureConstraint, NamedClosure
from polybody.constraints.constraint import Constraint
from polybody.constraints.place import Place
from polybody.errors import PolybodyError
from polybody.mechanism.joints import JointModel
from polybody.mechanism.mechanism import Closure

#: steps of straight-line code
STEPS = 10
#: ‖ξ‖², and ‖Hᵀ ξ‖², above which N is not given: the gap is open, or the steps have not settled
OPEN, UNSETTLED = 1e-6, 1e-20
#: a Householder reflection keeps its sign while the pivot is above this part of its column: not at zero, where
#: rounding would choose
TURN = -0.1


class MapClosure(ClosureConstraint):
    """A cut joint given by its map matrix."""

    kind = "custom"
    iterates = True

    def __init__(self, closure: Closure) -> None:
        super().__init__(closure)
        assert closure.model is not None
        self.model: JointModel = closure.model
        self.labels = tuple(f"direction {k + 1}" for k in range(6 - closure.model.nv))
        self.units = ("",) * self.size
        H = self.model.constant_map
        self.constant_complement = None if H is None else complement(np.asarray(H, dtype=float), FLOAT)

    # The joint's own configuration.

    def settled(self, R: Array, p: Array, domain: Domain) -> Array:
        """ε for the pose (R, p)."""
        if domain is FLOAT:
            return self.nearest(R, p)
        if isinstance(domain, JetDomain):
            values = self.settled(domain.values(R), domain.values(p), domain.base)
            return self._step(domain.lift(values), R, p, domain)
        if domain.name == "sympy":
            raise PolybodyError(
                f"loop {self.name!r}: the configuration of a joint given by a map is found by iteration, which has no "
                "formula in symbols; cut the loop at another joint"
            )
        epsilon = domain.array(self.model.neutral())
        for _ in range(STEPS):
            epsilon = self._step(epsilon, R, p, domain)
        return epsilon

    def left_over(self, epsilon: Array, R: Array, p: Array, domain: Domain) -> Array:
        """ξ."""
        X, x = self.model.configuration(epsilon, domain=domain)
        gap, c = X.T @ R, domain.const
        s = np.array([gap[2, 1] - gap[1, 2], gap[0, 2] - gap[2, 0], gap[1, 0] - gap[0, 1]], dtype=domain.dtype) / c(2)
        cosine = (gap[0, 0] + gap[1, 1] + gap[2, 2] - c(1)) / c(2)
        square = s @ s
        small = domain.less(square, c(1e-8))
        sine = domain.sqrt(domain.where(small, c(1), square))
        near = domain.where(domain.less(c(0), cosine), c(1) + square / c(6), c(3e4))  # π/1e-4 beyond half a turn
        return np.concatenate([s * domain.where(small, near, domain.atan2(sine, cosine) / sine), X.T @ (p - x)])

    def _step(self, epsilon: Array, R: Array, p: Array, domain: Domain) -> Array:
        H = self.model.velocity_map(epsilon, domain=domain)
        delta = domain.solve(H.T @ H, H.T @ self.left_over(epsilon, R, p, domain))
        square, one = delta @ delta, domain.const(1)
        long = domain.less(one, square)
        size = domain.where(long, one / domain.sqrt(domain.where(long, square, one)), one)
        return epsilon + self.model.rate(epsilon, delta * size, domain=domain)

    def nearest(self, R: Array, p: Array) -> Array:
        """ε on numbers: the best of several starts."""
        best: tuple[float, Array] | None = None
        for start in (self.model.neutral(), *(self.model.random(np.random.default_rng(k)) for k in range(12))):
            epsilon, last = np.asarray(start, dtype=float), np.inf
            for _ in range(60):
                following = self._step(epsilon, R, p, FLOAT)
                size = float(np.abs(following - epsilon).max())
                epsilon = following
                if size < 1e-15 or (size < 1e-9 and size >= last):
                    break
                last = size
            gap = float(np.linalg.norm(self.left_over(epsilon, R, p, FLOAT)))
            if best is None or gap < best[0] - 1e-12:
                best = (gap, epsilon)
            if best[0] < 1e-6:
                break
        assert best is not None
        return best[1]

    # The constraint.

    def residual(self, place: Place, far: bool = False) -> Array:
        domain = place.domain
        R, p = place.relative_pose(self.a, self.b)
        epsilon = self.settled(R, p, domain)
        N = self._across(epsilon, domain) * self._found(epsilon, R, p, domain, np.inf)
        return N.T @ self.left_over(epsilon, R, p, domain)

    def _across(self, epsilon: Array, domain: Domain) -> Array:
        """N."""
        if self.constant_complement is not None:
            return domain.array(self.constant_complement)
        return complement(self.model.velocity_map(epsilon, domain=domain), domain)

    def directions(self, R: Array, p: Array, domain: Domain) -> Array:
        """Nᵀ V_b with V_b = [Rᵀω; Rᵀu]."""
        if self.constant_complement is not None:
            N = domain.array(self.constant_complement)
        else:
            epsilon = self.settled(R, p, domain)
            N = self._across(epsilon, domain) * self._found(epsilon, R, p, domain, OPEN)
        return np.concatenate([N[:3].T @ R.T, N[3:].T @ R.T], axis=1)

    def _found(self, epsilon: Array, R: Array, p: Array, domain: Domain, most: float) -> Any:
        """1 where ε has settled and ‖ξ‖² is below `most`, else not a number; on plain numbers always 1."""
        c = domain.const
        if _scalars(domain) is FLOAT:
            return c(1)
        xi = self.left_over(epsilon, R, p, domain)
        along = self.model.velocity_map(epsilon, domain=domain).T @ xi
        mark = domain.where(domain.less(along @ along, c(UNSETTLED)), c(1), c(np.nan))
        return mark if most == np.inf else domain.where(domain.less(xi @ xi, c(most)), mark, c(np.nan))

    def bias(self, place: Place, moving: Callable[[], Place]) -> Array:
        if self.constant_complement is not None:
            return super().bias(place, moving)
        domain = place.domain
        R, p = place.relative_pose(self.a, self.b)
        epsilon = self.settled(R, p, domain)
        H = self.model.velocity_map(epsilon, domain=domain)
        V, V_rate = place.relative_rate(self.a, self.b)
        turn, shift = V_rate[:3], V_rate[3:] - cross(V[:3], V[3:])  # of V in b's axes, which turn by ω
        V_b = np.concatenate([R.T @ V[:3], R.T @ V[3:]])
        beta = domain.solve(H.T @ H, H.T @ V_b)
        drift = self.model.velocity_map_rate(epsilon, beta, domain=domain) @ beta
        moved = np.concatenate([R.T @ turn, R.T @ shift])
        return (self._across(epsilon, domain).T @ (moved - drift)) * self._found(epsilon, R, p, domain, OPEN)

    def mirrored(self, place: Place) -> bool:
        R, p = place.relative_pose(self.a, self.b)
        return bool(np.linalg.norm(self.left_over(self.nearest(R, p), R, p, FLOAT)) > 1e-6)


def _scalars(domain: Domain) -> Domain:
    """The domain under all jets."""
    return _scalars(domain.base) if isinstance(domain, JetDomain) else domain


def complement(H: Array, domain: Domain) -> Array:
    """Orthonormal columns of what the columns of H (6×r, independent) do not reach, by Householder's reflections."""
    A, n, r = H.copy(), H.shape[0], H.shape[1]
    c = domain.const
    reflections: list[tuple[Array, Any]] = []
    for k in range(r):
        x = A[k:, k].copy()
        norm = domain.sqrt(x @ x)
        down = domain.less(x[0], norm * c(TURN))
        x[0] = x[0] + domain.where(down, -norm, norm)
        scale = c(2) / (x @ x)
        A[k:] = A[k:] - np.outer(x, x @ A[k:]) * scale
        reflections.append((x, scale))
    N = domain.zeros(n, n - r)
    for k in range(r, n):
        N[k, k - r] = c(1)
    for k, (x, scale) in reversed(list(enumerate(reflections))):
        N[k:] = N[k:] - np.outer(x, x @ N[k:]) * scale
    return N


def closure_constraint(closure: Closure, record: Any) -> Constraint | None:
    """The constraint of a loop; None for a floating joint, which holds nothing."""
    kind = "fixed" if closure.model is None else closure.model.kind
    if kind == "floating" or (closure.model is not None and closure.model.nv == 6):
        return None
    if kind == "custom":
        return MapClosure(closure)
    if kind == "screw" and not record.pitch:  # a screw without pitch is a hinge
        kind = "revolute"
    axis = np.array([0.0, 0.0, 1.0]) if kind in ("universal", "spherical", "fixed") else record.axis
    return NamedClosure(closure, kind, numbers(axis), record.pitch)


__all__ = ["MapClosure", "closure_constraint", "complement"]
