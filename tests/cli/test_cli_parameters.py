"""Numbers of a model on the command line: `--set`, `polybody sensitivities`, and parameters of exported C."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import polybody as pb
from polybody.cli import app


def run(*words: str, code: int = 0) -> Any:
    found = CliRunner().invoke(app, list(words))
    assert found.exit_code == code, found.output
    return found


def test_the_command_gives_the_sensitivities_of_the_function() -> None:
    said = json.loads(run("sensitivities", "two-link", "lower.mass", "elbow.origin.x", "-t", "0.1", "--sample", "0.05",
                          "--q", "shoulder=0.4", "--set", "upper.mass=2.5", "--json").stdout)  # fmt: skip
    model = pb.load("two-link").with_parameters("upper.mass").parameters.at([2.5])
    q0 = np.array([0.4, 0.0])
    found = pb.sensitivities(model.with_parameters("lower.mass", "elbow.origin.x"), q0=q0, duration=0.1, sample=0.05)
    assert said["parameters"] == list(found.names)
    np.testing.assert_allclose(said["q_p"], found.q_p, atol=1e-12)
    assert "lower.mass" in run("sensitivities", "two-link", "lower.mass", "-t", "0.1").stdout


@pytest.mark.parametrize("command", ["simulate", "linearize", "sensitivities"])
def test_impossible_numbers_are_named_by_every_command(command: str, tmp_path: Path) -> None:
    words = [command, "two-link", *(["lower.mass"] if command == "sensitivities" else [])]
    words += ["-o", str(tmp_path / "run"), "-t", "0.1"] if command == "simulate" else []
    for given, text in (("lower.mass=-1", "'lower.mass' is -1 kg; expected at least 0"), ("lower.mass=nan", "finite"),
                        ("lower.mas=1", "did you mean 'lower.mass'"), ("lower.mass", "expected NAME=VALUE"),
                        ("lower.inertia.xx=50", "triangle")):  # fmt: skip
        assert text in run(*words, "--set", given, code=1).stderr


def test_numbers_set_for_a_run_are_those_of_its_model(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    run("simulate", "two-link", "--set", "lower.mass=3.5", "-t", "0.05", "-o", str(folder))
    assert any("3.5" in path.read_text() for path in folder.rglob("*.yaml"))


def test_exported_c_of_a_model_takes_parameters_from_the_command_line(tmp_path: Path) -> None:
    run("export-c", "two-link", str(tmp_path / "c"), "-q", "mass_matrix", "--parameter", "lower.mass")
    header = next((tmp_path / "c").glob("*.h")).read_text()
    assert "check_parameters(const double *parameters)" in header
