"""The live simulation by itself: rigid stops with and without loops, payload, forces at every step."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb

pytest.importorskip("websockets", reason="the viewer's packages are an extra: pip install polybody[viewer]")
pytest.importorskip("trimesh", reason="the viewer's packages are an extra: pip install polybody[viewer]")

from polybody.studio.viewer.live import Live
from polybody.studio.viewer.posing import Posing


def live(model, q):
    return Live(model, Posing(model, 1.0, np.asarray(q, dtype=float)), 1.0)


def pendulum(limits=None, gravity=(0, 0, -9.81)):
    build = pb.Builder("pendulum", gravity=gravity)
    for k in range(2):
        build.body(f"b{k}", 1.0, (0, 0, -0.25), (0.02, 0.02, 1e-3))
    build.joint("j0", "revolute", "world", "b0", axis=(0, 1, 0))
    build.joint("j1", "revolute", "b0", "b1", (0, 0, -0.5), axis=(0, 1, 0), limits=limits)
    build.frame("tip", "b1", (0, 0, -0.5))
    return build.model()


def test_a_joint_comes_to_rest_on_its_stop_and_momentum_goes_through_it():
    """Without gravity the impact keeps the angular momentum about the fixed axis; energy is lost."""
    model = pendulum({"lower": -0.3, "upper": 0.3}, gravity=(0, 0, 0))
    sim = live(model, [0.1, 0.29])
    sim.v = np.array([0.0, 3.0])
    before, energy = model.mass_matrix(sim.q)[0] @ sim.v, model.energy(sim.q, sim.v)[0]
    sim._steps(4)  # 10 mrad at 3 rad/s: the fourth reaches it
    assert sim.q[1] == pytest.approx(0.3, abs=1e-9)
    assert sim.v[1] == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(model.mass_matrix(sim.q)[0] @ sim.v, before, rtol=2e-3)
    assert 0 < model.energy(sim.q, sim.v)[0] < energy


def test_a_pendulum_lies_on_its_stop_under_gravity():
    model = pendulum({"lower": -0.3, "upper": 0.3})
    sim = live(model, [1.2, 0.3])
    for _ in range(60):
        sim._steps(10)
        assert abs(sim.q[1]) <= 0.3 + 1e-9


def test_linkages_stay_closed_on_their_stops():
    model = pb.load("stewart")
    sim = live(model, model.assemble())
    legs = [model.joint_slices()[f"leg{k}"][0].start for k in range(1, 7)]
    low = model.joint_limits()["lower"][[model.joint_slices()[f"leg{k}"][1].start for k in range(1, 7)]]
    for _ in range(12):
        sim._steps(50)
        assert (sim.q[legs] >= low - 1e-9).all()
        assert np.abs(model.constraints.residual(sim.q)).max() < 1e-8
    assert sim.q[legs].min() == pytest.approx(low[0], abs=2e-3)


def test_a_payload_hangs_on_the_tool_and_weighs():
    model = pendulum()
    sim = live(model, [0.4, 0.2])
    assert sim.tuning.sliders[0].label == "payload at tip"
    sim.set("parameter payload.mass", 2.0)
    heavy = model.with_payload("tip", 2.0)
    still = np.zeros(2)
    np.testing.assert_allclose(sim.model.mass_matrix(sim.q), heavy.mass_matrix(sim.q), rtol=1e-12)
    sim.set("controller", "hold")
    sim._steps(200)
    np.testing.assert_allclose(sim.q, [0.4, 0.2], atol=1e-3)
    np.testing.assert_allclose(sim.tau, heavy.inverse_dynamics(sim.q, still, still), atol=0.05)
    big = live(pb.load("stewart"), pb.load("stewart").assemble())
    assert [s.label for s in big.tuning.sliders] == ["payload at tool", "platform.mass"]
