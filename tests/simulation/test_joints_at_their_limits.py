"""Joints that linger at a limit, and where methods without steps of their own locate hits."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb
from polybody.model.model import Model


def slider(stiffness: float = 0.0, lower: float = -2.0) -> Model:
    build = pb.Builder("slider", gravity=(0, 0, 0))
    build.body("cart", 1.0, inertia=(1, 1, 1))
    build.joint("x", "prismatic", "world", "cart", axis=(1, 0, 0), limits=(lower, 0.0), stiffness=stiffness)
    return build.model()


PUSHES = {
    "ramp": lambda t, q, v: np.array([t]),
    "later": lambda t, q, v: np.array([np.maximum(t - 0.1, 0.0)]),
    "branch": lambda t, q, v: np.array([1.0 if t > 0.1 else 0.0]),
}


@pytest.mark.parametrize("method", ["dop853", "radau", "cvodes", "idas", "rk4", "midpoint"])
@pytest.mark.parametrize("push", PUSHES)
def test_a_joint_at_rest_at_its_limit_is_stopped_when_it_is_pushed_later(push, method):
    """Its excess is exactly zero until then, so that no sign told when it ran into the stop."""
    run = pb.simulate(slider(), 0.5, [0.0], controller=PUSHES[push], method=method)
    assert run.q.max() < 1e-9
    assert run.audit.trusted, run.audit.doubts
    assert run.happenings[-1].detail.endswith("rests")


def test_python_steps_stop_it_too():
    run = pb.simulate(slider(), 0.5, [0.0], controller=PUSHES["later"], compiled=False)
    assert run.q.max() < 1e-9
    assert run.audit.trusted


def untraceable(law):
    """A law that compiled code cannot read."""
    return lambda t, q, v: np.array([float(str(law(t, q, v)[0]))])


@pytest.mark.parametrize("compiled", [None, False])
@pytest.mark.parametrize("method", ["dop853", "rk4", "semi-implicit", "radau", "cvodes", "idas"])
@pytest.mark.parametrize("as_given", [lambda law: law, untraceable])
def test_where_nothing_presses_yet_what_comes_next_decides(as_given, method, compiled):
    """A force that grows from zero holds the joint from the start, one that shrinks from zero lets it go."""
    said = {"method": method, "compiled": compiled, "controller": as_given(PUSHES["ramp"])}
    held = pb.simulate(slider(), 0.5, [0.0], **said)
    assert [(h.time, h.detail) for h in held.happenings] == [(0.0, "rests")]
    assert not held.q.any()
    left = pb.simulate(slider(), 0.5, [0.0], **said | {"controller": as_given(lambda t, q, v: np.array([-t]))})
    assert left.happenings == []
    rough = method == "semi-implicit"
    np.testing.assert_allclose(left.q[:, 0], -(left.t**3) / 6, atol=5e-4 if rough else 1e-7)


def test_users_functions_are_not_asked_what_comes_after_the_end():
    """A force by a table of the user's, without a row for later: the joint comes to rest at its limit at the end."""
    times = []

    def law(t, q, v):
        times.append(t)
        return np.zeros(1) if t > 0.4999 else np.array([1.0])

    pb.simulate(slider(), 0.5, [-0.25 + 0.125], controller=law, compiled=False)
    pb.simulate(slider(), 1e-6, [0.0], controller=lambda t, q, v: [times.append(t) or 0.0], compiled=False)
    assert max(times) <= 0.5 + 1e-12


def test_loops_say_so_too():
    """A slider moved by a bar that a second slider carries: x = −y on the loop's line through the rest."""
    build = pb.Builder("two", gravity=(0, 0, 0))
    build.body("cart", 1.0, inertia=(1, 1, 1))
    build.body("other", 1.0, inertia=(1, 1, 1))
    build.joint("x", "prismatic", "world", "cart", axis=(1, 0, 0), limits=(-2.0, 0.0))
    build.joint("y", "prismatic", "world", "other", axis=(1, 0, 0))
    build.loop("weld", "fixed", "cart", "other")
    for compiled in (None, False):
        run = pb.simulate(build.model(), 0.5, [0.0, 0.0], None, lambda t, q, v: [0.0, t], compiled=compiled)
        assert [(h.time, h.detail) for h in run.happenings] == [(0.0, "rests")]


def test_it_is_free_to_leave_and_to_come_back():
    run = pb.simulate(slider(), 1.0, [0.0], controller=lambda t, q, v: -np.sin(20 * t) * np.ones(1))
    assert run.q.min() < -0.004
    assert run.q.max() < 1e-9
    assert run.audit.trusted


@pytest.mark.parametrize("compiled", [None, False])
def test_a_start_at_the_limit_is_reported_and_halted_at(compiled):
    law = PUSHES["later"]
    told = pb.simulate(slider(), 0.5, [0.0], controller=law, limits="report", compiled=compiled)
    assert [h.detail for h in told.happenings] == ["reached"]
    assert told.q[-1, 0] == pytest.approx(0.4**3 / 6, rel=1e-6)
    halted = pb.simulate(slider(), 0.5, [0.0], controller=law, limits="halt", compiled=compiled)
    assert halted.stopped
    assert 0.1 < halted.t[-1] < 0.102


@pytest.mark.parametrize("method", ["cvodes", "idas"])
@pytest.mark.parametrize("sample", [0.1, 0.01])
def test_sundials_locates_hits_independently_of_the_states_asked_for(method, sample):
    """x = −cos 12t: it meets the limit at 0 where 12 t = π/2; a cubic over the sample gave times off by 1e-5 s."""
    run = pb.simulate(slider(stiffness=144.0), 0.3, [-1.0], method=method, sample=sample, restitution=0.5)
    assert run.happenings[0].time == pytest.approx(np.pi / 24, abs=2e-8)
    assert run.audit.trusted, run.audit.doubts


@pytest.mark.parametrize("method", ["cvodes", "idas"])
def test_dense_output_of_sundials_has_the_accuracy_of_its_steps(method):
    run = pb.simulate(slider(stiffness=144.0, lower=-9.0), 1.0, [-1.0], method=method, dense=True, limits="ignore")
    t = np.linspace(0, 1, 301)
    q, v = run.at(t)
    assert np.abs(q[:, 0] + np.cos(12 * t)).max() < 1e-6
    assert np.abs(v[:, 0] - 12 * np.sin(12 * t)).max() < 1e-5


def test_legs_that_throw_each_other_off_their_stops_come_to_rest_on_them():
    """Six legs of a falling Stewart platform: some left their stops by rounding, and were let through them."""
    run = pb.simulate(pb.load("stewart"), 0.258, method="cvodes")
    assert run.audit.trusted, run.audit.doubts
    assert len(run.happenings) < 60


@pytest.mark.parametrize("method", ["rk4", "dop853"])
def test_an_event_of_the_speed_of_a_joint_that_rests_at_its_limit_does_not_happen_in_every_step(method: str) -> None:
    build = pb.Builder("two", gravity=(0.3, -9.81, 0.7))
    build.body("first", 1.0, com=(0.25, 0.03, 0.1), inertia=(0.01, 0.02, 0.02))
    build.joint("first", "revolute", "world", "first", limits=(-0.6, 0.6))
    build.body("second", 0.5, com=(0.2, 0.05, -0.1), inertia=(0.01, 0.02, 0.02))
    build.joint("second", "revolute", "first", "second", (0.5, 0, 0.1), axis=(0, 0.6, 0.8))
    still = pb.Event("still", lambda t, q, v: v[0])
    for compiled in (None, False):
        run = pb.simulate(build.model(), 0.4, [-0.6, 0.5], method=method, events=[still], compiled=compiled)
        assert not run.happenings or {x.detail for x in run.happenings} == {"rests"}
