"""The motion of frame b as seen from frame a, along the joints between their bodies.

The branches to both bodies part at a body c (or the ground). Every body i on them has an origin o_i and a rotation T_i
of its axes into those of a; from a inwards to c, and from there outwards to b,

    T_parent = T_i R_iᵀ,    o_parent = o_i − T_parent r_i;          T_i = T_parent R_i,    o_i = o_parent + T_parent r_i

with (R_i, r_i) the pose of i in its parent. A joint's columns H = [H_ω; H_u] in body axes move the point of frame b,
which is at x_i in axes of body i (x_parent = r_i + R_i x_i), by T_i (H_u + H_ω × x_i): joints on a's branch by the
negative of that. Twists V_i = [ω; u] of bodies against c, and the rates of their numbers while v is held, are

    V_i = V_J + Ad V_parent,    V̇_i = Ḣ v + Ad V̇_parent − ad(V_J) Ad V_parent           V_J = H v

so that of the relative twist V = [ω; u] in a's axes, ω_a that of a's body and ẋ that of b's point in its axes,

    V̇ = T_b V̇_b + ω × (T_b V_b) − T_a (V̇_a at x + [0; ω_a × ẋ])

Everything is written in the axes of the bodies, where most numbers are zeros and constants: through world axes the
same rows take nearly twice the operations (a Stewart platform).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from polybody.algebra.domains import Array
from polybody.algebra.rotations import cross
from polybody.mechanism.kinematics import Pose
from polybody.mechanism.mechanism import GROUND, BodyFrame, Mechanism

if TYPE_CHECKING:
    from polybody.constraints.place import Place


class Between:
    """Geometry between two frames at a place."""

    def __init__(self, place: Place, a: BodyFrame, b: BodyFrame) -> None:
        self.place, self.a, self.b = place, a, b
        self.top, self.to_a, self.to_b = branches(place.mechanism, a.body, b.body)
        self._turns: dict[int, Array] = {}
        self.pose = self._posed()

    def _posed(self) -> Pose:
        """(R, p) of b in a."""
        a, b, d = self.a, self.b, self.place.domain
        T = d.array(a.rotation).T
        o = -(T @ d.array(a.position))
        for i in reversed(self.to_a):
            self._turns[i] = T
            R, r = self.place.step(i)
            T = T @ R.T
            o = o - T @ r
        for i in self.to_b:
            R, r = self.place.step(i)
            T, o = T @ R, o + T @ r
            self._turns[i] = T
        self._last = T  # of b's body
        return T @ d.array(b.rotation), o + T @ d.array(b.position)

    def _point(self) -> Array:
        """Where frame b is, in axes of a's body."""
        d = self.place.domain
        return d.array(self.a.position) + d.array(self.a.rotation) @ self.pose[1]

    def columns(self) -> Array:
        """6×k over `velocities_between`: of b against a in a's axes at b's origin."""
        place, m, d = self.place, self.place.mechanism, self.place.domain
        slots = {slot: k for k, slot in enumerate(velocities_between(m, self.a.body, self.b.body))}
        J = d.zeros(6, len(slots))
        for branch, x, sign in ((self.to_b, d.array(self.b.position), 1), (self.to_a, self._point(), -1)):
            for i in reversed(branch):
                H, T = place.map(i), self._turns[i]
                lifted = [H[3:, k] + cross(H[:3, k], x) for k in range(H.shape[1])]
                block = np.concatenate([T @ H[:3], T @ np.array(lifted, dtype=d.dtype).reshape(-1, 3).T])
                first = slots[m.joints[i].v.start]  # a joint's velocities stand together
                own = slice(first, first + block.shape[1])
                J[:, own] = J[:, own] + block if sign > 0 else J[:, own] - block
                R, r = place.step(i)
                x = r + R @ x
        return J

    def twist(self, place: Place) -> Array:
        """V of b against a in a's axes at b's origin; `place` is this one with velocities."""
        parts = self._carried(place)
        return np.concatenate([parts[0][0] - parts[1][0], parts[0][1] - parts[1][1]])

    def _carried(self, place: Place) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """(ω, u) of both bodies against `top` at b's origin, in a's axes: of b's, of a's."""
        d = place.domain
        T, (w, u) = self._last, place.against(self.top, self.b.body, self.to_b)[0]
        there = T @ w, T @ (u + cross(w, d.array(self.b.position)))
        T, (w, u) = d.array(self.a.rotation).T, place.against(self.top, self.a.body, self.to_a)[0]
        return there, (T @ w, T @ (u + cross(w, self._point())))

    def rate(self, place: Place) -> tuple[Array, Array]:
        """(V, V̇): the relative twist and the rate of its numbers while v is held."""
        d = place.domain
        (wb, ub), (wa, ua) = self._carried(place)
        V = np.concatenate([wb - wa, ub - ua])
        T, (w, u) = self._last, place.against(self.top, self.b.body, self.to_b)[1]
        turned = T @ w + cross(V[:3], wb)
        moved = T @ (u + cross(w, d.array(self.b.position))) + cross(V[:3], ub)
        T, (w, u) = d.array(self.a.rotation).T, place.against(self.top, self.a.body, self.to_a)[1]
        moved = moved - T @ (u + cross(w, self._point())) - cross(wa, V[3:])
        return V, np.concatenate([turned - T @ w, moved])


def branches(mechanism: Mechanism, a: int, b: int) -> tuple[int, list[int], list[int]]:
    """(the last body that carries both, or the ground; joints from there to a; to b)."""
    below_a, below_b = ([] if body == GROUND else list(mechanism.supports[body]) for body in (a, b))
    shared = 0
    while shared < min(len(below_a), len(below_b)) and below_a[shared] == below_b[shared]:
        shared += 1
    return below_a[shared - 1] if shared else GROUND, below_a[shared:], below_b[shared:]


def velocities_between(mechanism: Mechanism, a: int, b: int) -> list[int]:
    """The velocities of the joints between two bodies, in order; one that several joints share comes once."""
    _, to_a, to_b = branches(mechanism, a, b)
    slices = [mechanism.joints[i].v for i in sorted([*to_a, *to_b])]
    return list(dict.fromkeys(k for part in slices for k in range(part.start, part.stop)))


__all__ = ["Between", "branches", "velocities_between"]
