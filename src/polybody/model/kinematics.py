"""Where frames are and how they move."""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.errors import InputError
from polybody.mechanism.mechanism import BodyFrame
from polybody.model.arguments import choose, state_array
from polybody.model.compiled import CompiledAnswers
from polybody.quantities.table import jacobian_quantity, pose_quantity

Array = np.ndarray


class KinematicAnswers(CompiledAnswers):
    """Poses, Jacobians, centre of mass."""

    def frame(self, name: str) -> BodyFrame:
        """The frame of that name."""
        return self.mechanism.frames[choose("frame", name, self.mechanism.frame_index)]

    def pose(self, q: Any, frame: str) -> Array:
        """Pose of a frame in the world, (..., 4, 4)."""
        q, place = state_array("q", q, self.mechanism.nq), self.frame(frame)

        return self.answer(pose_quantity(place.name), q)

    def jacobian(self, q: Any, frame: str, axes: str = "world") -> Array:
        """Jacobian of the frame's origin, (..., 6, nv): rows [angular; linear], in world axes or the frame's own."""
        if axes not in ("world", "frame"):
            raise InputError(f"axes is {axes!r}, wanted 'world' or 'frame'")
        q, place = state_array("q", q, self.mechanism.nq), self.frame(frame)

        return self.answer(jacobian_quantity(place.name, axes), q)

    def center_of_mass(self, q: Any) -> Array:
        """Centre of mass of everything that moves, in the world, (..., 3)."""
        q = state_array("q", q, self.mechanism.nq)
        if sum(body.mass for body in self.mechanism.bodies) == 0:
            raise InputError(f"{self.mechanism.name!r} has no mass, so it has no centre of mass")
        return self.answer("center_of_mass", q)


__all__ = ["KinematicAnswers"]
