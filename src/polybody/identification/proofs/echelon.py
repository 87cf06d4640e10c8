"""Sparse linear algebra over GF(p): rows {key: value}, reduced one after the other.

`Echelon` keeps rows whose leading keys differ. Keys are compared by a given order, so that sums whose higher terms
cancel show up as rows that begin further down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

Row = dict[Any, int]


class Echelon:
    """Independent rows over GF(p); `order` gives the rank of a key, the greatest leads."""

    def __init__(self, p: int, order: Callable[[Any], Any] = lambda key: key) -> None:
        self.p, self.order = p, order
        self.rows: dict[Any, Row] = {}  # by leading key, whose value is 1

    def __len__(self) -> int:
        return len(self.rows)

    def reduced(self, row: Mapping[Any, int]) -> Row:
        """What is left of a row when terms that rows lead with are taken away, the greatest first."""
        p, rows = self.p, self.rows
        left = {key: rest for key, value in row.items() if (rest := value % p)}
        while leads := left.keys() & rows.keys():
            lead = next(iter(leads)) if len(leads) == 1 else max(leads, key=self.order)
            value = left[lead]
            for key, x in rows[lead].items():
                rest = (left.get(key, 0) - value * x) % p
                if rest:
                    left[key] = rest
                else:
                    left.pop(key, None)
        return left

    def add(self, row: Mapping[Any, int]) -> Any:
        """Keep a row; returns its leading key, or None where it depends on those before."""
        left = self.reduced(row)
        if not left:
            return None
        lead = max(left, key=self.order)
        scale = pow(left[lead], -1, self.p)
        self.rows[lead] = {key: value * scale % self.p for key, value in left.items()}
        return lead

    def extend(self, rows: Iterable[Mapping[Any, int]]) -> None:
        for row in rows:
            self.add(row)


def combined(p: int, *terms: tuple[int, Mapping[Any, int]]) -> Row:
    """Σ factor · row."""
    result: Row = {}
    for factor, row in terms:
        for key, value in row.items():
            result[key] = (result.get(key, 0) + factor * value) % p
    return {key: value for key, value in result.items() if value}


def product(p: int, a: Mapping[int, int], b: Mapping[int, int], *, apart: bool = False) -> Row:
    """The product of two linear forms, by pairs of keys: in ascending order, or `apart`: first of a, then of b."""
    result: Row = {}
    for i, x in a.items():
        for j, y in b.items():
            key = (i, j) if apart or i <= j else (j, i)
            result[key] = (result.get(key, 0) + x * y) % p
    return result


__all__ = ["Echelon", "Row", "combined", "product"]
