"""States of loops in float32 that rounding has taken off their constraints by more than float64 allows."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb


def crane(metres):
    """A four-bar whose crank has this length."""
    build = pb.Builder("crane", gravity=(0, -9.81, 0))
    place = np.eye(4)

    def along(x):
        there = place.copy()
        there[0, 3] = x * metres
        return there

    for name, length in (("crank", 1.0), ("coupler", 3.0), ("rocker", 2.5)):
        size = length * metres
        build.body(name, 1.0, (size / 2, 0, 0), (1e-3 * size**2, size**2 / 10, size**2 / 10))
    build.joint("a", "revolute", "world", "crank", axis=(0, 0, 1))
    build.joint("b", "revolute", "crank", "coupler", along(1), axis=(0, 0, 1))
    build.joint("d", "revolute", "world", "rocker", along(3), axis=(0, 0, 1))
    build.loop("c", "revolute", "coupler", "rocker", along(3), along(2.5), axis=(0, 0, 1))
    return build.model()


def states(model, count, metres):
    rng = np.random.default_rng(0)
    q = model.random_configuration(rng, size=count)
    v = model.assemble_velocity(q, rng.normal(size=(count, model.nv)))
    return q, v, model.forward_dynamics(q, v, 10 * metres**2 * rng.normal(size=(count, model.nv)))


def assert_single(found, wanted, part):
    assert found.dtype == np.float32
    size = np.abs(wanted).reshape(len(wanted), -1).max(axis=1)
    gap = np.abs(found - wanted).reshape(len(wanted), -1).max(axis=1)
    assert np.all(gap <= part * np.maximum(size, np.median(size)))


@pytest.mark.parametrize("metres", [20, 200])
def test_large_mechanisms_answer_float32_as_float64_does_before_rounding(metres):
    model = crane(metres)
    q, v, a = states(model, 200, metres)
    narrow = [x.astype(np.float32) for x in (q, v, a)]
    off = np.abs(model.constraints.residual(narrow[0].astype(float))).max()
    assert off > 1e-6, "rounding left all states on their loops"
    tau = model.inverse_dynamics(q, v, a)
    assert_single(model.inverse_dynamics(*narrow), tau, 2e-4)
    assert_single(model.mass_matrix(narrow[0]), model.mass_matrix(q), 2e-4)
    assert_single(model.forward_dynamics(*narrow[:2], tau.astype(np.float32)), a, 2e-3)


def test_one_state_alone_too():
    model = crane(200)
    q, v, a = (x[7] for x in states(model, 20, 200))
    found = model.inverse_dynamics(*(x.astype(np.float32) for x in (q, v, a)))
    np.testing.assert_allclose(found, model.inverse_dynamics(q, v, a), rtol=1e-3, atol=40)


def test_states_that_are_open_by_more_than_rounding_are_refused_with_their_place():
    model = crane(20)
    q = states(model, 50, 20)[0].astype(np.float32)
    q[31, 0] += 1e-4
    with pytest.raises(pb.PolybodyError, match="31"):
        model.mass_matrix(q)
    q[31, 0] += 0.1
    with pytest.raises(pb.PolybodyError, match="31"):
        model.mass_matrix(q)


def test_velocities_that_break_the_loops_are_refused():
    model = crane(20)
    q, v, _ = (x.astype(np.float32) for x in states(model, 50, 20))
    v[12, 1] += 0.01
    with pytest.raises(pb.PolybodyError, match="12"):
        model.bias_forces(q, v)


def test_accelerations_that_break_the_loops_are_refused():
    model = crane(20)
    q, v, a = (x.astype(np.float32) for x in states(model, 50, 20))
    a[12, 1] += 0.1 * (1 + np.square(v[12]).max()) * (1 + np.abs(a[12]).max())
    with pytest.raises(pb.PolybodyError, match="12"):
        model.inverse_dynamics(q, v, a)
