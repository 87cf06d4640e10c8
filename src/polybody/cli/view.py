"""`polybody view MODEL|RUN…`: a mechanism, a live simulation or runs in the browser, or as one file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polybody.cli.arguments import BaseOption, complete_model
from polybody.cli.output import ForceOption, JsonOption, emit, refuse_existing
from polybody.cli.states import configuration
from polybody.errors import InputError

if TYPE_CHECKING:
    from polybody.model.model import Model
    from polybody.studio.record import Record


def register(app: typer.Typer) -> None:
    @app.command("view")
    def view(
        what: Annotated[
            list[str],
            typer.Argument(
                metavar="MODEL|RUN…",
                help="Name or file of a model, or folders of runs to show together.",
                autocompletion=complete_model,
            ),
        ],
        q: Annotated[
            str | None, typer.Option(help="Configuration of a model: a name, 'joint=30deg,…', or all of q.")
        ] = None,
        live: Annotated[bool, typer.Option("--live", help="Live simulation: run, pause, pull, control.")] = False,
        html: Annotated[
            Path | None, typer.Option("--html", help="Write one offline page instead of serving it.")
        ] = None,
        port: Annotated[int, typer.Option(help="Port of the page; the next free one if it is in use.")] = 8080,
        browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser on this machine.")] = True,
        base: BaseOption = None,
        force: ForceOption = False,
        as_json: JsonOption = False,
    ) -> None:
        """Show a mechanism, a live simulation or runs in the browser.

        Sliders, dragging with inverse kinematics, playback, forces, plots, analyses. --html writes the page to a file.
        """
        refuse_existing(html, force)
        model, records, names = read(what, base)
        shown = posed(model, records, q)
        if live and records:
            raise InputError("--live simulates a model; a run was given: drop --live, or name the model")
        if html is not None:
            from polybody.studio.sharing import write_page

            if live:
                raise InputError(
                    "--live needs a program behind the page: drop --html, or simulate first and share the run"
                )
            write_page(html, model, records, names, shown)
            size = html.stat().st_size
            emit(
                {"file": str(html), "bytes": size},
                as_json,
                lambda c: c.print(f"wrote {html} ({size / 1e6:.1f} MB)", soft_wrap=True),
            )
            return
        from polybody.studio.viewer.serve import serve

        def say(text: str) -> None:
            if as_json and text.startswith("http"):
                import json

                typer.echo(json.dumps({"url": text.split()[0]}))
            elif not as_json:
                typer.echo(text)
            if browser and text.startswith("http"):
                open_browser(text.split()[0])

        serve(model, records or None, port, say, live=live, names=names or None, q=shown)


def read(what: list[str], base: str | None) -> tuple[Model, list[Record], list[str]]:
    """The model, and the runs of it with their names, where folders of runs are given."""
    from polybody.model.load import load
    from polybody.studio.results import read_run

    folders = [(Path(name) / "run.json").is_file() for name in what]
    if not any(folders) and len(what) == 1:
        return load(what[0], base=base), [], []
    if not all(folders):
        other = next(name for name, is_run in zip(what, folders, strict=True) if not is_run)
        raise InputError(f"{other}: is not the folder of a run; several things shown together are runs of one model")
    for name in what:
        if not (Path(name) / "model.yaml").is_file() and (Path(name) / "values.csv").is_file():
            raise InputError(f"{name}: is the run of a network without a model, so there are no bodies to view; its "
                             f"variables are in {Path(name) / 'report.html'}")
    records = [read_run(name) for name in what]
    return records[0].model, records, [Path(name).resolve().name for name in what]


def posed(model: Model, records: list[Record], q: str | None) -> Any:
    """The configuration of `--q`, of a model; a run has its own."""
    if q is not None and records:
        raise InputError("--q is the configuration of a model; a run was given: drop --q")
    return None if q is None else configuration("--q", q, model)


def open_browser(url: str) -> None:
    """Ask the desktop to open the page; without one, print the address."""
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


__all__ = ["posed", "read", "register"]
