"""What a mechanism with loops answers, over any domain: the text of its compiled code, C, CasADi functions and counts.

Matrices and forces are those of independent coordinates u, v = G u̇; accelerations and joint forces those of all
joints.

    M* = GᵀMG,    C* = Gᵀ(C G + M Ġ),    bias* = Gᵀ(bias + M β),    gravity* = Gᵀ gravity,    passive* = Gᵀ passive
    M* ü = Gᵀ (tau − ID(q, v, β)),       a = G ü + β,               β = follow(γ)                     (4-26)-(4-32)

ID(q, v, β) = M β + C v + g − passive − Σ Jᵀw is one pass of inverse dynamics of the cut tree, Ġ_k = follow(J̇ G_k).
Drives A bear a motion by G_Aᵀτ_A = Gᵀ ID: exactly where they are as many as the mobility, by the least τ_A = W⁻¹G_A y
where more. The constraints bear λ = bear(ID − tau).

A text is written over `Closed`, which gives it G, follow and bear at q. Straight-line code cannot look for pivots, so
beside its answer each function has `diagnostics`, [‖φ‖², ‖J v‖², growth, leftover, narrow, ‖J a + γ‖²]
(`constraints.elimination`): the state is on the constraints where the first two vanish (and a where the last does),
and the answer may be believed where growth and narrow are below 1e10 and leftover below 1e-14.

An answer computed in float32 has one number beside it instead, `doubt`. With γ the growth of J's elimination, γ' that
in few digits (`rounding`), Γ = ‖G‖² in usual sizes (`spread`), σ the growths of further eliminations and
Σ (M_kk / d_k)² of every matrix that is solved (d its pivots), all squares of what rounding errors are amplified by, one
elimination after the other:

    doubt = (γ' + σ) / 1e7 + γ (Γ + σ) / 1e11                                                                  (1)
          + (‖φ‖² + ‖J v‖² / (1 + ‖v‖²) + ‖J a + γ_a‖² / (1 + ‖a‖² + ‖v‖⁴) + leftover) / 1e-12                 (2)

A state with a doubt of one or more, or none that is a number, is computed again in float64 (`model.single`). Measured
on 16,384 random states each of a Stewart platform, a delta and a 3-RRR robot: docs/howto/speed.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polybody.algebra.domains import Array, Domain
from polybody.algebra.rotations import cross
from polybody.constraints.blocks import eliminated
from polybody.constraints.coupling_forces import coupling_forces as tree_coupling_forces
from polybody.constraints.elimination import Elimination, squares
from polybody.constraints.motions import Motions
from polybody.constraints.plan import Plan
from polybody.constraints.sparse import carried_back, carried_out, product, sandwiched
from polybody.constraints.system import Constraints
from polybody.errors import PolybodyError
from polybody.formulations import denoc
from polybody.formulations.network.reactions import reactions as tree_reactions
from polybody.late import dataclass, field
from polybody.mechanism.closure_springs import wrench_on_b
from polybody.mechanism.kinematics import body_poses, body_twists, frame_jacobian, frame_pose
from polybody.mechanism.mechanism import GROUND, BodyFrame, Mechanism

DIAGNOSTICS = ("diagnostics", (6,))
DOUBT = ("doubt", (1,))
#: quantities whose text asks the drives for forces
DRIVEN = ("inverse_dynamics", "reactions", "coupling_forces")
#: of (1): eps of float32 times the root of the first is 2e-4, of the second 2e-2 (of the squares of entries)
GROWTH_SINGLE, SPREAD_SINGLE = 1e7, 1e11
#: square of what a state may be off the constraints, as in float64
OFF_SINGLE = 1e-12


@dataclass(eq=False)
class Closed:
    """A mechanism with its constraints, while one text is read: the cut tree, the rows, and which motions pass."""

    tree: Mechanism
    system: Constraints
    passing: Callable[[Array, Domain], Motions]  # J, domain -> motions
    driven: tuple[int, ...]
    shares: Plan | None = None  # of G_Aᵀ, where drives are as many as motions
    weights: Array | None = None  # of the drives' loads, where they are more
    growth: list[Any] = field(default_factory=list)
    rounding: list[Any] = field(default_factory=list)  # further growth that counts in few digits
    gaps: list[Any] = field(default_factory=list)
    solved: list[Array] = field(default_factory=list)  # matrices of the systems that were solved
    _known: list[tuple[Array, Array, Motions]] = field(default_factory=list)

    def jacobian(self, q: Array, domain: Domain) -> Array:
        return self._at(q, domain)[1]

    def motions(self, q: Array, domain: Domain) -> Motions:
        """The motions that pass at q; worked out once."""
        return self._at(q, domain)[2]

    def _at(self, q: Array, domain: Domain) -> tuple[Array, Array, Motions]:
        for known in self._known:
            if known[0] is q:
                return known
        J = self.system.jacobian(q, domain=domain)
        self._known.append((q, J, self.passing(J, domain)))
        return self._known[-1]

    def solve(self, matrix: Array, right: Array, domain: Domain) -> Array:
        """x of matrix · x = right, positive definite; `doubt` looks at its pivots."""
        self.solved.append(matrix)
        return domain.solve(matrix, right)

    def diagnostics(self, q: Array, v: Array | None, domain: Domain) -> Array:
        """[‖φ‖², ‖J v‖², growth, leftover, narrow, ‖J a + γ‖²] of what was read."""
        found, growth = self.motions(q, domain), domain.const(0)
        for term in (found.growth, *self.growth):
            growth = growth + term
        off = squares(self.system.residual(q, domain=domain), domain)
        slip = domain.const(0) if v is None else squares(self.system.velocity(q, v, domain=domain), domain)
        gap = squares(self.gaps, domain)
        return np.array([off, slip, growth, found.leftover, found.narrow, gap], dtype=domain.dtype)

    def doubt(self, q: Array, v: Array | None, a: Array | None, domain: Domain) -> Array:
        """[what an answer computed in float32 may be believed for where it is below one], (1) and (2) of the module."""
        found, one = self.motions(q, domain), domain.const(1)
        further, speed, push = (domain.const(0) for _ in range(3))
        different = {id(matrix): matrix for matrix in self.solved}.values()
        for term in (*self.growth, *self.rounding, *(condition(matrix, domain) for matrix in different)):
            further = further + term
        total = (found.rounding + further) * domain.const(1 / GROWTH_SINGLE)
        spread = found.spread + further
        total = total + found.growth * spread * domain.const(1 / SPREAD_SINGLE)
        off = squares(self.system.residual(q, domain=domain), domain)
        if v is not None:
            speed = squares(v, domain)
            off = off + squares(self.system.velocity(q, v, domain=domain), domain) / (one + speed)
        if a is not None:
            push = squares(a, domain)
            off = off + squares(self.gaps, domain) / (one + push + speed * speed)
        return np.array([total + (off + found.leftover) * domain.const(1 / OFF_SINGLE)], dtype=domain.dtype)


def condition(matrix: Array, domain: Domain) -> Any:
    """Σ (M_kk / d_k)² over the pivots d of a positive definite matrix: how much of its diagonal elimination leaves."""
    n, a, total = len(matrix), matrix.copy(), domain.const(0)
    for k in range(n):
        share = matrix[k, k] / a[k, k]
        total = total + share * share
        for i in range(k + 1, n):
            if not domain.is_zero(a[i, k]):
                factor = a[i, k] / a[k, k]  # as `Domain.solve` computes it: the same nodes of a graph
                a[i, k + 1 :] = a[i, k + 1 :] - factor * a[k, k + 1 :]
    return total


def along_plan(plan: Plan) -> Callable[[Array, Domain], Elimination]:
    """The motions by elimination along a plan."""
    return lambda J, domain: domain.once(("elimination", plan.label), (J,), lambda: Elimination(J, plan, domain))


# Terms in independent coordinates.


def mass_matrix(c: Closed, q: Array, *, domain: Domain) -> Array:
    """M* = GᵀMG."""
    G, M = c.motions(q, domain).G, denoc.mass_matrix(c.tree, q, domain=domain)
    return domain.once("sandwiched", (G, M), lambda: sandwiched(G, M, domain))


def inverse_mass_matrix(c: Closed, q: Array, *, domain: Domain) -> Array:
    """M*⁻¹."""
    M = mass_matrix(c, q, domain=domain)
    return c.solve(M, domain.eye(len(M)), domain)


def coriolis_matrix(c: Closed, q: Array, v: Array, *, domain: Domain) -> Array:
    """C* = Gᵀ(C G + M Ġ), (4-30); rows with right sides have none, for v is then not G u̇."""
    if c.system.mechanism.paced:
        raise PolybodyError("coriolis_matrix: velocity relations have right sides, so v = G u + b'; use bias_forces")
    found = c.motions(q, domain)
    J_rate = jacobian_change(c, q, v, domain)
    G_rate = np.array([found.follow(J_rate @ g) for g in found.G.T], dtype=domain.dtype).reshape(found.G.T.shape).T
    M = denoc.mass_matrix(c.tree, q, domain=domain)
    return found.G.T @ (denoc.coriolis_matrix(c.tree, q, v, domain=domain) @ found.G + M @ G_rate)


def bias_forces(c: Closed, q: Array, v: Array, *, domain: Domain) -> Array:
    """Gᵀ(C v + g + M β)."""
    found = c.motions(q, domain)
    beta = found.follow(c.system.bias(q, v, domain=domain))
    drift = denoc.mass_matrix(c.tree, q, domain=domain) @ beta
    return carried_back(found.G, denoc.bias_forces(c.tree, q, v, domain=domain) + drift, domain)


def gravity_forces(c: Closed, q: Array, *, domain: Domain) -> Array:
    """Gᵀ g."""
    return carried_back(c.motions(q, domain).G, denoc.gravity_forces(c.tree, q, domain=domain), domain)


def passive_forces(c: Closed, q: Array, v: Array, *, domain: Domain) -> Array:
    """Gᵀ of what springs and dampers exert."""
    return carried_back(c.motions(q, domain).G, denoc.passive_forces(c.tree, q, v, domain=domain), domain)


def task_space_inertia(c: Closed, frame: BodyFrame, q: Array, *, domain: Domain) -> Array:
    """(J_x M*⁻¹ J_xᵀ)⁻¹ with J_x = J_frame G, 6×6."""
    J = frame_jacobian(c.tree, q, frame, domain=domain) @ c.motions(q, domain).G
    return domain.solve(J @ inverse_mass_matrix(c, q, domain=domain) @ J.T, domain.eye(6))


# Motions and forces of all joints.


def forward_dynamics(
    c: Closed, q: Array, v: Array, tau: Array, wrenches: Array | None = None, *, domain: Domain
) -> Array:
    """a under tau."""
    found = c.motions(q, domain)
    beta = found.follow(c.system.bias(q, v, domain=domain))
    needed = denoc.inverse_dynamics(c.tree, q, v, beta, wrenches, domain=domain)
    force = carried_back(found.G, tau - needed, domain)
    u = c.solve(mass_matrix(c, q, domain=domain), force, domain) if len(force) else force
    return carried_out(found.G, u, beta, domain)


def inverse_dynamics(
    c: Closed, q: Array, v: Array, a: Array, wrenches: Array | None = None, *, domain: Domain
) -> Array:
    """tau at the driven velocities."""
    needed = denoc.inverse_dynamics(c.tree, q, v, a, wrenches, domain=domain)
    c.gaps.extend(c.jacobian(q, domain) @ a + c.system.bias(q, v, domain=domain))
    return drive_forces(c, q, needed, domain)


def drive_forces(c: Closed, q: Array, needed: Array, domain: Domain) -> Array:
    """tau of the drives that does on every motion what joint forces `needed` do: G_Aᵀτ_A = Gᵀ needed."""
    G = c.motions(q, domain).G
    force = carried_back(G, needed, domain)
    tau, GA = domain.zeros(c.tree.nv), G[list(c.driven)]
    if c.shares is not None:
        shared = eliminated(GA.T, c.shares, domain)
        tau[list(c.driven)] = shared.follow(-force)
        c.growth.append(shared.growth)
        c.rounding.append(shared.rounding)
    elif len(force):
        weighted, inner = _weighted(c, GA, domain)
        tau[list(c.driven)] = weighted @ c.solve(inner, force, domain)
    # Where the drives cannot do it, what they would need is out of all proportion: (‖τ‖ ‖G‖ / ‖Gᵀ ID‖)².
    asked = squares(force, domain) + domain.const(1e-200)
    c.growth.append(squares(tau, domain) * squares(G.ravel(), domain) / asked)
    return tau


def _weighted(c: Closed, GA: Array, domain: Domain) -> tuple[Array, Array]:
    """(W⁻¹G_A, G_AᵀW⁻¹G_A)."""
    weighted = GA if c.weights is None else (GA.T / domain.array(c.weights)).T
    return weighted, GA.T @ weighted


def constraint_loads(
    c: Closed, q: Array, v: Array, tau: Array, wrenches: Array | None = None, *, domain: Domain
) -> tuple[Array, Array]:
    """(a, λ) of the motion under tau: of all λ the least, in the order of the constraints' rows."""
    a = forward_dynamics(c, q, v, tau, wrenches, domain=domain)
    found = c.motions(q, domain)
    return a, found.least(found.bear(denoc.inverse_dynamics(c.tree, q, v, a, wrenches, domain=domain) - tau))


def coupling_forces(
    c: Closed, q: Array, v: Array, a: Array, wrenches: Array | None = None, *, domain: Domain
) -> Array:
    """What linear couplings exert on their followers, the constraints' loads on the bodies counted in."""
    found = c.motions(q, domain)
    needed = denoc.inverse_dynamics(c.tree, q, v, a, wrenches, domain=domain)
    c.gaps.extend(c.jacobian(q, domain) @ a + c.system.bias(q, v, domain=domain))
    tau = drive_forces(c, q, needed, domain)
    _, totals = c.system.wrenches(q, found.least(found.bear(needed - tau)), domain=domain)
    on_frames = domain.zeros(len(c.tree.frames), 6)
    for link, total in zip(c.system.loaded_links, totals, strict=True):
        on_frames[c.tree.frame_index[link]] = total
    borne = _on_bodies(c.tree, q, on_frames, domain)
    return tree_coupling_forces(c.tree, q, v, a, borne if wrenches is None else borne + wrenches, domain=domain)


def reactions(
    c: Closed, q: Array, v: Array, a: Array, loads: Array | None = None, *, axes: str = "world", domain: Domain
) -> tuple[Array, Array]:
    """(wrench of every joint on its child, wrench of every loop's cut joint on body b at b's frame), (…, 6) each.

    `loads` (frames, 6) are wrenches on frames. Active joints drive, and redundant constraints bear the least.
    """
    m = c.tree
    found = c.motions(q, domain)
    body = None if loads is None else _on_bodies(m, q, loads, domain)
    needed = denoc.inverse_dynamics(m, q, v, a, body, domain=domain)
    c.gaps.extend(c.jacobian(q, domain) @ a + c.system.bias(q, v, domain=domain))
    tau = drive_forces(c, q, needed, domain)
    borne, totals = c.system.wrenches(q, found.least(found.bear(needed - tau)), domain=domain)
    every = domain.zeros(len(m.frames), 6) if loads is None else loads.copy()
    for link, total in zip(c.system.loaded_links, totals, strict=True):
        every[m.frame_index[link]] = every[m.frame_index[link]] + total
    borne = borne + _of_closure_springs(c, q, v, domain)
    if axes == "joint":
        poses = body_poses(m, q, domain=domain)
        for k, pair in enumerate(c.system.pairs):
            R, _ = frame_pose(pair.b, poses, domain=domain)
            borne[k] = np.concatenate([R.T @ borne[k, :3], R.T @ borne[k, 3:]])
    return tree_reactions(m, q, v, a, every, axes=axes, domain=domain), borne


def _of_closure_springs(c: Closed, q: Array, v: Array, domain: Domain) -> Array:
    """(pairs, 6): what springs and dampers in cut joints exert on b, a part of the loop's whole wrench."""
    result = domain.zeros(len(c.system.pairs), 6)
    if c.tree.closure_springs:
        poses, twists = body_poses(c.tree, q, domain=domain), body_twists(c.tree, q, v, domain=domain)
        rows = {pair.name: k for k, pair in enumerate(c.system.pairs)}
        for element in c.tree.closure_springs:
            result[rows[element.name]], _ = wrench_on_b(element, poses, twists, domain=domain)
    return result


def _on_bodies(m: Mechanism, q: Array, loads: Array, domain: Domain) -> Array:
    """Wrenches on frames (frames, 6) as wrenches at the bodies' origins, world axes."""

    poses, result = body_poses(m, q, domain=domain), domain.zeros(len(m.bodies), 6)
    for frame, wrench in zip(m.frames, loads, strict=True):
        if frame.body != GROUND:
            lever = poses[frame.body][0] @ domain.array(frame.position)
            moved = np.concatenate([wrench[:3] + cross(lever, wrench[3:]), wrench[3:]])
            result[frame.body] = result[frame.body] + moved
    return result


def projection_step(c: Closed, q: Array, v: Array, *, domain: Domain) -> tuple[Array, Array]:
    """(step of q, change of v) with φ + J step = 0, J (v + change) = 0: Newton's way back to the constraints."""
    found = c.motions(q, domain)
    return found.follow(c.system.residual(q, domain=domain)), found.follow(c.system.velocity(q, v, domain=domain))


# Derivatives along the constraints.


def jacobian_change(c: Closed, q: Array, d: Array, domain: Domain) -> Array:
    """dJ along the tangent vector d."""
    return jacobian_changes(c, q, [d], domain)[0]


def jacobian_changes(c: Closed, q: Array, directions: Sequence[Array], domain: Domain) -> list[Array]:
    """dJ along each of the tangent vectors."""
    result = []
    for changes in c.system.entry_changes(q, directions, domain=domain):
        J = domain.zeros(len(c.system), c.tree.nv)
        for row, column, change in zip(*c.system.filled, changes, strict=True):
            J[row, column] = J[row, column] + change
        result.append(J)
    return result


@dataclass(frozen=True, eq=False)
class Neighbours:
    """How a motion ID(q, v, a) = tau + Jᵀλ changes with displacements δu and velocities δu̇.

    A neighbouring state is reached by δu and δu̇; the other joints follow. With T_k = dJ along G_k,

        δφ = G δu,    δv = G δu̇ + V δu,     V_k = follow(T_k v)                        since J v = b stays
        δa = G δü + W_q δu + W_v δu̇         W_q,k = follow(T_k a + dγ[G_k, V_k])       since J a + γ = 0 stays
                                            W_v,k = V_k + follow(J̇ G_k)
        M* δü = Gᵀδtau − R_q δu − R_v δu̇    R_q,k = Gᵀ(dID[G_k, V_k, W_q,k] − T_kᵀλ),   R_v,k = Gᵀ dID[0, G_k, W_v,k]

    λ is not unique where rows are redundant, but GᵀT_kᵀλ is.
    """

    V: Array
    W_q: Array
    W_v: Array
    R_q: Array
    R_v: Array
    changes: list[Array]  # T_k


def neighbours(
    c: Closed, q: Array, v: Array, a: Array, load: Array, wrenches: Array | None, domain: Domain
) -> Neighbours:
    """The neighbourhood of a motion; load = ID(q, v, a) − tau is what the constraints bear."""
    found = c.motions(q, domain)
    G, multipliers, J_rate = found.G, found.bear(load), jacobian_change(c, q, v, domain)
    ways = list(G.T)
    changes = jacobian_changes(c, q, ways, domain)
    if c.system.mechanism.paced:
        slips = [c.system.velocity_change(q, v, g, domain=domain) for g in ways]
    else:
        slips = [T @ v for T in changes]
    V = [found.follow(slip) for slip in slips]
    drifts = c.system.bias_changes(q, v, list(zip(ways, V, strict=True)), domain=domain)
    W_q = [found.follow(T @ a + drift) for T, drift in zip(changes, drifts, strict=True)]
    W_v = [x + found.follow(J_rate @ g) for x, g in zip(V, ways, strict=True)]
    by_q, by_v, M = denoc.inverse_dynamics_derivatives(c.tree, q, v, a, wrenches, domain=domain)
    R_q = [
        by_q @ g + by_v @ x + M @ y - T.T @ multipliers for g, x, y, T in zip(ways, V, W_q, changes, strict=True)
    ]
    R_v = [by_v @ g + M @ x for g, x in zip(ways, W_v, strict=True)]
    parts = [V, W_q, W_v, R_q, R_v]
    n, m = G.shape
    columns = [np.array(p, dtype=domain.dtype).reshape(m, n).T for p in parts]
    back = [
        np.array([carried_back(G, x, domain) for x in R.T], dtype=domain.dtype).reshape(m, m).T for R in columns[3:]
    ]
    return Neighbours(columns[0], columns[1], columns[2], back[0], back[1], changes)


def motion_derivatives(
    c: Closed, q: Array, v: Array, tau: Array, wrenches: Array | None = None, *, domain: Domain
) -> tuple[Array, ...]:
    """(da/du, da/du̇, da/dtau, G, V): of all accelerations, and how all joints follow."""
    found = c.motions(q, domain)
    G, m = found.G, found.G.shape[1]
    a = forward_dynamics(c, q, v, tau, wrenches, domain=domain)
    load = denoc.inverse_dynamics(c.tree, q, v, a, wrenches, domain=domain) - tau
    near = neighbours(c, q, v, a, load, wrenches, domain)
    right = np.concatenate([-near.R_q, -near.R_v, G.T], axis=1)
    u = c.solve(mass_matrix(c, q, domain=domain), right, domain) if m else right
    moved = [product(G, x, domain) for x in (u[:, :m], u[:, m : 2 * m], u[:, 2 * m :])]
    return moved[0] + near.W_q, moved[1] + near.W_v, moved[2], G, near.V


def forward_dynamics_derivatives(
    c: Closed, q: Array, v: Array, tau: Array, wrenches: Array | None = None, *, domain: Domain
) -> tuple[Array, ...]:
    """(da/du, da/du̇, da/dtau)."""
    return motion_derivatives(c, q, v, tau, wrenches, domain=domain)[:3]


def inverse_dynamics_derivatives(
    c: Closed, q: Array, v: Array, a: Array, wrenches: Array | None = None, *, domain: Domain
) -> tuple[Array, ...]:
    """(dtau/du, dtau/du̇, dtau/dü), nv×m with zeros where nothing drives.

    G_Aᵀ δτ_A = R_q δu + R_v δu̇ + M* δü, δτ_A = W⁻¹(G_A δy + δG_A y), δG y = Σ follow(T_k G y) δu_k
    """
    found = c.motions(q, domain)
    needed = denoc.inverse_dynamics(c.tree, q, v, a, wrenches, domain=domain)
    c.gaps.extend(c.jacobian(q, domain) @ a + c.system.bias(q, v, domain=domain))
    tau = drive_forces(c, q, needed, domain)
    near = neighbours(c, q, v, a, needed - tau, wrenches, domain)
    G, driven = found.G, list(c.driven)
    GA, m = G[driven], G.shape[1]
    weighted, inner = _weighted(c, GA, domain)
    own = domain.zeros(len(driven), m)
    if len(driven) > m:
        y = c.solve(inner, GA.T @ tau[driven], domain)
        moved = np.array([found.follow(T @ (G @ y)) for T in near.changes], dtype=domain.dtype).reshape(m, -1).T
        own = moved[driven] if c.weights is None else (moved[driven].T / domain.array(c.weights)).T
    wanted = (near.R_q - GA.T @ own, near.R_v, mass_matrix(c, q, domain=domain))
    parts = [weighted @ c.solve(inner, x, domain) for x in wanted] if m else [domain.zeros(len(driven), 0)] * 3
    results = []
    for k, part in enumerate(parts):
        whole = domain.zeros(c.tree.nv, m)
        whole[driven] = part + own if k == 0 else part
        results.append(whole)
    return tuple(results)


# The implicit and the augmented form: no ranks are decided.


def implicit_residual(
    c: Closed, q: Array, v: Array, a: Array, tau: Array, multipliers: Array, *, domain: Domain
) -> tuple[Array, Array]:
    """(ID(q, v, a) − tau − Jᵀλ, J a + γ): both vanish along motions."""
    J = c.system.jacobian(q, domain=domain)
    balance = denoc.inverse_dynamics(c.tree, q, v, a, domain=domain) - tau
    balance = balance - J.T @ multipliers if len(J) else balance
    return balance, (J @ a + c.system.bias(q, v, domain=domain)) if len(J) else domain.zeros(0)


def augmented_system(c: Closed, q: Array, v: Array, tau: Array, *, domain: Domain) -> tuple[Array, Array]:
    """(K, r) of K [a; −λ] = r: K = [M Jᵀ; J 0], r = [tau − ID(q, v, 0); −γ]."""
    J, n = c.system.jacobian(q, domain=domain), c.tree.nv
    K = domain.zeros(n + len(J), n + len(J))
    K[:n, :n] = denoc.mass_matrix(c.tree, q, domain=domain)
    K[n:, :n], K[:n, n:] = J, J.T
    force = tau - denoc.inverse_dynamics(c.tree, q, v, domain.zeros(n), domain=domain)
    return K, np.concatenate([force, -c.system.bias(q, v, domain=domain)]) if len(J) else force


__all__ = [
    "DIAGNOSTICS",
    "DOUBT",
    "DRIVEN",
    "Closed",
    "along_plan",
    "augmented_system",
    "bias_forces",
    "constraint_loads",
    "coriolis_matrix",
    "coupling_forces",
    "forward_dynamics",
    "forward_dynamics_derivatives",
    "gravity_forces",
    "implicit_residual",
    "inverse_dynamics",
    "inverse_dynamics_derivatives",
    "inverse_mass_matrix",
    "mass_matrix",
    "motion_derivatives",
    "passive_forces",
    "projection_step",
    "reactions",
    "task_space_inertia",
]
