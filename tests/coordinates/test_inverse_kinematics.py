"""The reverse position problem: solutions put frames where they were wanted, and failures say how far off they are."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import polybody as pb
from mechanisms import random_tree
from polybody.algebra.rotations import axis_angle_matrix
from polybody.mechanism import mechanism_from

ROBOTS = {"ur5_robot.urdf": "tool0", "panda.urdf": "panda_hand"}


@pytest.mark.filterwarnings("ignore::polybody.PolybodyWarning")
@pytest.mark.parametrize("name", list(ROBOTS))
def test_random_reachable_poses_of_real_arms_are_solved_from_neutral(name):
    pin = pytest.importorskip("pinocchio")
    from pinocchio_bridge import robot_file

    path, frame = str(robot_file(name)), ROBOTS[name]
    model = pb.load(path)
    reference = pin.buildModelFromUrdf(path, mimic=True)
    data, index = reference.createData(), reference.getFrameId(frame)
    q = model.random_configuration(np.random.default_rng(8), 10_000)
    found = pb.inverse_kinematics(model, {frame: model.pose(q, frame)})
    assert found.converged.mean() >= 0.99
    wanted, reached = model.pose(q, frame), model.pose(found.q, frame)
    turn = Rotation.from_matrix(np.swapaxes(reached[:, :3, :3], -1, -2) @ wanted[:, :3, :3]).magnitude()
    shift = np.linalg.norm(reached[:, :3, 3] - wanted[:, :3, 3], axis=-1)
    off = np.maximum(turn, shift)
    assert off[found.converged].max() < 1.1e-9, "what is called solved is solved, of every pose"
    if not found.converged.all():
        assert off[~found.converged].min() > 1e-10
    lower = np.concatenate([j.limits.lower for j in model.mechanism.independent_joints])
    upper = np.concatenate([j.limits.upper for j in model.mechanism.independent_joints])
    assert np.all(found.q >= lower)
    assert np.all(found.q <= upper)
    for k in np.flatnonzero(found.converged)[::250]:
        places = []
        for configuration in (q[k], found.q[k]):  # another engine's forward kinematics
            pin.framesForwardKinematics(reference, data, configuration)
            places.append(data.oMf[index].homogeneous.copy())
        np.testing.assert_allclose(places[0], places[1], atol=3e-9)


@pytest.mark.parametrize("seed", range(4))
def test_any_tree_reaches_poses_it_has_been_in(seed):
    kinds = ("revolute", "spherical", "prismatic", "universal", "cylindrical", "screw")
    mechanism = mechanism_from(random_tree(seed, 5, kinds, branching=0, springs=0, limits=0))
    model = pb.Model(mechanism)
    rng = np.random.default_rng(seed)
    frame = max(model.body_names, key=lambda n: len(mechanism.supports[model.body_names.index(n)]))
    q = np.stack([np.concatenate([j.model.random(rng) for j in mechanism.joints]) for _ in range(20)])
    found = pb.inverse_kinematics(model, {frame: model.pose(q, frame)}, restarts=20)
    assert found.converged.mean() > 0.9
    reached = model.pose(found.q[found.converged], frame)
    np.testing.assert_allclose(reached, model.pose(q, frame)[found.converged], atol=1e-8)


@pytest.fixture(scope="module")
def seven():
    common = {"mass": 1, "inertia": (0.1, 0.1, 0.1)}
    rows = [{"alpha": (-1) ** k * np.pi / 2, "d": 0.35 * (k % 2), **common} for k in range(7)]
    rows[-1] |= {"alpha": 0, "d": 0.1}
    return pb.from_dh(rows, name="seven")


def test_a_redundant_arm_stays_near_what_it_prefers(seven):
    rng = np.random.default_rng(1)
    q = rng.uniform(-1, 1, size=7)
    target = seven.pose(q, "dh_7")
    preferred = np.zeros(7)
    plain = pb.inverse_kinematics(seven, {"dh_7": target}, q)
    near = pb.inverse_kinematics(seven, {"dh_7": target}, q, prefer=preferred, steps=300)
    assert plain
    assert near
    assert np.linalg.norm(near.q - preferred) < np.linalg.norm(plain.q - preferred) - 1e-4
    null = np.linalg.svd(seven.jacobian(near.q, "dh_7"))[2][-1]
    assert abs(null @ (near.q - preferred)) < 1e-4  # no self-motion brings it nearer
    downhill = pb.inverse_kinematics(seven, {"dh_7": target}, q, prefer=lambda q: preferred - q, steps=300)
    np.testing.assert_allclose(downhill.q, near.q, atol=1e-6)


def test_several_targets_points_and_poses_together(seven):
    q = np.random.default_rng(2).uniform(-1, 1, size=(5, 7))
    targets = {"dh_3": seven.pose(q, "dh_3")[..., :3, 3], "dh_7": seven.pose(q, "dh_7")}
    found = pb.inverse_kinematics(seven, targets)
    assert found
    for frame in targets:
        np.testing.assert_allclose(seven.pose(found.q, frame)[..., :3, 3], seven.pose(q, frame)[..., :3, 3], atol=1e-8)
    assert found.position_error.shape == (5, 2)
    assert not found.rotation_error[:, 0].any()


def test_what_cannot_be_reached_says_how_far_off_it_is(seven):
    far = np.array([5.0, 0, 0])
    found = pb.inverse_kinematics(seven, {"dh_7": far}, restarts=3)
    assert not found
    gap = np.linalg.norm(seven.pose(found.q, "dh_7")[:3, 3] - far)
    np.testing.assert_allclose(found.position_error[0], gap, rtol=1e-9)
    assert found.restarts == 3


def test_turning_by_nearly_half_a_turn_is_found(seven):
    start = np.array([0.1, 0.5, -0.3, 0.8, 0.2, -0.6, 0.4])
    target = seven.pose(start, "dh_7").copy()
    target[:3, :3] = axis_angle_matrix(np.array([0.6, 0.8, 0]), np.pi - 1e-9) @ target[:3, :3]
    found = pb.inverse_kinematics(seven, {"dh_7": target}, start)
    assert found
    np.testing.assert_allclose(seven.pose(found.q, "dh_7"), target, atol=1e-8)


def test_bad_targets_are_refused(seven):
    with pytest.raises(pb.InputError, match="did you mean 'dh_7'"):
        pb.inverse_kinematics(seven, {"dh7": np.zeros(3)})
    with pytest.raises(pb.InputError, match="at least one target"):
        pb.inverse_kinematics(seven, {})
    with pytest.raises(pb.InputError, match="expected a pose"):
        pb.inverse_kinematics(seven, {"dh_7": np.zeros(4)})
    with pytest.raises(pb.InputError, match="not a rotation"):
        pb.inverse_kinematics(seven, {"dh_7": 2 * np.eye(4)})
    with pytest.raises(pb.InputError, match="q0 has shape"):
        pb.inverse_kinematics(seven, {"dh_7": np.zeros(3)}, np.zeros(3))


def test_batches_are_searched_in_pieces_and_errors_count_the_whole_batch(monkeypatch):
    model = pb.load("puma560")
    q = model.random_configuration(np.random.default_rng(2), size=(3, 4))
    frame = model.frame_names[-1]
    goals = model.pose(q, frame)
    monkeypatch.setattr("polybody.coordinates.inverse_kinematics.TOGETHER", 5)
    point = model.pose(q, model.frame_names[-2])[..., :3, 3]
    found = pb.inverse_kinematics(model, {frame: goals, model.frame_names[-2]: point})
    assert found.converged.shape == found.steps.shape == (3, 4)
    assert found.converged.all()
    np.testing.assert_allclose(model.pose(found.q, frame), goals, atol=2e-9)
    assert pb.inverse_kinematics(model, {frame: goals[:0]}).q.shape == (0, 4, model.nq)
    goals[2, 1, :3, :3] *= 2
    with pytest.raises(pb.InputError, match="target number 2, 1 of"):
        pb.inverse_kinematics(model, {frame: goals})
