"""Methods that share no more than the equations agree on motions with loops."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
import squeezer
from typer.testing import CliRunner

import polybody as pb
from machines import four_bar_chain
from polybody.cli import app
from polybody.errors import PolybodyWarning
from polybody.model.validation import model_from

TIGHT = {"rtol": 1e-11, "atol": 1e-12}


def weightless(name):
    """A shipped machine without gravity: it coasts, and stays away from its singular positions."""
    said = pb.load(name).mechanism.description
    return model_from(dataclasses.replace(said, gravity=np.zeros(3)), warn=False)


def coasting(model, speed):
    q = model.assemble()
    v = model.assemble_velocity(q, np.random.default_rng(4).normal(size=model.nv))
    return q, v * speed / np.abs(v).max()


@pytest.mark.parametrize("method", ["idas", "cvodes"])
@pytest.mark.parametrize("name", ["four-bar", "five-bar", "3-rrr", "bricard", "stewart"])
def test_methods_agree_with_the_default_on_energy_motion_and_loops_over_two_seconds(name, method):
    model = weightless(name)
    q, v = coasting(model, 0.15)
    best = pb.simulate(model, 2.0, q, v, sample=0.1, limits="ignore", **TIGHT)
    motion = pb.simulate(model, 2.0, q, v, sample=0.1, limits="ignore", method=method, **TIGHT)
    assert np.abs(best.q - q).max() > 0.01
    assert np.abs(model.difference(best.q, motion.q)).max() < 1e-6
    assert np.abs(best.v - motion.v).max() < 1e-6
    assert motion.audit.loop_error < 1e-10
    assert motion.audit.loop_drift < 1e-6
    assert motion.audit.energy_error_relative < 1e-6


@pytest.mark.parametrize("method", ["idas", "cvodes"])
def test_methods_agree_with_the_default_under_controller_and_wrench(method):
    model = pb.load("four-bar")
    q = model.assemble()
    driven = np.concatenate([np.broadcast_to(joint.active, joint.nv) for joint in model.mechanism.joints])
    hold, size = model.inverse_dynamics(q, np.zeros(3), np.zeros(3)), model.mass_matrix(q)[0, 0]

    def controller(t, q_now, v):
        return hold - size * driven * (30 * (q_now - q) + 4 * v - 2 * np.sin(3 * t))

    push = 2 * size * np.array([0, 0, 0.1, 1, 0.5, 0])
    acting = {"wrenches": {model.body_names[1]: lambda t: push * np.cos(2 * t)}, "sample": 0.1}
    best = pb.simulate(model, 1.0, q, controller=controller, **acting, **TIGHT)
    motion = pb.simulate(model, 1.0, q, controller=controller, method=method, **acting, rtol=1e-10, atol=1e-12)
    assert np.ptp(best.work) > 1e-3 * size
    assert np.abs(best.q - motion.q).max() < 1e-6
    assert motion.audit.loop_error < 1e-10
    assert motion.audit.energy_error_relative < 1e-6


def test_idas_rests_at_a_stop_of_a_loop_as_the_default_does():
    build = pb.Builder("stopped four-bar", gravity=(0, -9.81, 0))
    for name, length in (("crank", 0.2), ("coupler", 0.5), ("rocker", 0.4)):
        build.body(name, 1, com=(length / 2, 0, 0), inertia=(0.001, 0.02, 0.02))
    build.joint("a", "revolute", "world", "crank", damping=0.05, limits=(0.2, 3.0))
    build.joint("b", "revolute", "crank", "coupler", (0.2, 0, 0), active=False)
    build.joint("c", "revolute", "world", "rocker", (0.6, 0, 0), active=False)
    build.loop("d", "revolute", "coupler", "rocker", (0.5, 0, 0), (0.4, 0, 0))
    model = build.model()
    q = model.assemble([0.7, 0.3, 1.5], hold=["a"])
    best, motion = (pb.simulate(model, 2.0, q, method=m, sample=0.02, rtol=1e-10) for m in ("dop853", "idas"))
    assert [h.name for h in motion.happenings] == [h.name for h in best.happenings] != []
    assert motion.q[-1, 0] == pytest.approx(best.q[-1, 0], abs=1e-9)
    assert motion.audit.loop_error < 1e-10


def test_idas_rests_where_all_joints_of_a_loop_stick():
    build = pb.Builder("stiff four-bar", gravity=(0, -9.81, 0))
    for name, length in (("crank", 0.2), ("coupler", 0.5), ("rocker", 0.4)):
        build.body(name, 1, com=(length / 2, 0, 0), inertia=(0.001, 0.02, 0.02))
    build.joint("a", "revolute", "world", "crank", friction=5.0)
    build.joint("b", "revolute", "crank", "coupler", (0.2, 0, 0), active=False, friction=1.0)
    build.joint("c", "revolute", "world", "rocker", (0.6, 0, 0), active=False, friction=1.0)
    build.loop("d", "revolute", "coupler", "rocker", (0.5, 0, 0), (0.4, 0, 0))
    model = build.model()
    q = model.assemble([0.7, 0.3, 1.5], hold=["a"])
    v = model.assemble_velocity(q, [1.0, 0.0, 0.0])

    def push(t, q, v):
        return [20.0 * np.sin(6 * t), 0, 0]

    runs = [pb.simulate(model, 0.3, q, v, push, method=m, sample=0.02, rtol=1e-9) for m in ("dop853", "idas")]
    best, motion = runs
    assert motion.stopped is None
    assert sum(h.detail == "sticks" for h in best.happenings) >= 3
    assert {h.name for h in motion.happenings} == {h.name for h in best.happenings}
    assert np.abs(motion.q - best.q).max() < 1e-6


@pytest.mark.parametrize("method", ["idas", "cvodes"])
def test_joints_of_a_loop_come_to_rest_together_though_each_has_its_error(method):
    build = pb.Builder("rubbing four-bar", gravity=(0, -9.81, 0))
    for name, mass, length in (("crank", 0.4, 0.2), ("coupler", 1, 0.5), ("rocker", 1, 0.5)):
        build.body(name, mass, com=(length / 2, 0, 0), inertia=[0.02 if mass == 1 else 0.002] * 3)

    def turned(cosine, sine, x):
        return [[cosine, -sine, 0, x], [sine, cosine, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]

    build.joint("a", "revolute", "world", "crank", turned(0, 1, 0), friction=2.0)
    build.joint("b", "revolute", "crank", "coupler", turned(0.6, -0.8, 0.2), active=False, friction=1.0)
    build.joint("c", "revolute", "world", "rocker", turned(0, 1, 0.4), active=False, friction=1.0)
    build.loop("d", "revolute", "rocker", "coupler", (0.5, 0, 0), (0.5, 0, 0))
    model = build.model()
    q = model.assemble()
    v = model.assemble_velocity(q, [2.0, 0.0, 0.0])

    def push(t, q, v):
        return np.array([6 * np.sin(20 * t), 0, 0])

    best, motion = (pb.simulate(model, 0.2, q, v, push, method=m, sample=0.001) for m in ("dop853", method))
    assert any(h.detail == "sticks" for h in best.happenings)
    assert np.abs(motion.q - best.q).max() < 1e-6


def test_idas_says_what_goes_through_singular_positions_where_it_gives_up():
    model = four_bar_chain(1)
    v = np.array([-1.0 if joint.name.startswith("base") else 1.0 for joint in model.mechanism.joints])
    q = model.neutral()
    for joint in model.mechanism.joints:
        q[joint.q] = -np.pi / 2 if joint.name.startswith("base") else np.pi / 2
    with pytest.warns(PolybodyWarning, match="through singular positions of loops take dop853 or rk4"):
        motion = pb.simulate(model, 0.5, model.integrate(q, v, -1e-13), v, method="idas")
    assert motion.stopped is not None


def test_command_simulates_loops_by_idas(tmp_path):
    wanted = ["simulate", "four-bar", "-t", "0.2", "--method", "idas", "--json", "-o", str(tmp_path / "run")]
    told = CliRunner().invoke(app, wanted)
    assert told.exit_code == 0, told.output
    audit = json.loads(told.stdout)["audit"]
    assert (audit["method"], audit["loop_error"] < 1e-10) == ("idas", True)


@pytest.mark.parametrize(("method", "off"), [("dop853", 2e-8), ("idas", 2e-6), ("radau", 2e-8), ("cvodes", 1e-5)])
def test_squeezing_mechanism_ends_where_the_literature_says_with_default_tolerances(method, off):
    model = squeezer.squeezer()
    run = pb.simulate(model, 0.03, squeezer.START, controller=squeezer.torque, method=method, sample=0.003)
    assert run.stopped is None
    assert np.abs(run.q[-1] - squeezer.END).max() < off
