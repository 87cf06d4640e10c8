"""Steps of dop853 go to where a drive's force has a corner, instead of creeping up to it."""

import numpy as np
import pytest

import polybody as pb
from polybody.mechanism.saturation import drive_limits
from polybody.simulation.compiled import engine
from polybody.simulation.integrators import dop853
from polybody.simulation.integrators.corners import Corners, corners_of

MASS, FORCE, V = 2.0, 10.0, 1.0
REACHED = 0.95 * V * MASS / FORCE  # when the drive's force begins to fall
SLOW = 0.05 * V * MASS / FORCE  # and the time constant from then on


def cart(speed: float = V) -> pb.Model:
    build = pb.Builder("cart", gravity=(0, 0, 0))
    build.body("cart", MASS, inertia=(1, 1, 1))
    build.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0), limits={"velocity": speed})
    return build.model()


def exact(t):
    return np.where(t < REACHED, FORCE / MASS * t, V - 0.05 * V * np.exp(-(t - REACHED) / SLOW))


def push(way):
    return lambda t, q, v: way * FORCE + 0 * v


@pytest.mark.parametrize("compiled", [None, False])
@pytest.mark.parametrize("way", [1, -1])
def test_a_cart_at_its_velocity_limit_is_exact_and_takes_few_tries(compiled, way, monkeypatch):
    def run():
        return pb.simulate(cart(), 0.25, controller=push(way), sample=0.01, compiled=compiled)

    with_corners = run()
    for module in (engine, dop853):
        monkeypatch.setattr(module, "corners_of", lambda drives, nq: None)
    without = run()
    np.testing.assert_allclose(way * with_corners.v[:, 0], exact(with_corners.t), rtol=0, atol=2e-9)
    tries = [run.audit.rejected or 0 for run in (with_corners, without)]
    assert tries[0] < 0.5 * tries[1]
    assert with_corners.audit.evaluations < 0.85 * without.audit.evaluations


def test_compiled_and_python_take_the_same_tries():
    audits = [
        pb.simulate(cart(), 0.25, controller=push(1), max_step=0.005, compiled=compiled).audit
        for compiled in (None, False)
    ]
    assert len({(audit.steps, audit.rejected) for audit in audits}) == 1


def test_refused_tries_are_cut_at_the_first_level_before_their_end():
    corners = Corners(np.array([1, 1, 2]), np.array([0.5, 1.0, 0.2]))
    c = np.array([0.0, 0.1, 0.5, 0.9])
    start, rate, jerk, h = np.array([0.0, -0.2, 0.0]), np.array([0.0, -1.0, 0.0]), np.array([0.0, -1.0, 0.0]), 0.8
    K = rate + np.outer(c * h, jerk)
    after = start + rate * h + 0.5 * jerk * h**2  # −1.32: both levels are passed
    part = corners.within(start, after, h, K, c)
    np.testing.assert_allclose(start[1] + rate[1] * part * h + 0.5 * jerk[1] * (part * h) ** 2, -0.5, rtol=1e-14)
    bent = after + np.array([0.0, 0.3, 0.0])  # what came behind the corner does not count
    np.testing.assert_allclose(corners.within(start, bent, h, K, c), part, rtol=1e-14)
    assert corners.within(start, start + 0.1, h, K, c) == 1.0
    assert corners.within(np.array([0.0, -0.5 + 1e-8, 0.0]), np.array([0.0, -0.9, 0.0]), h, K, c) == 1.0  # it is there


def test_corners_are_those_of_bounded_speeds():
    model = cart(2.0)
    found = corners_of(drive_limits(model.mechanism), model.nq)
    assert found is not None
    np.testing.assert_allclose(found.levels, [1.9, 2.0])
    np.testing.assert_array_equal(found.places, [1, 1])
    assert corners_of(None, 1) is None
