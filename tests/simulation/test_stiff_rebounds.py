"""Rebounds of a stiff arm that follow each other within a millisecond."""

from itertools import groupby, pairwise
from typing import Any

import numpy as np
import pytest

import polybody as pb
from polybody.simulation.compiled import sundials
from polybody.simulation.compiled.sundials_graphs import Solvers
from polybody.simulation.integrators import pieces


@pytest.fixture(scope="module")
def arm() -> pb.Model:
    """Three links on stiff joints that fall on the stop of the first."""
    build = pb.Builder("stiff")
    for i in range(3):
        build.body(f"b{i}", mass=1.0, inertia=np.diag([0.02, 0.02, 0.02]), com=[0.25, 0, 0])
        springs: dict[str, Any] = {"stiffness": 2e4, "damping": 60.0} if i else {"limits": (-0.6, 0.6)}
        parent, origin = (f"b{i - 1}", [0.5, 0, 0]) if i else ("world", [0, 0, 0])
        build.joint(f"j{i}", "revolute", parent, f"b{i}", origin, [0, 1, 0], **springs)
    return build.model()


@pytest.fixture(scope="module")
def wanted(arm: pb.Model) -> pb.Trajectory:
    return pb.simulate(arm, 1.0, np.zeros(3), method="dop853", rtol=1e-12, atol=1e-13, restitution=0.5)


METHODS = [("cvodes", None), ("cvodes", False), ("idas", None), ("idas", False)]


@pytest.mark.parametrize("method", ["radau", "cvodes", "idas"])
def test_rebounds_of_a_stiff_arm_are_all_found(arm, wanted, method):
    run = pb.simulate(arm, 1.0, np.zeros(3), method=method, rtol=1e-9, atol=1e-10, restitution=0.5)
    times, reference = ([x.time for x in y.happenings] for y in (run, wanted))
    assert len(reference) > 20
    np.testing.assert_allclose(times[:15], reference[:15], rtol=0, atol=1e-7)
    np.testing.assert_allclose(run.q[-1], wanted.q[-1], rtol=0, atol=1e-8)
    assert run.audit.trusted, run.audit.doubts


@pytest.mark.parametrize("method", ["cvodes", "idas"])
def test_rebounds_are_found_where_functions_are_called_in_python(arm, wanted, method):
    enough = pb.Event("enough", lambda t, q, v: t - 0.35227, terminal=True)
    options = {"method": method, "rtol": 1e-9, "atol": 1e-10, "restitution": 0.5, "compiled": False}
    run = pb.simulate(arm, 1.0, np.zeros(3), events=[enough], **options)
    reference = [x.time for x in wanted.happenings if x.time < 0.35227]
    assert len(reference) > 4
    np.testing.assert_allclose([x.time for x in run.happenings[:-1]], reference, rtol=0, atol=1e-7)
    assert run.audit.trusted, run.audit.doubts


PUSH = {"b2": lambda t: np.array([0, 30 * np.exp(-(((t - 0.213) / 0.002) ** 2)), 0, 0, 0, 0])}


def pushed(arm: pb.Model, **options: Any) -> pb.Trajectory:
    """Two milliseconds of force, states recorded every tenth of a second."""
    return pb.simulate(arm, 0.3, np.zeros(3), wrenches=PUSH, dense=True, sample=0.1, **options)


@pytest.mark.parametrize(("method", "compiled"), METHODS)
def test_dense_output_follows_a_short_pulse_between_two_recorded_states(arm, method, compiled):
    times = np.linspace(0, 0.3, 1001)
    ours = pushed(arm, method=method, rtol=1e-8, atol=1e-9, compiled=compiled)
    wanted = pushed(arm, rtol=1e-12, atol=1e-13, max_step=1e-3)
    assert np.abs(np.diff(wanted.at(times)[1], axis=0)).max() > 0.03  # speeds change that much in 0.3 ms
    np.testing.assert_allclose(ours.at(times)[1], wanted.at(times)[1], rtol=0, atol=1e-6)
    assert ours.audit.trusted, ours.audit.doubts


@pytest.mark.parametrize(("method", "compiled"), METHODS)
def test_a_run_whose_states_within_steps_are_not_known_is_not_trusted(arm, method, compiled, monkeypatch):
    monkeypatch.setattr(pieces, "ROUNDS", 0)
    with pytest.warns(pb.PolybodyWarning, match="states within steps, where events are looked for, are off by"):
        run = pushed(arm, method=method, rtol=1e-8, atol=1e-9, compiled=compiled)
    assert not run.audit.trusted
    assert run.audit.inside_error > 1e-5


@pytest.mark.parametrize("method", ["cvodes", "idas"])
def test_pieces_are_divided_without_new_starts_of_sundials(arm, method, monkeypatch):
    """Each event is followed by one start; more output times are asked for from there, a few times at most, and
    SUNDIALS takes the same steps as long as they end at the same time."""
    calls: list[tuple[float, int, float, int]] = []
    solved = Solvers.__call__

    def noted(self: Any, t: float, y: Any, grid: Any, *more: Any) -> Any:
        found = solved(self, t, y, grid, *more)
        calls.append((t, len(grid), grid[-1], found[2]["nsteps"]))
        return found

    monkeypatch.setattr(Solvers, "__call__", noted)
    run = pb.simulate(arm, 1.0, np.zeros(3), method=method, rtol=1e-9, atol=1e-10, restitution=0.5)
    groups = [list(group) for _, group in groupby(calls, key=lambda call: call[0])]
    assert len(groups) <= len(run.happenings) + 24  # calls grow from one interval to many
    assert max(map(len, groups)) <= 1 + pieces.ROUNDS
    again = [(a, b) for group in groups for a, b in pairwise(group) if a[2] == b[2]]
    assert len(again) > 20
    for first, second in again:
        assert second[1] > first[1]
        assert abs(second[3] - first[3]) <= 0.1 * first[3]  # the first step of cvodes depends on the first output time


@pytest.mark.parametrize("method", ["cvodes", "idas"])
def test_states_within_steps_are_resolved_only_where_something_looks_at_them(arm, method, monkeypatch):
    monkeypatch.setattr(sundials, "resolved", None)  # not called
    options = {"method": method, "wrenches": PUSH, "limits": "ignore", "rtol": 1e-8, "atol": 1e-9}
    assert pb.simulate(arm, 0.3, np.zeros(3), **options).audit.path == "compiled"
    with pytest.raises(TypeError):
        pb.simulate(arm, 0.3, np.zeros(3), dense=True, **options)
