"""`polybody plot RUN`: the plots of a run's folder, made again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from polybody.cli.output import ForceOption, JsonOption, emit


def register(app: typer.Typer) -> None:
    @app.command("plot")
    def plot(
        run: Annotated[str, typer.Argument(metavar="RUN", help="Folder of a run.")],
        output: Annotated[str, typer.Option("--output", "-o", help="Output folder; default: the run's folder.")] = "",
        force: ForceOption = False,
        as_json: JsonOption = False,
    ) -> None:
        """Plot positions, velocities, joint forces and energies of a run as PNG and SVG.

        In the run's own folder its plots are made again; in another folder, existing plots need --force.
        """
        from polybody.errors import InputError
        from polybody.studio.plots import FORMATS, write_plots
        from polybody.studio.results import read_run

        record = read_run(run)
        folder = Path(output or run)
        there = sorted(path.name for path in folder.glob("*") if path.suffix in FORMATS)
        if there and not force and folder.resolve() != Path(run).resolve():
            raise InputError(f"{folder}: has {there[0]} already; choose another folder, or overwrite with --force")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            files = [str(path) for path in write_plots(record, folder)]
        except OSError as error:
            raise InputError(f"{folder}: cannot be written ({error.strerror or error})") from None
        emit({"files": files}, as_json, lambda c: c.print("\n".join(files), soft_wrap=True, markup=False))


__all__ = ["register"]
