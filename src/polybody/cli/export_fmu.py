"""`polybody export-fmu MODEL FILE.fmu`: a model for other simulation tools (FMI 3.0)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from polybody.cli.arguments import BaseOption, ModelArgument
from polybody.cli.output import JsonOption, emit


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("export-fmu")(export_fmu)


def export_fmu(
    model: ModelArgument,
    target: Annotated[Path | None, typer.Argument(metavar="FILE", help="Output file; default: model name.")] = None,
    q: Annotated[str, typer.Option("--q", help="Initial q: a name, all of q, or 'joint=value,…'.")] = "neutral",
    parameter: Annotated[
        list[str] | None,
        typer.Option("--parameter", help="Tunable parameters, e.g. 'forearm.mass' or '*.damping'; repeatable."),
    ] = None,
    step: Annotated[float, typer.Option("--step", help="Internal step of co-simulation, s.")] = 1e-3,
    source_only: Annotated[bool, typer.Option("--source-only", help="Omit the binary for this machine.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    base: BaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Export an FMU (FMI 3.0, model exchange and co-simulation), with a binary if a C compiler is available.

    Example: polybody export-fmu puma560 puma.fmu --parameter "*.damping"
    """
    from polybody.bridges.fmu import export_fmu as write
    from polybody.cli.linearize import numbers
    from polybody.description.naming import file_name
    from polybody.model.load import load

    loaded = load(model, base=base)
    variant = loaded.with_parameters(*parameter) if parameter else loaded
    start = numbers("--q", q, loaded, "q")
    path = write(variant, target or Path(f"{file_name(loaded.name)}.fmu"), q0=start, step=step, force=force,
                 binary=False if source_only else None)  # fmt: skip
    answer = {"file": str(path), "states": loaded.nq + loaded.nv, "inputs": loaded.nv,
              "parameters": list(variant.parameters.names)}  # fmt: skip
    emit(answer, as_json, lambda console: console.print(f"wrote {path}", soft_wrap=True))


__all__ = ["register"]
