"""Runs whose events compiled loops decide, beside those whose events Python decides."""

from __future__ import annotations

from typing import Any

import numpy as np

import polybody as pb
from polybody.simulation.compiled.switching import Decisions
from polybody.simulation.switches import Switches


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


def both(monkeypatch: Any, *given: Any, controller: Any = None, **options: Any) -> tuple[Any, Any, list[int]]:
    """(the run by Python's decisions, by those of loops, events that Python has dealt with in each).

    `controller()` makes one for each run.
    """
    act, counts, runs = Switches.act, [0, 0], []

    for on in (False, True):
        def counted(self: Switches, *args: Any, on: bool = on) -> Any:
            counts[on] += 1
            return act(self, *args)

        with monkeypatch.context() as m:
            m.setattr(Decisions, "active", property(lambda self, on=on: on and self.allowed))
            m.setattr(Switches, "act", counted)
            law = None if controller is None else controller()
            runs.append(pb.simulate(*given, controller=law, **options))
    return runs[0], runs[1], counts


def told(run: Any) -> list[tuple[str, str]]:
    return [(x.name, x.detail.split(",")[0].split(" at ")[0]) for x in run.happenings]


def assert_same_events(fast: Any, slow: Any, atol: float = 1e-9) -> None:
    """The same list of events at the same times, and the same motion."""
    assert told(fast) == told(slow)
    np.testing.assert_allclose([x.time for x in fast.happenings], [x.time for x in slow.happenings], atol=1e-8)
    assert fast.q.shape == slow.q.shape
    np.testing.assert_allclose(fast.q, slow.q, atol=atol)
    np.testing.assert_allclose(fast.work, slow.work, atol=atol)
    assert fast.audit.trusted == slow.audit.trusted
