"""`polybody render RUN… -o out.mp4`: a video of runs, or an image of a model, without a screen."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from polybody.cli.arguments import BaseOption, complete_model
from polybody.cli.output import ForceOption, JsonOption, emit, refuse_existing
from polybody.cli.view import posed, read
from polybody.errors import InputError


def register(app: typer.Typer) -> None:
    @app.command("render")
    def render(
        what: Annotated[
            list[str],
            typer.Argument(
                metavar="RUN…|MODEL", help="Folders of runs of one model, or a model.", autocompletion=complete_model
            ),
        ],
        output: Annotated[
            Path, typer.Option("--output", "-o", help="Video: .mp4, .webm, .gif, .webp; image: .png, .jpg.")
        ],
        size: Annotated[str, typer.Option(help="Width and height in pixels.")] = "1280x720",
        fps: Annotated[float, typer.Option(help="Frames per second.")] = 30.0,
        speed: Annotated[float, typer.Option(help="Playback speed relative to the run; 0.1: slow motion.")] = 1.0,
        at: Annotated[float | None, typer.Option(help="Time of the run that an image shows, s.")] = None,
        q: Annotated[
            str | None, typer.Option(help="Configuration of a model: a name, 'joint=30deg,…', or all of q.")
        ] = None,
        view: Annotated[str | None, typer.Option(help="Azimuth and elevation of the camera: '−40deg,20deg'.")] = None,
        theme: Annotated[str, typer.Option(help="light or dark.")] = "light",
        trail: Annotated[str | None, typer.Option(help="A frame whose path is drawn.")] = None,
        zoom: Annotated[float, typer.Option(help="Zoom factor; larger than 1 is closer.")] = 1.0,
        force: ForceOption = False,
        base: BaseOption = None,
        as_json: JsonOption = False,
    ) -> None:
        """Render runs to a video, or a configuration to an image, off screen."""
        from polybody.description.units import ANGLE, quantity
        from polybody.studio.render import render as render_to

        refuse_existing(output, force)
        model, records, _ = read(what, base)
        shown = posed(model, records, q)
        looking = None
        if view is not None:
            angles = [quantity(part.strip().replace("−", "-"), (ANGLE,)) for part in view.split(",")]
            if len(angles) != 2:
                raise InputError(f"--view is {view!r}; expected azimuth and elevation, as -40deg,20deg")
            looking = (angles[0], angles[1])
        render_to(model, output, records, q=shown, size=numbers_of(size), fps=fps, speed=speed, at=at, view=looking,
                  theme=theme, trail=trail, zoom=zoom)  # fmt: skip
        written = output.stat().st_size
        answer = {"file": str(output), "bytes": written}
        emit(answer, as_json, lambda c: c.print(f"wrote {output} ({written / 1e6:.2f} MB)", soft_wrap=True))


def numbers_of(size: str) -> tuple[int, int]:
    """Width and height of '1280x720'."""
    parts = size.lower().split("x")
    if len(parts) != 2 or not all(part.strip().isdecimal() for part in parts):
        raise InputError(f"--size is {size!r}; expected width and height, as 1280x720")
    return int(parts[0]), int(parts[1])


__all__ = ["register"]
