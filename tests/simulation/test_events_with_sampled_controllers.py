"""Compiled loops decide at events and keep the instants of controllers with a memory: as Python does, in one run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from decided_events import assert_same_events, both, random_tree, told
from test_compiled_memory import assert_remembered

import polybody as pb

C = pb.controllers
pytestmark = pytest.mark.filterwarnings("ignore::polybody.errors.PolybodyWarning")
METHODS = ("rk4", "dop853", "radau", "midpoint", "semi-implicit")


def laws(model: pb.Model) -> dict[str, Callable[[], Any]]:
    hold = C.PD(model, np.zeros(model.nq), 8.0, 0.5)
    update = lambda t, q, v, z: 0.9 * z + 0.1 * q  # noqa: E731
    noisy = lambda: C.Noisy(model, C.Sampled(hold, 0.01, 0.004), position=1e-3, velocity=1e-2, seed=5)  # noqa: E731
    path = pb.paths.quintic(model, np.zeros(model.nq), np.full(model.nq, 0.1), 1.0)
    return {
        "sampled": lambda: C.Sampled(hold, 0.013),
        "late": lambda: C.Sampled(hold, 0.01, 0.025),
        "observer": lambda: C.DisturbanceObserver(model, hold, 20.0, period=0.005),
        "integral": lambda: C.Stateful(lambda t, q, v, z: -2 * v - 20 * z, update, np.zeros(model.nq), 0.004),
        "adaptive": lambda: C.Adaptive(model, path, 5.0, 4.0, period=0.01),
        "computed torque": lambda: C.Sampled(C.ComputedTorque(model, path, 20.0, 6.0), 0.01),
        "noisy": noisy,
    }


KINDS = ("sampled", "late", "observer", "integral", "adaptive", "computed torque", "noisy")
CASES = [(kind, "rk4") for kind in KINDS] + [("late", method) for method in METHODS[1:]]


@pytest.mark.parametrize(("kind", "method"), CASES)
@pytest.mark.parametrize("seed", [3, 8])
def test_events_and_instants_of_random_trees_are_those_of_python(
    kind: str, method: str, seed: int, monkeypatch: Any
) -> None:
    model, q, v = random_tree(seed)
    made: list[Any] = []

    def law() -> Any:
        made.append(laws(model)[kind]())
        return made[-1]

    options: dict[str, Any] = {"sample": 0.01} if method in ("dop853", "radau") else {"dt": 2e-3}
    quiet = pb.Event("still", lambda t, q, v: v[0])
    options |= {"method": method, "restitution": 0.3 * (seed % 3), "events": [quiet]}
    slow, fast, counts = both(monkeypatch, model, 0.6, q, v, controller=law, **options)
    assert fast.audit.path == "compiled"
    assert counts[0] > 1
    assert counts[1] == 0
    assert_same_events(fast, slow, 1e-6 if method == "radau" else 1e-8)
    assert_remembered(made[1], made[0], 1e-6)


def slider(friction: Any = 1.0, limits: Any = None) -> pb.Model:
    build = pb.Builder("slider", gravity=(0, 0, 0))
    build.body("block", 2.0, inertia=(1, 1, 1))
    build.joint("x", "prismatic", "world", "block", axis=(1, 0, 0), friction=friction, limits=limits)
    return build.model()


@pytest.mark.parametrize("method", METHODS)
def test_forces_that_jump_break_a_block_loose_and_let_it_stick_in_one_loop(method: str, monkeypatch: Any) -> None:
    """2 kg behind friction of 1 N feel 3 N for 0.1 s, then none: 1 m/s², then −0.5 m/s² until rest."""
    model = slider()
    pulses = C.Given(model, [[0.0], [0.0], [3.0], [3.0], [0.0], [0.0]], [0.0, 0.0995, 0.0996, 0.1995, 0.1996, 9.0])
    steps = {"sample": 0.05} if method in ("dop853", "radau") else {"dt": 2e-3}
    slow, fast, counts = both(
        monkeypatch, model, 0.8, controller=lambda: C.Sampled(pulses, 0.01), method=method, **steps
    )
    assert counts[0] >= 2
    assert counts[1] == 0
    assert_same_events(fast, slow)
    assert told(fast) == [("x friction", "sticks"), ("x friction", "slips"), ("x friction", "sticks")]
    t, x = fast.t, fast.q[:, 0]
    since, after = np.clip(t - 0.1, 0, 0.1), np.clip(t - 0.2, 0, 0.2)
    exact = 0.5 * since**2 + 0.1 * after - 0.25 * after**2
    np.testing.assert_allclose(x, exact, atol=3e-4 if method == "semi-implicit" else 1e-9)


@pytest.mark.parametrize("method", ["rk4", "dop853"])
def test_an_event_at_an_instant_leaves_it_to_the_controller(method: str, monkeypatch: Any) -> None:
    """Both at one time, with a joint that sticks; and interpolants on both sides of it."""
    model = slider(friction=0.2, limits=(-0.1, 0.15))
    timed = [pb.Event("tenth", lambda t, q, v: t - 0.1), pb.Event("half", lambda t, q, v: t - 0.5)]
    slow, fast, counts = both(
        monkeypatch, model, 0.9, [0.05], [0.3], controller=lambda: C.Sampled(C.PD(model, [0.3], 30.0, 0.2), 0.05),
        method=method, events=timed, restitution=0.6, dense=True, dt=4e-3,
    )  # fmt: skip
    assert counts[0] > 4
    assert counts[1] == 0
    assert_same_events(fast, slow)
    assert [x.time for x in fast.happenings if x.name == "tenth"] == [pytest.approx(0.1, abs=1e-12)]
    times = np.linspace(0, 0.9, 73)
    for mine, other in zip(fast.at(times), slow.at(times), strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-8)


@pytest.mark.parametrize("method", ["rk4", "dop853"])
def test_hundreds_of_events_in_a_row_need_no_decision_of_python(method: str, monkeypatch: Any) -> None:
    model = slider(friction=None)
    fast_clock = pb.Event("tick", lambda t, q, v: np.sin(400 * t - 0.5))
    law = lambda: C.Sampled(C.PD(model, [0.3], 30.0, 0.2), 0.01)  # noqa: E731
    slow, fast, counts = both(
        monkeypatch, model, 2.0, controller=law, method=method, events=[fast_clock], dt=1e-3, max_step=5e-3, sample=0.1
    )
    assert len(fast.happenings) == int((800 - 0.5) / np.pi) + 1
    assert counts == [len(fast.happenings), 0]
    assert_same_events(fast, slow)
