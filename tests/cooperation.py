"""Random arms that hold an object, and an independent solution of their motion, for tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mechanisms import random_body, random_joint, random_pose
from polybody.algebra.domains import FLOAT
from polybody.algebra.jets import JetDomain
from polybody.algebra.spatial import pose
from polybody.description.records import Body, Coupling, Description, Frame, Joint, frozen_array
from polybody.formulations import denoc
from polybody.grasping.grasp import Grasp
from polybody.grasping.making import grasp
from polybody.mechanism import kinematics, mechanism_from
from polybody.model import Model
from polybody.quantities.frames import find_frame

JETS = JetDomain(FLOAT)
SIX = ("revolute", "spherical", "prismatic", "revolute")  # six columns
MIXED = ("universal", "revolute", "spherical", "revolute")  # seven columns
FOUR = ("spherical", "prismatic")
THREE = ("revolute", "prismatic", "revolute")


def held_system(
    seed: int,
    arms: Sequence[Sequence[str]],
    *,
    base: str = "floating",
    trunk: Sequence[str] = (),
    gravity: Sequence[float] = (0.0, 0.0, 0.0),
    passive: bool = False,
    armature: bool = False,
    closed: bool = True,
    couplings: Sequence[Coupling] = (),
) -> tuple[Grasp, np.ndarray, np.ndarray, np.ndarray]:
    """(grasp, q, v, tau): arms of the given joint kinds on a trunk on a base, holding a free object."""
    rng = np.random.default_rng(seed)
    bodies: list[Body] = []
    joints: list[Joint] = []
    frames: list[Frame] = []

    def attach(name: str, kind: str, parent: str) -> str:
        options = {"stiffness": passive, "damping": passive, "armature": armature and kind != "floating"}
        joints.append(random_joint(rng, f"{name}_joint", kind, parent, name, **options))
        bodies.append(random_body(rng, name))
        return name

    stem = attach("base", base, "world")
    for k, kind in enumerate(trunk):
        stem = attach(f"trunk{k}", kind, stem)
    for j, kinds in enumerate(arms):
        near = stem
        for k, kind in enumerate(kinds):
            near = attach(f"arm{j}_{k}", kind, near)
        frames.append(Frame(f"hand{j}", near, frozen_array(random_pose(rng, 0.2))))
    description = Description(
        "arms", frozen_array(gravity), tuple(bodies), tuple(joints), tuple(frames), couplings=tuple(couplings)
    )
    load = random_body(rng, "load")
    free = Model(mechanism_from(description))
    q_free = free.random_configuration(rng)
    # The object starts in a random pose; the grips are where the hands then are.
    places, poses = {}, kinematics.body_poses(free.mechanism, q_free)  # without a kernel for every hand
    T = random_pose(rng, 1.0)
    for j in range(len(arms)):
        hand = pose(*kinematics.frame_pose(find_frame(free.mechanism, f"hand{j}"), poses))
        places[f"hand{j}"] = np.linalg.inv(T) @ hand
    held = grasp(free, load, places)
    model = held.model
    q, v, tau = model.neutral(), rng.normal(size=model.nv), rng.normal(size=model.nv)
    q[: free.nq] = q_free
    q[free.nq : free.nq + 3] = T[:3, 3]
    q[free.nq + 3 :] = quaternion(T[:3, :3])
    if closed:  # without a kernel, which a test of one state need not wait for
        v = captured(denoc.mass_matrix(model.mechanism, q), world_closure(held, q), v)
    return held, q, v, tau


def captured(M: np.ndarray, A: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The velocity nearest to v in kinetic energy with A v = 0."""
    Y = np.linalg.solve(M, A.T)
    return v - Y @ (np.linalg.pinv(A @ Y, rcond=1e-12, hermitian=True) @ (A @ v))


def quaternion(R: np.ndarray) -> np.ndarray:
    from scipy.spatial.transform import Rotation

    return Rotation.from_matrix(R).as_quat()


def world_closure(held: Grasp, q: np.ndarray, domain=FLOAT):
    """Rows of (hand − grip) twists in world axes at each hand, by frame Jacobians: no code in common with operators."""
    m = held.model.mechanism
    blocks = [
        kinematics.frame_jacobian(m, q, grip.tip, domain=domain)
        - kinematics.frame_jacobian(m, q, grip.hold, domain=domain)
        for grip in held.held.grips
    ]
    return np.vstack(blocks)


def kkt(held: Grasp, q: np.ndarray, v: np.ndarray, tau: np.ndarray):
    """(a, f_e in hand axes) from the whole mass matrix and the closure of the grips, as one saddle system."""
    m = held.model.mechanism
    A = world_closure(held, q)
    moved = JETS.lift(q, kinematics.rate(m, q, v))
    A_dot = JETS.rates(world_closure(held, moved, JETS))
    M = denoc.mass_matrix(m, q)
    right = tau - denoc.bias_forces(m, q, v) + denoc.passive_forces(m, q, v)
    n, k = len(v), len(A)
    K = np.block([[M, A.T], [A, np.zeros((k, k))]])
    x = np.linalg.lstsq(K, np.concatenate([right, -A_dot @ v]), rcond=1e-13)[0]
    poses = kinematics.body_poses(m, q)
    loads = []
    for j, grip in enumerate(held.held.grips):
        R, _ = kinematics.frame_pose(grip.tip, poses)
        w = x[n + 6 * j : n + 6 * j + 6]
        loads.append(np.concatenate([R.T @ w[:3], R.T @ w[3:]]))
    return x[:n], np.array(loads)
