"""Paths are motions (v and a are derivatives of q), and controllers do what their theory says."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from simulation_cases import SAHA_START, moving, satellite, shipped, tree

import polybody as pb
from polybody.paths import Path

SAHA_END = np.array([np.pi / 3, np.pi / 3, 0.1, np.pi / 3, np.pi / 3, np.pi / 3])


def waypoints(model: pb.Model) -> np.ndarray:
    q, _ = moving(model, 2)
    rng = np.random.default_rng(5)
    rows = [model.neutral() if model.nq == model.nv else q]
    for _ in range(6):
        rows.append(model.integrate(rows[-1], 0.25 * rng.normal(size=model.nv)))
    return np.array(rows)


MAKERS: dict[str, Callable[[pb.Model], Path]] = {
    "cycloidal": lambda m: pb.paths.cycloidal(m, waypoints(m)[0], waypoints(m)[3], 2.0),
    "quintic": lambda m: pb.paths.quintic(m, waypoints(m)[0], waypoints(m)[3], 2.0),
    "trapezoidal": lambda m: pb.paths.trapezoidal(m, waypoints(m)[0], waypoints(m)[3], 2.0),
    "spline": lambda m: pb.paths.spline(m, np.linspace(0, 2, 7), waypoints(m)),
    "spline of order 5": lambda m: pb.paths.spline(m, np.linspace(0, 2, 7), waypoints(m), order=5),
    "recorded": lambda m: pb.paths.recorded(m, np.linspace(0, 2, 7), waypoints(m)),
}


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("name", ["stanford-arm", "satellite", "tree"])
def test_velocity_and_acceleration_are_derivatives_of_the_path(name: str, kind: str) -> None:
    kinds = ("planar", "custom", "universal", "floating")
    model = {"satellite": satellite, "tree": lambda: tree(3, 4, kinds=kinds)}.get(name, lambda: shipped(name))()
    path = MAKERS[kind](model)
    t = np.array([0.31, 0.77, 1.13, 1.64])
    h = 1e-5
    _, v, a = path(t)
    (q0, v0, _), (q1, v1, _) = path(t - h), path(t + h)
    np.testing.assert_allclose(v, model.difference(q0, q1) / (2 * h), atol=2e-8 * (1 + np.abs(v).max()))
    np.testing.assert_allclose(a, (v1 - v0) / (2 * h), atol=2e-7 * (1 + np.abs(a).max()))


@pytest.mark.parametrize("kind", ["cycloidal", "quintic", "spline", "spline of order 5"])
def test_paths_start_and_end_at_rest_where_they_should(kind: str) -> None:
    model = satellite()
    path = MAKERS[kind](model)
    q, v, _ = path(np.array([0.0, 2.0, 3.0]))
    ends = waypoints(model)[[0, -1 if "spline" in kind else 3]]
    np.testing.assert_allclose(model.difference(ends, q[:2]), 0, atol=1e-9)
    np.testing.assert_allclose(v, 0, atol=1e-9)
    np.testing.assert_allclose(model.difference(q[1], q[2]), 0, atol=1e-9)


def test_torques_of_the_stanford_arm_on_sahas_path_are_the_corrected_ones() -> None:
    """ERRATA.md, 003 Saha: the table at t = 2.5 and 7.5."""
    model = shipped("stanford-arm")
    path = pb.paths.cycloidal(model, SAHA_START, SAHA_END, 10.0)
    tau = model.inverse_dynamics(*path(np.array([0.0, 2.5, 5.0, 7.5, 10.0])))
    expected = [
        (0, 13.3416, 0, 0, 0, 0),
        (0.1043025753, 13.8227158279, -2.7862940317, 3.271952e-4, 4.69066e-5, 2.683875e-4),
        (-0.0057085887, 15.7537854002, -15.5743918965, 4.00285e-5, -9.80994e-5, -6.97973e-5),
        (-0.0998369761, 16.7328672744, -27.5183536764, -2.104238e-4, 3.19849e-5, -2.174701e-4),
        (0, 16.7365471459, -29.9205, 0, 0, 0),
    ]
    np.testing.assert_allclose(tau, expected, atol=6e-10)


def test_computed_torque_follows_the_path_and_errors_decay_as_their_equation_says() -> None:
    model = shipped("stanford-arm")
    path = pb.paths.quintic(model, SAHA_START, SAHA_START + 0.4, 1.0)
    law = pb.controllers.ComputedTorque(model, path, kp=100.0, kd=20.0)
    e0 = 0.05
    run = pb.simulate(model, 1.0, SAHA_START - e0, None, law, sample=0.1, rtol=1e-10)
    error = path(run.t)[0] - run.q
    expected = e0 * (1 + 10 * run.t) * np.exp(-10 * run.t)  # critically damped
    np.testing.assert_allclose(error, np.repeat(expected[:, None], 6, axis=1), atol=1e-7)


def test_computed_torque_follows_a_path_of_quaternions() -> None:
    build = pb.Builder("ball")
    build.body("rod", mass=1.0, com=(0, 0, 0.4), inertia=(0.05, 0.06, 0.01))
    build.joint("ball", "spherical", "world", "rod")
    model = build.model()
    path = pb.paths.spline(model, np.linspace(0, 2, 7), waypoints(model), order=5)
    run = pb.simulate(model, 2.0, path(0.0)[0], None, pb.controllers.ComputedTorque(model, path), rtol=1e-10)
    assert np.max(np.abs(model.difference(path(run.t)[0], run.q))) < 1e-7


def test_gravity_compensation_holds_still_and_pd_settles_at_its_target() -> None:
    model = shipped("stanford-arm")
    held = pb.simulate(model, 1.0, SAHA_START + 0.2, None, pb.controllers.GravityCompensation(model))
    assert np.max(np.abs(held.q - held.q[0])) < 1e-9
    law = pb.PD(model, SAHA_START + 0.2, kp=[900, 900, 900, 40, 40, 40], kd=[90, 90, 90, 4, 4, 4], gravity=True)
    run = pb.simulate(model, 3.0, SAHA_START, None, law, method="radau", rtol=1e-6, atol=1e-8)
    assert np.max(np.abs(run.q[-1] - SAHA_START - 0.2)) < 2e-2


def test_operational_space_error_decays_as_its_equation_says() -> None:
    model = shipped("puma560")
    q = np.array([0.2, -0.8, 0.3, 0.4, 0.7, 0.2])
    frame = model.frame_names[-1]
    start = model.pose(q, frame)
    goal = start.copy()
    goal[:3, 3] += (0.05, -0.03, 0.04)
    law = pb.controllers.OperationalSpace(model, frame, goal, kp=100.0, kd=20.0)
    run = pb.simulate(model, 0.5, q, None, law, sample=0.1, rtol=1e-8, atol=1e-9, limits="ignore")
    shift = goal[:3, 3] - model.pose(run.q, frame)[:, :3, 3]
    decay = (1 + 10 * run.t) * np.exp(-10 * run.t)
    np.testing.assert_allclose(shift, decay[:, None] * np.array([0.05, -0.03, 0.04]), atol=2e-6)


@pytest.mark.parametrize("rows", ["pose", "position"])
def test_operational_space_along_a_path_asks_for_the_paths_own_torques(rows) -> None:
    """On the path, with nothing left over to damp or correct, Khatib's law is inverse dynamics of the path."""
    model = shipped("puma560")
    q0 = np.array([0.2, -0.8, 0.3, 0.4, 0.7, 0.2])
    path, frame, t = pb.paths.quintic(model, q0, q0 + 0.6, 1.0), model.frame_names[-1], 0.37
    q, v, a = path(t)
    law = pb.controllers.OperationalSpace(model, frame, path, rows=rows, null_damping=0.0)
    found = model.coefficients.influence(q, frame, 2)
    rates = np.concatenate([found.velocity(v), found.acceleration(v, a)]).reshape(2, 6)
    part = slice(3, 6) if rows == "position" else slice(None)
    np.testing.assert_allclose(law.motion.goal_motion(t, q), rates[:, part], atol=1e-12)

    def goal(at):
        pose = model.pose(path(at)[0], frame)
        return pose[:3, 3] if rows == "position" else pose

    told = pb.controllers.OperationalSpace(
        model, frame, lambda at: (goal(at), *rates[:, part]), rows=rows, null_damping=0.0
    )
    nearly = pb.controllers.OperationalSpace(model, frame, goal, rows=rows, null_damping=0.0)
    tau = law(t, q, v)
    np.testing.assert_allclose(told(t, q, v), tau, atol=1e-11)
    np.testing.assert_allclose(nearly(t, q, v), tau, atol=1e-4)
    assert np.abs(nearly(t, q, v) - tau).max() > 1e-11, "differences are not exact: the path must not be taken by them"
    reached = model.coefficients.influence(q, frame, 2).acceleration(v, model.forward_dynamics(q, v, tau))
    np.testing.assert_allclose(reached[part], rates[1, part], atol=1e-8)
    if rows == "pose":
        np.testing.assert_allclose(tau, model.inverse_dynamics(q, v, a), atol=1e-8)


def test_operational_space_refuses_targets_that_do_not_fit() -> None:
    model = shipped("puma560")
    frame, fine = model.frame_names[-1], np.eye(4)
    other = shipped("double-pendulum")
    for target, message in (
        (np.zeros(3), r"shape \(3,\); expected \(4, 4\)"),
        (lambda t: (fine, np.zeros(3), np.zeros(6)), r"velocity and acceleration, \(6,\) each"),
        (lambda t: (fine, np.zeros(6)), "velocity and acceleration"),
        (pb.paths.quintic(other, [0, 0], [1, 1], 1.0), r"configurations of shape \(2,\); expected \(6,\)"),
    ):
        with pytest.raises(pb.InputError, match=message):
            pb.controllers.OperationalSpace(model, frame, target)


def test_given_torques_are_interpolated() -> None:
    model = shipped("double-pendulum")
    law = pb.controllers.Given(model, [[0.0, 1.0], [2.0, 3.0]], times=[0.0, 1.0])
    np.testing.assert_allclose(law(0.25, np.zeros(2), np.zeros(2)), [0.5, 1.5])
    np.testing.assert_allclose(pb.controllers.Given(model, [1.0, 2.0])(3.0, np.zeros(2), np.zeros(2)), [1.0, 2.0])
    for wrong in (lambda: pb.controllers.Given(model, np.zeros((3, 2)), times=[0, 1]),
                  lambda: pb.PD(model), lambda: pb.PD(model, [1.0]), lambda: pb.PD(model, [0, 0], kp=[1, 2, 3]),
                  lambda: pb.paths.spline(model, [0, 1], np.zeros((3, 2))),
                  lambda: pb.paths.cycloidal(model, [0], [1, 1], 1.0)):  # fmt: skip
        with pytest.raises(pb.InputError):
            wrong()
