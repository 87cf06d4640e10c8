"""Pinocchio as an independent engine: the same URDF read by both, and every quantity carried between them.

Joints and frames are matched by name. What differs, joint by joint (ours → Pinocchio's):

    floating     q alike (position, quaternion xyzw);  v [ω; v] → [v; ω], both in the child's axes
    continuous   q θ → (cos θ, sin θ);                  v alike
    planar       q (θ, x, y) → (x, y, cos θ, sin θ);    v [ω; vx; vy] → [vx; vy; ω], both in the child's axes
    others       alike

So v_pin = P v with P a permutation, and everything that lives on v follows: tau = Pᵀ tau_pin, M = Pᵀ M_pin P,
J = J_pin P (its rows, too, go from [linear; angular] to [angular; linear]).
"""

from __future__ import annotations

import warnings
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polybody.description.records import without_friction
from polybody.description.urdf.reader import read_urdf
from polybody.errors import PolybodyWarning
from polybody.mechanism import mechanism_from
from polybody.model import Model

pin = pytest.importorskip("pinocchio")

Array = np.ndarray

#: The order of Pinocchio's velocity numbers in ours, for kinds where it differs: v_pin[k] = v_ours[ORDER[k]].
_VELOCITY_ORDER = {"floating": (3, 4, 5, 0, 1, 2), "planar": (1, 2, 0)}
#: Rows [linear; angular] ↔ [angular; linear]: its own inverse.
SWAP = np.array([3, 4, 5, 0, 1, 2])


def robots_folder() -> Path | None:
    """Where example-robot-data keeps its robots, or None where it is not installed."""
    try:
        folder = Path(str(distribution("example-robot-data").locate_file("")))
    except PackageNotFoundError:
        return None
    return next((p for p in folder.glob("cmeel.prefix/share/example-robot-data/robots") if p.is_dir()), None)


@lru_cache
def robot_files() -> tuple[Path, ...]:
    """All URDF files of example-robot-data; empty where it is not installed."""
    folder = robots_folder()
    return () if folder is None else tuple(sorted(folder.rglob("*.urdf")))


def robot_file(name: str) -> Path:
    """The file of that name, such as "ur5_robot.urdf"; skips the test where the robots are not installed."""
    found = [path for path in robot_files() if path.name == name]
    if not found:
        pytest.skip(f"example-robot-data has no {name} here")
    return found[0]


class PinModel:
    """One URDF in both engines: `ours` (a polybody Model), `model` and `data` (Pinocchio's), and the ways between."""

    def __init__(self, path: str | Path, floating: bool = False) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PolybodyWarning)
            # Pinocchio reads mimic joints as free ones, unless it is asked not to.
            description = read_urdf(path, base="floating" if floating else "fixed")
            # Pinocchio has no friction in its dynamics
            self.ours = Model(mechanism_from(without_friction(description), couplings=False))
        if floating:
            self.model = pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer())
        else:
            self.model = pin.buildModelFromUrdf(str(path))
        self.data = self.model.createData()
        assert self.model.nv == self.ours.nv
        assert sorted(self.model.names)[:] == sorted(["universe", *self.ours.joint_names])
        #: v_pin = P @ v_ours
        self.P = self._permutation()

    def _joints(self) -> list[tuple[Any, Any]]:
        """(our tree joint, Pinocchio's joint) for every joint."""
        return [(joint, self.model.joints[self.model.getJointId(joint.name)]) for joint in self.ours.mechanism.joints]

    def _permutation(self) -> Array:
        P = np.zeros((self.model.nv, self.ours.nv))
        for joint, theirs in self._joints():
            for k, other in enumerate(_VELOCITY_ORDER.get(joint.kind, range(joint.nv))):
                P[theirs.idx_v + k, joint.v.start + other] = 1
        return P

    # Ours to Pinocchio's.

    def q(self, q: Array) -> Array:
        """Pinocchio's configuration."""
        result = np.empty(self.model.nq)
        for joint, theirs in self._joints():
            part = q[joint.q]
            if joint.kind == "planar":
                part = np.array([part[1], part[2], np.cos(part[0]), np.sin(part[0])])
            elif theirs.nq == 2 and joint.nq == 1:
                part = np.array([np.cos(part[0]), np.sin(part[0])])
            result[theirs.idx_q : theirs.idx_q + theirs.nq] = part
        return result

    def v(self, v: Array) -> Array:
        """Pinocchio's velocity; accelerations alike."""
        return self.P @ v

    def tau(self, tau: Array) -> Array:
        """Pinocchio's joint forces."""
        return self.P @ tau

    def matrix(self, M: Array) -> Array:
        """An nv×nv matrix of ours (mass matrix, …) in Pinocchio's order."""
        return self.P @ M @ self.P.T

    # Pinocchio's to ours.

    def q_back(self, q: Array) -> Array:
        result = np.empty(self.ours.nq)
        for joint, theirs in self._joints():
            part = q[theirs.idx_q : theirs.idx_q + theirs.nq]
            if joint.kind == "planar":
                part = np.array([np.arctan2(part[3], part[2]), part[0], part[1]])
            elif theirs.nq == 2 and joint.nq == 1:
                part = np.array([np.arctan2(part[1], part[0])])
            result[joint.q] = part
        return result

    def v_back(self, v: Array) -> Array:
        return self.P.T @ v

    def tau_back(self, tau: Array) -> Array:
        return self.P.T @ tau

    def matrix_back(self, M: Array) -> Array:
        """Pinocchio's nv×nv matrix in our order."""
        return self.P.T @ M @ self.P

    def jacobian_back(self, J: Array) -> Array:
        """Pinocchio's 6×nv Jacobian with our rows and columns."""
        return J[SWAP] @ self.P

    # Frames.

    def frame_id(self, name: str) -> int:
        """Pinocchio's frame of the link or of the ground; joints may share a link's name, so the type is asked for."""
        if name == "world" and not self.model.existFrame("world", pin.FrameType.BODY):
            return self.model.getFrameId("universe")
        # A floating root link named "world" was renamed by our reader.
        renamed = not self.model.existFrame(name, pin.FrameType.BODY)
        return self.model.getFrameId("world" if renamed else name, pin.FrameType.BODY)

    def frame_poses(self, q: Array) -> dict[str, Array]:
        """The 4×4 pose of every frame of ours, by Pinocchio, at our configuration q."""
        pin.framesForwardKinematics(self.model, self.data, self.q(q))
        return {name: self.data.oMf[self.frame_id(name)].homogeneous.copy() for name in self._own_frames()}

    def frame_jacobians(self, q: Array) -> dict[str, Array]:
        """The Jacobian of every frame of ours, by Pinocchio: our rows and columns, world axes."""
        if self.model.nv == 0:  # Pinocchio 4.1 crashes on Jacobians without columns
            return {name: np.zeros((6, 0)) for name in self._own_frames()}
        pin.computeJointJacobians(self.model, self.data, self.q(q))
        pin.updateFramePlacements(self.model, self.data)
        return {
            name: self.jacobian_back(
                pin.getFrameJacobian(
                    self.model, self.data, self.frame_id(name), pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
                )
            )
            for name in self._own_frames()
        }

    def _own_frames(self) -> list[str]:
        # With a floating base Pinocchio's frame "world" may be the robot's root link, which is renamed on our side.
        floating = bool(self.ours.joint_names) and self.ours.joint_names[0] == "root_joint"
        return [name for name in self.ours.frame_names if not (floating and name == "world")]
