"""Terminal equations of the rigid body as a multi-port component (Tokad 1992, section 1 and appendix).

Inside `network` a port's across variable is x = [v; ω] and its through variable y = [f; M], the wrench that acts on the
body at the port; both in inertial (world) axes. r is the vector from one port to another, R = skew(r):

    K(r) = [1 0; R 1],     x_at_r = K(r)ᵀ x,     y moved to the base of r = K(r) y                          (2)

so that K⁻¹ = K(−r). With G the mass centre, a body with ports p_1 … p_k has the terminal equations

    x_p = K_pᵀ x_G,        y_G = −Σ K_p y_p + W_G x_G + u_G                                      (1), corrected
    W_G = P_G d/dt + Q_G,  P_G = diag(m 1, J_G),  Q_G = diag(0, Ω J_G),  u_G = [−m g; 0]                    (2)

The ideal body (3) has W_G = 0 and u_G = 0; the rest is the active one-port (4), which may sit at any port p:

    W_p = K_p⁻¹ W_G K_p⁻ᵀ = P_p d/dt + Q_p,    u_p = K_p⁻¹ u_G                                        (49), (50)

Q_p = K_p⁻¹(Q_G K_p⁻ᵀ + P_G d/dt K_p⁻ᵀ) with d/dt r = ω × r; the paper's Q_B of (49) leaves out RΩ ω = 0, so it is the
same only when applied to x_b. Both are here: `active_port` gives the full matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.algebra.rotations import cross, skew
from polybody.late import dataclass


def lever(r: Array, *, domain: Domain = FLOAT) -> Array:
    """K(r) of (2), 6×6: K(r) y is the wrench y, given at r, felt at the base of r."""
    K = domain.eye(6)
    K[3:, :3] = skew(r, domain=domain)
    return K


def across_at(x: Array, r: Array) -> Array:
    """K(r)ᵀ x: the velocity [v; ω] of the body's point at r from where x is known."""
    return np.concatenate([x[:3] + cross(x[3:], r), x[3:]])


def through_from(y: Array, r: Array) -> Array:
    """K(r) y: the wrench [f; M] given at r, moved to the base of r."""
    return np.concatenate([y[:3], y[3:] + cross(r, y[:3])])


def swapped(vector: Array) -> Array:
    """Between Tokad's [v; ω], [f; M] and the product's [ω; v], [M; f]."""
    return np.concatenate([vector[3:], vector[:3]])


@dataclass(frozen=True, eq=False)
class ActivePort:
    """y = (P d/dt + Q) x + u at one port: the kinetic side of a rigid body, (4)."""

    P: Array
    Q: Array
    u: Array

    def at(self, r: Array, omega: Array, *, domain: Domain = FLOAT) -> ActivePort:
        """The same component seen from the port at r (a point fixed in the body, which turns with ω): (49), (50).

        W_p = K⁻¹ (P d/dt + Q) K⁻ᵀ, so P_p = K⁻¹ P K⁻ᵀ and Q_p = K⁻¹ (Q K⁻ᵀ + P d/dt K⁻ᵀ).
        """
        back = lever(-r, domain=domain)
        rate = domain.zeros(6, 6)
        rate[3:, :3] = skew(-cross(omega, r), domain=domain)
        return ActivePort(
            back @ self.P @ back.T, back @ (self.Q @ back.T + self.P @ rate.T), back @ self.u
        )

    def through(self, x: Array, x_rate: Array) -> Array:
        """y = P dx/dt + Q x + u."""
        return self.P @ x_rate + self.Q @ x + self.u


def active_port(mass: Any, J: Array, omega: Array, gravity: Array, *, domain: Domain = FLOAT) -> ActivePort:
    """W_G and u_G of (2) at the mass centre; J about it, ω and gravity in inertial axes."""
    P, Q, u = domain.zeros(6, 6), domain.zeros(6, 6), domain.zeros(6)
    P[:3, :3], P[3:, 3:] = domain.eye(3) * mass, J
    Q[3:, 3:] = skew(omega, domain=domain) @ J
    u[:3] = -(gravity * mass)
    return ActivePort(P, Q, u)


@dataclass(frozen=True, eq=False)
class TerminalForm:
    """[across of the others; through of the base] = ideal · [through of the others; across of the base] + active.

    `ideal` is the matrix of the ideal body (an ideal transformer: skew, so it keeps power), `active` the one-port at
    the base port. `base` names the port whose edge is in the co-tree; `others` are in the formulation tree.
    """

    base: str
    others: tuple[str, ...]
    ideal: Array
    active: ActivePort

    def solve(self, through: Array, x: Array, x_rate: Array) -> tuple[Array, Array]:
        """(across of the others, through of the base) for given through of the others and motion of the base."""
        n = 6 * len(self.others)
        answer = self.ideal @ np.concatenate([through, x])
        return answer[:n], answer[n:] + self.active.through(x, x_rate)


def terminal_form(
    places: dict[str, Array], base: str, kinetic: ActivePort, omega: Array, *, domain: Domain = FLOAT
) -> TerminalForm:
    """The terminal equations with `base` as the port that stays in the co-tree: (1) for "G", (5) for B, (6) for A.

    `places` maps each port to its position relative to G ("G" itself at zero), in inertial axes.
    """
    others = tuple(name for name in places if name != base)
    n = len(others)
    ideal = domain.zeros(6 * n + 6, 6 * n + 6)
    for i, name in enumerate(others):
        K = lever(places[name] - places[base], domain=domain)
        ideal[6 * i : 6 * i + 6, 6 * n :] = K.T
        ideal[6 * n :, 6 * i : 6 * i + 6] = -K
    return TerminalForm(base, others, ideal, kinetic.at(places[base], omega, domain=domain))


__all__ = [
    "ActivePort",
    "TerminalForm",
    "across_at",
    "active_port",
    "lever",
    "swapped",
    "terminal_form",
    "through_from",
]
