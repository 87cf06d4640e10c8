"""Joints that stick by friction are set in motion by impulses: friction is a finite force."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb
from polybody.simulation.stepper import Stepper


def arm(upper: float | None) -> pb.Model:
    build = pb.Builder("sticking arm", gravity=(0, 0, 0))
    for k, parent in enumerate(("world", "b0")):
        build.body(f"b{k}", 1.0, (0.25, 0, 0), (1e-3, 0.01, 0.01))
        limits = (-1.0, upper) if upper is not None and k == 0 else None
        friction = {"coulomb": 2.0} if k == 1 else 0
        build.joint(f"j{k}", "revolute", parent, f"b{k}", (0.5 * k, 0, 0), limits=limits, friction=friction)
    return build.model()


@pytest.mark.parametrize("compiled", [None, False])
def test_a_hit_sets_a_sticking_joint_in_motion_as_the_law_of_impacts_says(compiled: bool | None) -> None:
    model, e = arm(0.3), 0.5
    run = pb.simulate(
        model, 0.16, [0.0, 0.4], [2.0, 0.0], restitution=e, times=[0.1, 0.15 + 1e-7], compiled=compiled, rtol=1e-10
    )
    np.testing.assert_allclose(run.v[0], [2.0, 0.0], atol=1e-9)
    P = np.linalg.inv(model.mass_matrix([0.3, 0.4]))
    np.testing.assert_allclose(run.v[1], run.v[0] - (1 + e) * 2.0 * P[:, 0] / P[0, 0], atol=1e-4)
    assert run.audit.trusted


def test_an_action_sets_a_sticking_joint_in_motion() -> None:
    kick = pb.Event("kick", lambda t, q, v: t - 0.1, action=lambda t, q, v: (q, np.array([2.0, 6.0])))
    run = pb.simulate(arm(None), 0.14, [0.0, 0.4], [2.0, 0.0], events=[kick], times=[0.05, 0.1 + 1e-7])
    np.testing.assert_allclose(run.v, [[2.0, 0.0], [2.0, 6.0]], atol=1e-4)


@pytest.mark.parametrize("compiled", [None, False])
def test_an_action_puts_a_sticking_joint_elsewhere(compiled: bool | None) -> None:
    put = pb.Event("put", lambda t, q, v: t - 0.1, action=lambda t, q, v: (q + np.array([0.0, 0.3]), v))
    run = pb.simulate(arm(None), 0.14, [0.0, 0.4], [0.2, 0.0], events=[put], times=[0.05, 0.14], compiled=compiled)
    np.testing.assert_allclose(run.q[:, 1], [0.4, 0.7], atol=1e-12)


def resting() -> pb.Model:
    """A pendulum that gravity presses onto its lower stop at −0.5 rad."""
    build = pb.Builder("resting", gravity=(0, -9.81, 0))
    build.body("rod", 1.0, (0.5, 0, 0), (1e-3, 0.01, 0.01))
    build.joint("pin", "revolute", "world", "rod", limits=(-0.5, 1.0))
    return build.model()


def test_an_action_that_lifts_a_joint_off_its_stop_lets_it_fall_in_models_and_networks() -> None:
    model, times = resting(), [0.05, 0.14]
    free = pb.simulate(model, 0.04, [-0.2], times=[0.04])  # as from rest at −0.2 rad
    lift = pb.Event("lift", lambda t, q, v: t - 0.1, action=lambda t, q, v: (q + 0.3, v))
    run = pb.simulate(model, 0.14, [-0.5], events=[lift], times=times)
    np.testing.assert_allclose(run.q[:, 0], [-0.5, free.q[-1, 0]], atol=1e-9)
    net = pb.Network("n")
    net.mechanism("arm", model)
    raised = pb.Event("lift", lambda t, z: t - 0.1, action=lambda t, z: {"arm.pin.q": -0.2})
    moved = pb.simulate(net, 0.14, {"arm.pin.q": -0.5}, events=[raised], times=times)
    np.testing.assert_allclose(moved["arm.pin.q"], run.q[:, 0], atol=1e-8)


def test_a_hit_sets_a_sticking_joint_in_motion_in_networks_at_all_times_asked_for() -> None:
    model, e, times = arm(0.3), 0.5, [0.1, 0.15 + 1e-7, 0.16]
    net = pb.Network("n")
    net.mechanism("arm", model)
    start = {"arm.j0.q": 0.0, "arm.j1.q": 0.4, "arm.j0.w": 2.0}
    run = pb.simulate(net, 0.16, start, restitution=e, times=times)
    assert run.t.tolist() == times
    wanted = pb.simulate(model, 0.16, [0.0, 0.4], [2.0, 0.0], restitution=e, times=times)
    np.testing.assert_allclose(np.column_stack([run["arm.j0.w"], run["arm.j1.w"]]), wanted.v, atol=1e-7)


def test_stepper_sticks_and_saturates_as_runs_do() -> None:
    model = arm(0.3)
    live = Stepper(model, [0.0, 0.4], [2.0, 0.0], dt=1e-4, restitution=0.5)
    states = live.advance(1600)
    run = pb.simulate(model, 0.16, [0.0, 0.4], [2.0, 0.0], restitution=0.5, method="rk4", dt=1e-4)
    np.testing.assert_allclose(states.v, run.v[1:], atol=1e-12)
    live.set_state([0.0, 0.9], [0.0, 0.0])  # it sticks where it was put
    np.testing.assert_allclose(live.advance(3).q[-1], [0.0, 0.9], atol=1e-15)


def test_networks_hit_limits_at_the_start_and_refuse_starts_beyond_them() -> None:
    model, times = resting(), [0.01, 0.1]
    net = pb.Network("n")
    net.mechanism("arm", model)
    wanted = pb.simulate(model, 0.1, [1.0], [1.0], restitution=0.6, times=times)
    run = pb.simulate(net, 0.1, {"arm.pin.q": 1.0, "arm.pin.w": 1.0}, restitution=0.6, times=times)
    np.testing.assert_allclose(run["arm.pin.w"], wanted.v[:, 0], atol=1e-8)
    with pytest.raises(pb.InputError, match=r"'arm.pin.q' is -0.7, 0.2 beyond its limits -0.5 to 1"):
        pb.simulate(net, 0.1, {"arm.pin.q": -0.7})
