"""A frame's motion and its target, as text: `controllers.frame_motion` over any domain.

The goal is a constant, a path, or a function of time that is an expression. Of a function that returns the goal alone,
velocity and acceleration are those of the error with the frame held, as there, but exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from polybody.algebra.domains import Domain, domain
from polybody.algebra.jets import JetDomain
from polybody.algebra.rotations import rotation_log
from polybody.mechanism import kinematics
from polybody.model.model import Model
from polybody.quantities.frames import find_frame
from polybody.simulation.compiled.law import Signals
from polybody.simulation.compiled.laws import motion_of
from polybody.simulation.compiled.purity import impure
from polybody.simulation.compiled.tracing import key_of, traced
from polybody.simulation.controllers.frame_motion import FrameMotion
from polybody.simulation.failures import NotCompiled

Array = np.ndarray
TIMES = [(0.0,), (0.3,), (1.7,)]
#: (t, row, constants, R, p, domain) -> (error, velocity, acceleration) of the goal
Goal = Callable[..., tuple[Array, Array, Array]]


class FrameText:
    """The text of a `FrameMotion`: `key` distinguishes it from others, `constants` are the numbers of its goal."""

    def __init__(self, model: Model, motion: FrameMotion) -> None:
        self.model, self.given, self.size = model, motion, motion.size
        self.frame = find_frame(model.mechanism, motion.name)
        self.constants, self.signals = np.zeros(0), Signals()
        kind, self._goal = self._goal_text()
        place = [self.frame.body, self.frame.position.tolist(), self.frame.rotation.tolist()]
        self.key = f"{place} {self.size} {kind}"

    def jacobian(self, m: Any, q: Array, v: Array, domain: Domain) -> tuple[Array, Array]:
        """(J, J̇v) over all joints."""
        jets: Any = JetDomain(domain)
        moving = jets.lift(q, kinematics.rate(m, q, v, domain=domain))
        drift = jets.rates(kinematics.frame_jacobian(m, moving, self.frame, domain=jets) @ jets.lift(v))
        J = kinematics.frame_jacobian(m, q, self.frame, domain=domain)
        return J[-self.size :], drift[-self.size :]

    def wanted(
        self, m: Any, t: Any, q: Array, c: Array, row: Array, domain: Domain
    ) -> tuple[Array, Array, Array]:
        """(from the frame to its goal, the goal's velocity, its acceleration)."""
        R, p = self._pose(m, q, domain)
        return self._goal(m, t, row, c, R, p, domain)

    def _pose(self, m: Any, q: Array, domain: Domain) -> tuple[Array, Array]:
        poses = kinematics.supporting_poses(m, q, self.frame.body, domain=domain)
        return kinematics.frame_pose(self.frame, poses, domain=domain)

    def _error(self, R: Array, p: Array, goal: Array, domain: Domain) -> Array:
        """`goal` is a position, or a rotation row by row and a position."""
        if self.size == 3:
            return goal - p
        turn = rotation_log(goal[:9].reshape(3, 3) @ R.T, domain=domain)
        return np.concatenate([turn, goal[9:] - p])

    def _numbers(self, goal: Any) -> Any:
        """A position, or a pose as nine numbers and three."""
        return goal if self.size == 3 else np.concatenate([goal[:3, :3].reshape(-1), goal[:3, 3]])

    def _goal_text(self) -> tuple[str, Goal]:
        if self.given.is_fixed:
            self.constants = self._numbers(self.given.goal(0.0))
            return "still", self._still
        if self.given.is_path:
            return self._along()
        reason = impure(self.given.target)
        if reason:
            raise NotCompiled(f"the controller's target is called in Python: {reason}")
        try:
            return self._told() if self.given.tells_motion else self._moving()
        except NotCompiled as reason:
            raise NotCompiled(f"the controller's target is called in Python: {reason}") from None

    def _still(
        self, m: Any, t: Any, row: Array, c: Array, R: Array, p: Array, domain: Domain
    ) -> tuple[Array, Array, Array]:
        still = domain.zeros(self.size)
        return self._error(R, p, c, domain), still, still

    def _along(self) -> tuple[str, Goal]:
        name, motion, self.signals = motion_of(self.model, self.given.target, whole=True)

        def text(
            m: Any, t: Any, row: Array, c: Array, R: Array, p: Array, domain: Domain
        ) -> tuple[Array, Array, Array]:
            goal_q, v, a = motion(t, row, domain)
            there, place = self._pose(m, goal_q, domain)
            J, drift = self.jacobian(m, goal_q, v, domain)
            goal = place if self.size == 3 else np.concatenate([there.reshape(-1), place])
            return self._error(R, p, goal, domain), J @ v, J @ a + drift

        return f"along {name}", text

    def _told(self) -> tuple[str, Goal]:
        n, count = self.size, 3 if self.size == 3 else 12

        def numbers(t: Any) -> Any:
            goal, velocity, acceleration = self.given.target(t)
            parts = [self._numbers(np.asarray(goal)), np.asarray(velocity), np.asarray(acceleration)]
            return np.concatenate(parts)

        made = _of_time(numbers, count + 2 * n)

        def text(
            m: Any, t: Any, row: Array, c: Array, R: Array, p: Array, domain: Any
        ) -> tuple[Array, Array, Array]:
            found = domain.scalars(made(domain.column([t])))
            return self._error(R, p, found[:count], domain), found[count : count + n], found[count + n :]

        return f"told {key_of(made)}", text

    def _moving(self) -> tuple[str, Goal]:
        import casadi

        made = _of_time(lambda t: self._numbers(np.asarray(self.given.target(t))), 3 if self.size == 3 else 12)
        graph: Any = domain("casadi")
        t, _ = graph.variables("t", 1)
        (turned, R), (shifted, p) = graph.variables("R", 9), graph.variables("p", 3)
        error = graph.column(self._error(R.reshape(3, 3), p, graph.scalars(made(t)), graph))
        rate = casadi.jtimes(error, t, casadi.SX(1))
        bend = casadi.jtimes(rate, t, casadi.SX(1))
        function = casadi.Function("moving", [t, turned, shifted], [error, rate, bend])

        def text(
            m: Any, t: Any, row: Array, c: Array, R: Array, p: Array, domain: Any
        ) -> tuple[Array, Array, Array]:
            found = function(domain.column([t]), domain.column(R.reshape(-1)), domain.column(p))
            error, rate, bend = (domain.scalars(x) for x in found)
            return error, rate, bend

        return f"moving {key_of(made)}", text


def _of_time(function: Any, size: int) -> Any:
    return traced(function, (0,), size, TIMES)


__all__ = ["FrameText"]
