"""`report.html`: a run on one page, without anything from the network."""

from __future__ import annotations

import base64
import html
import io
from pathlib import Path
from typing import Any

from polybody.studio.plots import PLOTS
from polybody.studio.record import Record

CSS = """
:root { color-scheme: light; --ink: #0f172a; --soft: #475569; --line: #e2e8f0; --good: #15803d; --bad: #b91c1c; }
* { box-sizing: border-box; }
body { margin: 0; font: 15px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; color: var(--ink);
       background: #f8fafc; }
main { max-width: 1060px; margin: 0 auto; padding: 32px 24px 64px; }
h1 { font-size: 27px; margin: 0 0 4px; letter-spacing: -0.01em; }
h2 { font-size: 17px; margin: 0 0 10px; }
p.lead { color: var(--soft); margin: 0 0 22px; }
section { background: white; border: 1px solid var(--line); border-radius: 12px; padding: 18px 20px; margin: 0 0 18px; }
.grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(330px, 1fr)); gap: 18px; }
.grid section { margin: 0; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
td, th { padding: 5px 8px; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
th { color: var(--soft); font-weight: 500; width: 46%; }
tr:last-child td, tr:last-child th { border-bottom: 0; }
img { width: 100%; height: auto; display: block; }
.mark { display: inline-block; padding: 2px 11px; border-radius: 99px; font-weight: 600; font-size: 13px; }
.good { background: #dcfce7; color: var(--good); } .bad { background: #fee2e2; color: var(--bad); }
footer { color: var(--soft); font-size: 13px; }
"""


def report_text(record: Record, folder: Path, facts: dict[str, Any]) -> str:
    """The page, with plots of `folder` embedded."""
    model = record.model
    title = f"{model.name}: {record.kind}"
    sections = [_pictures(record), *(_plot(folder, name) for name in PLOTS)]
    tables = f'<div class="grid">{_run_table(record, facts)}{_audit_table(record)}</div><br>'
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{CSS}</style></head><body><main>'
        f"<h1>{html.escape(title)}</h1>{_lead(record)}{tables}{''.join(sections)}{_happenings(record)}"
        f"<footer>polybody {html.escape(str(facts['versions']['polybody']))} · model hash "
        f"{html.escape(str(facts['model']['hash'])[:16])} · {html.escape(str(facts['made']))}</footer>"
        "</main></body></html>\n"
    )


def _lead(record: Record) -> str:
    marks = []
    if record.stopped:
        marks.append(f'<span class="mark bad">stopped: {html.escape(record.stopped)}</span>')
    if record.audit is not None:
        trusted = record.audit["trusted"]
        doubts = "; ".join(record.audit.get("doubts") or ["not to be trusted"])
        words = "energy balance holds" if trusted else html.escape(doubts)
        marks.append(f'<span class="mark {"good" if trusted else "bad"}">{words}</span>')
    span = f"{record.t[0]:g} to {record.t[-1]:g} s, {len(record.t)} states, {record.model.nv} degrees of freedom"
    return f'<p class="lead">{span} &nbsp; {" ".join(marks)}</p>'


def rows_table(rows: list[tuple[str, Any]]) -> str:
    cells = "".join(f"<tr><th>{html.escape(a)}</th><td>{html.escape(_show(b))}</td></tr>" for a, b in rows)
    return f"<table>{cells}</table>"


def _show(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return "not known" if value is None else str(value)


def _run_table(record: Record, facts: dict[str, Any]) -> str:
    rows = [("model", facts["model"]["name"]), *((k.replace("_", " "), v) for k, v in record.options.items())]
    return f"<section><h2>Run</h2>{rows_table(rows)}</section>"


def _audit_table(record: Record) -> str:
    if record.audit is None:
        peak = max(zip(abs(record.tau).max(axis=0), _joint_names(record), strict=True), default=(0.0, ""))
        rows: list[tuple[str, Any]] = [("largest joint force", f"{peak[0]:.6g} ({peak[1]})")]
        return f"<section><h2>Result</h2>{rows_table(rows)}</section>"
    a = record.audit
    rows = [
        ("method", a["method"]),
        ("steps taken, rejected", f"{a['steps']}, {_show(a['rejected'])}"),
        ("evaluations", a["evaluations"]),
        ("energy error, J", a["energy_error"]),
        ("energy error, relative", f"{a['energy_error_relative']:.3g} (allowed {a['energy_allowed_relative']:.3g})"),
        ("momentum error, relative", a["momentum_note"] or f"{a['momentum_error_relative']:.3g}"),
    ]
    if a["quaternion_error"] is not None:
        rows.append(("quaternions before projection", a["quaternion_error"]))
    rows.append(("computing time, s", a["seconds"]))
    return f"<section><h2>Audit</h2>{rows_table(rows)}</section>"


def _joint_names(record: Record) -> list[str]:
    from polybody.studio.record import v_labels

    return v_labels(record.model)


def _pictures(record: Record) -> str:
    """The mechanism at the start, half way and at the end."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from polybody.studio.drawing import draw_on

    with matplotlib.rc_context({"svg.fonttype": "path", "font.size": 8, "text.parse_math": False}):
        figure = Figure(figsize=(13.2, 4.4), dpi=110, layout="constrained")
        FigureCanvasAgg(figure)
        for place, k in enumerate((0, len(record.t) // 2, len(record.t) - 1), start=1):
            axes = figure.add_subplot(1, 3, place, projection="3d", proj_type="ortho")
            draw_on(axes, record.model, record.q[k])
            axes.set_title(f"t = {record.t[k]:.3g} s")
        data = io.BytesIO()
        figure.savefig(data, format="png")
    text = base64.b64encode(data.getvalue()).decode()
    picture = f'<img alt="the mechanism at three times" src="data:image/png;base64,{text}">'
    return f"<section><h2>Motion</h2>{picture}</section>"


def _plot(folder: Path, name: str) -> str:
    text = base64.b64encode((folder / f"{name}.svg").read_bytes()).decode()
    return f'<section><img alt="{name}" src="data:image/svg+xml;base64,{text}"></section>'


def _happenings(record: Record) -> str:
    if not record.happenings:
        return ""
    rows = [(f"{h['time']:.6g} s", f"{h['name']} {h['detail']}".strip()) for h in record.happenings[:200]]
    return f"<section><h2>What happened</h2>{rows_table(rows)}</section>"


__all__ = ["CSS", "report_text", "rows_table"]
