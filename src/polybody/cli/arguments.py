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
        help="A shipped model's name, or a .yaml, .urdf or .xml (MJCF) file.",
        autocompletion=complete_model,
    ),
]
BaseOption = Annotated[
    str | None, typer.Option("--base", help="How it stands on the ground: fixed, planar, floating or flying.")
]

__all__ = ["BaseOption", "ModelArgument"]
