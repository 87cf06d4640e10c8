"""`polybody study FILE.yaml`: sweeps and Monte Carlo; `polybody study plot FOLDER`: their figures."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from polybody.cli.output import JsonOption, emit


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("study")(study)


def study(
    words: Annotated[
        list[str], typer.Argument(metavar="FILE | plot FOLDER", help="A study file, or 'plot' and a results folder.")
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Output folder; default: beside the study file.")
    ] = None,
    cluster: Annotated[str | None, typer.Option(help="'auto' or the address of a Ray cluster.")] = None,
    workers: Annotated[int | None, typer.Option(help="Number of processes on this machine.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume an interrupted study.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Report the number of cases, time and size.")] = False,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of study files.")] = False,
    allow_code: Annotated[bool, typer.Option("--allow-code", help="Allow the file to name a Python function.")] = False,
    form: Annotated[str, typer.Option("--format", help="Files of the results: arrow or parquet.")] = "arrow",
    force: Annotated[bool, typer.Option("--force", help="Replace existing plots; results are never replaced.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Run a study from a YAML file, on this machine or on a Ray cluster, or plot its results.

    `polybody study payloads.yaml --dry-run` reports the number of cases and estimates the time. --resume continues an
    interrupted study; finished chunks are not computed again.
    """
    from polybody.errors import InputError
    from polybody.interrupts import as_interrupt

    if schema or words == ["schema"]:
        import json

        from polybody.studies.file import schema as published

        typer.echo(json.dumps(published(), indent=2))
        return
    if words[0] == "run":
        words = words[1:]
    if words[:1] == ["plot"]:
        if len(words) != 2:
            raise InputError("plot needs one folder: polybody study plot FOLDER")
        _plot(Path(words[1]), output, force, as_json)
        return
    if len(words) != 1:
        raise InputError(f"expected one study file, got {len(words)}")
    from polybody.studies.file import read_study

    found = read_study(words[0], allow_code=allow_code)
    folder = output or found.folder
    if dry_run:
        answer = found.study.dry_run(workers=workers)
        emit(answer, as_json, lambda console: _said(console, answer, folder))
        return
    progress = _Progress(as_json, len(found.study))
    try:
        with as_interrupt():
            with progress:
                results = found.study.run(folder, workers=workers, cluster=cluster, resume=resume, progress=progress,
                                          format=form)
            failures = results.failures()
            answer = {"folder": str(folder), "cases": len(found.study), "failed": len(failures),
                      "complete": results.complete, "summaries": results.summaries()}  # fmt: skip
    except KeyboardInterrupt:
        done = f"{progress.finished:,} of {len(found.study):,} cases are in {folder}"
        typer.echo(f"interrupted: {done}; continue with\n  {_again()}", err=True)
        raise typer.Exit(130) from None
    emit(answer, as_json, lambda console: _finished(console, answer, failures))


def _again() -> str:
    """The command that continues: this one with --resume."""
    given = ["polybody", *sys.argv[1:]]
    return shlex.join(given if "--resume" in given else [*given, "--resume"])


def _plot(folder: Path, output: Path | None, force: bool, as_json: bool) -> None:
    from polybody.errors import InputError
    from polybody.studies import StudyResults
    from polybody.studio.study_plots import plot_study

    target = output or folder / "plots"
    if target.is_dir() and any(target.iterdir()) and not force:
        raise InputError(f"{target}: exists; give another --output, or --force to replace plots")
    written = [str(path) for path in plot_study(StudyResults(folder), target)]
    emit({"written": written}, as_json, lambda console: console.print("\n".join(written)))


class _Progress:
    """A bar with rate, time left and failures, on stderr; nothing where JSON is printed."""

    def __init__(self, quiet: bool, cases: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self.bar = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(), console=Console(stderr=True), disable=quiet,
        )  # fmt: skip
        self.task = self.bar.add_task("cases", total=cases, rate="")
        self.finished = 0

    def __enter__(self) -> _Progress:
        self.bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.stop()

    def __call__(self, finished: int, cases: int, failed: int) -> None:
        self.finished = finished
        speed = self.bar.tasks[0].speed
        rate = f"{speed:,.0f} per s" if speed else ""
        self.bar.update(self.task, completed=finished, rate=f"{rate} {failed} failed" if failed else rate)


def _said(console: Any, answer: dict[str, Any], folder: Path) -> None:
    cases = f"{answer['cases']:,} {'case' if answer['cases'] == 1 else 'cases'}"
    console.print(f"{answer['name']}: {cases} of {answer['kind']}, {answer['design']}")
    console.print(f"varied: {', '.join(answer['varied'])}")
    chunks = f"{answer['chunks']:,} {'chunk' if answer['chunks'] == 1 else 'chunks'} of up to {answer['chunk']:,}"
    console.print(f"{chunks}, {answer['batched']}, {answer['by']}")
    start = f" ({answer['start']:.1f} s to start processes)" if answer["start"] else ""
    console.print(f"about {answer['cases_per_second']:,.0f} cases per second here: {answer['seconds']:,.1f} s{start}, "
                  f"{answer['bytes'] / 1e6:,.1f} MB in {folder}")  # fmt: skip


def _finished(console: Any, answer: dict[str, Any], failures: list[tuple[int, str]]) -> None:
    console.print(f"{answer['cases']:,} {'case' if answer['cases'] == 1 else 'cases'} in {answer['folder']}, "
                  f"{answer['failed']} failed")  # fmt: skip
    for case, error in failures[:5]:
        console.print(f"  case {case}: {error}")
    for name, found in list(answer["summaries"].items())[:12]:
        if found.get("count"):
            console.print(f"  {name}: mean {found['mean']:.6g}, deviation {found['deviation']:.3g}, "
                          f"5 % {found['5 %']:.6g}, 95 % {found['95 %']:.6g}")  # fmt: skip


__all__ = ["register"]
