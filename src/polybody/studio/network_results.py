"""The folder of a network's run: values as CSV, audit and switches as JSON, a plot for each domain, a page.

    values.csv       time, then every variable
    run.json         network, options, audit, what happened; lists the files of its folder
    DOMAIN.svg       across and through variables of a domain; states.svg, energy.svg
    report.html      all of it, readable offline
"""

from __future__ import annotations

import json
import os
from html import escape
from pathlib import Path
from typing import Any

from polybody.networks.trajectory import NetworkTrajectory
from polybody.staging import put, staged
from polybody.studio.plots import STYLE
from polybody.studio.results import check_folder

MOST_CURVES = 16


def write_network_run(run: NetworkTrajectory, folder: str | os.PathLike[str], *, force: bool = False) -> Path:
    """Write everything into a neighbour folder, then rename it."""
    path = check_folder(folder, force)
    with staged(path) as fresh:
        run.save(fresh / "values.csv")
        plots = {name: _write_plot(run, name, columns, fresh) for name, columns in _groups(run).items()}
        (fresh / "report.html").write_text(_page(run, plots), encoding="utf-8")
        facts = {"network": run.network.name, "audit": run.audit.as_dict(), "stopped": run.stopped,
                 "states": list(run.states), "happenings": [vars(h) for h in run.happenings],
                 "files": sorted({"run.json", *os.listdir(fresh)})}
        (fresh / "run.json").write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        put(fresh, path)
    return path


def _groups(run: NetworkTrajectory) -> dict[str, list[str]]:
    """{plot: variables}: states, then what each domain has."""
    groups = {"states": [name for name in run.states if name in run.names][:MOST_CURVES]}
    for node_domain in dict.fromkeys(domain for domain, _ in run.network.nodes.values()):
        for letter, what in ((node_domain.across, "across"), (node_domain.through, "through")):
            found = [n for n in run.names if n.endswith(f".{letter}") and run.domains.get(n) == node_domain.name]
            if found:
                groups[f"{node_domain.name} {what}"] = found[:MOST_CURVES]
    return {name: columns for name, columns in groups.items() if columns}


def _write_plot(run: NetworkTrajectory, name: str, columns: list[str], folder: Path) -> str:
    figure = figure_of(run, columns, name)
    file = f"{name.replace(' ', '-')}.svg"
    figure.savefig(folder / file, metadata={"Date": None})
    return file


def figure_of(run: NetworkTrajectory, columns: list[str], title: str = "") -> Any:
    """A matplotlib figure of variables over time."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        figure = Figure(figsize=(8, 3.6), layout="constrained")
        axes = figure.subplots()
        for name in columns:
            axes.plot(run.t, run[name], label=name)
        axes.set_title(title or run.network.name)
        axes.set_xlabel("t, s")
        axes.legend(fontsize=8, ncols=2)
    return figure


def bode_figure(omega: Any, response: Any, title: str = "") -> Any:
    """Magnitude (dB) and phase (degrees) of a frequency response, impedance or admittance over ω."""
    import numpy as np
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        figure = Figure(figsize=(7, 5), layout="constrained")
        upper, lower = figure.subplots(2, sharex=True)
        upper.semilogx(omega, 20 * np.log10(np.abs(response)))
        upper.set_ylabel("magnitude, dB")
        upper.set_title(title)
        lower.semilogx(omega, np.degrees(np.unwrap(np.angle(response))))
        lower.set_ylabel("phase, °")
        lower.set_xlabel("ω, rad/s")
    return figure


def _page(run: NetworkTrajectory, plots: dict[str, str]) -> str:
    from polybody.symbolic.html import STYLE as PAGE

    audit = "".join(f"<tr><td>{escape(key)}</td><td>{escape(str(value))}</td></tr>"
                    for key, value in run.audit.as_dict().items())
    events = "".join(f"<tr><td>{h.time:.9g} s</td><td>{escape(h.name)}</td><td>{escape(h.detail)}</td></tr>"
                     for h in run.happenings[:500])
    images = "".join(f'<h2>{escape(name)}</h2><img src="{file}" alt="{escape(name)}">' for name, file in plots.items())
    return (f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(run.network.name)}</title>'
            f"<style>{PAGE}</style></head><body><h1>{escape(run.network.name)}</h1><p>{escape(repr(run))}</p>{images}"
            f"<h2>Audit</h2><table>{audit}</table><h2>Switches and events</h2><table>{events}</table></body></html>\n")


__all__ = ["bode_figure", "figure_of", "write_network_run"]
