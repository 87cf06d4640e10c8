"""MuJoCo as an independent engine: the same MJCF read by both, and every quantity carried between them.

Joints are matched by name; a compound joint of ours is named after MuJoCo's joints, from the child outwards. Ours →
MuJoCo's:

    hinge, slide   q + ref                                      v alike
    ball           quaternion (x, y, z, w) → (w, x, y, z)       v alike (ω in the child's axes)
    free           position, quaternion reordered               [ω; v] in the child's axes → [R v; ω]

So v_mj = B(q) v with B orthogonal, M = Bᵀ M_mj B, J = J_mj B, and a_mj = B a + Ḃ v where only the free joint's
d/dt(R v) = R (ω × v) adds.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from polybody.algebra.rotations import quaternion_matrix
from polybody.description.mjcf.reader import read_mjcf
from polybody.description.records import without_friction
from polybody.mechanism import mechanism_from
from polybody.mechanism.mechanism import TreeJoint
from polybody.model import Model

mujoco = pytest.importorskip("mujoco")

Array = np.ndarray


class MujocoModel:
    """One MJCF file in both engines: `ours`, `model` and `data` (MuJoCo's), and the ways between."""

    def __init__(self, path: str | Path) -> None:
        self.description = read_mjcf(path)
        # joint equalities and dry friction are constraints there, not part of smooth dynamics
        self.ours = Model(mechanism_from(without_friction(self.description), couplings=False))
        mujoco.set_mju_user_warning(lambda message: None)  # else it writes a log file into the current folder
        self.model = mujoco.MjModel.from_xml_path(str(path))
        self.data = mujoco.MjData(self.model)
        #: for each of our velocity numbers of hinges and slides, MuJoCo's joint
        self.parts = [(joint, self._indices(joint)) for joint in self.ours.mechanism.joints]

    def _indices(self, joint: TreeJoint) -> list[int]:
        if joint.kind == "floating":
            return [int(self.model.body(joint.record.child).jntadr[0])]
        return [self.model.joint(name).id for name in joint.name.split("+")]

    def q(self, q: Array) -> Array:
        """MuJoCo's qpos."""
        result = self.model.qpos0.copy()
        for joint, indices in self.parts:
            part = q[joint.q]
            if joint.kind in ("floating", "spherical"):
                start = self.model.jnt_qposadr[indices[0]]
                turned = np.array([*part[:-4], part[-1], *part[-4:-1]])
                result[start : start + joint.nq] = turned
            else:
                for value, j in zip(part, indices, strict=True):
                    result[self.model.jnt_qposadr[j]] += value
        return result

    def v_map(self, q: Array) -> Array:
        """B(q) with v_mj = B v."""
        B = np.zeros((self.model.nv, self.ours.nv))
        for joint, indices in self.parts:
            dof = self.model.jnt_dofadr[indices[0]]
            if joint.kind == "floating":
                B[dof : dof + 3, joint.v.start + 3 : joint.v.stop] = quaternion_matrix(q[joint.q][3:])
                B[dof + 3 : dof + 6, joint.v.start : joint.v.start + 3] = np.eye(3)
            elif joint.kind == "spherical":
                B[dof : dof + 3, joint.v] = np.eye(3)
            else:
                for k, j in enumerate(indices):
                    B[self.model.jnt_dofadr[j], joint.v.start + k] = 1
        return B

    def a(self, q: Array, v: Array, a: Array) -> Array:
        """MuJoCo's qacc: B a + Ḃ v."""
        result = self.v_map(q) @ a
        for joint, indices in self.parts:
            if joint.kind == "floating":
                dof, (omega, linear) = self.model.jnt_dofadr[indices[0]], np.split(v[joint.v], 2)
                result[dof : dof + 3] += quaternion_matrix(q[joint.q][3:]) @ np.cross(omega, linear)
        return result

    def move(self, q: Array, v: Array | None = None) -> None:
        """Put MuJoCo at our state and compute everything that depends on it."""
        self.data.qpos[:] = self.q(q)
        self.data.qvel[:] = 0 if v is None else self.v_map(q) @ v
        mujoco.mj_forward(self.model, self.data)

    def place(self, q: Array) -> None:
        """Put MuJoCo at our configuration and compute its kinematics only (no mass matrix, which may be singular)."""
        self.data.qpos[:] = self.q(q)
        mujoco.mj_kinematics(self.model, self.data)
        mujoco.mj_comPos(self.model, self.data)

    def body_pose(self, name: str) -> Array:
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = self.data.body(name).xmat.reshape(3, 3), self.data.body(name).xpos
        return pose

    def body_jacobian(self, q: Array, name: str) -> Array:
        """Of the body's origin, our rows and columns, world axes."""
        linear, angular = np.zeros((3, self.model.nv)), np.zeros((3, self.model.nv))
        mujoco.mj_jacBody(self.model, self.data, linear, angular, self.data.body(name).id)
        return np.vstack([angular, linear]) @ self.v_map(q)

    def mass_matrix(self, q: Array) -> Array:
        """Ours, by MuJoCo (armature included)."""
        B = self.v_map(q)
        columns = np.zeros((self.ours.nv, self.model.nv))
        for k in range(self.ours.nv):
            mujoco.mj_mulM(self.model, self.data, columns[k], B[:, k].copy())
        return B.T @ columns.T
