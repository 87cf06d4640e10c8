"""Runs of networks: channels by domain, plots, report, folder, and the models among their parts in the viewer.

    values.csv       time, then every variable
    run.json         network, options, audit, what happened; lists the files of its folder
    CHANNEL.svg      across and through variables of a domain, the parts' own variables, states, energy
    report.html      all of it with interactive plots, readable offline
    trajectory.npz, model.yaml   where a model is a part: `polybody view FOLDER` shows it moving

`network_run_…` serve the methods of `NetworkTrajectory` (polybody.outlets).
"""

from __future__ import annotations

import html
import os
from pathlib import Path
from typing import Any

import numpy as np

from polybody.errors import InputError, warn
from polybody.files import write_text
from polybody.names import counted, listed, nearest
from polybody.networks.energy import DOMAINS
from polybody.networks.trajectory import NetworkTrajectory
from polybody.staging import put, staged
from polybody.studio.channels import Channel, Item
from polybody.studio.charts import chart
from polybody.studio.panels import Panel, panels
from polybody.studio.plots import STYLE, draw, drawn
from polybody.studio.record import Record
from polybody.studio.report import page_text, report_text, rows_table, thinned
from polybody.studio.results import check_folder, facts_of, fill_data, heading, plain, write_json
from polybody.studio.strokes import Picture

Array = np.ndarray
#: what domains call their across and through variables
WORDS = {"electrical": ("voltages", "currents"), "rotational": ("speeds", "torques"),
         "translational": ("velocities", "forces"), "hydraulic": ("pressures", "flows"), "signal": ("signals", "")}


def network_channels(run: NetworkTrajectory) -> list[tuple[Channel, Array]]:
    """States, across and through variables by domain, the parts' own variables, energy; each with its table."""
    found = [_channel(run, "states", "States", [name for name in run.states if name in run.names])]
    for domain in DOMAINS.values():
        for letter, side, word in zip((domain.across, domain.through), ("across", "through"), WORDS[domain.name],
                                      strict=True):
            names = [n for n in run.names if run.domains.get(n) == domain.name and n.rpartition(".")[2] == letter]
            found.append(_channel(run, f"{domain.name} {side}", f"{domain.name.capitalize()} {word}", names))
    own = [name for name in run.names if name not in run.domains]
    found.append(_channel(run, "variables", "Variables of parts", own))
    energy = np.column_stack([run.energy, run.work, run.energy + run.work])
    items = tuple(Item(label, "J") for label in ("stored", "left", "stored + left"))
    found.append((Channel("network energy", "Energy over all domains", "network energy", items), energy))
    return [(channel, table) for channel, table in found if channel.items]


def _channel(run: NetworkTrajectory, key: str, title: str, names: list[str]) -> tuple[Channel, Array]:
    items = tuple(Item(name, run.units.get(name) or "1") for name in names)
    table = np.column_stack([run[name] for name in names]) if names else np.zeros((len(run), 0))
    return Channel(key, title, key, items), table


def _asked(run: NetworkTrajectory, quantity: Any) -> list[tuple[Channel, Array]]:
    """The channels that a name or names mean."""
    every = {channel.key: (channel, table) for channel, table in network_channels(run)}
    if not isinstance(quantity, str):
        names = [str(name) for name in quantity]
        for name in names:
            run[name]  # a wrong one is named
        return [_channel(run, "chosen", run.network.name, names)]
    if quantity == "energy":
        return [every["network energy"]]
    if quantity in every:
        return [every[quantity]]
    if quantity in DOMAINS:
        sides = [every[key] for key in (f"{quantity} across", f"{quantity} through") if key in every]
        if not sides:
            raise InputError(f"network {run.network.name!r} has no {quantity} part")
        return sides
    if quantity in run.names:
        return [_channel(run, quantity, quantity, [quantity])]
    known = [*every, *DOMAINS, *run.names]
    raise InputError(f"no variable or channel {quantity!r}{nearest(quantity, known)}; channels: {', '.join(every)}")


def figure_of(run: NetworkTrajectory, quantity: Any = "states", title: str = "") -> Any:
    """A matplotlib figure of variables over time, one unit per axes."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    own, found, zero = _content(run, quantity)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(8.4, 3.6), dpi=140, layout="constrained")
        FigureCanvasAgg(figure)
        draw(figure, run.t, title or own, found, zero)
    return figure


def _content(run: NetworkTrajectory, quantity: Any) -> tuple[str, list[Panel], list[str]]:
    """(title, panels, names of what is zero throughout) of variables."""
    chosen = _asked(run, quantity)
    found, zero = [], []
    for channel, table in chosen:
        more, none = panels(channel.items, table)
        found, zero = found + more, zero + none
    return " and ".join(channel.title for channel, _ in chosen), found, zero


def picture_of(run: NetworkTrajectory, quantity: Any) -> Picture:
    """The plot of variables, for files."""
    return chart(run.t, *_content(run, quantity))


def bode_figure(omega: Any, response: Any, title: str = "", unit: str = "") -> Any:
    """Magnitude (dB) and phase (degrees) of a frequency response, impedance or admittance over ω."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        figure = Figure(figsize=(7, 5), layout="constrained")
        upper, lower = figure.subplots(2, sharex=True)
        with np.errstate(divide="ignore"):
            upper.semilogx(omega, 20 * np.log10(np.abs(response)))
        upper.set_ylabel(f"magnitude, dB{f' of {unit}' if unit else ''}")
        upper.set_title(title)
        lower.semilogx(omega, np.degrees(np.unwrap(np.angle(response))))
        lower.set_ylabel("phase, °")
        lower.set_xlabel("ω, rad/s")
    return figure


# -- as a record of a model, and as a folder --------------------------------------------------------------------------


def record_of(run: NetworkTrajectory, model: str | None = None) -> Record:
    """The motion of a model that is a part, with the network's variables as further channels."""
    if not run.models:
        raise InputError(f"network {run.network.name!r} has no model among its parts, so there is nothing to view in "
                         "3-D; run.report(path) and run.plot() show its variables")
    name = next(iter(run.models)) if model is None else model
    if name not in run.models:
        raise InputError(f"{name!r} is not a model of the network; available: {listed(run.models)}")
    happenings = [{"time": h.time, "name": h.name, "detail": h.detail} for h in run.happenings]
    return Record(run.models[name], "network", run.t, run.configuration(name), run.velocity(name), run.forces(name),
                  options={"network": run.network.name}, audit=plain(run.audit.as_dict()), happenings=happenings,
                  stopped=run.stopped, more=network_channels(run))


def write_network_run(run: NetworkTrajectory, folder: str | os.PathLike[str], *, force: bool = False) -> Path:
    """Write everything into a neighbour folder, then rename it."""
    path = check_folder(folder, force)
    record = record_of(run) if run.models else None
    with staged(path) as fresh:
        (fresh / "values.csv").write_text(run.csv(), encoding="utf-8")
        if record is not None:
            fill_data(record, fresh)
        facts = _facts(run, record)
        try:
            for channel, _ in network_channels(run):
                file = fresh / f"{channel.key.replace(' ', '-')}.svg"
                file.write_text(picture_of(run, channel.key).svg(), encoding="utf-8")
            (fresh / "report.html").write_text(_page(run, record, facts), encoding="utf-8")
        except Exception as error:  # whatever a drawing library raises: the data are worth more than the pictures
            warn(f"{path}: plots or report could not be made ({type(error).__name__}: {error}); the data are kept")
        facts["files"] = sorted({"run.json", *os.listdir(fresh)})
        write_json(fresh / "run.json", facts)
        put(fresh, path)
    return path


def _facts(run: NetworkTrajectory, record: Record | None) -> dict[str, Any]:
    more = {"network": run.network.name, "variables": len(run.names), "network_states": list(run.states)}
    if record is not None:
        return {**facts_of(record, None), **more}
    happenings = [{"time": h.time, "name": h.name, "detail": h.detail} for h in run.happenings]
    return {**heading("network"), **more, "options": {}, "audit": plain(run.audit.as_dict()),
            "happenings": happenings, "stopped": run.stopped, "states": len(run)}


def _page(run: NetworkTrajectory, record: Record | None, facts: dict[str, Any]) -> str:
    """The report: that of the model with the network's channels, or of the network alone."""
    if record is not None:
        return report_text(record, facts)
    keep = thinned(len(run))
    told = network_channels(run)
    curves = {
        "name": run.network.name, "t": run.t[keep].astype(np.float32),
        "events": [{"time": float(h.time), "name": h.name} for h in run.happenings[:500]],
        "channels": [channel.as_dict() for channel, _ in told],
        "tables": {channel.key: table[keep].astype(np.float32).ravel() for channel, table in told},
    }  # fmt: skip
    span = f"{run.t[0]:g} to {run.t[-1]:g} s, {counted(len(run), 'time')}, {counted(len(run.names), 'variable')}"
    good = run.trusted
    words = "energy audit passed" if good else html.escape("; ".join(run.audit.doubts) or "not trusted")
    lead = f'<p class="lead">{span} &nbsp; <span class="mark {"good" if good else "bad"}">{words}</span></p>'
    audit = [(key.replace("_", " "), value) for key, value in run.audit.as_dict().items()]
    above = f"{lead}<section><h2>Audit</h2>{rows_table(audit)}</section>"
    events = [(f"{h.time:.6g} s", f"{h.name} {h.detail}".strip()) for h in run.happenings[:200]]
    below = f"<section><h2>Switches and events</h2>{rows_table(events)}</section>" if events else ""
    return page_text(f"{run.network.name}: network", above, curves, below, facts, counted(len(run.states), "state"))


# -- the methods of a run ---------------------------------------------------------------------------------------


def network_run_save(run: NetworkTrajectory, folder: Any, force: bool) -> Path:
    return write_network_run(run, folder, force=force)


def network_run_plot(run: NetworkTrajectory, quantity: Any, path: Any) -> Any:
    return drawn(lambda: figure_of(run, quantity), path)


def network_run_report(run: NetworkTrajectory, path: Any) -> Path:
    path = Path(path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{path}: a report is an .html file")
    record = record_of(run) if run.models else None
    write_text(path, _page(run, record, _facts(run, record)))
    return path


def network_run_view(run: NetworkTrajectory, model: str | None, *, port: int, browser: bool) -> Any:
    from polybody.studio.conveniences import view

    return view(record_of(run, model), port=port, browser=browser)


def network_run_share(run: NetworkTrajectory, path: Any, model: str | None) -> Path:
    from polybody.studio.sharing import write_page

    record = record_of(run, model)
    return write_page(path, record.model, [record], [run.network.name])


def network_run_animate(run: NetworkTrajectory, path: Any, model: str | None, **options: Any) -> Path:
    from polybody.studio.conveniences import render

    return render(path, record_of(run, model), **options)


def network_run_html(run: NetworkTrajectory) -> str:
    """A run in a notebook: what it was, and its states."""
    return f"<div>{html.escape(repr(run))}{picture_of(run, 'states').svg()}</div>"


__all__ = ["bode_figure", "figure_of", "network_channels", "record_of", "write_network_run"]
