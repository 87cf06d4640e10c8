"""Plots of a run: joints, speeds, torques, energies; each as PNG and SVG."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from polybody.studio.record import Record, q_labels, v_labels

Array = np.ndarray
PLOTS = ("joints", "speeds", "torques", "energies")
MOST_LABELS = 24

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


def figure_of(record: Record, name: str) -> Any:
    """The figure of one plot, on no screen."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(8.4, 3.6), dpi=140, layout="constrained")
        FigureCanvasAgg(figure)
        if name == "energies":
            _energies(figure, record)
        else:
            _curves(figure, record, name)
        return figure


def _curves(figure: Any, record: Record, name: str) -> None:
    """One axes for what turns, one for what slides: their units differ."""
    data, labels, turning = _data(record, name)
    units = {"joints": ("rad", "m"), "speeds": ("rad/s", "m/s"), "torques": ("N m", "N")}[name]
    groups = [(mask, unit) for mask, unit in ((turning, units[0]), (~turning, units[1])) if mask.any()]
    if len(groups) > 1:
        figure.set_size_inches(8.4, 5.6)
    axes = figure.subplots(len(groups), 1, sharex=True, squeeze=False)[:, 0] if groups else []
    for axis, (mask, unit) in zip(axes, groups, strict=True):
        chosen = np.flatnonzero(mask)
        colors = _colors(len(chosen))
        for color, k in zip(colors, chosen, strict=True):
            axis.plot(record.t, data[:, k], label=labels[k], color=color)
        axis.set_ylabel(unit)
        if len(chosen) <= MOST_LABELS:
            axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8, ncols=1 + len(chosen) // 13)
    if len(axes):
        axes[0].set_title({"joints": "Configuration", "speeds": "Velocity", "torques": "Joint forces"}[name])
        axes[-1].set_xlabel("time, s")


def _data(record: Record, name: str) -> tuple[Array, list[str], Array]:
    """(numbers, labels, which of them turn)."""
    model = record.model
    turns_v, turns_q = [], []
    for joint in model.mechanism.independent_joints:
        H = joint.model.velocity_map(joint.model.neutral())
        own = list(np.linalg.norm(H[:3], axis=0) > 0)
        turns_v += own
        turns_q += own if joint.nq == joint.nv else [*([False] * 3 if joint.nq == 7 else []), *([True] * 4)]
    if name == "joints":
        return record.q, q_labels(model), np.array(turns_q, dtype=bool)
    return (record.v if name == "speeds" else record.tau), v_labels(model), np.array(turns_v, dtype=bool)


def _energies(figure: Any, record: Record) -> None:
    kinetic, potential = record.energies
    total = kinetic + potential
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(2.2, 1))
    figure.set_size_inches(8.4, 5.0)
    curves = [("kinetic", kinetic, "#dc2626"), ("potential", potential, "#2563eb"), ("total", total, "#0f172a")]
    if record.work is not None and np.ptp(record.work) > 0:
        curves.append(("work", record.work, "#d97706"))
    for label, values, color in curves:
        top.plot(record.t, values, label=label, color=color)
    top.set_title("Energy")
    top.set_ylabel("J")
    top.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8)
    work = np.zeros_like(total) if record.work is None else record.work
    if record.kind == "simulation":
        bottom.plot(record.t, total - work - total[0], color="#7c3aed")
        bottom.set_ylabel("balance, J")
    else:
        bottom.plot(record.t, np.sum(record.tau * record.v, axis=1), color="#7c3aed")
        bottom.set_ylabel("power, W")
    bottom.set_xlabel("time, s")


def _colors(count: int) -> list[Any]:
    import matplotlib

    if count <= 10:
        return [matplotlib.colormaps["tab10"](k) for k in range(count)]
    return [matplotlib.colormaps["turbo"](x) for x in np.linspace(0.05, 0.95, count)]


def write_plots(record: Record, folder: Path) -> list[Path]:
    """PNG and SVG of every plot."""
    import matplotlib

    written = []
    with matplotlib.rc_context(STYLE):
        for name in PLOTS:
            figure = figure_of(record, name)
            for suffix in ("png", "svg"):
                path = folder / f"{name}.{suffix}"
                figure.savefig(path, metadata={"Date": None} if suffix == "svg" else None)
                written.append(path)
    return written


__all__ = ["PLOTS", "STYLE", "figure_of", "write_plots"]
