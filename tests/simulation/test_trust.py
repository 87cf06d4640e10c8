"""What a run says of itself is so: accelerations, doubts, balances; and what ends it early keeps what was computed."""

from __future__ import annotations

import pickle
import signal
import time
import warnings

import numpy as np
import pytest
from simulation_cases import shipped
from test_switches import slider

import polybody as pb
from polybody.simulation.stops import finite_limits

METHODS = ["dop853", "radau", "cvodes", "idas", "rk4", "semi-implicit", "midpoint"]


def test_accelerations_are_those_of_the_motion_under_a_load():
    """Differences of the velocities over 2e-4 s, with a wrench of 50 N that changes in time."""
    model = shipped("double-pendulum")
    load = {"tip": lambda t: np.array([0, 0, 0, 50 * np.cos(9 * t), 0, 20.0])}
    run = pb.simulate(model, 0.1, [0.4, 0.2], [1.0, -1.0], wrenches=load, sample=1e-4)
    slopes = (run.v[2:] - run.v[:-2]) / (run.t[2:] - run.t[:-2])[:, None]
    np.testing.assert_allclose(run.a[1:-1], slopes, atol=1e-4 * np.abs(slopes).max())


def test_accelerations_vanish_where_a_stop_holds():
    run = pb.simulate(slider(limits=(0.0, 5.0)), 0.5, controller=lambda t, q, v: np.array([-3.0]))
    np.testing.assert_array_equal(run.a, 0.0)


def test_stewart_platform_falls_on_its_six_stops_and_rests_on_all():
    model = shipped("stewart")
    run = pb.simulate(model, 0.5, sample=0.05)
    assert [h.detail.rsplit(", ", 1)[-1] for h in run.happenings] == ["rests"] * 6
    legs = [stop for stop in finite_limits(model) if stop.side < 0]
    assert max(stop.excess(run.q[-1]) for stop in legs) <= 1e-12
    np.testing.assert_allclose(run.v[-1], 0, atol=1e-12)
    assert run.audit.trusted
    assert run.audit.energy_error_relative < 1e-7
    bounced = pb.simulate(model, 0.35, sample=0.05, restitution=0.5)
    hits = [h for h in bounced.happenings if "rebounds" in h.detail]
    assert len(hits) == 6
    assert bounced.audit.limit_excess < 1e-9
    assert bounced.audit.trusted


def rhombus(limit: float = 0.3) -> pb.Model:
    """A parallelogram whose uprights reach their limits together: one of the two stops is redundant."""
    build = pb.Builder("parallelogram", gravity=(0, -9.81, 0))
    for name, length in (("left", 1.0), ("coupler", 2.0), ("right", 1.0)):
        build.body(name, 1.0, com=(length / 2, 0, 0), inertia=(0.01, 0.1, 0.1))
    build.joint("a", "revolute", "world", "left", limits=(limit, 3.0))
    build.joint("b", "revolute", "left", "coupler", (1.0, 0, 0))
    build.joint("c", "revolute", "world", "right", (2.0, 0, 0), limits=(limit, 3.0))
    build.loop("d", "revolute", "coupler", "right", (2.0, 0, 0), (1.0, 0, 0))
    return build.model()


@pytest.mark.parametrize("restitution", [0.0, 0.6])
def test_redundant_stops_of_a_loop_hold_it_together(restitution):
    model = rhombus()
    run = pb.simulate(model, 1.5, model.assemble([0.8, -0.8, 0.8]), restitution=restitution, sample=0.05)
    assert run.q[:, [0, 2]].min() > 0.3 - 1e-9
    assert run.stopped is None
    assert run.audit.trusted
    if not restitution:
        np.testing.assert_allclose(run.q[-1], [0.3, -0.3, 0.3], atol=1e-12)
        np.testing.assert_allclose(run.a[-1], 0.0, atol=1e-10)


def test_blow_of_one_block_on_another_at_its_stop_is_solved_at_once():
    """Two blocks on one rail hit their stops in the same moment; each rebounds with the restitution."""
    build = pb.Builder("blocks", gravity=(0, 0, 0))
    build.body("a", 1.0, inertia=(1, 1, 1))
    build.body("b", 2.0, inertia=(1, 1, 1))
    build.joint("one", "prismatic", "world", "a", limits=(-1.0, 1.0))
    build.joint("two", "prismatic", "a", "b", limits=(-1.0, 1.0))
    run = pb.simulate(build.model(), 1.2, v0=[1.0, 1.0], restitution=0.5, sample=0.1)
    assert len(run.happenings) == 2
    np.testing.assert_allclose(run.v[-1], [-0.5, -0.5], atol=1e-12)


def test_run_that_passes_a_limit_is_not_trusted(monkeypatch):
    from polybody.simulation.switches import Switches

    monkeypatch.setattr(Switches, "functions", lambda self: [])
    with pytest.warns(pb.PolybodyWarning, match="rail lower limit was passed by 3.9"):
        run = pb.simulate(slider(limits=(-1.0, 5.0)), 1.0)
    assert not run.audit.trusted
    assert run.audit.limit_excess == pytest.approx(9.81 / 2 - 1)


def test_run_that_stopped_early_is_not_trusted_unless_it_was_asked_to():
    model = shipped("double-pendulum")

    def interrupt(t):
        if t > 0.2:
            raise KeyboardInterrupt

    with pytest.warns(pb.PolybodyWarning, match="stopped early"):
        run = pb.simulate(model, 1.0, [1.0, 0.0], method="rk4", progress=interrupt)
    assert not run.audit.trusted
    assert "interrupted" in run.audit.doubts[0]
    asked = pb.simulate(model, 1.0, [1.0, 0.0], events=[pb.Event("end", lambda t, q, v: t - 0.5, terminal=True)])
    assert asked.stopped is not None
    assert asked.audit.trusted


def test_momentum_of_parts_that_cancel_is_measured_by_what_their_energy_could_hold():
    build = pb.Builder("scissors", gravity=(0, 0, 0))
    for name in ("hull", "arm"):
        build.body(name, 1.0, com=(0.3, 0, 0.1), inertia=(0.1, 0.2, 0.3))
    build.joint("root_joint", "floating", "world", "hull")
    build.joint("hinge", "revolute", "hull", "arm")
    model = build.model()
    v = model.base.zero_momentum_velocity(model.neutral(), np.eye(7)[6] * 2.0)
    run = pb.simulate(model, 1.0, None, v)
    assert run.audit.momentum_note == ""
    assert run.audit.momentum_error_relative < 1e-8


@pytest.mark.parametrize("gravity", [(0, 0, 0), (0.3, 0.2, -9.81)])
def test_momentum_of_a_planar_base_is_kept_in_its_plane(gravity):
    build = pb.Builder("skater", gravity=gravity)
    for name in ("hull", "arm"):
        build.body(name, 1.0, com=(0.3, 0, 0.1), inertia=(0.1, 0.2, 0.3))
    build.joint("base", "planar", "world", "hull")
    build.joint("hinge", "revolute", "hull", "arm", (0.2, 0.1, 0), axis=(0.6, 0, 0.8))
    run = pb.simulate(build.model(), 1.0, v0=[1.0, 0.5, -0.3, 2.0])
    assert run.audit.momentum_note == ""
    assert run.audit.momentum_error_relative < 1e-8


@pytest.mark.parametrize("method", ["cvodes", "idas"])
def test_audit_counts_the_steps_of_the_method_and_not_those_between_outputs(method):
    coarse, fine = (
        pb.simulate(shipped("double-pendulum"), 1.0, [1.0, 0.0], method=method, sample=s) for s in (0.5, 0.005)
    )
    assert coarse.audit.steps > 100
    assert 0.5 < coarse.audit.steps / fine.audit.steps < 2


def test_diverging_run_ends_with_an_error_that_shows_its_last_state():
    model = shipped("double-pendulum")
    with pytest.raises(pb.SimulationError, match=r"aborted at t = .*max_steps.*Last state: hinge: q = ") as caught:
        pb.simulate(model, 20.0, [0.3, 0.0], controller=lambda t, q, v: np.array([15 * v[0], 0.0]), max_steps=300)
    assert 0 < caught.value.time < 20
    assert caught.value.trajectory.t[-1] <= caught.value.time
    assert not caught.value.trajectory.audit.trusted


def test_steps_that_shrink_without_end_are_foreseen(monkeypatch):
    monkeypatch.setattr("polybody.simulation.run.WINDOW", 50)
    monkeypatch.setattr("polybody.simulation.start.MOST_STEPS", 2000)
    monkeypatch.setattr("polybody.simulation.start.MOST_A_SECOND", 10)
    with pytest.raises(pb.SimulationError, match="steps have shrunk to"):
        pb.simulate(shipped("double-pendulum"), 200.0, [0.3, 0.0], controller=lambda t, q, v: 5 * v)


def test_events_without_end_that_make_sundials_step_in_vain_are_foreseen(monkeypatch):
    monkeypatch.setattr("polybody.simulation.run.WINDOW", 50)
    monkeypatch.setattr("polybody.simulation.run.IN_VAIN", 1)
    monkeypatch.setattr("polybody.simulation.start.MOST_STEPS", 70_000)
    monkeypatch.setattr("polybody.simulation.start.MOST_A_SECOND", 10)
    often = pb.Event("often", lambda t, q, v: np.sin(200 * t), action=lambda t, q, v: (q, v))
    with pytest.raises(pb.SimulationError, match="steps have shrunk to") as caught:
        pb.simulate(shipped("double-pendulum"), 200.0, [0.3, 0.0], method="cvodes", sample=0.5, events=[often])
    assert caught.value.trajectory.audit.steps < 1000


def late(value):
    def function(t, *_):
        if t > 0.3:
            raise KeyError("sensor lost")
        return value

    return function


@pytest.mark.parametrize(("who", "given"), [
    ("the function of the wrench on 'tip'", {"wrenches": {"tip": late(np.zeros(6))}}),
    ("event 'watch'", {"events": [pb.Event("watch", late(1.0))]}),
    ("the progress function", {"progress": late(None)}),
    ("the controller", {"controller": late(np.zeros(2))}),
])
@pytest.mark.parametrize("method", ["dop853", "cvodes"])
def test_error_of_a_users_function_keeps_the_run_so_far(who, given, method):
    with pytest.raises(pb.SimulationError, match=f"{who} raised KeyError at t = ") as caught:
        pb.simulate(shipped("double-pendulum"), 1.0, [1.0, 0.0], method=method, **given)
    assert isinstance(caught.value.__cause__, KeyError)
    assert 0.05 < caught.value.trajectory.t[-1] < 0.5
    assert caught.value.trajectory.a.shape == caught.value.trajectory.v.shape


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
@pytest.mark.parametrize("method", METHODS)
def test_interrupt_ends_a_run_at_once_by_every_method(method):
    model, q = shipped("double-pendulum"), [1.0, 0.0]
    options = {"method": method, "sample": 1.0, "dt": 1e-3, "max_steps": 10**9}
    pb.simulate(model, 0.01, q, **options)  # compiles
    asked = [0.0, 0.0]  # by the clock, and seconds computed: a busy machine is no delay of ours

    def interrupt(*_):
        asked[:] = time.perf_counter(), time.process_time()
        signal.raise_signal(signal.SIGINT)  # as Ctrl-C does: a handler of one's own that raises may be lost in CasADi

    before = signal.signal(signal.SIGALRM, interrupt), signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 1.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run = pb.simulate(model, 3e5, q, **options)  # ten seconds by the fastest method
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before[0])
        signal.signal(signal.SIGINT, before[1])
    assert asked[0] > 0
    assert min(time.perf_counter() - asked[0], time.process_time() - asked[1]) < 0.5
    assert "interrupted" in run.stopped


def test_what_sundials_says_is_in_the_message(capfd):
    def wild(t, q, v):
        return np.array([0.0, 0.02 * v[1] ** 3])

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        loose = {"method": "cvodes", "rtol": 1e-5, "atol": 1e-7}
        run = pb.simulate(shipped("double-pendulum"), 5.0, [0.0, 0.0], [0.0, 2.0], wild, **loose)
    assert "CVODES gave up: At t =" in run.stopped
    assert capfd.readouterr().err == ""
    assert told


def test_models_that_cannot_move_and_things_that_are_no_models_are_refused():
    build = pb.Builder("rock")
    build.body("stone", 1.0)
    build.joint("glue", "fixed", "world", "stone")
    none = np.zeros((3, 0))
    for refused in (lambda m: pb.simulate(m, 1.0), lambda m: pb.rollout(m, none, none, steps=2)):
        with pytest.raises(pb.InputError, match=r"'rock' has no joint that moves \(nv = 0\)"):
            refused(build.model())
    calls = [
        lambda x: pb.simulate(x, 1.0), lambda x: pb.rollout(x, [0.0], [0.0], steps=2),
        lambda x: pb.controllers.Given(x, [0.0]), lambda x: pb.controllers.zero(x), lambda x: pb.PD(x, [0.0]),
        lambda x: pb.controllers.GravityCompensation(x), lambda x: pb.controllers.ComputedTorque(x, None),
        lambda x: pb.controllers.OperationalSpace(x, "tip", np.eye(4)),
        lambda x: pb.paths.cycloidal(x, [0.0], [1.0], 1.0),
    ]
    for call in calls:
        with pytest.raises(pb.InputError, match=r"model is \[0, 1\] \(list\); expected a Model"):
            call([0, 1])


@pytest.mark.parametrize(("given", "said"), [
    ({"start": np.nan}, "start is nan"), ({"start": "noon"}, "start is 'noon'"),
    ({"duration": 1e9}, "would keep 1e.11 states"), ({"sample": 1e-12}, "would keep 1e.12 states"),
    ({"duration": 1e9, "method": "rk4"}, "would keep 1e.12 states"), ({"duration": np.inf}, "duration is inf"),
    ({"restitution": "half"}, "restitution is 'half'"), ({"max_steps": 0}, "max_steps is 0"),
    ({"max_steps": 0.5}, "max_steps is 0.5; expected a whole number"),
])
def test_times_without_sense_or_end_are_refused_before_anything_is_computed(given, said):
    with pytest.raises(pb.InputError, match=said):
        pb.simulate(shipped("double-pendulum"), **{"duration": 1.0, **given})


def test_momentum_error_is_the_same_whenever_it_is_asked_for(monkeypatch):
    build = pb.Builder("skater", gravity=(0.3, 0.2, -9.81))
    for name in ("hull", "arm"):
        build.body(name, 1.0, com=(0.3, 0, 0.1), inertia=(0.1, 0.2, 0.3))
    build.joint("root_joint", "floating", "world", "hull")
    build.joint("hinge", "revolute", "hull", "arm", (0.2, 0.1, 0), axis=(0.6, 0, 0.8))
    model = build.model()
    v = np.array([1.0, 0.5, -0.3, 0.2, 0.1, 0.4, 2.0])
    later, pickled = pb.simulate(model, 1.0, None, v, method="rk4"), pb.simulate(model, 1.0, None, v, method="rk4")
    monkeypatch.setattr("polybody.simulation.audit.SHORT", 0)
    at_once = pb.simulate(model, 1.0, None, v, method="rk4").audit
    later.v[:] = 7.0  # a user's array: what was computed does not change
    assert at_once.momentum_error_relative > 0
    assert later.audit.momentum_error_relative == pytest.approx(at_once.momentum_error_relative, rel=1e-6)
    assert later.audit.energy_error == pytest.approx(at_once.energy_error, rel=1e-6)
    copied = pickle.loads(pickle.dumps(pickled.audit))
    assert copied.momentum_error_relative == later.audit.momentum_error_relative
    clocked = {"seconds": 0, "evaluations": 0}  # one evaluation per chunk more, whose lengths are those of the clock
    assert copied.as_dict() | clocked == later.audit.as_dict() | clocked
    assert f"momentum_error_relative={copied.momentum_error_relative!r}" in repr(copied)
