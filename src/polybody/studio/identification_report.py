"""An identification on one page: errors, measured and predicted forces, estimates with their deviations."""

from __future__ import annotations

import base64
import html
import io
import os
from pathlib import Path
from typing import Any

import numpy as np

from polybody import __version__
from polybody.errors import InputError
from polybody.files import write_text
from polybody.identification.result import Identification, Prediction
from polybody.mechanism.columns import velocity_names
from polybody.names import counted
from polybody.studio.plots import STYLE
from polybody.studio.report import CSS, rows_table


def identification_plot(found: Identification, prediction: Prediction) -> Any:
    """Measured and predicted joint forces of one recording, coordinate by coordinate."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    names = _coordinates(found)
    with matplotlib.rc_context(STYLE):
        rows = (len(names) + 1) // 2
        figure = Figure(figsize=(10.6, 1.9 * rows + 0.6), dpi=120, layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots(rows, 2, sharex=True, squeeze=False).ravel()
        for k, (place, name) in enumerate(zip(axes, names, strict=False)):
            place.plot(prediction.t, prediction.measured[:, k], color="#94a3b8", label="measured")
            place.plot(prediction.t, prediction.predicted[:, k], color="#2563eb", linewidth=1.1, label="predicted")
            gap = prediction.measured[:, k] - prediction.predicted[:, k]
            place.plot(prediction.t, gap, color="#dc2626", linewidth=0.8, label="difference")
            place.set_title(f"{name}: {100 * prediction.errors[k]:.1f} %", fontsize=10)
        for place in axes[len(names):]:
            place.set_visible(False)
        axes[0].legend(fontsize=8, ncols=3)
        figure.supxlabel("t, s")
        return figure


def estimates_figure(found: Identification) -> Any:
    """How sure each base parameter is: deviation over value."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    share = found.deviations / np.maximum(np.abs(found.base), 1e-300)
    order = np.argsort(share)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(10.6, 3.4), dpi=120, layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots()
        axes.semilogy(np.arange(len(order)) + 1, 100 * share[order], "o", color="#2563eb", markersize=4)
        axes.axhline(100, color="#dc2626", linewidth=1)
        axes.set_xlabel("base parameters, most certain first")
        axes.set_ylabel("standard deviation, % of the value")
        return figure


def identification_page(found: Identification) -> str:
    """The whole page, with nothing from the network."""
    title = f"{found.problem.model.name}: identification"
    sections = [_embedded(f"{p.source}: {100 * p.error:.2f} %", identification_plot(found, p))
                for p in (*found.validation, *found.training)]  # fmt: skip
    sections.append(_embedded("Uncertainty of the estimates", estimates_figure(found)))
    tables = f'<div class="grid">{_errors(found)}{_choices(found)}</div><br>'
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{CSS}</style></head><body><main>'
        f"<h1>{html.escape(title)}</h1>{_lead(found)}{tables}{''.join(sections)}{_estimates(found)}{_hidden(found)}"
        f"<footer>polybody {html.escape(__version__)}</footer></main></body></html>\n"
    )


def identification_report(found: Identification, path: str | os.PathLike[str], *, force: bool = False) -> Path:
    """Write the page; an existing file is kept unless `force`."""
    target = Path(path)
    if target.exists() and not force:
        raise InputError(f"{target} exists already; use --force (force=True) to replace it")
    write_text(target, identification_page(found))
    return target


def _coordinates(found: Identification) -> list[str]:
    names = velocity_names(found.problem.model.mechanism)
    return [names[k] for k in found.problem.model.engine.independent]


def _lead(found: Identification) -> str:
    mark = ("good", "physically consistent") if found.consistent else ("bad", "not physically consistent")
    words = (
        f"{counted(found.base_count, 'base parameter')} of the bodies, "
        f"{len(found.base) - found.base_count} of the joints"
    )
    return f'<p class="lead">{words} &nbsp; <span class="mark {mark[0]}">{mark[1]}</span></p>'


def _errors(found: Identification) -> str:
    rows: list[tuple[str, Any]] = [("training error", f"{100 * found.training_error:.2f} %")]
    if found.validation_error is not None:
        rows.append(("validation error", f"{100 * found.validation_error:.2f} %"))
    rows += [("condition number", found.condition), ("terms of the joints", ", ".join(found.problem.terms))]
    return f"<section><h2>Result</h2>{rows_table(rows)}</section>"


def _choices(found: Identification) -> str:
    rows = [(k.replace("_", " "), v) for k, v in found.choices.items()]
    return f"<section><h2>Choices</h2>{rows_table(rows)}</section>"


def _estimates(found: Identification) -> str:
    rows = [(f, f"{x:.6g} ± {s:.2g}") for f, x, s in zip(found.formulas, found.base, found.deviations, strict=True)]
    return f"<section><h2>Base parameters</h2>{rows_table(rows)}</section>"


def _hidden(found: Identification) -> str:
    text = html.escape(", ".join(found.unidentifiable)) or "none"
    return f"<section><h2>Without effect on joint forces</h2><p>{text}</p></section>"


def _embedded(title: str, figure: Any) -> str:
    data = io.BytesIO()
    figure.savefig(data, format="png")
    text = base64.b64encode(data.getvalue()).decode()
    name = html.escape(title)
    return f'<section><h2>{name}</h2><img alt="{name}" src="data:image/png;base64,{text}"></section>'


__all__ = ["estimates_figure", "identification_page", "identification_plot", "identification_report"]
