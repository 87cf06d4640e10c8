"""Rollouts are the same motion as lone runs, for every law that is compiled into the step."""

from __future__ import annotations

import numpy as np
import pytest
from simulation_cases import moving, satellite, shipped, tree

import polybody as pb

pytestmark = pytest.mark.filterwarnings("ignore:the energy balance:polybody.errors.PolybodyWarning")


def batch(model: pb.Model, size: int, speed: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    return model.random_configuration(rng, size), speed * rng.normal(size=(size, model.nv))


@pytest.mark.parametrize("method", ["rk4", "semi-implicit"])
@pytest.mark.parametrize("name", ["stanford-arm", "satellite", "random tree"])
def test_free_rollout_equals_lone_runs(name: str, method: str) -> None:
    kinds = ("spherical", "planar", "revolute", "screw")
    model = {"satellite": satellite, "random tree": lambda: tree(11, 4, kinds=kinds)}.get(name, lambda: shipped(name))()
    q, v = batch(model, 11)
    rolled = pb.rollout(model, q, v, None, 30, dt=2e-3, method=method)
    assert rolled.q.shape == (11, 30, model.nq)
    for k in (0, 10):
        run = pb.simulate(model, 0.06, q[k], v[k], method=method, dt=2e-3, limits="ignore", friction="smooth")
        np.testing.assert_allclose(rolled.q[k], run.q[1:], rtol=0, atol=1e-11)
        np.testing.assert_allclose(rolled.v[k], run.v[1:], rtol=1e-10, atol=1e-10)
    last = pb.rollout(model, q, v, None, 30, dt=2e-3, method=method, keep="last")
    np.testing.assert_array_equal(last.q, rolled.q[:, -1])


def test_torque_table_constant_and_policy_agree() -> None:
    model = shipped("stanford-arm")
    q, v = batch(model, 5)
    rng = np.random.default_rng(0)
    table = rng.normal(size=(5, 20, 6))
    by_table = pb.rollout(model, q, v, table)
    by_policy = pb.rollout(model, q, v, lambda t, q, v: table[:, round(t / 1e-3)], 20)
    np.testing.assert_array_equal(by_table.q, by_policy.q)
    shared = pb.rollout(model, q, v, table[0])
    np.testing.assert_allclose(shared.q[0], by_table.q[0], atol=1e-14)
    constant = pb.rollout(model, q, v, table[0, 0], 20)
    repeated = pb.rollout(model, q, v, np.broadcast_to(table[0, 0], (20, 6)))
    np.testing.assert_allclose(constant.q, repeated.q, atol=1e-13)


@pytest.mark.parametrize("gravity", [False, True])
def test_pd_inside_the_step_is_the_pd_of_lone_runs(gravity: bool) -> None:
    model = satellite()
    q, v = batch(model, 3)
    goal, _ = moving(model, 9)
    law = pb.PD(model, goal, kp=20.0, kd=np.linspace(1, 3, model.nv), gravity=gravity)
    rolled = pb.rollout(model, q, v, law, 50, dt=2e-3)
    run = pb.simulate(model, 0.1, q[1], v[1], law, method="rk4", dt=2e-3)
    assert np.max(np.abs(model.difference(run.q[1:], rolled.q[1]))) < 1e-11


def test_pd_along_a_path_reaches_its_end() -> None:
    model = shipped("stanford-arm")
    q = np.array([0.0, np.pi / 2, 0.0, 0.0, 0.0, 0.0])
    path = pb.paths.quintic(model, q, q + 0.3, 0.5)
    law = pb.PD(model, path=path, kp=[900, 900, 900, 5, 5, 5], kd=[90, 90, 90, 0.3, 0.3, 0.3], gravity=True)
    rolled = pb.rollout(model, np.stack([q, q]), np.zeros((2, 6)), law, 700, dt=1e-3)
    assert np.max(np.abs(rolled.q[:, -1] - (q + 0.3))) < 3e-2


def test_energy_error_of_the_midpoint_rule_stays_bounded_over_1e5_steps() -> None:
    """The compiled step, on the double pendulum in chaotic motion."""
    model = shipped("double-pendulum")
    q, v = np.array([[2.0, -0.5], [2.5, 0.5]]), np.zeros((2, 2))
    h, chunk, errors = 0.005, 20_000, []
    e0 = sum(model.energy(q, v))
    scale = 2 * 9.81 * (1.0 * 0.5 + 0.5 * 1.3)
    for _ in range(5):
        rolled = pb.rollout(model, q, v, None, chunk, h, method="midpoint")
        q, v = rolled.q[:, -1], rolled.v[:, -1]
        errors.append(np.max(np.abs(sum(model.energy(rolled.q, rolled.v)) - e0[:, None]), axis=1) / scale)
    errors = np.array(errors)
    assert np.max(errors) < 4e-3, errors
    # A drift would add the first chunk's error four times; which part of a chaotic motion it sees is up to rounding.
    assert np.all(errors[1:] < 1.6 * errors[0]), errors


def test_midpoint_rollout_equals_the_lone_run() -> None:
    model = shipped("double-pendulum")
    rolled = pb.rollout(model, [1.0, 0.5], [0.3, 0.0], None, 200, 5e-3, method="midpoint")
    run = pb.simulate(model, 1.0, [1.0, 0.5], [0.3, 0.0], method="midpoint", dt=5e-3)
    np.testing.assert_allclose(rolled.q, run.q[1:], atol=1e-10)


def test_wrongs_of_a_rollout_are_named() -> None:
    model = shipped("stanford-arm")
    q, v = batch(model, 2)
    bad = q.copy()
    bad[1, 3] = np.nan
    wrong = [
        ((q[:, :5], v, None, 3), r"q0 has shape \(2, 5\)"),
        ((bad, v, None, 3), r"q0\[1, 3\] is nan"),
        ((q, v, np.zeros((4, 5))), r"expected \(6,\) or"),
        ((q, v, np.zeros((4, 6)), 5), "4 rows for 5 steps"),
        ((q, v, None), "steps is not given"),
        ((q, v, None, 0), "at least 1"),
        ((q, v, lambda t, q, v: np.zeros(3), 2), "policy returned shape"),
    ]
    for arguments, message in wrong:
        with pytest.raises(pb.InputError, match=message):
            pb.rollout(model, *arguments)
    with pytest.raises(pb.InputError, match="no rollout method"):
        pb.rollout(model, q, v, None, 3, method="euler")


@pytest.mark.parametrize("name", ["double-pendulum", "four-bar"])
@pytest.mark.parametrize("method", ["rk4", "semi-implicit"])
def test_wrenches_act_in_rollouts_as_in_simulations(name: str, method: str) -> None:
    """A batch of constant wrenches at a frame away from its body's origin, without and with loops."""
    model = pb.load(name)
    frame, q0, v0 = list(model.frame_names)[-1], model.assemble(), np.zeros(model.nv)
    loads = np.random.default_rng(4).normal(size=(3, 6)) * 4
    found = pb.rollout(model, q0, v0, None, 40, 1e-3, method=method, keep="last", wrenches={frame: loads})
    for k, load in enumerate(loads):
        run = pb.simulate(model, 0.04, q0, v0, wrenches={frame: load}, method=method, dt=1e-3, limits="ignore")
        np.testing.assert_allclose(found.q[k], run.q[-1], rtol=1e-9, atol=1e-11)
    with pytest.raises(pb.InputError, match=r"wrenches\['world'\].*shape|not finite|6"):
        pb.rollout(model, q0, v0, None, 4, wrenches={"world": [1.0]})


@pytest.mark.parametrize("keep", ["all", "last"])
def test_states_of_large_batches_are_joined_in_pieces(monkeypatch, keep):
    model, rng = pb.load("puma560"), np.random.default_rng(4)
    q, v = model.random_configuration(rng, size=40), rng.normal(size=(40, model.nv))
    tau = rng.normal(size=(40, 3, model.nv))
    whole = pb.rollout(model, q, v, tau, keep=keep)
    monkeypatch.setattr("polybody.kernels.arrays.PIECE", 4096)
    parts = pb.rollout(model, q, v, tau, keep=keep)
    np.testing.assert_array_equal(parts.q, whole.q)
    np.testing.assert_array_equal(parts.v, whole.v)
