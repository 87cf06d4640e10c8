"""Controllers with a memory, compiled: motion, forces and what they remember are those of their Python objects."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import test_controllers_everywhere as everywhere
from test_compiled import assert_same
from test_compiled_controllers import controllers, machine

import polybody as pb
from polybody.simulation.stepper import Stepper

C = pb.controllers
#: what users read from a controller after a run
READ = ("estimate", "estimates", "parameters", "history", "state", "load", "acting", "forces", "times")


def both_ways(
    model: Any, duration: float, q: Any, v: Any, make: Callable[[], Any], tolerance: float, **options: Any
) -> tuple[pb.Trajectory, pb.Trajectory]:
    """Run by compiled code and by Python with a controller each; motion and memories are compared."""
    runs, laws = [], []
    for compiled in (True, False):
        law = make()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            runs.append(pb.simulate(model, duration, q, v, law, compiled=compiled, **options))
        laws.append(law)
    assert runs[0].audit.path == "compiled"
    assert_same(*runs, tolerance)
    assert_remembered(*laws, tolerance)
    return runs[0], runs[1]


def assert_remembered(ours: Any, theirs: Any, tolerance: float) -> None:
    for name in READ:
        if hasattr(theirs, name):
            mine, wanted = (np.array(getattr(law, name), dtype=float) for law in (ours, theirs))
            size = 1 + np.abs(wanted).max(initial=0.0)
            np.testing.assert_allclose(mine, wanted, rtol=0, atol=10 * tolerance * size, err_msg=name)
    if hasattr(theirs, "law"):
        assert_remembered(ours.law, theirs.law, tolerance)


def push(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    return np.array([0, 0, 0, np.sin(9 * t), 0.5 * q[0], 0])


def two_link() -> tuple[pb.Model, np.ndarray, str, Any]:
    model = pb.load("two-link")
    return model, np.array([0.3, 0.6]), "tip", pb.PD(model, [0.4, 0.7], 40.0, 12.0, gravity=True)


def laws() -> dict[str, Callable[[], Any]]:
    model, q, tip, hold = two_link()
    path = pb.paths.quintic(model, q, q + 0.2, 0.4)
    point = model.pose(q, tip)[:3, 3]
    full = {"stiffness": np.array([[60.0, 5, 0], [5, 80, 0], [0, 0, 50]]), "damping": 10.0, "inertia": [1.0, 2.0, 1.0]}
    observed = lambda x: C.DisturbanceObserver(model, x, 20.0, period=0.005)  # noqa: E731
    rough = lambda x: C.Quantised(model, x, position=1e-3, velocity=1e-2, effort=0.05)  # noqa: E731
    noisy = lambda x: C.Noisy(model, x, position=1e-3, velocity=1e-2, seed=5)  # noqa: E731
    later = lambda t, q, v, z: z + np.concatenate([0.01 * (q - 0.2), [1.0]])  # noqa: E731
    start = 0.7 * model.regressor.parameters()
    adaptive = lambda: C.Adaptive(model, path, 10.0, 8.0, parameters=start, period=0.004)  # noqa: E731
    return {
        "late": lambda: C.Sampled(hold, 0.01, 0.025),
        "integral": lambda: C.Stateful(lambda t, q, v, z: -10 * v - 20 * z[:2], later, [0.1, 0.2, 0.0], 0.004),
        "adaptive": adaptive,
        "adaptive with friction": lambda: C.Adaptive(model, path, 10.0, 8.0, terms="viscous+armature", period=0.004),
        "admittance": lambda: C.Admittance(model, tip, point, force=push, rows="position", period=0.004, **full),
        "stiff admittance": lambda: C.Admittance(
            model, tip, point, 4e4, 400.0, 1.0, push, rows="position", period=0.01),
        "very stiff admittance": lambda: C.Admittance(
            model, tip, point, 4e6, 4e4, 1.0, push, rows="position", period=0.01),
        "very stiff admittance of many directions": lambda: C.Admittance(
            model, tip, point, force=push, rows="position", period=0.01,
            **{**full, "stiffness": 1e5 * full["stiffness"], "damping": 4e3}),
        "observer": lambda: observed(hold),
        "observer of an observer": lambda: observed(C.DisturbanceObserver(model, hold, 30.0, period=0.004)),
        "observer of an adaptive law": lambda: observed(adaptive()),
        "computer around an observer": lambda: C.Sampled(observed(hold), 0.014),
        "observer around a computer": lambda: observed(C.Sampled(hold, 0.01, 0.004)),
        "two computers": lambda: C.Sampled(C.Sampled(hold, 0.006), 0.01, 0.004),
        "rough sensors": lambda: rough(C.Sampled(noisy(observed(hold)), 0.01)),
        "noise outside": lambda: noisy(C.Sampled(rough(hold), 0.01, 0.003)),
    }  # fmt: skip


ADAPTIVE_STEPS = ("late", "integral", "admittance", "computer around an observer", "rough sensors")


@pytest.mark.parametrize(
    ("kind", "method"),
    [(kind, "rk4") for kind in laws()] + [(kind, m) for kind in ADAPTIVE_STEPS for m in ("semi-implicit", "dop853")],
)
def test_memories_of_nested_controllers_are_those_of_python(kind: str, method: str) -> None:
    model, q, tip, _ = two_link()
    load = {tip: np.array([0, 0, 0, 2.0, -3.0, 0])}
    options = {"sample": 0.0043} if method == "dop853" else {"dt": 3e-3}
    both_ways(model, 0.043, q, None, laws()[kind], 1e-8 if method == "dop853" else 1e-12, method=method,
              wrenches=load, **options)  # fmt: skip


@pytest.mark.parametrize("name", ["3-rrr", "two arms", "space arm", "two arms on a free base"])
def test_observers_and_admittance_are_those_of_python_on_loops_grasps_and_free_bases(name: str) -> None:
    given, model, q, frame, _ = everywhere.machine(name)
    rng, size = np.random.default_rng(1), 1e-3 if name == "3-rrr" else 1.0
    v = 0.02 * rng.normal(size=model.nv)
    v = model.assemble_velocity(q, v) if model.mechanism.constrained else v
    load = {frame: size * np.array([0, 0, 0.2, 1.5, -1.0, 0])}
    steered = everywhere.law_of("operational space", name)[0]
    point, felt = model.pose(q, frame)[:3, 3], lambda t, q, v: load[frame] * np.sin(40 * t)
    kinds = [
        lambda: C.DisturbanceObserver(given, steered, 20.0, period=4e-3),
        lambda: C.Admittance(given, frame, point, 60.0, 22.0, 2.0, felt, kp=30.0, kd=9.0, rows="position", period=4e-3),
    ]  # fmt: skip
    for make in kinds:
        both_ways(given, 0.012, q, v, make, 1e-9, method="rk4", dt=2e-3, wrenches=load, limits="ignore")


def test_adaptive_control_of_loops_is_that_of_python_and_learns() -> None:
    model = pb.load("four-bar")
    q = model.assemble()
    there = q.copy()
    there[list(model.engine.independent)] += 0.4
    path = pb.paths.quintic(model, q, model.constraints.assemble_dependent(there), 1.0)
    start = 0.4 * model.regressor.parameters()
    make = lambda rate: C.Adaptive(model, path, 5.0, 8.0, rate, parameters=start, period=4e-3)  # noqa: E731
    both_ways(model, 0.04, q, None, lambda: make(5.0), 1e-6, method="rk4", dt=2e-3)
    u = list(model.engine.independent)
    errors = []
    for rate in (0.0, 5.0):
        run = pb.simulate(model, 2.0, q, controller=make(rate), method="rk4", dt=2e-3, compiled=True)
        errors.append(np.abs(run.q[-1] - path(2.0)[0])[u].max())
    assert errors[1] < 0.2 * errors[0]


@pytest.mark.parametrize("start", [0.0, 0.0173])
def test_runs_that_start_between_instants_are_those_of_python(start: float) -> None:
    model, q, _, hold = two_link()
    for delay in (0.0, 0.004, 0.02, 0.033):
        both_ways(model, 0.09, q, None, lambda delay=delay: C.Sampled(hold, 0.01, delay), 1e-12, method="rk4", dt=4e-3,
                  start=start)  # fmt: skip


def test_events_between_instants_are_those_of_python() -> None:
    """Stops that are hit, a compiled event, and one that Python looks at step by step."""
    build = pb.Builder("slider", gravity=(0, 0, 0))
    build.body("block", 2.0, inertia=(1, 1, 1))
    build.joint("x", "prismatic", "world", "block", axis=(1, 0, 0), limits=(-1.0, 0.2))
    model = build.model()
    make = lambda: C.Sampled(C.PD(model, [0.5], 30.0, 1.0), 0.01, 0.003)  # noqa: E731
    seen: list[float] = []
    passed = pb.Event("passes", lambda t, q, v: q[0] - 0.1)
    called = pb.Event("called", lambda t, q, v: seen.append(t) or q[0] - 0.15)
    for events in ([], [passed], [passed, called]):
        for method, tolerance in (("rk4", 1e-9), ("dop853", 1e-7)):
            ours, theirs = both_ways(model, 0.4, [0.0], None, make, tolerance, method=method, dt=4e-3, sample=0.05,
                                     events=events, restitution=0.4)  # fmt: skip
            assert [h.name for h in ours.happenings] == [h.name for h in theirs.happenings]
            times = [[h.time for h in run.happenings] for run in (ours, theirs)]
            np.testing.assert_allclose(*times, atol=1e-8)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("method", ["rk4", "dop853"])
def test_forces_that_jump_at_an_instant_break_joints_loose(method: str, compiled: bool) -> None:
    """2 kg behind friction of 1 N feel 3 N from 50 ms on: 1 m/s². At its stop a joint leaves when it is pulled."""
    build = pb.Builder("slider", gravity=(0, 0, 0))
    build.body("block", 2.0, inertia=(1, 1, 1))
    build.joint("x", "prismatic", "world", "block", axis=(1, 0, 0), friction=1.0, limits=(0.0, 5.0))
    model = build.model()
    late = lambda t, q, v: np.array([np.where(t < 0.0495, -0.5, 3.0)]) + 0 * q  # noqa: E731
    for law in (late, C.Given(model, [[-0.5], [-0.5], [3.0], [3.0]], [0.0, 0.049, 0.0495, 1.0])):
        run = pb.simulate(model, 0.25, controller=C.Sampled(law, 0.01), method=method, dt=1e-3, sample=0.05,
                          compiled=compiled)  # fmt: skip
        np.testing.assert_allclose(run.q[:, 0], 0.5 * np.maximum(run.t - 0.05, 0) ** 2, atol=1e-12)


def test_interpolants_start_anew_at_every_instant() -> None:
    model, q, _, hold = two_link()
    times = np.linspace(0, 0.06, 41)
    for method, tolerance in (("rk4", 1e-11), ("dop853", 1e-9)):
        runs = [pb.simulate(model, 0.06, q, controller=C.Sampled(hold, 0.01), method=method, dt=5e-3, dense=True,
                            compiled=compiled) for compiled in (True, False)]  # fmt: skip
        for mine, other in zip(*(run.at(times) for run in runs), strict=True):
            np.testing.assert_allclose(mine, other, atol=tolerance)


@pytest.mark.parametrize("kind", ["Sampled", "Adaptive", "DisturbanceObserver", "Stateful"])
def test_a_stepper_that_stops_between_instants_makes_the_motion_of_a_run(kind: str) -> None:
    model, q, _ = machine("tree")
    whole = pb.simulate(model, 0.012, q, controller=controllers("tree")[kind](), method="rk4", dt=1e-3)
    live = Stepper(model, q, dt=1e-3, controller=controllers("tree")[kind]())
    assert live.path == "compiled"
    parts = [live.advance(steps) for steps in (1, 4, 2, 5)]
    np.testing.assert_allclose(np.concatenate([part.q for part in parts]), whole.q[1:], atol=1e-12)


@pytest.mark.parametrize("kind", ["DisturbanceObserver", "ComputedTorque", "PD"])
def test_what_sensors_show_off_the_loops_is_what_python_makes_of_it(kind: str) -> None:
    model, q, _ = machine("loop")
    make = lambda: C.Sampled(C.Noisy(model, controllers("loop")[kind](), 1e-3, 1e-2), 4e-3)  # noqa: E731
    ours, theirs = both_ways(model, 0.02, q, None, make, 1e-9, method="rk4", dt=2e-3)
    assert ours.audit.steps == theirs.audit.steps


@pytest.mark.parametrize("compiled", [True, False])
def test_observers_of_one_law_estimate_the_same_one_inside_the_other(compiled: bool) -> None:
    """Neither compensates: both see the same forces and the same motion."""
    model, q, tip, hold = two_link()
    inner = C.DisturbanceObserver(model, hold, 20.0, period=0.005, compensate=False)
    outer = C.DisturbanceObserver(model, inner, 20.0, period=0.005, compensate=False)
    load = {tip: np.array([0, 0, 0, 2.0, -3.0, 0])}
    pb.simulate(model, 0.05, q, controller=outer, wrenches=load, method="rk4", compiled=compiled)
    assert np.abs(outer.estimate).max() > 0.1
    np.testing.assert_allclose(inner.estimate, outer.estimate, rtol=1e-10)
