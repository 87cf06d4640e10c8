"""A stretch of steps that compiled code has taken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.late import dataclass, field
from polybody.simulation.integrators.base import LOOKS, Interpolant, Step
from polybody.simulation.integrators.pieces import LOOKS as LOOKS_OF_PIECES
from polybody.simulation.integrators.pieces import PARTS, through
from polybody.simulation.kept import Rows
from polybody.simulation.moments import moment

if TYPE_CHECKING:
    from polybody.kernels.stepping import Parts

Array = np.ndarray


def rows_of(parts: Parts, states: Array, answers: Array) -> Rows:
    """Rows of states and answers as a loop has them."""
    nq, nv, first = parts.nq, parts.nv, parts.padded
    return Rows(
        states[:, parts.size], states[:, : parts.size], answers[:, nq : nq + nv], answers[:, first : first + nv],
        answers[:, first + nv : first + parts.recorded],
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Chunk:
    """Steps from rows[k] to rows[k + 1]; `rates` at their ends, `dense` the interpolants' rows of adaptive methods.

    `samples` are the states at the wanted times among them, None where every step is kept. Where the last step ends
    at a crossing, `crossed` are the labels of what crossed zero, and `whole` is that step's own end.
    """

    rows: Rows
    rates: Array
    samples: Rows | None
    rejected: int = 0
    off_manifold: float = 0.0
    off_loops: float = 0.0
    evaluations: int = 0
    dense: Array | None = None
    begins: Array = field(default_factory=lambda: np.zeros(0))  # rates at the steps' beginnings
    crossed: frozenset[Any] = frozenset()
    whole: tuple[float, Array, Array] | None = None  # (t, y, rate)
    #: events that the loop has dealt with: their rows repeat the times of those before, after what happened there. The
    #: ends of the steps that were cut there, by their numbers
    switches: tuple[Any, ...] = ()
    wholes: Mapping[int, tuple[float, Array, Array]] = field(default_factory=dict)
    inner: int = 0  # steps that the method took beyond those that are rows,
    void: int = 0  # and steps in vain: beyond an event, or taken again
    left_out: float = 0.0  # tolerances: how far states inside its steps may be off (`integrators.pieces`)
    singular: int = 0  # evaluations near singular configurations of loops

    def __len__(self) -> int:
        return len(self.rows) - 1

    def samples_until(self, t: float) -> Rows | None:
        """The samples up to a time, up to rounding."""
        if self.samples is None:
            return None
        end = t + moment(t)
        inside = not len(self.samples) or self.samples.t[-1] <= end
        return self.samples if inside else self.samples[: int(np.searchsorted(self.samples.t, end, "right"))]

    def interpolant(self, k: int) -> Interpolant:
        """Of step k."""
        t0, y0 = float(self.rows.t[k]), self.rows.y[k]
        t1, y1, f1 = float(self.rows.t[k + 1]), self.rows.y[k + 1], self.rates[k + 1]
        if self.whole is not None and k == len(self) - 1:
            t1, y1, f1 = self.whole
        elif k in self.wholes:
            t1, y1, f1 = self.wholes[k]
        if self.dense is not None and self._given:
            return through(t0, t1, np.vstack([y0, self.dense[k, :-1], y1]))
        if self.dense is not None:
            kind = _Cubic if self.dense.shape[1] == 3 else _Dense
            return kind(t0, t1 - t0, y0, self.dense[k])
        return _Hermite(t0, t1 - t0, y0, y1, self.begins[k], f1)

    @property
    def _given(self) -> bool:
        """Whether somebody else has taken its steps."""
        return self.dense is not None and self.dense.shape[1] == PARTS

    def step(self, k: int, rejected: int | None = 0) -> Step:
        """Step k by itself, for who looks inside it."""
        rows = self.rows
        return Step(
            float(rows.t[k]), float(rows.t[k + 1]), rows.y[k], rows.y[k + 1], lambda: self.interpolant(k), rejected,
            looks=LOOKS_OF_PIECES if self._given else LOOKS, left_out=self.left_out,
        )  # fmt: skip


class _Hermite:
    """The cubic through both ends with their rates."""

    def __init__(self, t0: float, h: float, y0: Array, y1: Array, f0: Array, f1: Array) -> None:
        self.t0, self.h, self.y0, self.y1, self.f0, self.f1 = t0, h, y0, y1, f0, f1

    def __call__(self, t: Any) -> Array:
        s, h = (t - self.t0) / self.h, self.h
        return (
            (1 + 2 * s) * (1 - s) ** 2 * self.y0 + s * s * (3 - 2 * s) * self.y1
            + h * s * (1 - s) * ((1 - s) * self.f0 - s * self.f1)
        )  # fmt: skip


class _Cubic:
    """y₀ + x(F₀ + x(F₁ + x F₂))."""

    def __init__(self, t0: float, h: float, y0: Array, F: Array) -> None:
        self.t0, self.h, self.y0, self.F = t0, h, y0, F

    def __call__(self, t: Any) -> Array:
        x = (t - self.t0) / self.h
        return self.y0 + x * (self.F[0] + x * (self.F[1] + x * self.F[2]))


class _Dense:
    """Hairer's interpolant of order 7: y₀ + x(F₀ + (1 − x)(F₁ + x(F₂ + …)))."""

    def __init__(self, t0: float, h: float, y0: Array, F: Array) -> None:
        self.t0, self.h, self.y0, self.F = t0, h, y0, F

    def __call__(self, t: Any) -> Array:
        x, y = (t - self.t0) / self.h, np.zeros_like(self.y0)
        for k, row in enumerate(self.F[::-1]):
            y = (y + row) * (x if k % 2 == 0 else 1 - x)
        return y + self.y0


__all__ = ["Chunk", "rows_of"]
