"""`report.html`: a run on one page, without anything from the network.

The plots are those of the page (`viewer/web/chart.js`): curves of every channel over time, with values at the cursor,
zoom by the wheel and export. Channels that are zero throughout are left out. Snapshots share one camera and one
legend beside them.
"""

from __future__ import annotations

import base64
import html
from pathlib import Path
from typing import Any

import numpy as np

from polybody.errors import InputError
from polybody.files import write_text
from polybody.names import counted
from polybody.studio.record import Record
from polybody.studio.stage.welding import distinct
from polybody.studio.viewer.html import web
from polybody.studio.viewer.pack import compressed

#: states whose curves are drawn; more are thinned out evenly
MOST_STATES = 4000

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
button { font: inherit; font-size: 12px; margin-left: 8px; border: 1px solid var(--line); background: white;
         border-radius: 6px; cursor: pointer; }
.foot { color: var(--soft); font-size: 13px; margin: 4px 0 0; display: flex; flex-wrap: wrap; }
.foot::after { content: ""; flex: 1; order: 1; } .foot button { order: 2; }
.chart { margin: 6px 0 10px; } .chart svg { display: block; width: 100%; height: auto; cursor: crosshair; }
.chart text { font: 11px system-ui, sans-serif; fill: var(--soft); }
.chart .unit { font-weight: 650; fill: var(--ink); }
.chart .plate { fill: #f8fafc; } .chart .grid { stroke: var(--line); }
.chart .cursor { stroke: var(--ink); stroke-width: 1.2; } .chart .event { stroke: #d97706; stroke-dasharray: 3 3; }
.legend { display: flex; flex-wrap: wrap; gap: 2px 14px; font-size: 12.5px; } .legend .off { opacity: 0.35; }
.legend > span { display: inline-flex; gap: 6px; align-items: center; cursor: pointer; }
.legend i { width: 18px; border-top: 2.5px solid; } .legend b { font-weight: 500; color: var(--soft); min-width: 52px; }
"""
SCRIPTS = ("math", "pack", "chart", "report")


def report_text(record: Record, facts: dict[str, Any]) -> str:
    """The page: one file."""
    model = record.model
    title = f"{model.name}: {record.kind}"
    tables_part = f'<div class="grid">{_run_table(record, facts)}{_audit_table(record)}</div><br>'
    foot = f"model hash {html.escape(str(facts['model']['hash'])[:16])}"
    above = f"{_lead(record)}{tables_part}{_pictures(record)}"
    return page_text(title, above, _curves(record), _happenings(record), facts, foot)


def page_text(title: str, above: str, curves: dict[str, Any], below: str, facts: dict[str, Any], foot: str) -> str:
    """One page with interactive plots of curves; `above` and `below` are HTML."""
    scripts = "\n".join(web(f"{name}.js") for name in SCRIPTS)
    data = base64.b64encode(compressed(curves)).decode()
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{CSS}</style></head><body><main>'
        f"<h1>{html.escape(title)}</h1>{above}"
        '<noscript><section>The plots need JavaScript; they are also in the .svg files beside this page.</section>'
        '</noscript>'
        f'<div id="plots"></div>{below}'
        f"<footer>polybody {html.escape(str(facts['versions']['polybody']))} · {foot} · "
        f"{html.escape(str(facts['made']))}</footer>"
        f'</main><script id="data" type="text/plain">{data}</script><script>{scripts}</script></body></html>\n'
    )


def write_report(record: Record, path: Any) -> Path:
    """The report as one .html file."""
    from polybody.studio.results import facts_of

    path = Path(path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{path}: a report is an .html file")
    write_text(path, report_text(record, facts_of(record, None)))
    return path


def _curves(record: Record) -> dict[str, Any]:
    """What the plots show: every channel at the run's states."""
    keep = thinned(len(record.t))
    events = [{"time": float(h["time"]), "name": str(h["name"])} for h in record.happenings[:500]]
    return {
        "name": record.model.name, "t": record.t[keep].astype(np.float32), "events": events,
        "channels": [c.as_dict() for c in record.channels()],
        "tables": {key: np.asarray(table, dtype=np.float32).ravel() for key, table in record.tables(keep).items()},
    }  # fmt: skip


def thinned(count: int) -> np.ndarray:
    """Which of so many states are drawn."""
    return distinct(np.linspace(0, count - 1, min(count, MOST_STATES)).astype(int))


def _lead(record: Record) -> str:
    marks = []
    if record.stopped:
        marks.append(f'<span class="mark bad">stopped: {html.escape(record.stopped)}</span>')
    if record.audit is not None:
        trusted = record.audit["trusted"]
        doubts = "; ".join(record.audit.get("doubts") or ["not trusted"])
        words = "energy audit passed" if trusted else html.escape(doubts)
        marks.append(f'<span class="mark {"good" if trusted else "bad"}">{words}</span>')
    span = (
        f"{record.t[0]:g} to {record.t[-1]:g} s, {counted(len(record.t), 'state')}, "
        f"{counted(record.model.nv, 'joint coordinate')}"
    )
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
    if record.kind == "network":  # its audit is over all domains
        return f"<section><h2>Audit</h2>{rows_table([(k.replace('_', ' '), v) for k, v in a.items()])}</section>"
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
    """The mechanism at the start, half way and at the end: one camera, one legend beside the drawings."""
    from polybody.studio.sketch import sketches

    times = (0, len(record.t) // 2, len(record.t) - 1)
    drawn = sketches(record.model, [record.q[k] for k in times], [f"t = {record.t[k]:.3g} s" for k in times])
    text = base64.b64encode(drawn.svg().encode()).decode()
    picture = f'<img alt="the mechanism at three times" src="data:image/svg+xml;base64,{text}">'
    return f"<section><h2>Motion</h2>{picture}</section>"


def _happenings(record: Record) -> str:
    if not record.happenings:
        return ""
    rows = [(f"{h['time']:.6g} s", f"{h['name']} {h['detail']}".strip()) for h in record.happenings[:200]]
    return f"<section><h2>What happened</h2>{rows_table(rows)}</section>"


__all__ = ["CSS", "page_text", "report_text", "rows_table", "thinned"]
