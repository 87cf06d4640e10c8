"""Joints that stick, slide and rest at stops in compiled runs: the motion and the events of Python's steps."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest
from event_cases import CASES
from test_compiled import assert_same, both
from test_dry_friction import four_bar

import polybody as pb
from polybody.simulation.integrators import method_named


@cache
def arm(coulomb: float = 0.8, static: float = 1.4, mass: float = 1.0) -> pb.Model:
    """Three joints in a plane: a Stribeck curve, plain Coulomb friction with a limit, and one without friction."""
    build = pb.Builder("arm", gravity=(0, -9.81, 0))
    for name in "abc":
        build.body(name, mass, com=(0.3, 0, 0), inertia=(0.01, 0.03, 0.03))
    curve = {"coulomb": coulomb, "static": static, "stribeck": 0.2, "viscous": 0.1}
    build.joint("one", "revolute", "world", "a", friction=curve)
    build.joint("two", "revolute", "a", "b", (0.6, 0, 0), friction=0.6, limits=(-1.2, 0.5))
    build.joint("three", "revolute", "b", "c", (0.6, 0, 0), damping=0.05)
    return build.model()


def details(run: pb.Trajectory) -> list[tuple[str, str]]:
    return [(h.name, h.detail.split(" ")[0]) for h in run.happenings]


def assert_same_events(ours: pb.Trajectory, theirs: pb.Trajectory) -> None:
    assert details(ours) == details(theirs)
    np.testing.assert_allclose([h.time for h in ours.happenings], [h.time for h in theirs.happenings], atol=1e-7)


@pytest.mark.parametrize(("method", "tolerance"), [("rk4", 1e-8), ("semi-implicit", 1e-8), ("dop853", 1e-6)])
def test_a_falling_arm_sticks_slips_and_hits_its_stop_as_in_python(method: str, tolerance: float) -> None:
    state = [0.3, 0.2, -0.4], [0.0, 0.5, 0.0]
    ours, theirs = both(arm(), 0.8, *state, method=method, dt=2e-3, sample=0.05)
    assert_same(ours, theirs, tolerance)
    assert_same_events(ours, theirs)
    assert {"sticks", "slips", "hit"} <= {detail for _, detail in details(ours)}


@pytest.mark.parametrize("limits", ["stop", "report", "ignore"])
def test_limits_are_what_they_are_told_to_be_beside_friction(limits: str) -> None:
    ours, theirs = both(arm(), 0.4, [0.3, 0.45, -0.4], [0.0, 0.5, 0.0], method="rk4", dt=2e-3, limits=limits)
    assert_same(ours, theirs, 1e-9)
    assert_same_events(ours, theirs)


def controllers(model: pb.Model) -> dict[str, Any]:
    path = pb.paths.quintic(model, [0.0, 0.1, 0.0], [0.3, -0.3, 0.2], 0.3)
    return {
        "pd": pb.PD(model, [0.3, -0.3, 0.2], 40.0, 6.0, gravity=True),
        "computed torque": pb.controllers.ComputedTorque(model, path),
        "sampled": pb.controllers.Sampled(lambda t, q, v: -30 * q - 3 * v, 0.02),
    }


@pytest.mark.parametrize("which", ["pd", "computed torque", "sampled"])
def test_controllers_know_the_friction_that_compiled_steps_have(which: str) -> None:
    law = controllers(arm())[which]
    ours, theirs = both(arm(), 0.3, [0.0, 0.1, 0.0], controller=law, method="rk4", dt=2e-3)
    assert_same(ours, theirs, 1e-8)
    assert_same_events(ours, theirs)


def test_many_sticking_joints_take_no_code_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """One field serves every set of held joints."""
    built = []
    original = pb.simulation.compiled.engine.build

    def counted(name: str, parts: Any, tableau: Any) -> Any:
        built.append(parts.keys["field"])
        return original(name, parts, tableau)

    monkeypatch.setattr("polybody.simulation.compiled.engine.build", counted)
    run = pb.simulate(arm(), 0.8, [0.3, 0.2, -0.4], [0.0, 0.5, 0.0], method="rk4", dt=2e-3)
    assert len(run.happenings) > 2
    assert len(set(built)) <= 2


@pytest.mark.parametrize(("method", "tolerance"), [("rk4", 1e-8), ("dop853", 1e-5)])
def test_friction_by_load_in_loops_rubs_sticks_and_slips_as_in_python(
    method: str, tolerance: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two bearings of a four-bar come to rest, stick and are driven loose."""
    monkeypatch.setattr("polybody.simulation.compiled.engine.PATIENCE_AT_STOPS", 1)
    model = four_bar(friction={"coulomb": 5.0, "static": 6.0, "load": 0.05})
    q = model.assemble([0.7, -0.274, 1.141], hold=["a"])
    v = model.assemble_velocity(q, np.full(3, 0.1), hold=["a"])
    law = pb.controllers.Given(model, np.array([[0.0, 0, 0], [25, 0, 0]]), [0, 0.03])
    options = {"method": method, "dt": 2e-3, "sample": 0.004, "rtol": 1e-6, "atol": 1e-8}
    push = {"coupler": [0, 0, 0, 0.3, 1.0, 0]}
    ours, theirs = both(model, 0.028, q, v, law, wrenches=push, **options)
    assert sorted(details(ours)) == sorted(details(theirs))  # one motion: both come to rest at once
    assert_same(ours, theirs, tolerance)
    assert len(ours.happenings) >= 4


def test_friction_by_load_of_a_joint_whose_directions_turn_is_that_of_python() -> None:
    """A slider on an arm that turns: only what presses across its guide rubs."""
    build = pb.Builder("turning guide", gravity=(0, -9.81, 0))
    build.body("a", 1.0, com=(0.3, 0.1, 0), inertia=(0.01, 0.03, 0.03))
    H = np.zeros((6, 2))
    H[3, 0] = H[2, 1] = 1.0  # from the child outwards: along x, then about z
    build.joint("one", "custom", "world", "a", map=H, stages=(1, 1), friction={"coulomb": 0.1, "load": [0.1, 0.02]})
    model = build.model()
    assert model.mechanism.joints[0].model.constant_map is None
    ours, theirs = both(model, 0.05, [0.2, 0.3], [0.4, 1.0], method="rk4", dt=2e-3)
    assert_same(ours, theirs, 1e-9)


def test_friction_that_python_solves_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polybody.simulation.compiled.bearing.MOST_STRAIGHT", 2)
    model = four_bar(friction={"load": 0.1})
    q = model.assemble([0.7, -0.274, 1.141], hold=["a"])
    run = pb.simulate(model, 2e-3, q, method="rk4", dt=1e-3)
    assert run.audit.path.startswith("python: friction by load is solved in Python in models with more than 2")


@pytest.mark.parametrize("load", [0.02, 0.1])
def test_friction_by_load_of_more_joints_than_have_motions_of_their_own_is_that_of_python(load: float) -> None:
    """Iterations of the forces instead of Newton's; for the larger load they do not end: Python takes those steps."""
    rng, count = np.random.default_rng(1), 14
    build, last = pb.Builder("chain"), "world"
    for k in range(count):
        build.body(f"b{k}", 1.0, (0.1, 0.02, 0.03), (0.01, 0.02, 0.02))
        friction, axis = {"coulomb": 0.3, "load": load}, tuple(np.eye(3)[rng.integers(3)])
        build.joint(f"j{k}", "revolute", last, f"b{k}", (0.2 if k else 0, 0, 0), axis=axis, friction=friction)
        last = f"b{k}"
    state = np.full(count, 0.1), np.random.default_rng(0).normal(size=count)
    ours, theirs = both(build.model(), 8e-3, *state, method="rk4", dt=1e-3)
    assert_same(ours, theirs, 1e-10)
    assert details(ours) == details(theirs)
    assert ours.audit.path == "compiled"


@cache
def loaded_arm() -> pb.Model:
    """Bearings whose friction is some of what they bear, beside Coulomb's; one slides along its axis."""
    build = pb.Builder("loaded arm", gravity=(0, -9.81, 0))
    for name in "abc":
        build.body(name, 1.0, com=(0.3, 0, 0), inertia=(0.01, 0.03, 0.03))
    curve = {"coulomb": 0.3, "static": 0.5, "stribeck": 0.2, "load": 0.05}
    build.joint("one", "revolute", "world", "a", friction=curve)
    build.joint("two", "revolute", "a", "b", (0.6, 0, 0), friction={"load": 0.03}, limits=(-1.2, 0.3))
    build.joint("three", "prismatic", "b", "c", (0.6, 0, 0), axis=(1, 0, 0), friction={"load": 0.1}, stiffness=20.0)
    return build.model()


@pytest.mark.parametrize(("method", "tolerance"), [("rk4", 1e-9), ("semi-implicit", 1e-9), ("dop853", 1e-5)])
def test_friction_by_load_rubs_sticks_and_slips_as_in_python(method: str, tolerance: float) -> None:
    options = {"method": method, "dt": 4e-3, "sample": 0.02, "rtol": 1e-7, "atol": 1e-9}
    state = [0.3, 0.25, 0.0], [-0.1, 0.5, 0.1]
    ours, theirs = both(loaded_arm(), 0.06, *state, wrenches={"c": [0, 0, 0, 1.0, 2.0, 0]}, **options)
    assert details(ours) == details(theirs)
    assert_same(ours, theirs, tolerance)
    assert len(ours.happenings)


@pytest.mark.parametrize("method", ["cvodes", "idas"])
@pytest.mark.parametrize("name", ["arm by load", "four-bar by load"])
def test_friction_by_load_is_an_equation_of_stiff_solvers(
    name: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loads are unknowns of idas, and have a part in Jacobians: motions are dop853's, and no step is Python's."""

    def refuse(*_: Any) -> None:
        raise AssertionError("a step was taken in Python")

    monkeypatch.setattr(type(method_named(method)), "steps", refuse)
    model, seconds, q, v, options = CASES[name]()
    options |= {"rtol": 1e-8, "atol": 1e-10, "sample": seconds / 50}
    ours, theirs = (pb.simulate(model, seconds, q, v, method=which, **options) for which in (method, "dop853"))
    assert ours.audit.path == "compiled"
    assert len(ours.happenings) == len(theirs.happenings) >= 6
    np.testing.assert_allclose(ours.q, theirs.q, atol=2e-6)
    np.testing.assert_allclose(ours.work, theirs.work, atol=1e-5)


def test_energy_lost_by_friction_by_load_is_balanced() -> None:
    run = pb.simulate(loaded_arm(), 1.0, [0.3, 0.25, 0.0], sample=0.01, rtol=1e-8, atol=1e-10)
    assert run.audit.path == "compiled"
    assert run.audit.trusted
    assert (np.diff(run.work) <= 1e-10).all()
    assert run.work[-1] < -0.5


@pytest.mark.parametrize(
    ("patterns", "same"),
    [(["*.mass"], {"mass": 1.2}), (["one.friction.coulomb", "one.friction.static"], {"coulomb": 0.96, "static": 1.68})],
)
def test_parameters_of_a_model_with_friction_are_those_of_the_run(patterns: list[str], same: dict[str, float]) -> None:
    varied = arm().with_parameters(*patterns)
    options: dict[str, Any] = {"method": "rk4", "dt": 2e-3, "sample": 0.05}
    ours, theirs = both(varied, 0.3, [0.3, 0.2, -0.4], [0.0, 0.5, 0.0], **options,
                        parameters=1.2 * varied.parameters.nominal)  # fmt: skip
    assert_same(ours, theirs, 1e-8)
    assert_same(ours, pb.simulate(arm(**same), 0.3, [0.3, 0.2, -0.4], [0.0, 0.5, 0.0], **options), 1e-8)


def test_other_values_of_parameters_compile_nothing_beside_friction(monkeypatch: pytest.MonkeyPatch) -> None:
    varied = arm().with_parameters("*.mass")
    state = [0.3, 0.2, -0.4], [0.0, 0.5, 0.0]
    pb.simulate(varied, 0.3, *state, method="rk4", dt=2e-3, parameters=1.2 * varied.parameters.nominal)

    def refuse(*_: Any) -> None:
        raise AssertionError("something was traced")

    monkeypatch.setattr("polybody.kernels.tape.from_function", refuse)
    for factor in (1.1, 1.3):
        run = pb.simulate(varied, 0.3, *state, method="rk4", dt=2e-3, parameters=factor * varied.parameters.nominal)
        assert run.audit.path == "compiled"


@cache
def five_bar(kind: str) -> pb.Model:
    """Two motions; joints of the spanning tree that the loop makes depend on others have limits and friction too."""
    rough = {"coulomb": 1.5, "static": 2.0, "stribeck": 0.1}
    of = {"p": {"limits": (1.8, 2.3)}, "q": {"limits": (-1.4, -1.0)}, "s": {"limits": (0.8, 1.2)}}
    more = {"stops": {key: of.get(key, {}) for key in "pqrs"}, "friction": {key: {"friction": rough} for key in "pqrs"}}
    build = pb.Builder("five-bar", gravity=(0, -9.81, 0))
    for name, mass, length in (("a1", 1.0, 0.5), ("a2", 1.0, 0.8), ("b1", 1.2, 0.5), ("b2", 0.8, 0.8)):
        build.body(name, mass, (length / 2, 0, 0), (0, mass * length**2 / 12, mass * length**2 / 12))
    build.joint("p", "revolute", "world", "a1", **more[kind]["p"])
    build.joint("q", "revolute", "a1", "a2", (0.5, 0, 0), **more[kind]["q"])
    build.joint("r", "revolute", "world", "b1", (0.6, 0, 0), **more[kind]["r"])
    build.joint("s", "revolute", "b1", "b2", (0.5, 0, 0), **more[kind]["s"])
    build.loop("c", "revolute", "a2", "b2", (0.8, 0, 0), (0.8, 0, 0))
    return build.model()


@pytest.mark.parametrize(("method", "tolerance"), [("rk4", 1e-7), ("dop853", 1e-6)])
@pytest.mark.parametrize("kind", ["stops", "friction"])
def test_loops_stick_and_rest_at_stops_as_in_python(
    kind: str, method: str, tolerance: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("polybody.simulation.compiled.engine.PATIENCE_AT_STOPS", 1)
    model = five_bar(kind)
    q = model.assemble([2.09152089, -1.20521338, 1.17176001, 1.13526421])
    table = np.array([[0, 0, 0, 0], [6, 0, -3, 0], [-8, 0, 4.0, 0], [5, 0, 5, 0]])
    law = pb.controllers.Given(model, table, [0, 0.2, 0.5, 0.8])
    ours, theirs = both(model, 0.6, q, controller=law, method=method, dt=2e-3, sample=0.05)
    assert_same(ours, theirs, tolerance)
    assert_same_events(ours, theirs)
    assert len(ours.happenings) >= 3
    assert ours.audit.trusted
    assert np.abs([model.constraints.residual(at) for at in ours.q]).max() < 1e-12


def test_joints_that_chatter_within_one_step_end_the_run_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gripper's damping that steps of this length cannot follow: λh = 65, where rk4 is stable to 2.8."""
    bridge = pytest.importorskip("pinocchio_bridge")
    urdf = bridge.robot_file("z1.urdf")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = pb.load(urdf)
    limits = model.joint_limits()
    q = np.clip(model.neutral(), limits["lower"] + 0.05, limits["upper"] - 0.05)
    law = pb.PD(model, q + np.array([0, 0, 0, 0, 0, 0, 0.15]), 100.0, 20.0, gravity=True)
    monkeypatch.setattr("polybody.simulation.run.MOST_CHANGES", 20)
    with pytest.raises(pb.PolybodyError, match=r"20 times within one step of 0\.001 s; forces change faster"):
        pb.simulate(model, 0.1, q, controller=law, method="rk4", dt=1e-3)


def test_midpoint_rule_sticks_and_stops_with_errors_that_fall_by_the_square() -> None:
    state = [0.3, 0.2, -0.4], [0.0, 0.5, 0.0]
    exact = pb.simulate(arm(), 0.8, *state, sample=0.1, rtol=1e-11, atol=1e-13)
    errors = []
    for dt in (4e-3, 1e-3):
        run = pb.simulate(arm(), 0.8, *state, method="midpoint", dt=dt, sample=0.1, compiled=True)
        assert run.audit.path == "compiled"
        assert details(run) == details(exact)
        assert run.audit.trusted
        errors.append(np.abs(run.q - exact.q).max())
    assert errors[1] < errors[0] / 8
    assert errors[1] < 1e-4


def test_midpoint_rule_holds_a_joint_at_its_stop_and_lets_it_go() -> None:
    """A pendulum that rests against its stop until the torque has turned round: Python's steps do the same."""
    build = pb.Builder("pendulum", gravity=(0, -9.81, 0))
    build.body("bob", 1.0, com=(0.5, 0, 0), inertia=(0.01, 0.02, 0.02))
    build.joint("hinge", "revolute", "world", "bob", limits=(-1.2, 2.0))
    model = build.model()
    ours, theirs = both(model, 1.0, [-1.0], controller=lambda t, q, v: 0 * q + 8 * t - 3, method="midpoint", dt=1e-3)
    assert details(ours) == details(theirs)
    np.testing.assert_allclose([h.time for h in ours.happenings], [h.time for h in theirs.happenings], atol=1e-6)
    assert_same(ours, theirs, 1e-5)
    assert [detail for _, detail in details(ours)][-1] == "left"
    assert ours.happenings[-1].time == pytest.approx((3 + 9.81 * 0.5 * np.cos(1.2)) / 8, abs=1e-9)
