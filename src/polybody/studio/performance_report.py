"""`performance.html`: how well a machine does its work, on one page, without anything from the network."""

from __future__ import annotations

import base64
import html
import io
import os
from pathlib import Path
from typing import Any

import numpy as np

from polybody.design.labels import labelled
from polybody.design.performance import Performance
from polybody.errors import InputError
from polybody.files import write_text
from polybody.names import counted
from polybody.studio import performance_plots as pictures
from polybody.studio.report import CSS, rows_table


def write_performance(
    found: Performance, path: str | os.PathLike[str], q: Any = None, *, samples: int = 2000, motion: Any = None,
    stiffness: Any = None, grid: tuple[str, str] | None = None, effort: Any = None,
) -> Path:  # fmt: skip
    """Write the page (an .html file): measures and ellipsoids at q, the workspace, and, where they are given, more.

    `motion` (a path or run) sizes the actuators, `stiffness` of the actuators gives deflections and modes, `grid` maps
    two coordinates. `effort` replaces the actuators' effort limits.
    """
    target = Path(path)
    if target.suffix.lower() != ".html":
        raise InputError(f"{target}: a report is an .html file")
    options = {"samples": samples, "motion": motion, "stiffness": stiffness, "grid": grid, "effort": effort}
    write_text(target, performance_text(found, q, **options))
    return target


def performance_text(
    found: Performance, q: Any, *, samples: int, motion: Any, stiffness: Any, grid: tuple[str, str] | None,
    effort: Any = None,
) -> str:  # fmt: skip
    """The page's text."""
    model = found.model
    place = model.assemble() if q is None else model._q(q)
    title = f"{model.name}: performance of {found.frame}"
    parts = [_at(found, place), _image("Ellipsoids", pictures.ellipsoid_figure(found, place))]
    if samples:
        space = found.workspace(samples, q=place)
        table = rows_table(labelled(space.summary()))
        parts.append(f"<section><h2>Workspace</h2>{table}</section>")
        parts.append(_image("Workspace", pictures.workspace_figure(space)))
    if grid is not None:
        parts.append(_image("Map of two coordinates", pictures.workspace_figure(found.grid(*grid, q=place))))
    if motion is not None:
        told = found.sizing(motion, effort=effort)
        parts.append(f"<section><h2>Actuators over the motion</h2><pre>{html.escape(str(told))}</pre></section>")
        parts.append(_image("Torques and speeds", pictures.sizing_figure(told)))
    if effort is not None or np.isfinite(model.joint_limits()["effort"][found.task.active]).any():
        loads = found.capacity(place, motion, effort=effort)
        rows = [(name, f"{value}, limited by {load.actuator}" if load.actuator else "not limited")
                for load, (name, value) in zip(loads.values(), labelled({k: float(x) for k, x in loads.items()}),
                                               strict=True)]  # fmt: skip
        parts.append(f"<section><h2>Load capacity within effort limits</h2>{rows_table(rows)}</section>")
    if stiffness is not None:
        numbers, held, modes = found.held(place, stiffness)
        parts.append(f"<section><h2>Stiffness and modes</h2>{rows_table(labelled(numbers))}</section>")
        if held is not None:
            parts.append(_image("Compliance", pictures.stiffness_figure(held)))
        parts.append(_image("Lowest modes", pictures.modes_figure(modes)))
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{CSS}</style></head><body><main>'
        f'<h1>{html.escape(title)}</h1><p class="lead">rows {" ".join(found.task.names)}, world axes; '
        f"{counted(len(found.task.active), 'actuator')}, mobility {len(model.constraints.independent)}</p>"
        f"{''.join(parts)}<footer>polybody</footer></main></body></html>\n"
    )


def _at(found: Performance, place: Any) -> str:
    told = {key: value for key, value in found.summary(place).items() if key not in ("model", "frame")}
    return f"<section><h2>At one configuration</h2>{rows_table(labelled(told))}</section>"


def _image(title: str, figure: Any) -> str:
    data = io.BytesIO()
    figure.savefig(data, format="png")
    text = base64.b64encode(data.getvalue()).decode()
    width = min(100, round(8 * figure.get_size_inches()[0]))  # in parts of the page: letters of one size
    source = f"data:image/png;base64,{text}"
    picture = f'<img alt="{html.escape(title)}" style="width: {width}%; margin: 0 auto" src="{source}">'
    return f"<section><h2>{html.escape(title)}</h2>{picture}</section>"


__all__ = ["performance_text", "write_performance"]
