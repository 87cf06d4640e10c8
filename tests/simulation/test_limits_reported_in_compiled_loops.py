"""Limits that are reported or end a run, and events that change nothing, end no compiled loop before its time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from decided_events import assert_same_events, both, random_tree, told
from test_compiled_long_chains import chain, moving

import polybody as pb

pytestmark = pytest.mark.filterwarnings("ignore::polybody.errors.PolybodyWarning")
METHODS = ("rk4", "dop853", "radau", "midpoint", "semi-implicit")


def swinging(friction: Any = None) -> pb.Model:
    """A pendulum of two links that passes its limits again and again."""
    build = pb.Builder("swinging", gravity=(0, 0, -9.81))
    for k in range(2):
        build.body(f"b{k}", 1.0, com=(0, 0, -0.3), inertia=(0.02, 0.02, 0.01))
        parent, origin = "b0" if k else "world", np.eye(4)
        origin[2, 3] = -0.5 * k
        build.joint(f"j{k}", "revolute", parent, f"b{k}", origin, axis=(0, 1, 0), limits=(-0.2, 0.3), friction=friction)
    return build.model()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("friction", [None, 0.3])
def test_reported_limits_are_those_that_python_reports(method: str, friction: Any, monkeypatch: Any) -> None:
    options: dict[str, Any] = {"sample": 0.01} if method in ("dop853", "radau") else {"dt": 2e-3}
    quiet = pb.Event("still", lambda t, q, v: v[1])
    given = swinging(friction), 3.0, [1.0, -0.5]
    slow, fast, counts = both(monkeypatch, *given, method=method, limits="report", events=[quiet], **options)
    assert counts[0] > 12
    assert counts[1] == 0
    assert {x.detail for x in fast.happenings if "limit" in x.name} == {"reached"}
    assert_same_events(fast, slow, 1e-6)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", [3, 8])
def test_joints_stick_and_slip_under_limits_that_end_the_run(method: str, seed: int, monkeypatch: Any) -> None:
    model, q, v = random_tree(seed)
    options: dict[str, Any] = {"sample": 0.01} if method in ("dop853", "radau") else {}
    slow, fast, counts = both(monkeypatch, model, 1.0, q, v, method=method, limits="halt", **options)
    assert counts[1] <= counts[0]
    assert fast.stopped
    assert "limit at t = " in fast.stopped
    assert_same_events(fast, slow, 1e-6)


def test_a_joint_that_starts_at_a_reported_limit_is_reported_as_python_does(monkeypatch: Any) -> None:
    slow, fast, _ = both(monkeypatch, swinging(), 1.0, [0.3, -0.2], method="rk4", limits="report")
    assert_same_events(fast, slow)
    assert fast.happenings


def test_events_that_change_nothing_in_loops_and_long_chains_are_no_affair_of_python(monkeypatch: Any) -> None:
    crank = pb.load("four-bar")
    q = crank.assemble([0.5, 0, 0], hold=["crank_joint"])
    quiet = pb.Event("turns", lambda t, q, v: v[0])
    for method in ("rk4", "dop853", "semi-implicit", "radau"):
        options: dict[str, Any] = {"method": method, "events": [quiet], "limits": "report", "sample": 0.01}
        slow, fast, counts = both(monkeypatch, crank, 3.0, q, **options)
        assert counts[0] > 2
        assert counts[1] == 0
        assert_same_events(fast, slow, 1e-6)
    model = chain(limits=(-0.1, 0.1))
    q, v = moving(model)
    slow, fast, counts = both(monkeypatch, model, 0.05, q, v, method="rk4", limits="report")
    assert counts[0] > 4
    assert counts[1] == 0
    assert_same_events(fast, slow)


def test_two_reports_at_one_time_are_listed_in_the_order_of_joints(monkeypatch: Any) -> None:
    build = pb.Builder("twins", gravity=(0, 0, -10.0))
    for k in range(2):
        build.body(f"b{k}", 1.0 + k, inertia=(1, 1, 1))
        build.joint(f"z{k}", "prismatic", "world", f"b{k}", axis=(0, 0, 1), limits=(0.0, 10.0))
    fall = pb.Event("fall", lambda t, q, v: q[0] - 0.25)
    slow, fast, counts = both(monkeypatch, build.model(), 0.6, [1.25, 1.25], limits="report", events=[fall])
    assert told(fast) == [("fall", ""), ("z0 lower limit", "reached"), ("z1 lower limit", "reached")]
    assert_same_events(fast, slow)
    assert counts == [2, 0]
