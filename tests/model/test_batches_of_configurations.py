"""Configurations drawn and assembled many at a time are what they are one at a time: within limits, unit, closed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import polybody as pb
from mechanisms import random_tree
from polybody.mechanism import kinematics
from polybody.model.validation import model_from


def bounds(model: pb.Model) -> tuple[np.ndarray, np.ndarray]:
    low, high = np.full(model.nq, -np.inf), np.full(model.nq, np.inf)
    for joint in model.mechanism.independent_joints:
        if joint.nq == joint.nv:
            low[joint.q], high[joint.q] = joint.limits.lower, joint.limits.upper
    return low, high


@pytest.mark.parametrize("name", ["stewart", "delta", "3-rrr", "slider-crank", "walking-machine", "humanoid"])
def test_configurations_drawn_together_are_closed_and_within_limits(name: str) -> None:
    model = pb.load(name)
    q = model.random_configuration(3, (10, 20))
    assert q.shape == (10, 20, model.nq)
    low, high = bounds(model)
    assert np.all((q >= low) & (q <= high))
    for joint in model.mechanism.independent_joints:
        if joint.nq != joint.nv:
            np.testing.assert_allclose(np.linalg.norm(q[..., joint.q][..., -4:], axis=-1), 1.0, atol=1e-12)
    if model.mechanism.constrained:
        assert np.abs(model.constraints.residual(q)).max() < 1e-11
        assert not model.engine.constraints.constraints.mirrored(q[0, 0])
    assert np.ptp(q.reshape(-1, model.nq), axis=0).max() > 0.1, "they differ"


def test_draws_of_one_configuration_are_what_they_were() -> None:
    """A seed names a configuration: one state is drawn joint by joint, as a batch of one is."""
    model = pb.load("stanford-arm")
    np.testing.assert_array_equal(model.random_configuration(5), model.random_configuration(5, 1)[0])


def test_joints_that_are_held_stay_while_batches_are_assembled() -> None:
    model = pb.load("four-bar")
    guess = np.tile(model.assemble(model.neutral()), (40, 1))
    held = model.joint_names[0]
    place = model.joint_slices()[held][0]
    guess[:, place] += np.linspace(-0.3, 0.3, 40)[:, None]
    q = model.assemble(guess, hold=[held])
    np.testing.assert_array_equal(q[:, place], guess[:, place])
    alone = np.array([model.assemble(state, hold=[held]) for state in guess])
    np.testing.assert_allclose(q, alone, atol=1e-9)


def test_inverse_kinematics_solves_every_reachable_pose_within_limits() -> None:
    model = pb.load("six-dof-arm")
    frame = model.frame_names[-1]
    goals = model.pose(model.random_configuration(7, 500), frame)
    found = pb.inverse_kinematics(model, {frame: goals})
    assert bool(found)
    assert found.position_error.max() <= 1e-9
    assert found.rotation_error.max() <= 1e-9
    low, high = bounds(model)
    assert np.all((found.q >= low) & (found.q <= high))


def test_inverse_kinematics_enters_corners_of_the_limits_from_outside() -> None:
    """Targets whose only solutions within a Puma's limits lie close to them: one of some 10,000 was missed."""
    model = pb.load("puma560")
    frame, count = model.frame_names[-1], 30
    q = np.array([
        [-2.609613975754516, 3.9023663205566317, 0.6731764002049418, 0.07156217526424702, 1.1937190533167155, 4.17],
        [2.2078973567402094, -0.6409813503804004, -3.8939451825888876, 0.975962734121889, 1.6569158491643667, 0.42],
    ])  # fmt: skip
    found = pb.inverse_kinematics(model, {frame: np.repeat(model.pose(q, frame), count, axis=0)})
    low, high = bounds(model)
    assert np.all((found.q >= low) & (found.q <= high))
    assert bool(found), np.bincount(np.flatnonzero(~found.converged) // count)
    assert max(found.position_error.max(), found.rotation_error.max()) <= 1e-9
    assert found.restarts.max() > 0


def test_spline_of_rotations_has_the_velocities_of_its_differences() -> None:
    build = pb.Builder("ball")
    build.body("b", 1.0, inertia=(1, 2, 3))
    build.joint("root_joint", "floating", "world", "b")
    model = build.model()
    path = pb.paths.spline(model, [0.0, 0.5, 1.0], model.random_configuration(2, 3))
    t, s = np.linspace(0.12, 0.9, 9), 1e-5
    _, v, a = path(t)
    before, after = path(t - s), path(t + s)
    np.testing.assert_allclose(model.difference(before[0], after[0]) / (2 * s), v, atol=1e-6 * np.abs(v).max())
    np.testing.assert_allclose((after[1] - before[1]) / (2 * s), a, atol=1e-6 * np.abs(a).max())


def by_map(seed: int) -> pb.Model:
    """A tree of joints by map matrix, simple and compound, reversed ones among them."""
    rng = np.random.default_rng(seed)
    return model_from(random_tree(rng, 5, kinds=("custom", "compound", "spherical")), warn=False)


@pytest.mark.parametrize("seed", range(6))
def test_joints_by_map_matrix_integrate_and_differ_together_as_one_by_one(seed: int) -> None:
    """One by one they are integrated by Newton's steps on numbers, together by compiled ones."""
    model, rng = by_map(seed), np.random.default_rng(seed)
    q = model.random_configuration(rng, 60)
    d = rng.normal(size=(60, model.nv)) * np.geomspace(1e-9, 1.0, 60)[:, None]
    together = model.integrate(q, d)
    alone = np.array([model.integrate(one, step) for one, step in zip(q, d, strict=True)])
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-12)
    back = model.difference(q, together)
    text = np.array([kinematics.difference(model.mechanism, *pair) for pair in zip(q, together, strict=True)])
    np.testing.assert_allclose(back, text, rtol=0, atol=1e-12)
    np.testing.assert_allclose(model.integrate(q, back), together, rtol=0, atol=1e-10)


def test_python_is_called_as_often_for_eight_times_as_many_states() -> None:
    """Configurations drawn, moved, compared, assembled and followed along paths: nothing loops over states."""
    models = [by_map(2), pb.load("humanoid"), pb.load("slider-crank"), pb.load("stewart")]
    for model in models:
        base = np.tile(model.assemble(model.neutral()), (4, 1))
        ends = model.assemble(model.integrate(base, np.linspace(0, 0.01, 4)[:, None] * np.ones(model.nv)))
        path = pb.paths.spline(model, np.linspace(0, 1, 4), ends)

        def work(count: int, model: pb.Model = model, path: Any = path) -> None:
            q = model.random_configuration(0, count)
            moved = model.integrate(q, 1e-3 * np.ones((count, model.nv)))
            model.difference(q, moved)
            model.assemble(moved)
            path(np.linspace(0, 1, count))

        work(4000)
        few, many = calls_of(lambda w=work: w(500)), calls_of(lambda w=work: w(4000))
        assert many - few < 12 * 3500, model.name  # what pieces take; a loop over states would need 70 for each


def test_python_is_called_as_often_for_coefficients_and_networks_of_more_states() -> None:
    """Calls whose neighbours are compiled, and which are not: nothing loops over states."""
    arm, loops = model_from(random_tree(np.random.default_rng(4), 8), warn=False), pb.load("slider-crank")
    last = arm.body_names[-1]
    varied = arm.with_parameters(f"{last}.mass", f"{last}.com", f"{arm.joint_names[-1]}.armature")
    rng = np.random.default_rng(0)
    q = arm.random_configuration(rng, 160)
    p = varied.parameters.nominal * rng.uniform(0.9, 1.1, (160, len(varied.parameters))) + 0.01
    closed = loops.random_configuration(rng, 160)
    v = loops.assemble_velocity(closed, rng.normal(size=(160, loops.nv)))
    frame = arm.frame_names[-1]
    works: dict[str, Callable[[int], Any]] = {
        "center_of_mass": lambda n: varied.coefficients.center_of_mass(q[:n], 3, parameters=p[:n]),
        "influence": lambda n: varied.coefficients.influence(q[:n], frame, 3, parameters=p[:n]),
        "dynamic_arrays": lambda n: varied.coefficients.dynamic_arrays(q[:n], parameters=p[:n]),
        "network": lambda n: loops.forward_dynamics(closed[:n], v[:n], 0 * v[:n], formulation="network"),
    }
    for name, work in works.items():
        work(20)
        few, many = calls_of(lambda w=work: w(20)), calls_of(lambda w=work: w(160))
        assert many - few < 25 * 140, (name, few, many)  # what pieces take; a loop over states needs 900 and more each


@pytest.mark.parametrize("order", [1, 2, 3])
def test_coefficients_of_each_state_s_parameters_are_those_of_its_own_model(order: int) -> None:
    model = model_from(random_tree(np.random.default_rng(4), 8), warn=False)  # too large for straight-line code
    varied = model.with_parameters("*.mass", "*.com", "*.armature")
    rng = np.random.default_rng(1)
    q = model.random_configuration(rng, 3)
    p = varied.parameters.nominal * rng.uniform(0.8, 1.2, (3, len(varied.parameters))) + 0.01
    frame = model.frame_names[-1]
    center = varied.coefficients.center_of_mass(q, order, parameters=p)
    point = varied.coefficients.influence(q, frame, order, point="com", parameters=p)
    arrays = varied.coefficients.dynamic_arrays(q, parameters=p)
    for k in range(3):
        own = varied.parameters.at(p[k]).coefficients
        pairs = [*zip(arrays, own.dynamic_arrays(q[k]), strict=True)]
        for many, one in ((center, own.center_of_mass(q[k], order)),
                          (point, own.influence(q[k], frame, order, point="com"))):
            pairs += [(getattr(many, x), getattr(one, x)) for x in "GHD"[:order]]
        for many, one in pairs:
            np.testing.assert_allclose(many[k], one, atol=1e-12 * (1 + np.abs(one).max()))


def calls_of(work: Callable[[], None]) -> int:
    """How many Python functions are called."""
    calls = [0]

    def count(frame: Any, event: str, argument: Any) -> None:
        calls[0] += event == "call"

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls[0]
