"""Plots of a run: any channel, each unit and size in axes of its own; as matplotlib's figures, or as PNG and SVG."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from polybody.errors import InputError
from polybody.files import write_whole
from polybody.names import nearest
from polybody.studio.channels import Channel
from polybody.studio.charts import MOST_LABELS, chart, colours
from polybody.studio.panels import Panel, panels
from polybody.studio.record import Record
from polybody.studio.strokes import Picture

Array = np.ndarray
#: the plots of a run's folder: the name of the file and the channel it shows
PLOTS = {"joints": "positions", "speeds": "velocities", "torques": "forces", "energies": "energy"}
FORMATS = (".png", ".svg", ".pdf")

STYLE: Any = {
    "axes.edgecolor": "#94a3b8",
    "axes.grid": True,
    "axes.labelcolor": "#334155",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": "#0f172a",
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "font.size": 10,
    "grid.color": "#e2e8f0",
    "legend.frameon": False,
    "lines.linewidth": 1.7,
    "svg.fonttype": "path",
    "svg.hashsalt": "polybody",
    "text.parse_math": False,  # names hold dollar signs
    "xtick.color": "#475569",
    "ytick.color": "#475569",
}


def channel_of(record: Record, name: str) -> tuple[Channel, Array]:
    """A channel of a run and its table (n, items), by its own name or by that of its file."""
    every = record.channels()
    wanted = PLOTS.get(name, name)
    channel = next((c for c in every if c.key == wanted), None)
    if channel is None:
        known = [c.key for c in every]
        raise InputError(f"no quantity {name!r}{nearest(name, known)}; available: {', '.join(known)}")
    return channel, record.tables()[wanted]


def _content(record: Record, name: str) -> tuple[str, list[Panel], list[str]]:
    """(title, panels, names of what is zero throughout) of one channel."""
    channel, table = channel_of(record, name)
    found, zero = panels(channel.items, table)
    extra = _balance(record) if channel.key == "energy" else None
    return channel.title, found + ([extra] if extra else []), zero


def picture_of(record: Record, name: str) -> Picture:
    """The plot of one channel, for files."""
    return chart(record.t, *_content(record, name))


def figure_of(record: Record, name: str) -> Any:
    """The figure of one channel, on no screen."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(8.4, 3.6), dpi=140, layout="constrained")
        FigureCanvasAgg(figure)
        draw(figure, record.t, *_content(record, name))
        return figure


def plotted(record: Record, name: str, path: Any = None) -> Any:
    """The figure, written to a file where a path is given."""
    return drawn(lambda: figure_of(record, name), path)


def drawn(make: Callable[[], Any], path: Any) -> Any:
    """The figure that `make` draws, written to a file where a path is given, whose name is checked before."""
    import matplotlib

    if path is not None and Path(path).suffix.lower() not in FORMATS:
        raise InputError(f"{path}: a plot is one of {', '.join(FORMATS)}")
    figure = make()
    if path is not None:
        packed = io.BytesIO()
        with matplotlib.rc_context(STYLE):
            _save(figure, packed, Path(path).suffix[1:].lower())
        write_whole(path, packed.getvalue())
    return figure


def _save(figure: Any, stream: io.BytesIO, kind: str) -> None:
    """`figure.savefig`, whose pixels are the same: it draws a picture twice, first on nothing, to lay it out.

    Laying out is enough where axes fill their place; other formats are laid out in units of their own.
    """
    engine = figure.get_layout_engine()
    if kind != "png" or engine is None or any(axes.get_aspect() != "auto" for axes in figure.axes):
        figure.savefig(stream, format=kind)
        return
    import matplotlib

    engine.execute(figure)
    try:
        with matplotlib.rc_context({"figure.autolayout": False, "figure.constrained_layout.use": False}):
            figure.set_layout_engine(None)  # "none" would be one that counts as another to lay out by
        figure.savefig(stream, format=kind)
    finally:
        figure.set_layout_engine(engine)


def _balance(record: Record) -> Panel | None:
    """How well energy and work agree in a simulation; the power in inverse dynamics."""
    from polybody.studio.panels import Curve

    if record.kind == "simulation":
        kinetic, potential = record.energies
        total = kinetic + potential
        off = total - (0.0 if record.work is None else record.work) - total[0]
        return Panel("J", [Curve("balance: energy − work", off, float(np.abs(off).max(initial=0.0)))])
    power = np.sum(record.tau * record.v, axis=1)
    return Panel("W", [Curve("power", power, float(np.abs(power).max(initial=0.0)))])


def draw(figure: Any, t: Array, title: str, found: list[Panel], zero: list[str]) -> None:
    """Panels under each other over one axis of time."""
    count = max(1, len(found))
    figure.set_size_inches(8.4, 1.1 + 2.5 * count)
    axes = figure.subplots(count, 1, sharex=True, squeeze=False)[:, 0]
    for axis, panel in zip(axes, found, strict=False):
        for color, curve in zip(colours(len(panel.curves)), panel.curves, strict=True):
            dashes = {"dashes": (4, 4 * curve.twins)} if curve.twins else {}
            axis.plot(t, curve.values, label=curve.label, color=color, **dashes)
        axis.set_ylabel("dimensionless" if panel.unit == "1" else panel.unit)
        columns = 1 + (len(panel.curves) - 1) // 12
        if len(panel.curves) <= MOST_LABELS:
            axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8, ncols=columns)
    if not found:
        axes[0].text(
            0.5, 0.5, "zero throughout", ha="center", va="center", transform=axes[0].transAxes, color="#64748b"
        )
    axes[0].set_title(title)
    axes[-1].set_xlabel("time, s")
    if zero and found:
        shown = ", ".join(zero[:8]) + (f" and {len(zero) - 8} more" if len(zero) > 8 else "")
        figure.supxlabel(f"zero throughout: {shown}", fontsize=8, color="#64748b")


def write_plots(record: Record, folder: Path) -> list[Path]:
    """PNG and SVG of every plot."""
    written = []
    for name in PLOTS:
        picture = picture_of(record, name)
        written += [folder / f"{name}.png", folder / f"{name}.svg"]
        picture.png(written[-2])
        written[-1].write_text(picture.svg(), encoding="utf-8")
    return written


__all__ = ["FORMATS", "PLOTS", "STYLE", "channel_of", "draw", "drawn", "figure_of", "picture_of", "plotted",
           "write_plots"]  # fmt: skip
