"""The inverse problem: a motion of the object and internal loads are wanted, joint forces are asked for.

Unknown are x = (a of the columns that were not asked for, the loads f on the object). Linear in them are

    A a = γ                                  the grips stay closed                    rows "closure"
    (M a + bias + Aᵀf)_k = tau_k             on the object's columns                   rows "object"
                                             and on passive ones                       rows "passive"

(A's sign: f acts on the object.) Among the solutions the one nearest to the wanted loads and to the wanted arm motion
is taken; tau of the other columns follows, at a cost linear in the number of arms and joints.

Which rows are independent is found once for a choice of columns (`plan_inverse`), at closed states in general position:
at closed states, since there rows depend on each other that do not elsewhere (internal loads do nothing to a common
base).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.formulations.operators.hybrid import inverse_dynamics
from polybody.formulations.operators.sweeps import composite_mass_matrix
from polybody.grasping.consistency import closed_configuration, closure_terms
from polybody.grasping.grips import Holding, closure_matrix
from polybody.grasping.loads import equal_shares, internal_basis
from polybody.grasping.nearest import Order, nearest, nearest_fixed, plan_rows
from polybody.mechanism.kinematics import integrate


@dataclass(frozen=True)
class Asked:
    """Which columns of v have their acceleration given, and which must get by with the force given there."""

    fixed: tuple[bool, ...]
    passive: tuple[int, ...]  # the object's columns not among them
    of_object: tuple[int, ...]

    @property
    def free(self) -> list[int]:
        return [k for k, fixed in enumerate(self.fixed) if not fixed]

    @property
    def held(self) -> list[int]:
        """The columns with an equation, in the order of the rows."""
        return [*self.of_object, *self.passive]

    def levels(self, closures: int) -> list[range]:
        """The rows of closure, of the object, of passive columns."""
        last = closures + len(self.of_object)
        return [range(closures), range(closures, last), range(last, last + len(self.passive))]

    def row(self, closures: int, k: int) -> tuple[str, int]:
        """("closure", row of A), ("object", column of v) or ("passive", column of v)."""
        if k < closures:
            return "closure", k
        column = self.held[k - closures]
        return ("object" if column in self.of_object else "passive"), column


def asked(grasp: Holding, whole: bool, active: Array) -> Asked:
    """The columns of a wanted motion of the object alone, or of all of them."""
    joint, nv = grasp.mechanism.joints[grasp.object], grasp.mechanism.nv
    of_object = tuple(range(joint.v.start, joint.v.stop))
    fixed = tuple(whole or k in of_object for k in range(nv))
    return Asked(fixed, tuple(k for k in range(nv) if not active[k] and k not in of_object), of_object)


@dataclass(frozen=True, eq=False)
class Equations:
    """E x = right, and the wanted x."""

    E: Array
    right: Array
    start: Array


def equations(
    grasp: Holding, lean: Holding, wants: Asked, q: Array, v: Array, a: Array, internal: Array, tau: Array,
    *, domain: Domain = FLOAT,
) -> Equations:  # fmt: skip
    """The equations of one state; `lean` is the grasp itself, or that of its reduced mechanism."""
    m, free, held = lean.mechanism, wants.free, wants.held
    A, gamma = closure_terms(lean, q, v, domain=domain)
    closures, k = A.shape[0], len(free)
    E = domain.zeros(closures + len(held), k + closures)
    E[:closures, :k] = A[:, free]
    if held:
        E[closures:, k:] = A[:, held].T
        if free:
            E[closures:, :k] = composite_mass_matrix(m, q, domain=domain)[np.ix_(held, free)]
    known = domain.zeros(m.nv)
    for j, fixed in enumerate(wants.fixed):
        if fixed:
            known[j] = a[j]
    lacking = tau - inverse_dynamics(m, q, v, known, domain=domain)
    right = np.concatenate([gamma - A @ known, lacking[held]])
    return Equations(E, right, np.concatenate([a[free], _wanted_loads(grasp, lean, q, v, a, internal, tau, domain)]))


def _wanted_loads(
    grasp: Holding, lean: Holding, q: Array, v: Array, a: Array, internal: Array, tau: Array, domain: Domain
) -> Array:
    """Equal shares of what the object's own columns need, whatever joint it moves by, and the internal loads."""
    joint = grasp.mechanism.joints[grasp.object]
    needed = (inverse_dynamics(lean.mechanism, q, v, a, domain=domain) - tau)[joint.v]
    Phi = joint.model.velocity_map(q[joint.q], domain=domain)
    wrench = Phi @ domain.solve(Phi.T @ Phi, needed)
    f = domain.array(equal_shares(grasp)) @ wrench
    return f if grasp.m == 1 else f + domain.array(internal_basis(grasp)) @ internal


def answered(
    lean: Holding, wants: Asked, q: Array, v: Array, a: Array, tau: Array, x: Array, domain: Domain
) -> tuple[Array, Array, Array]:
    """(tau, a, f_e) of all columns, from the solution."""
    k = len(wants.free)
    a, f = a.copy(), x[k:]
    a[wants.free] = x[:k]
    A = closure_matrix(lean.mechanism, q, lean.grips, lean.object, domain=domain)
    forces = inverse_dynamics(lean.mechanism, q, v, a, domain=domain) + A.T @ f
    forces[wants.held] = tau[wants.held]
    return forces, a, f.reshape(-1, 6)


def closed_inverse(
    grasp: Holding, lean: Holding, wants: Asked, rows: Order, q: Array, v: Array, a: Array, internal: Array,
    tau: Array, *, domain: Domain = FLOAT,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    """(tau, a, f_e (m×6), trust) by the independent `rows`: the text of the kernel.

    Trust is [growth, Σ residual² of all rows, Σ right² + Σ x²].
    """
    given = equations(grasp, lean, wants, q, v, a, internal, tau, domain=domain)
    x, growth = nearest_fixed(given.E, given.right, given.start, rows, domain)
    rest = given.E @ x - given.right
    trust = np.array([growth, rest @ rest, given.right @ given.right + x @ x], dtype=domain.dtype)
    return *answered(lean, wants, q, v, a, tau, x, domain), trust


@dataclass(frozen=True, eq=False)
class Ranked:
    """One state's answer, the rank of its equations, and the row that cannot be met: (kind, index, residual)."""

    tau: Array
    a: Array
    f_e: Array
    rank: int
    failed: tuple[str, int, float] | None


def ranked_inverse(
    grasp: Holding, wants: Asked, q: Array, v: Array, a: Array, internal: Array, tau: Array
) -> Ranked:
    """The answer of one state, whatever its rank."""
    given = equations(grasp, grasp, wants, q, v, a, internal, tau)
    closures = 6 * grasp.m
    x, rank = nearest(given.E, given.right, given.start, wants.levels(closures))
    rest = given.E @ x - given.right
    size = 1.0 + np.abs(given.right).max() + np.abs(given.E).max() * np.abs(x).max()
    worst = int(np.argmax(np.abs(rest)))
    failed = None
    if not abs(rest[worst]) <= 1e-8 * size:
        failed = (*wants.row(closures, worst), float(rest[worst]))
    forces, a, f_e = answered(grasp, wants, q, v, a, tau, x, FLOAT)
    return Ranked(forces, a, f_e, int(rank), failed)


def plan_inverse(grasp: Holding, wants: Asked, q: Array) -> Order:
    """The rows that are independent at closed states in general position, near q."""
    m, rng, best = grasp.mechanism, np.random.default_rng(7), Order((), ())
    arms = [range(6 * j, 6 * j + 6) for j in range(grasp.m)]
    for reach in (0.0, 0.1, 0.3):
        at, left = closed_configuration(grasp, integrate(m, q, reach * rng.normal(size=m.nv)))
        if left > 1e-9:
            continue
        v, a, tau = rng.normal(size=(3, m.nv))
        internal = np.zeros(6 * (grasp.m - 1))
        rows = plan_rows(equations(grasp, grasp, wants, at, v, a, internal, tau).E, arms)
        best = rows if len(rows) > len(best) else best
    return best


__all__ = ["Asked", "Ranked", "asked", "closed_inverse", "plan_inverse", "ranked_inverse"]
