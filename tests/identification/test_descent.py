"""Quasi-Newton steps: minima that are known, and never a higher point."""

from __future__ import annotations

import numpy as np
import pytest

from polybody.identification import descent
from polybody.identification.descent import descend


@pytest.mark.parametrize("seed", range(3))
def test_a_quadratic_form_descends_to_its_centre(seed: int) -> None:
    rng = np.random.default_rng(seed)
    A, centre = rng.normal(size=(12, 12)), rng.normal(size=12)
    M = A @ A.T + np.diag(np.geomspace(1, 100, 12))
    f, g = lambda x: 0.5 * (x - centre) @ M @ (x - centre) - 7.0, lambda x: M @ (x - centre)
    np.testing.assert_allclose(descend(f, g, np.zeros(12), 500), centre, atol=1e-4)


def test_the_bent_valley_of_rosenbrock_ends_at_one_one() -> None:
    f = lambda x: (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2  # noqa: E731
    g = lambda x: np.array([2 * (x[0] - 1) - 400 * x[0] * (x[1] - x[0] ** 2), 200 * (x[1] - x[0] ** 2)])  # noqa: E731
    assert f(descend(f, g, np.array([-1.2, 1.0]), 5)) < f(np.array([-1.2, 1.0]))
    np.testing.assert_allclose(descend(f, g, np.array([-1.2, 1.0]), 200), [1.0, 1.0], atol=1e-3)


def test_corners_and_places_without_a_number_are_not_stepped_over() -> None:
    """|x| has no slope of nought, log(x) no number at 0 and below: the result is never higher than the start."""
    assert abs(descend(lambda x: abs(x[0]), np.sign, np.array([3.0]), 50)[0]) < 3.0
    with np.errstate(invalid="ignore", divide="ignore"):
        found = descend(lambda x: float(x[0] - np.log(x[0])), lambda x: 1 - 1 / x, np.array([1e-3]), 100)
    np.testing.assert_allclose(found, [1.0], atol=1e-4)


def test_no_steps_leave_the_start_and_a_minimum_stays() -> None:
    f, g = lambda x: float(x @ x), lambda x: 2 * x
    np.testing.assert_array_equal(descend(f, g, np.ones(3), 0), np.ones(3))
    np.testing.assert_array_equal(descend(f, g, np.zeros(3), 10), np.zeros(3))


def test_a_step_that_was_too_long_is_cut_to_where_the_parabola_is_lowest() -> None:
    """x² from 1 along −2: four times that leads to −7, and the parabola's lowest point is 0."""
    one = np.ones(1)
    found = descent._wolfe(lambda x: float(x @ x), lambda x: 2 * x, one, 1.0, 2 * one, -2 * one, 4.0)
    assert found is not None
    np.testing.assert_allclose(found[0], 0.0, atol=1e-15)
