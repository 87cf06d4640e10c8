"""Sine and cosine against 60-digit arithmetic."""

import casadi as ca
import mpmath
import numpy as np
import pytest
from helpers import of_function

from polybody.kernels.target import host, without_avx512, without_fma

VARIANTS = {"host": host, "without avx512": lambda: without_avx512(host()), "without fma": lambda: without_fma(host())}


def sine_cosine(target, lanes=None):
    x = ca.SX.sym("x")
    return of_function(ca.Function("sc", [x], [ca.sin(x), ca.cos(x)]), lanes=lanes, target=target)


def ulps(found: np.ndarray, x: np.ndarray, exact) -> np.ndarray:
    """Errors in units of the last place of the true value."""
    errors = []
    with mpmath.workdps(60):
        for value, argument in zip(found, x, strict=True):
            true = exact(mpmath.mpf(float(argument)))
            errors.append(float(abs(mpmath.mpf(float(value)) - true) / np.spacing(abs(float(true)))))
    return np.array(errors)


def arguments() -> np.ndarray:
    rng = np.random.default_rng(3)
    near = np.arange(1, 63000, 251) * (np.pi / 2)  # where reduction cancels most
    return np.concatenate(
        [
            rng.uniform(-np.pi, np.pi, 1500),
            rng.uniform(-1e5, 1e5, 1500),
            rng.choice([-1, 1], 600) * 10.0 ** rng.uniform(-12, 5, 600),
            near, np.nextafter(near, 0), np.nextafter(near, 1e9), -near,
            [0.0, 1e-300, 5e-324, 1e5, -1e5, np.nextafter(1e5, 2e5)],
        ]
    )  # fmt: skip


@pytest.mark.parametrize("variant", VARIANTS)
def test_sine_and_cosine_are_within_two_ulp_up_to_1e5(variant):
    target = VARIANTS[variant]()
    x = arguments()
    sine, cosine = sine_cosine(target)(x[:, None])
    assert ulps(sine[:, 0], x, mpmath.sin).max() <= 2.0
    assert ulps(cosine[:, 0], x, mpmath.cos).max() <= 2.0


@pytest.mark.parametrize("lanes", [1, 2, 4, 8])
def test_sine_is_right_beyond_1e5_beside_ordinary_lanes(lanes):
    x = np.array([0.3, 1.1e5, -2.0, 1e9, 1e22, -3e100, 1.7e308, 0.1, 1e5])
    sine, cosine = sine_cosine(host(), lanes)(x[:, None])
    assert ulps(sine[:, 0], x, mpmath.sin).max() <= 2.0
    assert ulps(cosine[:, 0], x, mpmath.cos).max() <= 2.0


@pytest.mark.parametrize("variant", VARIANTS)
def test_nan_and_infinity_come_out_as_nan_and_spoil_no_neighbour(variant):
    target = VARIANTS[variant]()
    x = np.array([0.5, np.nan, np.inf, -np.inf, 1.5, 2.5, np.nan, 3.5, 0.25])
    for found, reference in zip(sine_cosine(target)(x[:, None]), (np.sin, np.cos), strict=True):
        with np.errstate(invalid="ignore"):
            expected = reference(x)
        np.testing.assert_array_equal(np.isnan(found[:, 0]), np.isnan(expected))
        np.testing.assert_allclose(found[:, 0], expected, rtol=4e-16)


def test_sine_and_cosine_of_one_argument_share_one_call():
    from polybody.kernels.schedule import schedule
    from polybody.kernels.tape import from_function

    x = ca.SX.sym("x")
    y = ca.SX.sym("y")
    tape = from_function(ca.Function("f", [x, y], [ca.sin(x) * ca.cos(x) + ca.sin(y) + ca.sin(x)]))
    waves = [step for step in schedule(tape) if isinstance(step, dict)]
    assert len(waves) == 1
    assert len(waves[0]["sincos"]) == 2
