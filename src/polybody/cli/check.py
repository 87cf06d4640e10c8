"""`polybody check FILE`: every problem of a file at once."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polybody.cli.arguments import ArgOption, BaseOption, ModelArgument, given_arguments
from polybody.cli.output import JsonOption, emit

if TYPE_CHECKING:
    from rich.console import Console

    from polybody.description.problems import Problem
    from polybody.description.records import Description


def register(app: typer.Typer) -> None:
    @app.command("check")
    def check(
        file: ModelArgument,
        strict: Annotated[bool, typer.Option("--strict", help="Count warnings as errors.")] = False,
        base: BaseOption = None,
        arg: ArgOption = None,
        as_json: JsonOption = False,
    ) -> None:
        """Check a file: list all problems with line numbers, and the force elements; exit code 1 on errors."""
        from polybody.description.modelled import modelled

        description, problems = scanned(file, base, given_arguments(arg))
        severities = ["error" if strict else problem.severity for problem in problems]
        errors = severities.count("error")
        answer: dict[str, Any] = {
            "file": file,
            "errors": errors,
            "warnings": len(problems) - errors,
            "problems": [
                {"severity": severity, "message": problem.message, "source": problem.source}
                for severity, problem in zip(severities, problems, strict=True)
            ],
            "acts": [] if description is None or errors else modelled(description),
        }
        emit(answer, as_json, lambda console: show(console, answer))
        if errors:
            raise typer.Exit(1)


def all_problems(file: str, base: str | None, arguments: dict[str, str] | None = None) -> list[Problem]:
    """Problems of reading, of the description, and of its joints; readers' warnings are among them."""
    return scanned(file, base, arguments)[1]


def scanned(
    file: str, base: str | None, arguments: dict[str, str] | None = None
) -> tuple[Description | None, list[Problem]]:
    """The description of a file where it could be read, and `all_problems`."""
    from polybody.description.problems import WARNING, Problem
    from polybody.errors import PolybodyWarning
    from polybody.model.load import scan_based
    from polybody.model.validation import description_problems

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        description, problems = scan_based(file, base, arguments)
    for warning in caught:
        if issubclass(warning.category, PolybodyWarning):
            problems.append(Problem(WARNING, str(warning.message)))
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    if description is not None:
        problems += description_problems(description)
    return description, sorted(problems, key=line_of)


def line_of(problem: Problem) -> int:
    """The line a problem is at, 0 where it is of the whole file."""
    line = (problem.source or "").rpartition(":")[2]
    return int(line) if line.isdigit() else 0


def show(console: Console, answer: dict[str, Any]) -> None:
    from rich.text import Text

    from polybody.description.naming import printable

    colors = {"error": "red", "warning": "yellow"}
    for problem in answer["problems"]:
        place = f"{problem['source']}: " if problem["source"] else ""
        severity = problem["severity"]
        told = printable(place + problem["message"])
        console.print(Text.assemble((f"{severity}: ", colors[severity]), told), soft_wrap=True)
    for line in answer["acts"]:
        console.print(Text(printable(line)), soft_wrap=True)
    errors, others = answer["errors"], answer["warnings"]
    counted = f"{errors} error{'s' * (errors != 1)}, {others} warning{'s' * (others != 1)}"
    console.print(Text(printable(f"{answer['file']}: {counted if answer['problems'] else 'sound'}")), soft_wrap=True)


__all__ = ["all_problems", "register"]
