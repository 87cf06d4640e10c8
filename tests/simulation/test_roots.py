"""Zeros of functions of time inside brackets."""

from __future__ import annotations

import math

import numpy as np
import pytest

from polybody.simulation.roots import crossing

SHAPES = {
    "cubic": lambda x, a: x**3 - a**3,
    "steep": lambda x, a: math.tanh(50 * (x - a)),
    "falling": lambda x, a: math.exp(a) - math.exp(x),
    "jump": lambda x, a: math.copysign(1.0, x - a),
    "tiny": lambda x, a: 1e-300 * (x - a),
    "huge": lambda x, a: 1e250 * (a - x),
    "flat": lambda x, a: (x - a) ** 9,
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_zero_is_found_to_its_tolerance_in_fewer_evaluations_than_halving_takes(shape: str) -> None:
    rng = np.random.default_rng(3)
    for _ in range(200):
        a = rng.uniform(-1, 1)
        low, high = a - rng.uniform(0, 1) ** 4 - 1e-12, a + rng.uniform(0, 1) ** 4 + 1e-12
        asked: list[float] = []

        def value(x: float, a: float = a, asked: list[float] = asked) -> float:
            asked.append(x)
            return SHAPES[shape](x, a)

        found = crossing(value, low, high, 1e-14)
        assert abs(found - a) <= (1e-14 + 1e-15 if shape != "flat" else 1e-2 * (high - low) + 1e-14)
        assert min(asked) >= low
        assert max(asked) <= high
        assert len(asked) <= (60 if shape in ("jump", "flat") else 20)


def test_an_end_that_is_zero_is_the_answer_and_equal_signs_are_refused() -> None:
    assert crossing(lambda x: x, 0.0, 1.0, 1e-14) == 0.0
    assert crossing(lambda x: x - 1.0, 0.0, 1.0, 1e-14) == 1.0
    with pytest.raises(ValueError, match="opposite signs"):
        crossing(lambda x: x + 1.0, 0.0, 1.0, 1e-14)


def test_where_a_function_stops_being_a_number_the_search_ends() -> None:
    found = crossing(lambda x: -1.0 if x < 0.3 else math.nan if x < 0.9 else 1.0, 0.0, 1.0, 1e-14)
    assert 0.3 - 1e-13 <= found <= 0.9 + 1e-13
