"""`polybody export-fmu MODEL FILE.fmu`: a model, or a network, for other simulation tools (FMI 3.0)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from polybody.cli.arguments import (
    BaseOption,
    FrictionOption,
    LimitsOption,
    ModelArgument,
    RestitutionOption,
    given_laws,
    refuse_laws,
)
from polybody.cli.output import JsonOption, emit
from polybody.cli.states import ConfigurationOption, configuration


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("export-fmu")(export_fmu)


def export_fmu(
    model: ModelArgument,
    target: Annotated[Path | None, typer.Argument(metavar="FILE", help="Output file; default: model name.")] = None,
    q: ConfigurationOption = "neutral",
    parameter: Annotated[
        list[str] | None,
        typer.Option("--parameter", help="Tunable parameters, e.g. 'forearm.mass' or '*.damping'; repeatable."),
    ] = None,
    step: Annotated[
        float | None,
        typer.Option("--step", help="Internal step of co-simulation, s; default 1e-3, of networks at most 1e-2."),
    ] = None,
    limits: LimitsOption = None,
    restitution: RestitutionOption = None,
    friction: FrictionOption = None,
    source_only: Annotated[bool, typer.Option("--source-only", help="Omit the binary for this machine.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    base: BaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Export an FMU (FMI 3.0, model exchange and co-simulation), with a binary if a C compiler is available.

    Example: polybody export-fmu puma560 puma.fmu --parameter "*.damping"
    """
    from polybody.bridges.fmu import export_fmu as write
    from polybody.description.naming import file_name
    from polybody.model.load import load
    from polybody.networks.reading import has_network

    binary = False if source_only else None
    laws = given_laws(limits, restitution, friction)
    if has_network(model):
        given = {"--q": q != "neutral", "--base": base}
        longest = {"parameters": parameter or (), **({} if step is None else {"step": step}), **laws}
        _network(model, target, [word for word in given if given[word]], as_json, force=force, binary=binary, **longest)
        return
    refuse_laws(laws)
    loaded = load(model, base=base)
    variant = loaded.with_parameters(*parameter) if parameter else loaded
    start = configuration("--q", q, loaded)
    target = target or Path(f"{file_name(loaded.name)}.fmu")
    path = write(variant, target, q0=start, step=1e-3 if step is None else step, force=force, binary=binary)
    answer = {"file": str(path), "states": loaded.nq + loaded.nv, "inputs": loaded.nv,
              "parameters": list(variant.parameters.names)}  # fmt: skip
    emit(answer, as_json, lambda console: console.print(f"wrote {path}", soft_wrap=True))


def _network(source: str, target: Path | None, refused: list[str], as_json: bool, **options: Any) -> None:
    """The FMU of a file with a network."""
    from polybody.bridges.fmu import export_fmu as write
    from polybody.description.naming import file_name
    from polybody.errors import InputError
    from polybody.networks.reading import load_network

    if refused:
        raise InputError(f"{refused[0]} is for models; a network starts from `initial:` in its file")
    net: Any = load_network(source)
    path = write(net, target or Path(f"{file_name(net.name)}.fmu"), **options)
    emit({"file": str(path)}, as_json, lambda console: console.print(f"wrote {path}", soft_wrap=True))


__all__ = ["register"]
