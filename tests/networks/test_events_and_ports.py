"""Events of a user in a network's run, impedance of mechanical ports, Bode plots, steady linear models."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import polybody as pb
from polybody.studio.network_results import bode_figure, figure_of


def falling():
    net = pb.Network("falling")
    net.part("m", "mass", "a", mass=2.0, gravity=9.81)
    net.part("x", "position_sensor", probe="a", out="y")
    return net


def test_event_is_located_ends_the_run_and_may_change_states():
    landed = pb.Event("landed", lambda t, values: values["x.position"] - 1.0, terminal=True)
    run = pb.simulate(falling(), 2.0, events=[landed])
    np.testing.assert_allclose(run.t[-1], np.sqrt(2 / 9.81), rtol=1e-10)
    assert run.stopped.startswith("event 'landed'")
    bounce = pb.Event("bounce", lambda t, values: values["x.position"] - 1.0, 1,
                      action=lambda t, values: {"m.v": -0.5 * values["m.v"]})
    run = pb.simulate(falling(), 0.8, events=[bounce])
    first, speed = np.sqrt(2 / 9.81), np.sqrt(2 * 9.81)
    np.testing.assert_allclose(run.happenings[0].time, first, rtol=1e-9)
    last = run.t[-1] - first
    np.testing.assert_allclose(run["m.v"][-1], -0.5 * speed + 9.81 * last, rtol=1e-8)
    assert run.audit.energy_error_relative < 1e-8


def test_impedance_of_a_shaft_is_that_of_inertia_spring_and_damper():
    J, k, d, w = 0.02, 300.0, 0.4, np.array([1.0, 30.0, 1000.0])
    net = pb.Network("shaft")
    net.part("J", "inertia", "a", inertia=J)
    net.part("S", "rotational_spring", "a", stiffness=k, damping=d)
    wanted = 1 / (1j * w * J + d + k / (1j * w))
    np.testing.assert_allclose(pb.impedance(net, "a", w), wanted, rtol=1e-10)
    np.testing.assert_allclose(pb.admittance(net, "a", w), 1 / wanted, rtol=1e-10)
    figure = bode_figure(w, wanted, "shaft")
    assert len(figure.axes) == 2
    with pytest.raises(pb.InputError, match="no node 'z'"):
        pb.impedance(net, "z", w)


def test_steady_linear_model_is_taken_at_the_equilibrium():
    net = pb.Network("orifice")
    net.part("Q", "flow_source", "a", flow=1e-4)
    net.part("A", "accumulator", "a", compliance=1e-11)
    net.part("O", "orifice", "a", area=1e-5)
    space = pb.linearize(net, {"A.p": 1e5}, steady=True)
    p = 870 / 2 * (1e-4 / (0.62 * 1e-5)) ** 2
    np.testing.assert_allclose(space.A[0, 0], -1e-4 / (2 * p) / 1e-11, rtol=1e-4)  # dq/dp = q/2p of turbulent flow


def test_run_is_saved_and_drawn(tmp_path):
    run = pb.simulate(falling(), 0.1)
    run.save(tmp_path / "values.csv")
    table = np.genfromtxt(tmp_path / "values.csv", delimiter=",", names=True)
    np.testing.assert_allclose(table["mv"], 9.81 * table["time"], atol=1e-9)
    assert len(figure_of(run, ["m.v"]).axes[0].lines) == 1
    with pytest.raises(pb.InputError, match=r"no variable 'm\.w'"):
        run["m.w"]


@pytest.mark.parametrize("kind", ["rotational_stop", "stop"])
def test_a_damped_stop_rebounds_as_the_closed_form_of_spring_and_damper_says(kind: str) -> None:
    """Contact ends where the force would pull, tan ω_d t = 2 ζ √(1 − ζ²)/(2 ζ² − 1), before the spring is back."""
    m, k, d = 0.1, 1e4, 10.0
    net = pb.Network("rebound")
    inertia, state = ("inertia", "J.w") if kind == "rotational_stop" else ("mass", "J.v")
    net.part("J", inertia, "a", **{inertia: m})
    net.part("S", kind, "a", lower=-1, upper=1, stiffness=k, damping=d)
    run = pb.simulate(net, 1.5, {state: 1.0}, rtol=1e-11, atol=1e-13)
    omega, zeta = np.sqrt(k / m), d / (2 * np.sqrt(k * m))
    damped = omega * np.sqrt(1 - zeta**2)
    contact = np.arctan2(2 * zeta * np.sqrt(1 - zeta**2), 2 * zeta**2 - 1) / damped  # f = 0 again
    turn = damped * contact
    speed = np.exp(-zeta * omega * contact) * (np.cos(turn) - zeta * omega / damped * np.sin(turn))
    assert [h.detail for h in run.happenings[:2]] == ["free → high", "high → free"]
    assert_allclose(run.happenings[1].time - run.happenings[0].time, contact, rtol=1e-7)
    assert_allclose(run.final[state], speed, rtol=1e-7)
