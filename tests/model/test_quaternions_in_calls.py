"""Unit quaternions are looked at in machine code: single calls never enter Python, and nothing else is let through."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest

import polybody as pb
from polybody.errors import InputError
from polybody.kernels.units import first_off_unit


@pytest.fixture(scope="module")
def model():
    build = pb.Builder("two balls")
    build.body("base", 2.0, inertia=(0.2, 0.3, 0.4))
    build.body("arm", 1.0, com=(0.1, 0, 0.2), inertia=(0.02, 0.03, 0.01))
    build.joint("root", "floating", "world", "base")
    build.joint("ball", "spherical", "base", "arm")
    return build.model()


def test_a_single_call_with_unit_quaternions_enters_no_python(model):
    rng = np.random.default_rng(0)
    q, (v, a) = model.random_configuration(rng), rng.normal(size=(2, model.nv))
    wanted = model.inverse_dynamics(q, v, a)
    assert np.array_equal(model.inverse_dynamics(q, v, a), wanted)
    with mock.patch.object(type(model), "_ask", side_effect=AssertionError("Python was entered")):
        np.testing.assert_array_equal(model.inverse_dynamics(q, v, a), wanted)
        np.testing.assert_array_equal(model.inverse_dynamics(np.array([q, q]), v, a), [wanted, wanted])


@pytest.mark.parametrize("joint", ["root", "ball"])
@pytest.mark.parametrize("factor", [1 + 2e-6, 1 - 2e-6, 0.0, 1e100])
def test_a_quaternion_that_is_not_unit_is_refused_in_single_calls_and_batches(model, joint, factor):
    rng = np.random.default_rng(1)
    q, (v, a) = model.random_configuration(rng, size=50), rng.normal(size=(2, model.nv))
    for _ in range(2):
        model.inverse_dynamics(q[0], v, a)
    model.difference(q[0], q[1])
    part = model.joint_slices()[joint][0]
    q[7, part][-4:] *= factor
    for given, where in ((q[7], "q:"), (q, r"q\[7\]:"), (q.reshape(5, 10, -1), r"q\[0, 7\]:")):
        with pytest.raises(InputError, match=f"{where} the quaternion of joint '{joint}' has length"):
            model.inverse_dynamics(given, v, a)
    with pytest.raises(InputError, match="q1: the quaternion of joint"):
        model.difference(q[0], q[7])


def test_a_length_within_a_millionth_is_taken_and_nan_comes_out_as_nan(model):
    rng = np.random.default_rng(2)
    q, (v, a) = model.random_configuration(rng), rng.normal(size=(2, model.nv))
    model.inverse_dynamics(q, v, a)
    part = model.joint_slices()["ball"][0]
    near, none = q.copy(), q.copy()
    near[part] *= 1 + 9e-7
    assert np.isfinite(model.inverse_dynamics(near, v, a)).all()
    none[part] = np.nan
    assert np.isnan(model.inverse_dynamics(none, v, a)).any()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_are_counted_over_all_leading_dimensions_whatever_the_layout(dtype):
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(4, 6, 7))
    rows[..., 2:6] /= np.linalg.norm(rows[..., 2:6], axis=-1, keepdims=True)
    rows = rows.astype(dtype)
    assert first_off_unit(rows, 2) == -1
    assert first_off_unit(rows[:, ::2], 2) == -1
    rows[3, 1, 5] += 0.5
    assert first_off_unit(rows, 2) == 3 * 6 + 1
    assert first_off_unit(np.asfortranarray(rows), 2) == 3 * 6 + 1
    assert first_off_unit(rows[:, 1::2], 2) == 3 * 3
    assert first_off_unit(rows[:0], 2) == -1


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_single_states_are_judged_as_rows_are(dtype: type) -> None:
    rng = np.random.default_rng(4)
    for size in (0.0, 1e-7, 3e-7, 3e-6, 1e-3, np.nan, np.inf):
        for _ in range(10):
            q = rng.normal(size=9)
            q[3:7] *= (1 + rng.choice([-1, 1]) * size) / np.linalg.norm(q[3:7])
            single = q.astype(dtype)
            assert first_off_unit(single, 3) == first_off_unit(single[None], 3)
            assert (first_off_unit(single, 3) == 0) == (size >= 3e-6)
