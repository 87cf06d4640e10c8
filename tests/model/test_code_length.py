"""Loops of many velocities have code where few motions pass; others, and runs of them, are answered by numbers."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb
from machines import four_bar_chain
from polybody.model import code_length
from polybody.model.code_length import is_short, is_short_for


def ring(links: int) -> pb.Model:
    """A closed planar chain, hung up at two points: links − 2 motions."""
    build, half = pb.Builder("ring", gravity=(0, -9.81, 0)), np.pi / links
    angles = np.array([np.pi / 2 - half, *[-2 * half] * (links - 1)]) / 2
    for k, angle in enumerate(angles):
        origin = np.eye(4)
        origin[0, 3] = 0.1 if k else 0.0
        build.body(f"b{k}", 1.0, (0.05, 0, 0), (1e-3, 1e-3, 1e-3))
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        origin[:2, :2] = turn
        build.joint(f"j{k}", "revolute", f"b{k - 1}" if k else "world", f"b{k}", origin)
    directions = np.cumsum(angles)
    end, tip = np.eye(4), np.eye(4)
    end[:2, 3], tip[0, 3] = 0.1 * np.array([np.cos(directions).sum(), np.sin(directions).sum()]), 0.1
    build.loop("closed", "revolute", f"b{links - 1}", "world", tip, end)
    return build.model()


@pytest.mark.parametrize(
    ("nv", "motions", "short"), [(0, 0, False), (300, 300, True), (301, 1, True), (301, 58, False), (1001, 1, False)]
)
def test_code_is_made_for_few_motions_of_many_velocities(nv: int, motions: int, short: bool) -> None:
    assert is_short(nv, lambda: motions) is short


def test_what_rows_bear_has_code_up_to_a_number_of_velocities_alone() -> None:
    assert is_short_for("reactions:world", 300)
    assert not is_short_for("reactions:world", 301)
    assert is_short_for("forward_dynamics", 301)


def test_motions_are_counted_as_the_model_counts_them(monkeypatch) -> None:
    asked = []
    monkeypatch.setattr("polybody.model.constrained_engine.is_short", lambda nv, m: asked.append(m()) or True)
    for model in (four_bar_chain(4), ring(7)):
        assert model.engine.is_compiled  # type: ignore[attr-defined]
        assert asked[-1] == len(model.mobility().independent)
    assert asked == [1, 5]


@pytest.mark.parametrize("method", ["rk4", "dop853"])
def test_runs_of_loops_with_too_much_code_take_their_steps_in_python(monkeypatch, method: str) -> None:
    """These raised an error: that a run cannot be compiled was found out after it had been decided."""
    wanted = pb.simulate(ring(6), 0.02, method=method)
    assert wanted.audit.path == "compiled"
    monkeypatch.setattr(code_length, "ALWAYS_UP_TO", 4)
    monkeypatch.setattr(code_length, "OPERATIONS_UP_TO", 6 * 4**2 - 1)
    run = pb.simulate(ring(6), 0.02, method=method)
    assert run.audit.path == "python: 6 velocities with loops are too many for straight-line code"
    np.testing.assert_allclose(run.q, wanted.q, rtol=0, atol=1e-9)
    with pytest.raises(pb.InputError, match="too many for straight-line code"):
        pb.simulate(ring(6), 0.02, method=method, compiled=True)
    monkeypatch.setattr(code_length, "OPERATIONS_UP_TO", 6 * 4**2)
    assert pb.simulate(ring(6), 0.02, method=method).audit.path == "compiled"


def test_reactions_of_many_velocities_are_those_of_few(monkeypatch) -> None:
    q, v = np.zeros(6), np.zeros(6)
    wanted = ring(6).reactions(q, v, v)
    monkeypatch.setattr(code_length, "ALWAYS_UP_TO", 4)
    found = ring(6).reactions(q, v, v)
    assert found.keys() == wanted.keys()
    for name, wrench in found.items():
        np.testing.assert_allclose(wrench, wanted[name], atol=1e-9)
