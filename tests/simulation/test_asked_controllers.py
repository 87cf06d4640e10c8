"""Sampled laws in Python, asked by the compiled loop itself: runs, errors and interrupts are those of runs that stop at
every instant, and no loop is left for an instant."""

from __future__ import annotations

import gc
import math
import os
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from event_cases import four_bar_at_stops

import polybody as pb
from polybody.simulation.compiled import asking, engine
from polybody.simulation.failures import ControllerError

pytestmark = pytest.mark.filterwarnings("ignore::polybody.errors.PolybodyWarning")
START = [0.0, 0.5, 0.0, 0.0, 0.2, 0.0], [0.5, 0.0, 0.0, 3.0, 0.0, 0.0]


@cache
def puma() -> pb.Model:
    return pb.load("puma560")


def plain(t: float, q: Any, v: Any) -> Any:
    """Too much of Python to be traced."""
    return np.array([-5.0 * math.sin(float(x)) - float(y) for x, y in zip(q, v, strict=True)])


def one_by_one(monkeypatch: Any, call: Callable[[], Any]) -> Any:
    """The same where the run stops at every instant."""
    with monkeypatch.context() as m:
        m.setattr(engine, "asking_of", lambda problem, law: None)
        return call()


def assert_identical(ours: Any, theirs: Any, atol: float = 0.0) -> None:
    for name in ("t", "q", "v", "a", "tau", "work"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=0, atol=atol)
    assert [x.name for x in ours.happenings] == [x.name for x in theirs.happenings]
    np.testing.assert_allclose([x.time for x in ours.happenings], [x.time for x in theirs.happenings], atol=atol)


@pytest.mark.parametrize("kind", ["plain", "late", "rounded"])
@pytest.mark.parametrize("method", ["rk4", "semi-implicit", "midpoint", "dop853", "radau"])
def test_runs_are_those_that_stop_at_every_instant(method: str, kind: str, monkeypatch: Any) -> None:
    """A joint reaches its limit on the way. Steps of the midpoint rule are iterated from what is known of the last."""

    def run() -> Any:
        law: Any = pb.controllers.Sampled(plain, 1e-2, delay=0.004 if kind == "late" else 0.0)
        law = pb.controllers.Quantised(puma(), law, position=1e-3, effort=0.01) if kind == "rounded" else law
        seconds = 0.2 if method == "radau" else 0.9
        return pb.simulate(puma(), seconds, *START, law, method=method, dt=2e-3, wrenches={"link6": push})

    def push(t: float) -> Any:
        return np.array([0.0, 0, 0, 0, 0, np.sin(t)])

    ours, theirs = run(), one_by_one(monkeypatch, run)
    assert ours.audit.path == "compiled"
    assert method == "radau" or ours.happenings
    assert_identical(ours, theirs, 1e-11 if method == "midpoint" else 1e-14)  # interpreted at first, and compiled


@pytest.mark.parametrize("method", ["rk4", "dop853"])
def test_loops_at_their_stops_are_driven_alike(method: str, monkeypatch: Any) -> None:
    model, _, q, v, options = four_bar_at_stops()

    def run() -> Any:
        law = pb.controllers.Sampled(lambda t, q, v: np.array([3.0 * math.sin(9 * t), 0, 0]), 5e-3)
        return pb.simulate(model, 0.6, q, v, law, method=method, dt=1e-3, **options)

    ours = run()
    assert ours.happenings
    assert_identical(ours, one_by_one(monkeypatch, run), 1e-12)


def test_a_loop_is_not_left_for_an_instant(monkeypatch: Any) -> None:
    chunks, calls = [], []
    original = engine.Compiled._chunk
    monkeypatch.setattr(engine.Compiled, "_chunk", lambda *given: (chunks.append(1), original(*given))[1])

    def law(t: float, q: Any, v: Any) -> Any:
        calls.append(float(t))
        return plain(t, q, v)

    run = pb.simulate(puma(), 0.5, *START, pb.controllers.Sampled(law, 1e-3), method="rk4", dt=1e-3, limits="ignore")
    assert run.audit.path == "compiled"
    np.testing.assert_allclose(sorted(set(calls)), 1e-3 * np.arange(500), atol=1e-12)
    assert len(chunks) < 20


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (lambda: 1 / 0, "ZeroDivisionError at t = 0.05 s"),
        (lambda: np.zeros(3), r"returned shape \(3,\) at t = 0.05 s"),
        (lambda: np.full(6, np.nan), r"tau\[0\] = nan at t = 0.05 s"),
        (lambda: np.full(6, 1j), "at t = 0.05 s: tau .*complex"),
        (lambda: np.ma.masked_array(np.ones(6), [True] + 5 * [False]), "at t = 0.05 s: tau .*masked"),
    ],
)
@pytest.mark.parametrize("method", ["rk4", "dop853"])
def test_what_a_law_raises_ends_the_run_with_what_was_computed(
    method: str, failure: Any, expected: str, monkeypatch: Any
) -> None:
    def run() -> Any:
        law = pb.controllers.Sampled(lambda t, q, v: plain(t, q, v) if t < 0.0499 else failure(), 1e-2)
        with pytest.raises(ControllerError, match=expected) as caught:
            pb.simulate(puma(), 0.2, *START, law, method=method, dt=1e-3)
        return caught.value

    ours, theirs = run(), one_by_one(monkeypatch, run)
    assert str(ours) == str(theirs)
    assert type(ours.__cause__) is type(theirs.__cause__)
    assert ours.time == theirs.time
    assert ours.trajectory is not None
    assert theirs.trajectory is not None
    np.testing.assert_allclose(ours.trajectory.t[-1], 0.05, atol=1e-12)
    np.testing.assert_array_equal(ours.trajectory.q, theirs.trajectory.q)


def test_a_law_may_fill_the_same_array_again_before_its_forces_act() -> None:
    kept = np.zeros(6)

    def again(t: float, q: Any, v: Any) -> Any:
        kept[:] = plain(t, q, v)
        return kept

    ours, theirs = (
        pb.simulate(puma(), 0.1, *START, pb.controllers.Sampled(law, 1e-2, delay=0.015), method="rk4", dt=1e-3)
        for law in (again, plain)
    )
    assert_identical(ours, theirs)


def test_an_exit_within_a_law_is_an_exit() -> None:
    def law(t: float, q: Any, v: Any) -> Any:
        if t > 0.03:
            raise SystemExit(7)
        return plain(t, q, v)

    with pytest.raises(SystemExit, match="7"):
        pb.simulate(puma(), 0.2, *START, pb.controllers.Sampled(law, 1e-2), method="rk4", dt=1e-3)


def test_an_interrupt_ends_a_run_at_the_instant_it_comes_in() -> None:
    """Of a slow law, whose run would take a minute."""

    def law(t: float, q: Any, v: Any) -> Any:
        if t == 0.0:
            threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        until = time.perf_counter() + 5e-3
        while time.perf_counter() < until:
            pass
        return plain(t, q, v)

    begun = time.perf_counter()
    run = pb.simulate(puma(), 12.0, *START, pb.controllers.Sampled(law, 1e-3), method="rk4", dt=1e-3, limits="ignore")
    assert run.stopped is not None
    assert "interrupted" in run.stopped
    assert 1e-3 < run.t[-1] < 4.0
    assert time.perf_counter() - begun < 30.0


def test_runs_of_threads_that_end_in_another_order_leave_no_hook_behind() -> None:
    before, inside, over = sys.unraisablehook, threading.Event(), threading.Event()

    def go(wait: Callable[[], Any]) -> None:
        law = pb.controllers.Sampled(lambda t, q, v: (t > 0.02 and wait(), plain(t, q, v))[1], 1e-2)
        pb.simulate(puma(), 0.05, *START, law, method="rk4", dt=1e-3, limits="ignore")

    go(lambda: None)
    begun = threading.Event()
    first = threading.Thread(target=lambda: (go(lambda: (begun.set(), inside.wait(30))), over.set()))
    second = threading.Thread(target=lambda: (begun.wait(30), go(lambda: (inside.set(), over.wait(30)))))
    for thread in (first, second):
        thread.start()
    for thread in (first, second):
        thread.join()
    assert over.is_set()
    assert sys.unraisablehook is before


def test_a_law_that_changes_what_an_event_reads_is_heeded_at_once(monkeypatch: Any) -> None:
    def run() -> Any:
        level = [10.0]

        def law(t: float, q: Any, v: Any) -> Any:
            if t > 0.0995:
                level[0] = 0.3
            return plain(t, q, v)

        event = pb.Event("passes", lambda t, q, v: q[3] - level[0])
        law_ = pb.controllers.Sampled(law, 1e-2)
        return pb.simulate(puma(), 0.4, *START, law_, method="rk4", dt=1e-3, events=[event], limits="ignore")

    ours, theirs = run(), one_by_one(monkeypatch, run)
    assert_identical(ours, theirs)


def test_laws_with_instants_of_their_own_are_not_asked_ahead() -> None:
    class Own:
        def next_sample(self, t: float) -> float:
            return t + 0.01

        def sample(self, t: float, q: Any, v: Any) -> None:
            """Nothing is kept."""

        def __call__(self, t: float, q: Any, v: Any) -> Any:
            return plain(t, q, v)

    assert asking.clocks_of(pb.controllers.Sampled(Own(), 0.02)) is None
    within = pb.controllers.Sampled(pb.controllers.Sampled(plain, 0.01), 0.02, delay=0.003)
    assert asking.clocks_of(within) == (within.clock, within.effects, within.law.clock)


def test_what_was_asked_is_let_go_after_its_run() -> None:
    law = pb.controllers.Sampled(lambda t, q, v: plain(t, q, v), 1e-2)
    gone = weakref.ref(law)
    pb.simulate(puma(), 0.05, *START, law, method="rk4", dt=1e-3)
    del law
    gc.collect()
    assert gone() is None
