"""Actions of events that are expressions act inside compiled loops: same motion, work and events as Python's."""

from __future__ import annotations

from typing import Any

import casadi
import numpy as np
import pytest
from decided_events import assert_same_events, both, random_tree, told
from event_cases import four_bar_with_both

import polybody as pb
from polybody.simulation.compiled import rolled
from polybody.simulation.compiled.purity import impure
from polybody.simulation.compiled.tracing import traced_action
from polybody.simulation.failures import NotCompiled

pytestmark = pytest.mark.filterwarnings("ignore::polybody.errors.PolybodyWarning")
METHODS = ("rk4", "dop853", "radau", "midpoint", "semi-implicit")
GAIN = np.array([-0.8])
LOG: list[float] = []


def block() -> pb.Model:
    build = pb.Builder("block", gravity=(0, 0, -10.0))
    build.body("block", 1.0, inertia=(1, 1, 1))
    build.joint("z", "prismatic", "world", "block", axis=(0, 0, 1))
    return build.model()


def chain(count: int, **more: Any) -> pb.Model:
    build = pb.Builder("chain", gravity=(0, 0, -9.81))
    for k in range(count):
        build.body(f"b{k}", 0.3, com=(0, 0, -0.02), inertia=(1e-3, 1e-3, 1e-3))
        origin = np.eye(4)
        origin[2, 3] = -0.04 if k else 0.0
        axis = (0, 1, 0) if k % 2 else (1, 0, 0)
        parent = f"b{k - 1}" if k else "world"
        build.joint(f"j{k}", "revolute", parent, f"b{k}", origin, axis=axis, damping=0.02, **more)
    return build.model()


def bounce(t: float, q: np.ndarray, v: np.ndarray) -> Any:
    v[0] = GAIN[0] * v[0]
    return q, v


@pytest.mark.parametrize("method", METHODS)
def test_a_block_that_an_action_throws_back_follows_its_parabolas(method: str, monkeypatch: Any) -> None:
    floor = pb.Event("floor", lambda t, q, v: q[0], direction=-1, action=bounce)
    options: dict[str, Any] = {"method": method, "events": [floor], "dense": True}
    slow, run, counts = both(monkeypatch, block(), 2.6, [1.25], [0.0], **options)
    assert counts == [4, 0]
    assert told(run) == told(slow)
    hits, speed, work = [0.5], 5.0, 0.0
    while hits[-1] < 2.6:
        work -= 0.5 * (1 - 0.64) * speed**2
        speed *= 0.8
        hits.append(hits[-1] + 2 * speed / 10)
    exact = method != "semi-implicit"
    np.testing.assert_allclose([x.time for x in run.happenings], hits[:-1], atol=1e-7 if exact else 2e-2)
    np.testing.assert_allclose(run.work[-1], work, rtol=1e-7 if exact else 2e-2)
    t = np.linspace(0.51, 2.59, 37)
    k = np.searchsorted([x.time for x in run.happenings], t) - 1
    since = t - np.array(hits)[k]
    height = 5.0 * 0.8 ** (k + 1) * since - 5 * since**2
    np.testing.assert_allclose([run.at(x)[0][0] for x in t], height, atol=1e-6 if exact else 0.1)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", [3, 6, 8])
def test_actions_among_limits_and_friction_are_pythons(seed: int, method: str, monkeypatch: Any) -> None:
    """Joints are thrown, put elsewhere, and taken away from where stops and friction hold them."""
    model, q, v = random_tree(seed)
    k = np.linspace(0.5, 1.2, model.nv)
    kick = pb.Event("kick", lambda t, q, v: np.sin(20 * t), action=lambda t, q, v: (q, v * k + 0.3 * t))
    put = pb.Event("put", lambda t, q, v: np.sin(7 * t + 0.2), 1, action=lambda t, q, v: (0.9 * q, v))
    options: dict[str, Any] = {"method": method, "restitution": 0.3, "events": [kick, put]}
    options |= {"sample": 0.01} if method in ("dop853", "radau") else {}
    slow, fast, counts = both(monkeypatch, model, 1.0, q, v, **options)
    assert counts[0] >= 16
    assert counts[1] == 0
    assert {"kick", "put"} <= {x.name for x in fast.happenings}
    assert_same_events(fast, slow, 1e-6 if method == "radau" else 1e-9)
    if method != "semi-implicit":
        assert fast.audit.trusted


@pytest.mark.parametrize("method", ["rk4", "dop853", "radau", "semi-implicit"])
@pytest.mark.parametrize("holds", [False, True])
def test_actions_keep_loops_closed(method: str, holds: bool, monkeypatch: Any) -> None:
    if holds:
        model, seconds, q, _, options = four_bar_with_both()
    else:
        model, seconds, options = pb.load("four-bar"), 2.0, {}
        q = model.assemble([0.5, 0, 0], hold=["crank_joint"])
    turn = pb.Event("turn", lambda t, q, v: np.sin(11 * t), action=lambda t, q, v: (q, -0.9 * v))
    law = options.pop("controller", None)
    options |= {"method": method, "events": [turn], "sample": 0.02}
    slow, fast, counts = both(monkeypatch, model, seconds, q, None, controller=lambda: law, **options)
    assert counts[0] >= 6
    assert counts[1] <= 1
    assert_same_events(fast, slow, {"rk4": 1e-8}.get(method, 1e-6))


def test_an_action_that_opens_a_loop_is_an_error_that_says_so() -> None:
    model = pb.load("four-bar")
    q = model.assemble([0.5, 0, 0], hold=["crank_joint"])
    for wrong, what in ((lambda t, q, v: (q, v * np.array([-1.0, 0, 0])), "v breaks"),
                        (lambda t, q, v: (q + np.array([0.3, 0, 0]), v), "q breaks")):  # fmt: skip
        event = pb.Event("jump", lambda t, q, v: t - 0.31, action=wrong)
        for compiled in (False, True):
            with pytest.raises(pb.InputError, match=f"the action of event 'jump': {what} the constraints"):
                pb.simulate(model, 0.6, q, events=[event], compiled=compiled)


@pytest.mark.parametrize("method", ["rk4", "dop853"])
@pytest.mark.parametrize("limits", [None, (-0.1, 0.1)])
def test_actions_in_long_chains_are_pythons(method: str, limits: Any, monkeypatch: Any) -> None:
    """Their energies are recursions."""
    model = chain(rolled.ROLLED_FROM, **({} if limits is None else {"limits": limits}))
    kick = pb.Event("kick", lambda t, q, v: np.sin(40 * t), action=lambda t, q, v: (0.98 * q, 0.5 * v))
    options: dict[str, Any] = {"method": method, "events": [kick], "sample": 0.02}
    slow, fast, counts = both(monkeypatch, model, 0.3, 0.02 * np.cos(np.arange(model.nq)), None, **options)
    assert counts[1] == 0 < counts[0]
    assert_same_events(fast, slow, 1e-8)


@pytest.mark.parametrize("method", ["rk4", "dop853"])
def test_quaternions_after_an_action_are_unit(method: str, monkeypatch: Any) -> None:
    build = pb.Builder("top", gravity=(0, 0, -9.81))
    build.body("top", 1.0, com=(0, 0, 0.2), inertia=(0.02, 0.03, 0.01))
    build.joint("ball", "spherical", "world", "top")
    turned = np.array([0.3, 0.1, 0.0, 0.0])
    push = pb.Event("push", lambda t, q, v: np.sin(9 * t), action=lambda t, q, v: (q + turned, 0.9 * v))
    slow, fast, counts = both(monkeypatch, build.model(), 1.5, None, [1.0, 2.0, 9.0], method=method, events=[push])
    assert counts == [4, 0]
    np.testing.assert_allclose(np.linalg.norm(fast.q, axis=1), 1.0, atol=1e-12)
    assert_same_events(fast, slow, 1e-9)


def test_events_at_one_time_act_in_their_order(monkeypatch: Any) -> None:
    """Twice as fast and one more is not one more and twice as fast."""
    double = pb.Event("double", lambda t, q, v: t - 0.2, action=lambda t, q, v: (q, 2 * v))
    more = pb.Event("more", lambda t, q, v: t - 0.2, action=lambda t, q, v: (q, v + 1.0))
    for events, speed in (([double, more], 2 * -2.0 + 1), ([more, double], 2 * (-2.0 + 1))):
        _, run, counts = both(monkeypatch, block(), 0.3, [0.0], [0.0], method="rk4", events=events)
        assert counts == [1, 0]
        np.testing.assert_allclose(run.v[-1], speed - 1.0, atol=1e-9)


def test_actions_under_a_sampled_controller_are_pythons(monkeypatch: Any) -> None:
    model, q, v = random_tree(6)
    turn = pb.Event("turn", lambda t, q, v: np.sin(17 * t), action=lambda t, q, v: (q, -0.7 * v))
    law = lambda: pb.controllers.Sampled(pb.PD(model, 0.2 * np.ones(model.nq), 5.0, 0.5), 0.013, 0.004)  # noqa: E731
    slow, fast, counts = both(monkeypatch, model, 1.0, q, v, controller=law, method="rk4", events=[turn])
    assert counts[1] == 0 < counts[0]
    assert_same_events(fast, slow, 1e-9)


def test_a_casadi_function_is_an_action(monkeypatch: Any) -> None:
    t, q, v = casadi.SX.sym("t"), casadi.SX.sym("q"), casadi.SX.sym("v")
    height: Any = casadi.Function("height", [t, q, v], [q])
    thrown: Any = casadi.Function("bounce", [t, q, v], [q, -0.8 * v])
    floor = pb.Event("floor", height, -1, action=thrown)
    slow, fast, counts = both(monkeypatch, block(), 2.6, [1.25], [0.0], method="rk4", events=[floor])
    assert counts == [4, 0]
    assert_same_events(fast, slow)
    python = pb.simulate(block(), 2.6, [1.25], [0.0], method="rk4", events=[floor], compiled=False)
    np.testing.assert_allclose(fast.q, python.q, atol=1e-9)


def test_an_action_that_is_no_expression_is_called_at_its_events_only_and_compiled_steps_go_on(
    monkeypatch: Any,
) -> None:
    times: list[float] = []

    def act(t: float, q: np.ndarray, v: np.ndarray) -> Any:
        times.append(t)
        return q, -0.8 * v

    floor = pb.Event("floor", lambda t, q, v: q[0], direction=-1, action=act)
    python = pb.simulate(block(), 2.6, [1.25], [0.0], method="rk4", events=[floor], compiled=False)
    times.clear()
    with monkeypatch.context() as m:
        for name in ("rates", "accelerate"):  # what steps in Python call
            m.setattr("polybody.simulation.problem.Problem." + name, _never(name), raising=False)
        run = pb.simulate(block(), 2.6, [1.25], [0.0], method="rk4", events=[floor])
    np.testing.assert_allclose(times, [0.5, 1.3, 1.94, 2.452], atol=1e-9)
    np.testing.assert_allclose(run.q, python.q, atol=1e-9)


def _never(name: str) -> Any:
    def called(*args: Any, **options: Any) -> Any:
        raise AssertionError(f"{name} was called")

    return called


def test_actions_that_may_do_more_than_compute_are_not_expressions() -> None:
    model, box = block(), {"count": 0}
    array = np.zeros(3)

    def notes(t: Any, q: Any, v: Any) -> Any:
        LOG.append(t)
        return q, v

    def counts(t: Any, q: Any, v: Any) -> Any:
        box["count"] = box["count"] + 1
        return q, v

    def writes(t: Any, q: Any, v: Any) -> Any:
        array[0] = 1.0
        return q, v

    def knows(t: Any, q: Any, v: Any) -> Any:
        return q, v * len(box)

    def imports(t: Any, q: Any, v: Any) -> Any:
        import logging

        logging.info("now")
        return q, v

    def helps(t: Any, q: Any, v: Any) -> Any:
        return counts(t, q, v)

    for action in (notes, counts, writes, knows, imports, helps, lambda t, q, v: None, lambda t, q, v: q):
        with pytest.raises(NotCompiled):
            traced_action(action, model)
    assert not LOG
    assert box == {"count": 0}
    assert not array.any()
    assert array.flags.writeable
    assert not impure(bounce, entries=True, alone=True)
    assert "entries" in impure(bounce)
