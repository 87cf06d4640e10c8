"""Figures of a study's results: histograms, scatter matrix, parallel coordinates, tornado, Sobol indices; and a page.

A tornado shows the rank correlation of one result with every varied number, the strongest on top.
"""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.errors import InputError
from polybody.files import write_bytes, write_text
from polybody.studio.plots import STYLE
from polybody.studio.report import CSS, rows_table

if TYPE_CHECKING:
    from polybody.studies import StudyResults

Array = np.ndarray
MOST = 8  # columns in one picture
DRAWN = 4000  # cases drawn as points or lines
BLUE = "#2563eb"
ROUNDING = 1e-14  # of the largest number of a vector


def _figure(width: float, height: float) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _columns(results: StudyResults) -> tuple[dict[str, Array], dict[str, Array]]:
    """(varied numbers, results) that are finite somewhere and vary, by more than the rounding of their vector."""
    varied = set(results.facts()["varied"])
    scalars, largest = results.scalars(), {}
    for name, y in scalars.items():
        owner, size = name.partition("[")[0], float(np.abs(y[np.isfinite(y)]).max(initial=0.0))
        largest[owner] = max(largest.get(owner, 0.0), size)
    inputs, outputs = {}, {}
    for name, y in scalars.items():
        good = y[np.isfinite(y)]
        if len(good) and np.ptp(good) > ROUNDING * largest[name.partition("[")[0]]:
            (inputs if name.partition("[")[0] in varied else outputs)[name] = y
    return inputs, outputs


def histograms(results: StudyResults) -> Any:
    _, outputs = _columns(results)
    chosen = list(outputs)[:MOST] or _nothing()
    figure = _figure(10, 2.4 * -(-len(chosen) // 2))
    for k, name in enumerate(chosen):
        axes = figure.add_subplot(-(-len(chosen) // 2), 2, k + 1)
        y = outputs[name]
        axes.hist(y[np.isfinite(y)], bins=50, color=BLUE)
        axes.set_title(name)
        axes.set_ylabel("cases")
    return figure


def scatter_matrix(results: StudyResults) -> Any:
    inputs, outputs = _columns(results)
    every = {**dict(list(inputs.items())[:4]), **dict(list(outputs.items())[:3])}
    names = list(every) or _nothing()
    keep = _some(len(next(iter(every.values()))))
    figure = _figure(1.7 * len(names) + 1, 1.7 * len(names) + 0.5)
    grid = figure.subplots(len(names), len(names), squeeze=False)
    for i, below in enumerate(names):
        for j, left in enumerate(names):
            axes = grid[i][j]
            if i == j:
                y = every[below]
                axes.hist(y[np.isfinite(y)], bins=30, color=BLUE)
            else:
                axes.plot(every[left][keep], every[below][keep], ".", ms=1.5, alpha=0.4, color=BLUE)
            axes.tick_params(labelsize=6)
            if i == len(names) - 1:
                axes.set_xlabel(left, fontsize=7)
            if j == 0:
                axes.set_ylabel(below, fontsize=7)
    return figure


def parallel_coordinates(results: StudyResults) -> Any:
    from matplotlib import colormaps

    inputs, outputs = _columns(results)
    if not outputs:
        _nothing()
    last = next(iter(outputs))
    every = {**dict(list(inputs.items())[: MOST - 1]), last: outputs[last]}
    keep = _some(len(outputs[last]), 400)
    rows = np.column_stack([(y[keep] - np.nanmin(y)) / (np.nanmax(y) - np.nanmin(y)) for y in every.values()])
    figure = _figure(10, 4)
    axes = figure.add_subplot()
    for row in rows:
        if np.isfinite(row).all():
            axes.plot(range(len(row)), row, lw=0.5, alpha=0.5, color=colormaps["viridis"](row[-1]))
    labels = [f"{name}\n{np.nanmin(y):.3g} … {np.nanmax(y):.3g}" for name, y in every.items()]
    axes.set_xticks(range(len(every)), labels, fontsize=7)
    axes.set_yticks([])
    axes.set_title(f"coloured by {last}")
    return figure


def tornado(results: StudyResults) -> Any:
    _, outputs = _columns(results)
    chosen = list(outputs)[:4] or _nothing()
    figure = _figure(10, 2.2 + 1.4 * len(chosen))
    for k, name in enumerate(chosen):
        found = sorted(results.correlations(name).items(), key=lambda pair: abs(pair[1]))[-MOST:]
        axes = figure.add_subplot(len(chosen), 1, k + 1)
        axes.barh([n for n, _ in found], [x for _, x in found], color=BLUE)
        axes.axvline(0, color="#334155", lw=0.8)
        axes.set_xlim(-1, 1)
        axes.set_title(f"{name}: rank correlation")
    return figure


def sobol(results: StudyResults) -> Any:
    _, outputs = _columns(results)
    chosen = list(outputs)[:4] or _nothing()
    figure = _figure(10, 2.6 * len(chosen))
    for k, name in enumerate(chosen):
        found = results.sobol_indices(name)
        axes, place = figure.add_subplot(len(chosen), 1, k + 1), np.arange(len(found.names))
        axes.bar(place - 0.2, found.first, 0.4, yerr=found.first_error, label="first order", color=BLUE)
        axes.bar(place + 0.2, found.total, 0.4, yerr=found.total_error, label="total", color="#f59e0b")
        axes.set_xticks(place, found.names, fontsize=8)
        axes.set_title(f"{name}: Sobol indices")
        axes.legend()
    return figure


PICTURES: dict[str, Callable[[StudyResults], Any]] = {
    "histograms": histograms, "scatter-matrix": scatter_matrix, "parallel-coordinates": parallel_coordinates,
    "tornado": tornado, "sobol-indices": sobol,
}  # fmt: skip


def _some(count: int, most: int = DRAWN) -> Array:
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(int))


def _nothing() -> Any:
    raise InputError("the study has no results that vary from case to case: nothing to draw")


def plot_study(results: StudyResults, folder: str | Path) -> list[Path]:
    """Write the figures that the study has, as PNG, and report.html."""
    import matplotlib

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    facts = results.facts()
    sampled = facts["study"]["design"] == "saltelli"
    written, shown = [], []
    for name, draw in PICTURES.items():
        if name == "sobol-indices" and not sampled:
            continue
        with matplotlib.rc_context(STYLE):
            figure, stream = draw(results), io.BytesIO()
            figure.savefig(stream, format="png")
        write_bytes(folder / f"{name}.png", stream.getvalue(), 0o644)
        written.append(folder / f"{name}.png")
        shown.append((name, stream.getvalue()))
    write_text(folder / "report.html", _page(results, facts, shown))
    return [*written, folder / "report.html"]


def _page(results: StudyResults, facts: dict[str, Any], shown: list[tuple[str, bytes]]) -> str:
    failures = results.failures()
    state = "complete" if results.complete else "not finished"
    good = "good" if results.complete and not failures else "bad"
    mark = f'<span class="mark {good}">{state}, {len(failures)} failed</span>'
    rows: list[tuple[str, Any]] = [
        ("model", facts["model"]), ("what is done", facts["study"]["kind"]), ("cases", facts["cases"]),
        ("design", facts["study"]["design"]), ("seed", facts["study"]["seed"]),
        ("processor", facts["machine"]["cpu"]), ("varied", ", ".join(facts["varied"])),
    ]  # fmt: skip
    tables = [f"<section><h2>Study</h2>{rows_table(rows)}</section>"]
    for name, found in list(results.summaries().items())[:12]:
        tables.append(f"<section><h2>{html.escape(name)}</h2>{rows_table(list(found.items()))}</section>")
    pictures = "".join(
        f'<section><h2>{name.replace("-", " ")}</h2><img alt="{name}" src="data:image/png;base64,'
        f'{base64.b64encode(data).decode()}"></section>'
        for name, data in shown
    )
    errors = [(f"case {case}", error) for case, error in failures[:50]]
    failed = f"<section><h2>Failed cases</h2>{rows_table(errors)}</section>" if errors else ""
    title = html.escape(f"{facts['name']}: study")
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{CSS}</style></head><body><main>'
        f'<h1>{title}</h1><p class="lead">{facts["cases"]} cases &nbsp; {mark}</p>'
        f'<div class="grid">{"".join(tables)}</div><br>{pictures}{failed}'
        f"<footer>study {html.escape(facts['digest'][:16])}</footer></main></body></html>\n"
    )


__all__ = ["PICTURES", "plot_study"]
