"""`polybody simulate` keeps what it computed, whatever fails afterwards or in between."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import polybody as pb
from polybody.cli import app
from polybody.kernels.stepping import Loop
from polybody.studio.results import read_run

pytestmark = pytest.mark.filterwarnings("ignore::polybody.errors.PolybodyWarning")
SHORT = ("-t", "1", "--method", "rk4", "--dt", "0.1")


def failing_at(when: float, failure: BaseException) -> Callable[..., Any]:
    """A progress bar that breaks down in the middle of a run."""

    def advance(t: float) -> None:
        if t > when:
            raise failure

    @contextlib.contextmanager
    def bar(*_: Any) -> Iterator[Any]:
        yield advance

    return bar


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pictures: they are slow."""
    monkeypatch.setattr("polybody.studio.results._fill_pictures", lambda *_: None)


def simulate(folder: Path, model: str = "two-link") -> Any:
    return CliRunner().invoke(app, ["simulate", model, *SHORT, "-o", str(folder), "--json"])


@pytest.mark.usefixtures("plain")
def test_a_function_that_raises_leaves_the_run_until_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polybody.cli.simulate.progress_bar", failing_at(0.45, ValueError("pen is dry")))
    answer = simulate(tmp_path / "run")
    assert answer.exit_code == 1
    assert "pen is dry" in answer.stderr
    assert "the states computed so far are in" in answer.stderr
    record = read_run(tmp_path / "run")
    np.testing.assert_allclose(record.t, np.arange(6) * 0.1, atol=1e-12)
    assert "pen is dry" in str(record.stopped)
    assert record.options["controller"] == "none"


@pytest.mark.usefixtures("plain")
def test_any_other_error_leaves_the_run_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that is no SimulationError: here memory runs out under way."""
    calls = iter(range(10**9))
    plain = Loop.run

    def tired(self: Loop) -> int:
        if next(calls) > 3:
            raise MemoryError
        return plain(self)

    monkeypatch.setattr(Loop, "run", tired)
    answer = simulate(tmp_path / "run")
    assert isinstance(answer.exception, MemoryError)
    assert len(read_run(tmp_path / "run").t) > 1


def test_where_it_cannot_be_kept_the_first_error_is_still_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("polybody.cli.simulate.progress_bar", failing_at(0.45, ValueError("pen is dry")))
    monkeypatch.setattr("polybody.studio.results.fill_data", full)
    answer = simulate(tmp_path / "run")
    assert answer.exit_code == 1
    assert "No space left" in answer.stderr
    assert "pen is dry" in answer.stderr
    assert list(tmp_path.iterdir()) == []


def test_names_like_formulas_do_not_cost_the_run(tmp_path: Path) -> None:
    build = pb.Builder("m")
    build.body("${side}", mass=1.0, com=(0.5, 0, 0))
    build.joint("${prefix}_${side}", "revolute", "world", "${side}", axis=(0, 1, 0))
    build.model().save(tmp_path / "m.yaml")
    answer = simulate(tmp_path / "run", str(tmp_path / "m.yaml"))
    assert answer.exit_code == 0, answer.output
    files = json.loads((tmp_path / "run" / "run.json").read_text())["files"]
    assert {"joints.png", "report.html", "trajectory.csv"} <= set(files)


def test_plots_that_fail_do_not_cost_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("no fonts")

    monkeypatch.setattr("polybody.studio.plots.write_plots", broken)
    answer = simulate(tmp_path / "run")
    assert answer.exit_code == 0
    assert "no fonts" in answer.stderr
    assert len(read_run(tmp_path / "run").t) == 11


@pytest.mark.parametrize("which", ["wrench", "event", "action", "progress", "controller", "exit"])
def test_errors_carry_the_trajectory(which: str) -> None:
    """Each function that a user may give, failing after 0.45 s."""

    def late(t: float, *_: Any) -> Any:
        if t > 0.45:
            sys.exit(3) if which == "exit" else (_ for _ in ()).throw(ZeroDivisionError("late"))
        return np.zeros(2) if which in ("controller", "exit") else np.zeros(6) if which == "wrench" else 1.0

    def act(*_: Any) -> Any:
        raise ZeroDivisionError("late")

    options: dict[str, Any] = {
        "wrench": {"wrenches": {pb.load("two-link").frame_names[-1]: late}},
        "event": {"events": [pb.Event("e", late)]},
        "action": {"events": [pb.Event("e", lambda t, *_: t - 0.45, action=act)]},
        "progress": {"progress": late},
    }.get(which, {"controller": late})
    with pytest.raises(SystemExit if which == "exit" else pb.SimulationError) as caught:
        pb.simulate(pb.load("two-link"), 1.0, method="rk4", dt=0.1, **options)
    kept: Any = getattr(caught.value, "trajectory", None)
    assert kept is not None
    assert 0.3 < kept.t[-1] < 0.6
