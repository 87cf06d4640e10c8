"""`polybody draw MODEL -o FILE`: a picture of the mechanism."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from polybody.cli.arguments import BaseOption, ModelArgument
from polybody.cli.output import ForceOption, JsonOption, emit, refuse_existing


def register(app: typer.Typer) -> None:
    @app.command("draw")
    def draw(
        model: ModelArgument,
        output: Annotated[Path, typer.Option("--output", "-o", help="Output file: .png, .svg or .pdf.")],
        q: Annotated[
            str | None, typer.Option("--q", help="All of q, or 'joint=value,…'; default neutral.")
        ] = None,
        force: ForceOption = False,
        base: BaseOption = None,
        as_json: JsonOption = False,
    ) -> None:
        """Draw a mechanism: links, joints by kind, mass centres and frames."""
        from polybody.cli.linearize import numbers
        from polybody.model.load import load
        from polybody.studio.drawing import draw as draw_model

        refuse_existing(output, force)
        loaded = load(model, base=base)
        configuration = None if q is None else numbers("--q", q, loaded, "q")
        draw_model(loaded, output, configuration)
        emit({"file": str(output)}, as_json, lambda c: c.print(f"wrote {output}", soft_wrap=True, markup=False))


__all__ = ["register"]
