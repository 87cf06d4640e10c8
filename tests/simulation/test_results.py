"""A run's folder holds the run, appears whole or not at all, and is never written over by accident."""

from __future__ import annotations

import csv
import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
from simulation_cases import moving, satellite, shipped
from typer.testing import CliRunner

import polybody as pb
from polybody.cli import app
from polybody.studio import results
from polybody.studio.record import along_path, from_trajectory
from polybody.studio.results import read_run, write_run

FILES = {"trajectory.npz", "trajectory.csv", "run.json", "model.yaml", "report.html"} | {
    f"{name}.{suffix}" for name in ("joints", "speeds", "torques", "energies") for suffix in ("png", "svg")
}


@pytest.fixture(scope="module")
def run() -> pb.Trajectory:
    model = satellite()
    return pb.simulate(model, 0.2, *moving(model), sample=0.02)


def test_folder_reads_back_to_the_same_run(run: pb.Trajectory, tmp_path: Path) -> None:
    folder = write_run(from_trajectory(run), tmp_path / "runs" / "one", source="satellite")
    assert {path.name for path in folder.iterdir()} == FILES
    back = read_run(folder)
    for name in ("t", "q", "v", "tau", "work"):
        np.testing.assert_array_equal(getattr(back, name), getattr(run, name))
    assert back.model.mechanism.digest == run.model.mechanism.digest
    facts = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    assert facts["model"]["hash"] == run.model.mechanism.digest
    assert facts["audit"]["steps"] == run.audit.steps
    assert facts["versions"]["polybody"] == pb.__version__
    with open(folder / "trajectory.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(run)
    assert float(rows[-1]["v:hinge"]) == run.v[-1, -1]
    assert float(rows[3]["q:root_joint.qw"]) == run.q[3, 6]


def test_report_needs_nothing_from_outside(run: pb.Trajectory, tmp_path: Path) -> None:
    folder = write_run(from_trajectory(run), tmp_path / "one")
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert not re.findall(r"""(?:src|href)=["'](?!data:)""", page)
    named = page.replace("http://www.w3.org/2000/svg", "")  # the name of a namespace, which nothing fetches
    assert "http" not in re.sub(r"base64,[A-Za-z0-9+/=]+", "", named)
    assert page.count("<img") == 1  # snapshots; the plots are drawn by the page itself
    assert "chart.draw" in page
    assert "energy audit passed" in page


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders without pictures: drawing them takes longer than everything else together."""

    def nothing(record: object, folder: Path) -> list[Path]:
        for name in FILES:
            if name.endswith(("png", "svg")):
                (folder / name).write_bytes(b"")
        return []

    monkeypatch.setattr("polybody.studio.plots.write_plots", nothing)
    monkeypatch.setattr("polybody.studio.report.report_text", lambda *_: "")


@pytest.mark.usefixtures("quick")
def test_existing_folder_is_kept_unless_forced(run: pb.Trajectory, tmp_path: Path) -> None:
    folder = write_run(from_trajectory(run), tmp_path / "one")
    before = (folder / "run.json").read_bytes()
    with pytest.raises(pb.InputError, match="--force"):
        write_run(from_trajectory(run), folder)
    assert (folder / "run.json").read_bytes() == before
    write_run(from_trajectory(run), folder, force=True)
    assert {path.name for path in folder.iterdir()} == FILES
    other = tmp_path / "mine"
    other.mkdir()
    (other / "thesis.txt").write_text("all of it")
    with pytest.raises(pb.InputError, match="not the folder of a run"):
        write_run(from_trajectory(run), other, force=True)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.usefixtures("quick")
def test_failure_half_way_leaves_nothing_behind(
    run: pb.Trajectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_run(from_trajectory(run), tmp_path / "one")
    before = sorted(path.name for path in folder.iterdir())

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(results, "facts_of", full)
    with pytest.raises(pb.InputError, match="No space left"):
        write_run(from_trajectory(run), folder, force=True)
    with pytest.raises(pb.InputError, match="No space left"):
        write_run(from_trajectory(run), tmp_path / "two")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one"]
    assert sorted(path.name for path in folder.iterdir()) == before


def test_folder_that_cannot_be_written_is_said(run: pb.Trajectory, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(pb.InputError, match="cannot be written"):
        write_run(from_trajectory(run), tmp_path / "file" / "run")
    with pytest.raises(pb.InputError, match="is a file"):
        write_run(from_trajectory(run), tmp_path / "file")


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("damage", ["run.json", "trajectory.npz"])
def test_damaged_folder_is_said(run: pb.Trajectory, tmp_path: Path, damage: str) -> None:
    folder = write_run(from_trajectory(run), tmp_path / "one")
    (folder / damage).write_bytes((folder / damage).read_bytes()[:40])
    with pytest.raises(pb.InputError, match="cannot be read as a run"):
        read_run(folder)
    with pytest.raises(pb.InputError, match="not the folder of a run"):
        read_run(tmp_path)


@pytest.mark.usefixtures("quick")
def test_torques_of_a_path_make_a_folder_too(tmp_path: Path) -> None:
    model = shipped("planar-3r")
    path = pb.paths.cycloidal(model, np.zeros(3), np.ones(3), 2.0)
    record = along_path(model, path, np.linspace(0, 2, 21), {"path": "cycloidal"})
    back = read_run(write_run(record, tmp_path / "inverse"))
    np.testing.assert_array_equal(back.tau, model.inverse_dynamics(*path(record.t)))
    assert back.kind == "inverse dynamics"


def invoke(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == code, result.output
    return result.output if code else result.stdout


def test_command_simulate_then_plot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    answer = json.loads(
        invoke("simulate", "double-pendulum", "-t", "0.5", "--q", "pivot=60deg", "--controller", "hold", "--json")
    )
    assert answer["folder"] == os.path.join("runs", "double-pendulum")
    assert answer["audit"]["trusted"]
    record = read_run(answer["folder"])
    assert abs(record.q[0, 0] - np.pi / 3) < 1e-12
    assert np.abs(record.q[-1] - record.q[0]).max() < 1e-6, "held"
    files = json.loads(invoke("plot", answer["folder"], "-o", "plots", "--json"))["files"]
    assert len(files) == 8
    assert all(Path(file).stat().st_size > 1000 for file in files)
    assert "exists" in invoke("simulate", "double-pendulum", code=1)
    assert "expected one of none" in invoke("simulate", "two-link", "--controller", "lqr", code=1)


@pytest.mark.usefixtures("quick")
def test_command_inverse_gives_sahas_torques(tmp_path: Path) -> None:
    folder = str(tmp_path / "inverse")
    answer = json.loads(
        invoke("inverse", "stanford-arm", "--q", "0,90deg,0,0,0,0", "--to", "60deg,60deg,0.1,60deg,60deg,60deg",
               "--samples", "5", "-o", folder, "--json")
    )  # fmt: skip
    np.testing.assert_allclose(answer["last"], (0, 16.7365471459, -29.9205, 0, 0, 0), atol=1e-9)
    again = str(tmp_path / "again")
    invoke("inverse", "stanford-arm", "--path", f"{folder}/trajectory.csv", "-o", again, "--samples", "5")
    assert read_run(again).t[-1] == 10.0
    assert "--to is missing" in invoke("inverse", "stanford-arm", "-o", str(tmp_path / "x"), code=1)
    assert "expected cycloidal" in invoke("inverse", "two-link", "--path", "zigzag", "-o", str(tmp_path / "x"), code=1)
