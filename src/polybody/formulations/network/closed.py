"""The open chain in closed form, (18)-(24), on any tree of bodies: K, K', S, P, Q and u.

Body j has its mass centre G_j and its port B_j, where the joint that enters it acts; x_j is that joint's across
variable (all six components: no joint is assumed yet), y_j its through variable on body j. With i the body before j,

    x_j = K(B_j − G_j)ᵀ x_Gj − K(B_j − G_i)ᵀ x_Gi          x = K x_G                         (8), (12), (13)
    S = K⁻¹:  S_jp = K(G_j − B_p)ᵀ for every joint p between body j and the ground          (19), (27), corrected
    x_end = K' x_G                                            at each load port
    P = Sᵀ P_G S,    Q = Sᵀ(Q_G S + P_G Ṡ),    u = Sᵀ u_G                                     (23)
    y = P ẋ + Q x − (K'S)ᵀ y_end + u,    x_end = K'S x                                        (20)

Port A of body i is where B_j is now, which is (29) with Ξ; d/dt (G_j − B_p) = v_Gj − v_Bp. Between the free directions,
x = Φ v, the same equations become (42):

    tau = c v̇ + d v − δ y_end + β,     c = ΦᵀPΦ,  d = Φᵀ(QΦ + PΦ̇),  δ = (K'SΦ)ᵀ,  β = Φᵀu
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from polybody.algebra.domains import Array, Domain
from polybody.algebra.rotations import skew
from polybody.errors import InputError
from polybody.formulations.network.graph import node_of
from polybody.formulations.network.parts import CENTRE, WORLD, JointPart
from polybody.formulations.network.situation import Situation
from polybody.formulations.network.terminals import active_port, lever
from polybody.late import dataclass

if TYPE_CHECKING:
    from polybody.formulations.network.builder import NetworkBuilder


@dataclass(frozen=True, eq=False)
class ClosedForm:
    """The matrices of (18)-(24); rows and columns in blocks of six, one for each joint (`joints`) or body."""

    joints: tuple[str, ...]
    bodies: tuple[str, ...]  # names
    ends: tuple[str, ...]  # ports at which outer forces act
    K: Array  # x = K x_G
    K_end: Array  # K', x_end = K' x_G
    S: Array  # K⁻¹
    S_rate: Array  # Ṡ
    P_G: Array  # inertias at the mass centres, (23)
    Q_G: Array  # velocity products, (23)
    u_G: Array  # weights, (23)
    directions: Array  # Φ, 6m × nv
    drift: Array  # Φ̇, 6m × nv: d/dt Φ
    domain: Domain  # scalars of all matrices

    @property
    def P(self) -> Array:
        """The inertia matrix of (24)."""
        return self.S.T @ self.P_G @ self.S

    @property
    def Q(self) -> Array:
        """The gyroscopic matrix of (24)."""
        return self.S.T @ (self.Q_G @ self.S + self.P_G @ self.S_rate)

    @property
    def u(self) -> Array:
        """Gravity at the joints, (33)."""
        return self.S.T @ self.u_G

    @property
    def load_map(self) -> Array:
        """K'S: x_end = K'S x; for one-axis joints, times Φ, the Jacobian (39)."""
        return self.K_end @ self.S

    def joint_throughs(self, x: Array, x_rate: Array, y_end: Array | None = None) -> Array:
        """y of (20)."""
        y = self.P @ x_rate + self.Q @ x + self.u
        return y if y_end is None else y - self.load_map.T @ y_end

    def reduced(self) -> tuple[Array, Array, Array, Array]:
        """(c, d, δ, β) of (42) between the joints' free directions."""
        F, F_rate, P = self.directions, self.drift, self.P
        return F.T @ P @ F, F.T @ (self.Q @ F + P @ F_rate), (self.load_map @ F).T, F.T @ self.u


def closed_form(net: NetworkBuilder, state: Situation, ends: tuple[str, ...]) -> ClosedForm:
    """The closed form of a network of bodies and joints without loops."""
    others = [*state.gaps, *net.parts.multiports, *net.parts.gears, *net.parts.holds, *net.parts.relations]
    if others:
        what = ", ".join(map(repr, others))
        raise InputError(f"the closed form is that of open chains of bodies; {what} makes this network another")
    order = outward(net)
    domain, m = state.domain, len(order)
    index = {body: k for k, (_, body, _, _) in enumerate(order)}
    before = [index.get(near) for _, _, near, _ in order]
    G = [state.port(net, f"{body}.{CENTRE}") for _, body, _, _ in order]
    B = [state.port(net, joint.b) for joint, *_ in order]

    def block(i: int) -> slice:
        return slice(6 * i, 6 * i + 6)

    K, S, S_rate = (domain.zeros(6 * m, 6 * m) for _ in range(3))
    P_G, Q_G, u_G = domain.zeros(6 * m, 6 * m), domain.zeros(6 * m, 6 * m), domain.zeros(6 * m)
    nv = sum(joint.nv for joint, *_ in order)
    F, F_rate = domain.zeros(6 * m, nv), domain.zeros(6 * m, nv)
    column = 0
    for j, (joint, body, _, sign) in enumerate(order):
        K[block(j), block(j)] = lever(B[j].p - G[j].p, domain=domain).T
        i = before[j]
        if i is not None:
            K[block(j), block(i)] = -lever(B[j].p - G[i].p, domain=domain).T
        p: int | None = j
        while p is not None:
            S[block(j), block(p)] = lever(G[j].p - B[p].p, domain=domain).T
            S_rate[6 * j : 6 * j + 3, 6 * p + 3 : 6 * p + 6] = skew(G[j].x[:3] - B[p].x[:3], domain=domain).T
            p = before[p]
        part, R = net.parts.bodies[body], state.frames[body].R
        kinetic = active_port(
            domain.array([part.mass])[0], R @ domain.array(part.inertia) @ R.T, G[j].x[3:], domain.array(net.gravity),
            domain=domain,
        )
        P_G[block(j), block(j)], Q_G[block(j), block(j)], u_G[block(j)] = kinetic.P, kinetic.Q, kinetic.u
        here = slice(column, column + joint.nv)
        F[block(j), here] = state.joints[joint.name].directions * domain.const(sign)
        F_rate[block(j), here] = _direction_rates(joint, state, B[j].R, B[j].x[3:]) * domain.const(sign)
        column += joint.nv
    K_end = domain.zeros(6 * len(ends), 6 * m)
    for k, end in enumerate(ends):
        i = index[net.ports[end].component]
        K_end[block(k), block(i)] = lever(state.port(net, end).p - G[i].p, domain=domain).T
    names = tuple(joint.name for joint, *_ in order)
    return ClosedForm(names, tuple(index), ends, K, K_end, S, S_rate, P_G, Q_G, u_G, F, F_rate, domain)


def _direction_rates(joint: JointPart, state: Situation, R: Array, omega: Array) -> Array:
    """d/dt Φ = Ω Φ + [R Ḣ_v; R Ḣ_ω]."""
    domain, now = state.domain, state.joints[joint.name]
    if joint.model is None:
        return now.directions
    H_rate = joint.model.velocity_map_rate(now.q, now.v, domain=domain)
    turn = skew(omega, domain=domain)
    return np.concatenate(
        [R @ H_rate[3:] + turn @ now.directions[:3], R @ H_rate[:3] + turn @ now.directions[3:]]
    )


def outward(net: NetworkBuilder) -> list[tuple[JointPart, str, str, int]]:
    """(joint, body it enters, body it comes from, +1 or −1 for a joint walked from b to a), outwards."""
    order: list[tuple[JointPart, str, str, int]] = []
    reached, waiting = {WORLD}, list(net.parts.joints.values())
    while waiting:
        ready = [j for j in waiting if node_of(net, j.a) in reached or node_of(net, j.b) in reached]
        if not ready:
            break
        for joint in ready:
            a, b = node_of(net, joint.a), node_of(net, joint.b)
            forward = a in reached
            order.append((joint, b if forward else a, a if forward else b, 1 if forward else -1))
            reached |= {a, b}
            waiting.remove(joint)
    return order


__all__ = ["ClosedForm", "closed_form", "outward"]
