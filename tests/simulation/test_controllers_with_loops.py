"""The usual controllers on models with loops: borne by the actuators where they are."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb
from closed_states import closed_state


@pytest.mark.parametrize("name", ["five-bar", "stewart", "walking-machine"])
def test_gravity_compensation_holds_by_active_joints_alone(name):
    model, q, _ = closed_state(name)
    rest = np.zeros(model.nv)
    tau = pb.controllers.GravityCompensation(model)(0.0, q, rest)
    assert not tau[~model.actuation.active].any()
    free = model.tree.passive_forces(q, rest)
    np.testing.assert_allclose(model.forward_dynamics(q, rest, tau - model.actuation.equivalent_actuator_forces(q, free)), 0, atol=1e-8)
    law = pb.PD(model, q, kp=3.0, kd=1.0, gravity=True)
    np.testing.assert_allclose(law(0.0, q, rest), tau, atol=1e-12)


def test_computed_torque_brings_a_five_bar_to_its_path():
    """The error of the independent coordinates dies as its own equation says."""
    model = pb.load("five-bar")
    q0, q1 = model.neutral(), model.assemble([0.2, 0, 0, 0.1], hold=["phi1", "theta_h"])
    u = list(model.engine.independent)
    path = pb.paths.spline(model, [0.0, 5.0], np.stack([q1, q1]))
    law = pb.controllers.ComputedTorque(model, path, kp=100.0, kd=20.0)
    run = pb.simulate(model, 0.5, q0, np.zeros(4), law, sample=0.1)
    e0 = model.difference(q0, q1)[u]
    for t, q in zip(run.t, run.q, strict=True):
        wanted = e0 * (1 + 10 * t) * np.exp(-10 * t)
        np.testing.assert_allclose(model.difference(q, q1)[u], wanted, atol=1e-6)


def test_operational_space_moves_a_platform_as_its_error_equation_says():
    model = pb.load("3-rrr")
    q0 = model.neutral()
    goal = model.pose(q0, "hand")[:3, 3] + [0.01, -0.005, 0]
    law = pb.controllers.OperationalSpace(model, "hand", goal, kp=100.0, kd=20.0, rows="position")
    assert not law(0.0, q0, np.zeros(model.nv))[~model.actuation.active].any()
    run = pb.simulate(model, 0.3, q0, np.zeros(model.nv), law, sample=0.1)
    e0 = goal - model.pose(q0, "hand")[:3, 3]
    for t, q in zip(run.t, run.q, strict=True):
        wanted = e0 * (1 + 10 * t) * np.exp(-10 * t)
        np.testing.assert_allclose(goal - model.pose(q, "hand")[:3, 3], wanted, atol=1e-5)
