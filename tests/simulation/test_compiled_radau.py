"""Radau IIA by compiled code: stiff motions of trees, loops, joints that stick; its own order and its own Jacobians."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from simulation_cases import moving, satellite, shipped
from test_compiled import assert_same, both
from test_compiled_friction import arm, assert_same_events, details
from test_dry_friction import four_bar

import polybody as pb
from polybody.kernels.stepping import Parts, build
from polybody.simulation.compiled.engine import Compiled
from polybody.simulation.integrators.tableaux import radau_5


@pytest.mark.parametrize("name", ["double-pendulum", "satellite"])
def test_stiff_gains_on_trees_are_followed_as_in_python(name: str) -> None:
    model = satellite() if name == "satellite" else shipped(name)
    stiff = pb.PD(model, model.neutral(), 2e4, 2e3)
    options = {"controller": stiff, "method": "radau", "rtol": 1e-8, "dense": True}
    ours, theirs = both(model, 0.3, *moving(model), **options)
    assert_same(ours, theirs, 1e-6)
    assert abs(ours.audit.steps - theirs.audit.steps) <= 0.1 * theirs.audit.steps
    times = np.linspace(0, 0.3, 17)
    for mine, other in zip(ours.at(times), theirs.at(times), strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-5)


@pytest.mark.parametrize("name", ["stewart", "four-bar"])
def test_loops_by_radau_move_as_by_dop853_and_keep_energy(name: str) -> None:
    model = four_bar(damping=0.2) if name == "four-bar" else shipped(name)
    q = model.assemble([0.7, -0.274, 1.141], hold=["a"]) if name == "four-bar" else model.assemble()
    run = pb.simulate(model, 0.1, q, method="radau", sample=0.02, rtol=1e-8, atol=1e-10, compiled=True)
    exact = pb.simulate(model, 0.1, q, sample=0.02, rtol=1e-12, atol=1e-14)
    assert run.audit.path == "compiled"
    assert run.audit.loop_error is not None
    assert run.audit.loop_error < 1e-12
    assert run.audit.energy_error_relative < 1e-6
    np.testing.assert_allclose(run.q, exact.q, atol=1e-7)
    np.testing.assert_allclose(run.v, exact.v, atol=1e-6 * (1 + np.abs(exact.v).max()))


def test_stiff_loop_takes_few_steps() -> None:
    """A damper whose time constant is some 1e-6 s: explicit steps of such a run are some hundred thousand."""
    model = four_bar(damping=1e5)
    q = model.assemble([0.7, -0.274, 1.141], hold=["a"])
    v = model.assemble_velocity(q, np.full(3, 3.0), hold=["a"])
    run = pb.simulate(model, 1.0, q, v, method="radau", rtol=1e-6, atol=1e-8, compiled=True)
    creep = model.forward_dynamics  # after the transient: damper torques balance gravity, accelerations are small
    assert run.audit.steps < 120
    assert np.abs(creep(run.q[-1], run.v[-1], np.zeros(3))).max() < 1e-3
    assert np.abs(run.v[-1]).max() < 1e-3


@pytest.mark.parametrize("method", ["radau"])
def test_joints_stick_slip_and_hit_stops_as_in_python(method: str) -> None:
    state = [0.3, 0.2, -0.4], [0.0, 0.5, 0.0]
    ours, theirs = both(arm(), 0.8, *state, method=method, sample=0.05, rtol=1e-9, atol=1e-11)
    assert_same_events(ours, theirs)
    assert_same(ours, theirs, 1e-5)
    assert {"sticks", "slips", "hit"} <= {detail for _, detail in details(ours)}


def test_jacobian_by_differences_gives_the_motion_of_the_exact_one(monkeypatch: pytest.MonkeyPatch) -> None:
    model = shipped("double-pendulum")
    options = {"method": "radau", "rtol": 1e-8, "atol": 1e-10, "sample": 0.1}
    exact = pb.simulate(model, 0.5, *moving(model), **options)
    monkeypatch.setattr(Compiled, "_has_slopes", False)
    ours = pb.simulate(model, 0.5, *moving(model), **options)
    assert ours.audit.path == exact.audit.path == "compiled"
    np.testing.assert_allclose(ours.q, exact.q, atol=1e-7)


def prothero_robinson(stiffness: float, tolerance: float) -> tuple[int, float, float]:
    """(steps, error, work's error) of ẏ = −λ(y − cos t) − sin t, y(0) = 1 to t = 2, whatever λ: y = cos t; Ẇ = y."""
    x, c, row = ca.SX.sym("x", 3), ca.SX.sym("c", 1), ca.SX.sym("row", 0)
    pull = -c[0] * (x[0] - ca.cos(x[2])) - ca.sin(x[2])
    made = {
        "field": ca.Function("f", [x, c, row], [ca.vertcat(pull, x[0], 1), ca.SX.zeros(2)]),
        "slopes": ca.Function("s", [x, c, row], [-c[0]]),
    }
    parts = Parts(2, 1, 0, 0, made.__getitem__, dict.fromkeys(made, "test Prothero and Robinson"))
    loop = build("test", parts, radau_5())
    states = np.zeros((5000, parts.padded))
    states[0, 0] = 1.0
    arrays = {"states": states, "answers": np.zeros((5000, parts.answer)), "constants": np.array([stiffness]),
              "dense": np.zeros((5000, 3, parts.padded)), "samples": np.zeros(1)}  # fmt: skip
    for name, array in arrays.items():
        loop.array(name, array)
    loop.set(steps=4990, h=0.0, end=2.0, until=2.0, max_step=np.inf, rtol=tolerance, atol=tolerance,
             newton_tol=tolerance**0.5)  # fmt: skip
    assert loop.run() == 0
    done = loop.word("done")
    t, y = states[: done + 1, 2], states[: done + 1, 0]
    return done, float(np.abs(y - np.cos(t)).max()), float(abs(states[done, 1] - np.sin(2.0)))


@pytest.mark.parametrize("stiffness", [1.0, 1e3, 1e8])
def test_stiffness_does_not_cost_steps_and_tolerances_are_kept(stiffness: float) -> None:
    for tolerance in (1e-5, 1e-8):
        steps, error, work = prothero_robinson(stiffness, tolerance)
        assert error < 20 * tolerance
        assert work < (100 * tolerance if stiffness < 1e6 else 1e-4)  # W has no part in the steps' length
        assert steps < 100


@pytest.mark.parametrize("method", ["dop853", "radau", "rk4"])
def test_joint_that_sticks_is_broken_loose_by_a_force_that_jumps_at_an_instant(method: str) -> None:
    """The sampled force passes what friction holds at 0.04 s, not between two samples."""
    build = pb.Builder("slider")
    build.body("a", 1.0)
    build.joint("x", "prismatic", "world", "a", axis=(1, 0, 0), friction=2.0)
    model = build.model()
    law = pb.controllers.Sampled(lambda t, q, v: 100 * (0.7 * t - q) - 5 * v, 0.02)
    ours, theirs = both(model, 0.1, controller=law, method=method, rtol=1e-8, atol=1e-10, sample=0.02)
    assert [(h.detail, round(h.time, 9)) for h in ours.happenings] == [("sticks", 0.0), ("slips", 0.04)]
    assert_same(ours, theirs, 1e-7)
    assert ours.q[-1, 0] > 1e-3
