"""What holds for every command: JSON, an example that parses, --force before files are replaced, unwrapped lines."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from polybody.cli import COMMANDS, app
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
