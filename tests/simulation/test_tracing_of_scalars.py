"""Functions of NumPy that choose, on the time and on single coordinates: they are expressions as on arrays."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb

LAWS = {
    "maximum of the time": lambda t, q, v: np.maximum(t - 0.1, 0.0) * np.ones(2),
    "minimum in an array": lambda t, q, v: np.array([np.minimum(t, 0.1), 0.0]),
    "where of the time": lambda t, q, v: np.where(t > 0.1, 1.0, q[0]) * np.ones(2),
    "where of a coordinate": lambda t, q, v: np.array([np.where(q[0] > 0.05, -1.0, 1.0), 0]),
    "a number compared with the time": lambda t, q, v: np.where(np.float64(0.1) < t, 1.0, 2.0) * v,
    "clip": lambda t, q, v: np.clip(t - 0.05, 0, 0.05) * np.ones(2),
    "stack": lambda t, q, v: np.stack([q[0] * t, np.maximum(-v[1], 0)]),
}


@pytest.mark.parametrize("name", LAWS)
def test_choices_on_scalars_are_compiled_and_compute_what_python_does(name):
    model, law = pb.load("two-link"), LAWS[name]
    run = pb.simulate(model, 0.2, [0.1, 0.2], controller=law, method="rk4", compiled=True)
    slow = pb.simulate(model, 0.2, [0.1, 0.2], controller=law, method="rk4", compiled=False)
    assert run.audit.path == "compiled"
    np.testing.assert_allclose(run.q, slow.q, atol=1e-13)


def test_what_needs_numbers_is_still_called_in_python():
    run = pb.simulate(pb.load("two-link"), 0.05, controller=lambda t, q, v: -v if t > 0.02 else v, method="rk4")
    assert "a condition depends on the state" in run.audit.path
