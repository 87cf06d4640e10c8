"""The usual controllers on models with loops: borne by the actuators where they are."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import polybody as pb
from closed_states import closed_state
from polybody.cli import app


@pytest.mark.parametrize("name", ["five-bar", "stewart", "walking-machine"])
def test_gravity_compensation_holds_by_active_joints_alone(name):
    model, q, _ = closed_state(name)
    rest = np.zeros(model.nv)
    tau = pb.controllers.GravityCompensation(model)(0.0, q, rest)
    assert not tau[~model.actuation.active].any()
    free = model.tree.passive_forces(q, rest)
    held = tau - model.actuation.equivalent_actuator_forces(q, free)
    np.testing.assert_allclose(model.forward_dynamics(q, rest, held), 0, atol=1e-8)
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


def simulated(tmp_path, *arguments):
    """The audit and the last configuration of a run of the command."""
    folder = tmp_path / "run"
    told = CliRunner().invoke(app, ["simulate", *arguments, "--json", "-o", str(folder)])
    assert told.exit_code == 0, told.output
    return json.loads(told.stdout)["audit"], np.load(folder / "trajectory.npz")["q"]


@pytest.mark.parametrize("name", ["four-bar", "stewart"])
def test_command_holds_a_mechanism_with_loops_where_it_starts(tmp_path, name):
    audit, q = simulated(tmp_path, name, "-t", "0.3", "--controller", "hold", "--sample", "0.1")
    assert audit["trusted"]
    assert np.abs(q[-1] - q[0]).max() < 1e-6


def test_command_assembles_loops_around_the_joints_that_are_given(tmp_path):
    model = pb.load("four-bar")
    name = model.constraints.independent[0]
    place = model.joint_slices()[name][0].start
    angle = float(model.assemble()[place]) + 0.1
    speed = ["--v", f"{name}=0.5"]
    audit, q = simulated(tmp_path, "four-bar", "-t", "0.05", "--q", f"{name}={np.degrees(angle)}deg", *speed)
    assert audit["loop_error"] < 1e-10
    assert abs(q[0, place] - angle) < 1e-12
