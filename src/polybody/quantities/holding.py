"""A held object, over any domain: arms and object as a mechanism whose grips are loops of kind "fixed".

A grip's rows say how frame b of the object moves against the hand's frame a, so its six multipliers are the wrench f_e
of the hand on the object, in the hand's axes. Nearest of all x that meet J x + r = 0, in the metric M,

    x = y − G (GᵀMG)⁻¹ GᵀM y       with y = follow(r), any x that does

takes a configuration back to the grips (M = 1), and, with J v⁺ = 0 and M the mass matrix, is the velocity after the
hands took hold: M (v⁺ − v) = Jᵀ I with I the impulses, ½ (v − v⁺)ᵀM(v − v⁺) = −½ IᵀJ v the energy lost.

The inverse problem: from wanted accelerations a and loads f, corrections d = (δ, φ) of those a that may change and of
f,

    J (a + δ) + γ = 0                                       the grips stay closed
    (ID(a + δ) − Jᵀ(f + φ))_k = tau_k                       on the object's columns and on passive ones

or E d + r = 0, by the same elimination, the nearest; tau of the other columns follows. Wanted loads are equal shares of
what the object's columns need, and internal loads. Where no load reaches a passive column but through the object (arms
on a common base), these loads are met as they are, φ = 0, and E has the columns of δ only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polybody.algebra.domains import Array, Domain
from polybody.constraints.elimination import Elimination, squares
from polybody.constraints.motions import Motions
from polybody.constraints.place import Place
from polybody.constraints.plan import Plan
from polybody.constraints.sparse import carried_back, carried_out, sandwiched
from polybody.constraints.system import Constraints
from polybody.formulations import denoc
from polybody.mechanism.mechanism import Mechanism
from polybody.quantities.constrained import Closed, constraint_loads
from polybody.quantities.quantity import Quantity


@dataclass(frozen=True)
class Held:
    """Body `object` of a mechanism, held by the loops `grips`."""

    object: int
    grips: tuple[str, ...]


def nearest(found: Motions, y: Array, domain: Domain) -> Array:
    """The least x with J x = J y."""
    if not found.G.shape[1]:
        return y
    inner = sandwiched(found.G, domain.eye(len(y)), domain)
    return carried_out(found.G, domain.solve(inner, -carried_back(found.G, y, domain)), y, domain)


def openings(system: Constraints, held: Held, q: Array, *, domain: Domain) -> Array:
    """(grips, 3): sin² and 1 − cos of the angle by which each grip is turned open, and its distance squared."""
    place, half = Place(system.mechanism, q, domain=domain), domain.const(1) / domain.const(2)
    rows = []
    for pair in system.pairs:
        if pair.name in held.grips:
            R, p = place.relative_pose(pair.a, pair.b)
            sines = [(R[2, 1] - R[1, 2]) * half, (R[0, 2] - R[2, 0]) * half, (R[1, 0] - R[0, 1]) * half]
            versine = (domain.const(3) - R[0, 0] - R[1, 1] - R[2, 2]) * half
            rows.append([squares(sines, domain), versine, squares(p, domain)])
    return np.array(rows, dtype=domain.dtype)


def opening(system: Constraints, held: Held, q: Array, *, domain: Domain) -> Array:
    """Σ over grips of (2 sin(angle/2))² + distance²: a half turn, whose sine vanishes, counts as open."""
    total = sum(s + c * c + p for s, c, p in openings(system, held, q, domain=domain))
    return np.array([total], dtype=domain.dtype)


def nearest_step(c: Closed, q: Array, *, domain: Domain) -> Array:
    """The least step of q with φ + J step = 0."""
    found = c.motions(q, domain)
    return nearest(found, found.follow(c.system.residual(q, domain=domain)), domain)


def captured(c: Closed, q: Array, v: Array, *, domain: Domain) -> tuple[Array, Array, Array]:
    """(v⁺, impulses of the constraints' rows, energy lost) where the constraints take hold at once."""
    found, M = c.motions(q, domain), denoc.mass_matrix(c.tree, q, domain=domain)
    momentum, after = M @ v, domain.zeros(len(v))
    if found.G.shape[1]:
        u = domain.solve(sandwiched(found.G, M, domain), carried_back(found.G, momentum, domain))
        after = carried_out(found.G, u, after, domain)
    impulses = found.least(found.bear(M @ after - momentum))
    lost = -(impulses @ c.system.velocity(q, v, domain=domain)) / domain.const(2)
    return after, impulses, np.array([lost], dtype=domain.dtype)


def object_acceleration(m: Mechanism, body: int, q: Array, v: Array, a: Array, *, domain: Domain) -> Array:
    """V̇° of a body that its own joint moves from the ground, 6 numbers in the body's axes."""
    joint = m.joints[body]
    rate = joint.model.velocity_map_rate(q[joint.q], v[joint.v], domain=domain) @ v[joint.v]
    return joint.model.velocity_map(q[joint.q], domain=domain) @ a[joint.v] + rate


def motion(held: Held) -> Quantity:
    """(a, multipliers, V̇° of the object, opening) under joint forces."""

    def text(
        c: Closed, q: Array, v: Array, tau: Array, wrenches: Array | None = None, *, domain: Domain
    ) -> tuple[Array, ...]:
        a, multipliers = constraint_loads(c, q, v, tau, wrenches, domain=domain)
        # The reduced mechanism may turn the object's own frame.
        moved = object_acceleration(c.system.mechanism, held.object, q, v, a, domain=domain)
        return a, multipliers, moved, opening(c.system, held, q, domain=domain)

    results = (("a", ("nv",)), ("multipliers", ("rows",)), ("object_acceleration", (6,)), ("opening", ()))
    return _constrained(f"held_motion:{held.object}:{len(held.grips)}", ("q", "v", "tau"), results, text)


def grip_openings(system: Constraints, held: Held) -> Quantity:
    """`openings` of any configuration."""
    results = (("openings", (len(held.grips), 3)),)
    return Quantity(f"grip_openings:{':'.join(held.grips)}", ("q",), results,
                    lambda _, q, *, domain: openings(system, held, q, domain=domain))  # fmt: skip


def _constrained(name: str, arguments: tuple[str, ...], results: tuple, text: object) -> Quantity:
    """A quantity that a mechanism without constraints is never asked for."""
    loaded = "tau" in arguments
    return Quantity(name, arguments, results, _refused, text, reduced=True, loaded=loaded)  # type: ignore[arg-type]


def _refused(*_: object, domain: Domain) -> Array:
    raise NotImplementedError("this quantity belongs to mechanisms with constraints")


NEAREST_STEP = _constrained("nearest_step", ("q",), (("step", ("nv",)),), nearest_step)
CAPTURED = _constrained(
    "captured", ("q", "v"), (("v", ("nv",)), ("impulses", ("rows",)), ("energy_lost", ())), captured
)


# The inverse problem.


@dataclass(frozen=True)
class Wanted:
    """Which columns of v have their acceleration given, which must get by with the force given there.

    `settled`: the wanted loads are met as they are. `plan` eliminates E, of rank `rank` with all loads unknown.
    """

    held: Held
    of_object: tuple[int, ...]
    passive: tuple[int, ...]  # the object's columns not among them
    fixed: tuple[bool, ...]
    settled: bool = False
    plan: Plan | None = None
    rank: int = 0

    @property
    def free(self) -> list[int]:
        return [k for k, fixed in enumerate(self.fixed) if not fixed]

    @property
    def balanced(self) -> list[int]:
        """The columns with an equation of balance, in the order of the rows; settled loads balance the object."""
        return [*self.passive] if self.settled else [*self.of_object, *self.passive]

    def matrix(self, J: Array, M: Array, domain: Domain) -> Array:
        """E: rows of closure, then of balance; columns δ, then φ unless settled."""
        free, balanced, rows = self.free, self.balanced, len(J)
        E = domain.zeros(rows + len(balanced), len(free) + (0 if self.settled else rows))
        E[:rows, : len(free)] = J[:, free]
        E[rows:, : len(free)] = M[np.ix_(balanced, free)]
        if not self.settled:
            E[rows:, len(free) :] = -J[:, balanced].T
        return E


def wanted_loads(
    system: Constraints, wants: Wanted, shares: Array, q: Array, needed: Array, multipliers: Array, domain: Domain
) -> Array:
    """Equal shares of what the object's columns need, whatever joint it moves by, and the given loads beside them.

    `shares` (rows, 6) are the loads of a unit wrench on the object.
    """
    joint = system.mechanism.joints[wants.held.object]
    Phi = joint.model.velocity_map(q[joint.q], domain=domain)
    wrench = Phi @ domain.solve(Phi.T @ Phi, needed)
    return multipliers + domain.array(shares) @ wrench


def gaps(
    tree: Mechanism, system: Constraints, wants: Wanted, shares: Array, J: Array,
    q: Array, v: Array, a: Array, tau: Array, multipliers: Array, *, domain: Domain,
) -> tuple[Array, Array]:  # fmt: skip
    """(r, f): what the wanted accelerations leave of closure and balance, and the wanted loads."""
    lacking = denoc.inverse_dynamics(tree, q, v, a, domain=domain) - tau
    f = wanted_loads(system, wants, shares, q, lacking[list(wants.of_object)], multipliers, domain)
    open_by = J @ a + system.bias(q, v, domain=domain)
    return np.concatenate([open_by, (lacking - J.T @ f)[wants.balanced]]), f


def applied(
    tree: Mechanism, wants: Wanted, J: Array, q: Array, v: Array, a: Array, tau: Array, f: Array, d: Array, *,
    domain: Domain,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """(tau, a, f) of all columns with the corrections d made."""
    free, a = wants.free, a.copy()
    a[free] = a[free] + d[: len(free)]
    if not wants.settled:
        f = f + d[len(free) :]
    forces = denoc.inverse_dynamics(tree, q, v, a, domain=domain) - J.T @ f
    given = [*wants.of_object, *wants.passive]
    forces[given] = tau[given]
    return forces, a, f


def forces(
    tree: Mechanism, system: Constraints, wants: Wanted, shares: Array,
    q: Array, v: Array, a: Array, tau: Array, multipliers: Array, *, domain: Domain,
) -> tuple[Array, ...]:  # fmt: skip
    """(tau, a, multipliers, opening, diagnostics) along the plan; the last of these is Σ (what is left of E d + r)²
    over 1 + Σ r² + Σ d²."""
    assert wants.plan is not None
    J = system.jacobian(q, domain=domain)
    r, f = gaps(tree, system, wants, shares, J, q, v, a, tau, multipliers, domain=domain)
    coupled = wants.balanced and wants.free
    n = tree.nv
    M = denoc.mass_matrix(tree, q, domain=domain) if coupled else domain.zeros(n, n)
    E = wants.matrix(J, M, domain)
    found = Elimination(E, wants.plan, domain)
    d = nearest(found, found.follow(r), domain)
    left = r + E @ d if E.shape[1] else r
    size = domain.const(1) + squares(r, domain) + squares(d, domain)
    off = squares(system.residual(q, domain=domain), domain)
    slip = squares(system.velocity(q, v, domain=domain), domain)
    told = [off, slip, found.growth, found.leftover, found.narrow, squares(left, domain) / size]
    values = applied(tree, wants, J, q, v, a, tau, f, d, domain=domain)
    return *values, opening(system, wants.held, q, domain=domain), np.array(told, dtype=domain.dtype)


__all__ = [
    "CAPTURED", "NEAREST_STEP", "Held", "Wanted", "applied", "captured", "forces", "gaps", "grip_openings", "motion",
    "nearest", "nearest_step", "object_acceleration", "opening", "openings", "wanted_loads",
]
