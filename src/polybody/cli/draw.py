"""`polybody draw MODEL -o FILE`: an image of the mechanism."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from polybody.cli.arguments import BaseOption, ModelArgument
from polybody.cli.output import ForceOption, JsonOption, emit, refuse_existing
from polybody.cli.states import ConfigurationOption, configuration


def register(app: typer.Typer) -> None:
    @app.command("draw")
    def draw(
        model: ModelArgument,
        output: Annotated[Path, typer.Option("--output", "-o", help="Output file: .png, .svg or .pdf.")],
        q: ConfigurationOption = "neutral",
        force: ForceOption = False,
        base: BaseOption = None,
        as_json: JsonOption = False,
    ) -> None:
        """Draw a mechanism: links, joints by kind, mass centres and frames."""
        from polybody.model.load import load
        from polybody.model.readiness import only_reading
        from polybody.studio.drawing import draw as draw_model

        refuse_existing(output, force)
        with only_reading():
            loaded = load(model, base=base)
        draw_model(loaded, output, configuration("--q", q, loaded))
        emit({"file": str(output)}, as_json, lambda c: c.print(f"wrote {output}", soft_wrap=True, markup=False))


__all__ = ["register"]
