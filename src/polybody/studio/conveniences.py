"""What people do with a run or a model: plot, save, view, share, render; and how both show themselves in notebooks.

`pb.view` and `pb.render` are public; `run_…` and `model_…` serve the methods of runs and models (polybody.outlets).
"""

from __future__ import annotations

import html
import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from polybody.errors import InputError
from polybody.model.model import Model
from polybody.model.tree_engine import sparing
from polybody.names import counted
from polybody.simulation import Trajectory
from polybody.studio.record import Record, from_trajectory

STYLE = "border-collapse:collapse;font-size:13px"


def _records(things: Sequence[Any]) -> tuple[Model, list[Record]]:
    """The model, and the runs of it where runs are given."""
    if not things:
        raise InputError("nothing to show: give a model or runs")
    from polybody.networks.trajectory import NetworkTrajectory

    if isinstance(things[0], Model):
        if len(things) > 1:
            raise InputError("one model is shown at a time; several runs of one model may be shown together")
        return things[0], []
    records = []
    for given in things:
        thing = given
        if isinstance(given, NetworkTrajectory):
            from polybody.studio.network_results import record_of

            thing = record_of(given)
        if not isinstance(thing, (Trajectory, Record)):
            raise InputError(f"{type(thing).__name__} is neither a model nor a run")
        records.append(from_trajectory(thing) if isinstance(thing, Trajectory) else thing)
    return records[0].model, records


def view(*things: Any, live: bool = False, q: Any = None, port: int = 8080, browser: bool = True) -> Any:
    """Show a model, a live simulation of it, or runs in the browser; returns the page, closed by `close()`.

    `q` is the initial configuration of a model. The page is served to this machine only, while this program runs.
    """
    import webbrowser

    from polybody.studio.viewer.serve import Viewer

    model, records = _records(things)
    if live and records:
        raise InputError("live=True simulates a model; a run was given")
    with _run_shown(model) if records else nullcontext():
        page = Viewer(model, records or None, port, live=live, q=q)
    print(f"{page.url}  (this machine only)")
    if browser:
        webbrowser.open(page.url)
    return page


def render(path: str | os.PathLike[str], *things: Any, **options: Any) -> Path:
    """Render runs to a video (.mp4, .webm, .gif, .webp), or a model or run to an image (.png, .jpg), off screen.

    Options: `size` (width, height), `fps`, `speed`, `at` (time of an image), `view` (azimuth, elevation in rad),
    `theme` ("light", "dark"), `trail` (a frame whose path is drawn), `zoom`, `q` (configuration of a model).
    """
    from polybody.studio.render import render as to_file

    model, records = _records(things)
    with _run_shown(model) if records else _once(model):
        return to_file(model, path, records, **options)


def _once(model: Model) -> AbstractContextManager[None]:
    """What is shown is asked for once: trees answer by their texts on numbers, and trace no kernels for it."""
    return nullcontext() if model.mechanism.constrained else sparing()


@contextmanager
def _run_shown(model: Model) -> Iterator[None]:
    """`_once`, of a run: the code of one that has just ended is compiled afterwards.

    Emitting it in the background has Python for 5 ms whenever what draws, packs or writes here lets go of it.
    """
    from polybody.kernels.background import building  # not above: models are shown without kernels

    with building(), _once(model):
        yield


def run_plot(run: Trajectory, quantity: str, path: Any) -> Any:
    from polybody.studio.plots import plotted

    with _run_shown(run.model):
        return plotted(from_trajectory(run), quantity, path)


def run_save(run: Trajectory, folder: Any, force: bool) -> Path:
    from polybody.studio.results import write_run

    with _run_shown(run.model):
        return write_run(from_trajectory(run), folder, force=force)


def run_report(run: Trajectory, path: Any) -> Path:
    from polybody.studio.report import write_report

    with _run_shown(run.model):
        return write_report(from_trajectory(run), path)


def run_view(run: Trajectory, *others: Trajectory, port: int, browser: bool) -> Any:
    return view(run, *others, port=port, browser=browser)


def run_share(run: Trajectory, path: Any) -> Path:
    from polybody.studio.sharing import write_page

    with _run_shown(run.model):
        return write_page(path, run.model, [from_trajectory(run)], [run.model.name])


def run_animate(run: Trajectory, path: Any, **options: Any) -> Path:
    return render(path, run, **options)


def _table(rows: Sequence[tuple[str, Any]]) -> str:
    cells = "".join(
        f'<tr><td style="padding:1px 10px 1px 0;color:#64748b">{html.escape(a)}</td><td>{html.escape(str(b))}</td></tr>'
        for a, b in rows
    )
    return f'<table style="{STYLE}">{cells}</table>'


def run_html(run: Trajectory) -> str:
    """A run in a notebook: what it was, whether it is trusted, and its positions."""
    from polybody.studio.plots import picture_of

    rows: list[tuple[str, Any]] = [
        ("run of", run.model.name),
        ("time", f"{run.t[0]:g} to {run.t[-1]:g} s, {counted(len(run), 'state')}"),
        ("method", run.options.get("method", "")),
        ("trusted", "yes" if run.audit.trusted else "; ".join(run.audit.doubts)),
    ]
    if run.stopped:
        rows.append(("stopped", run.stopped))
    if run.happenings:
        rows.append(("events", len(run.happenings)))
    return f'<div style="max-width:860px">{_table(rows)}{picture_of(from_trajectory(run), "positions").svg()}</div>'


def model_html(model: Model) -> str:
    """A model in a notebook: its size and a drawing."""
    from polybody.studio.sketch import sketch

    m = model.mechanism
    kinds: dict[str, int] = {}
    for joint in m.joints:
        kinds[joint.kind] = kinds.get(joint.kind, 0) + 1
    rows: list[tuple[str, Any]] = [
        ("model", model.name),
        ("bodies", len(m.bodies)),
        ("joints", ", ".join(f"{count} {kind}" for kind, count in kinds.items())),
        ("coordinates", f"nq = {model.nq}, nv = {model.nv}"),
        ("mass", f"{model.total_mass:.4g} kg"),
    ]
    if m.closures:
        rows.append(("loops", len(m.closures)))
    drawn = sketch(model, model.assemble()).svg()
    return f'<div style="display:flex;gap:24px;align-items:center">{_table(rows)}{drawn}</div>'


__all__ = ["render", "view"]
