"""Every public call of a model with loops honours them, or says what to use instead."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import polybody as pb
from closed_states import closed_state
from polybody.cli import app
from polybody.model.counting import model_counts


def floating_four_bar() -> pb.Model:
    """A four-bar on a free base, with a weight."""
    build = pb.Builder("floating four-bar", gravity=(0, 0, 0))
    build.body("hull", 3.0, com=(0.1, 0.05, 0), inertia=(0.2, 0.3, 0.4))
    build.joint("root", "floating", "world", "hull")
    for name, length in (("crank", 0.2), ("coupler", 0.5), ("rocker", 0.4)):
        build.body(name, 1, com=(length / 2, 0, 0), inertia=(0.001, 0.02, 0.02))
    build.joint("a", "revolute", "hull", "crank")
    build.joint("b", "revolute", "crank", "coupler", (0.2, 0, 0), active=False)
    build.joint("c", "revolute", "hull", "rocker", (0.6, 0, 0), active=False)
    build.loop("d", "revolute", "coupler", "rocker", (0.5, 0, 0), (0.4, 0, 0))
    return build.model()


def test_a_floating_machine_with_a_loop_keeps_its_momentum_and_its_loop():
    model = floating_four_bar()
    q = model.assemble([0.1, 0.2, 0.3, 0, 0, 0, 1, 0.7, 0.3, 1.5], hold=["a", "root"])
    v = model.assemble_velocity(q, np.r_[np.zeros(6), 1.0, 0, 0], hold=["a", "root"])
    still = model.base.zero_momentum_velocity(q, v)
    np.testing.assert_allclose(model.momentum(q, still), 0, atol=1e-12)
    assert np.abs(model.constraints.jacobian(q) @ still).max() < 1e-10
    wanted = np.array([0.1, -0.2, 0.05, 0.3, 0.1, -0.4])
    np.testing.assert_allclose(model.momentum(q, model.base.zero_momentum_velocity(q, v, wanted)), wanted, atol=1e-10)
    a = model.assemble_acceleration(q, v, np.r_[np.zeros(6), 2.0, 0, 0], hold=["a", "root"])
    driven = model.actuation.active_forces(q, v, a, active=["root", "a"])  # the base held by forces of its own
    np.testing.assert_allclose(model.base.reaction(q, v, a), -driven[:6], atol=1e-9)


def test_a_machine_that_loops_hold_to_the_ground_does_not_float():
    build = pb.Builder("tethered")
    build.body("hull", 1.0, inertia=(1, 1, 1))
    build.joint("root", "floating", "world", "hull")
    build.rod("tether", "world", (0, 0, 0), "hull", (0, 0, 0.5), 0.5)
    model = build.model()
    with pytest.raises(pb.InputError, match="does not float freely"):
        model.base.zero_momentum_velocity(model.assemble(), np.zeros(model.nv))


@pytest.mark.parametrize(("name", "frame"), [("five-bar", "A"), ("stewart", "platform")])
def test_inverse_kinematics_of_a_machine_with_loops_is_closed(name, frame):
    model, q, _ = closed_state(name)
    wanted = model.pose(q, frame)[:3, 3]
    near = pb.inverse_kinematics(model, {frame: wanted}, model.neutral())
    assert near
    np.testing.assert_allclose(model.pose(near.q, frame)[:3, 3], wanted, atol=1e-8)
    assert np.abs(model.constraints.residual(near.q)).max() < 1e-8
    assert near.position_error.shape == (1,)


def test_inverse_kinematics_of_a_platform_takes_poses_in_batches():
    model, q, _ = closed_state("stewart")
    _, other, _ = closed_state("stewart", seed=4)
    poses = model.pose(np.stack([q, other]), "platform")
    found = pb.inverse_kinematics(model, {"platform": poses})
    assert found
    np.testing.assert_allclose(model.pose(found.q, "platform"), poses, atol=1e-8)
    assert np.abs(model.constraints.residual(found.q)).max() < 1e-8


def test_paths_of_machines_with_loops_move_independent_coordinates_and_the_others_follow():
    model, q1, _ = closed_state("3-rrr")
    path = pb.paths.quintic(model, model.assemble(), q1, 1.0)
    times = np.linspace(0, 1, 11)
    q, v, a = path(times)
    assert np.abs(model.constraints.residual(q)).max() < 1e-12
    assert np.abs(model.engine.constraints.velocity(q, v)).max() < 1e-10
    np.testing.assert_allclose(q[-1], q1, atol=1e-9)
    h = 1e-4
    before, after = path(times[1:-1] - h), path(times[1:-1] + h)
    np.testing.assert_allclose(v[1:-1], model.difference(before[0], after[0]) / (2 * h), atol=1e-5)
    np.testing.assert_allclose(a[1:-1], (after[1] - before[1]) / (2 * h), atol=1e-4)
    tau = model.inverse_dynamics(q, v, a)
    np.testing.assert_allclose(model.forward_dynamics(q, v, tau), a, atol=1e-8 * (1 + np.abs(a).max()))
    with pytest.raises(pb.InputError, match="assemble"):
        pb.paths.quintic(model, model.assemble(), q1 + 0.1, 1.0)


def test_commands_take_machines_with_loops(tmp_path):
    run = CliRunner().invoke(app, ["inverse", "five-bar", "--to", "phi1=0.2,theta_h=0.1", "--samples", "11", "-t", "1",
                                   "-o", str(tmp_path / "run"), "--json"])  # fmt: skip
    assert run.exit_code == 0, run.output
    counted = CliRunner().invoke(app, ["count", "stewart", "--json"])
    assert counted.exit_code == 0, counted.output
    answer = json.loads(counted.output)
    tree = model_counts(pb.load("stewart").tree)["forward_dynamics"]
    assert answer["actual"]["forward_dynamics"]["M"] != tree.multiplications
    assert answer["general"] == {}
