"""Where frames are and how they move."""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.algebra.spatial import pose
from polybody.errors import InputError
from polybody.mechanism import kinematics
from polybody.mechanism.mechanism import BodyFrame, Mechanism
from polybody.model.arguments import choose, state_array
from polybody.model.batches import each_state

Array = np.ndarray


class KinematicAnswers:
    """Poses, Jacobians, centre of mass."""

    mechanism: Mechanism

    def frame(self, name: str) -> BodyFrame:
        """The frame of that name."""
        return self.mechanism.frames[choose("frame", name, self.mechanism.frame_index)]

    def pose(self, q: Any, frame: str) -> Array:
        """Pose of a frame in the world, (..., 4, 4)."""
        q, place = state_array("q", q, self.mechanism.nq), self.frame(frame)

        def one(q: Array) -> Array:
            return pose(*kinematics.frame_pose(place, kinematics.body_poses(self.mechanism, q)))

        return each_state(one, (q,), (4, 4))

    def jacobian(self, q: Any, frame: str, axes: str = "world") -> Array:
        """Jacobian of the frame's origin, (..., 6, nv): rows [angular; linear], in world axes or the frame's own."""
        if axes not in ("world", "frame"):
            raise InputError(f"axes is {axes!r}, wanted 'world' or 'frame'")
        q, place = state_array("q", q, self.mechanism.nq), self.frame(frame)

        def one(q: Array) -> Array:
            J = kinematics.frame_jacobian(self.mechanism, q, place)
            if axes == "frame":
                R, _ = kinematics.frame_pose(place, kinematics.body_poses(self.mechanism, q))
                J = np.vstack([R.T @ J[:3], R.T @ J[3:]])
            return J

        return each_state(one, (q,), (6, self.mechanism.nv))

    def center_of_mass(self, q: Any) -> Array:
        """Centre of mass of everything that moves, in the world, (..., 3)."""
        q = state_array("q", q, self.mechanism.nq)
        if sum(body.mass for body in self.mechanism.bodies) == 0:
            raise InputError(f"{self.mechanism.name!r} has no mass, so it has no centre of mass")
        return each_state(lambda q: kinematics.center_of_mass(self.mechanism, q), (q,), (3,))


__all__ = ["KinematicAnswers"]
