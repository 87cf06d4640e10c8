"""Compiled loops over steps, on an oscillator whose motion is known: orders, samples, crossings, limits of memory."""

from __future__ import annotations

import ctypes
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

from polybody.kernels import background, native
from polybody.kernels.machine import Loaded, assemble
from polybody.kernels.stepping import Loop, Parts, build, directions
from polybody.kernels.stepping_code import CANNOT, CROSSED, FULL
from polybody.kernels.target import host
from polybody.simulation.integrators.tableaux import dormand_prince_8, runge_kutta_4


def parts(watched: bool = False, stiff: bool = False) -> Parts:
    """x = [q, v, W, t]: q̈ = −q (or a pole at t = 1), W = ∫ v²; records 7 t; watches q − 0.5."""
    x, c, row = ca.SX.sym("x", 4), ca.SX.sym("c", 1), ca.SX.sym("row", 0)
    push = -c[0] * x[0] + (1 / (1 - x[3]) ** 2 if stiff else 0)
    made = {
        "field": ca.Function("f", [x, c, row], [ca.vertcat(x[1], push, x[1] ** 2, 1), ca.vertcat(7 * x[3], 0, 0)]),
        "watch": ca.Function("w", [x, c, row], [x[0] - 0.5]),
    }
    names = ["field", "watch"] if watched else ["field"]
    keys = {name: f"test oscillator {stiff}" for name in names}
    return Parts(3, 1, 1, 1, made.__getitem__, keys, watched=int(watched))


def started(loop: Loop, length: int, samples: np.ndarray, room: int) -> tuple[np.ndarray, np.ndarray]:
    states, answers = np.zeros((length + 2, loop.parts.padded)), np.zeros((length + 2, loop.parts.answer))
    states[0, 0] = 1.0
    for name, array in {
        "states": states, "answers": answers, "constants": np.ones(1), "breaks": np.zeros(1), "table": np.zeros(1),
        "samples": samples, "sample_states": np.zeros((max(room, 1), loop.parts.padded)),
        "sample_answers": np.zeros((max(room, 1), loop.parts.answer)), "directions": directions([0]),
        "dense": np.zeros((length + 1, 7, loop.parts.padded)),
    }.items():
        loop.array(name, array)
    loop.set(steps=length, next=0, count=len(samples), room=room, rows=0)
    return states, answers


def by_rk4(steps: int, end: float = 1.0, **options: bool) -> tuple[int, np.ndarray, np.ndarray, Loop]:
    loop = build("test", parts(**options), runge_kutta_4())
    states, answers = started(loop, steps, np.zeros(0), 0)
    loop.array("times", np.linspace(0, end, steps + 1))
    return loop.run(), states[: steps + 1], answers[: steps + 1], loop


def test_errors_of_fixed_steps_fall_by_the_fourth_power() -> None:
    errors = [abs(by_rk4(n)[1][-1, 0] - np.cos(1.0)) for n in (20, 40, 80)]
    assert 14 < errors[0] / errors[1] < 18
    assert 14 < errors[1] / errors[2] < 18


def test_states_rates_and_records_stand_in_their_rows() -> None:
    status, states, answers, loop = by_rk4(50)
    t = states[:, 3]
    assert (status, loop.word("done")) == (0, 50)
    np.testing.assert_allclose(t, np.linspace(0, 1, 51), atol=1e-15)
    np.testing.assert_allclose(answers[:, 1], -states[:, 0], atol=1e-15)
    np.testing.assert_allclose(answers[:, loop.parts.padded], 7 * t, atol=1e-14)
    np.testing.assert_allclose(states[-1, 2], 0.5 - np.sin(2.0) / 4, atol=1e-6)


def test_loop_stops_after_the_step_in_which_a_function_crosses() -> None:
    status, states, _, loop = by_rk4(100, 2.0, watched=True)
    done = loop.word("done")
    assert status == CROSSED
    assert states[done - 1, 0] > 0.5 >= states[done, 0]
    assert states[done - 1, 3] < np.pi / 3 <= states[done, 3]


@pytest.mark.parametrize(("steps", "tolerance"), [(100, 1e-8), (400, 1e-10)])
def test_crossing_of_a_fixed_step_is_where_its_cubic_crosses(steps: int, tolerance: float) -> None:
    status, _, _, loop = by_rk4(steps, 2.0, watched=True)
    found = loop.held("states")[loop.word("done") + 1]
    assert status == CROSSED
    assert loop.flags("crossed")[0] == 1
    assert abs(found[3] - np.pi / 3) < tolerance
    assert abs(found[0] - 0.5) < 1e-14


@pytest.mark.parametrize(("fresh", "root"), [(0, np.pi / 3), (1, 5 * np.pi / 3)])
def test_adaptive_steps_find_crossings_but_not_again_the_one_they_start_from(fresh: int, root: float) -> None:
    """From (0.5 ± rounding) at t = π/3, where cos t has just crossed 0.5, the next crossing is at 5π/3."""
    loop = build("test", parts(watched=True), dormand_prince_8())
    states, _ = started(loop, 2000, np.zeros(0), 0)
    if fresh:
        states[0, :4] = 0.5 + 1e-15, -np.sin(np.pi / 3), 0.0, np.pi / 3
    loop.set(h=0.1, end=9.0, until=9.0, max_step=np.inf, rtol=1e-12, atol=1e-12, dense_wanted=1, fresh=fresh)
    assert loop.run() == CROSSED
    assert abs(loop.held("states")[loop.word("done") + 1, 3] - root) < 1e-10


def by_dop853(tolerance: float, samples: np.ndarray, room: int, end: float = 6.0, **options: bool) -> tuple[int, Loop]:
    loop = build("test", parts(**options), dormand_prince_8())
    started(loop, 2000, samples, room)
    loop.set(h=0.1, end=end, until=end, max_step=np.inf, rtol=tolerance, atol=tolerance, dense_wanted=0)
    return loop.run(), loop


def test_adaptive_steps_keep_their_tolerance_also_between_steps() -> None:
    samples = np.linspace(0, 6, 101)[1:]
    for tolerance in (1e-6, 1e-10):
        status, loop = by_dop853(tolerance, samples, 100)
        assert (status, loop.word("next")) == (0, 100)
        error = np.abs(loop.held("sample_states")[:, 0] - np.cos(samples)).max()
        assert error < 100 * tolerance
        assert loop.word("done") < 60


def test_more_samples_than_there_is_room_for_are_said() -> None:
    status, loop = by_dop853(1e-8, np.linspace(0, 6, 1001)[1:], 5)
    assert status == FULL
    assert loop.word("next") <= 5


def test_pole_ends_the_loop_before_it() -> None:
    status, loop = by_dop853(1e-8, np.zeros(0), 0, 2.0, stiff=True)
    assert status == CANNOT
    assert 0.5 < loop.held("states")[loop.word("done"), 3] < 1.0


@pytest.mark.parametrize("level", [0, 1])
def test_language_computes_with_doubles(level: int) -> None:
    """Newton's square root, and a sum over an array: branches, loops and calls with doubles."""
    source = """
def _better(p, x: float, a: float):
    put(p, 0.5 * (x + a / x))
    return 0

def square_root(p):
    a = number(p)
    x = most(a, 1.0)
    k = 0
    while k < 60 and size(x * x - a) > 1e-14 * a:
        _better(p + 8, x, a)
        x = number(p + 8)
        k += 1
    if x < 0.0:
        x = 0.0 - x
    put(p + 8, x)
    put(p + 16, root(a) - x)
    return k
"""
    target = host().with_lanes(1)
    text = f'target triple = "{target.triple}"\n' + native.translate(source, {}) + native.DECLARED
    code = assemble(text, target, level=level)
    loaded = Loaded(len(code).to_bytes(8, "little") + code, ["square_root"])
    values = np.array([2.0, 0.0, 0.0])
    count = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(loaded.addresses["square_root"])(values.ctypes.data)
    assert 3 < count < 60
    assert abs(values[1] - np.sqrt(2)) < 1e-14
    assert abs(values[2]) < 1e-14


def in_tier(monkeypatch: pytest.MonkeyPatch, tier: str, key: str) -> tuple[np.ndarray, Loop]:
    """States of an oscillator with a table of functions, none of whose parts is known yet."""
    monkeypatch.setenv("POLYBODY_TIER", tier)
    known = parts(watched=True)
    fresh = Parts(3, 1, 1, 1, known.make, {name: f"{key} {tier}" for name in known.keys}, watched=1)
    loop = build(f"tier {key}", fresh, runge_kutta_4())
    states, _ = started(loop, 30, np.zeros(0), 0)
    loop.array("times", np.linspace(0, 1.0, 31))
    assert loop.run() == 0
    return states, loop


def test_interpreted_parts_step_as_compiled_ones_to_the_last_bit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("POLYBODY_CACHE", str(tmp_path))
    (fast, interpreted), (exact, compiled) = (in_tier(monkeypatch, tier, "bits") for tier in ("fast", "optimised"))
    assert (interpreted.interpreted, compiled.interpreted) == (True, False)
    np.testing.assert_array_equal(fast, exact)


def test_a_loop_takes_compiled_parts_between_its_calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("POLYBODY_CACHE", str(tmp_path))
    first, loop = in_tier(monkeypatch, "auto", "swapped")
    assert loop.interpreted
    assert background.wait(300)
    loop.refresh()
    assert not loop.interpreted
    states, _ = started(loop, 30, np.zeros(0), 0)
    assert loop.run() == 0
    np.testing.assert_array_equal(states, first)
