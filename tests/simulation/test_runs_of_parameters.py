"""Runs with many sets of parameters, and controllers that know other numbers than the machine has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polybody as pb
from polybody.simulation import lanes

Q0 = np.full(6, 0.3)


@pytest.fixture(scope="module")
def variant() -> pb.Model:
    arm = pb.load("puma560").with_payload("link6", 2.0, com=(0, 0, 0.05), inertia=(0.01, 0.01, 0.01))
    return arm.with_parameters("payload.mass", "payload.com.z")


def rebuilt(p: Any) -> pb.Model:
    """The machine made anew with these numbers as constants."""
    return pb.load("puma560").with_payload("link6", p[0], com=(0, 0, p[1]), inertia=(0.01, 0.01, 0.01))


def laws(model: pb.Model) -> list[Any]:
    path = pb.paths.quintic(model, Q0, np.zeros(6), 0.5)
    return [
        pb.PD(model, np.zeros(6), kp=200.0, kd=20.0),
        pb.PD(model, np.zeros(6), kp=200.0, kd=20.0, gravity=True),
        pb.controllers.ComputedTorque(model, path, kp=100.0, kd=20.0),
    ]


@pytest.mark.parametrize("k", range(3))
def test_each_run_is_that_of_the_machine_with_those_numbers_under_the_nominal_controller(
    variant: pb.Model, k: int
) -> None:
    p = np.array([[1.0, 0.05], [3.0, 0.1]])
    runs = pb.simulate(variant, 0.1, Q0, None, laws(variant)[k], parameters=p, sample=0.05)
    assert runs.shape == (2,)
    assert runs.q.shape == (2, 3, 6)
    known = rebuilt((2.0, 0.05))  # what the controller knows
    for row, run in zip(p, runs, strict=True):
        assert run.audit.path == "compiled"
        other = pb.simulate(rebuilt(row), 0.1, Q0, None, laws(known)[k], sample=0.05, compiled=False)
        assert np.abs(run.q - other.q).max() < 1e-8
        assert np.abs(run.tau - other.tau).max() < 1e-5 * np.abs(other.tau).max()
    assert np.abs(runs[0].q[-1] - runs[1].q[-1]).max() > (1e-4 if k else 1e-5)  # the payload matters


def test_initial_states_broadcast_with_sets_of_parameters(variant: pb.Model) -> None:
    p = variant.parameters.nominal * np.array([[[1.0]], [[1.2]]])  # (2, 1, k)
    q0 = np.array([np.zeros(6), Q0, 2 * Q0])
    runs = pb.simulate(variant, 0.02, q0, parameters=p, sample=0.01)
    assert (runs.shape, len(runs), runs.v.shape) == ((2, 3), 6, (2, 3, 3, 6))
    lone = pb.simulate(variant, 0.02, q0[2], parameters=p[1, 0], sample=0.01)
    assert np.array_equal(runs[1, 2].q, lone.q)
    assert np.array_equal(runs.q[1, 2], lone.q)
    assert "6 runs" in repr(runs)


def test_runs_with_other_times_are_taken_one_by_one(variant: pb.Model) -> None:
    heavy = pb.Event("fast", lambda t, q, v: abs(v[1]) - 0.05, terminal=True)
    runs = pb.simulate(variant, 0.05, Q0, parameters=[[1.0, 0.05], [3.0, 0.1]], sample=0.01, events=[heavy])
    assert len(runs[0].t)
    with pytest.raises(pb.InputError, match="run 1 has other times"):
        _ = runs.q


def test_a_run_that_fails_says_which(variant: pb.Model) -> None:
    linkage = pb.load("four-bar").with_parameters("*.origin_b.x")
    q0 = linkage.assemble()
    values = np.array([linkage.parameters.nominal, 1.1 * linkage.parameters.nominal])
    with pytest.raises(pb.PolybodyError, match="state 1 of the batch"):
        pb.simulate(linkage, 0.01, q0, parameters=values)


def test_an_interrupt_ends_all_runs_and_keeps_those_made(variant: pb.Model) -> None:
    asked: list[int] = []

    def interrupting(t: float, q: Any, v: Any) -> float:
        asked.append(1)
        if len(asked) > 40:
            raise KeyboardInterrupt
        return 1.0

    p = np.tile(variant.parameters.nominal, (9, 1))
    with pytest.warns(pb.PolybodyWarning, match="of 9 runs are returned"):
        runs = pb.simulate(variant, 0.02, Q0, parameters=p, sample=0.01, events=[pb.Event("never", interrupting)])
    assert 1 <= len(runs) < 9
    assert runs.shape == (len(runs),)
    assert runs[-1].stopped.startswith("interrupted at")
    assert all(run.stopped is None for run in list(runs)[:-1])
    assert len(asked) == 41  # nothing is begun after it


def test_the_error_of_a_run_carries_the_runs_before_it(variant: pb.Model) -> None:
    asked: list[int] = []

    def failing(t: float, q: Any, v: Any) -> float:
        asked.append(1)
        if len(asked) > 200:
            raise ZeroDivisionError
        return 1.0

    p = np.tile(variant.parameters.nominal, (99, 1))
    with pytest.raises(pb.PolybodyError, match=r"ZeroDivisionError.*state .* of the batch") as caught:
        pb.simulate(variant, 0.02, Q0, parameters=p, sample=0.01, events=[pb.Event("never", failing)])
    kept = caught.value.runs  # type: ignore[attr-defined]
    assert 1 <= len(kept) < 99
    assert kept.q.shape == (len(kept), 3, 6)


@pytest.mark.parametrize(("method", "few"), [("rk4", 4_000), ("rk4", 0), ("semi-implicit", 4_000)])
def test_runs_side_by_side_are_the_separate_runs(
    variant: pb.Model, method: str, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes, "FEW", few)  # the field alone, or whole steps
    p = np.array([[1.0, 0.05], [3.0, 0.1], [0.2, 0.0]])
    path = pb.paths.quintic(variant, Q0, np.zeros(6), 0.5)
    cases: list[tuple[Any, dict[str, Any]]] = [
        (None, {"sample": 0.01}), (pb.controllers.ComputedTorque(variant, path, kp=100.0, kd=20.0), {}),
        (pb.PD(variant, np.zeros(6), 200.0, 20.0, gravity=True), {"wrenches": {"link6": [0, 0, 1, 5, 0, 0]}}),
    ]  # fmt: skip
    for law, options in cases:
        runs = pb.simulate(variant, 0.05, Q0, None, law, parameters=p, method=method, dt=1e-3, **options)
        for k, row in enumerate(p):
            one = pb.simulate(variant, 0.05, Q0, None, law, parameters=row, method=method, dt=1e-3, **options)
            for name in ("t", "q", "v", "a", "tau", "work"):
                mine, wanted = getattr(runs[k], name), getattr(one, name)
                np.testing.assert_allclose(mine, wanted, rtol=0, atol=1e-11 * (1 + np.abs(wanted).max()), err_msg=name)
            np.testing.assert_array_equal(runs.q[k], runs[k].q)
            assert runs[k].audit.path == "compiled lanes"
            assert (runs[k].audit.steps, runs[k].trusted) == (one.audit.steps, one.trusted)
            np.testing.assert_array_equal(runs[k].model.parameters.nominal, row)


@pytest.mark.parametrize("few", [4_000, 0])
def test_lanes_that_reach_limits_are_made_by_themselves_and_floating_bases_stay_on_their_manifold(
    few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes, "FEW", few)
    build = pb.Builder("flap", gravity=(0, -9.81, 0))
    build.body("flap", 1.0, com=(0.25, 0, 0), inertia=(0.01, 0.02, 0.02))
    build.joint("hinge", "revolute", "world", "flap", limits=(-0.6, 0.6), damping=0.5)
    flap = build.model().with_parameters("hinge.damping")
    runs = pb.simulate(flap, 0.4, [0.3], None, method="rk4", dt=2e-3, parameters=[[0.1], [20.0]], restitution=0.5)
    assert [run.audit.path for run in runs] == ["compiled", "compiled lanes"]
    assert runs[0].happenings
    assert not runs[1].happenings
    build = pb.Builder("drone", gravity=(0, 0, -9.81))
    build.body("base", 2.0, inertia=(0.1, 0.2, 0.3))
    build.joint("root_joint", "floating", "world", "base")
    drone = build.model().with_parameters("base.mass", "base.com.x")
    q0, v0 = drone.random_configuration(1, 2), np.random.default_rng(0).normal(size=(2, 6))
    runs = pb.simulate(drone, 0.2, q0, v0, method="rk4", dt=2e-3, parameters=[[2.0, 0.0], [3.0, 0.1]], sample=0.1)
    for k, row in enumerate(([2.0, 0.0], [3.0, 0.1])):
        one = pb.simulate(drone, 0.2, q0[k], v0[k], method="rk4", dt=2e-3, parameters=row, sample=0.1)
        np.testing.assert_allclose(runs[k].q, one.q, atol=1e-12)
        assert runs[k].audit.path == "compiled lanes"


def test_a_lane_that_cannot_be_simulated_is_named(variant: pb.Model) -> None:
    build = pb.Builder("point", gravity=(0, 0, -9.81))
    build.body("a", 1.0, inertia=(0.1, 0.1, 0.1))
    build.joint("slide", "prismatic", "world", "a")
    point = build.model().with_parameters("a.mass")
    with pytest.raises(pb.PolybodyError, match=r"slide.*state 1 of the batch"):
        pb.simulate(point, 0.01, method="rk4", parameters=[[1.0], [0.0]])
