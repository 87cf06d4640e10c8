"""The states that a run keeps, one by one or many at once; the last one comes whole or not at all."""

from __future__ import annotations

import numpy as np

from polybody.late import dataclass, field

Array = np.ndarray
LONG = 256


@dataclass(frozen=True, eq=False)
class Rows:
    """States with what is recorded of them: t (n,), y (n, size), a and tau (n, nv), all motors' currents."""

    t: Array
    y: Array
    a: Array
    tau: Array
    currents: Array

    def __len__(self) -> int:
        return len(self.t)

    def __getitem__(self, part: slice | Array) -> Rows:
        return Rows(self.t[part], self.y[part], self.a[part], self.tau[part], self.currents[part])

    def copied(self) -> Rows:
        """The same, each array by itself in memory."""
        return Rows(self.t.copy(), self.y.copy(), self.a.copy(), self.tau.copy(), self.currents.copy())


@dataclass
class Kept:
    """Blocks of rows in the order of time."""

    blocks: list[Rows] = field(default_factory=list)
    count: int = 0

    def __len__(self) -> int:
        return self.count

    @property
    def last(self) -> float:
        """The time of the last state."""
        return float(self.blocks[-1].t[-1]) if self.blocks else -np.inf

    def one(self, t: float, y: Array, a: Array, tau: Array, currents: Array) -> None:
        self.many(Rows(np.array([t]), *(np.array(x, dtype=float)[None] for x in (y, a, tau, currents))))

    def many(self, rows: Rows) -> None:
        """Rows later than the last state. Long ones are copied: they may be views of more than is to be kept."""
        if len(rows) >= LONG:
            rows = rows.copied()
        if len(rows):
            self.blocks.append(rows)  # an interrupt between blocks loses none, and leaves none half
            self.count += len(rows)

    def all(self) -> Rows:
        """All rows as one block, each array by itself in memory."""
        blocks = list(self.blocks)
        if len(blocks) == 1:
            return blocks[0].copied()
        parts = [[getattr(block, name) for block in blocks] for name in ("t", "y", "a", "tau", "currents")]
        return Rows(*(np.concatenate(part) for part in parts))


__all__ = ["Kept", "Rows"]
