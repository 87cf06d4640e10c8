"""Short pulses are found while a mechanism rests, where no error keeps steps short; times derived by hand."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb

CENTRE, WIDTH = 6.3, 0.05


def pulse(t, q, v):
    """Exceeds 1 N from CENTRE − WIDTH √ln 3 on."""
    return np.array([3 * np.exp(-(((t - CENTRE) / WIDTH) ** 2))])


FIRST = CENTRE - WIDTH * np.sqrt(np.log(3))


def block(**options) -> pb.Model:
    build = pb.Builder("block", gravity=(0, 0, 0))
    build.body("mass", 1.0, inertia=(1, 1, 1))
    build.joint("slide", "prismatic", "world", "mass", axis=(1, 0, 0), **options)
    return build.model()


@pytest.mark.parametrize("method", ["dop853", "radau"])
@pytest.mark.parametrize("compiled", [True, False])
def test_a_sticking_block_slips_when_a_short_pulse_exceeds_its_friction(method: str, compiled: bool):
    run = pb.simulate(block(friction={"coulomb": 1.0}), 10.0, controller=pulse, method=method, compiled=compiled)
    slips = [x.time for x in run.happenings if x.detail == "slips"]
    assert slips == pytest.approx([FIRST], abs=1e-9)
    assert run.q[-1, 0] > 0.01


def test_a_block_at_its_stop_leaves_it_under_a_short_pulse():
    model = block(limits=(0.0, 10.0))
    run = pb.simulate(model, 10.0, controller=lambda t, q, v: pulse(t, q, v) - 1.0)
    left = [x.time for x in run.happenings if "left" in x.detail or "leaves" in x.detail]
    assert left[0] == pytest.approx(FIRST, abs=1e-9)


def test_an_event_of_the_time_alone_is_found_at_rest():
    event = pb.Event("bell", lambda t, q, v: pulse(t, q, v)[0] - 1.0, direction=1)
    run = pb.simulate(block(), 10.0, events=[event])
    assert [x.time for x in run.happenings] == pytest.approx([FIRST], abs=1e-9)


def test_steps_without_anything_to_watch_stay_long():
    assert pb.simulate(block(), 10.0).audit.steps < 20
