"""What holds for every command: JSON, an example that parses, --force before files are replaced, unwrapped lines."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import polybody as pb
import polybody.cli
from polybody.cli import COMMANDS, app, states
from polybody.cli.completion import joints
from polybody.cli.examples import EXAMPLES

GROUP = typer.main.get_command(app)
NAMES = list(GROUP.commands)  # type: ignore[attr-defined]


def test_every_command_has_an_example_in_its_help() -> None:
    assert set(EXAMPLES) == set(NAMES)
    assert {name.replace("-", "_") for name in NAMES} >= set(COMMANDS)
    for name in NAMES:
        text = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "200"}).output
        assert EXAMPLES[name][0] in text


@pytest.mark.parametrize("line", [line for lines in EXAMPLES.values() for line in lines])
def test_examples_parse(line: str) -> None:
    program, name, *words = shlex.split(line)
    assert program == "polybody"
    command = GROUP.commands[name]  # type: ignore[attr-defined]
    assert command.make_context(name, words).info_name == name


@pytest.mark.parametrize("name", NAMES)
def test_every_command_prints_json_on_request(name: str) -> None:
    command = GROUP.commands[name]  # type: ignore[attr-defined]
    assert "--json" in [option for parameter in command.params for option in parameter.opts]


def test_piped_lines_are_not_wrapped() -> None:
    said = CliRunner().invoke(app, ["info", "stewart"], env={"COLUMNS": None}).output
    assert "6 degrees of freedom, 24 joint coordinates, 13 moving bodies" in said.splitlines()[0]


def test_degrees_of_freedom_are_the_mobility() -> None:
    answer = json.loads(CliRunner().invoke(app, ["info", "four-bar", "--json"]).output)
    assert (answer["degrees_of_freedom"], answer["nv"]) == (1, 3)


def test_pictures_are_not_replaced_unless_forced(tmp_path: Path) -> None:
    target = tmp_path / "arm.png"
    target.write_text("mine")
    refused = CliRunner().invoke(app, ["draw", "two-link", "-o", str(target)])
    assert (refused.exit_code, target.read_text()) == (1, "mine")
    assert "--force" in refused.stderr
    assert CliRunner().invoke(app, ["draw", "two-link", "-o", str(target), "--force"]).exit_code == 0
    assert target.read_bytes().startswith(b"\x89PNG")


def options(name: str) -> dict[str, Any]:
    """{parameter: (its type, what typer knows of it)} of the options of a command."""
    command = next(c for c in app.registered_commands if c.name == name)
    hints = get_type_hints(command.callback, include_extras=True)
    return {key: (kind.__origin__, kind.__metadata__[0]) for key, kind in hints.items()
            if hasattr(kind, "__metadata__") and isinstance(kind.__metadata__[0], typer.models.OptionInfo)}  # fmt: skip


#: options whose text is the user's own: numbers, files, names to be given
FREE = {"arg", "output", "workspace", "bode", "impedance", "admittance",
        "view", "wrench", "drive_gains", "report", "page", "name", "parameter"}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_values_of_options_complete_in_the_shell(name: str) -> None:
    for key, (kind, info) in options(name).items():
        if "str" in str(kind) and (name, key) != ("linearize", "output") and key not in FREE:
            assert info.autocompletion is not None, f"{name}: {key}"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("simulate two-link --limits s", "stop"),
        ("simulate two-link --q s", "shoulder="),
        ("linearize puma560 --q joint1=3,joint2", "joint1=3,joint2="),
        ("performance puma560 --frame dh_6", "dh_6"),
        ("export-c puma560 out -q inverse_dyn", "inverse_dynamics"),
        ("info puma560 --base flo", "floating"),
        ("identify puma560 run.csv --units q=deg,t=m", "q=deg,t=ms"),
    ],
)
def test_the_shell_is_offered(line: str, found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["polybody", *line.split()]
    monkeypatch.setenv("COMP_WORDS", " ".join(words))
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    monkeypatch.setenv("_POLYBODY_COMPLETE", "complete_bash")
    assert found in CliRunner().invoke(app, [], prog_name="polybody").output.split()


def test_completion_of_a_model_that_cannot_be_read_is_silent() -> None:
    context = GROUP.commands["loops"].make_context("loops", ["no-such-model"])  # type: ignore[attr-defined]
    assert joints(context, "") == []


@pytest.mark.parametrize("name", NAMES)
def test_whatever_writes_a_file_asks_for_force(name: str) -> None:
    """A command with an option or argument that names an output has --force."""
    writes = {"output", "target", "folder", "html", "svg", "latex", "python", "save", "report", "page",
              "write", "blocks"}  # fmt: skip
    command = GROUP.commands[name]  # type: ignore[attr-defined]
    given = {parameter.name for parameter in command.params}
    if given & writes and (name, given & writes) != ("linearize", {"output"}):
        assert "--force" in [option for parameter in command.params for option in parameter.opts], given & writes


def test_only_one_place_makes_a_console_for_answers() -> None:
    """`emit` does not wrap piped lines; nothing else in the folder prints answers (progress goes to stderr)."""
    folder = Path(str(polybody.cli.__file__)).parent
    for path in folder.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert text.count("Console(") == text.count("Console(stderr=True)") + (path.name == "output.py"), path.name


def test_piped_help_is_not_wrapped() -> None:
    """Typer's drawn help wraps at 80 columns; piped, each option is one line."""
    said = CliRunner().invoke(app, ["simulate", "--help"], env={"COLUMNS": None}).output
    assert max(map(len, said.splitlines())) > 100
    assert "│" not in said


@pytest.mark.parametrize("name", ["draw", "simulate", "linearize", "loops", "performance", "inverse", "view", "render",
                                  "grasp", "export-fmu"])  # fmt: skip
def test_a_configuration_is_given_in_the_same_way(name: str) -> None:
    command = GROUP.commands[name]  # type: ignore[attr-defined]
    assert "--q" in [option for parameter in command.params for option in parameter.opts]


def test_loops_are_closed_around_the_joints_that_are_named() -> None:
    model = pb.load("four-bar")
    q = states.configuration("--q", "crank_joint=40deg", model)
    assert q[0] == pytest.approx(np.deg2rad(40), abs=1e-12)
    assert np.abs(model.constraints.residual(q)).max() < 1e-10
    v = states.velocity("--v", "crank_joint=0.5", model, q)
    assert v[0] == pytest.approx(0.5)
    assert model.assemble_velocity(q, v) == pytest.approx(v, abs=1e-9)
