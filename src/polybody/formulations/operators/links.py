"""One link and the transformation X across its joint, kept in 3×3 blocks.

Twists V = [ω; v] and wrenches f = [η; f] of a link are in the link's axes, at its origin. With R and p the rotation and
position of link i in link i−1 (the parent, in a tree),

    X(i, i−1)  = [Rᵀ 0; −Rᵀp̃ Rᵀ]       V_i = X V_{i−1} + Φ_i v_i                      (7), corrected
    X(i, i−1)ᵀ                          carries wrenches from i to i−1                  (16)
    M_i = [I m l̃; −m l̃ m E]             about the link's origin, l its mass centre
    b_i = V* M_i V_i,   V* = [ω̃ ṽ; 0 ω̃]                                               (16), corrected
    ζ_i = Φ̇_i v_i + ad(V_i) Φ_i v_i     what Ẋ adds to V̇_i: V̇_i = X V̇_{i−1} + Φ_i a_i + ζ_i      (15)

since d/dt X = −ad(Φ_i v_i) X (the paper prints the other sign).
"""

from __future__ import annotations

import numpy as np

from polybody.algebra.domains import Array, Domain
from polybody.algebra.rotations import cross, skew
from polybody.algebra.spatial import body_inertia, origin_inertia, symmetric_product
from polybody.late import dataclass
from polybody.mechanism.kinematics import relative_pose
from polybody.mechanism.mechanism import Mechanism


@dataclass(frozen=True, eq=False)
class Crossing:
    """Joint i at its configuration: the blocks of X(i, i−1), and Φ_i."""

    R: Array
    p: Array
    Phi: Array
    domain: Domain

    def carry(self, V: Array) -> Array:
        """X V."""
        return np.concatenate([self.R.T @ V[:3], self.R.T @ (V[3:] + cross(V[:3], self.p))])

    def pull(self, f: Array) -> Array:
        """Xᵀ f."""
        force = self.R @ f[3:]
        return np.concatenate([self.R @ f[:3] + cross(self.p, force), force])

    def push(self, f: Array) -> Array:
        """X⁻ᵀ f."""
        return np.concatenate([self.R.T @ (f[:3] - cross(self.p, f[3:])), self.R.T @ f[3:]])

    def pull_columns(self, F: Array) -> Array:
        """Xᵀ applied to every column."""
        force = self.R @ F[3:]
        return np.vstack([self.R @ F[:3] + skew(self.p, domain=self.domain) @ force, force])

    def pull_inertia(self, P: Array) -> Array:
        """Xᵀ P X of a symmetric P: turn its blocks, then move them."""
        R, p = self.R, skew(self.p, domain=self.domain)
        A, B, C = symmetric_product(R, P[:3, :3]), R @ P[:3, 3:] @ R.T, symmetric_product(R, P[3:, 3:])
        top = B + p @ C
        moved = p @ B.T - top @ p
        result = np.empty((6, 6), dtype=P.dtype)
        for i in range(3):
            for j in range(i, 3):
                result[i, j] = result[j, i] = A[i, j] + moved[i, j]
        result[:3, 3:], result[3:, :3], result[3:, 3:] = top, top.T, C
        return result

    def matrix(self) -> Array:
        """X as a 6×6 matrix, for reading."""
        X = self.domain.zeros(6, 6)
        X[:3, :3] = X[3:, 3:] = self.R.T
        X[3:, :3] = -(self.R.T @ skew(self.p, domain=self.domain))
        return X


def crossings(mechanism: Mechanism, q: Array, *, domain: Domain) -> list[Crossing]:
    """Every joint at its configuration."""
    result = []
    for joint in mechanism.joints:
        R, p = relative_pose(joint, q, domain=domain)
        result.append(Crossing(R, p, joint.model.velocity_map(q[joint.q], domain=domain), domain))
    return result


def link_inertias(mechanism: Mechanism, *, domain: Domain) -> list[Array]:
    """M_i of every link, the diagonal blocks of M_q."""
    if mechanism.inertials is not None:
        return [
            origin_inertia(domain.const(i.mass), domain.array(i.moment), domain.array(i.inertia), domain=domain)
            for i in mechanism.inertials
        ]
    return [
        body_inertia(domain.const(b.mass), domain.array(b.com), domain.array(b.inertia), domain=domain)
        for b in mechanism.bodies
    ]


def bias_wrench(V: Array, M: Array) -> Array:
    """b = V* M V: what a link needs for V̇ = 0."""
    h = M @ V
    return np.concatenate([cross(V[:3], h[:3]) + cross(V[3:], h[3:]), cross(V[:3], h[3:])])


__all__ = ["Crossing", "bias_wrench", "crossings", "link_inertias"]
