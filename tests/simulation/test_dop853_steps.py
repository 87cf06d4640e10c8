"""The steps of `dop853` in Python are those of Hairer's method: SciPy's implementation of it takes the same ones."""

from typing import Any

import numpy as np
import pytest
from scipy.integrate import DOP853

import polybody as pb
from polybody.simulation.integrators.dop853 import Steps


def driven(t, y):
    """Van der Pol's oscillator under a force; the last number is its work, which no tolerance holds."""
    return np.array([y[1], 5 * (1 - y[0] ** 2) * y[1] - y[0] + np.cos(3 * t), y[1] * np.cos(3 * t)])


@pytest.mark.parametrize("first", [None, 0.01])
def test_steps_rejections_and_interpolants_are_those_of_scipy(first):
    options = {"rtol": 1e-9, "atol": np.array([1e-11, 1e-11, np.inf]), "max_step": 0.2, "first_step": first}
    ours, theirs = (kind(driven, 0.0, np.array([2.0, 0.0, 0.0]), 5.0, **options) for kind in (Steps, DOP853))
    rejected = False
    while theirs.status == "running":
        before = theirs.nfev
        assert ours.step() is None
        theirs.step()
        rejected |= theirs.nfev - before > DOP853.n_stages
        assert ours.nfev == theirs.nfev
        np.testing.assert_allclose(ours.t, theirs.t, rtol=1e-6)
        own, other, between = ours.dense_output(), theirs.dense_output(), theirs.t_old + 0.37 * theirs.step_size
        np.testing.assert_allclose(own(between), other(between), rtol=0, atol=1e-9)
        np.testing.assert_allclose(own(ours.t), ours.y, rtol=0, atol=1e-13)
    assert ours.status == "finished"
    assert rejected


def test_numbers_that_are_not_finite_end_in_a_message():
    steps = Steps(
        lambda t, y: np.array([np.nan if t > 0.1 else 1.0]), 0.0, np.zeros(1), 1.0,
        rtol=1e-9, atol=np.array([1e-11]), max_step=np.inf, first_step=0.5,
    )  # fmt: skip
    message = None
    while steps.status == "running":
        message = steps.step()
    assert steps.status == "failed"
    assert "smaller" in message


def test_tolerances_below_rounding_take_no_more_steps_in_compiled_runs_than_in_python():
    """Compiled radau took five times as many."""
    model = pb.load("double-pendulum")
    counts = [
        pb.simulate(model, 0.02, [0.9, -0.6], method="radau", rtol=1e-20, atol=1e-17, compiled=compiled).audit.steps
        for compiled in (None, False)
    ]
    assert counts[0] <= 1.2 * counts[1]


@pytest.mark.parametrize("method", ["dop853", "radau"])
def test_wrenches_that_do_not_read_the_time_bound_no_steps(method: str) -> None:
    """A function that returns a constant is as good as the constant; one that steps at a time is looked at."""
    build = pb.Builder("wheel", gravity=(0, 0, 0))
    build.body("a", 1.0, inertia=(1, 1, 1))
    build.joint("turn", "revolute", "world", "a", damping=0.1)
    model, push = build.model(), np.array([0, 0, 0.1, 0, 0, 0])

    def steps(wrench: Any) -> int:
        run = pb.simulate(model, 30.0, [0.0], [0.0], method=method, wrenches={"a": wrench})
        assert run.audit.path == "compiled"
        return run.audit.steps

    assert steps(lambda t: push * 1.0) == steps(push) < 300
    assert steps(lambda t: np.where(t > 15.0, push, 0.0 * push)) > 700
