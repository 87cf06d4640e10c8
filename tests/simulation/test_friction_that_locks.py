"""Friction by load that locks joints while they slide has no value: one error says so. Less of it has one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polybody as pb
from polybody.simulation.bearing_forces import solved
from polybody.simulation.failures import SimulationError


def test_friction_of_a_joint_that_carries_it_has_its_closed_form_and_ends_where_that_has_none() -> None:
    """R = 1 − f along one direction, f = −w |R|: −f = w/(1 − w), which has no bound at w = 1."""
    R0, by = np.array([[1.0, 0.0, 0.0]]), np.array([[[-1.0], [0.0], [0.0]]])
    for w in (0.1, 0.5, 0.9, 0.999):
        f, reached = solved(R0, by, np.array([[-w]]), 1.0)
        assert reached == 1.0
        assert f is not None
        np.testing.assert_allclose(f, -w / (1 - w), rtol=1e-9)
    for w in (1.0, 1.5, 4.0):
        f, reached = solved(R0, by, np.array([[-w]]), 1.0)
        assert f is None
        np.testing.assert_allclose(reached, 1 / w, rtol=1e-4)


def test_forces_of_joints_that_bear_each_other_satisfy_their_equation() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        n = int(rng.integers(1, 8))
        R0, by, weights = rng.normal(size=(n, 3)), rng.normal(size=(n, 3, n)), np.diag(rng.uniform(-0.4, 0.4, n))
        f, reached = solved(R0, by, weights, 1.0)
        if f is None:
            assert 0.0 < reached < 1.0
            continue
        np.testing.assert_allclose(weights @ np.linalg.norm(R0 + by @ f, axis=1), f, atol=1e-9 * (1 + np.abs(f).max()))


@pytest.mark.parametrize("compiled", [None, False])
@pytest.mark.parametrize("method", ["rk4", "dop853", "idas"])
def test_a_chain_whose_friction_locks_it_is_one_error_that_names_the_joints(method: str, compiled: Any) -> None:
    build = pb.Builder("chain", gravity=(0, 0, -9.81))
    for k in range(5):
        build.body(f"b{k}", 0.5, com=(0.1, 0, 0), inertia=(0.002, 0.003, 0.003))
        axis = (0, 0.6, 0.8) if k % 2 else (0, 1, 0)
        build.joint(f"j{k}", "revolute", f"b{k - 1}" if k else "world", f"b{k}", (0.2 if k else 0, 0, 0), axis=axis,
                    friction={"coulomb": 0.05, "load": 0.4})  # fmt: skip
    q, v = 0.3 * np.cos(np.arange(5)), 0.5 * np.sin(np.arange(5))
    with pytest.raises(SimulationError, match=r"'j1', 'j2', 'j3', 'j4' to slide.*lock themselves") as caught:
        pb.simulate(build.model(), 0.05, q, v, method=method, compiled=compiled)
    assert caught.value.__context__ is None
    assert caught.value.time is not None
