"""Plots of a run's folder: panels of curves under each other over one axis of time, as lines and words.

Ticks are multiples of 1, 2 or 5 times a power of ten; a common power of ten is written once, beside the unit. Of a
curve with more states than pixels can show, each column of pixels keeps its first, least, largest and last value:
the picture is that of all states. A curve is interrupted where it is not finite.
"""

from __future__ import annotations

import colorsys

import numpy as np

from polybody.studio.panels import Curve, Panel
from polybody.studio.stage.welding import distinct
from polybody.studio.strokes import Line, Picture, Words, width_of

Array = np.ndarray
MOST_LABELS = 24
PER_COLUMN, LONGEST = 12, 36  # labels of a column, letters of a label
WIDTH, ABOVE, PANEL, BETWEEN, BELOW = 840.0, 56.0, 190.0, 54.0, 54.0
GRID, INK, SOFT = "#e2e8f0", "#0f172a", "#64748b"
TEN = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf")
STROKE = 1.7


def colours(count: int) -> list[str]:
    """Ten that differ well; of more, as many hues from blue to red."""
    if count <= len(TEN):
        return list(TEN[:count])
    hues = np.linspace(0.7, 0.0, count)
    return ["#" + "".join(f"{round(255 * x):02x}" for x in colorsys.hsv_to_rgb(hue, 0.85, 0.82)) for hue in hues]


def chart(t: Array, title: str, found: list[Panel], zero: list[str]) -> Picture:
    """Panels over time t; `zero` names what is zero throughout."""
    count = max(1, len(found))
    noted = bool(zero and found)
    picture = Picture(WIDTH, ABOVE + count * PANEL + (count - 1) * BETWEEN + BELOW + 18 * noted)
    scales = [_Scale(panel) for panel in found]
    left = 14 + max((width_of(text, 10) for scale in scales for text in scale.labels), default=0.0)
    right = WIDTH - 12 - max((_legend_width(panel) for panel in found), default=0.0)
    low, high = float(t.min()), float(t.max())
    if not high > low:
        low, high = low - 0.5, high + 0.5
    times = ticks(low, high, 7)
    left = max(left, width_of(_texts(times, 0)[0], 10) / 2 if times else 0.0)  # times since 1970 are long
    across = (t - low) / (high - low) * (right - left - 16) + left + 8
    add = picture.strokes.append
    add(Words(left, 22, title, 13, INK, bold=True))
    for k in range(count):
        top = ABOVE + k * (PANEL + BETWEEN)
        bottom = top + PANEL
        for time, text in zip(times, _texts(times, 0), strict=True):
            x = (time - low) / (high - low) * (right - left - 16) + left + 8
            add(Line(np.array([[x, top], [x, bottom]]), GRID))
            if k == count - 1:
                add(Words(x, bottom + 16, text, 10, SOFT, "middle"))
        if k < len(found):
            _panel(picture, found[k], scales[k], across, (left, right, top, bottom))
        else:
            add(Words((left + right) / 2, (top + bottom) / 2, "zero throughout", 11, SOFT, "middle"))
        add(Line(np.array([[left, top], [left, bottom], [right, bottom]]), "#94a3b8"))
    end = ABOVE + count * PANEL + (count - 1) * BETWEEN
    add(Words((left + right) / 2, end + 36, "time, s", 10.5, anchor="middle"))
    if noted:
        add(Words(WIDTH / 2, end + 58, f"zero throughout: {_listed(zero)}", 9, SOFT, "middle"))
    return picture


def _panel(picture: Picture, panel: Panel, scale: _Scale, across: Array, box: tuple[float, ...]) -> None:
    left, right, top, bottom = box
    add = picture.strokes.append
    unit = "dimensionless" if panel.unit == "1" else panel.unit
    add(Words(left, top - 8, f"10{_raised(scale.power)} {unit}" if scale.power else unit, 10.5, bold=True))
    for value, text in zip(scale.ticks, scale.labels, strict=True):
        y = bottom - (value - scale.low) / (scale.high - scale.low) * PANEL
        add(Line(np.array([[left, y], [right, y]]), GRID))
        add(Words(left - 6, y + 3.5, text, 10, SOFT, "end"))
    each = colours(len(panel.curves))
    for colour, curve in zip(each, panel.curves, strict=True):
        dashes = (4 * STROKE, 4 * curve.twins * STROKE) if curve.twins else None
        y = bottom - (curve.values - scale.low) / (scale.high - scale.low) * PANEL
        for points in pieces(across, y):
            add(Line(points, colour, STROKE, dashes))
    if len(panel.curves) > MOST_LABELS:
        return
    rows = min(len(panel.curves), PER_COLUMN)
    x, start = right + 10, (top + bottom) / 2 - 7.0 * (rows - 1)
    for first in range(0, len(panel.curves), PER_COLUMN):
        column = panel.curves[first : first + PER_COLUMN]
        for k, curve in enumerate(column):
            y = start + 14 * k
            dashes = (4 * STROKE, 4 * STROKE) if curve.twins else None
            add(Line(np.array([[x, y], [x + 18, y]]), each[first + k], STROKE, dashes))
            add(Words(x + 23, y + 3.5, _short(curve.label), 9))
        x += _column_width(column)


def pieces(x: Array, y: Array) -> list[Array]:
    """Points (n, 2) of a curve between its gaps, thinned to what columns of half a pixel show."""
    finite = np.isfinite(y)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], finite, [False]])))
    found = []
    for first, last in zip(edges[::2], edges[1::2], strict=True):
        points = np.column_stack([x[first:last], y[first:last]])
        found.append(points if len(points) <= 8 * WIDTH else _thinned(points))
    return found


def _thinned(points: Array) -> Array:
    column = np.floor(2 * points[:, 0]).astype(int)
    starts = np.flatnonzero(np.diff(column, prepend=column[0] - 1))
    order = np.lexsort((points[:, 1], column))  # times increase, so that columns stay where they are
    ends = np.concatenate([starts[1:], [len(points)]]) - 1
    return points[distinct(np.concatenate([starts, ends, order[starts], order[ends]]))]


class _Scale:
    """The range, ticks and labels of a panel."""

    def __init__(self, panel: Panel) -> None:
        values = np.concatenate([curve.values[np.isfinite(curve.values)] for curve in panel.curves])
        low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
        spread = high - low
        if spread <= 1e-12 * max(abs(low), abs(high)):  # a constant, or what rounding makes of one
            spread = max(abs(low), abs(high)) or 1.0
        self.low, self.high = low - 0.06 * spread, high + 0.06 * spread
        self.ticks = ticks(self.low, self.high, 5)
        largest = max(map(abs, self.ticks), default=1.0)
        power = int(np.floor(np.log10(largest))) if largest > 0 else 0
        self.power = power if power < -2 or power > 4 else 0
        self.labels = _texts(self.ticks, self.power)


def ticks(low: float, high: float, wanted: int) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten between two numbers."""
    if not high > low:
        return [low]
    rough = (high - low) / wanted
    base = 10.0 ** np.floor(np.log10(rough))
    step = float(next(m * base for m in (1, 2, 5, 10) if m * base >= rough * (1 - 1e-9)))
    return [k * step for k in range(int(np.ceil(low / step - 1e-9)), int(np.floor(high / step + 1e-9)) + 1)]


def _texts(ticks: list[float], power: int) -> list[str]:
    """Ticks over 10^power, with as many digits as tell them apart."""
    step = (ticks[1] - ticks[0] if len(ticks) > 1 else abs(ticks[0]) or 1.0) / 10.0**power
    digits = min(12, max(0, -int(np.floor(np.log10(step) + 1e-9))))
    return [f"{x / 10.0**power:.{digits}f}".replace("-", "−") for x in ticks]


def _raised(power: int) -> str:
    return str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _short(label: str) -> str:
    return label if len(label) <= LONGEST else f"{label[: LONGEST - 1]}…"


def _listed(names: list[str]) -> str:
    """As many of them as a line takes, eight at most, and the number of the others."""
    count = min(8, len(names))
    while True:
        more = f" and {len(names) - count} more" if len(names) > count else ""
        text = ", ".join(map(_short, names[:count])) + more
        if count == 1 or width_of(text, 9) < WIDTH - 140:
            return text
        count -= 1


def _column_width(column: list[Curve]) -> float:
    return 40 + max(width_of(_short(curve.label), 9) for curve in column)


def _legend_width(panel: Panel) -> float:
    if len(panel.curves) > MOST_LABELS:
        return 0.0
    return sum(_column_width(panel.curves[k : k + PER_COLUMN]) for k in range(0, len(panel.curves), PER_COLUMN))


__all__ = ["MOST_LABELS", "chart", "colours", "pieces", "ticks"]
