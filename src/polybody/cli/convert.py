"""`polybody convert A B`: the same mechanism in another format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from polybody.cli.arguments import ArgOption, BaseOption, ModelArgument, given_arguments
from polybody.cli.output import JsonOption, emit


def register(app: typer.Typer) -> None:
    @app.command("convert")
    def convert(
        source: ModelArgument,
        target: Annotated[Path, typer.Argument(metavar="FILE", help="The .yaml, .urdf or .xml (MJCF) file to write.")],
        base: BaseOption = None,
        arg: ArgOption = None,
        force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
        lossy: Annotated[
            bool, typer.Option("--lossy", help="Leave out what the format cannot express, and list it.")
        ] = False,
        as_json: JsonOption = False,
    ) -> None:
        """Write a model as a mechanism file (.yaml), or as URDF or MJCF where they can express it."""
        from polybody.description.problems import raise_errors
        from polybody.description.reading import write_description
        from polybody.model.load import based_description
        from polybody.model.validation import description_problems, with_unit_axes

        description = based_description(source, base, given_arguments(arg))
        raise_errors(description_problems(description), source)
        lost = write_description(with_unit_axes(description), target, force=force, lossy=lossy)
        answer = {"from": source, "to": str(target), "name": description.name, "lost": lost}
        said = [f"wrote {target}", *(f"left out: {what}" for what in lost)]
        emit(answer, as_json, lambda console: console.print("\n".join(said), soft_wrap=True))


__all__ = ["register"]
