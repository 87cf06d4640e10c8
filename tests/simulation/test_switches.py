"""Events are found where they are, stops stop, motors' currents settle where their circuits say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from simulation_cases import moving, satellite, shipped

import polybody as pb
from polybody.description.records import Motor
from polybody.mechanism import mechanism_from


def slider(**joint: object) -> pb.Model:
    """A block of 2 kg that falls along z."""
    build = pb.Builder("slider")
    build.body("block", mass=2.0, inertia=(0.1, 0.1, 0.1))
    build.joint("rail", "prismatic", "world", "block", **joint)  # type: ignore[arg-type]
    return build.model()


def test_event_is_found_at_the_time_the_formula_says() -> None:
    """A body that falls from rest passes −1 m at √(2/g)."""
    expected = np.sqrt(2 / 9.81)
    passing = pb.Event("passes", lambda t, q, v: q[0] + 1.0, direction=-1)
    run = pb.simulate(slider(), 1.0, events=[passing], sample=0.3)
    assert [h.name for h in run.happenings] == ["passes"]
    assert abs(run.happenings[0].time - expected) < 1e-12
    assert run.stopped is None
    ending = pb.simulate(slider(), 1.0, events=[pb.Event("passes", lambda t, q, v: q[0] + 1.0, terminal=True)])
    assert ending.stopped is not None
    assert abs(ending.t[-1] - expected) < 1e-12
    assert abs(ending.q[-1, 0] + 1.0) < 1e-12


def test_direction_of_an_event_selects_its_crossings() -> None:
    model = shipped("double-pendulum")
    names = {1: "up", -1: "down", 0: "both"}
    events = [pb.Event(name, lambda t, q, v: q[0], direction=d) for d, name in names.items()]
    run = pb.simulate(model, 3.0, [0.4, 0.0], events=events)
    count = {name: sum(h.name == name for h in run.happenings) for name in names.values()}
    assert count["up"] >= 1
    assert count["both"] == count["up"] + count["down"]


def test_action_of_an_event_changes_the_state_and_the_balance_knows() -> None:
    bounce = pb.Event("floor", lambda t, q, v: q[0] + 1.0, direction=-1, action=lambda t, q, v: (q, -0.5 * v))
    run = pb.simulate(slider(), 0.8, events=[bounce], rtol=1e-11, atol=1e-12)
    first = np.sqrt(2 / 9.81)
    later = 0.8 - first
    speed = 0.5 * 9.81 * first
    assert abs(run.q[-1, 0] - (-1 + speed * later - 9.81 * later**2 / 2)) < 1e-9
    assert run.audit.energy_error_relative < 1e-10


def test_block_bounces_on_its_stop_with_the_restitution() -> None:
    """Heights of successive bounces fall by e²; the block comes to rest on the stop, which carries its weight."""
    model = slider(limits=(-1.0, 5.0))
    run = pb.simulate(model, 4.0, restitution=0.5, sample=0.01)
    hits = [h for h in run.happenings if "rebounds" in h.detail]
    times = np.array([h.time for h in hits])
    flights = np.diff(times)
    np.testing.assert_allclose(flights[1:] / flights[:-1], 0.5, rtol=1e-6)
    assert run.q.min() >= -1.0 - 1e-9
    assert run.q[-1, 0] == -1.0
    assert run.v[-1, 0] == 0.0
    assert run.happenings[-1].detail.endswith("rests")
    assert run.audit.energy_error_relative < 1e-8


@pytest.mark.parametrize("method", ["dop853", "rk4", "semi-implicit", "midpoint", "radau", "cvodes", "idas"])
def test_joint_leaves_its_stop_when_it_is_pulled_away(method: str) -> None:
    """The torque overcomes gravity at t = 1: until then the block rests, then it rises as the formula says."""
    model = slider(limits=(0.0, 5.0))
    weight = 2.0 * 9.81

    def controller(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.array([weight * t])

    run = pb.simulate(model, 1.5, controller=controller, method=method, dt=1e-3, sample=0.1)
    assert np.all(run.q[run.t <= 1.0, 0] == 0.0)
    risen = 9.81 * 0.5**3 / 6
    assert abs(run.q[-1, 0] - risen) < (5e-3 if method == "semi-implicit" else 1e-6)
    assert [h.detail for h in run.happenings] == ["rests", "left"]
    assert abs(run.happenings[-1].time - 1.0) < 1e-6


def test_impact_of_one_joint_keeps_the_momentum_of_the_others() -> None:
    """The impulse acts on the struck joint only: M(v⁺ − v⁻) has one entry."""
    build = pb.Builder("chain")
    build.body("a", mass=1.0, com=(0.5, 0, 0), inertia=(0.01, 0.1, 0.1))
    build.body("b", mass=1.0, com=(0.5, 0, 0), inertia=(0.01, 0.1, 0.1))
    origin = np.eye(4)
    origin[0, 3] = 1.0
    build.joint("one", "revolute", "world", "a", axis=(0, 1, 0))
    build.joint("two", "revolute", "a", "b", origin=origin, axis=(0, 1, 0), limits=(-0.2, 0.3))
    model = build.model()
    run = pb.simulate(model, 0.6, v0=[-2.0, 4.0], restitution=0.7, dense=True)
    hit = next(h for h in run.happenings if "hit" in h.detail)
    (q_before, before), (_, after) = run.at(hit.time - 1e-9), run.at(hit.time + 1e-9)
    impulse = model.mass_matrix(q_before) @ (after - before)
    assert abs(impulse[0]) < 1e-6 * abs(impulse[1])
    assert abs(after[1] / before[1] + 0.7) < 1e-6


def test_limits_can_halt_or_be_reported_or_ignored() -> None:
    model = slider(limits=(-1.0, 5.0))
    halted = pb.simulate(model, 1.0, limits="halt")
    assert halted.stopped is not None
    assert "rail" in halted.stopped
    assert abs(halted.q[-1, 0] + 1) < 1e-9
    reported = pb.simulate(model, 1.0, limits="report")
    assert [h.name for h in reported.happenings] == ["rail lower limit"]
    assert reported.q[-1, 0] < -4
    assert pb.simulate(model, 1.0, limits="ignore").happenings == []


def test_start_beyond_a_limit_is_said() -> None:
    with pytest.warns(pb.PolybodyWarning, match="beyond its limit"):
        run = pb.simulate(slider(limits=(-1.0, 5.0)), 0.1, q0=[6.0])
    assert run.q[-1, 0] < 6.0


def motor_slider(inductance: float) -> pb.Model:
    build = pb.Builder("drive", gravity=(0, 0, 0))
    build.body("disk", mass=1.0, inertia=(0.1, 0.1, 0.2))
    build.joint("shaft", "revolute", "world", "disk")
    motor = Motor("motor", "shaft", 2.0, inductance, 0.5, speed_constant=0.5, rotor_inertia=0.01, gear=3.0)
    return pb.Model(mechanism_from(replace(build.description(), motors=(motor,))))


@pytest.mark.parametrize("method", ["dop853", "radau", "cvodes", "idas", "rk4", "semi-implicit", "midpoint"])
def test_motor_runs_up_as_the_matrix_exponential_says(method: str) -> None:
    """One inertia and one current are linear: x(t) = A⁻¹(exp(At) − 1) B."""
    from scipy.linalg import expm

    model = motor_slider(0.3)
    J, R, L, K, gear, V = 0.2 + 0.01 * 9, 2.0, 0.3, 0.5, 3.0, 12.0
    A = np.array([[0, K * gear / J], [-K * gear / L, -R / L]])
    exact = np.linalg.solve(A, (expm(A * 1.0) - np.eye(2)) @ np.array([0.0, V / L]))
    run = pb.simulate(model, 1.0, voltages=[V], method=method, dt=1e-3)
    assert run.currents is not None
    tolerance = {"semi-implicit": 2e-2, "midpoint": 1e-4}.get(method, 1e-5)
    np.testing.assert_allclose([run.v[-1, 0], run.currents[-1, 0]], exact, rtol=tolerance)
    assert run.audit.energy_error_relative < (1e-2 if method == "semi-implicit" else 1e-6)


def test_motor_without_inductance_has_no_state_but_a_current() -> None:
    model = motor_slider(0.0)
    run = pb.simulate(model, 0.5, voltages=lambda t, q, v: np.array([12.0]))
    J, R, K, gear = 0.2 + 0.09, 2.0, 0.5, 3.0
    rate = (K * gear) ** 2 / (R * J)
    np.testing.assert_allclose(run.v[-1, 0], 12 / (K * gear) * (1 - np.exp(-rate * 0.5)), rtol=1e-8)
    assert run.currents is not None
    np.testing.assert_allclose(run.currents[:, 0], (12 - K * gear * run.v[:, 0]) / R)


def test_wrongs_of_a_user_are_named() -> None:
    model = shipped("double-pendulum")
    wrong = [
        (dict(duration=-1.0), "duration"),
        (dict(duration=1.0, q0=[1.0]), r"q0 has shape \(1,\), expected \(2,\)"),
        (dict(duration=1.0, q0=[1.0, np.nan]), r"q0\[1\] is nan"),
        (dict(duration=1.0, v0=[[1.0, 2.0]]), "pb.rollout"),
        (dict(duration=1.0, method="euler"), "available: dop853"),
        (dict(duration=1.0, controller=3), "controller is a int"),
        (dict(duration=1.0, wrenches={"tipp": np.zeros(6)}), "did you mean 'tip'"),
        (dict(duration=1.0, wrenches={"tip": np.zeros(3)}), r"expected \(6,\)"),
        (dict(duration=1.0, limits="bounce"), "expected one of stop"),
        (dict(duration=1.0, restitution=2), "restitution"),
        (dict(duration=1.0, times=[0.5, 0.1]), "times"),
        (dict(duration=1.0, voltages=[1.0]), "has no motors"),
        (dict(duration=1.0, events=[3]), "pb.Event"),
    ]
    for arguments, message in wrong:
        with pytest.raises(pb.InputError, match=message):
            pb.simulate(model, **arguments)  # type: ignore[arg-type]
    free = satellite()
    q, _ = moving(free)
    q[3:7] *= 2
    with pytest.raises(pb.InputError, match="has length 2; expected 1"):
        pb.simulate(free, 1.0, q)


@pytest.mark.parametrize("method", ["dop853", "cvodes", "idas", "rk4"])
def test_error_of_a_controller_is_kept_with_its_time_and_the_run_so_far(method: str) -> None:
    def controller(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        if t > 0.5:
            raise KeyError("sensor lost")
        return np.zeros(2)

    with pytest.raises(pb.SimulationError, match=r"controller raised KeyError at t = 0\.5") as caught:
        pb.simulate(shipped("double-pendulum"), 1.0, [1.0, 0.0], controller=controller, method=method)
    assert isinstance(caught.value.__cause__, KeyError)
    assert caught.value.time is not None
    assert caught.value.trajectory is not None
    assert 0.2 < caught.value.trajectory.t[-1] <= 0.51


def test_controller_of_wrong_shape_is_said_with_the_time() -> None:
    with pytest.raises(pb.SimulationError, match=r"shape \(3,\) at t = 0 s; expected \(2,\)"):
        pb.simulate(shipped("double-pendulum"), 1.0, controller=lambda t, q, v: np.zeros(3))


@pytest.mark.parametrize("method", ["dop853", "rk4", "radau", "cvodes"])
def test_run_that_blows_up_keeps_its_last_good_time_and_names_the_joint(method: str) -> None:
    """q̈ grows like v³: infinite in finite time."""
    model = shipped("double-pendulum")

    def controller(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.array([0.0, 0.02 * v[1] ** 3])

    with pytest.warns(pb.PolybodyWarning, match="diverged after t = .*joint 'hinge'"), np.errstate(all="ignore"):
        run = pb.simulate(model, 5.0, [0.0, 0.0], [0.0, 2.0], controller, method=method)
    assert run.stopped is not None
    assert 0 < run.t[-1] < 1.0
    assert np.isfinite(run.q).all()


def test_ctrl_c_keeps_what_was_computed() -> None:
    def interrupt(t: float) -> None:
        if t > 0.3:
            raise KeyboardInterrupt

    with pytest.warns(pb.PolybodyWarning, match="interrupted at t = 0.3"):
        run = pb.simulate(shipped("double-pendulum"), 1.0, [1.0, 0.0], method="rk4", progress=interrupt)
    assert run.stopped is not None
    assert 0.3 < run.t[-1] < 0.31


def test_bad_balance_is_a_warning() -> None:
    with pytest.warns(pb.PolybodyWarning, match="energy balance is off"):
        run = pb.simulate(shipped("double-pendulum"), 5.0, [2.0, 0.0], method="semi-implicit", dt=0.05)
    assert not run.audit.trusted
