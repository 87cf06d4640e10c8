"""Events that compiled loops decide themselves are those that Python decides: same motion, same list of events."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polybody as pb
from polybody.simulation.compiled.switching import Decisions
from polybody.simulation.switches import Switches

pytestmark = pytest.mark.filterwarnings("ignore::polybody.errors.PolybodyWarning")
METHODS = ("rk4", "dop853", "radau", "midpoint", "semi-implicit")


def random_tree(seed: int) -> tuple[pb.Model, np.ndarray, np.ndarray]:
    """Joints with limits, dry friction, both or neither."""
    rng = np.random.default_rng(seed)
    build, count = pb.Builder("tree", gravity=tuple(6 * rng.normal(size=3))), int(rng.integers(3, 6))
    names = ["world"]
    for k in range(count):
        mass, com = float(rng.uniform(0.3, 2)), tuple(0.2 * rng.normal(size=3))
        build.body(f"body{k}", mass, com=com, inertia=(0.05, 0.05, 0.06))
        parent = names[int(rng.integers(max(0, len(names) - 2), len(names)))]
        more: dict[str, Any] = {}
        if rng.random() < 0.6:
            coulomb, static = float(rng.uniform(0.2, 2)), float(rng.uniform(2, 3))
            more["friction"] = {"coulomb": coulomb, "static": static, "stribeck": 0.2, "viscous": 0.05}
        if rng.random() < 0.7:
            more["limits"] = (-float(rng.uniform(0.2, 1.5)), float(rng.uniform(0.2, 1.5)))
        axis, kind = rng.normal(size=3), "revolute" if rng.random() < 0.7 else "prismatic"
        place = (0.0, 0.0, 0.0) if parent == "world" else tuple(0.3 * rng.normal(size=3))
        build.joint(f"joint{k}", kind, parent, f"body{k}", place, axis=tuple(axis / np.linalg.norm(axis)), **more)
        names.append(f"body{k}")
    model = build.model()
    return model, rng.uniform(-0.15, 0.15, model.nq), 2 * rng.normal(size=model.nv)


def both(monkeypatch: Any, *given: Any, **options: Any) -> tuple[Any, Any, list[int]]:
    """(the run by Python's decisions, by those of loops, events that Python has dealt with in each)."""
    act, counts, runs = Switches.act, [0, 0], []

    def expect(self: Decisions, at_hand: Any, on: bool) -> None:
        self._wanted = on and self.possible and self.allowed

    for on in (False, True):
        def counted(self: Switches, *args: Any, on: bool = on) -> Any:
            counts[on] += 1
            return act(self, *args)

        with monkeypatch.context() as m:
            m.setattr(Decisions, "expect", lambda self, at_hand, on=on: expect(self, at_hand, on))
            m.setattr(Switches, "act", counted)
            runs.append(pb.simulate(*given, **options))
    return runs[0], runs[1], counts


def told(run: Any) -> list[tuple[str, str]]:
    return [(x.name, x.detail.split(",")[0].split(" at ")[0]) for x in run.happenings]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", [2, 3, 6, 8, 10])
def test_loops_decide_at_events_as_python_does_on_random_trees(seed: int, method: str, monkeypatch: Any) -> None:
    model, q, v = random_tree(seed)
    adaptive = method in ("dop853", "radau")
    options: dict[str, Any] = {"method": method, "restitution": 0.3 * (seed % 3)}
    options |= {"sample": 0.01} if adaptive else {}
    slow, fast, counts = both(monkeypatch, model, 1.0, q, v, **options)
    assert counts[1] < counts[0]
    assert told(fast) == told(slow)
    np.testing.assert_allclose([x.time for x in fast.happenings], [x.time for x in slow.happenings], atol=1e-8)
    assert fast.q.shape == slow.q.shape
    np.testing.assert_allclose(fast.q, slow.q, atol=1e-6 if method == "radau" else 1e-9)
    np.testing.assert_allclose(fast.work, slow.work, atol=1e-6 if method == "radau" else 1e-9)
    assert fast.audit.trusted == slow.audit.trusted


@pytest.mark.parametrize("method", ["rk4", "dop853"])
def test_dense_output_of_a_bouncing_block_follows_its_parabolas(method: str, monkeypatch: Any) -> None:
    build = pb.Builder("block", gravity=(0, 0, -10.0))
    build.body("block", 1.0, inertia=(1, 1, 1))
    build.joint("z", "prismatic", "world", "block", axis=(0, 0, 1), limits=(0.0, 100.0))
    slow, run, counts = both(monkeypatch, build.model(), 2.6, [1.25], [0.0], method=method, restitution=0.8, dense=True)
    assert counts == [4, 1]
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
