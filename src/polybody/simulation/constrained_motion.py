"""What simulation asks of models with loops: accelerations between closed states, and the way back to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from polybody.algebra.domains import Domain
from polybody.constraints.crossing import crossing_acceleration
from polybody.constraints.mobility import pivoted
from polybody.constraints.plan import plan_elimination
from polybody.constraints.ranks import pseudo_inverse
from polybody.model.constrained_engine import ConstrainedEngine
from polybody.model.diagnosed import GROWTH
from polybody.model.model import Model
from polybody.model.plans import SWITCH, Followed
from polybody.model.wrenches import Wrenches, checked, on_bodies
from polybody.properties import cached_property
from polybody.quantities import constrained
from polybody.quantities.quantity import Quantity
from polybody.quantities.table import QUANTITIES

Array = np.ndarray

#: residuals (m, rad) that projection aims at
KEPT = 1e-15
#: (size/row)² for each pivot from which states are put on the loops before they are believed: what they are off is
#: divided by what is left of the row, and its square
MENDED = 1e1
#: from which a configuration is called near a singular one
NEAR = 1e4
#: and from which rounding alone would do harm: there the lost rows are taken one derivative later
LOST = 1e8
#: singular values below this part of the largest are not divided by
SOFT_RANK = 1e-4
#: singular values over the largest that are rounding
ROUNDING = 1e-13
#: parts of rows below this may change their signs by themselves
CLEAR = 0.05


class ConstrainedMotion:
    """Steps of a motion with loops; one state at a time, and never refused for being slightly off."""

    def __init__(self, engine: ConstrainedEngine) -> None:
        self.engine, self.kernels, self.nv = engine, engine.constraints, engine.mechanism.nv
        self.plans = Followed(engine.plans)

    def acceleration(self, q: Array, v: Array, tau: Array, wrenches: Wrenches | None = None) -> tuple[Array, bool]:
        """(a, singular) at a state that may be off the loops by a little, near singular configurations too."""
        if not np.isfinite(q).all():
            return np.full(self.nv, np.nan), False
        if self.engine.is_compiled:
            self._plan_ready(q)
            a, told = self._eliminated(q, v, tau, wrenches)
            worst = max(told[2] / SWITCH, told[4] / NEAR)
            if worst > self._rank and np.isfinite(worst):
                self.plans.switch(q, self._rank, always=told[2] > SWITCH * self._rank)
                a, told = self._eliminated(q, v, tau, wrenches)
            if MENDED * self._rank < told[4] < LOST * self._rank:
                q, v, _ = self.projection(q, v)
                a, told = self._eliminated(q, v, tau, wrenches)
            # By singular values: rows may be narrow along a plan (Bricard's, at states between steps) that are sound.
            near = not told[4] < NEAR * self._rank and self._is_near(self.kernels.jacobian(q))
            # Off the loops by a little, redundant rows seem not to be so: what elimination leaves of them is no matter.
            if told[2] < GROWTH and told[4] < LOST * self._rank:
                return a, near
        M, force = self.engine.ranked.tree_terms(q, v, tau, self._on_bodies(q, wrenches))
        kernels = self.kernels
        J, gamma, speed = kernels.jacobian(q), kernels.bias(q, v), float(np.abs(v).max(initial=0.0))
        a = crossing_acceleration(
            M, J, gamma, force, speed, lambda a: kernels.next_rate(q, v, a), SOFT_RANK, self._rank
        )
        return a, self._is_near(J)

    def _eliminated(self, q: Array, v: Array, tau: Array, wrenches: Wrenches | None) -> tuple[Array, Array]:
        """(a, diagnostics) along the free plan."""
        loads, forward, plan = self._on_bodies(q, wrenches), QUANTITIES["forward_dynamics"], self.plans.free(q)
        if loads is None:
            a, told = self.engine.eliminated(forward, q, v, tau, plan=plan)
        else:
            a, told = self.engine.eliminated(forward.with_wrenches(), q, v, tau, loads, plan=plan)
        return a, told

    def _on_bodies(self, q: Array, wrenches: Wrenches | None) -> Array | None:
        given = checked(self.engine.mechanism, wrenches)
        return on_bodies(self.engine.tree, q, given) if given else None

    def _newton(self, q: Array, v: Array) -> tuple[Array, ...]:
        """(step of q, change of v, turns, diagnostics) along the free plan."""
        plan = self.plans.free(q)
        results = (("step", ("nv",)), ("change", ("nv",)), ("turns", (2, len(plan.pivots))))
        quantity = Quantity("projection with turns", ("q", "v"), results, _untold, _step_with_turns)
        return self.engine.eliminated(quantity, q, v, plan=plan)

    def _plan_ready(self, q: Array) -> None:
        """The plan is made from states that are closed."""
        if not self.plans.is_made:
            self.engine.require_closed(q)

    def _is_near(self, J: Array) -> bool:
        """True where J of one state has nearly lost rank."""
        s = np.linalg.svd(J, compute_uv=False)
        return bool(self._rank and s[self._rank - 1] * np.sqrt(NEAR) <= s[0])  # all of them may be lost

    @cached_property
    def _rank(self) -> int:
        """The rank of the constraints in general position."""
        rank = self.engine.plans.rank
        return self.engine.rank if rank is None else rank

    @cached_property
    def _redundant(self) -> bool:
        """True where rows repeat others: those that a plan takes may depend on each other where the loops are sound."""
        return len(self.kernels.constraints) > self._rank

    def projection(
        self, q: Array, v: Array, held: Mapping[int, tuple[int, float]] | None = None
    ) -> tuple[Array, Array, float]:
        """(q, v, how far q was off): the state brought back to the loops, at position and velocity level.

        The dependent coordinates move, the independent ones stay; near singular configurations all move, the least.
        `held` maps indices of v to (index of q, value): joints that rest there.
        """
        if held:
            return self._held_projection(q, v, held)
        first, size = None, np.inf
        for count in range(12):
            # Rows that a plan leaves out are met because the others are, or else all rows must be looked at.
            step, speed, now = self._step_back(q, v, all_rows=count >= 4)
            first = now if first is None else first
            if now < KEPT or (now < 1e-11 and now > 0.3 * size):
                break
            q, size = self.engine.assembly.integrate(q, step), now
        _, speed, _ = self._step_back(q, v, all_rows=False)
        v = v + speed
        if np.abs(self.kernels.velocity(q, v)).max(initial=0.0) > 1e-10 * (1 + np.abs(v).max(initial=0.0)):
            v = v + self._step_back(q, v, all_rows=True)[1]
        return q, v, first or 0.0

    def _held_projection(
        self, q: Array, v: Array, held: Mapping[int, tuple[int, float]]
    ) -> tuple[Array, Array, float]:
        """The same with rows of joints that rest: all coordinates move, the least."""
        places, values = [k for k, _ in held.values()], np.array([value for _, value in held.values()])
        unit, first, size = np.eye(self.nv)[list(held)], None, np.inf
        for _ in range(12):
            back = pseudo_inverse(np.concatenate([self.kernels.jacobian(q), unit]))
            gap = np.concatenate([self.kernels.residual(q), q[places] - values])
            now = float(np.linalg.norm(gap))
            first = now if first is None else first
            if now < KEPT or (now < 1e-11 and now > 0.3 * size):
                break
            q, size = self.engine.assembly.integrate(q, -(back @ gap)), now
        J = np.concatenate([self.kernels.jacobian(q), unit])
        speed = np.concatenate([self.kernels.velocity(q, v), unit @ v])
        return q, v - pseudo_inverse(J) @ speed, first or 0.0

    def _step_back(self, q: Array, v: Array, all_rows: bool) -> tuple[Array, Array, float]:
        """(step of q, change of v, ‖φ‖)."""
        if not all_rows and self.engine.is_compiled and self.plans.is_made:
            step, speed, _, told = self._newton(q, v)
            if told[2] < SWITCH**2 * max(self._rank, 1) and told[4] < LOST * max(self._rank, 1):
                return step, speed, float(np.sqrt(told[0]))
        phi, J = self.kernels.residual(q), self.kernels.jacobian(q)
        back = pseudo_inverse(J, SOFT_RANK, self._rank)
        return -(back @ phi), -(back @ self.kernels.velocity(q, v)), float(np.linalg.norm(phi))

    def signs(self, q: Array, before: Any = None) -> tuple[Any, bool]:
        """(signs, passed): whether the motion has passed a singular configuration since `before` was recorded.

        There elimination leaves nothing of a row, and beyond it the whole row has turned over; where coordinates alone
        fail, the pivot does, and the others of its row do not.
        """
        if not (self.engine.is_compiled and self.plans.is_made):
            return None, False
        turns = self._newton(q, np.zeros(self.nv))[2]
        now = (str(self.plans.free(q)), turns, q)
        if before is None or before[0] != now[0] or not _turned_over(before[1], turns):
            return now, False
        return now, not self._redundant or self._has_passed(before[2], q)

    def _has_passed(self, before: Array, now: Array) -> bool:
        """Whether rows that are as independent as can be have turned over: those of the plan may depend on others.

        A motion over which they do not keeps R R'ᵀ of these rows, before and now, near a positive definite matrix.
        """
        J = self.kernels.jacobian(np.array([before, now]))
        rows = pivoted(J[1].T)[1][: self._rank]
        return bool(np.min(np.real(np.linalg.eigvals(J[0, rows] @ J[1, rows].T)), initial=0.0) < 0)

    def crossing(self, q: Array, v: Array, far: float) -> float:
        """Seconds until a singular configuration is reached along v; infinite where none is ahead, or where no singular
        value of the constraints is below `far` of the largest."""
        J = self.kernels.jacobian(q)
        s = np.linalg.svd(J, compute_uv=False)
        if not self._rank or s[self._rank - 1] >= far * s[0]:
            return np.inf
        U, s, Vt = np.linalg.svd(J, full_matrices=False)
        # Of what is rounding the motion is there already, and its sign says nothing of the way it goes.
        lost = np.flatnonzero((s[: self._rank] < far * s[0]) & (s[: self._rank] > ROUNDING * s[0]))
        turn = U[:, lost].T @ self.kernels.jacobian_rate(q, v) @ Vt[lost].T
        rates = np.linalg.eigvals(-turn / s[lost][:, None])  # 1/τ of S + τ UᵀJ̇V
        nearest = max((float(x.real) for x in rates if abs(x.imag) < 0.1 * abs(x.real)), default=0.0)
        return 1 / nearest if nearest > 0 else np.inf

    def independent_rows(self, q: Array) -> list[int]:
        """Constraint rows that are independent in general position near q, as many as their rank."""
        if self.engine.is_compiled:
            self._plan_ready(q)
            return sorted(i for i, _ in self.plans.free(q).pivots)
        return sorted(i for i, _ in plan_elimination(self.kernels.jacobian(q)[None], rank=self._rank).pivots)


def constrained_engine(model: Model) -> ConstrainedEngine:
    """The engine of a model with loops."""
    assert isinstance(model.engine, ConstrainedEngine), f"{model.name!r} has no loops"
    return model.engine


def _step_with_turns(c: constrained.Closed, q: Array, v: Array, *, domain: Domain) -> tuple[Array, ...]:
    return *constrained.projection_step(c, q, v, domain=domain), c.motions(q, domain).turns  # type: ignore[attr-defined]


def _untold(*_: Any, **__: Any) -> Any:
    raise AssertionError("trees have no constraints to go back to")


def _turned_over(before: Array, now: Array) -> bool:
    """Whether a whole row, its pivot and what else is in it, has changed its sign."""
    clear = np.minimum(np.abs(now), np.abs(before)) > CLEAR
    return bool(np.any(np.all(clear & (now * before < 0), axis=0)))


__all__ = ["ConstrainedMotion", "constrained_engine"]
