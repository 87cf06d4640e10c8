"""Names from files reach terminals, file names, tables and plots harmlessly; units must fit their coordinates."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import polybody as pb
from polybody.cli import app
from polybody.description.naming import file_name, printable
from polybody.studio.record import along_path, from_trajectory
from polybody.studio.results import read_run, write_run


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == code, (result.output, result.exception)
    return result.output


def mechanism(path: Path, joint: str = "j", name: str = "x", more: str = "", kind: str = "revolute") -> str:
    quoted = json.dumps
    path.write_text(
        f"polybody: 1\nname: {quoted(name)}\nbodies: {{a: {{mass: 1, com: [0.1, 0, 0], inertia: [1, 1, 1]}}}}\n"
        f"joints: {{{quoted(joint)}: {{kind: {kind}, parent: world, child: a, axis: y{more}}}}}\n",
        encoding="utf-8",
    )
    return str(path)


def two_joints(first: str, second: str) -> pb.Model:
    build = pb.Builder("two")
    for parent, body, joint in (("world", "a", first), ("a", "b", second)):
        build.body(body, 1, com=(0.1, 0, 0), inertia=(1, 1, 1))
        build.joint(joint, "revolute", parent, body, axis=(0, 1, 0))
    return build.model()


@pytest.mark.parametrize("name", ["x[/nope]", "[bold]x", ":smile:", "x\\[y"])
def test_marks_of_rich_in_names_are_printed_as_they_stand(name: str, tmp_path: Path) -> None:
    file = mechanism(tmp_path / "m.yaml", joint=name, name=name)
    assert name in run("info", file)
    assert "sound" in run("check", file)
    run("linearize", file)
    assert "no file" in run("info", f"{tmp_path}/{name}.yaml", code=1)


@pytest.mark.parametrize("name", ["a\x1b[2Jb", "a\nb", "a\x9b2J", "a\u202eb", "\x07", "a\u2028b"])
def test_control_characters_in_names_are_refused_and_never_printed(name: str, tmp_path: Path) -> None:
    for file in (mechanism(tmp_path / "m.yaml", joint=name), mechanism(tmp_path / "n.yaml", name=name)):
        told = run("check", file, code=1)
        assert "control character" in told
        assert not set(name) & set(told) - set("ab[2J\n")
    with pytest.raises(pb.InputError, match="control character"):
        two_joints(name, "j")
    assert printable(f"x{name}\ty\n").isprintable() or "\n" in printable(name + "\n")


@pytest.mark.parametrize("name", ["../../../elsewhere/x", "/etc/x", "..", "a/b", "C:\\x", "nul", "", "a\0b", "." * 300])
def test_file_names_of_models_stay_in_their_folder(name: str, tmp_path: Path) -> None:
    made = file_name(name)
    assert made
    assert (tmp_path / made).resolve().parent == tmp_path.resolve()
    assert not set(made) & set('/\\:\0 ')
    assert made.lower() != "nul"


def test_a_models_name_is_no_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = tmp_path / "a" / "b"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    file = mechanism(inside / "m.yaml", name="../../../elsewhere/x")
    for command in (("simulate", file, "-t", "0.1"), ("inverse", file, "--to", "1", "--samples", "3")):
        folder = Path(json.loads(run(*command, "--json"))["folder"])
        assert folder.resolve().parent == (inside / "runs").resolve()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a"]


@pytest.fixture
def record():
    model = two_joints("x,y", "x;y")
    path = pb.paths.cycloidal(model, np.zeros(2), np.array([1.0, 2.0]), 1.0)
    return along_path(model, path, np.linspace(0, 1, 5), {})


def test_columns_of_joints_with_commas_are_all_there(record, tmp_path: Path) -> None:
    folder = write_run(record, tmp_path / "run")
    with open(folder / "trajectory.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert float(rows[-1]["q:x,y"]) == 1.0
    assert float(rows[-1]["q:x;y"]) == 2.0
    assert len(rows[0]) == 1 + 3 * 2 + 2
    again = run("inverse", "--path", str(folder / "trajectory.csv"), "planar-3r", "-o", str(tmp_path / "x"))
    assert "report" in again  # a header with quotes is a header


def test_force_replaces_only_what_a_run_wrote(record, tmp_path: Path) -> None:
    foreign = tmp_path / "wandb"
    (foreign / "src").mkdir(parents=True)
    (foreign / "run.json").write_text('{"wandb": 1}')
    (foreign / "thesis.txt").write_text("all of it")
    with pytest.raises(pb.InputError, match="not the folder of a run"):
        write_run(record, foreign, force=True)
    folder = write_run(record, tmp_path / "run")
    write_run(record, folder, force=True)
    for extra in ("thesis.txt", "src"):
        (folder / extra).mkdir() if extra == "src" else (folder / extra).write_text("all of it")
        with pytest.raises(pb.InputError, match=f"holds '{extra}', which the run did not write"):
            write_run(record, folder, force=True)
        (folder / extra).rmdir() if extra == "src" else (folder / extra).unlink()
    write_run(record, folder, force=True)
    assert (foreign / "thesis.txt").read_text() == "all of it"


def test_dollars_in_names_do_not_lose_a_run(tmp_path: Path) -> None:
    model = two_joints("${prefix}_${side}", r"\frac{$")
    folder = write_run(from_trajectory(pb.simulate(model, 0.1)), tmp_path / "run")
    assert (folder / "report.html").is_file()
    assert read_run(folder).model.joint_names == ["${prefix}_${side}", r"\frac{$"]
    pb_file = mechanism(tmp_path / "m.yaml", name="a$b$_{$")
    run("draw", pb_file, "-o", str(tmp_path / "m.png"))


@pytest.mark.parametrize("failing", ["polybody.studio.plots.write_plots", "polybody.studio.report.report_text"])
def test_a_run_is_kept_where_its_plots_fail(
    record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("mathtext")

    monkeypatch.setattr(failing, fail)
    with pytest.warns(pb.PolybodyWarning, match="could not be made .ValueError: mathtext.; the data are kept"):
        folder = write_run(record, tmp_path / "run")
    np.testing.assert_array_equal(read_run(folder).q, record.q)
    monkeypatch.setattr(failing, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        write_run(record, tmp_path / "interrupted")
    np.testing.assert_array_equal(read_run(tmp_path / "interrupted").q, record.q)


def test_units_must_fit_their_coordinates(tmp_path: Path) -> None:
    slide = mechanism(tmp_path / "slide.yaml", kind="prismatic")
    turn = mechanism(tmp_path / "turn.yaml")
    out = ("-t", "0.01", "-o", str(tmp_path / "run"), "--force")
    assert "joint 'j': '90deg' is of the dimension angle, expected a length" in run(
        "simulate", slide, "--q", "j=90deg", *out, code=1
    )
    assert "dimension angle" in run("simulate", slide, "--q", "90deg", *out, code=1)
    assert "dimension length" in run("simulate", turn, "--q", "j=10cm", *out, code=1)
    assert "dimension angle" in run("linearize", slide, "--velocity", "90deg", code=1)
    assert "a number without unit" in run("linearize", turn, "--torque", "90deg", code=1)
    assert "not a finite number" in run("simulate", turn, "--q", "nan", *out, code=1)
    run("simulate", slide, "--q", "j=10cm", *out)
    assert read_run(tmp_path / "run").q[0, 0] == 0.1
    run("simulate", turn, "--q", "j=90deg", "--v", "1deg", *out)
    assert "dimension angle" in run("simulate", "stanford-arm", "--q", "joint3=90deg", *out, code=1)


@pytest.mark.parametrize("text", ["j/0", "j - 1/(k - k)", "j/(k - k)**2", "asin(j)/(sin(k) - sin(k))"])
def test_a_relation_that_divides_by_zero_everywhere_is_refused(text: str, tmp_path: Path) -> None:
    """It was a ZeroDivisionError of the first question to the model."""
    model = two_joints("j", "k")
    model.save(tmp_path / "m.yaml")
    with open(tmp_path / "m.yaml", "a", encoding="utf-8") as stream:
        stream.write(f"relations: {{r: '{text}'}}\n")
    assert "divides by zero" in run("check", str(tmp_path / "m.yaml"), code=1)
    with pytest.raises(pb.InputError, match="divides by zero"):
        pb.load(tmp_path / "m.yaml")
