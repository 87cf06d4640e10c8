"""A configuration's geometry, computed once for all constraints: poses, joint columns, twists.

Twists are kept at the world's origin in world axes, where they add along the tree: W_i = W_parent + S_i v_i, with S_i
the columns of joint i there. The velocity of a point x of body i is W_lin + W_ang × x.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.algebra.domains import Array, Domain
from polybody.algebra.rotations import cross
from polybody.mechanism.kinematics import Pose, body_poses, frame_pose, world_maps
from polybody.mechanism.mechanism import GROUND, BodyFrame, Mechanism
from polybody.properties import cached_property


class Place:
    """Where everything is at q and, where v is given, how it moves; over any domain."""

    def __init__(self, mechanism: Mechanism, q: Array, v: Array | None = None, *, domain: Domain) -> None:
        self.mechanism, self.q, self.v, self.domain = mechanism, q, v, domain
        self.poses: list[Pose] = body_poses(mechanism, q, domain=domain)
        self._frames: dict[int, tuple[BodyFrame, Pose]] = {}
        self._relative: dict[tuple[int, int], tuple[BodyFrame, BodyFrame, Pose]] = {}

    def moving(self, v: Array) -> Place:
        """The same place with velocities."""
        place = Place.__new__(Place)
        place.__dict__.update({key: value for key, value in self.__dict__.items() if key != "twists"})
        place.v = v
        return place

    @classmethod
    def given(
        cls, mechanism: Mechanism, q: Array, v: Array, poses: list[Pose], twists: list[Array], *, domain: Domain
    ) -> Place:  # fmt: skip
        """The place of bodies whose poses, and world-axes twists at the world's origin, are known from elsewhere.

        Frames name bodies by their index in these lists. It has no columns.
        """
        place = cls.__new__(cls)
        place.mechanism, place.q, place.v, place.domain, place.poses = mechanism, q, v, domain, poses
        place._frames, place._relative = {}, {}
        place.__dict__["twists"] = twists
        return place

    @cached_property
    def columns(self) -> list[Array]:
        return world_maps(self.mechanism, self.q, self.poses, domain=self.domain)

    @cached_property
    def twists(self) -> list[Array]:
        """World-axes twists at the world's origin."""
        assert self.v is not None, "a place without velocities was asked for twists"
        result: list[Array] = []
        for joint, S in zip(self.mechanism.joints, self.columns, strict=True):
            own = S @ self.v[joint.v]
            result.append(own if joint.parent == GROUND else result[joint.parent] + own)
        return result

    def frame(self, frame: BodyFrame) -> Pose:
        known = self._frames.get(id(frame))
        if known is None:
            known = self._frames[id(frame)] = frame, frame_pose(frame, self.poses, domain=self.domain)
        return known[1]

    def twist(self, body: int, point: Array) -> Array:
        """Twist of the body's point that is at `point`, world axes."""
        if body == GROUND:
            return self.domain.zeros(6)
        W = self.twists[body]
        return np.concatenate([W[:3], W[3:] + cross(W[:3], point)])

    # The motion of frame b as seen from frame a, in a's axes, at b's origin.

    def relative_pose(self, a: BodyFrame, b: BodyFrame) -> Pose:
        known = self._relative.get((id(a), id(b)))
        if known is None:
            (Ra, pa), (Rb, pb) = self.frame(a), self.frame(b)
            known = self._relative[id(a), id(b)] = a, b, (Ra.T @ Rb, Ra.T @ (pb - pa))
        return known[2]

    def relative_jacobian(self, a: BodyFrame, b: BodyFrame) -> Array:
        """6×k over the columns `velocities_between`: both bodies' twists at b's origin subtract, in a's axes."""
        (Ra, _), (_, pb) = self.frame(a), self.frame(b)
        place = {slot: k for k, slot in enumerate(velocities_between(self.mechanism, a.body, b.body))}
        J = self.domain.zeros(6, len(place))
        for i, sign in joints_between(self.mechanism, a.body, b.body):
            w, u = self.columns[i][:3], self.columns[i][3:]
            moved = np.array([u[:, k] + cross(w[:, k], pb) for k in range(w.shape[1])], dtype=self.domain.dtype).T
            block = np.concatenate([Ra.T @ w, Ra.T @ moved])
            first = place[self.mechanism.joints[i].v.start]  # a joint's velocities stand together
            own = slice(first, first + block.shape[1])
            J[:, own] = J[:, own] + block if sign > 0 else J[:, own] - block
        return J

    def relative_twist(self, a: BodyFrame, b: BodyFrame) -> Array:
        (Ra, _), (_, pb) = self.frame(a), self.frame(b)
        V = self.twist(b.body, pb) - self.twist(a.body, pb)
        return np.concatenate([Ra.T @ V[:3], Ra.T @ V[3:]])

    def number(self, index: int) -> Any:
        """One number of q."""
        return self.q[index]


def joints_between(mechanism: Mechanism, a: int, b: int) -> list[tuple[int, int]]:
    """(joint, ±1) of the joints that move body b against body a: those below b alone, and, reversed, below a alone."""
    below_a, below_b = (() if body == GROUND else mechanism.supports[body] for body in (a, b))
    signs = {i: 1 for i in below_b if i not in below_a} | {i: -1 for i in below_a if i not in below_b}
    return sorted(signs.items())


def velocities_between(mechanism: Mechanism, a: int, b: int) -> list[int]:
    """The velocities of `joints_between`, in order; one that several joints share comes once."""
    slices = [mechanism.joints[i].v for i, _ in joints_between(mechanism, a, b)]
    return list(dict.fromkeys(k for part in slices for k in range(part.start, part.stop)))


__all__ = ["Place", "joints_between", "velocities_between"]
