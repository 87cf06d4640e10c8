"""Events that compiled loops decide themselves are those that Python decides: same motion, same list of events."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from decided_events import assert_same_events, both, random_tree, told

import polybody as pb

pytestmark = pytest.mark.filterwarnings("ignore::polybody.errors.PolybodyWarning")
METHODS = ("rk4", "dop853", "radau", "midpoint", "semi-implicit")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", [2, 3, 6, 8, 10])
def test_loops_decide_at_events_as_python_does_on_random_trees(seed: int, method: str, monkeypatch: Any) -> None:
    model, q, v = random_tree(seed)
    adaptive = method in ("dop853", "radau")
    options: dict[str, Any] = {"method": method, "restitution": 0.3 * (seed % 3)}
    options |= {"sample": 0.01} if adaptive else {}
    slow, fast, counts = both(monkeypatch, model, 1.0, q, v, **options)
    assert counts[1] < counts[0]
    assert_same_events(fast, slow, 1e-6 if method == "radau" else 1e-9)


@pytest.mark.parametrize("method", ["rk4", "dop853"])
def test_dense_output_of_a_bouncing_block_follows_its_parabolas(method: str, monkeypatch: Any) -> None:
    build = pb.Builder("block", gravity=(0, 0, -10.0))
    build.body("block", 1.0, inertia=(1, 1, 1))
    build.joint("z", "prismatic", "world", "block", axis=(0, 0, 1), limits=(0.0, 100.0))
    slow, run, counts = both(monkeypatch, build.model(), 2.6, [1.25], [0.0], method=method, restitution=0.8, dense=True)
    assert counts == [4, 0]
    hits, speed = [0.5], 5.0
    while hits[-1] < 2.6:
        speed *= 0.8
        hits.append(hits[-1] + 2 * speed / 10)
    np.testing.assert_allclose([x.time for x in run.happenings], hits[:-1], atol=1e-9)
    t = np.linspace(0.51, 2.59, 37)
    k = np.searchsorted(hits, t) - 1
    since = t - np.array(hits)[k]
    exact = 5.0 * 0.8 ** (k + 1) * since - 5 * since**2
    np.testing.assert_allclose(np.array([run.at(x)[0][0] for x in t]), exact, atol=1e-9)
    assert run.audit.trusted
    assert abs(run.work[-1] - slow.work[-1]) < 1e-12


def test_events_that_change_nothing_are_listed_and_actions_are_called(monkeypatch: Any) -> None:
    model, q, v = random_tree(3)
    called: list[float] = []

    def act(t: float, q: np.ndarray, v: np.ndarray) -> None:
        called.append(t)

    quiet = pb.Event("still", lambda t, q, v: v[0])
    loud = pb.Event("half", lambda t, q, v: t - 0.5, action=act)
    slow, fast, counts = both(monkeypatch, model, 1.0, q, v, events=[quiet, loud], restitution=0.3)
    assert told(fast) == told(slow)
    assert any(x.name == "still" for x in fast.happenings)
    np.testing.assert_allclose(called, [0.5, 0.5], atol=1e-12)
    assert counts[1] < counts[0]


@pytest.mark.parametrize("method", ["rk4", "dop853"])
def test_joints_that_fall_freely_neither_rest_at_their_limits_nor_hit_them_where_another_bounces(
    method: str, monkeypatch: Any
) -> None:
    rng = np.random.default_rng(0)
    build = pb.Builder("falling", gravity=(0, 0, -9.81))
    build.body("base", 2.0, inertia=(0.1, 0.1, 0.1))
    build.joint("z", "prismatic", "world", "base", axis=(0, 0, 1))
    for k, axis in enumerate([(1, 0, 0), (0, 1, 0), (1, 0, 0)]):
        parent = f"link{k - 1}" if k else "base"
        build.body(f"link{k}", 1.0, com=tuple(0.2 * rng.normal(size=3)), inertia=(0.05, 0.05, 0.06))
        place = tuple(0.1 * rng.normal(size=3))
        build.joint(f"joint{k}", "revolute", parent, f"link{k}", place, axis=axis, limits=(-0.3, 0.3))
    build.body("ball", 1.0, inertia=(1, 1, 1))
    build.joint("ball", "prismatic", "world", "ball", axis=(0, 0, 1), limits=(0.0, 10.0))
    q = [0.0, 0.3, -0.3, 0.3, 0.05]
    slow, fast, counts = both(monkeypatch, build.model(), 0.55, q, method=method, restitution=0.7)
    assert counts[1] < counts[0]
    assert told(fast) == told(slow)
    assert {x.name for x in fast.happenings} == {"ball lower limit"}
    assert "rests" not in " ".join(x.detail for x in fast.happenings[:-1])
