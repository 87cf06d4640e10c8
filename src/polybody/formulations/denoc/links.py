"""The constants of one link, and how vectors cross its joint.

Twists t_i = [ω_i; v_i] and wrenches w_i = [n_i; f_i] of body i are in the axes of body i, at the origin O_i of its
frame. (The paper takes the mass centre C_i and leaves the axes open; any point fixed in the body serves in (12)-(55),
and at O_i the propagation uses the joint's own constants, of which many are zero.) With j = parent(i), R the rotation
and r = O_i − O_j the position of body i in body j:

    t_i = B_ij t_j + p_i θ̇_i:   ω_i = Rᵀω_j + …,   v_i = Rᵀ(v_j + ω_j × r) + …               (12), (13)
    B_ijᵀ w_i:                   f = R f_i,         n = R n_i + r × f

R is kept as two factors, the constant placement and the joint's own turning: a joint about a coordinate axis turns two
components only, and a placement by right angles costs nothing. Only where no entry of the placement is zero are they
multiplied: nine products a vector, not thirteen.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.algebra.domains import Array, Domain
from polybody.algebra.rotations import cross, skew
from polybody.algebra.spatial import symmetric_product
from polybody.late import dataclass
from polybody.mechanism.mechanism import GROUND, Mechanism, TreeJoint


@dataclass(frozen=True, eq=False)
class Link:
    """Constants of joint i and body i as arrays of a domain."""

    parent: int
    placement: Array  # 3×3, joint frame in the parent body
    offset: Array  # 3, origin of the joint frame in the parent body
    mass: Any
    moment: Array  # m c, 3
    inertia: Array  # 3×3 about O_i
    armature: Array  # r×r
    joint: TreeJoint


@dataclass(frozen=True, eq=False)
class Crossing:
    """The joint's configuration: everything needed to carry vectors across it."""

    factors: tuple[Array, Array]  # R = placement · turning
    r: Array  # O_i − O_j in axes of j
    H: Array  # 6×r joint map in axes of i: the paper's p_i
    trivial: bool  # placement is the identity

    def to_parent(self, x: Array) -> Array:
        """R x: components in j of a vector given in i."""
        x = self.factors[1] @ x
        return x if self.trivial else self.factors[0] @ x

    def to_child(self, x: Array) -> Array:
        """Rᵀ x: components in i of a vector given in j."""
        return self.factors[1].T @ (x if self.trivial else self.factors[0].T @ x)

    def turned(self, A: Array) -> Array:
        """R A Rᵀ of a symmetric 3×3 matrix: computed above the diagonal, mirrored below."""
        A = symmetric_product(self.factors[1], A)
        return A if self.trivial else symmetric_product(self.factors[0], A)

    def turned_general(self, A: Array) -> Array:
        """R A Rᵀ of any 3×3 matrix."""
        A = self.factors[1] @ A @ self.factors[1].T
        return A if self.trivial else self.factors[0] @ A @ self.factors[0].T

    def twist_to_child(self, t: Array) -> Array:
        """B_ij t."""
        omega = t[:3]
        return np.concatenate([self.to_child(omega), self.to_child(t[3:] + cross(omega, self.r))])

    def wrench_to_parent(self, n: Array, f: Array) -> tuple[Array, Array]:
        """B_ijᵀ [n; f]."""
        f = self.to_parent(f)
        return self.to_parent(n) + cross(self.r, f), f


def inertial(mechanism: Mechanism, i: int, *, domain: Domain) -> tuple[Any, Array, Array]:
    """(mass, m c, inertia about O_i) of body i, in exact arithmetic where the domain has it."""
    if mechanism.inertials is not None:
        own = mechanism.inertials[i]
        return domain.const(own.mass), domain.array(own.moment), domain.array(own.inertia)
    body = mechanism.bodies[i]
    mass, com = domain.const(body.mass), domain.array(body.com)
    c = skew(com, domain=domain)
    return mass, com * mass, domain.array(body.inertia) - (c @ c) * mass


def links(mechanism: Mechanism, *, domain: Domain) -> list[Link]:
    """The constants of every link, in the order of the joints."""
    return domain.once("links", (mechanism,), lambda: _links(mechanism, domain))


def _links(mechanism: Mechanism, domain: Domain) -> list[Link]:
    result = []
    for joint in mechanism.joints:
        mass, moment, inertia = inertial(mechanism, joint.index, domain=domain)
        result.append(
            Link(
                parent=joint.parent,
                placement=domain.array(joint.rotation),
                offset=domain.array(joint.position),
                mass=mass,
                moment=moment,
                inertia=inertia,
                armature=domain.array(mechanism.armature[joint.v, joint.v]),
                joint=joint,
            )
        )
    return result


def crossing(one: Link, q: Array, *, domain: Domain) -> Crossing:
    """Joint i at its configuration; q is the joint's own slice."""
    turning, slide = one.joint.model.configuration(q, domain=domain)
    trivial = not _differs(one.placement, domain)
    r = one.offset + (slide if trivial else one.placement @ slide)
    H = one.joint.model.velocity_map(q, domain=domain)
    if not any(domain.is_zero(x) for x in one.placement.ravel()):
        return Crossing((domain.eye(3), one.placement @ turning), r, H, True)
    return Crossing((one.placement, turning), r, H, trivial)


def _differs(placement: Array, domain: Domain) -> bool:
    return not all(domain.is_zero(x) for x in (placement - domain.eye(3)).ravel())


def crossings(mechanism: Mechanism, chain: list[Link], q: Array, *, domain: Domain) -> list[Crossing]:
    """Every joint at its configuration."""

    def make() -> list[Crossing]:
        return [crossing(one, q[joint.q], domain=domain) for one, joint in zip(chain, mechanism.joints, strict=True)]

    return domain.once("crossings", (mechanism, chain, q), make)


def world_rotations(chain: list[Link], across: list[Crossing]) -> list[Array]:
    """Rotation of every body in the world; needed only where world-axes wrenches act."""
    result: list[Array] = []
    for one, step in zip(chain, across, strict=True):
        R = step.factors[1] if step.trivial else step.factors[0] @ step.factors[1]
        result.append(R if one.parent == GROUND else result[one.parent] @ R)
    return result


__all__ = ["Crossing", "Link", "crossing", "crossings", "links", "world_rotations"]
