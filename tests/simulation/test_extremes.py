"""What an audit asks of a run's extremes is what it would ask of all its states."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb
from polybody.simulation.audit import energy_balance, limit_excess, stays
from polybody.simulation.extremes import extremes
from polybody.simulation.kept import LONG, Kept, Rows
from polybody.simulation.stops import Stops


@pytest.mark.parametrize("count", [1, 2, 50])
def test_extremes_are_those_of_every_column(count: int) -> None:
    rng = np.random.default_rng(3)
    states, kinetic, potential = rng.normal(size=(count, 5)), rng.normal(size=count), rng.normal(size=count)
    found = extremes(states, kinetic, potential)
    table = np.column_stack([states, kinetic, potential, kinetic + potential - states[:, -1]])
    assert found.most == table.max(axis=0).tolist()
    assert found.least == table.min(axis=0).tolist()
    assert found.first == table[0].tolist()
    error, relative = energy_balance(found)
    assert error == np.abs(table[:, -1] - table[0, -1]).max()
    exchanged = max(kinetic.max(), np.ptp(potential), np.ptp(states[:, -1]))
    assert relative == pytest.approx(error / exchanged if count > 1 else 0.0)


def test_a_run_with_a_number_that_is_none_neither_rests_nor_balances() -> None:
    states = np.zeros((3, 5))
    nothing = np.zeros(3)
    assert stays(extremes(states, nothing, nothing), 2, 2)
    for column in range(4):
        bad = states.copy()
        bad[1, column] = np.nan
        assert not stays(extremes(bad, nothing, nothing), 2, 2)
    states[1, 4] = np.nan
    assert np.isnan(energy_balance(extremes(states, nothing, nothing))[0])


def test_the_worst_limit_is_named_and_a_start_beyond_one_does_not_count() -> None:
    build = pb.Builder("two")
    for k in range(2):
        build.body(f"b{k}", 1.0, inertia=(1, 1, 1))
        build.joint(f"j{k}", "revolute", "world", f"b{k}", limits=(-1.0, 1.0))
    stops = Stops(build.model(), 0.0)
    nothing = np.zeros(2)

    def excess(q: list[list[float]]) -> tuple[float, str]:
        states = np.column_stack([q, np.zeros((2, 3))])
        return limit_excess(stops, extremes(states, nothing, nothing))

    assert excess([[0, 0], [1.0, -1.0]]) == (0.0, "")
    assert excess([[0, 0], [1.25, -1.5]]) == (0.5, "j1 lower limit")
    assert excess([[0, -1.5], [1.25, -1.5]]) == (0.25, "j0 upper limit")


def test_arrays_of_a_run_are_its_own() -> None:
    """Whoever changes a result changes no other one, and nothing that the next run reads."""
    arm = pb.load("stanford-arm")
    wanted = np.array([0.05, 0.1])
    runs = [pb.simulate(arm, 0.1, times=wanted) for _ in range(2)]
    kept = [getattr(runs[1], name).copy() for name in ("t", "q", "v", "a", "tau", "work")]
    for name in ("t", "q", "v", "a", "tau", "work"):
        values = getattr(runs[0], name)
        assert values.flags.c_contiguous
        assert values.flags.owndata
        values[...] = np.nan
    again = pb.simulate(arm, 0.1, times=wanted)
    for name, values in zip(("t", "q", "v", "a", "tau", "work"), kept, strict=True):
        np.testing.assert_array_equal(getattr(runs[1], name), values)
        np.testing.assert_array_equal(getattr(again, name), values)
    np.testing.assert_array_equal(wanted, [0.05, 0.1])


@pytest.mark.parametrize("times", [[], [np.nan], [0.1, np.nan], [0.1, 0.1], [0.2, 0.1], [np.inf], [0.1, np.inf], 0.1])
def test_times_must_be_finite_and_increase(times) -> None:
    with pytest.raises(pb.InputError, match="times must be finite increasing numbers"):
        pb.simulate(pb.load("stanford-arm"), 1.0, times=times)


@pytest.mark.parametrize("count", [1, LONG - 1, LONG, 3 * LONG])
def test_rows_that_are_kept_hold_no_large_memory_beside_them(count: int) -> None:
    states, answers = np.random.default_rng(1).normal(size=(2, count, 100))
    rows = Rows(states[:, 0], states[:, 1:4], answers[:, :2], answers[:, 2:4], answers[:, 4:4])
    kept = Kept()
    kept.many(rows)
    assert len(kept) == count
    assert all(x.base is None for x in (kept.blocks[0].y, kept.blocks[0].a)) == (count >= LONG)
    for found, wanted in zip(vars(kept.all()).values(), vars(rows).values(), strict=True):
        np.testing.assert_array_equal(found, wanted)
