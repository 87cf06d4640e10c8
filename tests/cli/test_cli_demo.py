"""`polybody demo`, which `make run` calls: both machines move, and nothing is replaced without being told."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from polybody.cli import app


def test_demo_moves_a_robot_and_a_parallel_machine(tmp_path: Path) -> None:
    runner = CliRunner()
    done = runner.invoke(app, ["demo", "--output", str(tmp_path), "--json"])
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    assert set(answer) == {"stanford-arm", "stewart"}
    assert all(part["trusted"] for part in answer.values())
    assert len(answer["stewart"]["largest_forces"]) == 6
    assert {told["unit"] for told in answer["stewart"]["largest_forces"].values()} == {"N"}
    for name in answer:
        assert {"report.html", "trajectory.csv", "torques.png"} <= {p.name for p in (tmp_path / name).iterdir()}
    again = runner.invoke(app, ["demo", "--output", str(tmp_path)])
    assert again.exit_code == 1
    assert "--force" in again.stderr
