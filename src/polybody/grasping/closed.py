"""Forward dynamics of arms that hold a common object: Table I with (47)-(49) corrected, in O(m n).

The paper solves

    V̇° = (M_o + WᵀH⁻¹W)⁻¹ {WᵀH⁻¹ V̇_open − b_o},     f_e = H⁻¹ (V̇_open − W V̇°)            (49), (47), corrected

with H of all arms at once, 6m×6m. Here the same elimination goes joint by joint, so that H is never formed. At a body
i of the tree, with ν = V̇° and y the loads of the arms (on the object), everything beyond is

    f_i = P V̇_i + z + L ν + E y        the wrench that joint i transmits
    0   = EᵀV̇_i + c − Wν − S y         the grips stay closed
    0   = Lᵀ V̇_i − Wᵀy + Q ν + u       the object's balance (33): Q starts as M_o, u as b_o

Passing joint i inwards (D = ΦᵀPΦ + A, G = PΦD⁻¹, l = ΦᵀL, e = ΦᵀE, ε = τ − Φᵀ(Pζ + z)):

    P⁺ = P − G D Gᵀ      z⁺ = z + Pζ + Gε      L⁺ = L − G l       E⁺ = E − G e
    S⁺ = S + eᵀD⁻¹e       c⁺ = c + Eᵀζ + eᵀD⁻¹ε    W⁺ = W + eᵀD⁻¹l
    Q⁺ = Q − lᵀD⁻¹l       u⁺ = u + Lᵀζ + lᵀD⁻¹ε

(W_j = 1 at first: rows are taken where each arm carries the object's own frame, see `grips`.) Where Φ is a coordinate
direction without armature, ΦᵀP⁺, ΦᵀL⁺ and ΦᵀE⁺ vanish; they are set to zero rather than computed. S is H of that arm on
a held base. Where an arm's own joints end its load goes, y = S⁻¹(EᵀV̇ + c − Wν):

    P += E S⁻¹Eᵀ    z += E S⁻¹c    L −= E S⁻¹W    Q += WᵀS⁻¹W    u −= WᵀS⁻¹c

What is left at the ground (rows of arms that cannot close all six) is solved with ν eliminated first, so that a
singular H does no harm as long as the grasp's rows are independent: (S + W Q⁻¹ Wᵀ) y = … . Then outwards.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.formulations.operators.hybrid import check_inertia
from polybody.formulations.operators.named import frame_crossing
from polybody.formulations.operators.sweeps import State, state
from polybody.grasping.dense import dense_forward_dynamics
from polybody.grasping.grips import Holding
from polybody.grasping.symmetric import symmetric_inverse, symmetric_sum
from polybody.mechanism.forces import joint_passive_forces
from polybody.mechanism.mechanism import GROUND


@dataclass(eq=False)
class Front:
    """Everything beyond a body, as the body feels it; rows of loads not yet eliminated are stacked."""

    P: Array
    z: Array
    L: Array
    E: Array
    S: Array
    c: Array
    W: Array
    rows: list[int] = field(default_factory=list)  # indices in grasp.rows, in the order of the stack


@dataclass(frozen=True, eq=False)
class Passage:
    """What the outward sweep needs at a joint: a = rest − Gᵀα − Y_l ν − Y_e y."""

    G: Array
    rest: Array
    Y_l: Array
    Y_e: Array
    rows: list[int]


@dataclass(frozen=True, eq=False)
class Release:
    """A load eliminated at a body: y = S⁻¹(EᵀV̇ + c − Wν)."""

    S_inverse: Array
    E: Array
    c: Array
    W: Array
    rows: list[int]


def _annihilated(Phi: Array, armature: Array, domain: Domain) -> list[int]:
    """The coordinate directions in which a joint without armature moves freely."""
    if armature.any():
        return []
    filled = [[i for i in range(6) if not domain.is_zero(column[i])] for column in Phi.T]
    return [rows[0] for rows in filled if len(rows) == 1]


def _cleared(A: Array, rows: list[int], domain: Domain, both: bool = False) -> Array:
    """A with these rows (and columns) set to the zeros that they are."""
    A = A.copy()
    for k in rows:
        A[k] = domain.const(0)
        if both:
            A[:, k] = domain.const(0)
    return A


class _Elimination:
    """The inward and outward sweeps of one state."""

    def __init__(self, grasp: Holding, at: State, tau: Array) -> None:
        self.grasp, self.at, self.tau, self.domain = grasp, at, tau, at.domain
        d, n = self.domain, len(at.M)
        self.fronts = [
            Front(at.M[i], at.b[i], d.zeros(6, 6), d.zeros(6, 0), d.zeros(0, 0), d.zeros(0), d.zeros(0, 6))
            for i in range(n)
        ]
        self.ground = Front(
            d.zeros(6, 6), d.zeros(6), d.zeros(6, 6), d.zeros(6, 0), d.zeros(0, 0), d.zeros(0), d.zeros(0, 6)
        )
        self.Q, self.u = d.zeros(6, 6), d.zeros(6)
        self.passages: list[Passage | None] = [None] * n
        self.releases: dict[int, list[Release]] = {}
        self.loads: dict[int, Array] = {}
        for k, rows in enumerate(grasp.rows):
            grip = grasp.grips[rows.grip]
            K = d.array(rows.K)
            E = frame_crossing(grip.carried, domain=d).pull_columns(K.T)
            self._join(self.fronts[grip.tip.body], E, d.zeros(len(K), len(K)), d.zeros(len(K)), K, [k])

    def _join(self, front: Front, E: Array, S: Array, c: Array, W: Array, rows: list[int]) -> None:
        """Stack more rows of loads on a body's front."""
        d, old, new = self.domain, front.S.shape[0], S.shape[0]
        both = d.zeros(old + new, old + new)
        both[:old, :old], both[old:, old:] = front.S, S
        front.E, front.S, front.W = np.hstack([front.E, E]), both, np.vstack([front.W, W])
        front.c, front.rows = np.concatenate([front.c, c]), front.rows + rows

    def inward(self) -> None:
        mechanism = self.at.mechanism
        for joint in reversed(mechanism.joints):
            i = joint.index
            self._release(self.fronts[i], i)
            if i == self.grasp.object:
                continue
            self._pass(i)
        self._release(self.ground, GROUND)

    def _release(self, front: Front, body: int) -> None:
        """Eliminate the loads whose arms end at this body."""
        done = [k for k in front.rows if self.grasp.rows[k].at == body]
        for k in done:
            position, size = 0, self.grasp.rows[k].K.shape[0]
            for other in front.rows:
                if other == k:
                    break
                position += self.grasp.rows[other].K.shape[0]
            own = list(range(position, position + size))
            rest = [r for r in range(front.S.shape[0]) if r not in own]
            S_inverse = symmetric_inverse(front.S[np.ix_(own, own)], self.domain)
            E, c, W = front.E[:, own], front.c[own], front.W[own]
            self.releases.setdefault(body, []).append(Release(S_inverse, E, c, W, [k]))
            ES, WS = E @ S_inverse, W.T @ S_inverse
            front.P, front.z, front.L = symmetric_sum(front.P, ES, E), front.z + ES @ c, front.L - ES @ W
            self.Q, self.u = symmetric_sum(self.Q, WS, W.T), self.u - WS @ c
            front.E, front.c, front.W = front.E[:, rest], front.c[rest], front.W[rest]
            front.S = front.S[np.ix_(rest, rest)]
            front.rows = [r for r in front.rows if r != k]

    def _pass(self, i: int) -> None:
        """Carry the front of body i through its joint to its parent."""
        at, d = self.at, self.domain
        joint, step, front = at.mechanism.joints[i], at.across[i], self.fronts[i]
        Phi, zeta = step.Phi, at.zeta[i]
        U = front.P @ Phi
        D = Phi.T @ U + d.array(at.mechanism.armature[joint.v, joint.v])
        check_inertia(D, joint.name, d)
        D_inverse = symmetric_inverse(D, d)
        G = U @ D_inverse
        moved = front.P @ zeta
        rest = D_inverse @ (self.tau[joint.v] - Phi.T @ (moved + front.z))
        on_path = self._on_arm(i)
        dead = _annihilated(Phi, at.mechanism.armature[joint.v, joint.v], d)
        z = front.z + moved + U @ rest
        P = _cleared(symmetric_sum(front.P, -G, U), dead, d, both=True)
        parent = self.ground if joint.parent == GROUND else self.fronts[joint.parent]
        if not on_path:
            self.passages[i] = Passage(G, rest, d.zeros(joint.nv, 6), d.zeros(joint.nv, 0), [])
        else:
            loose, e = Phi.T @ front.L, Phi.T @ front.E
            Y_l, Y_e = D_inverse @ loose, D_inverse @ e
            self.passages[i] = Passage(G, rest, Y_l, Y_e, front.rows)
            self.Q = symmetric_sum(self.Q, -loose.T, Y_l.T)
            self.u = self.u + front.L.T @ zeta + loose.T @ rest
            parent.L = parent.L + step.pull_columns(_cleared(front.L - U @ Y_l, dead, d))
            if front.rows:
                E = step.pull_columns(_cleared(front.E - U @ Y_e, dead, d))
                S = symmetric_sum(front.S, e.T, Y_e.T)
                c, W = front.c + front.E.T @ zeta + e.T @ rest, front.W + e.T @ Y_l
                self._join(parent, E, S, c, W, front.rows)
        if joint.parent != GROUND:
            parent.P, parent.z = parent.P + step.pull_inertia(P), parent.z + step.pull(z)

    def _on_arm(self, i: int) -> bool:
        return any(i in self.at.mechanism.supports[grip.tip.body] for grip in self.grasp.grips)

    def solve_object(self) -> tuple[Array, Array]:
        """(a of the object's joint, ν), with the loads left at the ground."""
        at, d, o = self.at, self.domain, self.grasp.object
        joint, step, own, left = at.mechanism.joints[o], at.across[o], self.fronts[o], self.ground
        Q, u = self.Q + own.P, self.u + own.z + left.L.T @ at.ground
        carried = step.carry(at.ground) + at.zeta[o]
        Phi = step.Phi
        D = Phi.T @ Q @ Phi + d.array(at.mechanism.armature[joint.v, joint.v])
        check_inertia(D, joint.name, d)
        push = self.tau[joint.v] - Phi.T @ (Q @ carried + u)
        if left.rows:
            T = left.W @ Phi  # loads left: T a + W carried + S y = Eᵀ V̇_0 + c,   D a − Tᵀ y = push
            inverse = symmetric_inverse(D, d)
            right = left.E.T @ at.ground + left.c - left.W @ carried - T @ (inverse @ push)
            y = _least(left.S + T @ inverse @ T.T, right, d)
            self._keep(left.rows, y)
            push = push + T.T @ y
        a = symmetric_inverse(D, d) @ push
        return a, carried + Phi @ a

    def _keep(self, rows: list[int], y: Array) -> None:
        position = 0
        for k in rows:
            size = self.grasp.rows[k].K.shape[0]
            self.loads[k] = y[position : position + size]
            position += size

    def outward(self, a_o: Array, nu: Array) -> tuple[Array, list[Array]]:
        """(a of all columns, V̇ of all bodies)."""
        at, d, mechanism = self.at, self.domain, self.at.mechanism
        self._free(GROUND, at.ground, nu)
        a, V_dot = d.zeros(mechanism.nv), []
        for joint in mechanism.joints:
            i, part = joint.index, self.passages[joint.index]
            alpha = at.across[i].carry(at.ground if joint.parent == GROUND else V_dot[joint.parent])
            if i == self.grasp.object:
                own = a_o
            else:
                assert part is not None
                own = part.rest - part.G.T @ alpha
                if self._on_arm(i):
                    own = own - part.Y_l @ nu
                if part.rows:
                    own = own - part.Y_e @ np.concatenate([self.loads[k] for k in part.rows])
            a[joint.v] = own
            V_dot.append(alpha + at.zeta[i] + at.across[i].Phi @ own)
            self._free(i, V_dot[i], nu)
        return a, V_dot

    def _free(self, body: int, V_dot: Array, nu: Array) -> None:
        """The loads that were eliminated at this body, in the order outermost first: undo the last first."""
        for release in reversed(self.releases.get(body, [])):
            self._keep(release.rows, release.S_inverse @ (release.E.T @ V_dot + release.c - release.W @ nu))

    def grip_loads(self) -> Array:
        """f_e, m×6: on the object, in the axes of each grip."""
        d, m = self.domain, self.grasp.m
        f = d.zeros(6 * m)
        for k, rows in enumerate(self.grasp.rows):
            own = slice(6 * rows.grip, 6 * rows.grip + 6)
            hold = frame_crossing(self.grasp.grips[rows.grip].hold, domain=d)
            f[own] = f[own] + hold.push(d.array(rows.K).T @ self.loads[k])
        if self.grasp.workless.size:
            N = d.array(self.grasp.workless)
            f = f - N @ (N.T @ f)
        return f.reshape(m, 6)


def _least(A: Array, right: Array, domain: Domain) -> Array:
    """A⁻¹ right for the symmetric A; for numbers the solution of least norm where A is singular."""
    if domain is not FLOAT:
        return domain.solve(A, right)
    values, vectors = np.linalg.eigh((A + A.T) / 2)
    keep = values > 1e-12 * values[-1]
    return vectors[:, keep] @ ((vectors[:, keep].T @ right) / values[keep])


def closed_forward_dynamics(
    grasp: Holding, q: Array, v: Array, tau: Array, wrenches: Array | None = None, *, domain: Domain = FLOAT
) -> tuple[Array, Array, Array]:
    """(a of all columns, f_e (m×6) on the object in grip axes, how far grips accelerate apart (m×6)).

    The last is zero but for rounding; it is large where the grasp's rows lose rank. Where rotors couple joints the mass
    matrix has no such tree, and `dense` answers.
    """
    mechanism = grasp.mechanism
    force = tau + joint_passive_forces(mechanism, q, v, domain=domain)
    if not mechanism.separable:
        return dense_forward_dynamics(grasp, q, v, force, wrenches, domain=domain)
    at = state(mechanism, q, v, wrenches, domain=domain)
    steps = _Elimination(grasp, at, force)
    steps.inward()
    a, V_dot = steps.outward(*steps.solve_object())
    apart = domain.zeros(grasp.m, 6)
    for j, grip in enumerate(grasp.grips):
        tip = frame_crossing(grip.tip, domain=domain).carry(V_dot[grip.tip.body])
        apart[j] = tip - frame_crossing(grip.hold, domain=domain).carry(V_dot[grasp.object])
    return a, steps.grip_loads(), apart


def object_acceleration(grasp: Holding, q: Array, v: Array, a: Array, *, domain: Domain = FLOAT) -> Array:
    """V̇° of the object, 6 numbers in its own axes, from the accelerations of all columns."""
    joint = grasp.mechanism.joints[grasp.object]
    q, v, a = q[joint.q], v[joint.v], a[joint.v]
    rate = joint.model.velocity_map_rate(q, v, domain=domain) @ v
    return joint.model.velocity_map(q, domain=domain) @ a + rate


__all__ = ["Front", "closed_forward_dynamics", "object_acceleration"]
