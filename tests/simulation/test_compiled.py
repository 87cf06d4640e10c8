"""Runs by compiled code are the runs that Python takes step by step: states, work, events, stops, failures."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from simulation_cases import moving, satellite, shipped
from test_saturation import cart
from test_switches import motor_slider, slider

import polybody as pb
from polybody.simulation.compiled import engine

FIXED = ("rk4", "semi-implicit", "midpoint")


def both(model: pb.Model, duration: float, *state: Any, **options: Any) -> tuple[pb.Trajectory, pb.Trajectory]:
    """(by compiled code, by Python)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = pb.simulate(model, duration, *state, compiled=True, **options)
        theirs = pb.simulate(model, duration, *state, compiled=False, **options)
    assert ours.audit.path == "compiled"
    assert theirs.audit.path.startswith("python")
    return ours, theirs


def assert_same(ours: pb.Trajectory, theirs: pb.Trajectory, tolerance: float = 1e-11) -> None:
    assert ours.t.shape == theirs.t.shape
    np.testing.assert_allclose(ours.t, theirs.t, rtol=0, atol=1e-9)
    for name in ("q", "v", "a", "tau", "work", "currents"):
        expected = getattr(theirs, name)
        if expected is None:
            assert getattr(ours, name) is None
            continue
        size = 1.0 + np.abs(expected).max(initial=0.0)
        np.testing.assert_allclose(getattr(ours, name), expected, rtol=0, atol=tolerance * size, err_msg=name)


@pytest.mark.parametrize("method", FIXED)
@pytest.mark.parametrize("name", ["double-pendulum", "satellite"])
def test_fixed_steps_of_trees_are_those_of_python(method: str, name: str) -> None:
    model = satellite() if name == "satellite" else shipped(name)
    assert_same(*both(model, 0.4, *moving(model), method=method, dt=2e-3))
    assert_same(*both(model, 0.4, *moving(model), method=method, dt=2e-3, sample=0.0131))


@pytest.mark.parametrize("name", ["double-pendulum", "satellite"])
def test_adaptive_steps_of_trees_are_those_of_python(name: str) -> None:
    model = satellite() if name == "satellite" else shipped(name)
    ours, theirs = both(model, 0.6, *moving(model), dense=True)
    assert_same(ours, theirs, 1e-8)
    assert abs(ours.audit.steps - theirs.audit.steps) <= 1
    times = np.linspace(0, 0.6, 17)
    for mine, other in zip(ours.at(times), theirs.at(times), strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-8)


@pytest.mark.parametrize("method", ["rk4", "semi-implicit", "dop853"])
def test_steps_of_loops_are_those_of_python(method: str) -> None:
    model = shipped("stewart")
    ours, theirs = both(model, 0.02, method=method, dt=1e-3, sample=5e-3)
    assert_same(ours, theirs, 1e-9)
    assert ours.audit.loop_error < 1e-12


@pytest.mark.parametrize("name", ["3-rrr", "two-fingered-hand"])
def test_narrow_rows_of_loops_take_no_adaptive_step_in_python(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Elimination leaves a thirtieth of a row there, and no singular configuration is ahead."""
    model = shipped(name)
    theirs = pb.simulate(model, 0.1, model.assemble(), sample=0.02, compiled=False)

    def refused(*_: Any) -> Any:
        raise AssertionError("a step was taken in Python")

    monkeypatch.setattr(engine.Compiled, "_own_steps", refused)
    for method, tolerance in (("dop853", 1e-7), ("radau", 1e-5)):
        ours = pb.simulate(model, 0.1, model.assemble(), sample=0.02, method=method, rtol=1e-7, atol=1e-9)
        assert ours.audit.trusted
        np.testing.assert_allclose(ours.q, theirs.q, atol=tolerance)
        np.testing.assert_allclose(ours.v, theirs.v, atol=100 * tolerance)


@pytest.mark.parametrize("method", ["rk4", "dop853"])
def test_blade_slides_as_in_python(method: str) -> None:
    """A blade on ice, whose constraint is one of velocities only."""
    build = pb.Builder("sleigh", gravity=(0, 0, 0))
    build.body("sleigh", 2.0, com=(0.2, 0, 0), inertia=(0.1, 0.1, 0.3))
    build.joint("base", "planar", "world", "sleigh")
    build.rolling("blade", "blade", "sleigh", axis=(1, 0, 0))
    model = build.model()
    v = model.assemble_velocity(model.neutral(), [0.8, 1.0, 0.2])
    assert_same(*both(model, 0.3, None, v, method=method, dt=2e-3, sample=0.05), 1e-9)


@pytest.mark.parametrize("gravity", ["alone", "with pd"])
def test_drives_of_loops_bear_gravity_as_in_python(gravity: str) -> None:
    model = shipped("four-bar")
    q = model.assemble()
    v = model.assemble_velocity(q, np.full(model.nv, 0.3))
    held = pb.PD(model, q, 50.0, 5.0, gravity=True)
    law = pb.controllers.GravityCompensation(model, 0.5) if gravity == "alone" else held
    assert_same(*both(model, 0.1, q, v, controller=law, method="rk4", dt=2e-3))


def arm_controllers(model: pb.Model) -> dict[str, Any]:
    goal = np.full(model.nq, 0.3)
    quintic = pb.paths.quintic(model, model.neutral(), goal, 0.15)
    times = np.linspace(0, 0.2, 5)
    spline = pb.paths.spline(model, times, np.sin(np.outer(times, np.arange(1, model.nq + 1))))
    table = np.outer(np.sin(9 * times), np.ones(model.nv))
    return {
        "pd": pb.PD(model, goal, 40.0, 5.0),
        "pd with gravity along a quintic": pb.PD(model, path=quintic, gravity=True),
        "pd along a spline": pb.PD(model, path=spline),
        "trapezoidal": pb.PD(model, path=pb.paths.trapezoidal(model, model.neutral(), goal, 0.15)),
        "gravity": pb.controllers.GravityCompensation(model, 2.0),
        "computed torque": pb.controllers.ComputedTorque(model, pb.paths.cycloidal(model, model.neutral(), goal, 0.2)),
        "constant": pb.controllers.Given(model, np.full(model.nv, 0.7)),
        "table": pb.controllers.Given(model, table, times),
    }


@pytest.mark.parametrize("which", list(arm_controllers(shipped("planar-3r"))))
def test_controllers_act_as_they_do_in_python(which: str) -> None:
    model = shipped("planar-3r")
    assert_same(*both(model, 0.25, controller=arm_controllers(model)[which], method="rk4", dt=2e-3))


def test_wrenches_and_motors_act_as_they_do_in_python() -> None:
    model = shipped("double-pendulum")
    load = {"tip": np.array([1.0, 0, 2, 10, 0, 20.0])}
    assert_same(*both(model, 0.2, [0.4, 0.2], wrenches=load, method="rk4", dt=1e-3))
    for method in ("rk4", "semi-implicit"):
        for inductance in (0.3, 0.0):
            assert_same(*both(motor_slider(inductance), 0.3, voltages=[12.0], method=method, dt=1e-3))


@pytest.mark.parametrize("method", ["rk4", "dop853"])
def test_stops_and_what_happens_at_them_are_the_same(method: str) -> None:
    model = slider(limits=(-1.0, 5.0))
    ours, theirs = both(model, 2.0, restitution=0.5, method=method, dt=1e-3, sample=0.02)
    assert_same(ours, theirs, 1e-8)
    assert [h.name for h in ours.happenings] == [h.name for h in theirs.happenings]
    np.testing.assert_allclose([h.time for h in ours.happenings], [h.time for h in theirs.happenings], atol=1e-9)


def test_run_that_cannot_be_compiled_says_why() -> None:
    model, calls = shipped("double-pendulum"), []

    def counted(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        calls.append(t)
        return np.zeros(2)

    run = pb.simulate(model, 0.1, controller=counted, method="rk4", dt=1e-2)
    assert len(calls) >= 40
    assert run.audit.path.startswith("python: ")
    with pytest.raises(pb.InputError, match="compiled=True, but"):
        pb.simulate(model, 0.1, controller=counted, compiled=True)


def test_parameters_that_are_inputs_are_those_of_the_run() -> None:
    model = shipped("double-pendulum").with_parameters("*.mass")
    assert_same(*both(model, 0.2, [1.0, 0.5], method="rk4", dt=2e-3))


GAINS = np.diag([4.0, 3.0])


def saturated(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    pull = GAINS @ (0.2 * np.sin(3 * t) - q) - 0.4 * v
    return np.clip(pull, -1.5, 1.5) - 0.05 * np.tanh(v / 0.1) + np.where(v > 0, 0.01, 0.0)


def test_implicit_midpoint_rule_solves_for_controllers_and_wrenches() -> None:
    model = shipped("double-pendulum")
    load = {"tip": np.array([1.0, 0, 2, 10, 0, 20.0])}
    options = {"method": "midpoint", "dt": 2e-3, "wrenches": load}
    assert_same(*both(model, 0.3, [1.0, 0.5], controller=pb.PD(model, [0.2, 0.1], 30.0, 4.0), **options), 1e-9)
    smooth = lambda t, q, v: np.sin(5 * t) - 3 * q - 0.5 * np.tanh(v)  # noqa: E731
    assert_same(*both(model, 0.3, [1.0, 0.5], controller=smooth, **options), 1e-9)


@pytest.mark.parametrize("method", ["rk4", "semi-implicit", "dop853"])
def test_controllers_written_in_numpy_are_traced(method: str) -> None:
    ours, theirs = both(shipped("double-pendulum"), 0.3, [1.0, 0.5], controller=saturated, method=method, dt=1e-3)
    assert_same(ours, theirs, 1e-6 if method == "dop853" else 1e-11)


def test_casadi_functions_are_controllers() -> None:
    import casadi

    t, q, v = casadi.SX.sym("t"), casadi.SX.sym("q", 2), casadi.SX.sym("v", 2)
    law = casadi.Function("law", [t, q, v], [casadi.sin(t) - 3 * q - v])
    assert_same(*both(shipped("double-pendulum"), 0.2, [1.0, 0.5], controller=law, method="rk4", dt=1e-3))


def test_events_and_wrenches_written_in_numpy_are_traced() -> None:
    model = shipped("double-pendulum")
    load = {"tip": lambda t: np.array([0, 0, 0, 10 * np.cos(9 * t), 0, 5.0])}
    events = [pb.Event("passes", lambda t, q, v: q[0] - 0.5 * np.cos(q[1]))]
    ours, theirs = both(model, 1.0, [1.0, 0.5], wrenches=load, events=events, method="rk4", dt=1e-3)
    assert_same(ours, theirs)
    assert len(ours.happenings) >= 1
    np.testing.assert_allclose([h.time for h in ours.happenings], [h.time for h in theirs.happenings], atol=1e-12)


def remembering() -> Any:
    last = [0.0]

    def law(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        last[0] = t
        return -q

    return law


class Integral:
    """A controller with a memory."""

    total = 0.0

    def gather(self, q: np.ndarray) -> None:
        self.total = self.total + q[0]

    def __call__(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        self.gather(q)
        return -q - 0.001 * self.total


def branching(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    return -q if t < 0.05 else -v


@pytest.mark.parametrize("controller", [remembering(), Integral(), branching], ids=["list", "attribute", "branch"])
def test_functions_that_are_no_expressions_are_called(controller: Any) -> None:
    model = shipped("double-pendulum")
    run = pb.simulate(model, 0.1, [1.0, 0.5], controller=controller, method="rk4", dt=1e-2, limits="ignore")
    assert run.audit.path.startswith("python: the controller is called in Python")


def test_event_that_must_be_called_is_found_in_a_compiled_run() -> None:
    def passes(t: float, q: np.ndarray, v: np.ndarray) -> float:
        return float(q[0]) + 1.0

    for method in ("rk4", "dop853"):
        run = pb.simulate(slider(), 1.0, events=[pb.Event("passes", passes)], method=method, dt=1e-3)
        assert run.audit.path == "compiled"
        assert abs(run.happenings[0].time - np.sqrt(2 / 9.81)) < 1e-9


@pytest.mark.parametrize("method", ["rk4", "dop853"])
def test_law_of_a_computer_is_called_at_its_instants_only(method: str) -> None:
    calls: list[float] = []

    def law(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        calls.append(t)
        return -3.0 * q - 0.5 * v

    model = shipped("double-pendulum")
    computer = pb.controllers.Sampled(law, 0.01, delay=0.004)
    ours, theirs = both(model, 0.1, [1.0, 0.5], controller=computer, method=method, dt=1e-3)
    assert_same(ours, theirs, 1e-8)
    assert len(calls) <= 2 * 11


def test_drives_saturate_in_compiled_runs_too() -> None:
    model = cart(effort=2.0, velocity=1.5, power=1.0)
    ours, theirs = both(model, 1.0, controller=pb.PD(model, [3.0], 50.0, 1.0), method="rk4", dt=1e-3)
    assert_same(ours, theirs)
    assert np.abs(ours.tau).max() <= 2.0
    assert ours.audit.saturation == theirs.audit.saturation


@pytest.mark.parametrize("method", ["rk4", "semi-implicit"])
def test_joint_that_rests_at_its_stop_is_held_and_left_as_in_python(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first joint rests at its limit while the second swings, until the swing takes it away."""
    monkeypatch.setattr("polybody.simulation.compiled.engine.PATIENCE_AT_STOPS", 3)
    build = pb.Builder("chain", gravity=(0, 0, -9.81))
    build.body("a", mass=1.0, com=(0.5, 0, 0), inertia=(0.01, 0.1, 0.1))
    build.body("b", mass=1.0, com=(0.5, 0, 0), inertia=(0.01, 0.1, 0.1))
    build.joint("one", "revolute", "world", "a", axis=(0, 1, 0), limits=(-2.0, 0.0))
    build.joint("two", "revolute", "a", "b", (1.0, 0, 0), axis=(0, 1, 0))
    model = build.model()
    push = pb.controllers.Given(model, np.array([[0.0, 0.0], [0.0, 0.0], [-60.0, 0.0]]), [0.0, 0.5, 0.9])
    ours, theirs = both(model, 1.0, [0.0, 0.3], controller=push, method=method, dt=1e-3)
    assert_same(ours, theirs, 1e-8)
    assert [h.detail.split(",")[0] for h in ours.happenings] == [h.detail.split(",")[0] for h in theirs.happenings]
    assert "left" in [h.detail for h in ours.happenings]
    assert ours.audit.evaluations < 8 * ours.audit.steps


@pytest.mark.parametrize("method", ["rk4", "dop853"])
def test_computed_torque_moves_loops_along_paths_as_in_python(method: str) -> None:
    model = shipped("four-bar")
    q = model.assemble()
    places = [j.q.start for j in model.mechanism.independent_joints if j.v.start in model.engine.independent]
    goal = q.copy()
    goal[places] += 0.1
    goal = model.constraints.assemble_dependent(goal)
    paths = pb.paths.quintic(model, q, goal, 0.1), pb.paths.spline(model, [0.0, 0.05, 0.1], [q, q, goal])
    for path in paths:
        law = pb.controllers.ComputedTorque(model, path)
        assert_same(*both(model, 0.06, q, controller=law, method=method, dt=2e-3, sample=0.01), 1e-6)


@pytest.mark.parametrize("method", ["rk4", "semi-implicit", "midpoint", "dop853", "radau"])
def test_motions_do_not_depend_on_where_their_chunks_end(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = pb.load("two-link")
    options = {"q0": [0.3, -0.4], "method": method, "dt": 1e-3, "max_step": 0.01}
    whole = pb.simulate(model, 0.25, **options)
    lengths = np.random.default_rng(4).integers(1, 20, 10_000)

    def cut(self: engine.Compiled, seconds: float) -> None:
        self.length = int(lengths[int(1e6 * self._ended) % 10_000]) if np.isfinite(self._ended) else 3

    monkeypatch.setattr(engine.Compiled, "_paced", cut)
    monkeypatch.setattr(engine, "FIRST_CHUNK", 5)
    pieces = pb.simulate(model, 0.25, **options)
    for name in ("t", "q", "v"):
        np.testing.assert_array_equal(getattr(pieces, name), getattr(whole, name))
