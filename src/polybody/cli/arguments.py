"""Arguments that several commands share."""

from __future__ import annotations

from typing import Annotated

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


def given_arguments(given: list[str] | None) -> dict[str, str]:
    """{name: value} of `--arg name=value` options."""
    from polybody.errors import InputError

    pairs = [(text, *text.partition("=")) for text in given or ()]
    for text, name, equals, _ in pairs:
        if not (name.strip() and equals):
            raise InputError(f"--arg {text!r}: expected NAME=VALUE")
    return {name.strip(): value for _, name, _, value in pairs}


__all__ = ["ArgOption", "BaseOption", "ModelArgument", "given_arguments"]
