"""A state in the model's own coordinates u, as text: what task controllers (`controllers.own_motion`) compute with.

    v = G u̇,   a = G ü + β,   M ü = Gᵀ(τ − ID(q, v, β))        (trees: G = 1, β = 0)

Forces that give a task J a + J̇v the acceleration ẍ*, nearest to those τ₀ that accelerate the machine by ü₀:

    every coordinate driven     Gᵀτ = Gᵀ ID(q, v, G ü₀ + β) + JᵀΛ (ẍ* − ẍ₀),     Λ = (J M⁻¹Jᵀ)⁺
    others                      τ_a = τ₀ + W Tᵀ(T W Tᵀ)⁺(ẍ* − ẍ₀),   T = J M⁻¹Aᵀ,   W = (A M⁻¹Aᵀ)⁻¹

Actuators whose rates A u̇ depend on each other (with loops) are A = C R with R the rows of as many as are independent:
the forces f of R alone are found, and all actuators exert the least with Cᵀτ_a = f, τ_a = C (CᵀC)⁻¹ f.

Straight-line code has no pseudo-inverse: `Shape` reports from matrices at a few places which rows J has in general
position. Rows that depend on others everywhere in the same way are taken out (a plane's normal); what is left has full
row rank, J⁺ = Jᵀ(JJᵀ)⁻¹, or full column rank, J⁺ = (JᵀJ)⁻¹Jᵀ. Every such solution adds a number to `doubts`, S_ii over
what elimination leaves of it: where it is large the task is nearly singular, and Python takes the step.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.algebra.domains import Domain
from polybody.constraints.assembly import AssemblyError
from polybody.constraints.mobility import independence
from polybody.formulations import denoc
from polybody.formulations.denoc.elements import Eliminated
from polybody.interrupts import imported
from polybody.late import dataclass
from polybody.model.model import Model
from polybody.properties import cached_property
from polybody.quantities.constrained import Closed, along_plan, drive_forces
from polybody.simulation.compiled.joint_space import joint_space
from polybody.simulation.compiled.law import Solved
from polybody.simulation.controllers.own_motion import fully_driven
from polybody.simulation.failures import NotCompiled

Array = np.ndarray
#: doubts are believed up to 1e10 (`field`); S_ii over its pivot up to 1e7
SCALE = 1e3
RANK = 1e-8
#: as many random configurations are drawn for each that is needed of loops
TRIED = 4


@dataclass(frozen=True, eq=False)
class Shape:
    """How the rows of a task's matrix depend on each other in general position."""

    rows: Array  # (r, k): combinations of rows that are independent somewhere
    tall: bool  # the columns are independent, the rows are not

    @property
    def key(self) -> str:
        return f"{self.rows.shape} {self.rows.round(12).tobytes().hex()} {self.tall}"


def shape_of(samples: list[Array]) -> Shape:
    """Of a matrix (k, n), from its values at places in general position."""
    beside = np.concatenate(samples, axis=1)
    U, s, _ = np.linalg.svd(beside, full_matrices=False)
    size = int(np.sum(s > RANK * s[0])) if len(s) else 0
    kept = np.eye(len(beside)) if size == len(beside) else U[:, :size].T
    ranks = {int(np.linalg.matrix_rank(kept @ sample, tol=RANK * s[0])) for sample in samples}
    if ranks == {size}:
        return Shape(kept, False)
    if ranks == {samples[0].shape[1]}:
        return Shape(kept, True)
    raise NotCompiled("the rows of the controller's task depend on each other, at every place in another way")


def own_plan(model: Model) -> tuple[list[int], Any]:
    """(own columns, plan of elimination along them) of a model with loops."""
    engine: Any = model.engine
    u = list(engine.independent)
    plan = engine.plans.of_columns(tuple(u), engine.assembly.from_neutral()) if engine.is_compiled else None
    if plan is None or model.mechanism.paced:
        raise NotCompiled("the controller of these loops is evaluated in Python: their coordinates have no elimination")
    return u, plan


def steered(model: Model) -> tuple[list[int], Any, Any]:
    """(own columns, plan of elimination along them, how the drives share a load) of loops that are fully driven."""
    (u, plan), engine = own_plan(model), model.engine
    if not engine.can_hold(plan):  # type: ignore[attr-defined]
        raise NotCompiled("the drives of the loops cannot hold every motion")
    return u, plan, engine.shares_of(plan)  # type: ignore[attr-defined]


def places(model: Model, count: int = 3) -> list[Array]:
    """Configurations in general position, in which the own coordinates are independent.

    In some a machine may move in another way: with universal joints of a leg at right angles a delta's motors are not
    independent.
    """
    try:
        if not model.mechanism.constrained:
            return list(model.random_configuration(11, count))
        found = model.random_configuration(11, TRIED * count)
    except AssemblyError as error:
        raise NotCompiled(f"the controller's task is looked at in random configurations: {error}") from None
    u: Any = model.engine.independent  # type: ignore[attr-defined]
    usual = [q for q, J in zip(found, model.constraints.jacobian(found), strict=True) if independence(J, u) > RANK]
    if len(usual) < count:
        raise NotCompiled("the controller of these loops is evaluated in Python: in most places their coordinates are "
                          "not independent")  # fmt: skip
    return usual[:count]


class Own:
    """What of a model does not depend on the state: its own coordinates, and who drives them."""

    def __init__(self, model: Model) -> None:
        self.model, self.loops = model, bool(model.mechanism.constrained)
        self.places = places(model)
        self.driven = fully_driven(model, self.places[0])
        self.u, self.plan, self.shares = list(range(model.nv)), None, None
        if self.loops and self.driven:
            self.u, self.plan, self.shares = steered(model)
        elif self.loops:
            self.u, self.plan = own_plan(model)
        self.active = [int(k) for k in np.flatnonzero(model.actuation.active)]
        self.passive = [k for k in range(model.nv) if k not in self.active]
        self.pushing = self._pushing()
        if not self.active:
            raise NotCompiled("the model has no actuators")

    def _pushing(self) -> list[int]:
        """Of the actuators as many as are independent in general position, where they do not drive everything."""
        if self.driven or not self.loops:
            return self.active
        A = self.model.constraints.joint_influence(self.places[0], 1).G[self.active]
        imported("scipy.linalg")
        from scipy.linalg import qr

        found: Any = qr(A.T, pivoting=True, mode="economic")
        _, r, order = found
        sizes = np.abs(np.diag(r))
        return sorted(self.active[k] for k in order[: int(np.sum(sizes > RANK * sizes.max(initial=0.0)))])

    @property
    def key(self) -> str:
        shares = self.shares.label if self.shares else None
        by = f"by {self.active} {self.pushing} {self.driven}"
        return f"of {self.u} along {self.plan.label if self.plan else None} {shares} {by}"

    def at(self, m: Any, q: Array, v: Array, doubts: list[Any], domain: Domain) -> OwnState:
        return OwnState(self, m, q, v, doubts, domain)

    def columns(self, J: Array, q: Array) -> Array:
        """J over the own coordinates, of numbers."""
        return J @ self.model.constraints.joint_influence(q, 1).G if self.loops else J

    def frame_shape(self, frame: str, size: int) -> Shape:
        """The shape of the task of a frame's last `size` rows: independent in one place, they are so in general."""
        if not self.loops and size <= len(self.pushing):
            (only,) = self._tasks([self.model.jacobian(self.places[0], frame)[-size:]])
            if np.linalg.matrix_rank(only, tol=RANK * float(np.linalg.norm(only))) == size:
                return Shape(np.eye(size), False)
        return self.shape(list(self.model.jacobian(np.array(self.places), frame)[:, -size:]))

    def shape(self, samples: list[Array]) -> Shape:
        """The shape of a task, of its J over all joints at `places`: that of T, where actuators do not drive all."""
        return shape_of(self._tasks(samples))

    def _tasks(self, samples: list[Array]) -> list[Array]:
        """J over the own coordinates, or T, at as many of `places`."""
        places = self.places[: len(samples)]
        own = [self.columns(J, q) for J, q in zip(samples, places, strict=True)]
        if self.driven:
            return own
        R = [self.columns(np.eye(self.model.nv)[self.pushing], q) for q in places]
        M = self.model.mass_matrix(np.array(places)) if len(places) > 1 else [self.model.mass_matrix(places[0])]
        return [J @ np.linalg.solve(inertia, A.T) for J, inertia, A in zip(own, M, R, strict=True)]


class OwnState:
    """One state, while a text is read."""

    def __init__(self, own: Own, m: Any, q: Array, v: Array, doubts: list[Any], domain: Domain) -> None:
        self.own, self.m, self.q, self.doubts, self.domain = own, m, q, doubts, domain
        self.reduced = m if own.loops else joint_space(m)
        self.closed: Closed | None = None
        self.G: Array | None = None
        self.u, self.v, self.beta = v, v, domain.zeros(len(v))
        if own.plan is not None:
            engine: Any = own.model.engine
            self.closed = Closed(m, engine.constraints.traced, along_plan(own.plan), engine.drives.columns, own.shares)
            found = self.closed.motions(q, domain)
            self.G, self.u = found.G, v[own.u]
            self.v = found.G @ self.u
            self.beta = found.follow(self.closed.system.bias(q, self.v, domain=domain))
            doubts.append(found.growth)

    def carried(self, J: Array) -> Array:
        """J over the own coordinates."""
        return J if self.G is None else J @ self.G

    def joint_acceleration(self, a: Array) -> Array:
        """a = G ü + β."""
        return a if self.G is None else self.G @ a + self.beta

    @cached_property
    def inertia(self) -> Array:
        M = denoc.mass_matrix(self.reduced, self.q, domain=self.domain)
        return M if self.G is None else self.G.T @ (M @ self.G)

    @cached_property
    def _factors(self) -> Eliminated:
        return Eliminated(self.inertia, self.domain)

    def solve(self, right: Array) -> Array:
        """M⁻¹ right."""
        return self._factors.solve(right)

    @cached_property
    def needed(self) -> Array:
        """Forces with which own coordinates do not accelerate."""
        return denoc.inverse_dynamics(self.reduced, self.q, self.v, self.beta, domain=self.domain)

    def solved_dynamics(self) -> list[Solved]:
        """What of the dynamics has been computed, where that is enough for the motion under any forces."""
        if self.G is not None or not {"_factors", "needed"} <= self.__dict__.keys():
            return []
        return [Solved(self.reduced, self.q, self.v, self._factors, self.needed)]

    def forces(self, a: Array, more: Array | None = None) -> Array:
        """tau of the drives for accelerations ü = a, and for joint forces `more` beside."""
        needed = denoc.inverse_dynamics(self.reduced, self.q, self.v, self.joint_acceleration(a), domain=self.domain)
        needed = needed if more is None else needed + more
        if self.closed is None:
            return needed
        tau = drive_forces(self.closed, self.q, needed, self.domain)
        self.doubts.extend(self.closed.growth)
        return tau

    # Where actuators do not drive everything.

    @cached_property
    def pushed(self) -> Array:
        """R: rates of independent actuators R u̇."""
        if self.G is None:
            return self.domain.eye(self.m.nv)[self.own.pushing]
        return self.G[self.own.pushing]

    def steered(self, b: Array) -> tuple[Array, Array]:
        """(forces f of `pushed`, own accelerations): its rates accelerate by b, and the rest moves as it does."""
        m, domain, active, needed = self.m, self.domain, self.own.active, self.needed
        if self.G is not None:
            free = -self.solve(self.G.T @ needed)
            back, answer = self.answering
            f = domain.solve(answer, b - self.pushed @ free)
            return f, free + back @ f
        passive, M, found = self.own.passive, self.inertia, domain.zeros(m.nv)
        found[active] = b
        found[passive] = -self._passive.solve(needed[passive] + M[np.ix_(passive, active)] @ b)
        return M[active] @ found + needed[active], found

    @cached_property
    def _passive(self) -> Eliminated:
        """M_pp of a tree's joints that are not driven."""
        passive = self.own.passive
        return Eliminated(self.inertia[np.ix_(passive, passive)], self.domain)

    @cached_property
    def answering(self) -> tuple[Array, Array]:
        """(M⁻¹Rᵀ, R M⁻¹Rᵀ), with loops."""
        back = self.solve(self.pushed.T)
        return back, self.pushed @ back

    def borne(self, x: Array) -> Array:
        """W R M⁻¹ x, x own forces or columns: what of them `pushed` would have to exert to move as they do.

        Of a tree x_a − M_ap M_pp⁻¹ x_p: W is what is left of M_aa where the others are eliminated.
        """
        if self.G is not None:
            back, answer = self.answering
            return self.domain.solve(answer, back.T @ x)
        active, passive = self.own.active, self.own.passive
        return x[active] - self.inertia[np.ix_(active, passive)] @ self._passive.solve(x[passive])

    def exerted(self, f: Array) -> Array:
        """tau (nv,) of all actuators, the least that does what forces f of `pushed` do."""
        tau = self.domain.zeros(self.m.nv)
        tau[self.own.active] = self.shared(f)
        return tau

    def shared(self, f: Array) -> Array:
        """C (CᵀC)⁻¹ f, f a vector or columns."""
        own, R = self.own, self.pushed
        if self.G is None or len(own.pushing) == len(own.active):
            return f
        C = self.domain.solve(R @ R.T, R @ self.G[own.active].T).T
        return C @ self.domain.solve(C.T @ C, f)

    # Tasks.

    def task_forces(
        self, shape: Shape, J: Array, drift: Array, wanted: Array, rest: Array, load: Array | None = None
    ) -> Array:
        """tau with J a + drift = wanted, nearest to the forces of own accelerations `rest`; `load` are joint forces
        that act beside."""
        if not self.own.driven:
            return self._forces_of_some(shape, J, drift, wanted, rest, load)
        own = self.carried(J)
        gap = wanted - (J @ self.joint_acceleration(rest) + drift)
        if load is not None:
            gap = gap - own @ self.solve(load if self.G is None else self.G.T @ load)
        if shape.tall:
            return self.forces(rest + self.inverse(shape, own, gap))
        rows = self.domain.array(shape.rows)
        J, own = rows @ J, rows @ own
        return self.forces(rest, J.T @ self.solved(own @ self.solve(own.T), rows @ gap))

    def _forces_of_some(
        self, shape: Shape, J: Array, drift: Array, wanted: Array, rest: Array, load: Array | None
    ) -> Array:
        f, a = self.steered(self.pushed @ rest)
        a = a if load is None else a + self.solve(load if self.G is None else self.G.T @ load)
        gap, own = wanted - (J @ self.joint_acceleration(a) + drift), self.carried(J)
        if shape.tall:
            return self.exerted(f + self.inverse(shape, self.task(own), gap))
        rows = self.domain.array(shape.rows)
        own = rows @ own
        WT = self.borne(own.T)
        return self.exerted(f + WT @ self.solved(self.task(own) @ WT, rows @ gap))

    def task(self, J: Array) -> Array:
        """T = J M⁻¹Rᵀ, J over the own coordinates."""
        return self.solve(J.T)[self.own.active].T if self.G is None else J @ self.answering[0]

    def inverse(self, shape: Shape, J: Array, right: Array, damping: Any = None) -> Array:
        """J⁺ right; with damping λ: Jᵀ(JJᵀ + λ²)⁻¹ right."""
        if damping is not None:
            inner = J @ J.T + self.domain.eye(len(J)) * (damping * damping)
            return J.T @ self.solved(inner, right)
        rows = self.domain.array(shape.rows)
        J, right = rows @ J, rows @ right
        return self.solved(J.T @ J, J.T @ right) if shape.tall else J.T @ self.solved(J @ J.T, right)

    def solved(self, S: Array, right: Array) -> Array:
        """S⁻¹ right of a symmetric positive definite S, which is doubted where little of a row is left."""
        domain, n = self.domain, len(S)
        a, b, pivots = S.copy(), right.copy(), []
        for k in range(n):
            pivots.append(a[k, k])
            for i in range(k + 1, n):
                factor = a[k, i] / a[k, k]
                for j in range(i, n):  # its upper half
                    a[i, j] = a[i, j] - factor * a[k, j]
                b[i] = b[i] - factor * b[k]
        for k in reversed(range(n)):
            for j in range(k + 1, n):
                b[k] = b[k] - a[k, j] * b[j]
            b[k] = b[k] / a[k, k]
        for k in range(n):
            sound = domain.less(domain.const(0), pivots[k])
            self.doubts.append(domain.where(sound, S[k, k] / pivots[k] * domain.const(SCALE), domain.const(1e300)))
        return b


__all__ = ["Own", "OwnState", "Shape", "own_plan", "shape_of", "steered"]
