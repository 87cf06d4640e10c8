"""Matrices of which little is not zero, by their entries: memory grows with what is said, not with the square of nv.

Armatures, rotors and motors' bearings couple few velocities. `dense` is for equations, which ask where models are
small enough for equations of all joints at once; loading and checking ask for entries only.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from polybody.late import dataclass
from polybody.properties import cached_property

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Entries:
    """Entry k is values[k] at (rows[k], columns[k]); places are distinct, rows rise."""

    shape: tuple[int, int]
    rows: Array
    columns: Array
    values: Array

    @classmethod
    def summed(cls, shape: tuple[int, int], parts: Iterable[tuple[Array, Array, Array]]) -> Entries:
        """The sum of parts (rows, columns, values), what is zero left out."""
        joined = [np.concatenate([[], *column]) for column in zip(*parts, strict=True)] or [np.zeros(0)] * 3
        places, where = np.unique(joined[0].astype(int) * shape[1] + joined[1].astype(int), return_inverse=True)
        values = _sums(where, joined[2], len(places))
        filled = values != 0
        places, values = places[filled], values[filled]
        return cls(shape, places // max(shape[1], 1), places % max(shape[1], 1), values)

    @classmethod
    def of(cls, matrix: Array) -> Entries:
        """Every number of a small matrix, whatever kind of number it is."""
        rows, columns = np.indices(matrix.shape)
        return cls((matrix.shape[0], matrix.shape[1]), rows.ravel(), columns.ravel(), matrix.ravel())

    @cached_property
    def dense(self) -> Array:
        result = np.zeros(self.shape, dtype=self.values.dtype)
        result[self.rows, self.columns] = self.values
        return result

    @cached_property
    def starts(self) -> Array:
        """Where the entries of each row begin, and where the last row's end."""
        return np.searchsorted(self.rows, np.arange(self.shape[0] + 1))

    def block(self, part: slice) -> Array:
        """The square of these rows and columns."""
        first, last = self.starts[part.start], self.starts[part.stop]
        result = np.zeros((part.stop - part.start,) * 2, dtype=self.values.dtype)
        rows, columns = self.rows[first:last] - part.start, self.columns[first:last] - part.start
        inside = (columns >= 0) & (columns < len(result))
        result[rows[inside], columns[inside]] = self.values[first:last][inside]
        return result

    def weighted(self, weights: Array) -> Entries:
        """Eᵀ diag(weights) E of this matrix E: rows over the same columns are multiplied together."""
        alike: dict[bytes, list[int]] = {}
        for row in range(self.shape[0]):
            alike.setdefault(self.columns[self.starts[row] : self.starts[row + 1]].tobytes(), []).append(row)
        parts = []
        for rows in alike.values():
            columns = self.columns[self.starts[rows[0]] : self.starts[rows[0] + 1]]
            X = np.array([self.values[self.starts[row] : self.starts[row + 1]] for row in rows])
            product = X.T @ (weights[rows, None] * X)
            parts.append((np.repeat(columns, len(columns)), np.tile(columns, len(columns)), product.ravel()))
        return Entries.summed((self.shape[1], self.shape[1]), parts)

    def moved(self, slots: Array, factors: Array, size: int, *, both: bool) -> Entries:
        """A E, or Eᵀ A E if `both`, for the E that has the number factors[k] alone in row k, at column slots[k]."""
        rows = slots[self.rows] if both else self.rows
        values = self.values * factors[self.columns] * (factors[self.rows] if both else 1.0)
        shape = (size if both else self.shape[0], size)
        return Entries.summed(shape, [(rows, slots[self.columns], values)])


def _sums(where: Array, values: Array, count: int) -> Array:
    """The sums of the values that belong to each place, whatever kind of number they are."""
    if values.dtype != object:
        return np.bincount(where, values, count) if count else np.zeros(0)
    sums = np.full(count, 0.0, dtype=object)
    for place, value in zip(where.tolist(), values, strict=True):
        sums[place] = sums[place] + value
    return sums


__all__ = ["Entries"]
