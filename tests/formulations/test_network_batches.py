"""Networks of mechanisms with loops, many states together: as elimination along plans and as one state at a time."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb
from mechanisms import closed_tree, random_pose
from polybody.algebra.rotations import matrix_quaternion
from polybody.errors import InputError
from polybody.formulations.network.batched import solve_many
from polybody.mechanism.kinds import joint_model
from polybody.model.validation import model_from

Y, Z, W = np.eye(6)[[1, 2, 5]]


def near(found: np.ndarray, wanted: np.ndarray, tolerance: float) -> None:
    scale = 1 + np.abs(wanted).max(axis=-1, keepdims=True)
    np.testing.assert_array_less(np.abs(found - wanted) / scale, tolerance)


@pytest.mark.parametrize("name", ["four-bar", "slider-crank", "delta", "3-rrr", "walking-machine"])
def test_accelerations_of_batches_are_those_along_plans_and_of_single_states(name: str) -> None:
    model, rng = pb.load(name), np.random.default_rng(0)
    q = model.random_configuration(rng, (3, 2))
    v = model.assemble_velocity(q, rng.normal(size=(3, 2, model.nv)))
    tau = rng.normal(size=model.nv)  # the same for all
    found = model.forward_dynamics(q, v, tau, formulation="network")
    near(found, model.forward_dynamics(q, v, tau), 1e-7)
    near(found[1, 1], model.forward_dynamics(q[1, 1], v[1, 1], tau, formulation="network"), 1e-5)


CUTS = {
    "spherical": {}, "universal": {}, "planar": {}, "cylindrical": {"stiffness": [3.0, 4.0], "rest": [2.5, 0.1]},
    "revolute": {"stiffness": 5.0, "rest": -2.8, "damping": 0.3}, "prismatic": {"stiffness": 7.0},
    "custom": {"map": np.array([Y, Z, W]).T, "stages": (1, 1, 1)},
}  # fmt: skip


@pytest.mark.parametrize("kind", CUTS)
def test_cut_joints_of_every_kind_are_placed_in_all_states_together(kind: str) -> None:
    """Directions of universal and compound joints, and springs, depend on where the cut joint is, which q does not say:
    poses all around are drawn, also such whose spring is wound by more than half a turn unless it goes the lesser way.
    """
    rng = np.random.default_rng(5)
    build = pb.Builder(kind)
    for body in "ab":
        build.body(body, rng.uniform(1, 2), 0.2 * rng.normal(size=3), rng.uniform(0.3, 0.4, size=3))
        build.joint(f"free_{body}", "floating", "world", body)
    Ta, Tb = random_pose(rng), random_pose(rng)
    build.loop("cut", kind, "a", "b", Ta, Tb, **CUTS[kind])
    model = build.model()
    joint, count = joint_model(model.description.loops[0]), 40
    reach = 1.2 if kind in ("universal", "custom") else 3.0
    q = np.empty((count, model.nq))
    for k in range(count):
        R, p = joint.configuration(joint.integrate(joint.neutral(), rng.uniform(-reach, reach, size=joint.nv)))
        A, across = random_pose(rng), np.eye(4)
        across[:3, :3], across[:3, 3] = R, p
        B = A @ Ta @ across @ np.linalg.inv(Tb)
        q[k] = np.concatenate([np.concatenate([T[:3, 3], matrix_quaternion(T[:3, :3])]) for T in (A, B)])
    v, tau = model.assemble_velocity(q, rng.normal(size=(count, model.nv))), rng.normal(size=(count, model.nv))
    wanted = model.forward_dynamics(q, v, tau)
    near(model.forward_dynamics(q, v, tau, formulation="network"), wanted, 1e-8)
    for k in range(0, count, 8):
        near(model.forward_dynamics(q[k], v[k], tau[k], formulation="network"), wanted[k], 1e-8)


def test_redundant_equations_are_solved_and_contradictions_and_open_motions_raise() -> None:
    rng = np.random.default_rng(1)
    A, z = rng.normal(size=(6, 5, 5)), rng.normal(size=(6, 5, 1))
    A[1:3, 4] = A[1:3, 0] + A[1:3, 1]
    A[1:3, :, 3] = A[1:3, :, 2]  # unknowns 2 and 3 only act together
    moving = np.array([True, True, False, False, True])
    found = solve_many(A, A @ z, moving)
    np.testing.assert_allclose(A @ found, A @ z, atol=1e-10)
    np.testing.assert_allclose(found[:, moving], z[:, moving], atol=1e-9)
    with pytest.raises(InputError, match="contradict"):
        solve_many(A, A @ z + np.eye(5)[4][:, None], moving)
    with pytest.raises(InputError, match="determine"):
        solve_many(A, A @ z, ~moving)


def test_a_motion_without_mass_is_named_with_its_state() -> None:
    build = pb.Builder("idle")
    for body, mass in (("a", 1.0), ("b", 1.0), ("c", 0.0)):
        build.body(body, mass, inertia=(0.1 * mass,) * 3)
        build.joint(f"to_{body}", "revolute", "world", body)
    build.loop("tie", "spherical", "a", "b", np.eye(4), np.eye(4))
    model = build.model()
    zero = np.zeros((3, model.nv))
    with pytest.raises(pb.PolybodyError, match=r"'to_c'.*state 0"):
        model.forward_dynamics(zero, zero, zero, formulation="network")


def test_rounding_left_of_rows_that_repeat_others_makes_no_equations() -> None:
    """Two of three rows are zero at every state; scaled, the rounding left of them changed the motion."""
    rng = np.random.default_rng(186)
    description, _ = closed_tree(rng)
    model = model_from(description, warn=False)
    q = model.random_configuration(rng, size=50)
    v, tau = model.assemble_velocity(q, rng.normal(size=(50, model.nv))), rng.normal(size=(50, model.nv))
    wanted = model.forward_dynamics(q, v, tau)
    np.testing.assert_allclose(model.forward_dynamics(q, v, tau, formulation="network"), wanted, rtol=0, atol=1e-9)
