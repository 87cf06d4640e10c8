"""Sensitivities of motions, against differences of rollouts with other parameters."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb
import polybody.simulation.sensitivities as sensitivities_module
from polybody.errors import InputError


def test_sensitivities_of_a_run_under_pd_equal_differences_of_rollouts() -> None:
    variant, rng = pb.load("double-pendulum").with_parameters("*.mass", "*.origin.x"), np.random.default_rng(0)
    law = pb.PD(variant, np.array([0.3, -0.2]), 20.0, 2.0)
    q0, v0 = rng.normal(size=(2, 2))
    run = pb.simulate(variant, 0.5, q0, v0, law, sample=0.05)
    found = pb.sensitivities(run, law, dt=1e-3)
    assert found.q_p.shape == (11, 2, len(variant.parameters))
    np.testing.assert_allclose(found.q, run.q, atol=1e-7)
    p, h = variant.parameters.nominal, 1e-4
    ends = pb.rollout(variant, q0, v0, law, steps=500, dt=1e-3, keep="last",
                      parameters=np.concatenate([p + h * np.eye(len(p)), p - h * np.eye(len(p))]))  # fmt: skip
    up, down = np.split(ends.q, 2)
    wanted = (up - down).T / (2 * h)
    np.testing.assert_allclose(found.q_p[-1], wanted, atol=1e-5 * (1 + np.abs(wanted).max()))
    with pytest.raises(InputError, match=r"the run was driven"):
        pb.sensitivities(run)


def test_sensitivities_of_a_five_bar_by_its_lengths_stay_with_the_loops() -> None:
    model = pb.load("five-bar")
    variant = model.with_parameters("phi2.origin.x", "link2.mass")
    q0, p, h = model.assemble(), variant.parameters.nominal, 1e-5
    found = pb.sensitivities(variant, q0=q0, duration=0.1, sample=0.02, method="semi-implicit")
    independent = model.constraints.independent
    ends = []
    for values in np.concatenate([p + h * np.eye(len(p)), p - h * np.eye(len(p))]):
        own = variant.parameters.at(values)
        start = own.constraints.assemble_dependent(q0, independent)
        rest = np.zeros(model.nv)
        ends.append(pb.rollout(own, start, rest, steps=100, dt=1e-3, keep="last", method="semi-implicit").q)
    up, down = np.split(np.array(ends), 2)
    wanted = (up - down).T / (2 * h)
    np.testing.assert_allclose(found.q_p[-1], wanted, atol=1e-4 * (1 + np.abs(wanted).max()))


def check_against_runs(variant, law, q0, v0, duration=0.3, dt=2e-3, h=1e-4) -> None:
    """∂q and ∂v at the end of a run, against runs of the same steps with other parameters and the same controller."""
    run = pb.simulate(variant, duration, q0, v0, law, method="rk4", dt=dt, sample=duration / 3)
    found = pb.sensitivities(run, law, dt=dt)
    np.testing.assert_allclose(found.q, run.q, atol=1e-9)
    p = variant.parameters.nominal
    for k in range(len(p)):
        ends = []
        for sign in (1, -1):
            moved = p + sign * h * np.eye(len(p))[k]
            other = pb.simulate(variant, duration, q0, v0, law, method="rk4", dt=dt, parameters=moved)
            ends.append(np.concatenate([other.q[-1], other.v[-1]]))
        wanted = (ends[0] - ends[1]) / (2 * h)
        mine = np.concatenate([found.q_p[-1, :, k], found.v_p[-1, :, k]])
        np.testing.assert_allclose(mine, wanted, atol=1e-5 * (1e-3 + np.abs(wanted).max()))


def test_sensitivities_under_functions_of_time_and_state_equal_differences_of_runs() -> None:
    variant = pb.load("double-pendulum").with_parameters("*.mass")
    q0, v0 = np.array([0.4, -0.3]), np.array([0.2, 0.5])
    check_against_runs(variant, lambda t, q, v: np.array([3 * np.sin(20 * t) - v[0], -2 * q[1]]), q0, v0)
    times = np.linspace(0, 0.3, 4)
    table = pb.controllers.Given(variant, np.random.default_rng(0).normal(size=(4, 2)), times)
    check_against_runs(variant, table, q0, v0)


def test_what_a_controller_knows_of_its_model_does_not_follow_the_parameters() -> None:
    variant = pb.load("double-pendulum").with_parameters("*.mass")
    q0, v0 = np.array([0.4, -0.3]), np.zeros(2)
    path = pb.paths.quintic(variant, q0, np.array([0.9, 0.1]), 0.4)
    check_against_runs(variant, pb.controllers.ComputedTorque(variant, path, 100.0, 20.0), q0, v0)
    check_against_runs(variant, pb.controllers.GravityCompensation(variant, 0.3), q0, np.array([0.3, 0.1]))


def test_sensitivities_of_a_four_bar_under_control_equal_differences_of_runs() -> None:
    variant = pb.load("four-bar").with_parameters("coupler.mass", "rocker.mass")
    q0 = variant.assemble()
    law = pb.controllers.GravityCompensation(variant, 0.1)
    check_against_runs(variant, law, q0, variant.assemble_velocity(q0, np.ones(variant.nv)))
    check_against_runs(variant, lambda t, q, v: np.array([np.cos(10 * t), 0.0, 0.0]), q0, np.zeros(variant.nv))


def test_controllers_without_a_text_are_refused_by_reason() -> None:
    variant = pb.load("double-pendulum").with_parameters("*.mass")
    memory = []

    def remembering(t, q, v):
        memory.append(t)
        return -v

    run = {"q0": np.zeros(2), "duration": 0.1}
    with pytest.raises(InputError, match="remembering"):
        pb.sensitivities(variant, remembering, **run)
    own, pd = pb.controllers, pb.PD(variant, np.zeros(2), 1.0, 1.0)
    with pytest.raises(InputError, match="rounded forces jump within steps"):
        pb.sensitivities(variant, own.Quantised(variant, pd, 0.01), **run)


PENDULUM = np.array([0.4, -0.3]), np.array([0.2, 0.5])


class Waves:
    """A path that is a function in Python."""

    def __call__(self, t):
        s, c = np.sin(3 * np.asarray(t)), np.cos(3 * np.asarray(t))
        return np.array([0.4 + 0.5 * s, -0.3 * c]), np.array([1.5 * c, 0.9 * s]), np.array([-4.5 * s, 2.7 * c])


def remembering(variant: pb.Model) -> dict[str, object]:
    """Controllers with a memory."""
    goal = np.array([0.9, 0.1])
    pd = pb.PD(variant, goal, 30.0, 3.0, gravity=True)
    own = pb.controllers
    return {
        "sampled": own.Sampled(pd, 0.02),
        "delayed": own.Sampled(pd, 0.02, 0.05),
        "delayed by periods": own.Sampled(lambda t, q, v: 10 * np.sin(9 * t) - 3 * v, 0.02, 0.04),
        "sampled along a path": own.Sampled(own.ComputedTorque(variant, Waves(), 50.0, 10.0), 0.02),
        "integral": own.Stateful(
            lambda t, q, v, z: 30 * (goal - q) - 3 * v + z, lambda t, q, v, z: z + 40 * 0.02 * (goal - q),
            np.zeros(2), 0.02,
        ),
        "observer": own.DisturbanceObserver(variant, pd, 30.0, period=0.02),
        "observer alone": own.DisturbanceObserver(variant, lambda t, q, v: -2 * v, 30.0, period=0.02, compensate=False),
        "adaptive": own.Adaptive(variant, Waves(), 4.0, 5.0, 2.0, period=0.02),
    }  # fmt: skip


@pytest.mark.parametrize("name", list(remembering(pb.load("double-pendulum"))))
def test_sensitivities_under_controllers_with_a_memory_equal_differences_of_runs(name: str) -> None:
    variant = pb.load("double-pendulum").with_parameters("*.mass")
    check_against_runs(variant, remembering(variant)[name], *PENDULUM, duration=0.24, dt=1e-2)


def test_sensitivities_along_paths_of_loops_and_paths_in_python_equal_differences_of_runs() -> None:
    variant = pb.load("double-pendulum").with_parameters("*.mass")
    check_against_runs(variant, pb.PD(variant, path=Waves(), kp=50.0, kd=5.0), *PENDULUM)
    variant = pb.load("four-bar").with_parameters("coupler.mass", "rocker.mass")
    q0 = variant.assemble()
    moved = q0.copy()
    moved[0] += 0.4
    path = pb.paths.quintic(variant, q0, variant.constraints.assemble_dependent(moved), 0.4)
    check_against_runs(variant, pb.PD(variant, path=path, kp=20.0, kd=2.0), q0, np.zeros(variant.nv))
    check_against_runs(variant, pb.controllers.ComputedTorque(variant, path, 100.0, 20.0), q0, np.zeros(variant.nv))
    check_against_runs(variant, pb.controllers.Sampled(pb.PD(variant, q0, 20.0, 2.0), 0.02), q0,
                       variant.assemble_velocity(q0, np.ones(variant.nv)))  # fmt: skip


def framed(model: pb.Model, frame: str, target: np.ndarray) -> dict[str, object]:
    """Controllers of a frame's position."""
    own, options = pb.controllers, {"rows": "position"}
    return {
        "operational": own.OperationalSpace(model, frame, target, kp=100.0, kd=20.0, **options),
        "acceleration": own.ResolvedAcceleration(model, frame, target, kp=100.0, kd=20.0, **options),
        "rate": own.ResolvedRate(model, frame, target, gain=5.0, rate_gain=50.0, **options),
        "impedance": own.Impedance(model, frame, target, 100.0, 20.0, **options),
        "admittance": own.Admittance(
            model, frame, target, 100.0, 20.0, 2.0, lambda t, q, v: np.array([0, 0, 0, 3 - v[0], 20 * q[1], 0]),
            period=0.02, **options,
        ),
    }


@pytest.mark.parametrize("name", ["operational", "acceleration", "rate", "impedance", "admittance"])
def test_sensitivities_under_controllers_of_frames_equal_differences_of_runs(name: str) -> None:
    variant, q0 = pb.load("planar-3r").with_parameters("*.mass"), np.array([0.3, 0.8, -0.5])
    target = variant.pose(q0, "tip")[:3, 3] + [0.05, 0.05, 0]
    check_against_runs(variant, framed(variant, "tip", target)[name], q0, np.zeros(3), duration=0.12, dt=1e-2)


@pytest.mark.parametrize("name", ["operational", "acceleration", "rate", "impedance"])
def test_controllers_of_frames_compute_with_their_own_model_in_compiled_steps(name: str) -> None:
    arm, q0 = pb.load("planar-3r"), np.array([0.3, 0.8, -0.5])
    loaded = arm.with_payload("tip", 1.5)
    law = framed(arm, "tip", arm.pose(q0, "tip")[:3, 3] + [0.05, 0.05, 0])[name]
    runs = [pb.simulate(loaded, 0.1, q0, None, law, sample=0.05, compiled=c) for c in (True, False)]
    np.testing.assert_allclose(runs[0].q, runs[1].q, atol=1e-8)


def test_controllers_that_close_their_own_loops_are_called_in_python_for_loops_of_other_lengths() -> None:
    variant = pb.load("four-bar").with_parameters("coupler.mass", "*.origin_b.x")
    q0, p = variant.assemble(), variant.parameters.nominal * [1.0, *[1.02] * (len(variant.parameters) - 1)]
    moved = q0.copy()
    moved[0] += 0.3
    path = pb.paths.quintic(variant, q0, variant.constraints.assemble_dependent(moved), 0.4)
    law = pb.controllers.ComputedTorque(variant, path, 100.0, 20.0)
    run = pb.simulate(variant, 0.02, variant.assemble(q0, parameters=p), None, law, sample=0.01, parameters=p)
    assert "other lengths" in run.audit.path
    heavier = p / [1.0, *[1.02] * (len(p) - 1)] * [1.2, *[1.0] * (len(p) - 1)]
    assert pb.simulate(variant, 0.02, q0, None, law, sample=0.01, parameters=heavier).audit.path == "compiled"


def test_a_run_that_does_not_keep_its_start_needs_it() -> None:
    variant, q0, rest = pb.load("double-pendulum").with_parameters("*.mass"), [0.3, 0.2], [0.0, 0.0]
    late = pb.simulate(variant, 0.2, q0, times=[0.1, 0.15, 0.2])
    with pytest.raises(InputError, match=r"keeps no state of its start, t = 0 s: its first is that of t = 0\.1 s"):
        pb.sensitivities(late)
    whole = pb.sensitivities(pb.simulate(variant, 0.2, q0, times=[0.0, 0.1, 0.15, 0.2]))
    found = pb.sensitivities(late, q0=q0, v0=rest)
    np.testing.assert_allclose(found.t, late.t)
    np.testing.assert_allclose(found.q_p, whole.q_p[1:], atol=1e-7)
    with pytest.raises(InputError, match=r"duration of a run are its own"):
        pb.sensitivities(late, q0=q0, v0=rest, duration=1.0)


def satellite() -> pb.Model:
    """A floating body with an arm of two joints."""
    build = pb.Builder("satellite", gravity=(0, 0, 0))
    build.body("hull", 5.0, com=(0.1, 0, 0.05), inertia=(0.4, 0.5, 0.6))
    build.joint("root_joint", "floating", "world", "hull")
    for k, parent in enumerate(("hull", "upper")):
        link, origin = ("upper", "lower")[k], np.eye(4)
        origin[:3, 3] = 0.3, 0.1, 0.0
        build.body(link, 1.0, com=(0.2, 0, 0), inertia=(0.01, 0.03, 0.03))
        build.joint(f"joint{k}", "revolute", parent, link, origin, axis=(0, k, 1 - k))
    return build.model()


@pytest.mark.parametrize("name", ["puma560", "five-bar", "satellite"])
def test_sensitivities_between_steps_equal_those_of_steps_that_end_there(name: str, monkeypatch) -> None:
    rng = np.random.default_rng(3)
    model = satellite() if name == "satellite" else pb.load(name)
    variant = model.with_parameters("*.mass")
    q0 = model.assemble()
    v0 = model.assemble_velocity(q0, 0.3 * rng.normal(size=model.nv))
    run = {"q0": q0, "v0": v0, "duration": 0.3, "sample": 0.003}
    counted, recorded = [], sensitivities_module._recorded

    def counting(*arguments):
        record = recorded(*arguments)
        counted.append(sum(len(part.t) - 1 for part in record.parts))
        return record

    monkeypatch.setattr(sensitivities_module, "_recorded", counting)
    long = pb.sensitivities(variant, **run)
    assert len(counted) == 1
    assert counted[0] < 40  # steps between which most of the hundred times are
    monkeypatch.setattr(sensitivities_module, "ALLOWED", -1.0)
    short = pb.sensitivities(variant, **run)
    assert counted[-1] >= 100
    assert np.abs(short.q_p).max() > 1e-4
    for x, y in zip(long[:5], short[:5], strict=True):
        np.testing.assert_allclose(x, y, atol=2e-8 * (1 + np.abs(y).max()))


def test_sensitivities_at_rest_are_those_of_short_steps() -> None:
    """At rest no error of the motion bounds the steps, but sensitivities oscillate."""
    variant = pb.load("double-pendulum").with_parameters("*.com.x")
    hanging, rest = np.zeros(2), np.zeros(2)
    assert np.abs(variant.gravity_forces(hanging)).max() < 1e-12
    found = pb.sensitivities(variant, q0=hanging, v0=rest, duration=4.0)
    exact = pb.sensitivities(variant, q0=hanging, v0=rest, duration=4.0, method="rk4", dt=1e-3)
    assert np.abs(exact.q_p).max() > 0.1
    np.testing.assert_allclose(found.q_p, exact.q_p, atol=1e-6 * np.abs(exact.q_p).max())
