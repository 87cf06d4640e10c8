"""Constraints whose choice of states becomes singular along the motion: other variables become states there."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import polybody as pb

G, LENGTH = 9.81, 0.7
ROD = pb.Part(
    "rod", {"x": "translational", "y": "translational"}, {"length": "m!"},
    ["der(px) = x.v", "der(py) = y.v", "px^2 + py^2 = length^2", "x.f = tension*px", "y.f = tension*py"],
    {"px": "m", "py": "m", "tension": "N/m"}, loss="0*x.v",
)  # fmt: skip


def pendulum() -> pb.Network:
    """A point mass in Cartesian coordinates at the end of a rod: index three."""
    net = pb.Network("pendulum")
    net.part("mx", "mass", "x", mass=1.3)
    net.part("my", "mass", "y", mass=1.3, gravity=-G)
    net.part("rod", ROD, "x", "y", length=LENGTH)
    return net


def exact(angle: float, speed: float, duration: float) -> tuple[float, float]:
    """(angle, speed) from below, by integration of φ̈ = −g/l sin φ."""
    from scipy.integrate import solve_ivp

    done = solve_ivp(lambda t, s: [s[1], -G / LENGTH * np.sin(s[0])], (0, duration), [angle, speed], rtol=1e-12,
                     atol=1e-13, method="DOP853")
    return done.y[0, -1], done.y[1, -1]


@pytest.mark.parametrize("method", ["dop853", "radau", "rk4", "idas"])
def test_a_cartesian_pendulum_turns_over_and_over(method: str) -> None:
    """It passes every choice's singular place, top and bottom, left and right, several times."""
    speed = 12.0  # at the bottom; at the top √(144 − 4 g/l) is left
    duration = {"dop853": 1.2, "idas": 0.3}.get(method, 0.6)
    options = {"dt": 5e-4} if method == "rk4" else {"rtol": 1e-10, "atol": 1e-12}
    run = pb.simulate(pendulum(), duration, {"rod.px": 0.0, "rod.py": -LENGTH, "mx.v": speed * LENGTH}, method=method,
                      **options)
    angle, rate = exact(0.0, speed, duration)
    assert run.audit.index == 3
    assert run.audit.reselections >= {"dop853": 6, "idas": 1}.get(method, 3)
    assert len(run.states) == 2
    tolerance = {"idas": 1e-5, "rk4": 1e-6}.get(method, 1e-7)
    assert_allclose(run.final["rod.px"], LENGTH * np.sin(angle), atol=tolerance)
    assert_allclose(run.final["rod.py"], -LENGTH * np.cos(angle), atol=tolerance)
    assert_allclose(run.final["my.v"], LENGTH * rate * np.sin(angle), atol=20 * tolerance)
    assert_allclose(run["rod.px"] ** 2 + run["rod.py"] ** 2, LENGTH**2, atol=1e-10)


@pytest.mark.parametrize("start", [(LENGTH, 0.0), (0.0, -LENGTH), (-LENGTH, 0.0)])
def test_a_start_at_a_singular_place_of_a_choice_is_no_obstacle(start: tuple[float, float]) -> None:
    angle0 = np.arctan2(start[0], -start[1])
    v = {"my.v": 1.0 * np.sign(start[0])} if start[0] else {"mx.v": 1.0}
    run = pb.simulate(pendulum(), 0.5, {"rod.px": start[0], "rod.py": start[1], **v}, rtol=1e-10, atol=1e-12)
    angle, _ = exact(angle0, 1.0 / LENGTH, 0.5)
    assert_allclose([run.final["rod.px"], run.final["rod.py"]], [LENGTH * np.sin(angle), -LENGTH * np.cos(angle)],
                    atol=1e-7)
