"""Effort, power and velocity limits in runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polybody as pb
from polybody.algebra.domains import FloatDomain, domain
from polybody.mechanism.saturation import DriveLimits, drive_limits, saturated


def cart(**limits: float) -> pb.Model:
    build = pb.Builder("cart", gravity=(0, 0, -9.81))
    build.body("cart", 2.0, inertia=(1, 1, 1))
    build.joint("slide", "prismatic", "world", "cart", axis=(1, 0, 0), limits=limits)
    return build.model()


def push(force: float) -> Any:
    return lambda t, q, v: np.array([force])


def test_effort_limits_bound_the_controller_and_the_run_tells_how_long() -> None:
    run = pb.simulate(cart(effort=3.0), 2.0, controller=push(10.0))
    assert run.v[-1, 0] == pytest.approx(3.0, rel=1e-9)
    assert (run.tau == 3.0).all()
    (told,) = run.audit.saturation
    assert (told.joint, told.limit, told.bounded) == ("slide", "effort", True)
    assert told.seconds == pytest.approx(2.0)
    assert run.audit.trusted
    assert run.options["efforts"] == "saturate"


def test_a_limit_that_is_ignored_or_reported_is_recorded() -> None:
    for word in ("report", "ignore"):
        run = pb.simulate(cart(effort=3.0), 1.0, controller=push(10.0), efforts=word)
        assert run.v[-1, 0] == pytest.approx(5.0, rel=1e-9)
        assert run.options["efforts"] == word
        assert [s.bounded for s in run.audit.saturation] == ([False] if word == "report" else [])
    assert pb.simulate(cart(effort=3.0), 1.0, controller=push(10.0), limits="ignore").options["efforts"] == "ignore"
    with pytest.raises(pb.InputError, match="efforts is 'cut'"):
        pb.simulate(cart(), 1.0, efforts="cut")


def test_power_limits_give_the_speed_of_constant_power() -> None:
    run = pb.simulate(cart(power=4.0), 3.0, v0=[1.0], controller=push(100.0))
    assert run.v[-1, 0] == pytest.approx(np.sqrt(1 + 2 * 4.0 * 3 / 2.0), rel=1e-8)  # ½ m v² grows by P t
    braked = pb.simulate(cart(power=4.0), 0.1, v0=[1.0], controller=push(-5.0))
    assert braked.v[-1, 0] == pytest.approx(0.75, rel=1e-9)


def test_velocity_limits_are_approached_and_not_passed_by_a_drive() -> None:
    run = pb.simulate(cart(velocity=1.0), 5.0, controller=push(10.0))
    assert 0.95 < run.v[-1, 0] <= 1.0 + 1e-9
    assert {s.limit for s in run.audit.saturation} == {"velocity"}


def test_zero_limits_say_nothing_and_the_law_is_one_text_for_all_domains() -> None:
    assert not drive_limits(cart(effort=0.0, velocity=0.0).mechanism).any
    limits = drive_limits(cart(effort=3.0, velocity=2.0, power=4.0).mechanism)
    graph: Any = domain("casadi")
    import casadi

    (t_in, tau), (v_in, v) = graph.variables("tau", 1), graph.variables("v", 1)
    traced = casadi.Function("f", [t_in, v_in], [graph.column(saturated(limits, tau, v, domain=graph))])
    for force in (-10.0, -2.0, 0.0, 1.0, 5.0):
        for speed in (-3.0, -1.97, -1.0, 0.0, 0.5, 1.95, 2.5):
            wanted = saturated(limits, np.array([force]), np.array([speed]))[0]
            assert float(traced(force, speed)) == pytest.approx(wanted, abs=1e-14)
            assert abs(wanted) <= 3.0
            assert wanted * speed <= 4.0 + 1e-12


def test_numbers_that_no_limit_touches_are_left_and_all_others_are_those_of_the_text() -> None:
    rng, changed = np.random.default_rng(0), 0
    for _ in range(200):
        n = 12
        own = [np.where(rng.random(n) < 0.3, np.inf, rng.uniform(0.5, 2, n)) for _ in range(3)]
        limits = DriveLimits(*own)
        tau, v = rng.normal(scale=1.5, size=n), rng.normal(scale=1.2, size=n)
        at = rng.integers(4, size=n)
        tau = np.where(at == 0, np.where(np.isfinite(own[0]), own[0], 1.0), tau)  # at limits, and where they begin
        v = np.where(at == 1, 0.9 * np.where(np.isfinite(own[1]), own[1], 1.0), v)
        v = np.where(at == 2, np.nextafter(np.where(np.isfinite(own[1]), 0.95 * own[1], 1.0), 9.0), v)
        tau[rng.integers(n)], v[rng.integers(n)] = np.nan, 0.0
        every = saturated(limits, tau, v, domain=FloatDomain())  # number by number
        np.testing.assert_array_equal(saturated(limits, tau, v), every)
        changed += int((every != tau).sum())
    assert changed > 500
