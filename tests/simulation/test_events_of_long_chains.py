"""Compiled loops decide at events of long chains by recursions: impacts, rests and slips are those of Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import test_compiled_long_chains as chains
from decided_events import assert_same_events, both

import polybody as pb
from polybody.simulation.compiled import rolled

C = pb.controllers
pytestmark = pytest.mark.filterwarnings("ignore::polybody.errors.PolybodyWarning")
N = 70


def fast_chain(monkeypatch: Any, floating: bool = False) -> tuple[pb.Model, Any, Any]:
    """A branched chain with stops and dry friction in every seventh joint, and a state that reaches them soon."""
    monkeypatch.setattr(chains, "N", N)
    limits = (-0.25, 0.25)
    model = chains.chain(limits=limits, friction=0.4, floating=floating)
    assert model.nv >= rolled.ROLLED_FROM
    q, v = chains.moving(model)
    for joint in model.mechanism.joints[10::7] if floating else model.mechanism.joints[3::7]:
        q[joint.q] = np.clip(q[joint.q], -0.24, 0.24)
    return model, q, 4 * v


@pytest.mark.parametrize("floating", [False, True])
@pytest.mark.parametrize("method", ["rk4", "dop853", "semi-implicit"])
def test_events_of_long_chains_are_decided_as_python_does(method: str, floating: bool, monkeypatch: Any) -> None:
    model, q, v = fast_chain(monkeypatch, floating)
    options: dict[str, Any] = {"rtol": 1e-6, "atol": 1e-8} if method == "dop853" else {"dt": 5e-4}
    slow, fast, counts = both(monkeypatch, model, 0.04, q, v, method=method, restitution=0.3, **options)
    assert fast.audit.path == "compiled"
    assert counts[0] > 20
    assert counts[1] <= 2
    assert_same_events(fast, slow, 1e-6)
    assert floating or any("hit" in x.detail for x in fast.happenings)


def test_joints_of_long_chains_rest_at_stops_stick_and_slip_under_a_sampled_controller(monkeypatch: Any) -> None:
    model, q, v = fast_chain(monkeypatch)
    law = lambda: C.Sampled(C.PD(model, np.zeros(model.nq), 30.0, 3.0), 4e-3)  # noqa: E731
    push = {f"b{N - 1}": [0.0, 0, 0, 0, 20.0, 30.0]}
    slow, fast, counts = both(monkeypatch, model, 0.05, q, v, controller=law, wrenches=push, method="rk4", dt=5e-4)
    assert counts[0] > 20
    assert counts[1] <= 2
    assert_same_events(fast, slow, 1e-6)


@pytest.mark.parametrize("method", ["rk4", "dop853"])
def test_events_of_long_chains_in_contact_are_decided_as_python_does(method: str, monkeypatch: Any) -> None:
    """Contacts have potential energy, which a joint put at its limit changes: straight lines beside the recursions."""
    monkeypatch.setattr(chains, "N", N)
    model = chains.chain(limits=(-0.25, 0.25), friction=0.4, contacts=True)
    q, v = chains.moving(model)
    q[3::7] = np.clip(q[3::7], -0.24, 0.24)
    assert min(model.pose(q, f"b{k}")[2, 3] for k in (N // 7, N - 1)) < 0.05  # in contact
    options: dict[str, Any] = {"rtol": 1e-7, "atol": 1e-9} if method == "dop853" else {"dt": 2e-4}
    slow, fast, counts = both(monkeypatch, model, 0.03, q, 4 * v, method=method, restitution=0.3, **options)
    assert counts[0] > 10
    assert counts[1] <= 1
    assert_same_events(fast, slow, 1e-6)
