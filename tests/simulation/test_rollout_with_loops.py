"""Rollouts of models with loops: they stay on them, and move as the simulation does."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb
from closed_states import closed_state
from machines import parallelogram

Array = np.ndarray


def spread(name: str, count: int) -> tuple[pb.Model, Array, Array]:
    """Several closed states of one machine."""
    model, q, _ = closed_state(name, size=0.05)
    rng = np.random.default_rng(1)
    qs = model.assemble(model.integrate(q, 0.05 * rng.normal(size=(count, model.nv))))
    return model, qs, model.assemble_velocity(qs, rng.normal(size=(count, model.nv)))


@pytest.mark.parametrize("name", ["five-bar", "bricard", "stewart"])
def test_every_state_stays_on_the_loops_and_follows_the_simulation(name):
    model, q, v = spread(name, 3)
    tau = 0.1 * np.random.default_rng(2).normal(size=model.nv)
    run = pb.rollout(model, q, v, tau, steps=40, dt=1e-3)
    assert run.q.shape == (3, 40, model.nq)
    assert np.abs(model.constraints.residual(run.q)).max() < 1e-12
    assert np.abs(model.engine.constraints.velocity(run.q, run.v)).max() < 1e-10 * (1 + np.abs(run.v).max())
    exact = pb.simulate(model, 0.04, q[1], v[1], lambda *_: tau, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(run.q[1, -1], exact.q[-1], atol=1e-7)
    np.testing.assert_allclose(run.v[1, -1], exact.v[-1], atol=1e-6 * (1 + np.abs(exact.v).max()))
    last = pb.rollout(model, q, v, tau, steps=40, dt=1e-3, keep="last")
    np.testing.assert_allclose(last.q, run.q[:, -1], atol=1e-12)


def test_halving_the_step_takes_a_sixteenth_of_the_error():
    """Order four is kept by the way back to the loops."""
    model, q, v = closed_state("four-bar")
    ends = [pb.rollout(model, q, v, steps=n, dt=0.2 / n, keep="last").q for n in (40, 80, 160, 640)]
    errors = [np.abs(end - ends[-1]).max() for end in ends[:-1]]
    assert 10 < errors[0] / errors[1] < 24
    assert 10 < errors[1] / errors[2] < 24


def test_tables_laws_and_policies_agree():
    model, q, v = closed_state("five-bar")
    target, kp, kd = q + 0.0, 5.0, 0.5
    law = pb.PD(model, target, kp, kd)
    compiled = pb.rollout(model, q, v, law, steps=20, dt=1e-3, method="semi-implicit")
    policy = pb.rollout(model, q, v, lambda t, q, v: law(t, q, v), steps=20, dt=1e-3, method="semi-implicit")
    np.testing.assert_allclose(policy.q, compiled.q, atol=1e-12)
    taus = np.array([law(0.0, a, b) for a, b in zip([q, *compiled.q[:-1]], [v, *compiled.v[:-1]], strict=True)])
    table = pb.rollout(model, q, v, taus, dt=1e-3, method="semi-implicit")
    np.testing.assert_allclose(table.v, compiled.v, atol=1e-9)


def test_a_state_that_passes_a_dead_point_is_named_and_stepped_by_itself():
    """No link of this four-bar turns round, so each coordinate has places where it does not tell the others."""
    build = pb.Builder("triple-rocker", gravity=(0, -9.81, 0))
    for name, length in (("crank", 0.5), ("coupler", 0.3), ("rocker", 0.4)):
        build.body(name, 1, com=(length / 2, 0, 0), inertia=(0.001, 0.02, 0.02))
    build.joint("a", "revolute", "world", "crank")
    build.joint("b", "revolute", "crank", "coupler", (0.5, 0, 0), active=False)
    build.joint("c", "revolute", "world", "rocker", (0.9, 0, 0), active=False)
    build.loop("d", "revolute", "coupler", "rocker", (0.3, 0, 0), (0.4, 0, 0))
    model = build.model()
    exact = pb.simulate(model, 0.5, model.assemble([0.5, -0.3, 2.5]), np.zeros(3), sample=0.1)
    q, v = exact.q[[0, 3]], exact.v[[0, 3]]
    with pytest.warns(pb.PolybodyWarning, match=r"1 of 2 states come near singular.*first: state 1"):
        run = pb.rollout(model, q, v, steps=200, dt=1e-3)
    assert np.abs(model.constraints.residual(run.q)).max() < 1e-12
    np.testing.assert_allclose(run.q[:, -1], exact.q[[2, 5]], atol=1e-5)


def test_a_parallelogram_swings_through_flat_where_it_could_fold():
    model = parallelogram()
    q = model.assemble(np.array([[0.05, -0.05, 0.05], [1.0, -1.0, 1.0]]), hold=["a"])
    v = model.assemble_velocity(q, np.array([[-1.0, 0, 0], [-1.0, 0, 0]]), hold=["a"])
    with pytest.warns(pb.PolybodyWarning, match=r"1 of 2 states come near singular.*first: state 0"):
        run = pb.rollout(model, q, v, steps=100, dt=1e-3)  # the fiftieth step ends where it lies flat
    np.testing.assert_allclose(run.q[:, -1], q - 0.1 * np.array([1, -1, 1]), atol=1e-6)


def test_midpoint_and_open_states_are_refused():
    model, q, v = closed_state("five-bar")
    with pytest.raises(pb.InputError, match="rk4"):
        pb.rollout(model, q, v, steps=2, method="midpoint")
    with pytest.raises(pb.InputError, match="assemble"):
        pb.rollout(model, q + 0.1, v, steps=2)


@pytest.mark.parametrize("method", ["rk4", "semi-implicit"])
def test_a_rollout_that_diverges_is_not_a_number_from_there_on(method: str) -> None:
    """Damping that steps of 1 ms cannot follow: numpy's "SVD did not converge" was all that the caller got."""
    model = pb.load("hybrid")
    q, v = model.assemble(), np.zeros(model.nv)
    law = pb.PD(model, q, 10.0, 1.0)
    with pytest.warns(pb.PolybodyWarning, match="singular configurations"):
        found = pb.rollout(model, q, v, law, steps=40, dt=1e-3, method=method)
    states = np.concatenate([found.q, found.v], axis=-1)
    good = np.isfinite(states).all(axis=-1)
    last = int(good.sum())
    assert 2 <= last < 40
    assert good[:last].all()
    assert np.isnan(states[last:]).all()
    assert np.abs(model.constraints.residual(found.q[1])).max() < 1e-9
