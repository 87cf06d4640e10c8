"""A motion does not depend on when it begins: in seconds since 1970 its states are those of a run from zero, at times
that numbers of this size resolve."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from simulation_cases import swinging_arm

import polybody as pb
from polybody.simulation.moments import moment

NOW = 1.7e9  # s since 1970: times are 2.4e-7 s apart


def moved(run: pb.Trajectory, start: float) -> float:
    """What the fastest joint moves between times two numbers apart."""
    return 2 * float(np.abs(run.v).max()) * math.ulp(start)


@pytest.mark.parametrize("compiled", [None, False])
@pytest.mark.parametrize("method", ["dop853", "rk4", "radau", "semi-implicit", "cvodes", "idas"])
def test_states_are_those_of_a_run_from_zero(method: str, compiled: bool | None) -> None:
    model = swinging_arm(friction=False, limits=False)
    law = pb.PD(model, [0.5, -0.3], 200.0, 4.0)
    options: dict[str, Any] = {"method": method, "sample": 0.0037, "compiled": compiled, "dt": 2e-4}
    early = pb.simulate(model, 0.2, [0.6, -0.2], None, law, **options)
    late = pb.simulate(model, 0.2, [0.6, -0.2], None, law, start=NOW, **options)
    assert len(late.t) == len(early.t)
    assert np.abs(late.t - NOW - early.t).max() <= math.ulp(NOW)
    assert np.abs(late.q - early.q).max() < moved(early, NOW) + 1e-8
    assert late.trusted
    assert 0 < late.audit.time_error < moved(early, NOW)


@pytest.mark.parametrize("method", ["dop853", "rk4"])
def test_hits_turns_and_instants_come_as_often_as_from_zero(method: str) -> None:
    model = swinging_arm(friction=False)
    options: dict[str, Any] = {"method": method, "restitution": 0.6, "sample": 0.05, "dt": 1e-3}
    options["events"] = [pb.Event("turns", lambda t, q, v: v[0])]

    def run(start: float) -> pb.Trajectory:
        law = pb.controllers.Sampled(lambda t, q, v: np.array([12.0, 3.0]) * np.cos(9 * (t - start)) - 0.02 * v, 0.01)
        return pb.simulate(model, 1.2, [0.3, -0.2], None, law, start=start, **options)

    early, late = run(0.0), run(NOW)
    assert len(early.happenings) > 4
    assert [h.name for h in late.happenings] == [h.name for h in early.happenings]
    times = [np.array([h.time for h in found.happenings]) for found in (early, late)]
    assert np.abs(times[1] - NOW - times[0]).max() < 1e-5


def test_a_run_whose_times_are_too_late_to_be_resolved_is_not_trusted() -> None:
    with pytest.warns(pb.PolybodyWarning, match="times so late are not resolved"):
        run = pb.simulate(swinging_arm(friction=False, limits=False), 0.2, [0.6, -0.2], sample=0.05, start=1e12)
    assert not run.trusted
    assert run.audit.time_error == pytest.approx(np.abs(run.v).max() * math.ulp(1e12))


def test_times_up_to_a_negative_end_are_taken() -> None:
    free = swinging_arm(friction=False, limits=False)
    run = pb.simulate(free, 1.0, [0.6, -0.2], start=-2.0, times=[-2.0, -1.5, -1.0])
    np.testing.assert_array_equal(run.t, [-2.0, -1.5, -1.0])
    with pytest.raises(pb.PolybodyError, match="times must lie between"):
        pb.simulate(free, 1.0, [0.6, -0.2], start=-2.0, times=[-2.0, -0.9])


def test_a_moment_is_a_few_spacings_of_times() -> None:
    for t in (0.0, 1.0, 1e3, 1e6, NOW, 1e12):
        assert 2 * math.ulp(t) < moment(t) < max(6 * math.ulp(t), 2e-10)
