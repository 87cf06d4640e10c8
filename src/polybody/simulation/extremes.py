"""The largest and the least of every number of a run's states, found at once: what an audit looks at.

A run of some twenty steps takes as long as a hundred calls of NumPy. One table of all columns needs two of them; what
is asked of its extremes is asked of single numbers.
"""

from __future__ import annotations

import numpy as np

from polybody.late import dataclass

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Extremes:
    """Columns: those of the states, the last of them the work, then kinetic and potential energy, and both without the
    work. `first` are those of the first state."""

    most: list[float]
    least: list[float]
    first: list[float]


def extremes(states: Array, kinetic: Array, potential: Array) -> Extremes:
    """Of states (n, …), and their energies (n,)."""
    if len(states) == 1:  # who wants the end alone need not wait for more
        row = [*states[0].tolist(), float(kinetic[0]), float(potential[0])]
        row.append(row[-2] + row[-1] - row[-3])
        return Extremes(row, row, row)
    table = np.empty((len(states), states.shape[1] + 3))
    table[:, :-3], table[:, -3], table[:, -2] = states, kinetic, potential
    np.subtract(kinetic + potential, states[:, -1], out=table[:, -1])
    most, least = np.maximum.reduce(table, axis=0), np.minimum.reduce(table, axis=0)
    return Extremes(most.tolist(), least.tolist(), table[0].tolist())


__all__ = ["Extremes", "extremes"]
