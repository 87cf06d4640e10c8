"""Joint models: the configuration, velocity map and manifold of each kind of joint.

For a joint with configuration q and velocity v, in the joint frame (at neutral the child frame coincides with it):

    X(q) = (R, p)     pose of the child in the joint frame
    V    = H(q) v     twist of the child relative to the parent, child axes, at the child's origin
    q̇    = Γ(q) v

`integrate(q, d)` moves along the tangent vector d = v·dt by the manifold's exponential, `difference(q0, q1)` is its
inverse. Both, like everything here, are written over a scalar domain. Kinds are instances of map matrices (see
`maps`); spherical and floating joints carry a unit quaternion instead of the chart of (15).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.algebra.rotations import (
    cross,
    left_jacobian,
    left_jacobian_inverse,
    matrix_quaternion,
    quaternion_exp,
    quaternion_log,
    quaternion_matrix,
    quaternion_product,
    quaternion_rate,
    skew,
)
from polybody.algebra.spatial import adjoint, twist_exp, twist_log
from polybody.mechanism.maps import JointMap

#: Newton's steps along a chart, and below which change, over 1 + |d|, they end
MOST_NEWTON, SAME = 20, 1e-15


class JointModel(ABC):
    """What every joint can report; one state at a time, over any domain."""

    kind: str
    nq: int
    nv: int
    #: the constant joint map when H does not depend on q, else None
    constant_map: Array | None = None
    #: True when q̇ = v, number by number
    rates_are_velocities: bool = False

    @abstractmethod
    def configuration(self, q: Array, *, domain: Domain = FLOAT) -> tuple[Array, Array]:
        """(R, p) of X(q)."""

    @abstractmethod
    def velocity_map(self, q: Array, *, domain: Domain = FLOAT) -> Array:
        """H(q), 6×nv."""

    @abstractmethod
    def velocity_map_rate(self, q: Array, v: Array, *, domain: Domain = FLOAT) -> Array:
        """dH/dt along v, 6×nv."""

    @abstractmethod
    def rate(self, q: Array, v: Array, *, domain: Domain = FLOAT) -> Array:
        """q̇ = Γ(q) v."""

    @abstractmethod
    def neutral(self) -> Array:
        """The configuration in which X is the identity."""

    @abstractmethod
    def random(self, rng: np.random.Generator, shape: tuple[int, ...] = ()) -> Array:
        """Configurations (*shape, nq) drawn over the manifold; unbounded directions from (−1, 1), angles from (−π, π).
        """

    @abstractmethod
    def integrate(self, q: Array, d: Array, *, domain: Domain = FLOAT) -> Array:
        """The configuration reached from q along the tangent vector d."""

    @abstractmethod
    def difference(self, q0: Array, q1: Array, *, domain: Domain = FLOAT) -> Array:
        """The tangent vector d with integrate(q0, d) = q1."""

    def refined(self, found: Array, q: Array, d: Array, *, domain: Domain = FLOAT) -> tuple[Array, list[Any]]:
        """(a better approximation than `found` of integrate(q, d), by how much it differs): where there is no formula
        for it, one step of Newton's."""
        return found, []

    def normalized(self, q: Array) -> Array:
        """q put back on its manifold (numbers only)."""
        return q


class MapJoint(JointModel):
    """A joint in the chart of its map matrix: q = ε."""

    def __init__(self, kind: str, joint_map: JointMap) -> None:
        self.kind = kind
        self.map = joint_map
        self.nq = self.nv = joint_map.r
        self.constant_map = joint_map.H if joint_map.is_simple else None
        self.rates_are_velocities = all(n == 1 for n in joint_map.stages) or self._commutes()

    def _commutes(self) -> bool:
        H = self.map.H
        if H.dtype == object:  # a symbolic axis: of the named kinds only a cylinder's columns commute
            return self.kind == "cylindrical"
        if not self.map.is_simple:
            return False
        pairs = [(i, j) for i in range(self.nv) for j in range(i)]
        brackets = [cross(H[:3, i], H[:3, j]) for i, j in pairs]
        shifts = [cross(H[:3, i], H[3:, j]) + cross(H[3:, i], H[:3, j]) for i, j in pairs]
        return not np.any(brackets) and not np.any(shifts)

    def configuration(self, q: Array, *, domain: Domain = FLOAT) -> tuple[Array, Array]:
        return self.map.configuration(q, domain=domain)

    def velocity_map(self, q: Array, *, domain: Domain = FLOAT) -> Array:
        return self.map.joint_map(q, domain=domain)

    def velocity_map_rate(self, q: Array, v: Array, *, domain: Domain = FLOAT) -> Array:
        return self.map.joint_map_rate(q, v, domain=domain)

    def rate(self, q: Array, v: Array, *, domain: Domain = FLOAT) -> Array:
        return v if self.rates_are_velocities else self.map.kinematic_matrix(q, domain=domain) @ v

    def neutral(self) -> Array:
        return np.zeros(self.nq)

    def random(self, rng: np.random.Generator, shape: tuple[int, ...] = ()) -> Array:
        turning = np.linalg.norm(self.map.H[:3], axis=0) > 0
        # Non-commuting columns are angles of an Euler-like chart: stay inside it.
        reach = np.where(turning, np.pi if self.rates_are_velocities else 1.2, 1.0)
        return rng.uniform(-reach, reach, size=(*shape, self.nq))

    def integrate(self, q: Array, d: Array, *, domain: Domain = FLOAT) -> Array:
        if self.rates_are_velocities:
            return q + d
        return np.concatenate([self._integrate_stage(s, q[s], d[s], domain) for s in self.map.stage_slices()])

    def _stage(self, stage: slice) -> JointMap:
        return JointMap(self.map.H[:, stage], (stage.stop - stage.start,))

    def _integrate_stage(self, stage: slice, q: Array, d: Array, domain: Domain) -> Array:
        """Newton's steps on numbers; elsewhere their start (`refined`)."""
        if len(q) == 1:
            return q + d
        joint = self._stage(stage)
        epsilon = _rk4_chart(joint, q, d, domain)
        if domain is not FLOAT:
            return epsilon
        for _ in range(MOST_NEWTON):
            epsilon, delta = _newton(joint, epsilon, q, d, domain)
            if np.abs(delta).max() < SAME * (1 + np.abs(d).max()):
                break
        return epsilon

    def refined(self, found: Array, q: Array, d: Array, *, domain: Domain = FLOAT) -> tuple[Array, list[Any]]:
        if self.rates_are_velocities:
            return found, []
        parts, sizes = [], []
        for s in self.map.stage_slices():
            if s.stop - s.start == 1:
                parts.append(found[s])
                continue
            following, delta = _newton(self._stage(s), found[s], q[s], d[s], domain)
            parts.append(following)
            sizes += list(delta)
        return np.concatenate(parts), sizes

    def difference(self, q0: Array, q1: Array, *, domain: Domain = FLOAT) -> Array:
        if self.rates_are_velocities:
            return q1 - q0
        return np.concatenate([self._difference_stage(s, q0[s], q1[s], domain) for s in self.map.stage_slices()])

    def _difference_stage(self, stage: slice, q0: Array, q1: Array, domain: Domain) -> Array:
        if len(q0) == 1:
            return q1 - q0
        joint = self._stage(stage)
        (Ra, pa), (Rb, pb) = joint.configuration(q0, domain=domain), joint.configuration(q1, domain=domain)
        xi = _twist_log(Ra.T @ Rb, Ra.T @ (pb - pa), domain=domain)
        H = domain.array(joint.H)
        return domain.solve(H.T @ H, H.T @ xi)


def _twist_log(rotation: Array, position: Array, *, domain: Domain) -> Array:
    """log of a motion over any domain; its rotation is at most π."""
    if domain is FLOAT:
        return twist_log(rotation, position)
    phi = quaternion_log(matrix_quaternion(rotation, domain=domain), domain=domain)
    return np.concatenate([phi, left_jacobian_inverse(phi, domain=domain) @ position])


def _newton(joint: JointMap, epsilon: Array, q: Array, d: Array, domain: Domain) -> tuple[Array, Array]:
    """(the next ε, δ) of Newton on X(ε) = X(q) exp(H d): the residual is a twist H δ, its correction Γ(ε) δ."""
    H = domain.array(joint.H)
    (R0, p0), (Rd, pd) = joint.configuration(q, domain=domain), twist_exp(H @ d, domain=domain)
    R, p = joint.configuration(epsilon, domain=domain)
    residual = _twist_log(R.T @ (R0 @ Rd), R.T @ (R0 @ pd + p0 - p), domain=domain)
    delta = domain.solve(H.T @ H, H.T @ residual)
    return epsilon + joint.kinematic_matrix(epsilon, domain=domain) @ delta, delta


def _rk4_chart(joint: JointMap, q: Array, d: Array, domain: Domain) -> Array:
    """One Runge-Kutta step of ε̇ = Γ(ε) d: a start for Newton, and the chart's own integrator in other domains."""
    half, sixth = domain.const(0.5), domain.const(1) / domain.const(6)

    def rate(epsilon: Array) -> Array:
        return joint.kinematic_matrix(epsilon, domain=domain) @ d

    k1 = rate(q)
    k2 = rate(q + k1 * half)
    k3 = rate(q + k2 * half)
    k4 = rate(q + k3)
    return q + (k1 + (k2 + k3) * domain.const(2) + k4) * sixth


class PlanarJoint(MapJoint):
    """q = (θ, x, y) in parent axes, v = [ω; v_x; v_y] in the child's: SE(2), with closed exponential and logarithm."""

    def _turn(self, angle: object, vector: Array, domain: Domain) -> Array:
        s, c = domain.sin(angle), domain.cos(angle)
        return np.array([c * vector[0] - s * vector[1], s * vector[0] + c * vector[1]], dtype=domain.dtype)

    def rate(self, q: Array, v: Array, *, domain: Domain = FLOAT) -> Array:
        return np.array([v[0], *self._turn(q[0], v[1:], domain)], dtype=domain.dtype)

    def integrate(self, q: Array, d: Array, *, domain: Domain = FLOAT) -> Array:
        spin = np.array([domain.const(0), domain.const(0), d[0]], dtype=domain.dtype)
        shift = left_jacobian(spin, domain=domain)[:2, :2] @ d[1:]
        return np.array([q[0] + d[0], *(q[1:] + self._turn(q[0], shift, domain))], dtype=domain.dtype)

    def difference(self, q0: Array, q1: Array, *, domain: Domain = FLOAT) -> Array:
        angle = q1[0] - q0[0]
        # θ is a number, not a circle: keep its turns, but take the logarithm's Jacobian from the true angle.
        spin = np.array([domain.const(0), domain.const(0), angle], dtype=domain.dtype)
        shift = self._turn(-q0[0], q1[1:] - q0[1:], domain)
        inverse = left_jacobian_inverse(spin, domain=domain)[:2, :2]
        return np.array([angle, *(inverse @ shift)], dtype=domain.dtype)


class SphericalJoint(JointModel):
    """q a unit quaternion (x, y, z, w), v the angular velocity in the child frame."""

    kind = "spherical"
    nq, nv = 4, 3
    constant_map = np.vstack([np.eye(3), np.zeros((3, 3))])

    def configuration(self, q: Array, *, domain: Domain = FLOAT) -> tuple[Array, Array]:
        return quaternion_matrix(q, domain=domain), domain.zeros(3)

    def velocity_map(self, q: Array, *, domain: Domain = FLOAT) -> Array:
        return domain.array(self.constant_map)

    def velocity_map_rate(self, q: Array, v: Array, *, domain: Domain = FLOAT) -> Array:
        return domain.zeros(6, 3)

    def rate(self, q: Array, v: Array, *, domain: Domain = FLOAT) -> Array:
        return quaternion_rate(q, v, domain=domain)

    def neutral(self) -> Array:
        return np.array([0.0, 0.0, 0.0, 1.0])

    def random(self, rng: np.random.Generator, shape: tuple[int, ...] = ()) -> Array:
        x = rng.normal(size=(*shape, 4))
        return x / np.linalg.norm(x, axis=-1, keepdims=True)

    def integrate(self, q: Array, d: Array, *, domain: Domain = FLOAT) -> Array:
        return self.renormalized(quaternion_product(q, quaternion_exp(d, domain=domain)), domain)

    @staticmethod
    def renormalized(q: Array, domain: Domain) -> Array:
        """One division keeps rounding from growing over many steps; exact numbers pass unchanged."""
        return q / domain.sqrt(q @ q)

    def difference(self, q0: Array, q1: Array, *, domain: Domain = FLOAT) -> Array:
        conjugate = np.array([-q0[0], -q0[1], -q0[2], q0[3]], dtype=domain.dtype)
        return quaternion_log(quaternion_product(conjugate, q1), domain=domain)

    def normalized(self, q: Array) -> Array:
        return q / np.linalg.norm(q)


class FloatingJoint(JointModel):
    """q = (position of the child in the parent, unit quaternion), v = [ω; v] in the child frame."""

    kind = "floating"
    nq, nv = 7, 6
    constant_map = np.eye(6)
    _ball = SphericalJoint()

    def configuration(self, q: Array, *, domain: Domain = FLOAT) -> tuple[Array, Array]:
        return quaternion_matrix(q[3:], domain=domain), q[:3]

    def velocity_map(self, q: Array, *, domain: Domain = FLOAT) -> Array:
        return domain.eye(6)

    def velocity_map_rate(self, q: Array, v: Array, *, domain: Domain = FLOAT) -> Array:
        return domain.zeros(6, 6)

    def rate(self, q: Array, v: Array, *, domain: Domain = FLOAT) -> Array:
        R = quaternion_matrix(q[3:], domain=domain)
        return np.concatenate([R @ v[3:], quaternion_rate(q[3:], v[:3], domain=domain)])

    def neutral(self) -> Array:
        return np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])

    def random(self, rng: np.random.Generator, shape: tuple[int, ...] = ()) -> Array:
        return np.concatenate([rng.uniform(-1, 1, size=(*shape, 3)), self._ball.random(rng, shape)], axis=-1)

    def integrate(self, q: Array, d: Array, *, domain: Domain = FLOAT) -> Array:
        R = quaternion_matrix(q[3:], domain=domain)
        shift = R @ (left_jacobian(d[:3], domain=domain) @ d[3:])
        return np.concatenate([q[:3] + shift, self._ball.integrate(q[3:], d[:3], domain=domain)])

    def difference(self, q0: Array, q1: Array, *, domain: Domain = FLOAT) -> Array:
        phi = self._ball.difference(q0[3:], q1[3:], domain=domain)
        shift = quaternion_matrix(q0[3:], domain=domain).T @ (q1[:3] - q0[:3])
        return np.concatenate([phi, left_jacobian_inverse(phi, domain=domain) @ shift])

    def normalized(self, q: Array) -> Array:
        return np.concatenate([q[:3], self._ball.normalized(q[3:])])


class ReversedJoint(JointModel):
    """A joint walked from its child to its parent: q and v keep their meaning, the motion is inverted.

    X⁻¹ replaces X, and the parent moves relative to the child with −Ad(X) H v. Since ad(V) V = 0, only dH/dt and the
    turning of Ad(X) remain in the rate: d/dt (Ad(X) H) = Ad(X) (ad(Hv) H + Ḣ).
    """

    def __init__(self, joint: JointModel) -> None:
        self.joint = joint
        self.kind, self.nq, self.nv = joint.kind, joint.nq, joint.nv
        self.rates_are_velocities = joint.rates_are_velocities
        H = joint.constant_map
        if H is not None and joint.nv == 1:  # exp(hε) commutes with its own generator
            self.constant_map = -H

    def configuration(self, q: Array, *, domain: Domain = FLOAT) -> tuple[Array, Array]:
        R, p = self.joint.configuration(q, domain=domain)
        return R.T, -(R.T @ p)

    def velocity_map(self, q: Array, *, domain: Domain = FLOAT) -> Array:
        if self.constant_map is not None:
            return domain.array(self.constant_map)
        X = adjoint(*self.joint.configuration(q, domain=domain), domain=domain)
        return -(X @ self.joint.velocity_map(q, domain=domain))

    def velocity_map_rate(self, q: Array, v: Array, *, domain: Domain = FLOAT) -> Array:
        if self.constant_map is not None:
            return domain.zeros(6, self.nv)
        X = adjoint(*self.joint.configuration(q, domain=domain), domain=domain)
        H = self.joint.velocity_map(q, domain=domain)
        V = H @ v
        turning = np.column_stack([_bracket(V, H[:, k], domain) for k in range(self.nv)])
        return -(X @ (turning + self.joint.velocity_map_rate(q, v, domain=domain)))

    def rate(self, q: Array, v: Array, *, domain: Domain = FLOAT) -> Array:
        return self.joint.rate(q, v, domain=domain)

    def neutral(self) -> Array:
        return self.joint.neutral()

    def random(self, rng: np.random.Generator, shape: tuple[int, ...] = ()) -> Array:
        return self.joint.random(rng, shape)

    def integrate(self, q: Array, d: Array, *, domain: Domain = FLOAT) -> Array:
        return self.joint.integrate(q, d, domain=domain)

    def difference(self, q0: Array, q1: Array, *, domain: Domain = FLOAT) -> Array:
        return self.joint.difference(q0, q1, domain=domain)

    def refined(self, found: Array, q: Array, d: Array, *, domain: Domain = FLOAT) -> tuple[Array, list[Any]]:
        return self.joint.refined(found, q, d, domain=domain)

    def normalized(self, q: Array) -> Array:
        return self.joint.normalized(q)


def closed_manifold(model: JointModel) -> bool:
    """True when `integrate` is a closed formula in every domain."""
    if isinstance(model, ReversedJoint):
        return closed_manifold(model.joint)
    return not isinstance(model, MapJoint) or isinstance(model, PlanarJoint) or model.rates_are_velocities


def _bracket(a: Array, b: Array, domain: Domain) -> Array:
    top = skew(a[:3], domain=domain)
    return np.concatenate([top @ b[:3], skew(a[3:], domain=domain) @ b[:3] + top @ b[3:]])


__all__ = [
    "MOST_NEWTON",
    "SAME",
    "FloatingJoint",
    "JointModel",
    "MapJoint",
    "PlanarJoint",
    "ReversedJoint",
    "SphericalJoint",
    "closed_manifold",
]
