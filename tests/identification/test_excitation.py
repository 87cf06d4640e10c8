"""Exciting motions: gradients are exact, limits are kept, and parameters show better than along a random motion."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import polybody as pb
from loop_states import massive
from polybody.cli import app
from polybody.identification.excitation import _Goal, _Limits
from polybody.identification.series import Series, _marks


def check_gradients(model: pb.Model, criterion: str, limits: _Limits, series: Series, size: float) -> None:
    rng = np.random.default_rng(0)
    x = limits.start(rng)
    x.reshape(len(series.own), -1)[:, 1:] *= size
    goal = _Goal(model, series, pb.base_parameters(model), criterion)
    direction, h = rng.normal(size=len(x)), 1e-6

    def penalty(y):
        return np.sum(np.minimum(limits.values(y), 0.0) ** 2)

    assert penalty(x) > 0
    for value, gradient in ((goal.value, goal.gradient), (penalty, limits.penalty_gradient)):
        difference = (value(x + h * direction) - value(x - h * direction)) / (2 * h)
        np.testing.assert_allclose(gradient(x) @ direction, difference, rtol=2e-5)


@pytest.mark.parametrize("criterion", ["condition", "determinant"])
def test_gradients_equal_differences(criterion: str) -> None:
    model = pb.load("puma560")
    series = Series(model, 10.0, 3, 20)
    box = {"link6": ((-0.1, -0.1, -0.1), (0.1, 0.1, 0.1))}
    check_gradients(model, criterion, _Limits(model, series, 0.05, 0.1, np.full(6, 3.0), box, 10.0), series, 1.7)


@pytest.mark.parametrize(("name", "frame", "effort"), [("five-bar", "A", 0.1), ("delta", "tool", np.inf)])
def test_gradients_with_loops_equal_differences(name: str, frame: str, effort: float) -> None:
    model = massive(name)
    series = Series(model, 10.0, 2, 14)
    box = {frame: ((-0.02, -0.02, -0.02), (0.02, 0.02, 0.02))}
    limits = _Limits(model, series, 0.05, 0.1, np.full(model.nv, effort), box, 10.0)
    for criterion in ("condition", "determinant"):
        check_gradients(model, criterion, limits, series, 1.2)


def test_motion_keeps_its_limits_and_shows_parameters_better() -> None:
    model = pb.load("two-link")
    found = pb.excitation(model, speed=2.0, acceleration=8.0, harmonics=3, samples=30, iterations=25, tries=1)
    assert found.condition < 0.8 * found.start_condition
    assert np.abs(found.v).max() <= 2.0
    assert np.abs(found.a).max() <= 8.0
    rates = np.gradient(found.q, found.t, axis=0)
    np.testing.assert_allclose(rates[2:-2], found.v[2:-2], atol=2e-3)


def test_loops_are_excited_along_their_own_coordinates() -> None:
    model = pb.load("four-bar")
    found = pb.excitation(model, speed=2.0, harmonics=2, samples=10, iterations=1, tries=1, rate=2)
    assert np.abs(model.constraints.residual(found.q)).max() < 1e-8
    assert np.abs(found.v[:, list(model.engine.independent)]).max() <= 2.0
    np.testing.assert_allclose(found.v, model.assemble_velocity(found.q, found.v), atol=1e-9)


@pytest.mark.parametrize("name", ["five-bar", "stewart"])
def test_dense_samples_are_followed_from_mark_to_mark(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = pb.load(name)
    series = Series(model, 10.0, 2, 300)
    x = _Limits(model, Series(model, 10.0, 2, 40), 2.0, 100.0, np.inf, {}, 10.0).start(np.random.default_rng(2))
    asked: list[int] = []
    closed = Series._closed
    monkeypatch.setattr(Series, "_closed", lambda self, q, u: asked.append(np.ndim(u)) or closed(self, q, u))
    q, v, _ = series.motion(x)
    assert asked.count(2) == 1  # those between marks
    assert asked.count(1) < 7 + 300
    u = series.own_motion(x)[0]
    spread = np.abs(u - u[0]).max()
    assert spread > 0.1  # the first sample alone would be a poor guess
    np.testing.assert_array_equal(q[:, series.places], u)
    for k in range(1, 300):
        np.testing.assert_allclose(q[k], closed(series, q[k - 1], u[k]), atol=1e-11)
    rates = model.difference(q[:-2], q[2:]) / (series.t[2] - series.t[0])
    np.testing.assert_allclose(rates, v[1:-1], atol=3e-3 * np.abs(v).max())


def test_marks_are_close_or_neighbours() -> None:
    u = np.array([[0.0], [0.01], [0.02], [0.03], [0.2], [0.21], [0.19], [0.2]])
    assert _marks(u).tolist() == [0, 2, 3, 4, 7]
    assert _marks(u[:1]).tolist() == [0]


def test_command_line_writes_a_motion(tmp_path) -> None:
    arguments = ["excite", "two-link", "--speed=2", "--tries=1", "--iterations=5", "--harmonics=2", "--json"]
    result = CliRunner().invoke(app, [*arguments, "-o", str(tmp_path / "motion.csv")])
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert answer["condition"] > 1
    assert (tmp_path / "motion.csv").read_text().startswith("t,q1,q2,v1,v2,a1,a2")
    for box in ("lower:0,1", "lower:0,0,0,-1,1,1", "elsewhere:0,0,0,1,1,1"):
        refused = CliRunner().invoke(app, [*arguments, f"--workspace={box}"])
        assert refused.exit_code == 1
        assert "workspace" in refused.stderr
    with pytest.raises(pb.InputError, match="criterion"):
        pb.excitation(pb.load("two-link"), criterion="beauty")


@pytest.mark.parametrize(("options", "message"), [
    ({"harmonics": 0}, "harmonics is 0"),
    ({"tries": 0}, "tries is 0"),
    ({"period": 0.0}, "period is 0"),
    ({"rate": np.nan}, "rate is nan"),
    ({"speed": [1.0, 2.0, 3.0]}, "one number, or 2"),
    ({"acceleration": -1.0}, "acceleration must be positive"),
])  # fmt: skip
def test_impossible_options_are_refused_by_name(options, message) -> None:
    with pytest.raises(pb.InputError, match=message):
        pb.excitation(pb.load("two-link"), **options)
