"""Users' code that is called during a run may change what compiled code has read: targets, gains, lists."""

import gc
import weakref

import numpy as np
import pytest

import polybody as pb
from polybody.simulation.stepper import Stepper

START = np.array([0.0, np.pi / 2, 0.0, 0.0, 0.0, 0.0])
WEIGHTS = np.array([20.0, 20.0, 20.0, 0.1, 0.1, 0.1])


class Holder:
    """A gain that somebody else sets."""

    def __init__(self) -> None:
        self.gain = 0.1


def changing(kind: str, arm: pb.Model):
    """(controller, what changes it)."""
    box, table, array, holder = [0.1], {"gain": 0.1}, np.array([0.1]), Holder()
    law = pb.controllers.PD(arm, START, 10 * WEIGHTS, WEIGHTS, gravity=True)
    away = pb.controllers.PD(arm, START + 0.3, 10 * WEIGHTS, WEIGHTS, gravity=True)
    path = pb.controllers.PD(arm, None, 10 * WEIGHTS, WEIGHTS, path=pb.paths.quintic(arm, START, START, 1.0))
    gain = 0.1

    def rebind() -> None:
        nonlocal gain
        gain = 2.0

    return {
        "list": (lambda t, q, v: -box[0] * WEIGHTS * v, lambda: box.__setitem__(0, 2.0)),
        "dictionary": (lambda t, q, v: -table["gain"] * WEIGHTS * v, lambda: table.update(gain=2.0)),
        "array": (lambda t, q, v: -array[0] * WEIGHTS * v, lambda: array.fill(2.0)),
        "attribute": (lambda t, q, v: -holder.gain * WEIGHTS * v, lambda: setattr(holder, "gain", 2.0)),
        "captured number": (lambda t, q, v: -gain * WEIGHTS * v, rebind),
        "target": (law, lambda: setattr(law, "target", START + 0.3)),
        "gains": (away, lambda: setattr(away, "kp", 0.1 * away.kp)),
        "path": (path, lambda: setattr(path, "path", pb.paths.quintic(arm, START, START + 0.4, 0.8))),
    }[kind]


KINDS = ["list", "dictionary", "array", "attribute", "captured number", "target", "gains", "path"]
CASES = [(kind, method) for kind in KINDS for method in ("dop853", "rk4")]
CASES += [(kind, method) for kind in ("list", "target", "path") for method in ("semi-implicit", "radau", "cvodes")]


def moved(arm: pb.Model, kind: str, method: str, compiled: bool | None, *, by: str = "action"):
    law, change = changing(kind, arm)
    told = []

    def act(t, q, v):
        told.append(t)
        change()

    def progress(t):
        if t > 0.2 and not told:
            act(t, None, None)

    event = pb.Event("now", lambda t, q, v: t - 0.2, action=act)
    steps = {"dt": 1e-3} if method in ("rk4", "semi-implicit") else {"rtol": 1e-9, "atol": 1e-10}
    given = {"events": [event]} if by == "action" else {"progress": progress}
    options = {**steps, **given}
    run = pb.simulate(arm, 0.5, START, controller=law, method=method, compiled=compiled, **options)
    assert len(told) == 1
    return run, told[0]


@pytest.fixture(scope="module")
def arm() -> pb.Model:
    return pb.load("stanford-arm")


@pytest.mark.parametrize(("kind", "method"), CASES)
def test_what_an_action_changes_acts_from_then_on(arm, kind, method):
    ours, _ = moved(arm, kind, method, None)
    theirs, _ = moved(arm, kind, "dop853" if method == "cvodes" else method, False)
    assert ours.audit.path == "compiled"
    np.testing.assert_allclose(ours.q[-1], theirs.q[-1], rtol=0, atol=2e-6 if method == "cvodes" else 1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_the_change_matters(arm, kind):
    """Or the test above could not fail."""
    changed, _ = moved(arm, kind, "rk4", None)
    as_before = pb.simulate(arm, 0.5, START, controller=changing(kind, arm)[0], method="rk4", dt=1e-3)
    assert np.abs(changed.q[-1] - as_before.q[-1]).max() > 1e-3


def test_what_the_progress_function_changes_acts_from_then_on(arm):
    ours, when = moved(arm, "target", "rk4", None, by="progress")
    law = pb.controllers.PD(arm, START, 10 * WEIGHTS, WEIGHTS, gravity=True)
    event = pb.Event("then", lambda t, q, v: t - when, action=lambda t, q, v: setattr(law, "target", START + 0.3))
    theirs = pb.simulate(arm, 0.5, START, controller=law, method="rk4", dt=1e-3, events=[event], compiled=False)
    np.testing.assert_allclose(ours.q[-1], theirs.q[-1], rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_changed_between_the_steps_of_a_stepper_acts_from_then_on(arm, kind):
    law, change = changing(kind, arm)
    live = Stepper(arm, START, controller=law)
    live.advance(200)
    change()
    live.advance(300)
    wanted, _ = moved(arm, kind, "rk4", False)
    np.testing.assert_allclose(live.q, wanted.q[-1], rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", [list, np.array])
def test_events_that_read_what_a_called_controller_changes(arm, kind):
    """A law with a memory of its own is called at its instants; an event waits for the time that it sets."""
    times = []
    for compiled in (None, False):
        goal, calls = kind([10.0]), []

        def law(t, q, v, goal=goal, calls=calls):
            calls.append(t)
            if t > 0.05:
                goal[0] = 0.123
            return -WEIGHTS * v

        event = pb.Event("goal", lambda t, q, v, goal=goal: t - goal[0])
        held = pb.controllers.Sampled(law, 0.01)
        run = pb.simulate(arm, 0.2, START, controller=held, method="rk4", dt=1e-3, events=[event], compiled=compiled)
        assert run.audit.path.startswith("python") == (compiled is False)
        times.append([x.time for x in run.happenings])
    np.testing.assert_allclose(times[0], [0.123], atol=1e-9)
    np.testing.assert_allclose(times[0], times[1], atol=1e-9)


def test_a_controller_that_becomes_untraceable_is_called_from_then_on(arm):
    branch = [False]

    def law(t, q, v):
        if branch[0] and v[1] < 0:
            return -2 * WEIGHTS * v
        return -0.1 * WEIGHTS * v

    ends = []
    for compiled in (None, False):
        branch[0] = False
        event = pb.Event("now", lambda t, q, v: t - 0.2, action=lambda t, q, v: branch.__setitem__(0, True))
        run = pb.simulate(arm, 0.5, START, controller=law, method="rk4", dt=1e-3, events=[event], compiled=compiled)
        ends.append(run.q[-1])
        if compiled is None:
            assert run.audit.path.startswith("python from t = 0.2")
    np.testing.assert_allclose(ends[0], ends[1], rtol=0, atol=1e-9)


def test_functions_are_traced_again_only_where_what_they_read_may_have_changed(arm, monkeypatch):
    from polybody.simulation.compiled import tracing

    gains, calls = np.array(WEIGHTS), []
    monkeypatch.setattr(tracing, "impure", lambda *a, impure=tracing.impure, **k: calls.append(a) or impure(*a, **k))
    live = Stepper(arm, START, controller=lambda t, q, v: -gains * v)
    for _ in range(5):
        live.advance(2)
    assert len(calls) == 1
    gains[0] = 1.0
    live.advance(2)
    assert len(calls) == 2


def test_functions_that_were_traced_are_not_kept_alive(arm):
    gains = np.array(WEIGHTS)

    def law(t, q, v):
        return -gains * v

    pb.simulate(arm, 0.01, START, controller=law, method="rk4", dt=1e-3)
    gone = weakref.ref(law)
    del law
    gc.collect()
    assert gone() is None
