"""A frame's motion and its target: the error, its rate, and the Jacobian with its drift."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from polybody.algebra.rotations import is_rotation
from polybody.errors import InputError
from polybody.formulations.influence import Influence
from polybody.model.arguments import float_array
from polybody.model.model import Model
from polybody.model.rotation_vectors import rotation_vectors
from polybody.quantities.frames import find_frame

Array = np.ndarray


class FrameMotion:
    """`target` is the frame's wanted pose (4, 4), or with rows="position" its wanted position (3,): a constant, a
    function of time, or a path of `pb.paths`, whose motion the frame follows. A path's velocity and acceleration
    are exact (G v and G a + vᵀHv); so are those of a function that returns (goal, velocity, acceleration), rows
    [angular; linear] in world axes. Of a function that returns the goal alone they are differences in time, to about
    1e-7.
    """

    def __init__(self, model: Model, frame: str, target: Any, rows: str = "pose") -> None:
        if rows not in ("pose", "position"):
            raise InputError(f"rows is {rows!r}; expected 'pose' or 'position'")
        find_frame(model.mechanism, frame)
        self.model, self.name, self.position_only = model, frame, rows == "position"
        fixed = None if callable(target) else float_array("target", target)
        self.target: Callable[[float], Any] = target if fixed is None else lambda t: fixed
        self.is_path, self.is_fixed = hasattr(target, "duration"), fixed is not None
        self.tells_motion = self.is_path or isinstance(self.target(0.0), tuple)
        self._check_target()

    @property
    def size(self) -> int:
        """How many rows there are: 6, or 3."""
        return 3 if self.position_only else 6

    def _check_target(self) -> None:
        wanted = (3,) if self.position_only else (4, 4)
        rates = (self.size,)
        if self.is_path:
            shape = np.shape(self.target(0.0)[0])
            if shape != (self.model.nq,):
                raise InputError(
                    f"target is a path through configurations of shape {shape}; expected ({self.model.nq},)"
                )
            return
        found = self.target(0.0) if self.tells_motion else (self.target(0.0),)
        shapes = [np.shape(x) for x in found]
        if shapes[0] != wanted:
            raise InputError(f"target has shape {shapes[0]}; expected {wanted}")
        goal = self.goal(0.0)
        if not self.position_only and not is_rotation(goal[:3, :3], 1e-6):
            raise InputError("target: its upper left 3×3 is not a rotation")
        if self.tells_motion and shapes[1:] != [rates, rates]:
            raise InputError(f"target has rates {shapes[1:]}; expected velocity and acceleration, {rates} each")

    def coefficients(self, q: Array) -> Influence:
        """G and H of the rows."""
        found = self.model.coefficients.influence(q, self.name, 2)
        assert found.H is not None
        return Influence(found.G[3:], found.H[3:]) if self.position_only else found

    def jacobian(self, q: Array, v: Array) -> tuple[Array, Array]:
        """(J, J̇v) over all joints."""
        found = self.coefficients(q)
        return found.G, found.acceleration(v, np.zeros(len(v)))

    def goal(self, t: float) -> Array:
        """The wanted pose or position."""
        found = self.target(t)
        if self.is_path:
            pose = self.model.pose(found[0], self.name)
            return pose[:3, 3] if self.position_only else pose
        goal = np.asarray(found[0] if self.tells_motion else found, dtype=float)
        if not np.isfinite(goal).all():
            raise InputError(f"target is {goal.tolist()} at t = {t:g} s; expected finite numbers")
        return goal

    def goal_motion(self, t: float, q: Array) -> tuple[Array, Array]:
        """Velocity and acceleration of the goal: [angular; linear], or linear alone."""
        if self.is_path:
            goal_q, v, a = self.target(t)
            found = self.coefficients(goal_q)
            return found.velocity(v), found.acceleration(v, a)
        if self.tells_motion:
            _, velocity, acceleration = self.target(t)
            return np.asarray(velocity, dtype=float), np.asarray(acceleration, dtype=float)
        if self.is_fixed:
            still = np.zeros(self.size)
            return still, still
        s = 1e-4  # seconds
        before, now, after = (self.error(at, q) for at in (t - s, t, t + s))
        return (after - before) / (2 * s), (after - 2 * now + before) / s**2

    def error(self, t: float, q: Array, goal: Array | None = None) -> Array:
        """From the frame to its target, world axes: [rotation vector; shift], or the shift alone."""
        pose, goal = self.model.pose(q, self.name), self.goal(t) if goal is None else goal
        if self.position_only:
            return goal - pose[:3, 3]
        turn = rotation_vectors(goal[:3, :3] @ pose[:3, :3].T)
        return np.concatenate([turn, goal[:3, 3] - pose[:3, 3]])


__all__ = ["FrameMotion"]
