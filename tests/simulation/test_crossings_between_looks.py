"""What crosses zero and comes back between two looks at a step is found, as closed forms say when."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polybody as pb

METHODS = ("dop853", "rk4", "radau", "cvodes", "idas")
EVERY = pytest.mark.parametrize("method", METHODS)
EITHER = pytest.mark.parametrize("compiled", [True, False])


def block(**options: Any) -> pb.Model:
    build = pb.Builder("block", gravity=(0, 0, 0))
    build.body("mass", 1.0, inertia=(1, 1, 1))
    build.joint("slide", "prismatic", "world", "mass", axis=(0, 0, 1), **options)
    return build.model()


def options_of(method: str) -> dict[str, Any]:
    return {"method": method, **({"dt": 0.01} if method == "rk4" else {})}


@EITHER
@EVERY
def test_a_block_that_sticks_for_a_moment_is_found_at_rest(method: str, compiled: bool):
    """Under 1 N of friction v = A((t − T)² − s²) until it is zero at T − s. It sticks until the force is 1 N again, at
    T, and goes on by v = A(t − T)²."""
    A, T, s = 5.0, 0.523, 4e-4
    model, u = block(friction={"coulomb": 1.0}), A * (T**2 - s**2)
    law = lambda t, q, v: [1 + 2 * A * (t - T)]  # noqa: E731
    run = pb.simulate(model, 1.0, [0.0], [u], law, compiled=compiled, **options_of(method))
    found = [(x.detail, x.time) for x in run.happenings]
    assert [name for name, _ in found] == ["sticks", "slips"]
    np.testing.assert_allclose([t for _, t in found], [T - s, T], atol=2e-6 if method == "cvodes" else 1e-8)
    way = A * ((T**3 - s**3) / 3 - s**2 * (T - s) + (1 - T) ** 3 / 3)
    assert run.q[-1, 0] == pytest.approx(way, abs=2e-9)


@EITHER
@EVERY
@pytest.mark.parametrize("direction", [1, -1, 0])
def test_a_peak_beyond_a_level_crosses_it_twice(method: str, compiled: bool, direction: int):
    """z = ut − gt²/2 is above its peak less h for √(2h/g) on either side."""
    h, g, u = 1e-5, 10.0, 5.0
    level = u**2 / (2 * g) - h
    event = pb.Event("peak", lambda t, q, v: q[0] - level, direction=direction)
    run = pb.simulate(
        block().with_gravity((0, 0, -g)), 1.0, [0.0], [u], events=[event], compiled=compiled, **options_of(method)
    )
    half = np.sqrt(2 * h / g)
    expected = {1: [-half], -1: [half], 0: [-half, half]}[direction]
    found = [x.time - u / g for x in run.happenings]
    np.testing.assert_allclose(found, expected, atol=1e-5 if method == "cvodes" else 1e-8)


@EITHER
@EVERY
def test_a_peak_below_a_level_does_not_cross_it(method: str, compiled: bool):
    event = pb.Event("peak", lambda t, q, v: q[0] - 1.25001)
    model = block().with_gravity((0, 0, -10.0))
    run = pb.simulate(model, 1.0, [0.0], [5.0], events=[event], compiled=compiled, **options_of(method))
    assert not run.happenings


@EITHER
@EVERY
def test_a_force_whose_peak_just_carries_a_block_does_not_lift_it(method: str, compiled: bool):
    """It touches zero, up to rounding, and does not cross it."""
    model = block(limits=(0.0, 10.0)).with_gravity((0, 0, -9.81))
    law = lambda t, q, v: [9.81 * (1 - np.cos(7 * t)) / 2]  # noqa: E731
    run = pb.simulate(model, 1.0, [0.0], controller=law, compiled=compiled, **options_of(method))
    assert [x.detail for x in run.happenings] == ["rests"]
    assert not run.q.any()


@EITHER
@EVERY
@pytest.mark.parametrize("direction", [1, -1])
def test_a_peak_beyond_a_level_is_found_though_its_velocity_is_zero_there(method: str, compiled: bool, direction: int):
    """Of the crossings between the same looks the first comes first, upwards before and downwards after the peak."""
    h, g, u = 1e-5, 10.0, 5.0
    level, half = u**2 / (2 * g) - h, np.sqrt(2 * h / g)
    events = [
        pb.Event("level", lambda t, q, v: q[0] - level, direction=direction),
        pb.Event("top", lambda t, q, v: v[0]),
    ]
    model = block().with_gravity((0, 0, -g))
    run = pb.simulate(model, 1.0, [0.0], [u], events=events, compiled=compiled, **options_of(method))
    names, times = (("level", "top"), [-half, 0.0]) if direction == 1 else (("top", "level"), [0.0, half])
    assert tuple(x.name for x in run.happenings) == names
    found = [x.time - u / g for x in run.happenings]
    np.testing.assert_allclose(found, times, atol=1e-5 if method == "cvodes" else 1e-8)


@EITHER
def test_a_joint_hits_its_limit_before_an_event_between_the_same_looks(compiled: bool):
    h, g, u = 1e-5, 10.0, 5.0
    model = block(limits=(-10.0, u**2 / (2 * g) - h)).with_gravity((0, 0, -g))
    top = pb.Event("top", lambda t, q, v: v[0])
    run = pb.simulate(model, 1.0, [0.0], [u], events=[top], compiled=compiled)
    assert run.happenings[0].detail.startswith("hit")
    assert run.happenings[0].time == pytest.approx(u / g - np.sqrt(2 * h / g), abs=1e-8)
    assert run.q.max() <= u**2 / (2 * g) - h + 1e-12
