"""A rod between crank and slider acts, in every method: Drake's issue 24957, where the slider did not move (0.0, as if
there were no rod) although its acceleration had a closed form.

    x = r cos θ + √(l² − r² sin² θ),   x' = dx/dθ,    (I + m x'²) θ̈ + m x' x'' θ̇² = 0
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import polybody as pb

R, L, INERTIA, MASS, ANGLE, SPEED = 0.3, 1.0, 0.05, 0.4, 1.1, 7.0


def slider_crank() -> pb.Model:
    build = pb.Builder("slider-crank with a rod", gravity=(0, 0, 0))
    build.body("crank", 1.0, inertia=(INERTIA, INERTIA, INERTIA))
    build.body("slider", MASS, inertia=(0.01, 0.01, 0.01))
    build.joint("turn", "revolute", "world", "crank")
    build.joint("slide", "prismatic", "world", "slider", axis=(1, 0, 0))
    build.rod("rod", "crank", (R, 0, 0), "slider", (0, 0, 0), L)
    return build.model()


def slides(angle: float) -> tuple[float, float, float]:
    """x, x' and x''."""
    s, c = np.sin(angle), np.cos(angle)
    w = np.sqrt(L**2 - (R * s) ** 2)
    first = -R * s - R**2 * s * c / w
    return R * c + w, first, -R * c - R**2 * (c**2 - s**2) / w - R**4 * s**2 * c**2 / w**3


def turning(angle: float, speed: float) -> float:
    _, first, second = slides(angle)
    return -MASS * first * second * speed**2 / (INERTIA + MASS * first**2)


def test_slider_accelerates_as_the_closed_form_says():
    model, (x, first, second) = slider_crank(), slides(ANGLE)
    a = model.forward_dynamics([ANGLE, x], [SPEED, first * SPEED], [0.0, 0.0])
    crank = turning(ANGLE, SPEED)
    slider = first * crank + second * SPEED**2
    assert abs(slider) > 0.5
    np.testing.assert_allclose(a, [crank, slider], rtol=1e-10)


@pytest.mark.parametrize("method", ["dop853", "radau", "idas", "rk4"])
def test_rod_keeps_its_length_through_dead_centres_for_a_second(method):
    model, (x, first, _) = slider_crank(), slides(ANGLE)
    run = pb.simulate(model, 1.0, [ANGLE, x], [SPEED, first * SPEED], method=method, sample=0.01, dt=1e-3)
    ends = np.column_stack([R * np.cos(run.q[:, 0]) - run.q[:, 1], R * np.sin(run.q[:, 0])])
    assert np.abs(np.hypot(*ends.T) - L).max() < 1e-8
    assert np.ptp(run.q[:, 0]) > np.pi, "both dead centres are passed"
    exact = solve_ivp(lambda t, y: [y[1], turning(*y)], (0, 1), [ANGLE, SPEED], "DOP853", rtol=1e-12, atol=1e-12)
    assert abs(run.q[-1, 0] - exact.y[0, -1]) < 1e-6
