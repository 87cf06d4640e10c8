"""A stepper takes the steps of `simulate`, and what is changed under way acts from then on."""

from __future__ import annotations

import numpy as np
import pytest
from simulation_cases import shipped
from test_switches import slider

import polybody as pb
from polybody.simulation.stepper import Stepper


def test_stepper_takes_the_steps_of_a_run_in_any_pieces() -> None:
    model = shipped("double-pendulum")
    run = pb.simulate(model, 0.1, [1.0, 0.5], method="rk4", dt=1e-3)
    live = Stepper(model, [1.0, 0.5])
    parts = [live.advance(n) for n in (1, 30, 69)]
    assert live.path == "compiled"
    np.testing.assert_allclose(np.concatenate([p.q for p in parts]), run.q[1:], atol=1e-13)
    np.testing.assert_allclose(np.concatenate([p.a for p in parts]), run.a[1:], atol=1e-10)
    assert live.t == pytest.approx(0.1)


def test_wrench_set_under_way_gives_the_momentum_that_its_impulse_says() -> None:
    model = slider()
    live = Stepper(model, frames=["block"], method="semi-implicit")
    live.advance(10)
    before = live.v[0]
    live.set_wrench("block", [0, 0, 0, 0, 0, 30.0])
    live.advance(20)
    assert live.v[0] - before == pytest.approx(0.02 * (30.0 / 2.0 - 9.81), abs=1e-12)
    with pytest.raises(pb.InputError, match="no wrench was announced on 'tip'"):
        live.set_wrench("tip", np.zeros(6))


def test_controller_can_be_changed_and_stops_hold() -> None:
    model = slider(limits=(-0.1, 1.0))
    live = Stepper(model)
    happened = [h for _ in range(20) for h in live.advance(20).happenings]
    assert happened[-1].detail.endswith("rests")
    assert live.q[0] == -0.1
    live.set_controller(pb.PD(model, [0.5], 400.0, 40.0, gravity=True))
    live.advance(2000)
    assert live.q[0] == pytest.approx(0.5, abs=1e-3)
    live.set_state([0.0], [0.0])
    assert live.q[0] == 0.0


def test_motion_that_blows_up_is_said_with_its_time() -> None:
    model = slider()
    live = Stepper(model, controller=pb.PD(model, [0.0], 1e9, 0.0), dt=1e-2)
    with pytest.raises(pb.SimulationError, match="diverged after t = "):
        live.advance(2000)
