"""The package as installed: its version, its licence, what importing it costs, and its command line."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import polybody
from lines import code_lines
from polybody.cli import COMMANDS, app, application, wanted
from polybody.cli.failures import FriendlyGroup
from polybody.cli.output import JsonOption, emit, plain
from polybody.errors import InputError, PolybodyWarning

ROOT = Path(__file__).resolve().parent.parent
HEAVY = ("sympy", "matplotlib", "llvmlite", "casadi", "mujoco", "trimesh", "websockets", "control")


def run_python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter that sees this polybody."""
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path, "TERM": "dumb", **environment},
        timeout=300,
        check=False,
    )


def modules_after(statement: str) -> set[str]:
    done = run_python("-c", f"{statement}\nimport sys, json\nprint(json.dumps(list(sys.modules)))")
    assert done.returncode == 0, done.stderr
    return {name.partition(".")[0] for name in json.loads(done.stdout.splitlines()[-1])}


@pytest.mark.parametrize("statement", ["import polybody", "import polybody.cli"])
def test_import_leaves_heavy_packages_unloaded(statement: str) -> None:
    assert not modules_after(statement) & set(HEAVY)


def test_version_is_the_same_in_package_and_pyproject() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert polybody.__version__ == project["version"]


def test_license_is_bsd_and_ships() -> None:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert text.startswith("BSD 3-Clause License")
    assert "polybody contributors" in text
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["license"] == "BSD-3-Clause"
    assert "LICENSE" in project["license-files"]


def test_citation_names_the_five_papers() -> None:
    yaml = pytest.importorskip("yaml")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == polybody.__version__
    first_authors = {paper["authors"][0]["family-names"] for paper in citation["references"]}
    assert first_authors == {"Tokad", "Freeman", "Swain", "Saha", "Kwatny"}


def test_module_and_version_option_print_the_version() -> None:
    done = run_python("-m", "polybody", "--version")
    assert (done.returncode, done.stdout.strip()) == (0, f"polybody {polybody.__version__}")


def test_help_lists_every_command_and_shell_completion() -> None:
    done = run_python("-m", "polybody", "--help", COLUMNS="200")
    assert done.returncode == 0, done.stderr
    assert "--install-completion" in done.stdout
    registered = {command.name for command in app.registered_commands} | {
        group.name for group in app.registered_groups
    }
    assert None not in registered, "every command is registered under an explicit name"
    assert len(registered) >= len(COMMANDS)
    for name in registered:
        assert re.search(rf"\b{name}\b", done.stdout), name


def small_app(act: Callable[[], object]) -> typer.Typer:
    """An app of the same making as polybody's, whose one command `act`s."""
    small = typer.Typer(cls=FriendlyGroup, pretty_exceptions_enable=False)

    @small.callback()
    def root() -> None:
        pass

    @small.command("act")
    def command(as_json: JsonOption = False) -> None:
        emit(act(), as_json, lambda console: console.print("drawn"))

    return small


def refuse() -> None:
    raise InputError("joint 'elbow': the axis is zero; give three numbers of unit length")


def test_deliberate_error_is_a_message_and_exit_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POLYBODY_TRACEBACK", raising=False)
    result = CliRunner().invoke(small_app(refuse), ["act"])
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    assert result.stderr == "error: joint 'elbow': the axis is zero; give three numbers of unit length\n"
    assert result.stdout == ""


def test_traceback_is_kept_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLYBODY_TRACEBACK", "1")
    assert isinstance(CliRunner().invoke(small_app(refuse), ["act"]).exception, InputError)


def test_a_bug_is_not_disguised_as_bad_input() -> None:
    result = CliRunner().invoke(small_app(lambda: 1 // 0), ["act"])
    assert isinstance(result.exception, ZeroDivisionError)


def test_polybody_warning_is_one_line_on_stderr() -> None:
    warn = small_app(lambda: warnings.warn("link 'tip' has no mass", PolybodyWarning, stacklevel=2))
    result = CliRunner().invoke(warn, ["act"])
    assert result.exit_code == 0
    assert result.stderr == "warning: link 'tip' has no mass\n"


def test_json_output_holds_arrays_slices_and_missing_limits() -> None:
    answer = {"q": np.eye(2), "slice": slice(1, 4), "limit": np.inf, "n": np.int64(3), "name": "α"}
    result = CliRunner().invoke(small_app(lambda: answer), ["act", "--json"])
    expected = {"q": [[1.0, 0.0], [0.0, 1.0]], "slice": [1, 4], "limit": None, "n": 3, "name": "α"}
    assert json.loads(result.stdout) == expected
    assert plain(answer) == expected
    assert CliRunner().invoke(small_app(lambda: answer), ["act"]).stdout == "drawn\n"


def test_the_extra_named_all_holds_every_other() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert extras["all"] == [f"polybody[{','.join(name for name in extras if name not in ('all', 'docs', 'dev'))}]"]
    assert "polybody[all,docs]" in extras["dev"]


def test_lines_of_code_leave_out_blank_lines_comments_and_docstrings() -> None:
    text = '"""Doc.\n\nmore"""\n\n# y\nx = [\n    1,  # one\n\n]\n\ndef f():\n    """Says."""\n    return """a\nb"""\n'
    assert code_lines(text) == 6


def test_one_command_is_registered_where_the_line_begins_with_it_and_all_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in COMMANDS:
        command = name.replace("_", "-")
        assert wanted([command, "--help"]) == [name]
        assert list(typer.main.get_group(application([name])).commands) == [command]
    for line in ([], ["--help"], ["--version"], ["infos", "puma560"], ["--install-completion"]):
        assert wanted(line) == COMMANDS
    monkeypatch.setenv("_POLYBODY_COMPLETE", "complete_bash")
    assert wanted(["info"]) == COMMANDS


def test_commands_that_only_show_a_model_import_neither_casadi_nor_llvm() -> None:
    code = ("import sys; sys.argv = ['polybody', 'info', 'puma560', '--json']; from polybody.cli import main\n"
            "try: main()\nexcept SystemExit as end: code = end.code\n"
            "print(code, *(x in sys.modules for x in ('casadi', 'llvmlite', 'polybody.cli.simulate')))")  # fmt: skip
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.splitlines()[-1] == "0 False False False"
