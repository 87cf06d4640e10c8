"""`polybody inverse MODEL --path …`: the torques of a path, into a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polybody.cli.arguments import BaseOption, ModelArgument
from polybody.cli.output import JsonOption, emit
from polybody.cli.run_options import DurationOption
from polybody.cli.states import configuration
from polybody.names import counted

if TYPE_CHECKING:
    from polybody.model.model import Model

KINDS = ("cycloidal", "quintic", "trapezoidal")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("inverse")(inverse)


def inverse(
    model: ModelArgument,
    path: Annotated[
        str, typer.Option("--path", "-p", help="cycloidal, quintic, trapezoidal, or a .csv of times and q.")
    ] = "cycloidal",
    start: Annotated[
        str, typer.Option("--q", help="First configuration: a name, 'joint=30deg,…', or all of q.")
    ] = "neutral",
    end: Annotated[str, typer.Option("--to", help="Last configuration, as --q.")] = "",
    duration: DurationOption = 10.0,
    samples: Annotated[int, typer.Option(help="Number of samples along the path.")] = 501,
    output: Annotated[str, typer.Option("--output", "-o", help="Folder; default runs/MODEL-inverse.")] = "",
    force: Annotated[bool, typer.Option("--force", help="Replace the folder of an earlier run.")] = False,
    base: BaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compute the joint forces along a path by inverse dynamics; write plots, data and a report to a folder."""
    import numpy as np

    from polybody.description.naming import file_name
    from polybody.errors import InputError
    from polybody.model.load import load
    from polybody.studio.record import along_path
    from polybody.studio.results import check_folder, write_run

    if samples < 2:
        raise InputError(f"--samples is {samples}; expected at least 2")
    loaded = load(model, base=base)
    folder = check_folder(output or f"runs/{file_name(loaded.name)}-inverse", force)
    motion, first = path_of(loaded, path, start, end, duration)
    times = first + np.linspace(0, motion.duration, samples)
    record = along_path(loaded, motion, times, {"path": path, "duration": motion.duration, "samples": samples})
    write_run(record, folder, force=force, source=model)
    largest = np.abs(record.tau).max(axis=0)
    answer = {"folder": str(folder), "samples": samples, "largest": largest, "last": record.tau[-1]}

    def draw(console: Any) -> None:
        from polybody.studio.record import v_labels

        for name, value in zip(v_labels(loaded), largest, strict=True):
            console.print(f"  {name}: at most {value:.6g}", markup=False)
        console.print(f"report: {folder}/report.html", soft_wrap=True, markup=False)

    emit(answer, as_json, draw)


def path_of(model: Model, path: str, start: str, end: str, duration: float) -> tuple[Any, float]:
    """(the path, its first time)."""
    from polybody import paths
    from polybody.errors import InputError

    if path.lower().endswith(".csv"):
        recorded = paths.recorded(model, *read_table(path, model.nq))
        return recorded, recorded.start
    if path not in KINDS:
        raise InputError(f"--path is {path!r}; expected {', '.join(KINDS)}, or a .csv file with columns t, q …")
    if not end:
        raise InputError(f"--to is missing: the configuration in which the {path} path ends")
    ends = [configuration(flag, text, model) for flag, text in (("--q", start), ("--to", end))]
    return getattr(paths, path)(model, *ends, duration), 0.0


def read_table(path: str, nq: int) -> tuple[Any, Any]:
    """Times and configurations of a .csv: t in the first column, q in the next nq; a line of names may come first."""
    import numpy as np

    from polybody.description.files import read_text
    from polybody.description.limits import TABLE_BYTES
    from polybody.errors import InputError

    lines = read_text(Path(path), TABLE_BYTES, "table").splitlines()
    names = any(c.isalpha() and c not in "eE" for c in lines[0])
    try:
        table = np.loadtxt(lines[1:] if names else lines, delimiter=",", ndmin=2)
    except ValueError as error:
        raise InputError(f"{path}: cannot be read as a table of numbers ({error})") from None
    if table.shape[1] < 1 + nq:
        raise InputError(f"{path}: has {table.shape[1]} columns; expected t and {counted(nq, 'number')} of q")
    return table[:, 0], table[:, 1 : 1 + nq]


__all__ = ["register"]
