"""`polybody export-c MODEL DIR`: a C99 library of a model, or of a file with a network."""

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


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("export-c")(export_c)


def export_c(
    model: ModelArgument,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Output folder; it must not exist or be empty.")],
    quantity: Annotated[
        list[str] | None,
        typer.Option(
            "--quantity", "-q",
            help="A quantity, e.g. inverse_dynamics, mass_matrix, energy, forward_dynamics_derivatives, "
            "projection_step (to loops), rk4_step or pose:FRAME; may be given several times.",
        ),
    ] = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option("--parameter", help="Numbers to give in C: of a model, e.g. 'forearm.mass' or '*.damping', or of "
                     "a network's parts and models, 'R1.resistance' or 'arm.forearm.mass'; repeatable."),
    ] = None,
    limits: LimitsOption = None,
    restitution: RestitutionOption = None,
    friction: FrictionOption = None,
    name: Annotated[str | None, typer.Option(help="Prefix of files and functions; default: model name.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
    base: BaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Export a C99 library: source, header, Makefile, README and self-test. It allocates no memory and is reentrant.

    Of a file with `network:` it has the whole network: start, steps with switches, and every variable.
    """
    from polybody.bridges.c_library import export_c as write_library
    from polybody.errors import InputError
    from polybody.model.load import load
    from polybody.networks.reading import has_network, load_network

    laws = given_laws(limits, restitution, friction)
    if has_network(model):
        if quantity or base is not None:
            raise InputError(f"{'--quantity' if quantity else '--base'} is for models; this file has a network")
        net: Any = load_network(model)
        options: Any = {"parameters": parameter or (), **laws}
        files = [str(path) for path in write_library(net, folder, name=name, force=force, **options)]
    else:
        refuse_laws(laws)
        loaded = load(model) if base is None else load(model, base=base)
        loaded = loaded.with_parameters(*parameter) if parameter else loaded
        files = [str(path) for path in write_library(loaded, folder, quantity or None, name=name, force=force)]
    emit({"files": files}, as_json, lambda console: console.print("\n".join(files), soft_wrap=True))


__all__ = ["register"]
