"""Curves in panels: one unit each, and within a unit sizes that differ by less than thirty times.

What is zero throughout is not drawn; it is named. Curves that coincide are dashed over each other, so that both are
seen. The page does the same to what it shows (`web/chart.js`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polybody.studio.channels import Item

Array = np.ndarray
#: a curve is zero below this, or below this part of the largest of its unit: what is left of roundings
ZERO, NOISE = 1e-9, 1e-7
APART = 30.0  # times the size from which curves have a panel of their own
COINCIDENT = 2e-3  # of the panel's size


@dataclass
class Curve:
    """One column of a table: `twins` counts the curves before it in its panel that it lies on."""

    label: str
    values: Array
    size: float
    twins: int = 0


@dataclass
class Panel:
    unit: str
    curves: list[Curve]


def panels(items: tuple[Item, ...], table: Array) -> tuple[list[Panel], list[str]]:
    """(panels, names of what is zero throughout) of a table (n, items)."""
    units: dict[str, list[tuple[int, Curve]]] = {}
    zero = []
    sizes = [float(np.abs(column[np.isfinite(column)]).max(initial=0.0)) for column in np.asarray(table, float).T]
    largest_of: dict[str, float] = {}
    for item, size in zip(items, sizes, strict=True):
        largest_of[item.unit] = max(size, largest_of.get(item.unit, 0.0))
    for k, item in enumerate(items):
        values, size = np.asarray(table[:, k], dtype=float), sizes[k]
        if size <= max(ZERO, NOISE * largest_of[item.unit]):
            zero.append(item.label)
        else:
            units.setdefault(item.unit, []).append((k, Curve(item.label, values, size)))
    found = []
    for unit, own in units.items():
        groups: list[list[tuple[int, Curve]]] = []
        for k, curve in sorted(own, key=lambda pair: -pair[1].size):
            if not groups or curve.size < groups[-1][0][1].size / APART:
                groups.append([])
            groups[-1].append((k, curve))
        for group in groups:
            curves = [curve for _, curve in sorted(group, key=lambda pair: pair[0])]
            largest = max(curve.size for curve in curves)
            for k, curve in enumerate(curves):
                near = [np.abs(curve.values - other.values).max() < COINCIDENT * largest for other in curves[:k]]
                curve.twins = int(sum(near))
            found.append(Panel(unit, curves))
    return found, zero


__all__ = ["Curve", "Panel", "panels"]
