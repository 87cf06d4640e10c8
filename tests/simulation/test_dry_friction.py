"""Joints that stick and slide in runs, against closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

import polybody as pb

G = 9.81


def block(angle: float = 0.3, **friction: float) -> pb.Model:
    """2 kg on an incline; q runs downhill."""
    build = pb.Builder("block", gravity=(G * np.sin(angle), 0, -G * np.cos(angle)))
    build.body("block", 2.0, inertia=(1, 1, 1))
    build.joint("slide", "prismatic", "world", "block", axis=(1, 0, 0), friction=friction)
    return build.model()


@pytest.mark.parametrize("method", ["dop853", "radau", "cvodes", "idas", "rk4", "midpoint"])
def test_a_block_on_an_incline_comes_to_rest_where_it_must(method: str) -> None:
    run = pb.simulate(block(coulomb=8.0), 2.0, v0=[1.0], method=method, sample=0.01)
    slow = 8.0 / 2 - G * np.sin(0.3)
    assert run.q[-1, 0] == pytest.approx(1 / (2 * slow), rel=1e-7)
    assert [(h.name, h.detail) for h in run.happenings] == [("slide friction", "sticks")]
    assert run.happenings[0].time == pytest.approx(1 / slow, rel=1e-7)
    assert run.v[-1, 0] == 0
    assert abs(run.a[-1, 0]) < 1e-12
    assert run.audit.trusted
    assert not run.tau.any()  # friction is no torque of a drive


def test_a_block_slides_where_friction_is_too_weak_and_never_moves_where_it_holds() -> None:
    run = pb.simulate(block(coulomb=3.0), 2.0)
    assert run.q[-1, 0] == pytest.approx((G * np.sin(0.3) - 1.5) * 2, rel=1e-9)
    held = pb.simulate(block(coulomb=3.0, static=6.0), 2.0)
    assert held.q[-1, 0] == 0
    assert held.audit.trusted


def test_friction_by_load_is_coulombs_law_with_the_normal_force() -> None:
    mu, angle = 0.5, 0.3
    run = pb.simulate(block(angle, load=mu), 2.0, v0=[1.0])
    slow = mu * G * np.cos(angle) - G * np.sin(angle)
    assert run.q[-1, 0] == pytest.approx(1 / (2 * slow), rel=1e-9)
    steep = pb.simulate(block(0.6, load=mu), 1.0)
    assert steep.v[-1, 0] == pytest.approx(G * np.sin(0.6) - mu * G * np.cos(0.6), rel=1e-9)


def test_a_pendulum_comes_to_rest_after_the_turning_points_of_its_energy() -> None:
    m, length, F = 1.0, 0.5, 0.4
    build = pb.Builder("pendulum", gravity=(0, 0, -G))
    build.body("bob", m, (0, 0, -length))
    build.joint("pin", "revolute", "world", "bob", axis=(0, 1, 0), friction=F)
    run = pb.simulate(build.model(), 20.0, [2.0], sample=0.05)
    angle, weight = 2.0, m * G * length
    while weight * np.sin(angle) > F:  # energy lost on the way to the next turning point
        def left(x: float, start: float = angle) -> float:
            return weight * (np.cos(x) - np.cos(start)) - F * (start + x)

        angle = abs(brentq(left, 1e-9 - angle, angle, xtol=1e-14))
    assert abs(run.q[-1, 0]) == pytest.approx(abs(angle), abs=1e-7)
    assert run.v[-1, 0] == 0
    assert run.audit.trusted


def test_a_stick_slip_oscillator_has_the_period_of_the_closed_form() -> None:
    m, k, V, static, coulomb = 1.0, 100.0, 0.1, 2.0, 1.0
    build = pb.Builder("slider", gravity=(0, 0, -G))
    build.body("slider", m, inertia=(1, 1, 1))
    law = {"coulomb": coulomb, "static": static, "stribeck": 1e-5}
    build.joint("slide", "prismatic", "world", "slider", axis=(1, 0, 0), friction=law)
    run = pb.simulate(build.model(), 4.0, controller=lambda t, q, v: k * (V * t - q), sample=0.01)
    slips = [h.time for h in run.happenings if h.detail == "slips"]
    assert slips[0] == pytest.approx(static / (k * V), rel=1e-9)
    omega, delta = np.sqrt(k / m), (static - coulomb) / k
    period = 2 * delta / V + 2 * (np.pi - np.arctan(delta * omega / V)) / omega
    np.testing.assert_allclose(np.diff(slips), period, rtol=1e-3)
    # not `trusted`: friction falls within 1e-5 m/s, and a step may pass that between its stages (2.3e-6 at worst)
    assert run.audit.energy_error_relative < 1e-5


def test_two_joints_at_rest_together_stick_or_slide_as_their_loads_say() -> None:
    def arm(level: float) -> pb.Model:
        build = pb.Builder("arm", gravity=(0, -G, 0))
        for name in ("upper", "lower"):
            build.body(name, 1.0, (0.5, 0, 0), (0, 0.1, 0.1))
        build.joint("shoulder", "revolute", "world", "upper", friction=20.0)
        build.joint("elbow", "revolute", "upper", "lower", (1, 0, 0), friction=level)
        return build.model()

    held = pb.simulate(arm(6.0), 0.3)  # the elbow needs m g / 2 = 4.9, the shoulder 2 m g = 19.6
    assert not held.q.any()
    falling = pb.simulate(arm(4.0), 0.3)
    assert falling.q[-1, 1] < -0.01
    assert falling.audit.trusted
    reference = pb.simulate(arm(4.0).lock("shoulder"), 0.3)
    assert not falling.q[:, 0].any()  # the shoulder, which bears less while the elbow falls, is held all the time
    assert falling.q[-1, 1] == pytest.approx(reference.q[-1, 0], rel=1e-8)


def four_bar(**more: Any) -> pb.Model:
    build = pb.Builder("four-bar", gravity=(0, -G, 0))
    for name, mass, length in (("crank", 1.0, 0.5), ("coupler", 2.0, 1.2), ("rocker", 1.5, 0.9)):
        build.body(name, mass, (length / 2, 0, 0), (0, mass * length**2 / 12, mass * length**2 / 12))
    build.joint("a", "revolute", "world", "crank", **more)
    build.joint("b", "revolute", "crank", "coupler", (0.5, 0, 0))
    build.joint("d", "revolute", "world", "rocker", (1.1, 0, 0), **more)
    build.loop("c", "revolute", "coupler", "rocker", (1.2, 0, 0), (0.9, 0, 0))
    return build.model()


@pytest.mark.parametrize("friction", [{"coulomb": 6.0, "static": 7.0}, {"load": 0.1}])
def test_a_linkage_sticks_with_its_loop_closed_and_its_energy_balanced(friction: dict[str, float]) -> None:
    model = four_bar(friction=friction)
    q = model.assemble([0.7, -0.274, 1.141], hold=["a"])
    v = model.assemble_velocity(q, np.full(3, 3.0), hold=["a"])
    run = pb.simulate(model, 0.25 if "load" in friction else 1.5, q, v, sample=0.01, rtol=1e-7, atol=1e-9)
    assert run.audit.trusted
    assert any(h.detail == "sticks" for h in run.happenings) or "load" in friction
    assert (np.diff(run.work) <= 1e-12).all()
    assert run.work[-1] < -0.3


def test_smooth_friction_is_the_law_of_the_kernels_and_creeps() -> None:
    run = pb.simulate(block(coulomb=8.0), 1.0, friction="smooth", method="radau", rtol=1e-8)
    speed = 0.01 * np.arctanh(2 * G * np.sin(0.3) / 8.0)
    assert run.v[-1, 0] == pytest.approx(speed, rel=1e-6)
    with pytest.raises(pb.InputError, match="friction is 'none'"):
        pb.simulate(block(), 1.0, friction="none")


def test_midpoint_steps_in_python_pass_the_steep_part_of_stribeck_s_curve_as_compiled_ones_do() -> None:
    build = pb.Builder("slider", gravity=(0, 0, 0))
    build.body("cart", 0.24, inertia=(1, 1, 1))
    law = {"coulomb": 0.8, "static": 2.2, "stribeck": 0.01}
    build.joint("x", "prismatic", "world", "cart", axis=(1, 0, 0), friction=law)
    model = build.model()
    for force, speed in ((-6.0, 0.04), (-2.5, 0.02), (3.0, -0.02)):
        pull = pb.controllers.Given(model, [force])
        runs = [pb.simulate(model, 0.05, [0.0], [speed], pull, method="midpoint", compiled=x) for x in (True, False)]
        assert runs[1].stopped is None
        np.testing.assert_allclose(runs[0].q[-1], runs[1].q[-1], atol=1e-10)
