"""A configuration's geometry, computed once for all constraints: poses, joint columns, twists.

Twists are kept at the world's origin in world axes, where they add along the tree: W_i = W_parent + S_i v_i, with S_i
the columns of joint i there. The velocity of a point x of body i is W_lin + W_ang × x. What frames do against each
other is worked out along the joints between them (`between`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.algebra.domains import Array, Domain
from polybody.algebra.rotations import cross
from polybody.constraints.between import Between
from polybody.mechanism.kinematics import Pose, body_poses, frame_pose, relative_pose, world_maps
from polybody.mechanism.mechanism import GROUND, BodyFrame, Mechanism
from polybody.properties import cached_property

Twist = tuple[Array, Array]


class Place:
    """Where everything is at q and, where v is given, how it moves; over any domain."""

    def __init__(self, mechanism: Mechanism, q: Array, v: Array | None = None, *, domain: Domain) -> None:
        self.mechanism, self.q, self.v, self.domain = mechanism, q, v, domain
        self._frames: dict[int, tuple[BodyFrame, Pose]] = {}
        self._between: dict[tuple[int, int], Between] | None = {}
        self._steps: dict[int, Pose] = {}
        self._maps: dict[int, Array] = {}
        self._against: dict[tuple[int, int], tuple[Twist, Twist]] = {}

    def moving(self, v: Array) -> Place:
        """The same place with velocities."""
        place = Place.__new__(Place)
        place.__dict__.update({key: value for key, value in self.__dict__.items() if key != "twists"})
        place.v, place._against = v, {}
        return place

    @classmethod
    def given(
        cls, mechanism: Mechanism, q: Array, v: Array, poses: list[Pose], twists: list[Array], *, domain: Domain
    ) -> Place:  # fmt: skip
        """The place of bodies whose poses, and world-axes twists at the world's origin, are known from elsewhere.

        Frames name bodies by their index in these lists. It has no columns.
        """
        place = cls.__new__(cls)
        place.mechanism, place.q, place.v, place.domain = mechanism, q, v, domain
        place._frames, place._between = {}, None
        place.__dict__.update(poses=poses, twists=twists)
        return place

    @cached_property
    def poses(self) -> list[Pose]:
        """Of every body in the world."""
        return body_poses(self.mechanism, self.q, domain=self.domain)

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

    # Along the joints of the tree.

    def step(self, joint: int) -> Pose:
        """(R, r) of the joint's body in its parent's frame."""
        if joint not in self._steps:
            self._steps[joint] = relative_pose(self.mechanism.joints[joint], self.q, domain=self.domain)
        return self._steps[joint]

    def map(self, joint: int) -> Array:
        """H of a joint, in axes of its body."""
        if joint not in self._maps:
            one = self.mechanism.joints[joint]
            self._maps[joint] = one.model.velocity_map(self.q[one.q], domain=self.domain)
        return self._maps[joint]

    def against(self, top: int, body: int, branch: list[int]) -> tuple[Twist, Twist]:
        """Twist of a body against `top`, which carries it by the joints of the branch, in its own axes at its origin,
        and the rate of its numbers while v is held: (ω, u) each."""
        assert self.v is not None, "a place without velocities was asked for twists"
        zeros = self.domain.zeros(3)
        found: tuple[Twist, Twist] = (zeros, zeros), (zeros, zeros)
        for i in branch:
            known = self._against.get((top, i))
            if known is None:
                joint, (R, r), H = self.mechanism.joints[i], self.step(i), self.map(i)
                q, v = self.q[joint.q], self.v[joint.v]
                own, more = H @ v, joint.model.velocity_map_rate(q, v, domain=self.domain) @ v
                (w, u), (dw, du) = ((R.T @ w, R.T @ (u + cross(w, r))) for w, u in found)
                wj, uj = own[:3], own[3:]
                rate = more[:3] + dw - cross(wj, w), more[3:] + du - cross(wj, u) - cross(uj, w)
                known = self._against[top, i] = (wj + w, uj + u), rate
            found = known
        return found

    # The motion of frame b as seen from frame a, in a's axes, at b's origin.

    def relative_pose(self, a: BodyFrame, b: BodyFrame) -> Pose:
        if self._between is not None:
            return self._path(a, b).pose
        (Ra, pa), (Rb, pb) = self.frame(a), self.frame(b)
        return Ra.T @ Rb, Ra.T @ (pb - pa)

    def relative_jacobian(self, a: BodyFrame, b: BodyFrame) -> Array:
        """6×k over the columns `velocities_between`."""
        return self._path(a, b).columns()

    def relative_twist(self, a: BodyFrame, b: BodyFrame) -> Array:
        if self._between is not None:
            return self._path(a, b).twist(self)
        (Ra, _), (_, pb) = self.frame(a), self.frame(b)
        V = self.twist(b.body, pb) - self.twist(a.body, pb)
        return np.concatenate([Ra.T @ V[:3], Ra.T @ V[3:]])

    def relative_rate(self, a: BodyFrame, b: BodyFrame) -> tuple[Array, Array]:
        """(the relative twist, the rate of its numbers while v is held)."""
        return self._path(a, b).rate(self)

    def _path(self, a: BodyFrame, b: BodyFrame) -> Between:
        assert self._between is not None, "bodies known from elsewhere have no joints between them"
        key = id(a), id(b)  # both are kept alive by what is found
        if key not in self._between:
            self._between[key] = Between(self, a, b)
        return self._between[key]

    def number(self, index: int) -> Any:
        """One number of q."""
        return self.q[index]


__all__ = ["Place"]
