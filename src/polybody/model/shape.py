"""What a model is made of: names, sizes, slices, and moving about on its configuration manifold."""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.description.records import Description
from polybody.errors import InputError
from polybody.mechanism import kinematics
from polybody.mechanism.joints import closed_manifold
from polybody.model.arguments import float_array, state_array
from polybody.model.batches import batch_shape, each_state
from polybody.model.compiled import CompiledAnswers

Array = np.ndarray


class ShapeAnswers(CompiledAnswers):
    """Sizes, names, and the manifold of configurations."""

    @property
    def name(self) -> str:
        return self.mechanism.name

    @property
    def description(self) -> Description:
        """What was said, before fixed joints were merged."""
        return self.mechanism.description

    @property
    def nq(self) -> int:
        """How many numbers a configuration has."""
        return self.mechanism.nq

    @property
    def nv(self) -> int:
        """How many numbers a velocity has: the degrees of freedom of the tree."""
        return self.mechanism.nv

    @property
    def gravity(self) -> Array:
        """Gravity in world axes, m/s²."""
        return self.mechanism.gravity.copy()

    @property
    def joint_names(self) -> list[str]:
        """Independent joints with nv > 0 in depth-first preorder."""
        return [joint.name for joint in self.mechanism.independent_joints]

    @property
    def body_names(self) -> list[str]:
        """Moving bodies; body i is moved by joint i."""
        return [body.name for body in self.mechanism.bodies]

    @property
    def frame_names(self) -> list[str]:
        """world, every link, then named frames."""
        return [frame.name for frame in self.mechanism.frames]

    def joint_slices(self) -> dict[str, tuple[slice, slice]]:
        """{joint name: (slice of q, slice of v)}."""
        return {joint.name: (joint.q, joint.v) for joint in self.mechanism.independent_joints}

    def neutral(self) -> Array:
        """The configuration in which every joint's child coincides with its origin."""
        parts = [joint.model.neutral() for joint in self.mechanism.independent_joints]
        return np.concatenate(parts) if parts else np.zeros(0)

    def random_configuration(self, rng: np.random.Generator | int | None = None, size: Any = None) -> Array:
        """Configurations drawn within finite joint limits, quaternions uniformly; shape (nq,) or (*size, nq)."""
        try:
            rng = np.random.default_rng(rng)
        except (TypeError, ValueError):
            raise InputError(f"rng is {rng!r}, wanted a numpy.random.Generator, a whole number or None") from None
        shape = () if size is None else tuple(np.atleast_1d(size))
        if not all(isinstance(n, int | np.integer) and n >= 0 for n in shape):
            raise InputError(f"size is {size!r}, wanted a whole number that is not negative, or several")
        result = np.empty((*shape, self.nq))
        for index in np.ndindex(shape):
            for joint in self.mechanism.independent_joints:
                q = joint.model.random(rng)
                low, high = joint.limits.lower, joint.limits.upper
                if joint.nq == joint.nv:
                    bounded = np.isfinite(low) & np.isfinite(high)
                    q = np.where(bounded, rng.uniform(np.where(bounded, low, 0), np.where(bounded, high, 1)), q)
                result[(*index, joint.q)] = q
        return result

    def integrate(self, q: Any, v: Any, dt: Any = 1.0) -> Array:
        """Move from q with constant velocity v for the time dt, on the manifold: quaternions stay unit."""
        q, v = state_array("q", q, self.nq), state_array("v", v, self.nv)
        time = float_array("dt", dt)
        batch_shape([q, v, time[..., None]])
        d = v * time[..., None]
        return self._on_manifold("integrate", q, d)

    def difference(self, q0: Any, q1: Any) -> Array:
        """The constant velocity that leads from q0 to q1 in unit time."""
        q0, q1 = state_array("q0", q0, self.nq), state_array("q1", q1, self.nq)
        return self._on_manifold("difference", q0, q1)

    def _on_manifold(self, name: str, *arrays: Array) -> Array:
        """Compiled where the text has a closed form; custom joints of several columns iterate, so one by one."""
        if all(closed_manifold(joint.model) for joint in self.mechanism.joints):
            return self.answer(name, *arrays)
        function = getattr(kinematics, name)
        size = self.nq if name == "integrate" else self.nv
        return each_state(lambda *s: function(self.mechanism, *s), arrays, (size,))

    def normalize(self, q: Any) -> Array:
        """q with its quaternions made unit; a zero quaternion is an error."""
        q = state_array("q", q, self.nq).copy()
        for joint in self.mechanism.joints:
            if joint.nq != joint.nv:
                part = q[..., joint.q]
                norms = np.linalg.norm(part[..., -4:], axis=-1, keepdims=True)
                if np.any(norms == 0):
                    raise InputError(f"joint {joint.name!r}: its quaternion is zero; a unit (x, y, z, w) is wanted")
                part[..., -4:] /= norms
        return q


__all__ = ["ShapeAnswers"]
