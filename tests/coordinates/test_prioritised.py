"""Inverse kinematics of several frames: priorities, limits, spheres."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb

pytest.importorskip("clarabel")


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
    with pytest.raises(pb.InputError, match=r"expected a pose \(4, 4\)"):
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
