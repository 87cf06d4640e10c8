"""Limits and dry friction of models in networks: the motion is that of `pb.simulate(model)`, an engine of its own."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import polybody as pb


def two_links(friction: Any = 0, limits: Any = (None, None), **more: Any) -> pb.Model:
    build = pb.Builder("two", gravity=(0, -9.81, 0))
    build.body("upper", 1.2, (0.2, 0, 0), (0.001, 0.02, 0.02))
    build.body("lower", 0.8, (0.1, 0, 0), (0.001, 0.01, 0.01))
    at = np.eye(4)
    at[0, 3] = 0.4
    build.joint("s", "revolute", "world", "upper", limits=limits[0], friction=friction, **more)
    build.joint("e", "revolute", "upper", "lower", at, limits=limits[1], friction=friction)
    return build.model()


def alone(model: pb.Model) -> pb.Network:
    net = pb.Network("alone")
    net.mechanism("arm", model)
    return net


def crank() -> pb.Model:
    """A slider-crank with limits."""
    build = pb.Builder("slider-crank", gravity=(0, -9.81, 0))
    build.body("crank", 1.0, (0.1, 0, 0), (0.001, 0.01, 0.01))
    build.body("rod", 0.8, (0.25, 0, 0), (0.001, 0.02, 0.02))
    build.joint("turn", "revolute", "world", "crank", limits=(-0.5, 2.0))
    at = np.eye(4)
    at[0, 3] = 0.2
    build.joint("knee", "revolute", "crank", "rod", at)
    build.point_on_line("guide", "world", (0, 0, 0), (1, 0, 0), "rod", (0.5, 0, 0))
    return build.model()


NARROW = ((-0.6, 1.0), (-0.4, 0.5))
STRIBECK = {"coulomb": 0.3, "static": 0.4, "stribeck": 0.05, "viscous": 0.1}


@pytest.mark.parametrize(
    ("friction", "limits", "restitution"),
    [(0, NARROW, 0.0), (0, NARROW, 0.4), (STRIBECK, (None, None), 0.0), ({"coulomb": 0.3}, NARROW, 0.0),
     ({"coulomb": 0.1, "exponent": 1.0, "static": 0.2}, ((-0.6, np.inf), None), 0.2)],
)  # fmt: skip
def test_limits_and_friction_of_a_model_act_in_a_network_as_in_its_own_run(friction, limits, restitution) -> None:
    model = two_links(friction, limits)
    times = np.linspace(0, 1.2, 60)
    wanted = pb.simulate(model, 1.2, [0.3, 0.2], rtol=1e-10, atol=1e-12, times=times, restitution=restitution)
    run = pb.simulate(alone(model), 1.2, {"arm.s.q": 0.3, "arm.e.q": 0.2}, rtol=1e-10, atol=1e-12, times=times,
                      restitution=restitution)
    np.testing.assert_allclose(run.configuration("arm"), wanted.q, atol=1e-7)
    assert run.audit.switches >= 2
    assert run.audit.energy_error_relative < 1e-9


@pytest.mark.parametrize("method", ["dop853", "radau", "rk4", "idas"])
def test_every_method_stops_at_limits(method: str) -> None:
    run = pb.simulate(alone(two_links(0, NARROW, damping=0.3)), 1.0, method=method, dt=1e-3)
    assert run.final["arm.s.q"] == pytest.approx(-0.6, abs=1e-6)
    assert run["arm.e.q"].min() > -0.4 - 1e-6


def test_an_elastic_drive_presses_a_joint_against_its_limit() -> None:
    # at rest at the limit the drive's torque is ratio times the motor's stall torque, and the stop bears the difference
    model = two_links(0, (None, (-0.4, 0.5)))
    net = alone(model)
    net.part("hold", "rotational_spring", "arm.s", stiffness=1e5, damping=200)
    net.part("V", "voltage_source", "p", voltage=12)
    net.part("M", "dc_motor", winding="p", shaft="m", torque_constant=0.05, resistance=2, rotor_inertia=1e-5)
    net.part("G", "elastic_gear", "m", "arm.e", ratio=50, stiffness=400, damping=8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = pb.simulate(net, 1.0, rtol=1e-7, atol=1e-9)
    assert run.final["arm.e.q"] == pytest.approx(0.5, abs=1e-9)
    drive = 50 * 0.05 * 12 / 2
    gravity = 0.8 * 9.81 * 0.1 * np.cos(run.final["arm.s.q"] + 0.5)
    assert run.final["arm.e limits.t"] == pytest.approx(drive - gravity, rel=1e-6)


def test_what_does_not_act_is_named() -> None:
    model = two_links({"coulomb": 0.3}, ((-0.6, 1.0), None))
    net = alone(model)
    with pytest.warns(pb.PolybodyWarning, match=r"friction of arm.s.*arm.e.* is the smooth law"):
        pb.linearize(net)
    run = pb.simulate(net, 0.5, limits="ignore", friction="smooth")
    assert run.audit.switches == 0
    assert run["arm.s.q"].min() < -0.7
    with pytest.raises(pb.PolybodyError, match="limits is 'halt'; expected one of stop, ignore"):
        pb.simulate(net, 0.1, limits="halt")
    with pytest.warns(pb.PolybodyWarning, match="friction of e, s in .arm. depends on the load"):
        pb.simulate(alone(two_links({"coulomb": 0.1, "load": 0.01})), 0.01)


def test_a_drive_beyond_what_its_model_states_is_named() -> None:
    limits = {"lower": -9.0, "upper": 9.0, "effort": 2.0}
    net = alone(two_links(0, (limits, None)))
    net.part("T", "torque_source", "arm.s", torque=5.0)
    with pytest.warns(pb.PolybodyWarning, match=r"the effort at 'arm.s' reached 5 N m, its model allows 2"):
        pb.simulate(net, 0.05)


def test_a_joint_that_is_driven_by_its_speed_beyond_its_limit_is_named() -> None:
    net = alone(two_links(0, ((-0.2, 0.2), None)))
    net.part("turn", "speed_source", "arm.s", speed=1.0)
    with pytest.raises(pb.PolybodyError, match=r"arm.s limits"):
        pb.simulate(net, 0.5)


def test_limits_inside_a_loop_act_as_in_the_model_s_own_run() -> None:
    model = crank()
    q = model.assemble([0.4, -0.5])
    times = np.linspace(0, 0.8, 30)
    wanted = pb.simulate(model, 0.8, q, rtol=1e-10, atol=1e-12, times=times)
    net = alone(model)
    run = pb.simulate(net, 0.8, {"arm.turn.q": q[0], "arm.knee.q": q[1]}, rtol=1e-10, atol=1e-12, times=times)
    np.testing.assert_allclose(run.configuration("arm"), wanted.q, atol=1e-7)
    assert run["arm.turn.q"].min() == pytest.approx(-0.5, abs=1e-9)
    free = pb.simulate(net, 0.8, {"arm.turn.q": q[0], "arm.knee.q": q[1]}, limits="ignore")
    assert free["arm.turn.q"].min() < -0.6
    assert free.audit.energy_error_relative < 1e-8
