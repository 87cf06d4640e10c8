"""The commands that describe: models, info, check, convert, schema, draw."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from polybody.cli import app
from polybody.description.mechanism_file.reader import schema
from polybody.description.reading import read_description, shipped_models
from polybody.description.records import same_description


def run(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "200", "TERM": "dumb"})
    assert result.exit_code == code, result.output
    return result


def test_models_lists_every_shipped_model() -> None:
    text = run("models").stdout
    answer = json.loads(run("models", "--json").stdout)
    assert [row["name"] for row in answer] == list(shipped_models())
    assert all(row["name"] in text for row in answer)
    assert all(row["about"] for row in answer)
    shown = {row["name"]: (row["nv"], row["loops"], row["mobility"]) for row in answer}
    assert (shown["puma560"], shown["stewart"], shown["bricard"]) == ((6, 0, 6), (24, 6, 6), (5, 1, 1))


def test_info_shows_tree_slices_and_masses() -> None:
    text = run("info", "humanoid").stdout
    assert "29 degrees of freedom, 29 joint coordinates, 13 moving bodies, 48.2 kg" in text
    assert "└── left_foot  left_ankle: universal" in text
    assert "10:14" in text
    answer = json.loads(run("info", "humanoid", "--json").stdout)
    joint = next(j for j in answer["joints"] if j["name"] == "left_shoulder")
    assert (joint["q"], joint["v"], joint["parent"], joint["child"]) == ([10, 14], [9, 12], "torso", "left_upper_arm")
    assert "left_sole" in answer["frames"]


def test_info_of_an_unknown_model_offers_the_nearest() -> None:
    assert "no model 'stanfordarm' (did you mean 'stanford-arm'?)" in run("info", "stanfordarm", code=1).stderr


BAD = """\
polybody: 1
bodies:
  a: {mass: -1}
  b: {mass: 1, inertia: [1, 1, 3], colour: red}
joints:
  j: {kind: revolute, parent: world, child: a, axis: [0, 0, 2]}
  k: {kind: revolute, parent: aa, child: b}
"""


def test_check_reports_all_problems_at_once_with_lines(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(BAD, encoding="utf-8")
    text = run("check", str(path), code=1).stdout
    for line, part in (
        (3, "body 'a': mass is -1 kg"),
        (4, "body 'b': no key 'colour'"),
        (4, "body 'b': its inertia breaks the triangle inequality"),
        (6, "joint 'j': the axis has length 2, expected 1: write (0, 0, 1)"),
        (7, "joint 'k': its parent 'aa' is not a body (did you mean 'a'?)"),
    ):
        assert f"bad.yaml:{line}: {part}" in text
    answer = json.loads(run("check", str(path), "--json", code=1).stdout)
    assert answer["errors"] == 5
    assert answer["warnings"] == 1


def test_triangle_breaking_inertia_is_an_error_only_under_strict(tmp_path: Path) -> None:
    path = tmp_path / "brick.yaml"
    path.write_text(
        "polybody: 1\nbodies:\n  a: {mass: 1, inertia: [1, 1, 3]}\n"
        "joints:\n  j: {kind: revolute, parent: world, child: a}\n",
        encoding="utf-8",
    )
    assert "warning: " in run("check", str(path)).stdout
    assert "error: " in run("check", str(path), "--strict", code=1).stdout
    assert run("check", "stanford-arm", "--strict").stdout == "stanford-arm: sound\n"


def test_convert_keeps_every_bit_and_never_replaces_unasked(tmp_path: Path) -> None:
    path = tmp_path / "arm.yaml"
    run("convert", "six-dof-arm", str(path))
    assert same_description(read_description(path), read_description("six-dof-arm"))
    assert "exists already; use --force" in run("convert", "two-link", str(path), code=1).stderr
    assert same_description(read_description(path), read_description("six-dof-arm"))
    run("convert", "two-link", str(path), "--force")
    assert read_description(path).name == "two-link"


def test_nothing_is_written_where_reading_failed(tmp_path: Path) -> None:
    source, target = tmp_path / "bad.yaml", tmp_path / "good.yaml"
    source.write_text(BAD, encoding="utf-8")
    assert "error: " in run("convert", str(source), str(target), code=1).stderr
    assert not target.exists()
    said = run("convert", "two-link", "x.txt", code=1).stderr
    assert "polybody writes .yaml, .yml, .urdf and .xml (MJCF) files" in " ".join(said.split())


def test_schema_is_printed() -> None:
    assert json.loads(run("schema").stdout) == schema()


@pytest.mark.parametrize("model", ["stanford-arm", "humanoid", "two-link", "double-pendulum"])
def test_draw_writes_a_picture(model: str, tmp_path: Path) -> None:
    path = tmp_path / "picture.png"
    run("draw", model, "-o", str(path))
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG")
    assert len(data) > 20_000  # an empty figure is a few kilobytes


def test_draw_refuses_what_it_cannot_draw(tmp_path: Path) -> None:
    assert "--q has 2 numbers, expected 6" in run("draw", "puma560", "-o", str(tmp_path / "p.png"), "--q", "1,2",
                                                   code=1).stderr  # fmt: skip
    assert "'a' is not a number" in run("draw", "two-link", "-o", str(tmp_path / "p.png"), "--q", "a,1", code=1).stderr
    assert "a drawing is one of .png" in run("draw", "puma560", "-o", str(tmp_path / "p.txt"), code=1).stderr
    assert list(tmp_path.iterdir()) == []


LINK = '<link name="{}"><inertial><mass value="{}"/><inertia ixx="1" iyy="1" izz="{}"/></inertial></link>'
JOINT = '<joint name="{}" type="{}"><parent link="{}"/><child link="{}"/><axis xyz="0 0 1"/></joint>'
PENDULUM = LINK.format("base", 1, 1), LINK.format("arm", 1, 1), JOINT.format("j", "continuous", "base", "arm")


def urdf(folder: Path, *lines: str) -> str:
    path = folder / "robot.urdf"
    path.write_text("\n".join(['<robot name="r">', *lines, "</robot>"]), encoding="utf-8")
    return str(path)


def test_check_judges_masses_of_a_urdf_whose_joints_are_wrong_and_sorts_by_line(tmp_path: Path) -> None:
    """What reading finds and what the numbers are worth comes in one report, in the order of the file."""
    file = urdf(
        tmp_path,
        LINK.format("base", 1, 1),
        LINK.format("arm", -1, 1),
        LINK.format("hand", 1, 5),
        JOINT.format("j", "revolut", "base", "arm"),
        JOINT.format("k", "revolute", "amr", "hand"),
    )
    answer = json.loads(run("check", file, "--json", code=1).stdout)
    found = [(p["source"].rpartition(":")[2], p["severity"], p["message"]) for p in answer["problems"]]
    assert [line for line, _, _ in found] == ["3", "4", "5", "6"]
    assert "mass is -1 kg" in found[0][2]
    assert found[1][1] == "warning"
    assert "triangle" in found[1][2]
    assert "revolut" in found[2][2]
    assert "no parent link 'amr' (did you mean 'arm'?)" in found[3][2]


@pytest.mark.parametrize(("base", "dof"), [("fixed", 1), ("planar", 4), ("floating", 7), ("flying", 7)])
def test_check_info_count_and_convert_take_every_base(tmp_path: Path, base: str, dof: int) -> None:
    file = urdf(tmp_path, *PENDULUM)
    assert "sound" in run("check", file, "--base", base).stdout
    assert json.loads(run("info", file, "--base", base, "--json").stdout)["nv"] == dof
    assert json.loads(run("count", file, "--base", base, "--json").stdout)["degrees_of_freedom"] == dof
    target = str(tmp_path / "robot.yaml")
    run("convert", file, target, "--base", base)
    assert json.loads(run("info", target, "--json").stdout)["nv"] == dof


def test_check_explains_a_base_that_is_none(tmp_path: Path) -> None:
    assert "did you mean 'flying'?" in run("check", "two-link", "--base", "flyng", code=1).stdout
    assert "has no mass to float" in run("check", "two-link", "--base", "floating", code=1).stdout


def test_info_counts_one_body_in_the_singular(tmp_path: Path) -> None:
    file = urdf(tmp_path, *PENDULUM)
    assert "1 degree of freedom, 1 joint coordinate, 1 moving body," in run("info", file).stdout
