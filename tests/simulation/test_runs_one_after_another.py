"""What a run leaves ready for the next changes nothing of it, and is nobody else's meanwhile."""

from __future__ import annotations

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from simulation_cases import moving, satellite, shipped

import polybody as pb
from polybody.kernels import background
from polybody.kernels.idle import Idle


def assert_equal(one: pb.Trajectory, other: pb.Trajectory) -> None:
    for name in ("t", "q", "v", "a", "tau", "work"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


@pytest.mark.parametrize("method", ["dop853", "radau", "rk4", "semi-implicit", "midpoint"])
def test_run_after_others_of_the_same_code_is_the_first_one_again(method: str) -> None:
    model = satellite()
    q, v = moving(model)
    options: dict[str, Any] = {"method": method, "dt": 2e-3, "rtol": 1e-7, "atol": 1e-9}
    pb.simulate(model, 0.1, q, v, **options)
    background.wait(60)  # both runs by optimised code
    first = pb.simulate(model, 0.3, q, v, **options)
    other = pb.simulate(model, 0.5, q, -2 * v, start=3.0, sample=0.01, **options)
    assert_equal(pb.simulate(model, 0.3, q, v, **options), first)
    assert_equal(pb.simulate(model, 0.5, q, -2 * v, start=3.0, sample=0.01, **options), other)


def test_run_after_one_that_an_event_ended_begins_anew() -> None:
    model = shipped("double-pendulum")
    q, v = moving(model)
    ends = [pb.Event("halt", lambda t, q, v: t - 0.05, terminal=True)]
    first = pb.simulate(model, 0.2, q, v, events=ends)
    assert first.stopped is not None
    assert_equal(pb.simulate(model, 0.2, q, v, events=ends), first)


def test_run_within_a_run_and_runs_side_by_side_have_loops_of_their_own() -> None:
    model = shipped("double-pendulum")
    q, v = moving(model)
    alone = pb.simulate(model, 0.2, q, v, method="rk4")
    inner = []

    def progress(t: float) -> None:
        if len(inner) < 3:
            inner.append(pb.simulate(model, 0.2, q, v, method="rk4"))

    assert_equal(pb.simulate(model, 0.2, q, v, method="rk4", progress=progress), alone)
    with ThreadPoolExecutor(4) as pool:
        beside = list(pool.map(lambda k: pb.simulate(model, 0.2, q, v, method="rk4"), range(12)))
    for run in (*inner, *beside):
        assert_equal(run, alone)


def test_loops_that_wait_keep_no_model_alive() -> None:
    model = shipped("double-pendulum").with_gravity((0.0, -3.0, 0.5))
    pb.simulate(model, 0.1, *moving(model))
    background.wait(60)
    pb.simulate(model, 0.1, *moving(model))
    gone = weakref.ref(model.engine)
    del model
    gc.collect()
    assert gone() is None


def test_idle_things_are_taken_once_and_the_oldest_go() -> None:
    idle: Idle[str] = Idle(2)
    for k, thing in enumerate("abc"):
        idle.give(k, thing)
    assert idle.take(0) is None  # the oldest of three
    assert idle.take(2) == "c"
    assert idle.take(2) is None
    assert idle.take(1) == "b"
