"""`polybody view MODEL|RUN`: a mechanism or a run in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from polybody.cli.arguments import BaseOption, complete_model


def register(app: typer.Typer) -> None:
    @app.command("view")
    def view(
        what: Annotated[
            str,
            typer.Argument(
                metavar="MODEL|RUN", help="A model's name or file, or a run's folder.", autocompletion=complete_model
            ),
        ],
        port: Annotated[int, typer.Option(help="Where the page is served; the next free one if it is in use.")] = 8080,
        browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser on this machine.")] = True,
        base: BaseOption = None,
    ) -> None:
        """Look at a mechanism or a run in the browser: sliders, playback, frames, inertias, forces and plots."""
        from polybody.model.load import load
        from polybody.studio.results import read_run
        from polybody.studio.viewer import serve

        record = read_run(what) if (Path(what) / "run.json").is_file() else None
        model = record.model if record is not None else load(what, base=base)

        def say(text: str) -> None:
            typer.echo(text)
            if browser and text.startswith("http"):
                open_browser(text.split()[0])

        serve(model, record, port, say)


def open_browser(url: str) -> None:
    """Ask the desktop to open the page; a machine without one is told where it is."""
    import os
    import sys
    import webbrowser
    from urllib.parse import urlsplit

    if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        place = urlsplit(url)
        typer.echo(f"no display here: open {url} in a browser of this machine, or forward the port "
                   f"(ssh -L {place.port}:{place.netloc} …)")  # fmt: skip
        return
    try:
        opened = webbrowser.open(url)
    except webbrowser.Error:
        opened = False
    if not opened:
        typer.echo(f"no browser was found: open {url} in one")


__all__ = ["register"]
