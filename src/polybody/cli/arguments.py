"""Arguments that several commands share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer


def complete_model(incomplete: str) -> list[str]:
    """Names of shipped models and of files here, for shell completion."""
    from pathlib import Path

    from polybody.description.reading import SUFFIXES, shipped_models

    here = [str(path) for path in Path().glob("*") if path.suffix.lower() in SUFFIXES]
    return [name for name in (*shipped_models(), *here) if name.startswith(incomplete)]


ModelArgument = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="Name of a shipped model, or a .yaml, .urdf, .xacro, .sdf or .xml (MJCF) file.",
        autocompletion=complete_model,
    ),
]
BaseOption = Annotated[
    str | None, typer.Option("--base", help="Base type: fixed, planar, floating or flying.")
]

ArgOption = Annotated[
    list[str] | None,
    typer.Option("--arg", metavar="NAME=VALUE", help="Argument of a xacro file; repeatable."),
]

#: of the joints of models in a network that is exported
LimitsOption = Annotated[str | None, typer.Option(help="Joint limits in a network: stop (default) or ignore.")]
RestitutionOption = Annotated[
    float | None, typer.Option(help="Coefficient of restitution at joint limits in a network, 0 to 1; default 0.")
]
FrictionOption = Annotated[
    str | None, typer.Option(help="Dry friction of joints in a network: stick (default) or smooth.")
]


def given_laws(limits: str | None, restitution: float | None, friction: str | None) -> dict[str, Any]:
    """Those of the options that were given, as arguments of an export."""
    said = {"limits": limits, "restitution": restitution, "friction": friction}
    return {word: value for word, value in said.items() if value is not None}


def refuse_laws(laws: Mapping[str, Any]) -> None:
    """Options for networks given for a model raise an error."""
    from polybody.errors import InputError

    if laws:
        raise InputError(f"--{next(iter(laws))} is for files with a network")


def given_arguments(given: list[str] | None) -> dict[str, str]:
    """{name: value} of `--arg name=value` options."""
    from polybody.errors import InputError

    pairs = [(text, *text.partition("=")) for text in given or ()]
    for text, name, equals, _ in pairs:
        if not (name.strip() and equals):
            raise InputError(f"--arg {text!r}: expected NAME=VALUE")
    return {name.strip(): value for _, name, _, value in pairs}


__all__ = [
    "ArgOption",
    "BaseOption",
    "FrictionOption",
    "LimitsOption",
    "ModelArgument",
    "RestitutionOption",
    "given_arguments",
    "given_laws",
    "refuse_laws",
]
