"""Inverse kinematics of several frames: priorities, limits, spheres."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb


def snake(n=6, limit=None):
    """A planar chain of n links of 0.3 m."""
    build = pb.Builder("snake", gravity=(0, 0, 0))
    last = "world"
    limits = None if limit is None else {"lower": -limit, "upper": limit}
    for k in range(n):
        build.body(f"b{k}", 1.0, (0.15, 0, 0), (0.01, 0.01, 0.01))
        build.joint(f"j{k}", "revolute", last, f"b{k}", (0.3 if k else 0.0, 0, 0), limits=limits)
        last = f"b{k}"
    build.frame("tip", last, (0.3, 0, 0))
    build.frame("elbow", f"b{n // 2}", (0, 0, 0))
    return build.model()


START = np.full(6, 0.2)


def test_one_goal_is_what_inverse_kinematics_finds():
    model = pb.load("puma560")
    q = np.array([0.3, 0.7, -0.9, 0.4, 0.8, -0.5])
    goal = model.pose(q, "dh_6")
    found = pb.reach(model, [pb.Goal("dh_6", goal)], q + 0.2)
    assert found.converged
    np.testing.assert_allclose(model.pose(found.q, "dh_6"), goal, atol=1e-7)
    assert "dh_6 (priority 0)" in str(found)


def test_a_lower_priority_never_disturbs_a_higher_one():
    """Two goals that cannot be met together: the first is met, the second as well as it can be."""
    model = snake()
    tip, elbow = np.array([0.9, 0.9, 0.0]), np.array([-2.0, 0.0, 0.0])
    found = pb.reach(model, [pb.Goal("tip", tip, 0), pb.Goal("elbow", elbow, 1)], START)
    assert found.converged
    assert found.errors[0, 1] < 1e-7
    assert found.errors[1, 1] > 0.5
    # stationary: the elbow's error has no gradient along what the tip does not feel
    J, K = model.jacobian(found.q, "tip")[3:5], model.jacobian(found.q, "elbow")[3:5]
    null = np.linalg.svd(J)[2][2:].T
    gap = (elbow - model.pose(found.q, "elbow")[:3, 3])[:2]
    assert np.abs(null.T @ K.T @ gap).max() < 1e-4
    other = pb.reach(model, [pb.Goal("tip", tip, 1), pb.Goal("elbow", elbow, 0)], START)
    assert other.errors[1, 1] < found.errors[1, 1] - 0.01


def test_limits_hold_and_posture_is_taken_where_the_hand_does_not_feel_it():
    model = snake(limit=0.6)
    goal = model.pose(np.array([0.5, 0.4, 0.3, 0.2, 0.1, 0.0]), "tip")[:3, 3]
    found = pb.reach(model, [pb.Goal("tip", goal)], START, posture=np.full(6, 0.25))
    assert found.converged
    assert np.abs(found.q).max() <= 0.6 + 1e-9
    plain = pb.reach(model, [pb.Goal("tip", goal)], START)
    assert np.linalg.norm(found.q - 0.25) <= np.linalg.norm(plain.q - 0.25) + 1e-9
    far = pb.reach(model, [pb.Goal("tip", [-1.5, 0.0, 0.0])], START)
    assert not far.converged
    assert np.abs(far.q).max() <= 0.6 + 1e-9


def test_spheres_stay_apart_all_the_way():
    model = snake()
    obstacle = pb.Sphere("world", 0.2, (0.75, 0.75, 0.0))
    balls = [pb.Sphere(f"b{k}", 0.06, (x, 0.0, 0.0)) for k in range(6) for x in (0.1, 0.25)]
    goal = np.array([0.9, 1.05, 0.0])
    start = np.array([1.5, 0.1, -0.1, 0.1, -0.1, 0.1])
    spheres = [obstacle, *balls]
    pairs = [(0, k) for k in range(1, len(spheres))]
    blind = pb.reach(model, [pb.Goal("tip", goal)], start)
    found = pb.reach(model, [pb.Goal("tip", goal)], start, spheres=spheres, pairs=pairs, margin=0.01)
    assert found.converged
    assert found.distance >= 0.01 - 1e-9
    poses = [model.pose(found.q, s.frame) for s in balls]
    centers = np.array([T[:3, :3] @ s.center + T[:3, 3] for T, s in zip(poses, balls, strict=True)])
    assert (np.linalg.norm(centers - obstacle.center, axis=1) >= 0.2 + 0.06 + 0.01 - 1e-9).all()
    assert blind.converged
    large = pb.Sphere("world", 0.6, (0.5, 0.3, 0))
    with pytest.raises(pb.InputError, match="apart at the start"):
        pb.reach(model, [pb.Goal("tip", goal)], np.full(6, 0.25), spheres=[large, *balls])


def test_loops_stay_closed_while_a_platform_reaches():
    model = pb.load("3-rrr")
    q = model.neutral()
    goal = model.pose(q, "hand")[:3, 3] + [0.004, -0.003, 0.0]
    found = pb.reach(model, [pb.Goal("hand", goal)], q)
    assert found.converged
    assert np.abs(model.constraints.residual(found.q)).max() < 1e-9


def test_goals_and_spheres_that_do_not_fit_are_named():
    model = snake()
    with pytest.raises(pb.InputError, match="at least one goal"):
        pb.reach(model, [])
    with pytest.raises(pb.InputError, match="expected a pose"):
        pb.reach(model, [pb.Goal("tip", [1.0, 2.0])])
    with pytest.raises(pb.InputError, match="no frame 'nose'"):
        pb.reach(model, [pb.Goal("nose", [1.0, 0, 0])])
    with pytest.raises(pb.InputError, match="positive radius"):
        pb.reach(model, [pb.Goal("tip", [1.0, 0, 0])], spheres=[pb.Sphere("tip", -1.0)])


def test_a_batch_of_goals_starts_and_postures_is_every_one_by_itself():
    model = snake()
    rng = np.random.default_rng(3)
    starts = START + 0.1 * rng.normal(size=(2, 1, 6))
    tips = np.array([[0.9, 0.9, 0.0], [0.7, 1.1, 0.0], [1.0, 0.6, 0.0]])
    elbow = np.eye(4)
    elbow[:3, 3] = 0.5, 0.6, 0.0
    ball = pb.Sphere("world", 0.1, (1.4, 1.4, 0.0))
    spheres = [ball, pb.Sphere("tip", 0.05)]
    goals = [pb.Goal("tip", tips), pb.Goal("elbow", elbow, 1)]
    found = pb.reach(model, goals, starts, spheres=spheres, steps=30)
    assert found.q.shape == (2, 3, 6)
    assert found.errors.shape == (2, 3, 2, 2)
    assert found.converged.shape == found.distance.shape == found.steps.shape == (2, 3)
    assert found.converged.all()
    for i, k in np.ndindex(2, 3):
        alone = pb.reach(model, [pb.Goal("tip", tips[k]), goals[1]], starts[i, 0], spheres=spheres, steps=30)
        np.testing.assert_array_equal(found.q[i, k], alone.q)
    assert "6 of 6 converged" in str(found)
    with pytest.raises(pb.InputError, match=r"state 1, 0 of the batch"):
        pb.reach(model, goals, np.stack([starts[0], np.zeros((1, 6))]), spheres=[pb.Sphere("world", 0.2, (1.8, 0, 0)),
                                                                              spheres[1]])
    with pytest.raises(pb.InputError, match="do not broadcast"):
        pb.reach(model, goals, np.zeros((2, 6)))


def test_parameters_of_a_batch_with_loops_are_every_one_by_itself():
    model = pb.load("3-rrr").with_parameters("*.mass")
    rng = np.random.default_rng(5)
    q, values = model.neutral(), model.parameters.nominal * rng.uniform(0.9, 1.1, (4, 1))
    targets = model.tree.pose(q, "hand")[:3, 3] + rng.uniform(-0.005, 0.005, (4, 3)) * [1, 1, 0]
    found = pb.reach(model, [pb.Goal("hand", targets)], q, parameters=values)
    assert found.converged.all()
    for k in range(4):
        alone = pb.reach(model.parameters.at(values[k]), [pb.Goal("hand", targets[k])], q)
        np.testing.assert_allclose(found.q[k], alone.q, atol=1e-9)


def test_hard_goals_end_at_the_nearest_place_and_say_so():
    """Out of reach, against each other, from a singular start, or behind a sphere: honest errors, limits kept."""
    model = pb.load("puma560")
    q = np.array([0.3, 0.7, -0.9, 0.4, 0.8, -0.5])
    low, high = model.joint_limits()["lower"], model.joint_limits()["upper"]
    far = pb.reach(model, [pb.Goal("dh_4", [5.0, 0, 0])], q)  # the wrist
    assert not far.converged
    shoulder = np.sqrt(0.4318**2 + 0.0203**2) + 0.4318  # a₂ and the elbow's offset, stretched out
    offset = 0.15005  # of the arm beside the shoulder
    assert far.errors[0, 1] == pytest.approx(5.0 - np.hypot(shoulder, offset), abs=2e-3)
    one, two = model.pose(q + 0.1, "dh_6"), model.pose(q - 0.2, "dh_6")
    against = pb.reach(model, [pb.Goal("dh_6", one), pb.Goal("dh_6", two, priority=1)], q)
    assert against.converged
    assert against.errors[0].max() < 1e-8  # the lower priority gets what is left: nothing
    assert against.errors[1, 1] == pytest.approx(np.linalg.norm(one[:3, 3] - two[:3, 3]), abs=1e-8)
    singular = pb.reach(model, [pb.Goal("dh_6", model.pose(q, "dh_6"))], np.zeros(6))
    assert singular.converged
    place = model.pose(q + 0.3, "dh_6")[:3, 3]
    wall = [pb.Sphere("dh_6", 0.05), pb.Sphere("world", 0.1, tuple(place))]
    blocked = pb.reach(model, [pb.Goal("dh_6", place)], q, spheres=wall)
    assert not blocked.converged
    assert blocked.distance > -1e-9
    assert blocked.errors[0, 1] == pytest.approx(0.15, abs=1e-6)
    for found in (far, against, singular, blocked):
        assert (found.q >= low - 1e-9).all()
        assert (found.q <= high + 1e-9).all()


def test_numbers_that_mean_nothing_are_refused():
    model = pb.load("puma560")
    q = np.array([0.3, 0.7, -0.9, 0.4, 0.8, -0.5])
    pose = model.pose(q, "dh_6")
    stretched, mirrored = pose.copy(), pose.copy()
    stretched[:3, :3] *= 2
    mirrored[:3, 0] *= -1
    for target in ([np.nan, 0, 0], [np.inf, 0, 0], stretched, mirrored, np.stack([pose, stretched]), [1.0, 2.0]):
        with pytest.raises(pb.InputError, match="target"):
            pb.reach(model, [pb.Goal("dh_6", target)], q)
        with pytest.raises(pb.InputError, match="target"):
            pb.inverse_kinematics(model, {"dh_6": target}, q)
    with pytest.raises(pb.InputError, match="target number 1"):
        pb.inverse_kinematics(model, {"dh_6": np.stack([pose, mirrored])}, q)
    for options in ({"steps": -1}, {"steps": 2.5}, {"tolerance": 0}, {"tolerance": np.nan}):
        with pytest.raises(pb.InputError, match=next(iter(options))):
            pb.reach(model, [pb.Goal("dh_6", pose)], q, **options)
        with pytest.raises(pb.InputError, match=next(iter(options))):
            pb.inverse_kinematics(model, {"dh_6": pose}, q, **options)
    for goal in ({"priority": 0.5}, {"priority": -1}, {"weight": np.inf}, {"weight": np.nan}):
        with pytest.raises(pb.InputError, match=next(iter(goal))):
            pb.reach(model, [pb.Goal("dh_6", pose, **goal)], q)
    with pytest.raises(pb.InputError, match="centre of three numbers"):
        pb.reach(model, [pb.Goal("dh_6", pose)], q, spheres=[pb.Sphere("dh_6", 0.1, (0, 0, np.nan))])
